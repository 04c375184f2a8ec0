"""Leadership: each rule rejects a history made for it, and leaves its lawful neighbour in peace."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.history.history import Header, History
from checkers.history.operation import Event
from checkers.replicas import leadership
from checkers.verdict import Verdict

BEAT_NS = 250_000_000
SECOND_NS = 1_000_000_000
CUT = [["n2", "n1"], ["n3", "n1"], ["n1", "n2"], ["n1", "n3"]]


def state(
    time_s: float, node: str, role: str = "replica", term: int = 2, election: str = ""
) -> dict[str, Any]:
    status = {"up": True, "role": role, "election_term": term, "election": election or "follower"}
    return {"time": time_s, "type": "info", "process": "monitor", "f": "state", "node": node, "value": status}


def cut(start_s: float, end_s: float, links: list[list[str]]) -> list[dict[str, Any]]:
    start = {"id": 0, "name": "isolate-one", "does": "cut", "links": links}
    evidence = {
        "id": 0,
        "took_effect": True,
        "all_in_effect_ns": int(start_s * SECOND_NS),
        "heal_asked_ns": int(end_s * SECOND_NS),
        "healed": True,
    }
    return [
        {"time": start_s, "type": "invoke", "process": "nemesis", "f": "isolate-one", "value": start},
        {"time": end_s, "type": "info", "process": "nemesis", "f": "isolate-one", "value": evidence},
    ]


def judged(*lines: dict[str, Any], **extra: Any) -> Verdict:
    header = Header(
        nodes=("n1", "n2", "n3"), quorum=2, heartbeat_ns=BEAT_NS, extra={"fencing": "soft", **extra}
    )
    events = [
        Event(index=index, time_ns=int(line.pop("time") * SECOND_NS), **line)
        for index, line in enumerate(sorted((dict(each) for each in lines), key=lambda each: each["time"]))
    ]
    verdict = leadership.check(History.of(header, events))
    assert (verdict.result == "invalid") == bool(verdict.witnesses)
    return verdict


def rules(*lines: dict[str, Any], **extra: Any) -> list[str]:
    return [witness.rule for witness in judged(*lines, **extra).witnesses]


def test_it_tells_what_was_judged() -> None:
    """If it failed, a store without elections would be said to keep their promises."""
    one = state(1, "n1", "owner", 4, "leader")
    master = {**one, "value": {"up": True, "role": "owner"}}
    nothing = judged(master, SETTLED)
    assert nothing.summary == "nothing to judge: no node tells of elections"
    assert (nothing.details["vacuous"], nothing.details["opportunities"]) == (True, 0)
    assert judged(one, SETTLED).summary == "one leader a term (1 term)"
    assert "vacuous" not in judged(one, SETTLED).details
    there = "one was there when it had to be"
    assert (
        judged(one, SETTLED, leader_within_ns=SECOND_NS).summary == f"one leader a term (1 term), and {there}"
    )
    assert judged(master, SETTLED, leader_within_ns=SECOND_NS).summary == there


def test_two_leaders_of_one_term() -> None:
    """If it failed, a vote that was given twice would stay unseen."""
    one = state(1, "n1", "owner", 4, "leader")
    assert rules(one, state(2, "n2", "owner", 4, "leader")) == ["two-leaders"]
    assert rules(one, state(2, "n2", "owner", 5, "leader")) == []


def test_a_leader_that_slept_through_the_cut_counts_from_when_it_woke() -> None:
    """If it failed, a paused leader that wakes to what was sent before the cut would be an alarm."""
    asleep = {"id": 1, "name": "pause", "does": "pause", "nodes": ["n1"]}
    pause = {"process": "nemesis", "f": "pause"}
    slept = [
        {**pause, "time": 0.5, "type": "invoke", "value": asleep},
        {**pause, "time": 4, "type": "info", "value": {"id": 1, "took_effect": True, "healed": True}},
    ]
    owner = state(4.5, "n1", "owner", 2, "leader")
    assert rules(*cut(1, 5, CUT), *slept, owner) == []
    assert rules(*cut(1, 5, CUT), owner) == ["unfenced"]


def test_a_leader_that_hears_nobody_resigns() -> None:
    """If it failed, an isolated leader that takes asynchronous writes for ever would pass."""
    late = state(3.5, "n1", "owner", 2, "leader")
    assert rules(*cut(1, 4, CUT), late) == ["unfenced"]
    assert rules(*cut(1, 4, CUT), state(2.5, "n1", "owner", 2, "leader")) == []
    assert rules(*cut(1, 4, CUT[:1]), late) == [], "it still hears n3"
    assert rules(*cut(1, 4, CUT), late, fencing="off") == []


def test_who_hears_nobody_does_not_stand() -> None:
    """If it failed, a node whose term runs away would pass, and depose a healthy leader when it is back."""
    before, after = state(2.6, "n1", term=3), state(3.9, "n1", term=5)
    assert rules(*cut(1, 4, CUT), before, after) == ["runaway-term"]
    assert rules(*cut(1, 4, CUT[:1]), before, after) == []
    assert rules(*cut(1, 4, CUT), before, after, operated=True) == [], "somebody may have asked it to"
    assert rules(*cut(1, 4, CUT), state(1.5, "n1", term=3), state(2.0, "n1", term=5)) == []


SETTLED = {"time": 20, "type": "info", "process": "harness", "f": "settled", "value": True}


@pytest.mark.parametrize(
    ("leader_s", "settled", "found"),
    [(5, True, []), (12, True, ["no-leader"]), (5, False, ["not-converged"])],
)
def test_after_healing_somebody_leads_and_all_become_equal(
    leader_s: float, settled: bool, found: list[str]
) -> None:
    """If it failed, a cluster that never recovers would be no more than a run without evidence."""
    lines = [*cut(1, 4, CUT[:1]), state(leader_s, "n2", "owner", 3, "leader"), {**SETTLED, "value": settled}]
    lines.append(state(19, "n3"))
    assert rules(*lines, leader_within_ns=5 * SECOND_NS) == found
    where_nodes_may_stop = [rule for rule in found if rule != "not-converged"]
    assert rules(*lines, leader_within_ns=5 * SECOND_NS, converges=False) == where_nodes_may_stop
    assert rules(*lines) == []


@pytest.mark.parametrize(("healed", "found"), [(False, []), (True, ["no-leader"]), (None, ["no-leader"])])
def test_nothing_has_healed_where_a_member_that_is_counted_stays_dead(
    healed: bool | None, found: list[str]
) -> None:
    """If it failed, a removal that could never be decided would be an alarm about the election."""
    start = {"id": 0, "name": "remove-node", "does": "remove", "nodes": ["n1"]}
    end = {"id": 0, "took_effect": False, "heal_asked_ns": 4 * SECOND_NS, "healed": healed}
    about = {"process": "nemesis", "f": "remove-node"}
    lines = [
        {"time": 1, "type": "invoke", **about, "value": start},
        {"time": 4, "type": "info", **about, "value": end},
        state(19, "n3"),
        {**SETTLED, "value": False},
    ]
    assert rules(*lines, leader_within_ns=5 * SECOND_NS) == found


@pytest.mark.parametrize(
    ("stopped", "may_stop", "found"),
    [
        ({"n1": ["n2", "n3"], "n2": ["n3"]}, True, []),
        ({"n1": ["n2", "n3"], "n3": ["n2"]}, True, []),
        ({"n1": ["n2", "n3"], "n2": ["n3"]}, False, ["no-leader"]),
        ({"n1": ["n2", "n3"]}, True, ["no-leader"]),
        ({}, True, ["no-leader"]),
    ],
)
def test_nobody_can_lead_where_all_have_stopped_following_each_other(
    stopped: dict[str, list[str]], may_stop: bool, found: list[str]
) -> None:
    """If it failed, what nobody promised would be an alarm; or two nodes that could go on, and don't, would pass."""
    states = [state(19, node) for node in ("n1", "n2", "n3")]
    for line in states:
        line["value"] |= {"stopped": dict.fromkeys(stopped.get(line["node"], ()), "Split-Brain"), "quorum": 2}
    lines = [*cut(1, 4, CUT[:1]), *states, {**SETTLED, "value": False}]
    assert rules(*lines, leader_within_ns=5 * SECOND_NS, converges=not may_stop) == found


def test_one_that_holds_what_the_others_never_take_may_keep_them_from_a_leader() -> None:
    """If it failed, asynchronous rows of a deposed leader, which nobody promised to keep, would end as an alarm."""
    states = [state(19, node) for node in ("n1", "n2", "n3")]
    states[0]["value"] |= {"stopped": {"n2": "Split-Brain"}, "quorum": 2}
    lines = [*cut(1, 4, CUT[:1]), *states, {**SETTLED, "value": False}]
    within = {"leader_within_ns": 5 * SECOND_NS, "converges": False}
    assert rules(*lines, **within) == ["no-leader"]
    assert rules(*lines, **within, elects_when_split=False) == []
    del states[0]["value"]["stopped"]
    assert rules(*lines, **within, elects_when_split=False) == ["no-leader"]


def test_who_has_left_does_not_count_among_those_that_could_lead() -> None:
    """If it failed, three of four nodes that must be one quorum, of which one lost its disk, would be an alarm."""
    states = [state(19, node) for node in ("n1", "n2", "n3")]
    for line, stopped in zip(states, ("n2", "n1", ""), strict=True):
        line["value"] |= {"stopped": dict.fromkeys([stopped] if stopped else (), "Split-Brain"), "quorum": 2}
    lines = [*cut(1, 4, CUT[:1]), *states, {**SETTLED, "value": False}]
    for members, found in ((["n1", "n2", "n3"], ["no-leader"]), (["n1", "n2"], [])):
        value = {"nodes": members, "quorum": 2, "settled": False}
        told = {"time": 5, "type": "info", "process": "harness", "f": "members", "value": value}
        assert rules(*lines, told, leader_within_ns=5 * SECOND_NS, converges=False) == found


def waiting(time_s: float, acks: int, quorum: int = 2, term: int = 2) -> dict[str, Any]:
    line = state(time_s, "n1", "replica", term, "leader")
    line["value"]["promote"] = {"acks": acks, "quorum": quorum}
    return line


def test_a_promote_that_has_its_quorum_and_goes_on_waiting() -> None:
    """If it failed, a leader that waits for a quorum which nobody asks for any more would be read-only for ever."""
    within = {"leader_within_ns": 5 * SECOND_NS}
    stuck = [waiting(1, 2), waiting(1.6, 2), waiting(2.2, 2)]
    assert rules(*stuck, **within) == ["idle-promote"]
    assert rules(*stuck) == [], "where a machine may be busy, being late says nothing"
    assert rules(waiting(1, 2), waiting(1.6, 1), waiting(2.2, 2), **within) == []
    assert rules(waiting(1, 2, 3), waiting(1.6, 2, 3), waiting(2.2, 2, 3), **within) == []
    assert rules(waiting(1, 2), waiting(1.6, 2, term=3), waiting(2.2, 2, term=3), **within) == []


def test_a_promote_that_its_disk_holds_up_is_not_idle() -> None:
    """If it failed, a slow disk under the CONFIRM of a PROMOTE would be an alarm."""
    slow = {"id": 1, "name": "slow-disk", "does": "slow-disk", "nodes": ["n1"]}
    line = {"process": "nemesis", "f": "slow-disk"}
    held = [
        {**line, "time": 0.5, "type": "invoke", "value": slow},
        {**line, "time": 2.0, "type": "info", "value": {"id": 1, "took_effect": True, "healed": True}},
    ]
    stuck = [waiting(1, 2), waiting(1.6, 2), waiting(2.2, 2)]
    assert rules(*held, *stuck, leader_within_ns=5 * SECOND_NS) == []
    slow["nodes"] = ["n2"]
    assert rules(*held, *stuck, leader_within_ns=5 * SECOND_NS) == ["idle-promote"]


def during(start_s: float, end_s: float | None, does: str, *nodes: str, **more: Any) -> list[dict[str, Any]]:
    """A fault of these nodes; without an end its line is missing."""
    line = {"process": "nemesis", "f": does}
    asked = {"id": 1, "name": does, "does": does, "nodes": list(nodes), **more}
    over = {"id": 1, "took_effect": True, "healed": True}
    begun = [{**line, "time": start_s, "type": "invoke", "value": asked}]
    return begun if end_s is None else [*begun, {**line, "time": end_s, "type": "info", "value": over}]


def test_another_fault_excuses_only_what_it_can_have_caused() -> None:
    """If it failed, a node would be excused by a fault of another one, or blamed for what an operator did."""
    late, before, after = (
        state(3.9, "n1", "owner", 2, "leader"),
        state(2.6, "n1", term=3),
        state(3.9, "n1", term=5),
    )
    assert rules(*cut(1, 4, CUT), *during(1.5, 3.8, "pause", "n2"), late) == ["unfenced"]
    assert rules(*cut(1, 4, CUT), *during(1.5, 3.8, "pause", "n1"), late) == []
    assert rules(*cut(1, 4, CUT), *during(2, 3, "failover", "n2"), before, after) == []
    assert rules(*cut(1, 4, CUT), *during(2, 3, "pause", "n2"), before, after) == ["runaway-term"]
    assert rules(*cut(1, 4, CUT), *options(2, 3, "n2", number=1), late) == []
    assert rules(*cut(1, 4, CUT), *during(2, 3, "pause", "n2", options={"beat": 1}), late) == []
    hows = [
        judged(*cut(1, 4, CUT), *during(when, when + 0.1, "clock", node), late).witnesses[0].how
        for when, node in ((0.5, "n1"), (0.5, "n2"), (5, "n1"))
    ]
    assert hows == ["its clock had been set", "", ""]


def test_a_leader_is_missed_only_when_its_time_is_over() -> None:
    """If it failed, a run that ended at once after its last fault would be said to have no leader."""
    lines, within = [*cut(1, 4, CUT[:1]), SETTLED], {"leader_within_ns": 5 * SECOND_NS}
    assert rules(*lines, state(9, "n3"), **within) == []
    assert rules(*lines, state(9.1, "n3"), **within) == ["no-leader"]
    assert rules(*lines, state(3.9, "n2", "owner"), state(9.1, "n3"), **within) == ["no-leader"]
    assert rules(*lines, state(4, "n2", "owner"), state(9.1, "n3"), **within) == []
    endless = during(5, None, "pause", "n3")
    assert rules(*lines, *endless, state(9.1, "n3"), **within) == [], "it began at 5 s, and no line ends it"


def options(start_s: float, end_s: float, *nodes: str, number: int = 0) -> list[dict[str, Any]]:
    """The election mode of these nodes is another for a while."""
    asked = {"id": number, "name": "reconfigure", "does": "options", "options": {"election_mode": "off"}}
    line = {"process": "nemesis", "f": "reconfigure"}
    return [
        {**line, "time": start_s, "type": "invoke", "value": {**asked, "nodes": list(nodes)}},
        {**line, "time": end_s, "type": "info", "value": {"id": number, "took_effect": True, "healed": True}},
    ]


def test_a_follower_whose_mode_changes_deposes_nobody() -> None:
    """If it failed, a node that forgets the living leader while it is switched off would be left in peace."""
    before = state(2.9, "n1", "owner", 2, "leader")
    timed = {"leader_within_ns": SECOND_NS}
    later = state(5, "n3", "replica", 3, "candidate")
    assert rules(before, *options(3, 4, "n3"), later, **timed) == ["deposed"]
    assert rules(before, *options(3, 4, "n3"), state(5, "n3", "replica", 2), **timed) == []
    assert rules(before, *options(3, 4, "n1"), later, **timed) == []  # the leader itself
    assert rules(before, *options(3, 4, "n3", "n2"), later, **timed) == []  # nobody need be left to lead
    other_option = during(3, 4, "options", "n3", options={"replication_timeout": 1})
    assert rules(before, *other_option, later, **timed) == []
    assert rules(before, *options(3, 4, "n3"), later) == []  # real time depends on the machine
    cut_before = cut(1, 2, CUT)
    assert rules(*cut_before, before, *options(3, 4, "n3", number=1), later, **timed) == []
    next_one = options(4.5, 6, "n1", number=1)
    assert rules(before, *options(3, 4, "n3"), *next_one, later, **timed) == []


def test_nodes_that_are_set_up_follow_each_other() -> None:
    """If it failed, a run that cannot begin because nodes stopped would be called inconclusive."""
    stopped = state(0.5, "n3")
    stopped["value"]["stopped"] = {"n1": "Split-Brain discovered"}
    timed = {"leader_within_ns": SECOND_NS}
    assert rules(stopped, **timed) == ["stopped"]
    assert rules(stopped, converges=False, **timed) == []
    assert rules(stopped) == []
    assert rules({**stopped, "time": 5}, *options(3, 4, "n3"), **timed) == []


def test_leaders_without_terms_are_not_two_of_one_term() -> None:
    """If it failed, a store whose reports have no term would have two leaders "of term None"."""
    leads = [state(time_s, node, "owner", election="leader") for time_s, node in ((1, "n1"), (2, "n2"))]
    for line in leads:
        del line["value"]["election_term"]
    assert judged(*leads).result == "valid"


def test_what_could_not_be_judged_is_not_said_to_hold() -> None:
    """If it failed, a run whose nodes never settled would be told that a leader was there when it had to be."""
    removed = {"id": 0, "name": "remove-node", "does": "remove", "nodes": ["n3"]}
    verdict = judged(
        state(1, "n1"),
        {"time": 2, "type": "invoke", "process": "nemesis", "f": "remove-node", "value": removed},
        {
            "time": 3,
            "type": "info",
            "process": "nemesis",
            "f": "remove-node",
            "value": {"id": 0, "took_effect": True, "healed": False},
        },
        state(30, "n1"),
        leader_within_ns=SECOND_NS,
    )
    assert "one was there" not in verdict.summary
