"""Sequences of faults that cannot be are never drawn, and refused where people wrote them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import WrongUse
from harness.faults.fault import Fault
from harness.faults.membership import Membership
from harness.faults.overlap import ADMINISTERED, MEMBERSHIP, STOPS_PROCESSES, meet
from harness.faults.table import FAULTS
from harness.plan.plan import SECOND_NS, Drawn, Plan
from harness.plan.schedule import draw_faults
from harness.run.assemble import parts_of
from harness.systems import SYSTEMS
from harness.systems.plans import planned

NAMES = st.lists(
    st.sampled_from(["all", "membership", "rolling", "timeouts", "quorum"]), min_size=1, max_size=4
)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Clusters of 3 to 7, a quorum that follows N or a fixed one that is possible, up to four slots."""
    nodes = draw(st.integers(3, 7))
    fixed = st.integers(nodes // 2 + 1, nodes - 1) if nodes > 3 else st.just(2)
    modes = [draw(st.sampled_from(["candidate", "manual", "voter", "voter"])) for _ in range(nodes - 1)]
    return planned(
        cluster=draw(st.sampled_from(["sim", "local", "docker"])),
        nodes=nodes,
        election_mode=",".join([*modes, draw(st.sampled_from(["candidate", "manual"]))]),
        quorum=draw(st.one_of(st.none(), fixed)),
        faults=("membership", *draw(NAMES)),
        overlap=draw(st.integers(1, 4)),
        seed=draw(st.integers(0, 1 << 40)),
        time_limit_s=draw(st.integers(5, 120)),
    )


@given(plans())
def test_impossible_sequences_are_never_drawn(plan: Plan) -> None:
    """Broken, two changes of the members are under way at once, a cluster is cut down below its quorum, a member is
    added that is there already, or a node that has left is killed, paused or restarted."""
    faults = draw_faults(plan, "n1", SYSTEMS["qsync"])
    members = Membership.at_first(plan.node_names, plan.quorum, plan.voters)
    for fault in faults:
        here = (fault.id, fault.name, fault.nodes)
        if fault.does == "add":
            assert not {*fault.nodes} & {*members.present}, here
        else:
            assert {*fault.nodes, *(end for link in fault.links for end in link)} <= {*members.present}, here
            if fault.does == "replace":  # the others remove it, and let another in
                assert len(members.present) - 1 >= members.quorum, here
            if fault.does in ("remove", "replace"):  # somebody is left who may lead
                assert {*members.present} - {*fault.nodes} - plan.voters, here
        members = members.after(fault)
        assert members.is_sound, here
        count = len(members.present)
        assert count / 2 < members.quorum <= count, here
        for other in faults:
            if other.id != fault.id and meet(fault, other):
                assert not (fault.does in ADMINISTERED and other.does in ADMINISTERED), here
                both_stop = fault.does in STOPS_PROCESSES and other.does in STOPS_PROCESSES
                assert not (both_stop and {*fault.nodes} & {*other.nodes}), here


@given(plans())
def test_a_quorum_is_only_raised_and_never_above_the_members(plan: Plan) -> None:
    """Broken, a run is judged by a quorum that its nodes cannot have had."""
    for fault in draw_faults(plan, "n1", SYSTEMS["qsync"]):
        quorum = fault.options.get("replication_synchro_quorum")
        if quorum is not None:
            assert len(fault.nodes) / 2 < quorum <= len(fault.nodes)


def test_a_long_schedule_has_all_of_it() -> None:
    """Broken, one of the faults of members is never drawn, and a valid run says nothing of it."""
    plan = planned(
        cluster="sim", faults=("membership", "rolling", "timeouts"), time_limit_s=120, seed=4, nodes=5
    )
    assert {fault.does for fault in draw_faults(plan, "n1", SYSTEMS["qsync"])} == MEMBERSHIP | {
        "restart",
        "options",
    }


def fault(number: int, does: str, at_s: int, *nodes: str) -> Fault:
    name = next(name for name, kind in FAULTS.items() if kind.does == does)
    times = {"at_ns": at_s * SECOND_NS, "until_ns": (at_s + 1) * SECOND_NS}
    return msgspec.convert({"id": number, "name": name, "does": does, "nodes": nodes, **times}, Fault)


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        ([("remove", 1, "n3"), ("remove", 3, "n2")], "would leave 1 members, which is too few"),
        ([("remove", 1, "n3"), ("kill", 3, "n3")], "is done to n3, which has left the cluster"),
        ([("remove", 1, "n3"), ("remove", 3, "n3")], "is done to n3, which has left the cluster"),
        ([("remove", 1, "n3"), ("restart", 3, "n3")], "is done to n3, which has left the cluster"),
        ([("remove", 1, "n3"), ("replace", 3, "n2")], "without which 2 members have no quorum of 2"),
        ([("add", 1, "n3")], "adds n3, which is a member already"),
        ([("replace", 1, "n3"), ("remove", 1, "n2")], "cannot be at work beside fault 0"),
        ([("replace", 1, "n3"), ("pause", 1, "n3")], "cannot be at work beside fault 0"),
    ],
)
def test_a_written_plan_with_an_impossible_sequence_is_refused(faults: Any, words: str) -> None:
    """Broken, an edited plan asks for what cannot be, and whatever comes of it is called evidence."""
    listed = tuple(fault(number, does, at_s, *nodes) for number, (does, at_s, *nodes) in enumerate(faults))
    plan = planned(cluster="sim", overlap=2, drawn=Drawn(faults=listed, operations=()))
    with pytest.raises(WrongUse) as refused:
        parts_of(plan)
    assert words in refused.value.message


def test_who_comes_needs_a_place_that_somebody_left() -> None:
    """Broken, a run is asked for fresh nodes, never gets one, and ends well."""
    with pytest.raises(WrongUse, match="needs a node that is no member"):
        parts_of(planned(cluster="sim", faults=("add-node",)))


def test_real_tarantool_is_asked_for_the_timeouts_that_it_has() -> None:
    """Broken, 2.6 is told of an election timeout, refuses it, and no such fault ever bites."""
    plan = planned(system="tarantool", configuration="A", faults=("timeouts",), time_limit_s=120, seed=2)
    asked = {name for fault in draw_faults(plan, "n1", SYSTEMS["qsync"]) for name in fault.options}
    assert asked == {"replication_synchro_timeout", "replication_timeout"}


@pytest.mark.parametrize(("quorum", "is_sound"), [(2, False), (3, True), (4, True), (5, False)])
def test_any_two_quorums_of_the_members_meet(quorum: int, is_sound: bool) -> None:
    """Broken, members could leave until two halves of a cluster both had a quorum."""
    assert Membership.at_first(("n1", "n2", "n3", "n4"), quorum).is_sound is is_sound


def test_a_majority_of_all_and_a_quorum_above_half_stay() -> None:
    """If it failed, two halves of a cluster could decide for themselves, each with a quorum of its own."""
    four = Membership.at_first(("n1", "n2", "n3", "n4"), None)
    assert four.without("n4").is_sound
    assert not four.without("n3", "n4").is_sound, "half of the first members"


def test_the_quorum_that_elects_is_that_of_the_remaining_members() -> None:
    """If it failed, a removal that leaves enough votes would be refused, or one that leaves too few be drawn."""
    silent = Membership.at_first(("n1", "n2", "n3", "n4"), None, without_a_vote=frozenset({"n4"}))
    assert silent.why_not("remove", ["n3"]) == ""
    assert "too few have a vote" in silent.why_not("replace", ["n3"])
