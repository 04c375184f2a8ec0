"""Runs at whose end the nodes were not equal: judged if they stood still, inconclusive only if something moved."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.history.rest import at_rest
from harness.judge import Case, judge
from harness.run.assemble import parts_of
from harness.systems.own import OwnStore
from harness.systems.plans import planned
from harness.systems.qsync.promises import FIXED_OWNER
from harness.systems.tarantool import system
from harness.systems.tarantool.system import Tarantool
from tests import examples
from tests.harness.judge.test_judge import NODES, PLAN, Line, good, history, outcome

SINCE_MS, UNTIL_MS = 3_000, 23_000
PLAN_2_6 = planned(system="tarantool", configuration="B", rate=10, time_limit_s=3, faults=("pause",))
LATE_MS = SINCE_MS + (UNTIL_MS - SINCE_MS) // 2
"""A node that moved after this may go on moving."""


def state(node: str, at_ms: int, **status: Any) -> Line:
    status = {"up": True, "role": "owner" if node == "n1" else "replica", **status}
    return {
        "process": "monitor",
        "f": "state",
        "type": "info",
        "node": node,
        "at_ms": at_ms,
        "value": status,
    }


def unequal(
    moved_ms: dict[str, int | None], held: dict[str, int] | None = None, *, settled: bool = False
) -> list[Line]:
    """A run that waited 20 s in vain. Node → when it last moved (None: it reports no position), and what it holds of x
    (29 was written last)."""
    lines: list[Line] = []
    for line in good():
        if line["f"] == "settled":
            lines.append({**line, "value": settled, "at_ms": UNTIL_MS})
        elif line.get("phase") == "final":
            value = line["value"]
            if line["f"] == "dump" and line["type"] == "ok":
                value = {"spaces": {"register": [["x", (held or {}).get(line["node"], 29)]]}}
            lines.append({**line, "value": value, "at_ms": line["at_ms"] + UNTIL_MS})
        else:
            lines.append(line)
    for node, moved in moved_ms.items():
        for at_ms in range(SINCE_MS + 250, UNTIL_MS, 250):
            position = {} if moved is None else {"vclock": {"1": 20 + (at_ms >= moved)}}
            lines.append(state(node, at_ms, **position))
    return lines


MOMENTS = st.none() | st.integers(SINCE_MS + 500, UNTIL_MS - 500)


@examples.up_to(60)
@given(
    moved=st.fixed_dictionaries(dict.fromkeys(NODES, MOMENTS)),
    held=st.fixed_dictionaries({node: st.sampled_from((28, 29)) for node in ("n2", "n3")}),
    is_promised=st.booleans(),
)
def test_only_what_still_moves_is_inconclusive(
    moved: dict[str, int | None], held: dict[str, int], is_promised: bool
) -> None:
    """If it failed, a cluster that will never be equal would be a riddle, or one that catches up an anomaly."""
    told = [at_ms for at_ms in moved.values() if at_ms is not None]
    is_late = any(at_ms > LATE_MS + 250 for at_ms in told)
    is_near = any(abs(at_ms - LATE_MS) <= 250 for at_ms in told)
    promise = FIXED_OWNER if is_promised else FIXED_OWNER.but(final_state="")
    verdict = judge(Case(PLAN, history(unequal(moved, held)), given_promise=promise))
    convergence = next(check for check in verdict["checks"] if check["checker"] == "convergence")
    missing = " ".join(verdict["evidence"]["missing"])
    if is_near:
        return  # the monitor looks four times a second
    if is_late or not told:
        assert outcome(verdict)[0] == "inconclusive"
        assert "--settle-timeout waits longer" in missing
        late = [node for node, at_ms in moved.items() if at_ms is not None and at_ms > LATE_MS]
        assert all(node in missing for node in late)
        return
    wrong = [node for node in held if moved[node] is not None and held[node] == 28]
    assert convergence["result"] == ("invalid" if wrong else "valid"), convergence["summary"]
    assert outcome(verdict)[0] == ("anomaly" if wrong and is_promised else "valid"), verdict["sentence"]
    found = [each["summary"] for each in verdict["findings"] if each["checker"] == "convergence"]
    assert any("nothing moved for" in text for text in found)
    assert is_promised or not wrong or any("not promised here, and not kept" in text for text in found)


@pytest.mark.parametrize(("silent_ms", "result"), [(750, "invalid"), (2_250, "unknown")])
def test_a_node_that_is_silent_for_a_moment_stood_still(silent_ms: int, result: str) -> None:
    """If it failed, nodes that stay apart for good would pass undecided wherever one answer of a status was late."""
    lines = unequal(dict.fromkeys(NODES, SINCE_MS + 500), {"n3": 28})
    for line in lines:
        if line.get("node") == "n3" and line["f"] == "state" and 0 <= line["at_ms"] - 18_000 <= silent_ms:
            line["value"] = {"up": False}
    verdict = judge(Case(PLAN, history(lines), given_promise=FIXED_OWNER))
    assert next(each["result"] for each in verdict["checks"] if each["checker"] == "convergence") == result


@pytest.mark.parametrize("held", [28, 29])
def test_replicas_that_report_no_position_are_not_judged(held: int) -> None:
    """If it failed, a replica that is allowed to lag would be called diverged, although nobody knows where it is."""
    told = {"process": "harness", "f": "unsettled", "type": "info", "at_ms": UNTIL_MS, "value": ["n2", "n3"]}
    lines = [told, *unequal(dict.fromkeys(NODES), {"n2": held}, settled=True)]
    verdict = judge(Case(PLAN, history(lines), given_promise=FIXED_OWNER))
    assert outcome(verdict) == ("valid", 0)
    assert any("n2, n3 report no position" in each["summary"] for each in verdict["findings"])
    wrong = judge(
        Case(PLAN, history([told, *unequal({}, {"n1": 28}, settled=True)]), given_promise=FIXED_OWNER)
    )
    assert "convergence" in wrong["violations"], "the owner lost a write"


STILL = dict.fromkeys(NODES, SINCE_MS)


def told(name: str, at_ms: int, value: Any) -> Line:
    return {"process": "harness", "f": name, "type": "info", "at_ms": at_ms, "value": value}


def test_a_short_wait_is_not_said_to_be_longer() -> None:
    """If it failed, a wait of 3 s would be told as one of 5 s."""
    began = told("settled", UNTIL_MS - 3_000, False)
    moved = dict.fromkeys(NODES, UNTIL_MS - 1_000)
    assert at_rest(history([began, *unequal(moved)])).awaited == ("n1, n2, n3 moved in the last 3 s",)


def test_only_the_last_wait_counts() -> None:
    """If it failed, what moved before the wait, or after it, would decide whether the nodes were quiet."""
    after = [state("n2", UNTIL_MS + 10, vclock={"1": 99})]
    rest = at_rest(history([*unequal(STILL), *after]))
    assert (rest.settled, rest.awaited) == (NODES, ())
    late = [told("settled", UNTIL_MS - 6_000, False)]
    moved = {**STILL, "n2": UNTIL_MS - 6_500}
    assert at_rest(history([*late, *unequal(moved)])).still_ns == 6_000_000_000
    fault = {"id": 7, "name": "pause", "does": "pause", "at_ns": 0, "until_ns": 0, "nodes": ["n2"]}
    nemesis = {"process": "nemesis", "f": "pause"}
    faults: list[Line] = [
        {**nemesis, "type": "invoke", "value": fault, "at_ms": UNTIL_MS - 8_000},
        {**nemesis, "type": "info", "value": {"id": 7, "healed": True}, "at_ms": UNTIL_MS - 7_000},
    ]
    assert at_rest(history([*faults, *unequal(STILL)])).still_ns == 7_000_000_000


@pytest.mark.parametrize(("before", "awaited"), [(20, ("n2 moved in the last 10 s",)), (21, ())])
def test_a_node_that_reports_late_has_stood_still_only_if_it_reported_the_same_before(
    before: int, awaited: tuple[str, ...]
) -> None:
    """If it failed, a node of which one report came in all the time would be quiet, and being behind an anomaly."""
    lines = [line for line in unequal(STILL) if (line["f"], line.get("node")) != ("state", "n2")]
    reports = [state("n2", at_ms, vclock={"1": at}) for at_ms, at in ((2_000, before), (UNTIL_MS - 250, 21))]
    assert at_rest(history([*lines, *reports])).awaited == awaited


def test_a_node_that_is_down_has_no_position() -> None:
    """If it failed, a dead node would count as settled, or be said to report no position, too."""
    down = state("n3", UNTIL_MS - 10, up=False, vclock={"1": 21})
    rest = at_rest(history([*unequal({"n1": SINCE_MS, "n2": None}), down]))
    assert (rest.untold, rest.awaited) == (("n2",), ("n3 did not answer",))
    moved = state("n3", UNTIL_MS - 10, up=False, vclock={"1": 22})
    assert at_rest(history([*unequal(STILL), moved])).awaited == ("n3 did not answer",)


def test_where_no_node_ever_led_no_leader_is_awaited() -> None:
    """If it failed, every such run of a store without roles would be inconclusive."""
    lines = unequal(STILL)
    for line in lines:
        if line["f"] == "state":
            line["value"] = {**line["value"], "role": "replica"}
    assert at_rest(history(lines)).awaited == ()


def test_the_owner_has_settled_without_a_position() -> None:
    """If it failed, an owner that lost what it confirmed would not be judged where it reports no position."""
    assert at_rest(history(unequal({**STILL, "n1": None}))).settled == ("n2", "n3", "n1")


@pytest.mark.parametrize("value", [None, 5, True, {"n2": 1}])
def test_a_report_that_is_no_list_of_nodes_tells_nothing(value: Any) -> None:
    """If it failed, one edited line of a record would end its judgement with a traceback."""
    report = {"process": "harness", "f": "unsettled", "type": "info", "at_ms": UNTIL_MS, "value": value}
    assert at_rest(history([*unequal(STILL, settled=True), report])).settled == NODES


def test_the_last_report_tells_which_nodes_are_unsettled() -> None:
    """If it failed, a node that reported its position in the end would not be judged."""
    lines = unequal({}, settled=True)
    reports = [told("unsettled", UNTIL_MS - 10, ["n2", "n3"]), told("unsettled", UNTIL_MS, ["n3"])]
    assert at_rest(history([*reports, *lines])).untold == ("n3",)


def test_without_a_leader_an_election_is_awaited() -> None:
    """If it failed, an election that takes long would be an anomaly."""
    lines = unequal(dict.fromkeys(NODES, SINCE_MS), {"n2": 28})
    for line in lines:
        if line["f"] == "state" and line["at_ms"] > UNTIL_MS - 1_000:
            line["value"] = {**line["value"], "role": "replica"}
    assert at_rest(history(lines)).awaited == ("no node led",)
    lines = unequal(dict.fromkeys(NODES, SINCE_MS), {"n2": 28})
    lines += [{**state("n3", UNTIL_MS - 10), "value": {"up": False}}]
    assert at_rest(history(lines)).awaited == ("n3 did not answer",)


def test_a_store_of_ones_own_without_positions_is_told_apart() -> None:
    """If it failed, a store that reports nothing would be waited for, or be taken for one at rest."""
    store = OwnStore("replicas")
    one, other = {"role": "owner", "vclock": 3}, {"role": "replica"}
    assert store.reports.untold({"n1": one, "n2": other}) == ("n2",)
    assert store.is_settled({"n1": one, "n2": other}) and store.reports.untold({"n1": other}) == ()
    assert not store.is_settled({"n1": one, "n2": {**other, "vclock": 2}})


def test_a_tarantool_whose_applier_ended_has_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, nodes that say why they follow no more would be waited for, and the run be inconclusive."""
    monkeypatch.setattr(system, "program", lambda: "/usr/bin/tarantool")
    why = "CONFIRM message arrived for an unknown master id 2, expected 3"
    upstreams = {"n1": {"status": "stopped", "message": why}, "n2": {"status": "disconnected"}}
    assert Tarantool().reports.stopped({"upstreams": upstreams}) == {"n1": why}
    assert Tarantool().reports.stopped({}) == {}
    lines = unequal({"n2": SINCE_MS, "n3": SINCE_MS}, {"n2": 28})
    lines += [state("n1", at, vclock={"1": 22}, upstreams={}) for at in range(SINCE_MS + 250, UNTIL_MS, 250)]
    lines.append(state("n2", UNTIL_MS - 1, vclock={"1": 21}, upstreams=upstreams))
    plan = parts_of(PLAN_2_6).plan
    verdict = judge(Case(plan, history(lines), given_promise=Tarantool().promise(plan)))
    found = [each["summary"] for each in verdict["findings"] if each["checker"] == "convergence"]
    assert f"n2 stopped following n1: {why}" in found
    assert any("not promised here, and not kept: n1 and n2 differ" in text for text in found)
    assert not any("not quiet" in text for text in verdict["evidence"]["missing"])
    assert "only one node can make synchronous transactions" in verdict["documented"]["convergence"]


@pytest.mark.parametrize("settled", [True, False])
def test_members_that_do_not_agree_are_inconclusive(settled: bool) -> None:
    """If it failed, a run whose nodes count by different members in the end would be valid."""
    value = {"nodes": [*NODES], "quorum": 2, "settled": settled}
    line = {"process": "harness", "f": "members", "type": "info", "at_ms": 2_500, "value": value}
    verdict = judge(Case(PLAN, history([*good(), line]), given_promise=FIXED_OWNER))
    assert outcome(verdict) == (("valid", 0) if settled else ("inconclusive", 3))
    said = "not all nodes were seen to agree on the members in the end"
    assert (said in verdict["evidence"]["missing"]) != settled
