"""The rows of the logs of a cluster as arrays, whatever they hold: what the rules about logs read.

`Rows` has the rows; the log of a node is an array of places in it. `of_logs` makes both of records. Large logs of plain
rows are read as such arrays (`checkers.logs.wal.plain`), without a record of any row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from operator import attrgetter
from typing import Any, Final

import numpy

from checkers.compiled import load
from checkers.history.columns import VALUES_MAX
from checkers.history.errors import HistoryError
from checkers.history.line_kernels import ABSENT
from checkers.logs.wal import numbering_kernels
from checkers.logs.wal.cells import Cells, CellsOfObjects
from checkers.logs.wal.record import ORIGINS_END, Id, Kind, NodeLog, Record
from checkers.logs.wal.row_kernels import ENDS, SYNCHRONOUS

Array = Any  # numpy's
KINDS: Final[tuple[Kind, ...]] = ("write", "nop", "confirm", "rollback", "promote", "demote", "vote")
WRITE, NOP, CONFIRM, ROLLBACK, PROMOTE, DEMOTE, VOTE = range(len(KINDS))
UNTOLD: Final = -1
"""In the column `waits`: the row does not say."""
NO_KEY: Final = -1
DTYPES: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("kind", "bits", "waits", "origin", "owner"), numpy.int8),
    **dict.fromkeys(("space", "lsn", "first", "until", "term"), numpy.int32),
    **dict.fromkeys(("value", "body", "time"), numpy.int64),
}
BEYOND: Final = 2 * VALUES_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows as arrays of one length; the names are those of `Record`. `kind` is a place in KINDS; `bits` says whether a
    row ends its transaction and makes it wait; `owner` of a vote is its candidate; `waits` may be UNTOLD; `key` is a
    place in `keys`, or NO_KEY where a row has no mark (`Record.mark`), `value` is the number of its value (`codes`);
    two rows with one origin and lsn have the same `body` if theirs are the same. `transaction` and `place` number the
    transactions and the pairs of origin and lsn. `origins` is above every number of a replica.
    """

    kind: Array
    bits: Array
    waits: Array
    origin: Array
    owner: Array
    space: Array
    lsn: Array
    first: Array
    until: Array
    term: Array
    value: Array
    body: Array
    time: Array
    """Of its origin's clock, in ns."""
    key: Array
    keys: Sequence[str]
    codes: Codes
    transaction: Array
    transactions: int
    place: Array
    places: int
    origins: int
    cells: Callable[[], Cells]
    """A new table of the cells of the rows."""

    def ids_of(self, transactions: Array) -> list[Id]:
        """The names of the transactions with these numbers."""
        first = numpy.empty(self.transactions, dtype=numpy.int64)
        # Of several assignments to one element the last one stays: backwards, that of the first row.
        first[self.transaction[::-1]] = numpy.arange(len(self.transaction))[::-1]
        rows = first[transactions]
        numbers = numpy.where(self.first[rows] != 0, self.first[rows], self.lsn[rows])
        return list(zip(self.origin[rows].tolist(), numbers.tolist(), strict=True))

    def id_of(self, transaction: int) -> Id:
        """The name of the transaction with a number."""
        return self.ids_of(numpy.array([transaction]))[0]

    def record(self, at: int) -> Record:
        """The decision or vote at a place; the file that it stands in is not known here."""
        kind = KINDS[self.kind[at]]
        is_vote = kind == "vote"
        waits = int(self.waits[at])
        return Record(
            kind=kind,
            origin=int(self.origin[at]),
            lsn=int(self.lsn[at]),
            file="",
            first=int(self.first[at]),
            ends=bool(self.bits[at] & ENDS),
            owner=0 if is_vote else int(self.owner[at]),
            until=int(self.until[at]),
            term=int(self.term[at]),
            waits=None if waits == UNTOLD else bool(waits),
            vote=int(self.owner[at]) if is_vote else 0,
        )


class Codes:
    """A number for each value. Values that a store may confuse have the same one: 1, 1.0 and true."""

    def __init__(self) -> None:
        self._beyond: dict[object, int] = {}

    def of(self, value: object) -> int:
        """ABSENT for nothing, a small whole number for itself, and for any other value one beyond these."""
        if value is None:
            return ABSENT
        if isinstance(value, int | float) and -VALUES_MAX <= value <= VALUES_MAX and value == int(value):
            return int(value)
        return self._beyond.setdefault(_hashable(value), BEYOND + len(self._beyond))


def _hashable(value: object) -> object:
    """A hashable form of a value, equal for equal values."""
    match value:
        case dict():
            return "members", frozenset((_hashable(key), _hashable(member)) for key, member in value.items())
        case list() | tuple():
            return "elements", tuple(map(_hashable, value))
        case float() if isnan(value):
            return ("not a number",)
    return value


def of_logs(logs: Sequence[NodeLog]) -> tuple[Rows, list[Array]]:
    """The rows of the logs, and the places of each log in them.

    Raises HistoryError of a replica beyond ORIGINS_END and of a number beyond 64 bits.
    """
    places: dict[int, int] = {}
    records: list[Record] = []
    ats = []
    for log in logs:
        for record in log.records:
            if id(record) not in places:
                places[id(record)] = len(records)
                records.append(record)
        ats.append(numpy.array([places[id(record)] for record in log.records], dtype=numpy.int32))
    return _rows_of(logs, records), ats


def _rows_of(logs: Sequence[NodeLog], records: Sequence[Record]) -> Rows:
    """The rows of these records, which are those of the logs."""
    marks, bodies, keys = [row.mark for row in records], dict[bytes, int](), dict[str, int]()
    codes = Codes()

    def column(name: str, value_of: Callable[[Record], int] | None = None) -> Array:
        return _array(name, list(map(attrgetter(name) if value_of is None else value_of, records)))

    origin = column("origin")
    owner = column("owner", lambda row: row.vote if row.kind == "vote" else row.owner)
    lsn, first = column("lsn"), column("first")
    transaction, transactions = numbered(origin, numpy.where(first != 0, first, lsn))
    place, many = numbered(origin, lsn)
    return Rows(
        kind=column("kind", lambda row: KINDS.index(row.kind)),
        bits=column(
            "bits", lambda row: (ENDS if row.ends else 0) | (SYNCHRONOUS if row.is_synchronous else 0)
        ),
        waits=column("waits", lambda row: UNTOLD if row.waits is None else int(row.waits)),
        origin=origin,
        owner=owner,
        space=column("space"),
        lsn=lsn,
        first=first,
        until=column("until"),
        term=column("term"),
        value=_array("value", [ABSENT if mark is None else codes.of(mark[1]) for mark in marks]),
        body=_array("body", [bodies.setdefault(row.body, len(bodies)) for row in records]),
        time=column("time", lambda row: row.time_ns),
        key=numpy.array(
            [NO_KEY if mark is None else keys.setdefault(mark[0], len(keys)) for mark in marks],
            dtype=numpy.int32,
        ),
        keys=list(keys),
        codes=codes,
        transaction=transaction,
        transactions=transactions,
        place=place,
        places=many,
        origins=_origins_end(logs, origin, owner),
        cells=lambda: CellsOfObjects(records, codes.of),
    )


def _array(name: str, values: list[int]) -> Array:
    """The column in its type of DTYPES, for which kernels are compiled; in 64 bits if a value needs them."""
    low, high = min(values, default=0), max(values, default=0)
    dtype = DTYPES[name]
    if low < numpy.iinfo(dtype).min or high > numpy.iinfo(dtype).max:
        dtype = numpy.int64
    if low < -(1 << 63) or high >= 1 << 63:
        raise HistoryError(
            expected=f"a number of at most 64 bits as {name} of a row",
            came=str(high if high >= 1 << 63 else low),
            attempt="look at what wrote the log",
        )
    return numpy.array(values, dtype=dtype)


def _origins_end(logs: Sequence[NodeLog], origin: Array, owner: Array) -> int:
    """The number above those of all replicas. Raises HistoryError of one beyond ORIGINS_END, or of a vclock's lsn."""
    vclocks = [vclock for log in logs for vclock in (log.begins, *(each.vclock for each in log.snapshots))]
    _array("lsn", [lsn for vclock in vclocks for lsn in vclock.values()])
    known = [
        0,
        *(each for vclock in vclocks for each in vclock),
        *set(origin.tolist()),
        *set(owner.tolist()),
    ]
    odd = next((each for each in known if not 0 <= each < ORIGINS_END), None)
    if odd is not None:
        raise HistoryError(
            expected=f"the number of a replica below {ORIGINS_END}",
            came=str(odd),
            attempt="number the nodes from 1 on",
        )
    return int(max(known)) + 1


def numbered(one: Array, other: Array) -> tuple[Array, int]:
    """A number for each pair, the same for the same pair; and how many numbers there are."""
    numbers = numpy.empty(len(one), dtype=numpy.int32)
    table = numpy.full(1 << max(4, (2 * len(one)).bit_length()), -1, dtype=numpy.int32)
    firsts = numpy.empty(len(one), dtype=numpy.int32)
    count = load(numbering_kernels, len(one)).number_pairs(
        numpy.ascontiguousarray(one, dtype=numpy.int64),
        numpy.ascontiguousarray(other, dtype=numpy.int64),
        table, firsts, numbers,
    )  # fmt: skip
    return numbers, int(count)
