"""Rare turns that a plan and a history tell, for the table *sometimes*: each row claims what hunts reach.

They are changed and differing options, stored logs to begin with, refused writes, and members that came in the middle
of something. `nodes.qsync.sometimes` has the rows that nodes count.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence

from checkers.history.faults import FaultSpan
from checkers.history.history import History
from harness.faults.node_options import OPTION, RESTARTED, RUNNING
from harness.plan.plan import Plan
from harness.systems.qsync import starts
from harness.systems.qsync.node_options import APART, AT_START, MODE, QUEUE_SIZE, WHILE_RUNNING
from harness.systems.qsync.options import started_from
from nodes.qsync import sometimes

READ_ONLY = "read-only (7)"
MEMBER_CAME_BUSY = "member came while the queue was busy"
STRAY = "write refused by a node that does not lead"
ONE_NODE = "option changed on one node"
IN_TURN = "option changed on all nodes in turn"
IN_TURN_RESTARTED = "option changed by restarts in turn"
AT_ONCE_RESTARTED = "option changed by a restart of all nodes at once"
AT_A_MOMENT = "option changed at a moment"
JOINED_STORED = "one node began with stored logs, and the others joined it"
SWITCHED_ON = "elections switched on for good"
SWITCHED_OFF = "elections switched off on all nodes, and on again"


DIFFERING = (MODE, QUEUE_SIZE, *APART)


def changed(option: str, how: str) -> str:
    return f"{option} changed {how}"


def differs(option: str) -> str:
    return f"{option} differs between nodes from the start"


def begun_with(start: str) -> str:
    return f"nodes began with the stored logs {start}"


ROWS = (
    MEMBER_CAME_BUSY,
    STRAY,
    *(changed(option, RUNNING) for option in WHILE_RUNNING),
    *(changed(option, RESTARTED) for option in AT_START),
    *(differs(option) for option in DIFFERING),
    *(begun_with(name) for name in starts.names()),
    JOINED_STORED,
    *(ONE_NODE, IN_TURN, IN_TURN_RESTARTED, AT_ONCE_RESTARTED, AT_A_MOMENT, SWITCHED_ON, SWITCHED_OFF),
)


RARE_TURNS = (*sometimes.ROWS, *ROWS)


def counted(plan: Plan, history: History) -> dict[str, int]:
    """Row → how often: of changes each node once, and once more when it is changed back."""
    rows = Counter(dict.fromkeys(ROWS, 0))
    rows[STRAY] = _refused(history)
    busy_ns = sorted(state.time_ns for state in history.states if _is_busy(state.status.get("limbo")))
    came = [fault for fault in history.faults if fault.does in ("add", "replace") and fault.took_effect]
    rows[MEMBER_CAME_BUSY] = sum(_was_busy(busy_ns, fault) for fault in came)
    rows.update(_by_option(history))
    rows.update(from_the_start(plan))
    rows.update(_by_fault(history))
    return dict(rows)


def _refused(history: History) -> int:
    """How many operations of the load a node refused because it does not lead."""
    columns = history.columns
    return int(((columns.error == columns.code(READ_ONLY)) & ~columns.is_final).sum())


def from_the_start(plan: Plan) -> Iterator[str]:
    """The rows that a plan tells before it is run."""
    yield from (differs(option) for option in DIFFERING if len(_at_first(plan, option)) > 1)
    start = started_from(plan)
    if start is not None:
        yield begun_with(start.name)
        if start.others_join:
            yield JOINED_STORED


def _is_busy(limbo: object) -> bool:
    return isinstance(limbo, int) and limbo > 0


def _was_busy(busy_ns: Sequence[int], fault: FaultSpan) -> bool:
    """Some node was seen with transactions in its queue meanwhile."""
    place = bisect_left(busy_ns, fault.start_ns)
    return place < len(busy_ns) and (fault.end_ns is None or busy_ns[place] <= fault.end_ns)


def _by_option(history: History) -> Iterator[str]:
    for event in history.told("harness", OPTION):
        if isinstance(event.value, dict):
            yield changed(str(event.value.get("option")), str(event.value.get("how")))


def _at_first(plan: Plan, option: str) -> set[object]:
    return {plan.options_of(node).get(option) for node in plan.node_names}


def _by_fault(history: History) -> Iterator[str]:
    nodes = len(history.header.nodes)
    for fault in history.faults:
        options = fault.asked.get("options")
        if not options or not fault.took_effect:
            continue
        if fault.asked.get("on") is not None:
            yield AT_A_MOMENT
        if fault.does == "restart":
            yield AT_ONCE_RESTARTED if fault.asked.get("at_once") else IN_TURN_RESTARTED
        else:
            yield ONE_NODE if len(fault.nodes) == 1 < nodes else IN_TURN
        if fault.asked.get("stays"):
            yield SWITCHED_ON
        elif options.get(MODE) == "off" and len(fault.nodes) > 1:
            yield SWITCHED_OFF
