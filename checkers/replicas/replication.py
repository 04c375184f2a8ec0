"""Replication as the nodes report it: it goes on, and equal positions mean equal data.

A node's state (its report to the monitor) holds its `vclock`, and for each node that it receives from an entry of
`upstreams` with `status` and `message`. Judged are

- equal-vclock-different-data: two nodes reported the same position at the end of the run (twice in a row, unless the
  cluster was verified quiet), and their final dumps differ. Replication will never mend that, and no monitoring shows
  it. A violation.
- a node had stopped receiving from another: a finding, because the node reports that itself. It may have gone on later,
  as it does when an operator restarts replication, or may still be stopped in its last report.

States without these fields prove nothing: without a vclock and a final dump of two nodes the verdict is vacuous.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any

from checkers.history.history import History, State
from checkers.history.operation import Operation, leaves
from checkers.history.values import Value, identity, value_words
from checkers.verdict import Verdict, Witness, concluded

NAME = "replication"
MODEL = "equal vclocks mean equal data"
DIFFERENT_MAX = 5
STEADY_STATES = 2


def check(history: History) -> Verdict:
    """Whether equal positions meant equal data at the end. `details`: vclocks, and the findings."""
    last = _last_states(history, 1 if history.settled else STEADY_STATES)
    dumps = {dump.node: dump for dump in history.dumps if dump.type == "ok" and dump.node is not None}
    witnesses = list(_different(history, last, dumps))
    with_vclock = [node for node, states in last.items() if states[-1].status.get("vclock") is not None]
    compared = [node for node in with_vclock if node in dumps]
    details: dict[str, Any] = {
        "vclocks": {node: last[node][-1].status["vclock"] for node in with_vclock},
        "violations": len(witnesses),
        "findings": list(_stopped(history, last)),
        "vacuous": len(compared) < 2,
    }
    summary = f"no two of {len(compared)} nodes had equal vclocks and different data at the end"
    if len(compared) < 2:
        lack = "the nodes tell no vclocks" if len(with_vclock) < 2 else "no two nodes gave a final dump"
        summary = f"nothing to judge: {lack}"
    return concluded(NAME, witnesses, summary, model=MODEL, details=details)


def _last_states(history: History, count: int) -> dict[str, list[State]]:
    """The last `count` states of each node before the first final dump was asked, oldest first."""
    asked = min((dump.invoke_index for dump in history.dumps), default=len(history.events))
    last: dict[str, list[State]] = {}
    for state in history.states:
        if state.index < asked:
            last[state.node] = [*last.get(state.node, ()), state][-count:]
    return {node: states for node, states in sorted(last.items()) if len(states) == count}


def _position(states: Sequence[State]) -> object:
    """The vclock that the node kept over its last states; None if the node moved, or reports none."""
    vclocks = [state.status.get("vclock") for state in states]
    if any(vclock != vclocks[0] for vclock in vclocks):
        return None
    return vclocks[0]


def _different(
    history: History, last: Mapping[str, Sequence[State]], dumps: Mapping[str, Operation]
) -> Iterator[Witness]:
    for one, other in combinations([node for node in last if node in dumps], 2):
        position = _position(last[one])
        if position is None or position != _position(last[other]):
            continue
        held, held_too = _rows(dumps[one]), _rows(dumps[other])
        differences = [
            Difference(space, key, held.get((space, key)), held_too.get((space, key)))
            for space, key in sorted({**held, **held_too}, key=str)
            if identity(held.get((space, key))) != identity(held_too.get((space, key)))
        ]
        if differences:
            states = [last[node][-1] for node in (one, other)]
            yield _witness(history, states, (dumps[one], dumps[other]), position, differences)


@dataclass(frozen=True, slots=True)
class Difference:
    """A key of a space, and what each of two nodes holds there; None: nothing."""

    space: str
    key: object
    one: Any
    other: Any

    def text(self, one: str, other: str) -> str:
        are_lists = [isinstance(held, list | tuple) for held in (self.one, self.other)]
        lacks = " and ".join(
            f"{node} lacks {_some(missing)}"
            for node, missing in (
                (one, _beyond(self.other, self.one)),
                (other, _beyond(self.one, self.other)),
            )
            if missing
        )
        if all(are_lists) or (any(are_lists) and lacks):
            return f"{self.key} of {self.space}: {lacks or 'the same elements in another order'}"
        held, held_too = map(value_words, (self.one, self.other))
        return f"key {self.key} of {self.space}: {held} at {one}, {held_too} at {other}"

    def values(self) -> set[Value]:
        """The rows that only one of the two holds, as clients may have written them."""
        if isinstance(self.one, list | tuple) or isinstance(self.other, list | tuple):
            return {*map(identity, (*_beyond(self.one, self.other), *_beyond(self.other, self.one)))}
        return {identity(value) for value in (self.one, self.other) if value is not None}


def _elements(value: Any) -> Sequence[Any]:
    """The elements of a list; any other value is its own only element."""
    if isinstance(value, list | tuple):
        return value
    return () if value is None else (value,)


def _beyond(value: Any, other: Any) -> list[Any]:
    """The elements that it has more often than the other one."""
    left = Counter(map(identity, _elements(other)))
    more = []
    for element in _elements(value):
        left[identity(element)] -= 1
        if left[identity(element)] < 0:
            more.append(element)
    return more


def _some(elements: Sequence[object]) -> str:
    more = f" and {len(elements) - DIFFERENT_MAX} more" if len(elements) > DIFFERENT_MAX else ""
    return ", ".join(map(value_words, elements[:DIFFERENT_MAX])) + more


def _rows(dump: Operation) -> dict[tuple[str, object], object]:
    """(space, key) → value."""
    spaces = dump.value.get("spaces", {}) if isinstance(dump.value, Mapping) else {}
    return {
        (space, identity(row[0])): row[1] if len(row) > 1 else None
        for space, rows in spaces.items()
        for row in rows
    }


def _witness(
    history: History,
    states: Sequence[State],
    dumps: Sequence[Operation],
    position: object,
    differences: Sequence[Difference],
) -> Witness:
    one, other = (state.node for state in states)
    shown = differences[:DIFFERENT_MAX]
    sentences = tuple(difference.text(one, other) for difference in shown)
    writers = _writers(history, shown)
    events = [state.index for state in states]
    events += [event for operation in (*dumps, *writers) for event in operation.events]
    count = f"{len(differences)} keys" if len(differences) > 1 else "one key"
    return Witness(
        rule="equal-vclock-different-data",
        summary=f"{one} and {other} stood at the same vclock {_clock(position)} and differ in {count}: {sentences[0]}",
        events=tuple(sorted(set(events))),
        key=str(differences[0].key),
        start_ns=min([state.time_ns for state in states] + [writer.invoke_ns for writer in writers]),
        end_ns=max(dump.complete_ns or 0 for dump in dumps),
        explanation=(*sentences, *map(_how_it_ended, writers)),
    )


def _clock(position: object) -> str:
    """A vclock in words: {1: 717, 3: 1706}."""
    if not isinstance(position, Mapping):
        return str(position)
    return "{" + ", ".join(f"{node}: {lsn}" for node, lsn in sorted(position.items(), key=str)) + "}"


def _writers(history: History, differences: Sequence[Difference]) -> list[Operation]:
    """The first few operations that wrote what only one of the nodes holds."""
    wanted = {difference.key: difference.values() for difference in differences}
    writers = (
        operation
        for operation in history.select(f=("write", "cas", "add"), phase="load")
        if operation.f != "cas" or (isinstance(operation.value, list | tuple) and len(operation.value) > 1)
        if identity(leaves(operation)) in wanted.get(operation.key, ())
    )
    return list(islice(writers, DIFFERENT_MAX))


def _how_it_ended(writer: Operation) -> str:
    answer = {"ok": "acknowledged", "fail": "refused", "info": "left open"}[writer.type]
    error = f": {writer.error}" if writer.error else ""
    words = "deletion of" if writer.is_deletion else f"{writer.f} of {value_words(leaves(writer))} to"
    return f"the {words} {writer.key} at {writer.node} was {answer}{error}"


def _stopped(history: History, last: Mapping[str, Sequence[State]]) -> Iterator[str]:
    """A sentence for each node and each source from which it received nothing any more."""
    ends = _last_words(history)
    for (node, source), (time_ns, reason) in _first_stops(history).items():
        at_the_end = _stopped_sources(last[node][-1].status) if node in last else {}
        state = ends.get((node, source))
        if source in at_the_end:
            yield f"{node} had stopped receiving from {source} at the end, for good: {at_the_end[source]}"
        elif state is not None and source in _stopped_sources(state.status):
            yield f"{node} had stopped receiving from {source} when it last reported: {reason}"
        elif state is None or state.time_ns < time_ns:
            yield (
                f"{node} had stopped receiving from {source} at {time_ns / 1e9:.1f} s, "
                f"and reported no more of it: {reason}"
            )
        else:
            yield f"{node} had stopped receiving from {source} at {time_ns / 1e9:.1f} s, and not for good: {reason}"


def _first_stops(history: History) -> dict[tuple[str, str], tuple[int, str]]:
    """(node, source) → when the stop was first reported, and the reported reason.

    The operator polls more often than the monitor: the monitor may miss a stop that the operator repaired at once.
    """
    reports = [(state.time_ns, state.node, _stopped_sources(state.status)) for state in history.states]
    reports += [
        (event.time_ns, event.node, event.value["stopped"])
        for event in history.told("operator")
        if event.node is not None and _tells_of_stops(event.value)
    ]
    stops: dict[tuple[str, str], tuple[int, str]] = {}
    for time_ns, node, sources in sorted(reports, key=lambda report: report[0]):
        for source, reason in sources.items():
            stops.setdefault((node, source), (time_ns, reason or "it gave no reason"))
    return dict(sorted(stops.items()))


def _tells_of_stops(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("stopped"), Mapping)


def _last_words(history: History) -> dict[tuple[str, str], State]:
    """(node, source) → the last state in which the node reported the source."""
    last: dict[tuple[str, str], State] = {}
    for state in history.states:
        upstreams = state.status.get("upstreams")
        for source in upstreams if isinstance(upstreams, Mapping) else ():
            last[state.node, source] = state
    return last


def _stopped_sources(status: Mapping[str, Any]) -> dict[str, str]:
    """Source → why the node receives nothing from it any more."""
    upstreams = status.get("upstreams")
    return {
        source: str(upstream.get("message") or "it gave no reason")
        for source, upstream in (upstreams.items() if isinstance(upstreams, Mapping) else ())
        if isinstance(upstream, Mapping) and upstream.get("status") == "stopped"
    }
