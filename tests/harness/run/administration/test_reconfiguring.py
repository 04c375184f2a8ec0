"""Options that differ between nodes, and that change: drawn, carried out, recorded, and judged by what was in force."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from checkers.history.history import History
from checkers.replicas import leadership
from harness.campaigns.hunt import hunted
from harness.errors import WrongUse
from harness.faults.fault import Fault, Moment
from harness.faults.node_options import RECONFIGURING
from harness.faults.overlap import exclude
from harness.judge.promised import promise_of
from harness.plan.plan import SECOND_NS, Drawn, Plan
from harness.plan.promise import CLAUSES, LINEARIZABLE_READS
from harness.plan.schedule import draw_faults, names_for
from harness.run.recorder import OPTION
from harness.systems import SYSTEMS, system_of
from harness.systems.plans import planned
from harness.systems.qsync import rare_turns
from harness.systems.qsync.node_options import (
    AT_START,
    ELECTION_TIMEOUT,
    FENCING,
    MODE,
    MVCC,
    QUEUE_SIZE,
    QUORUM,
    SYNCHRONOUS_PROMOTE,
    TIMEOUT_BEHAVIOUR,
    WHILE_RUNNING,
)
from harness.systems.qsync.options import settings_of
from harness.systems.qsync.reconfiguring import in_force
from nodes.qsync.configuration import Configuration
from tests.harness.runs import drawn_out, recorded, small

ALL = ("n1", "n2", "n3")
ROW_OF_H = system_of("qsync").promise(planned())


def drawn(name: str, seeds: int = 60, **given: Any) -> Iterator[Fault]:
    for seed in range(seeds):
        plan = planned(cluster="sim", seed=seed, faults=(name,), **given)
        yield from draw_faults(plan, "n1", SYSTEMS["qsync"])


def having(*faults: dict[str, Any], **given: Any) -> Plan:
    """A small plan with exactly these faults, one after the other."""
    plan = small(time_limit_s=1.0 + 3 * len(faults), faults=("reconfigure",), **given)
    listed = tuple(
        msgspec.convert(
            {
                "id": number,
                "name": "restart-otherwise" if fault["does"] == "restart" else "reconfigure",
                "at_ns": SECOND_NS * (1 + 3 * number),
                "until_ns": SECOND_NS * (2 + 3 * number),
                **fault,
            },
            Fault,
        )
        for number, fault in enumerate(faults)
    )
    operations = drawn_out(plan).drawn
    assert operations is not None
    return msgspec.structs.replace(plan, drawn=Drawn(faults=listed, operations=operations.operations))


def told(history: History) -> list[tuple[str, object, object, bool]]:
    """Node, value before, value after, whether it was changed back: of each change in the record."""
    return [
        (event.node or "", event.value["from"], event.value["to"], event.value["back"])
        for event in history.events
        if event.f == OPTION
    ]


def test_every_option_is_drawn_in_every_way() -> None:
    """If it failed, a kind of change would never be tried, and its row in the table would say never."""
    running = {option for fault in drawn("reconfigure") for option in fault.options}
    assert running == {*WHILE_RUNNING}
    restarted = list(drawn("restart-otherwise", 200))
    assert {option for fault in restarted for option in fault.options} == {*AT_START}
    assert {fault.at_once for fault in restarted} == {True, False}
    at_moments = list(drawn("reconfigure-at-a-moment"))
    assert all(fault.is_directed and len(fault.nodes) == 1 for fault in at_moments)
    assert {len(fault.nodes) for fault in drawn("reconfigure")} == {1, 3}
    mixed = [*drawn("reconfigure"), *drawn("reconfigure", election_mode="candidate,voter,candidate")]
    modes = {fault.options[MODE] for fault in mixed if MODE in fault.options}
    assert modes == {"off", "voter", "manual", "candidate"}


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({"queue_max_size": "600,0,40,150,0"}, QUEUE_SIZE),
        ({"node_options": (f"n2:{FENCING}=strict", f"n3:{FENCING}=off")}, FENCING),
    ],
)
def test_an_option_changes_where_nodes_have_every_value_of_it(given: dict[str, Any], option: str) -> None:
    """If it failed, the seed of such a cluster would end a hunt: there is no value that none of its nodes has."""
    changes = [fault for fault in drawn("reconfigure", 200, nodes=5, **given) if option in fault.options]
    assert any(len(fault.nodes) == 5 for fault in changes)


@pytest.mark.parametrize("name", ["reconfigure", "restart-otherwise"])
def test_elections_are_switched_on_once_and_for_good(name: str) -> None:
    """If it failed, a cluster without elections would be left without an owner, or promoted by hand in mid-run."""
    for seed in range(30):
        plan = planned(cluster="sim", seed=seed, faults=(name,), configuration="C", time_limit_s=60.0)
        modes = [fault for fault in draw_faults(plan, "n1", SYSTEMS["qsync"]) if MODE in fault.options]
        assert len(modes) <= 1
        assert all(fault.stays and fault.options == {MODE: "candidate"} for fault in modes)
    assert not any(MODE in fault.options for fault in drawn(name, election_mode="manual"))


def test_nobody_is_promoted_while_election_modes_change() -> None:
    """If it failed, a PROMOTE by hand on a node without elections would discard what was acknowledged."""
    fields = {"at_ns": 0, "until_ns": 9}
    decisive = planned().expectations.decisive
    promotes = Fault(id=1, name="failover", does="failover", nodes=("n2",), **fields)  # type: ignore[arg-type]
    for does in ("options", "restart"):
        changing = Fault(id=2, name="x", does=does, nodes=("n3",), options={MODE: "off"}, **fields)  # type: ignore[arg-type]
        assert exclude(promotes, changing, decisive)
        assert exclude(changing, promotes, decisive)
    assert "n3" in planned(election_mode="candidate,candidate,off").without_a_vote


def test_members_do_not_leave_where_too_few_have_a_vote() -> None:
    """If it failed, a candidate and a node without a vote would be left, and nobody could be elected."""
    for seed in range(20):
        plan = planned(
            cluster="sim", seed=seed, faults=("membership",), election_mode="candidate,candidate,off"
        )
        assert not any({*fault.nodes} & {"n1", "n2"} for fault in draw_faults(plan, "n1", SYSTEMS["qsync"]))


@pytest.mark.parametrize("cluster", ["local", "docker", "ssh"])
@pytest.mark.parametrize("name", RECONFIGURING)
def test_real_clusters_refuse_it(name: str, cluster: str) -> None:
    """If it failed, a run would begin whose nodes cannot be started with other options."""
    with pytest.raises(WrongUse, match=f"cannot do the fault '{name}'"):
        names_for(planned(cluster=cluster, faults=(name,)))


@pytest.mark.parametrize("at_once", [pytest.param(True, marks=pytest.mark.long), False])
def test_a_restart_with_another_option_takes_effect_and_undone(at_once: bool) -> None:
    """If it failed, nodes would start with what they had before, or keep what was for a while."""
    fault = {"does": "restart", "nodes": ALL, "options": {FENCING: "off"}, "at_once": at_once}
    history = recorded(having(fault, {**fault, "options": {QUORUM: 3}})).history
    assert all(each.took_effect and each.healed for each in history.faults), [
        each.evidence for each in history.faults
    ]
    assert told(history)[:6] == [
        *((node, "soft", "off", False) for node in ALL),
        *((node, "off", "soft", True) for node in ALL),
    ]
    quorums = {state.status.get("quorum") for state in history.states if state.status.get("up")}
    assert quorums == {2, 3}
    assert history.states[-1].status["quorum"] == 2


@pytest.mark.long
def test_a_node_that_another_fault_starts_in_the_middle_has_the_new_options() -> None:
    """If it failed, a node would keep for good the options that it should have had for a while."""
    restart = {"does": "restart", "nodes": ALL, "options": {QUORUM: 3}, "at_once": True}
    moment = Moment(does="sends", what="heartbeat")
    plan = having(
        {**restart, "at_ns": SECOND_NS, "until_ns": 3 * SECOND_NS},
        {
            "does": "kill",
            "name": "kill-writing",
            "nodes": ("n3",),
            "on": moment,
            "at_ns": 2_800_000_000,
            "until_ns": 2_950_000_000,
        },
        overlap=2,
    )
    history = recorded(plan).history
    assert all(each.took_effect and each.healed for each in history.faults)
    last = {state.node: state.status for state in history.states if state.status["up"]}
    assert {node: status["quorum"] for node, status in last.items()} == dict.fromkeys(ALL, 2)


def test_an_option_of_one_node_takes_effect_and_undone() -> None:
    """If it failed, a run would count as one with a changed option in which nothing changed."""
    (fault,) = (recorded(having({"does": "options", "nodes": ("n3",), "options": {MODE: "off"}})),)
    assert told(fault.history) == [("n3", "candidate", "off", False), ("n3", "off", "candidate", True)]
    assert all(each.took_effect and each.healed for each in fault.history.faults)


def test_what_stays_is_what_nodes_start_with_from_then_on() -> None:
    """If it failed, a node that was killed later would come back without elections, and nobody would be elected."""
    switched = {"does": "options", "nodes": ALL, "options": {MODE: "candidate"}, "stays": True}
    restarted = {"does": "restart", "nodes": ALL, "at_once": True}
    history = recorded(having(switched, restarted, configuration="C", rollback_on_timeout=False)).history
    assert history.header.owner is None
    assert [back for *_, back in told(history)] == [False] * 3
    last = {state.node: state.status for state in history.states}
    assert {status["election"] for status in last.values()} == {"leader", "follower"}
    assert leadership.check(history).result == "valid"


def test_a_change_at_a_moment_begins_at_that_moment() -> None:
    """If it failed, options would never change in the middle of an election or a promotion."""
    moment = Moment(does="gets", what="candidate")
    fault = {"does": "options", "nodes": ("@it",), "options": {ELECTION_TIMEOUT: 0.8}, "on": moment}
    kill = {
        "does": "kill",
        "name": "kill",
        "nodes": ("n1",),
        "at_ns": 2 * SECOND_NS,
        "until_ns": 4 * SECOND_NS,
    }
    history = recorded(having(kill, {**fault, "at_ns": SECOND_NS, "until_ns": 2 * SECOND_NS})).history
    (changed,) = (each for each in history.faults if each.asked.get("options"))
    (killed,) = (each for each in history.faults if each.does == "kill")
    assert changed.took_effect
    assert changed.start_ns > killed.start_ns
    assert rare_turns.counted(planned(cluster="sim"), history)[rare_turns.AT_A_MOMENT] == 1


def test_nodes_start_with_what_is_theirs() -> None:
    """If it failed, nodes that are said to differ would all be the same."""
    given = (
        f"n2:{ELECTION_TIMEOUT}=0.8",
        f"n3:{MVCC}=false",
        f"n3:{QUORUM}=3",
        f"n2:{TIMEOUT_BEHAVIOUR}=old",
    )
    plan = planned(cluster="sim", node_options=given, election_mode="candidate,candidate,off")
    made = {
        name: Configuration.from_json(data)
        for name, data in system_of("qsync").configurations(plan, ("register",)).items()
    }
    assert [made[node].election_timeout_ns for node in ALL] == [500_000_000, 800_000_000, 500_000_000]
    assert [made[node].memtx_use_mvcc_engine for node in ALL] == [True, True, False]
    assert [made[node].quorum for node in ALL] == [2, 2, 3]
    assert [made[node].rollback_on_timeout for node in ALL] == [False, True, False]
    assert [made[node].election_mode for node in ALL] == ["candidate", "candidate", "off"]


# ---- what is promised


def promised(*faults: dict[str, Any], **given: Any) -> Any:
    return system_of("qsync").promise(having(*faults, **given))


def test_the_weakest_promise_that_was_in_force_is_judged_by() -> None:
    """If it failed, a run would be judged by what held for a part of it, or by less than what held all the time."""
    mode = {"does": "options", "nodes": ALL, "options": {MODE: "off"}}
    assert promised(mode) == ROW_OF_H
    assert promised({**mode, "options": {FENCING: "off"}}) == ROW_OF_H
    assert promised({**mode, "options": {MVCC: False}}) == ROW_OF_H  # an answer says itself that it is dirty
    assert promised({**mode, "options": {QUORUM: 3}}).model(LINEARIZABLE_READS) == ""
    assert promised({**mode, "options": {TIMEOUT_BEHAVIOUR: "old"}}).configuration.startswith("I:")
    at_once = promised({**mode, "options": {SYNCHRONOUS_PROMOTE: False}})
    told = [at_once.model(CLAUSES[name]) for name in ("writes", "logs", "quorum")]
    assert told == ["", "", ROW_OF_H.model(CLAUSES["quorum"])]
    on = {**mode, "options": {MODE: "candidate"}, "stays": True}
    assert promised(on, configuration="C", rollback_on_timeout=False) == ROW_OF_H
    assert promised(on, configuration="C").configuration.startswith("I:")
    apart = system_of("qsync").promise(planned(node_options=(f"n1:{QUORUM}=3",)))
    assert apart.model(LINEARIZABLE_READS) == ""


def test_a_change_that_never_began_excuses_nothing() -> None:
    """If it failed, a fault that was left out would let a run be judged by less than what was in force."""
    plan = having({"does": "options", "nodes": ALL, "options": {TIMEOUT_BEHAVIOUR: "old"}})
    history = recorded(plan).history
    assert promise_of(plan, history).configuration.startswith("I:")
    without = msgspec.structs.replace(plan, drawn=msgspec.structs.replace(plan.drawn, faults=()))
    assert promise_of(plan, recorded(without).history) == ROW_OF_H


def test_what_nodes_have_apart_is_in_force_from_the_start() -> None:
    """If it failed, timeouts that came in time for one node would be told early by another."""
    plan = planned(synchro_timeout_s=0.6, node_options=("n2:replication_synchro_timeout=0.3",))
    assert in_force(plan, "replication_synchro_timeout", ()) == (0.6, 0.3)


# ---- the hunt


def test_a_hunt_draws_nodes_that_differ_and_options_that_change() -> None:
    """If it failed, thousands of seeds would all be of clusters whose nodes are alike and stay as they are."""
    plans = [hunted(planned(cluster="sim", seed=seed), frozenset()) for seed in range(100)]
    for name in RECONFIGURING:
        assert sum(name in plan.faults for plan in plans) > 3
    apart = {words.split(":")[1].split("=")[0] for plan in plans for words in plan.options.node_options}
    assert {ELECTION_TIMEOUT, FENCING, MVCC, QUORUM} <= apart
    assert any("off" in settings_of(plan).election_modes and plan.has_elections for plan in plans)
    for plan in plans:
        counts_apart = any(f":{QUORUM}=" in words for words in plan.options.node_options)
        assert not (counts_apart and plan.changes_members)
