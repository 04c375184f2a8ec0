"""What the harness knows of the reference qsync."""

from __future__ import annotations

from typing import Any

import pytest

from harness.errors import ClusterError, WrongUse
from harness.faults.membership import Membership
from harness.plan.promise import DIRTY_READS, OWNER_READS, REPLICA_READS, WRITES
from harness.systems import SYSTEMS
from harness.systems.plans import planned
from harness.systems.qsync.system import SET_UP_TIMEOUT_NS, Qsync
from nodes.qsync import bugs
from nodes.qsync.configuration import Configuration
from nodes.qsync.decisions import Decisions
from nodes.qsync.options import Options
from tests.harness.fake_cluster import FakeCluster

QSYNC = Qsync()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"bugs": ("typo",)}, "unknown bug 'typo' of qsync; try one of: "),
        ({"read": "telepathic"}, "unknown read mode 'telepathic'; try one of: read-confirmed"),
    ],
)
def test_what_it_cannot_do_is_refused(given: dict[str, Any], words: str) -> None:
    """If it failed, a run with a mistyped bug would pass for one without any."""
    with pytest.raises(WrongUse) as refused:
        QSYNC.validate(planned(**given))
    assert words in refused.value.message


@pytest.mark.parametrize("bug", bugs.NAMES)
def test_every_bug_can_be_switched_on_where_it_shows(bug: str) -> None:
    """If it failed, a checker would have no bug left that it must find."""
    QSYNC.validate(planned(cluster="sim", bugs=(bug,)))
    assert QSYNC.bugs()[bug]


def test_a_bug_that_needs_a_disk_that_forgets_is_refused_elsewhere() -> None:
    """If it failed, a run that cannot find the bug would look like a checker that missed it."""
    with pytest.raises(WrongUse) as refused:
        QSYNC.validate(planned(cluster="local", faults=("kill",), bugs=("ack-before-fsync",), seed=8))
    assert refused.value.message.endswith("try: --faults lose-unsynced")
    for faults in (("all",), ("lose-unsynced",), ("kill", "power-one")):
        QSYNC.validate(planned(cluster="local", faults=faults, bugs=("ack-before-fsync",), seed=8))


def test_each_node_gets_a_configuration_of_its_own() -> None:
    """If it failed, two nodes would take each other's place, or disagree about who there is."""
    plan = planned(nodes=5, synchro_timeout_s=0.5, bugs=("confirm-early",), seed=3)
    found = {
        name: Configuration.from_json(data)
        for name, data in QSYNC.configurations(plan, ("register",)).items()
    }
    assert list(found) == ["n1", "n2", "n3", "n4", "n5"]
    assert [configuration.name for configuration in found.values()] == list(found)
    assert len({configuration.members for configuration in found.values()}) == 1
    assert len({member.uuid for member in found["n1"].members}) == 5
    assert {configuration.quorum for configuration in found.values()} == {3}
    assert {configuration.synchro_timeout_ns for configuration in found.values()} == {500_000_000}
    assert {configuration.bugs for configuration in found.values()} == {("confirm-early",)}
    assert QSYNC.configurations(plan, ("register",)) == QSYNC.configurations(plan, ("register",))


def test_a_formula_of_the_quorum_reaches_the_nodes_as_it_is() -> None:
    """If it failed, nodes would be told a number, and go on with it when members come and go."""
    plan = planned(cluster="sim", nodes=5, quorum="math.max(2*N/3, 1)")
    QSYNC.validate(plan)
    found = [Configuration.from_json(data) for data in QSYNC.configurations(plan, ("register",)).values()]
    assert {conf.quorum for conf in found} == {"math.max(2*N/3, 1)"}
    sizes = {Options.of(conf, Decisions()).quorum_size for conf in found}
    assert sizes == {plan.quorum_size} == {3}
    members = Membership.at_first(plan.node_names, plan.quorum)
    assert [members.quorum, members.without("n5").quorum] == [3, 2]
    assert not members.without("n5").is_sound  # two of four are no majority: nobody may leave


STATUS = {
    "owner": 1,
    "role": "owner",
    "term": 2,
    "following": ["n2"],
    "followers": ["n2"],
    "limbo": 0,
    "in_rollback": False,
    "vclock": {"1": 3},
}


@pytest.mark.parametrize(
    ("other", "settled"),
    [
        (STATUS, True),
        (None, False),
        ({**STATUS, "limbo": 1}, False),
        ({**STATUS, "in_rollback": True}, False),
        ({**STATUS, "vclock": {"1": 2}}, False),
        ({**STATUS, "pending_promotes": 0}, True),
        ({**STATUS, "pending_promotes": 1}, False),
        ({**STATUS, "upstreams": {}, "role": "replica"}, True),
    ],
)
def test_settled_means_quiet_and_equal(other: dict[str, object] | None, settled: bool) -> None:
    """If it failed, final reads would be taken of nodes that still change, and lag be called divergence."""
    assert QSYNC.is_settled({"n1": STATUS, "n2": other}) == settled
    by_hand = {**STATUS, "upstreams": {}}
    assert not QSYNC.is_settled({"n1": by_hand, "n2": by_hand}), "two nodes that are writable by hand"


def set_up(cluster: FakeCluster) -> None:
    cluster.run(QSYNC.set_up(planned(cluster="sim", configuration="C"), cluster))


def test_set_up_makes_the_first_node_the_owner() -> None:
    """If it failed, the load would begin before anybody takes writes."""
    cluster = FakeCluster()
    set_up(cluster)
    assert cluster.calls[0] == "call -1 n1 box.ctl.promote"
    assert cluster.calls[1:] == ["status n1", "status n2", "status n3"]


def test_nodes_that_do_not_find_each_other_are_told_in_one_line() -> None:
    """If it failed, a run would hang before it began, or begin with nodes that do not replicate."""

    class Apart(FakeCluster):
        async def status(self, node: str) -> Any:
            return {**STATUS, "following": []}

    cluster = Apart()
    with pytest.raises(ClusterError, match="did not find each other"):
        set_up(cluster)
    assert SET_UP_TIMEOUT_NS <= cluster.now_ns() < SET_UP_TIMEOUT_NS * 1.1


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_says_what_it_promises(name: str) -> None:
    """If it failed, a verdict would be judged against nothing."""
    configurations = {"tarantool": "AB", "qsync": "CDEFGHI"}.get(name)
    for given in [{"configuration": each} for each in configurations] if configurations else [{}]:
        plan = SYSTEMS[name].completed(planned(system=name, **given))
        promise = SYSTEMS[name].promise(plan)
        models = {
            promise.model(WRITES),
            promise.model(OWNER_READS),
            promise.model(REPLICA_READS),
            promise.model(DIRTY_READS),
        }
        assert models <= {"linearizable", "monotone-prefix", "read-uncommitted", "stale", ""}
        assert promise.configuration.startswith(plan.expectations.configuration)
        assert promise.why
    assert SYSTEMS[name].summary
