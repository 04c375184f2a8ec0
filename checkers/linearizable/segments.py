"""A long history of one register, cut into segments that can be decided by themselves.

A *cut* is a write or compare-and-set that was answered ok while nothing else on the key was under way: after it the
register surely holds its value. Later calls can be decided from that value alone, if no earlier effect can still
be seen later. A call that crashed before the cut may take effect after it, so no later call may see a value that such
calls leave. Three calls could see it: a read that shows it, a compare-and-set that asks for it, and a refused
compare-and-set, which sees that a *different* value is there. Where that cannot be decided, there is no cut.

Then the whole has an order if and only if every segment has one from its start: orders of segments, one behind the
other, are an order of the whole, and from an order of the whole the unseen crashed calls can be left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from checkers.history.operation import Operation, leaves, same_both
from checkers.history.values import Value, identity

NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Segment:
    """Operations from one cut to the next. A segment that is not the first begins with a write of what the cut left."""

    operations: tuple[Operation, ...]


def segments(operations: Sequence[Operation], at_least: int) -> list[Segment]:
    """Operations of one key, in order of invocation, in segments of `at_least` operations or (the last) fewer.

    Every operation is in one segment; the synthetic writes come on top. Operations other than read, write and cas are
    not known here: then all is one segment.
    """
    if not {operation.f for operation in operations} <= {"read", "write", "cas"}:
        return [Segment(tuple(operations))]
    parts: list[Segment] = []
    begin, start = 0, None
    for place in _cuts(operations):
        if place + 1 - begin >= at_least and place + 1 < len(operations):
            parts.append(_segment(operations[begin : place + 1], start))
            begin, start = place + 1, operations[place]
    parts.append(_segment(operations[begin:], start))
    return parts


def _segment(operations: Sequence[Operation], start: Operation | None) -> Segment:
    return Segment((*([] if start is None else [_as_write(start)]), *operations))


def _as_write(cut: Operation) -> Operation:
    """The cut as the write of what it left; its events come before the rest of the segment."""
    return Operation(
        type="ok",
        process=-1,
        f="write",
        key=cut.key,
        value=leaves(cut),
        invoke_index=cut.invoke_index,
        invoke_ns=cut.invoke_ns,
        complete_index=cut.complete_index,
        complete_ns=cut.complete_ns,
        node=cut.node,
        role=cut.role,
        mode=cut.mode,
    )


def _cuts(operations: Sequence[Operation]) -> Iterable[int]:
    """The places of operations that are cuts."""
    seen, refused = _last_seen(operations)
    latest_end = -1
    hidden_until = -1  # before this index something that crashed may still be seen
    for place, operation in enumerate(operations):
        is_alone = operation.invoke_index > latest_end and not _is_met(operations, place)
        if operation.f != "read" and operation.type == "info":
            # It may take effect behind a cut, as long as a call may see its value, or is refused by it.
            hidden_until = max(hidden_until, seen.get(identity(leaves(operation)), -1), refused)
        elif operation.complete_index is not None:
            latest_end = max(latest_end, operation.complete_index)
        is_sure = operation.f != "read" and operation.type == "ok" and operation.complete_index is not None
        if is_sure and is_alone and hidden_until <= (operation.complete_index or 0):
            yield place


def _is_met(operations: Sequence[Operation], place: int) -> bool:
    """The next operation begins before this one has ended."""
    ended = operations[place].complete_index
    return ended is None or (place + 1 < len(operations) and operations[place + 1].invoke_index < ended)


def _last_seen(operations: Iterable[Operation]) -> tuple[dict[Value, int], int]:
    """By value, the last event at which a call may see it; and the last at which a call sees a different value."""
    seen: dict[Value, int] = {}
    refused = -1
    for operation in operations:
        ended = (
            NEVER
            if operation.type == "info" or operation.complete_index is None
            else operation.complete_index
        )
        if operation.found_nothing or (operation.f == "read" and operation.type == "ok"):
            value = identity(operation.value)
            seen[value] = max(seen.get(value, -1), ended)
        elif operation.f == "cas":
            if operation.type == "fail":
                refused = max(refused, ended)
            else:
                old, _ = same_both(operation)
                seen[old] = max(seen.get(old, -1), ended)
    return seen, refused
