"""Monotonic: every transaction adds one more than the greatest value that it sees, stamped with the store's time.

| f | value |
|---|---|
| add | ok: the row that was added, {"val": n, "sts": timestamp} |
| read | ok: [row, …], all rows in the order of their timestamps |

(Jepsen's `monotonic` for CockroachDB; a row may hold more.) A timestamp is a number, or the text of one: Cockroach's
are decimals of more digits than a float has. Where timestamps are the order of transactions, values must rise along
them. Rules: timestamps-out-of-order (the rows of a read are not sorted), values-out-of-order (of two
rows the one stamped later has the smaller value), duplicated, lost (an acknowledged row is missing from a read that
was asked later), revived (the row of an add that surely failed), never-added (there are more rows
that no add made than adds of unknown outcome). A row with a smaller value than any added one was there before.

Cost: for each read its rows, sorted, and all adds. Cannot see: two rows of the same timestamp are in no order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Any, NamedTuple

from checkers.domain.proof import is_judged, shown, verdict
from checkers.history.errors import ModelError
from checkers.history.history import History, by_key
from checkers.history.operation import Operation
from checkers.history.values import many, value_words
from checkers.verdict import Verdict, Witness, witness

NAME = "monotonic"
MODEL = "values rise with the store's timestamps"


class Row(NamedTuple):
    """A row as a read shows it. `sts` is the timestamp as it was written, `stamp` its exact value."""

    stamp: Decimal
    val: int
    sts: int | float | str


def check(history: History) -> Verdict:
    """Whether values and timestamps rise together, and no row is lost. `details`: rows, reads. Raises ModelError."""
    witnesses: list[Witness] = []
    reads = rows = 0
    for key, operations in by_key(history.select(f=("add", "read"))).items():
        adds = [add for add in operations if add.f == "add"]
        for read in operations:
            if read.f == "read" and read.type == "ok" and is_judged(read):
                shown_rows = _rows(read)
                reads, rows = reads + 1, max(rows, len(shown_rows))
                witnesses += _out_of_order(key, read, shown_rows)
                witnesses += _against_adds(key, read, shown_rows, adds)
    details = {"reads": reads, "rows": rows}
    valid = f"rows rise with their timestamps (up to {many(rows, 'row')} in {many(reads, 'read')})"
    return verdict(NAME, MODEL, witnesses, details, judged=rows, valid=valid)


def _rows(read: Operation) -> list[Row]:
    shown_rows = read.value if read.value is not None else []
    rows = [_row(row) for row in shown_rows] if isinstance(shown_rows, list) else [None]
    whole = [row for row in rows if row is not None]
    if len(whole) < len(rows):
        raise _no_row(read, "rows with val (a whole number) and sts (a number, or the text of one)")
    return whole


def _no_row(operation: Operation, expected: str) -> ModelError:
    return ModelError(expected=expected, came=value_words(operation.value, 60), index=operation.invoke_index)


def _row(value: Any) -> Row | None:
    """None if it is no row."""
    if not isinstance(value, dict) or type(value.get("val")) is not int:
        return None
    sts = value.get("sts")
    if isinstance(sts, bool) or not isinstance(sts, int | float | str):
        return None
    try:
        stamp = Decimal(sts if isinstance(sts, int) else str(sts))
    except InvalidOperation:
        return None
    return Row(stamp, value["val"], sts) if stamp.is_finite() else None


def _out_of_order(key: str | None, read: Operation, rows: Sequence[Row]) -> Iterator[Witness]:
    for before, after in pairwise(rows):
        if before.stamp > after.stamp:
            summary = f"a read shows the row of {shown(before.sts)} before that of {shown(after.sts)}"
            yield witness("timestamps-out-of-order", summary, [read], key=key, node=read.node)
            break
    # By value too: of rows with one timestamp, the greatest stands next to the smallest of the next timestamp.
    for before, after in pairwise(sorted(rows, key=lambda row: (row.stamp, row.val))):
        if before.stamp < after.stamp and before.val > after.val:
            summary = f"{before.val} was stamped {before.sts}, the smaller {after.val} later: {after.sts}"
            yield witness("values-out-of-order", summary, [read], key=key, node=read.node)
            break


def _against_adds(
    key: str | None, read: Operation, rows: Sequence[Row], adds: Sequence[Operation]
) -> Iterator[Witness]:
    there: set[int] = set()
    for row in rows:
        if row.val in there:
            yield witness("duplicated", f"a read shows {row.val} twice", [read], key=key, node=read.node)
        there.add(row.val)
    acknowledged = {_value(add) for add in adds if add.type != "fail"}
    yield from _from_nowhere(key, read, rows, [add for add in adds if not read.precedes(add)])
    for add in adds:
        value = _value(add)
        if value is None:
            continue
        if add.type == "ok" and add.precedes(read) and value not in there:
            summary = f"{value} was added by process {add.process}, and is missing from a later read"
            yield witness("lost", summary, [add, read], key=key, node=read.node)
        elif add.type == "fail" and value in there and value not in acknowledged:
            summary = f"a read shows {value}, although its add had surely failed"
            yield witness("revived", summary, [add, read], key=key, node=read.node)


def _from_nowhere(
    key: str | None, read: Operation, rows: Sequence[Row], adds: Sequence[Operation]
) -> Iterator[Witness]:
    """`adds`: those that had been invoked when the read ended."""
    values = [_value(add) for add in adds]
    made = {value for value in values if value is not None}
    unsure = sum(add.type == "info" and value is None for add, value in zip(adds, values, strict=True))
    unknown = [row.val for row in rows if row.val not in made and row.val > min(made, default=row.val)]
    if len(unknown) > unsure:
        summary = f"a read shows {unknown[0]}, and no add that had been asked for by then can have made it"
        yield witness("never-added", summary, [read], key=key, node=read.node)


def _value(add: Operation) -> int | None:
    """The value that it added, or would have; None if its outcome does not say. Raises ModelError."""
    value = add.value.get("val") if isinstance(add.value, dict) else None
    if type(value) is int:
        return value
    if add.type == "ok":
        raise _no_row(add, "the row that was added, with val (a whole number)")
    return None
