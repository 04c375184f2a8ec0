"""Which nodes had settled when the harness asked for their final data, and why the other nodes had not.

A node's *position* is the `vclock` in its report to the monitor. Nodes are *quiet* when their positions stand still:
for the last half of the time in which the harness waited for them to settle, and for 5 s at least. Nodes that are
quiet and unequal will never be equal; their data are final. A node that moved at the end may need more time.

| the record | settled |
|---|---|
| does not tell | all |
| all was seen quiet and equal | all but the nodes that report nothing by which the harness could see that |
| not so; in the last reports all ran, and one led if any ever did; nodes with a position were quiet | these |
| not so | none |

The owner of a run with one owner has settled in any case: what it holds is what there is to be replicated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from checkers.history.history import History, State
from checkers.history.members import at_the_end

UNSETTLED = "unsettled"
"""A line of the harness: the nodes that report nothing by which it could see whether they have settled."""
STILL_NS = 5_000_000_000
STILL_SHARE = 1 / 2
MOMENT_NS = 2_000_000_000
"""A node that is silent for less, and has the same position before and after, stood still: the machine is busy."""


@dataclass(frozen=True, slots=True)
class Rest:
    settled: tuple[str, ...]
    untold: tuple[str, ...] = ()
    """Nodes that do not report their position, without the owner."""
    awaited: tuple[str, ...] = ()
    """Why the other nodes cannot be judged, in words: which nodes moved, or did not answer; or that none led."""
    still_ns: int | None = None
    """How long nothing had moved at the end of a wait in vain; None: the wait was not in vain."""

    @property
    def is_quiet(self) -> bool:
        """The nodes waited in vain to become equal, and nothing moved any more."""
        return self.still_ns is not None and not self.awaited


def at_rest(history: History) -> Rest:
    members = at_the_end(history)
    if history.settled is None:
        return Rest(members)
    owner = (history.header.owner,) if history.header.owner in members else ()
    if history.settled:
        reports = [event.value for event in history.told("harness", UNSETTLED)]
        told = reports[-1] if reports and isinstance(reports[-1], list) else ()
        untold = tuple(node for node in members if node in told and node not in owner)
        return Rest(tuple(node for node in members if node not in untold), untold)
    return _waited_in_vain(history, members, owner)


def _waited_in_vain(history: History, members: Sequence[str], owner: tuple[str, ...]) -> Rest:
    since_ns, until_ns = _wait(history)
    by_node: dict[str, list[State]] = {node: [] for node in members}
    """The reports of that time, behind the last one before."""
    for state in history.states:
        if state.node in by_node and state.time_ns <= until_ns:
            if state.time_ns < since_ns:
                by_node[state.node].clear()
            by_node[state.node].append(state)
    last: Mapping[str, Mapping[str, Any]] = {
        node: states[-1].status
        for node, states in by_node.items()
        if states and states[-1].time_ns >= since_ns
    }
    silent = [node for node, status in last.items() if not status.get("up")]
    with_position = [
        node for node, status in last.items() if status.get("up") and status.get("vclock") is not None
    ]
    untold = tuple(node for node in members if node not in (*silent, *with_position, *owner))
    since = {node: _moved_ns(by_node[node], since_ns) for node in with_position}
    waited_ns = until_ns - since_ns
    enough_ns = max(STILL_NS, int(waited_ns * STILL_SHARE))
    awaited = [f"{', '.join(silent)} did not answer"] if silent else []
    if moving := [node for node, at_ns in since.items() if until_ns - at_ns < enough_ns]:
        awaited.append(f"{', '.join(moving)} moved in the last {min(enough_ns, waited_ns) / 1e9:.0f} s")
    has_led = any(state.status.get("role") == "owner" for state in history.states)
    if has_led and all(status.get("role") != "owner" for status in last.values()):
        awaited.append("no node led")
    if not with_position:
        return Rest(owner, untold, tuple(awaited))
    still_ns = until_ns - max(since.values())
    settled = owner if awaited else tuple(dict.fromkeys((*with_position, *owner)))
    return Rest(settled, untold, tuple(awaited), still_ns)


def _wait(history: History) -> tuple[int, int]:
    """From when until when the harness last waited for the nodes to settle."""
    *before, last = [event.time_ns for event in history.told("harness", "settled")]
    healed = [fault.end_ns for fault in history.faults if fault.end_ns is not None and fault.end_ns <= last]
    return max((*before, *healed, _end_of_load(history, last))), last


def _end_of_load(history: History, until_ns: int) -> int:
    """When the last operation of the load had ended; 0 if there was none."""
    columns = history.columns
    ends = columns.complete_ns[~columns.is_final & (columns.complete_ns <= until_ns)]
    return int(ends.max(initial=0))


def _moved_ns(states: Sequence[State], since_ns: int) -> int:
    """When the node first reported the position that it had at the end, or reported it after more than a moment; not
    before `since_ns`."""
    at_ns, position, silent_ns = max(since_ns, states[0].time_ns), states[0].status.get("vclock"), None
    for state in states:
        if state.status.get("vclock") is None:
            silent_ns = silent_ns or state.time_ns
            continue
        if state.status["vclock"] != position or (silent_ns and state.time_ns - silent_ns > MOMENT_NS):
            at_ns, position = state.time_ns, state.status["vclock"]
        silent_ns = None
    return at_ns
