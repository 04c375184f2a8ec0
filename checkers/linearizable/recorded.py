"""Registers straight from history.parquet: columns in, columns out, for records of a million operations.

Some records cannot be read as columns: values that are not whole numbers, different operations, a record that does not
add up. The answer is None then, and `checkers.history.parquet` reads the record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy

from checkers.history import parquet
from checkers.history.columns import VALUES_MAX, partners
from checkers.history.columns import Columns as Operations
from checkers.history.line_kernels import ABSENT, FAIL, INFO, OK, PAIR, PLAIN
from checkers.history.operation import NOTHING_THERE
from checkers.linearizable.search_kernels import NEVER, OBSERVE, OVERWRITE, REFUSE, UPDATE

Array = Any  # numpy's
Arrow = Any  # pyarrow's
Reads = Callable[[str | None, str | None], bool]

NEEDED = ("index", "type", "process", "f", "key", "role", "mode", "error", "value")
WORDS = ("type", "f", "key", "role", "mode", "error")
_PAIR = r"^\[(?P<old>-?\d{1,18}|null), ?(?P<new>-?\d{1,18}|null)(?:, ?(?:-?\d{1,18}|null))?\]$"
"""Behind the two of a cas, what was there if it failed."""
KINDS = {"read": OBSERVE, "write": OVERWRITE, "cas": UPDATE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Registers:
    """Calls on many registers, in order of invocation: int64 arrays of one length.

    `key` numbers `keys`; `invoke` and `complete` are indexes of events (NEVER: it may still happen); `kind` is one of
    OBSERVE, REFUSE, OVERWRITE, UPDATE; `old` and `new` are values, ABSENT for none.
    """

    keys: tuple[str | None, ...]
    key: Array
    invoke: Array
    complete: Array
    kind: Array
    old: Array
    new: Array
    reads_not_judged: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """The calls that operations stand for: made of some at a time, because a call takes as much memory as an operation.

    `places` are those of operations that are calls, in order; `kind` has a number for every operation, and
    counts where that is a call; `judged` tells which operations are about what is judged, calls or not.
    """

    columns: Operations
    places: Array
    kind: Array
    judged: Array
    reads_not_judged: dict[str, int]

    def registers(self, places: Array) -> Registers:
        """The calls at these places."""
        columns, kind = self.columns, self.kind[places].astype(numpy.int64)
        old, new = columns.old[places], columns.new[places]
        is_pair = columns.f[places] == columns.code("cas")
        return Registers(
            keys=tuple(columns.words),
            key=columns.key[places].astype(numpy.int64),
            invoke=columns.invoke[places],
            complete=numpy.where(self.are_answered(places), columns.complete[places], NEVER),
            kind=kind,
            old=numpy.where(kind == OVERWRITE, ABSENT, numpy.where(is_pair, old, new)),
            new=numpy.where(kind <= REFUSE, ABSENT, new),
            reads_not_judged=self.reads_not_judged,
        )

    def are_answered(self, places: Array) -> Array:
        """Whether they surely are over."""
        return self.columns.type[places] != INFO


def of_columns(columns: Operations, *, reads: Reads, failed_cas_observes: bool = True) -> Calls | None:
    """The calls of operations. None if it takes more than columns.

    So it is where an operation is none of a register's, or has a value that is neither a whole number nor two of them;
    or where two events have the same index.
    """
    if not columns.names <= {*KINDS, "dump"} or not columns.are_ranked:
        return None
    ok, failed = columns.type == OK, columns.type == FAIL
    is_read, is_write, is_cas = (columns.f == columns.code(name) for name in KINDS)
    left_out, counted = _left_out(columns, is_read & ok, reads)
    seen = is_read & ok & ~left_out
    wrote = is_write & ~failed
    if (columns.kind[seen | wrote] != PLAIN).any() or (columns.kind[is_cas] != PAIR).any():
        return None
    refused = is_cas & failed & (columns.error == columns.code("mismatch")) & failed_cas_observes
    nothing = is_write & failed & (columns.error == columns.code(NOTHING_THERE)) & failed_cas_observes
    nothing &= (columns.kind == PLAIN) & (columns.new == ABSENT)
    took = is_cas & ~failed
    same = took & (columns.old == columns.new)
    updates = took & ~same
    kind = numpy.full(len(columns), OBSERVE, dtype=numpy.int8)
    kind[wrote], kind[refused], kind[updates] = OVERWRITE, REFUSE, UPDATE
    return Calls(
        columns=columns,
        places=numpy.flatnonzero(seen | wrote | refused | nothing | updates | (same & ok)),
        kind=kind,
        judged=~left_out & (columns.f != columns.code("dump")),
        reads_not_judged=counted,
    )


def _left_out(columns: Operations, answered: Array, reads: Reads) -> tuple[Array, dict[str, int]]:
    """The answered reads of classes that are not judged, and how many there are of each such class."""
    left_out = numpy.zeros(len(columns), dtype=bool)
    counted: Counter[str] = Counter()
    both = columns.role.astype(numpy.int64) * len(columns.words) + columns.mode
    for number in numpy.unique(both[answered]).tolist():
        role, mode = (columns.words[code] for code in divmod(number, len(columns.words)))
        if not reads(role, mode):
            these = answered & (both == number)
            left_out |= these
            counted[f"{mode or 'no mode'} at {role or 'unknown role'}"] += int(these.sum())
    return left_out, dict(sorted(counted.items()))


def read(path: Path, *, reads: Reads, failed_cas_observes: bool = True) -> Registers | None:
    """The calls in such a file; None if it takes more than columns to read it. Raises HistoryError of a changed one."""
    import pyarrow.compute

    table = parquet.opened(path, read_dictionary=list(WORDS)).read(columns=list(NEEDED))
    table = table.filter(pyarrow.compute.is_valid(table["process"]))
    return of_table(table, reads=reads, failed_cas_observes=failed_cas_observes)


def of_table(table: Arrow, *, reads: Reads, failed_cas_observes: bool = True) -> Registers | None:
    """The same of clients' events that are already there: the columns NEEDED, WORDS as dictionaries, in event order."""
    table = table.combine_chunks()
    columns = {name: table[name].combine_chunks() for name in NEEDED}
    values = _values(columns["value"])
    names = _words(columns["f"])
    used = {
        names[1][code] for code in numpy.unique(names[0]).tolist()
    }  # the faults' names are among the others
    if values is None or not used <= {*KINDS, "dump", None}:
        return None
    partner = partners(_numbers(columns["process"]), _is(columns["type"], "invoke"))
    if partner is None:
        return None
    return _Reading(columns, names, values, partner, reads, failed_cas_observes).registers()


def pairs(table: Arrow) -> tuple[Array, Array] | None:
    """Rows of invocations and of what ended them, of those that ended; None if processes do not take turns."""
    columns = {name: table[name].combine_chunks() for name in ("process", "type")}
    partner = partners(_numbers(columns["process"]), _is(columns["type"], "invoke"))
    if partner is None:
        return None
    asked = numpy.flatnonzero(partner >= 0)
    return asked, partner[asked]


def says(table: Arrow, column: str, word: str) -> Array:
    """Which rows have this word."""
    return _is(table[column].combine_chunks(), word)


def coded(table: Arrow, column: str) -> tuple[Array, list[Any]]:
    """A column of words as codes, and what they stand for; the last is None."""
    return _words(table[column].combine_chunks())


class _Reading:
    """From columns of events to columns of calls."""

    def __init__(
        self,
        columns: dict[str, Arrow],
        names: tuple[Array, list[Any]],
        values: tuple[Array, Array],
        partner: Array,
        reads: Reads,
        failed_cas_observes: bool,
    ) -> None:
        self._columns = columns
        self._values = values
        self._reads = reads
        self._failed_cas_observes = failed_cas_observes
        self._asked = numpy.flatnonzero(partner != -2)
        self._ended = partner[self._asked]  # -1 where nothing did; that row is then not looked at
        self._f = {name: names[0][self._asked] == code for code, name in enumerate(names[1])}

    def registers(self) -> Registers | None:
        """None if an answer is about another operation, key or value than was asked for."""
        if self._has_other_answers():
            return None
        ok, failed = (self._ends(word) for word in ("ok", "fail"))
        reads, writes, changes = (self._f.get(name, numpy.zeros(len(ok), dtype=bool)) for name in KINDS)
        judged, left_out = self._judged(reads & ok)
        refused = changes & failed & self._says("error", "mismatch") & self._failed_cas_observes
        took = (writes | changes) & ~failed
        old, new = self._values
        asked_old, asked_new = old[self._asked], new[self._asked]
        nothing = writes & failed & self._says("error", NOTHING_THERE) & self._failed_cas_observes
        nothing &= asked_new == ABSENT
        answer = new[numpy.where(self._ended >= 0, self._ended, self._asked)]
        same = changes & ~refused & (asked_old == asked_new)
        keep = (reads & ok & judged) | refused | nothing | (took & ~(same & ~ok))
        kind = numpy.select([writes, refused | reads | same], [OVERWRITE, OBSERVE], UPDATE)
        kind[refused] = REFUSE
        kind[nothing] = OBSERVE
        seen = numpy.where(reads, answer, asked_old)
        index = _numbers(self._columns["index"])
        complete = numpy.where(ok | failed, index[self._ended], NEVER)
        codes, keys = _words(self._columns["key"])
        return Registers(
            keys=tuple(keys), key=codes[self._asked][keep], invoke=index[self._asked][keep], complete=complete[keep],
            kind=kind[keep].astype(numpy.int64), old=numpy.where(writes, ABSENT, seen)[keep],
            new=numpy.where(kind <= REFUSE, ABSENT, asked_new)[keep], reads_not_judged=left_out,
        )  # fmt: skip

    def _has_other_answers(self) -> bool:
        """As `checkers.history.operation.answers` says it."""
        is_over = self._ended >= 0
        asked, ended = self._asked[is_over], self._ended[is_over]
        f, key = (_words(self._columns[name])[0] for name in ("f", "key"))
        none = len(self._columns["key"].dictionary)
        is_other = (f[asked] != f[ended]) | ((key[ended] != none) & (key[asked] != key[ended]))
        old, new = self._values
        is_ok = _is(self._columns["type"], "ok")[ended] & ~_is(self._columns["f"], "read")[asked]
        is_told = (old[ended] != ABSENT) | (new[ended] != ABSENT)
        is_other |= is_ok & is_told & ((old[asked] != old[ended]) | (new[asked] != new[ended]))
        return bool(is_other.any())

    def _ends(self, word: str) -> Array:
        return _is(self._columns["type"], word)[self._ended] & (self._ended >= 0)

    def _says(self, column: str, word: str) -> Array:
        return _is(self._columns[column], word)[self._ended] & (self._ended >= 0)

    def _judged(self, reads: Array) -> tuple[Array, dict[str, int]]:
        """Which reads are of a class that is judged; and how many reads there are of each class that is not."""
        both = [self._of_either(column) for column in ("role", "mode")]
        together = both[0][0] * len(both[1][1]) + both[1][0]
        judged = numpy.ones(len(reads), dtype=bool)
        left_out: Counter[str] = Counter()
        for number in numpy.unique(together[reads]).tolist():
            role, mode = both[0][1][number // len(both[1][1])], both[1][1][number % len(both[1][1])]
            if not self._reads(role, mode):
                these = reads & (together == number)
                judged &= ~these
                left_out[f"{mode or 'no mode'} at {role or 'unknown role'}"] += int(these.sum())
        return judged, dict(sorted(left_out.items()))

    def _of_either(self, column: str) -> tuple[Array, list[Any]]:
        """The column's value in the completion if it has one, else in the invocation."""
        codes, words = _words(self._columns[column])
        none = words.index(None)
        answered = codes[numpy.where(self._ended >= 0, self._ended, self._asked)]
        return numpy.where(answered == none, codes[self._asked], answered), words


def _numbers(column: Arrow) -> Array:
    found: Array = column.to_numpy(zero_copy_only=False)
    return numpy.ascontiguousarray(found, dtype=numpy.int64)


def _words(column: Arrow) -> tuple[Array, list[Any]]:
    """Codes and what they stand for; the last is None."""
    words = column.dictionary.to_pylist()
    codes = column.indices.fill_null(len(words)).to_numpy(zero_copy_only=False).astype(numpy.int64)
    return codes, [*words, None]


def _is(column: Arrow, word: str) -> Array:
    codes, words = _words(column)
    return codes == (words.index(word) if word in words else -1)


def _values(column: Arrow) -> tuple[Array, Array] | None:
    """(old, new) of every row: of a plain value only new. None if some value is neither a whole number nor two."""
    import pyarrow
    from pyarrow import compute

    plain = compute.if_else(compute.equal(column, "null"), None, column)
    lists = compute.fill_null(compute.starts_with(plain, "["), False)
    try:
        numbers = compute.cast(compute.if_else(lists, None, plain), pyarrow.int64())
    except pyarrow.ArrowInvalid:
        return None
    if compute.any(
        compute.greater(compute.abs(numbers), VALUES_MAX)
    ).as_py():  # what stands for nothing is beyond
        return None
    new = numbers.fill_null(ABSENT).to_numpy(zero_copy_only=False).copy()
    old = numpy.full(len(new), ABSENT, dtype=numpy.int64)
    rows = numpy.flatnonzero(lists.to_numpy(zero_copy_only=False))
    if len(rows):
        pairs = compute.extract_regex(plain.take(pyarrow.array(rows)), _PAIR)
        if pairs.null_count:
            return None
        for into, name in ((old, "old"), (new, "new")):
            text = compute.struct_field(pairs, name)
            text = compute.if_else(compute.equal(text, "null"), None, text)
            into[rows] = compute.cast(text, pyarrow.int64()).fill_null(ABSENT).to_numpy(zero_copy_only=False)
    return old, new
