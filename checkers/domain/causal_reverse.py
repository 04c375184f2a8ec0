"""Causal reverse: a read that shows a write shows every write that had ended before that write began.

| f | value |
|---|---|
| write | the value; a key names the collection if there are several |
| read | ok: [value, …], all that has been written |

Strictly serializable stores keep the order of real time, merely serializable ones need not: a read then shows the
later of two writes without the earlier (Jepsen's `causal-reverse`, `sequential` and `comments`). A read may be
arbitrarily old. Rules: causal-reverse, never-written (by the end of the read no client had asked to write the value,
or every such write surely failed). Of a value that was written more than once the first write counts.

Cost: linear in the values of all reads, and n log n. Cannot see: writes that overlapped have no order; those of unknown
outcome need not have happened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from checkers.domain.proof import is_judged, listed, nowhere, shown, verdict
from checkers.history.history import History, by_key
from checkers.history.operation import Operation
from checkers.history.values import Value, identity, many
from checkers.verdict import Verdict, Witness, witness

NAME = "causal-reverse"
MODEL = "what is seen was preceded by all that was over before it"


def check(history: History) -> Verdict:
    """Whether reads keep the writes' order in real time. `details`: reads, writes. Raises ModelError."""
    witnesses: list[Witness] = []
    reads = writes = judged = 0
    for key, operations in by_key(history.select(f=("write", "read"))).items():
        written = [write for write in operations if write.f == "write" and write.type != "fail"]
        acknowledged = sorted(
            (write for write in written if write.type == "ok"), key=lambda write: write.complete_index or 0
        )
        # The first write of a value stays: a later one would have begun later, and accused a read wrongly.
        by_value = {identity(write.value): write for write in reversed(written)}
        failed = {
            identity(write.value) for write in operations if write.f == "write" and write.type == "fail"
        }
        writes += len(written)
        for read in operations:
            if read.f == "read" and read.type == "ok" and is_judged(read):
                reads, judged = reads + 1, judged + bool(written)
                shown_values = {*map(identity, listed(read))}
                witnesses += _from_nowhere(key, read, by_value, failed)
                witnesses += _reversed(key, read, shown_values, by_value, acknowledged)
    details = {"reads": reads, "writes": writes}
    valid = f"{many(reads, 'read')} kept the order of {many(writes, 'write')}"
    return verdict(NAME, MODEL, witnesses, details, judged=judged, valid=valid)


def _from_nowhere(
    key: str | None, read: Operation, by_value: Mapping[Value, Operation], failed: Set[Value]
) -> Iterator[Witness]:
    for value in read.value or ():
        write = by_value.get(identity(value))
        if write is None or read.precedes(write):
            why = nowhere(is_failed=write is None and identity(value) in failed)
            summary = f"process {read.process} saw {shown(value)}, {why}"
            yield witness("never-written", summary, [read], key=key, node=read.node)


def _reversed(
    key: str | None,
    read: Operation,
    seen: set[Value],
    by_value: dict[Value, Operation],
    acknowledged: Sequence[Operation],
) -> Iterator[Witness]:
    """Compares the last invoked write that the read shows with the first acknowledged one that it lacks."""
    last = max(
        (by_value[value] for value in seen if value in by_value),
        key=lambda write: write.invoke_index,
        default=None,
    )
    if last is None:
        return
    missing = next((write for write in acknowledged if identity(write.value) not in seen), None)
    if missing is not None and missing.precedes(last):
        summary = (
            f"process {read.process} saw {shown(last.value)}, but not {shown(missing.value)}, "
            f"which was written before that began"
        )
        yield witness("causal-reverse", summary, [missing, last, read], key=key, node=read.node)
