"""The schedule of faults, and the table that it draws from."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import WrongUse
from harness.faults.fault import Fault
from harness.faults.overlap import exclude, meet
from harness.faults.table import ACTIONS, FAULTS, TOGETHER, can_do, which, why_not
from harness.plan.plan import CONNECTION_NAME
from harness.plan.schedule import FIRST_NS, LAST_HEALED_NS, QUIET_NS, draw_faults, names_for, without_room
from harness.systems import SYSTEMS, system_of
from harness.systems.plans import planned

CLUSTERS = ("local", "docker", "ssh", "sim")


def drawn(**given: Any) -> tuple[Fault, ...]:
    return draw_faults(planned(**given), "n1", SYSTEMS["qsync"])


@given(
    st.integers(0, 1 << 40),
    st.floats(0.1, 90),
    st.integers(1, 7),
    st.sampled_from(CLUSTERS),
    st.lists(st.sampled_from(["all", "none", "kill", "pause"]), min_size=1, max_size=3).map(tuple),
)
def test_a_schedule_keeps_to_its_times(
    seed: int, time_limit_s: float, nodes: int, cluster: str, names: tuple[str, ...]
) -> None:
    """If it failed, faults would overlap, or last beyond the load, where nobody looks at what they do."""
    plan = planned(seed=seed, time_limit_s=time_limit_s, nodes=nodes, cluster=cluster, faults=names)
    faults = draw_faults(plan, "n1", SYSTEMS["qsync"])
    assert [fault.id for fault in faults] == list(range(len(faults)))
    assert all(FIRST_NS <= fault.at_ns < fault.until_ns for fault in faults)
    assert all(fault.until_ns <= plan.time_limit_ns - LAST_HEALED_NS for fault in faults)
    assert all(after.at_ns - before.until_ns >= QUIET_NS[0] for before, after in pairwise(faults))
    known = {*plan.node_names, CONNECTION_NAME}
    for fault in faults:
        assert fault.does == FAULTS[fault.name].does
        assert fault.nodes or fault.links, "it does nothing"
        assert {*fault.nodes, *(end for link in fault.links for end in link)} <= known


@pytest.mark.parametrize("names", [("all",), ("holds",)])
def test_calm_thins_faults_out(names: tuple[str, ...]) -> None:
    """If it failed, a cluster that is slow to recover would be hit again before it has."""
    usual = drawn(cluster="sim", faults=names, time_limit_s=60, seed=3)
    calm = drawn(cluster="sim", faults=names, time_limit_s=60, seed=3, calm_s=3.0)
    assert 0 < len(calm) < len(usual) * 3 / 4


def test_faults_last_in_proportion_to_what_was_asked_for() -> None:
    """If it failed, a store that gives a node up after seconds would serve nothing under any fault: inconclusive."""
    faults = drawn(cluster="docker", faults=("isolate-one", "pause"), time_limit_s=200, seed=3, lasting_s=9.0)
    assert len(faults) > 8
    assert all(6_500_000_000 <= fault.until_ns - fault.at_ns < 11_500_000_000 for fault in faults)


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("seed", range(10))
def test_the_first_round_has_one_of_every_group(cluster: str, seed: int) -> None:
    """If it failed, a short run could consist of partitions only."""
    faults = drawn(seed=seed, cluster=cluster, time_limit_s=60)
    groups = [FAULTS[name].group for name in names_for(planned(cluster=cluster))]
    first = [FAULTS[fault.name].group for fault in faults[: len(set(groups))]]
    assert sorted(first) == sorted(set(groups))
    names = {fault.name for fault in faults[: len(first)]}
    assert "isolate-owner" in names, "the partition that forces a decision comes first"
    assert ("power-owner" in names) == (cluster in FAULTS["power-owner"].where.clusters)


@pytest.mark.parametrize("system", ["qsync", "twophase", "txlog", "tests/systems/echo/echo.py"])
@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("seed", range(4))
def test_a_run_without_a_word_about_faults_has_a_partition_a_crash_and_a_clock(
    system: str, cluster: str, seed: int
) -> None:
    """If it failed, a user who names no fault would not see the three that every such tool is asked for."""
    of = system_of(system)
    plan = of.completed(planned(seed=seed, cluster=cluster, system=system))
    groups = {FAULTS[name].group for name in names_for(plan, of.abilities)}
    faults = draw_faults(plan, of.owner(plan), of)
    assert {FAULTS[fault.name].group for fault in faults[:3]} >= {"partition", "kill"}
    assert ("clock" in groups) == ("clock" in of.abilities)
    assert len(faults) > 3 and {FAULTS[fault.name].group for fault in faults[:3]} >= groups & {"clock"}


def test_the_three_come_in_any_order() -> None:
    """If it failed, no default run would show a crash of a cluster whose clocks are wrong already."""
    assert len({tuple(fault.name for fault in drawn(seed=seed)[:3]) for seed in range(30)}) == 6


@pytest.mark.parametrize("cluster", ["local", "docker"])
def test_no_disk_fails_that_nothing_is_written_to(cluster: str) -> None:
    """If it failed, a run with a near node that only coordinates would be inconclusive whenever its disk was drawn."""
    fields = {"nodes": 5, "near_clients": 2, "time_limit_s": 400.0}
    plan = system_of("twophase").completed(planned(system="twophase", cluster=cluster, seed=1, **fields))
    do_to_disks = which(lambda action: action.is_of_disks)
    drawn = draw_faults(plan, "", system_of("twophase"))
    of_disks = [fault for fault in drawn if fault.does in do_to_disks]
    assert {fault.does for fault in of_disks} == do_to_disks
    assert {node for fault in of_disks for node in fault.nodes} == {"n1", "n2", "n3"}


def test_the_word_all_draws_as_it_did() -> None:
    """If it failed, seeds of a hunt and stored plans would have another schedule than on the day they were found."""
    names = [fault.name for fault in drawn(seed=1, cluster="local", faults=("all",))]
    assert names == ["power-owner", "isolate-owner", "kill", "full-disk", "torn-tail"]


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_long_run_meets_every_fault(cluster: str) -> None:
    """If it failed, a fault of the table would never be tried."""
    faults = drawn(seed=1, cluster=cluster, time_limit_s=200)
    assert {fault.name for fault in faults} == set(names_for(planned(cluster=cluster)))


def test_the_order_differs_from_seed_to_seed() -> None:
    """If it failed, many seeds would all meet the faults in one order."""
    orders = {tuple(fault.name for fault in drawn(seed=seed)) for seed in range(20)}
    assert len(orders) > 10


def test_the_same_seed_gives_the_same_schedule() -> None:
    """If it failed, the line that repeats a run would not even repeat its faults."""
    assert drawn(seed=9, cluster="sim") == drawn(seed=9, cluster="sim")


def test_a_fault_draws_from_a_stream_of_its_own() -> None:
    """If it failed, a fault that draws once more would shift what all later ones do."""
    kills = drawn(seed=9, faults=("kill",))
    pauses = drawn(seed=9, faults=("pause",))
    assert [fault.nodes for fault in kills] == [fault.nodes for fault in pauses]
    assert [fault.at_ns for fault in kills] == [fault.at_ns for fault in pauses]


def test_all_is_what_the_cluster_can_do() -> None:
    """If it failed, "all faults" would ask a cluster for what it cannot do, or leave something out."""
    sim, local, docker = (set(names_for(planned(cluster=cluster))) for cluster in ("sim", "local", "docker"))
    administered = {
        *("remove-node", "add-node", "replace-node", "timeouts", "quorum"),
        *("rolling-restart", "rolling-upgrade", "rolling-downgrade"),
        *("reconfigure", "reconfigure-at-a-moment", "restart-otherwise"),
    }
    limits = {"cpu-limit", "memory-limit", "oom"}
    damages = {"truncated-tail", "bit-flip"}
    assert set(FAULTS) - sim == {
        *(
            "holds",
            "moments",
            "terminate",
            "loss",
            "power-one",
            "slow-disk",
            "full-disk",
            "io-error",
            "torn-tail",
        ),
        *("jitter", "reorder", "bandwidth", "partition-in-steps", "clock-strobe", *limits),
        *damages,
        *administered,
    }
    by_name = {"holds", "moments", "partition-in-steps"}
    assert set(FAULTS) - local == {*by_name, "loss", "reorder", *limits, *damages, *administered}
    assert set(FAULTS) - docker == {*by_name, *damages, *administered}
    of_tarantool, of_own = SYSTEMS["tarantool"].abilities, system_of("docs/mystore.py").abilities
    tarantool = set(names_for(planned(cluster="local", system="tarantool"), of_tarantool))
    assert local - tarantool == {
        *("power-owner", "power-one", "power-all", "slow-disk", "full-disk", "io-error"),
    }
    own = set(names_for(planned(cluster="local", system="docs/mystore.py"), of_own))
    assert tarantool - own == {"clock", "clock-strobe", "torn-tail", "failover"}
    assert names_for(planned(faults=("lose-unsynced",))) == ("power-owner", "power-one", "power-all")
    assert names_for(planned(faults=("lose-unsynced",), nodes=1)) == ("power-owner", "power-all")
    assert can_do("sim") == {
        "slow-fsync",
        "disk-error",
        *("cut", "changing-cut"),
        *("slow", "jitter", "reorder", "bandwidth"),
        "kill",
        "pause",
        "power",
        "clock",
        "failover",
        "hold",
        "slow-disk",
        *("restart", "options", "remove", "add", "replace"),
    }


@pytest.mark.parametrize(
    ("faults", "names"),
    [
        ((), ()),
        (("none",), ()),
        (("none", "kill"), ("kill",)),
        (("pause", "kill", "pause"), ("pause", "kill")),
    ],
)
def test_names_are_taken_as_they_are_given(faults: tuple[str, ...], names: tuple[str, ...]) -> None:
    """If it failed, a fault would be drawn twice as often as another, or "none" would be an unknown fault."""
    assert names_for(planned(faults=faults)) == names


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"faults": ("burn",)}, "unknown fault 'burn'; try one of: all, none, isolate-owner"),
        (
            {"faults": ("loss",)},
            "--cluster local cannot do the fault 'loss': the relay may drop no byte of a live connection",
        ),
        (
            {"faults": ("lose-unsynced",), "system": "tarantool", "cluster": "ssh"},
            "--cluster ssh cannot do the fault 'power-owner': tarantool writes through no disk layer of ours",
        ),
        (
            {"faults": ("torn-tail",), "system": "docs/mystore.py"},
            "--cluster local cannot do the fault 'torn-tail': docs/mystore.py names no logs",
        ),
        (
            {"faults": ("failover",), "system": "docs/mystore.py"},
            "--cluster local cannot do the fault 'failover': docs/mystore.py keeps its owner",
        ),
        (
            {"faults": ("clock",), "system": "docs/mystore.py", "cluster": "docker"},
            "--cluster docker cannot do the fault 'clock': docs/mystore.py does not report its wall clock",
        ),
        (
            {"faults": ("bridge",), "nodes": 2},
            "the fault 'bridge' needs at least 3 nodes, got 2; try: --nodes 3",
        ),
        (
            {"faults": ("power-one",), "nodes": 1},
            "the fault 'power-one' needs at least 2 nodes, got 1; try: --nodes 2 or --faults power-all",
        ),
        (
            {"faults": ("isolate-owner",), "nodes": 1},
            "the fault 'isolate-owner' needs at least 2 nodes, got 1",
        ),
    ],
)
def test_what_is_impossible_is_refused(given: dict[str, Any], words: str) -> None:
    """If it failed, a run would be judged by a fault that it could never have had."""
    plan = planned(**given)
    able = system_of(plan.system).abilities
    with pytest.raises(WrongUse) as refused:
        names_for(plan, able)
    assert words in refused.value.message


def test_a_member_comes_in_place_of_one_that_left() -> None:
    """If it failed, a cluster would hardly ever grow: to count by too few members would be out of a hunt's reach."""
    grown = 0
    for seed in range(20):
        faults = drawn(seed=seed, nodes=5, faults=("all", "membership"), time_limit_s=40.0)
        left = [place for place, fault in enumerate(faults) if fault.does == "remove"]
        for place in left:
            grown += any(fault.does == "add" for fault in faults[place + 1 : place + 6])
    assert grown >= 15


def test_too_short_a_run_has_no_fault() -> None:
    """If it failed, a fault would begin that cannot be healed in time."""
    assert drawn(time_limit_s=2.5) == ()


def _with(name: str) -> tuple[str, ...]:
    """Nobody comes where nobody has left, and no version comes back that never went."""
    before = {"add-node": "remove-node", "rolling-downgrade": "rolling-upgrade"}
    return (before[name], name) if name in before else (name,)


@pytest.mark.parametrize("name", [name for name in FAULTS if name != "holds"])
def test_the_table_says_of_every_fault_what_it_is(name: str) -> None:
    """If it failed, `qsync list faults` would show a name without a sentence, or one that nobody can run."""
    kind = FAULTS[name]
    assert kind.summary
    assert kind.group
    assert set(kind.where.clusters) <= set(CLUSTERS)
    assert kind.where.clusters
    nodes = max(kind.nodes_min, 1)
    plan = planned(cluster=kind.where.clusters[-1], nodes=nodes, faults=_with(name), time_limit_s=30, seed=3)
    if kind.group == "rolling" and kind.does != "restart":
        plan = msgspec.structs.replace(plan, node_from="older.whl")
    faults = draw_faults(plan, "n1", SYSTEMS["qsync"])
    assert faults
    for fault in faults:
        if fault.name != name:
            continue
        needs = ACTIONS[fault.does].fields
        assert all(getattr(fault, needed) for needed in needs)
        assert bool(fault.links) == ("links" in needs)
        assert bool(fault.nodes) == ("nodes" in needs)
        delays = kind.does in ("slow", "slow-fsync", "jitter", "reorder")
        pauses = name == "reconfigure" and len(fault.nodes) > 1  # it may pause between two nodes
        assert bool(fault.delay_ns) == (delays or name == "clock-strobe") or pauses
        assert bool(fault.bytes_per_s) == (kind.does == "bandwidth")
        assert bool(fault.jump_ns) == (kind.does == "clock")
        assert bool(fault.drift_ppm) == (name == "clock")


@pytest.mark.parametrize("name", FAULTS)
def test_where_a_fault_cannot_be_done_the_table_says_why(name: str) -> None:
    """If it failed, `qsync list faults --cluster X` would leave somebody guessing."""
    where = FAULTS[name].where
    for cluster in CLUSTERS:
        assert (cluster in where.clusters) != (cluster in where.why_not)
        assert why_not(name, cluster) == where.why_not.get(cluster, "")
    assert {*where.only_named} <= {*where.clusters}


def test_what_may_only_be_detected_is_never_among_all() -> None:
    """If it failed, a store would be accused of losing what a disk lost that had promised to keep it."""
    for cluster in CLUSTERS:
        assert all(FAULTS[name].must == "survive" for name in names_for(planned(cluster=cluster)))


@pytest.mark.parametrize("quorum", [4, 5, 6])
def test_the_quorum_becomes_greater_than_what_was_asked_for(quorum: int) -> None:
    """If it failed, nothing would change, or the quorum would be lowered, and the fault would count as felt."""
    for seed in range(10):
        faults = drawn(nodes=7, quorum=quorum, faults=("quorum",), time_limit_s=20, seed=seed)
        assert faults
        assert all(quorum < fault.options["replication_synchro_quorum"] <= 7 for fault in faults)


@pytest.mark.parametrize("asked", ["partition-in-steps", "membership", "lose-unsynced", "full-disk"])
def test_what_is_asked_for_beside_all_comes_first(asked: str) -> None:
    """If it failed, half of the short runs that are to show one fault among all others would never do it."""
    names = TOGETHER.get(asked, (asked,))
    for seed in range(8):
        plan = planned(cluster="local", time_limit_s=20, faults=("all", asked), seed=seed)
        first = draw_faults(plan, "n1", SYSTEMS["qsync"])[0]
        assert first.name in names, (seed, first)


def test_two_faults_never_set_one_real_clock() -> None:
    """If it failed, the end of one would set right what the other says is wrong; virtual clocks add them up."""
    for seed in range(20):
        asked = ("clock", "clock-strobe")
        faults = drawn(cluster="docker", faults=asked, overlap=3, time_limit_s=40, nodes=2, seed=seed)
        assert {fault.name for fault in faults} == {*asked}
        for one, other in combinations(faults, 2):
            assert not meet(one, other) or not {*one.nodes} & {*other.nodes}
    one, other = (
        Fault(id=number, name="clock", does="clock", at_ns=0, until_ns=9, nodes=("n1",)) for number in (0, 1)
    )
    decisive = planned().expectations.decisive
    assert exclude(one, other, decisive, is_real=True) and not exclude(one, other, decisive)


def test_only_nodes_that_read_our_clock_are_told_to_drift() -> None:
    """If it failed, the record would tell of a drift of a monotonic clock that is the machine's own."""
    for system, drifts in (("qsync", True), ("tarantool", False)):
        plan = planned(cluster="local", system=system, faults=("clock",), time_limit_s=20)
        faults = draw_faults(plan, "n1", SYSTEMS[system])
        assert faults
        assert all(fault.jump_ns and bool(fault.drift_ppm) == drifts for fault in faults)


@pytest.mark.parametrize(
    ("faults", "absent"),
    [
        (("kill", "pause", "isolate-one", "halves"), ("kill", "isolate-one", "halves")),
        (("lose-unsynced", "pause"), ("lose-unsynced",)),
        (("lose-unsynced",), ()),
        (("all",), ()),
        (("all", "-kill", "none"), ()),
        (("holds",), ()),
    ],
)
def test_faults_without_room_are_known_before_the_run(
    faults: tuple[str, ...], absent: tuple[str, ...]
) -> None:
    """If it failed, a run that cannot be valid would take its minutes before it says so (Patroni, seed 868144)."""
    plan = planned(faults=faults, time_limit_s=5.0, cluster="sim", seed=1)
    assert without_room(plan, draw_faults(plan, "n1", SYSTEMS["qsync"])) == absent
