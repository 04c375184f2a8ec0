"""The trace of messages as columns: sends, receives, and the rows where each cut changed a node's colour.

A *life* is one start of a node's process. Rows are events of lives in their order. The lives of a node stand one after
the other, so the rows of a node are one stretch, and a row's number is its place on the line of its node.

    send      a message to another node; `seq` counts the messages of a life 1, 2, 3 …
    receive   a message was taken; (`peer`, `seq`) name it by the life that sent it
    mark      anything else that the node reported; a mark "cut" is the colour change of that cut

A row is *inside* a cut if it stands before the colour change of the cut on its node. A message is the pair of a send
and a receive. A send may have no receive (lost, or on its way) or several (doubled by the network).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy
from numpy.typing import NDArray

from checkers.history.errors import HistoryError

Int8s = NDArray[numpy.int8]
Int32s = NDArray[numpy.int32]
Int64s = NDArray[numpy.int64]

SEND, RECEIVE, MARK = 0, 1, 2
NOT_RECORDED = -1
CUT_MARK = "cut"

_LENGTHS = {"send": 6, "receive": 5, "mark": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """Rows `first` … `end`-1 are of this life. `torn`: a sentence if rows behind the last one are lost, else "".

    `wall_ns` and `time_ns`: when it began, by the wall clock and by the clock of the trace. `over_ns`: when it surely
    was over, by the clock of the trace; -1: unknown.
    """

    node: str
    life: int
    first: int
    end: int
    wall_ns: int = 0
    time_ns: int = 0
    over_ns: int = -1
    torn: str = ""

    @property
    def name(self) -> str:
        """For a person: `n1 (life 2)`."""
        return f"{self.node} (life {self.life})"


LIFE = ("node", "life", "wall_ns", "time_ns", "over_ns", "torn")
"""The facts about a life, but for its rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """m rows of the lives, which stand by node, and by time within a node.

    kind   int8[m]     SEND, RECEIVE or MARK
    seq    int32[m]    the message's number in the life that sent it; of a mark 0
    peer   int32[m]    of a receive the index in `lives` of the sender, NOT_RECORDED if the trace lacks that life;
                       of a send the code in `peers` of the node that it is for; of a mark NOT_RECORDED
    what, xid int32[m] codes in `words` (of a send its word, of a mark its kind) and `xids` (-1: none)
    time_ns int64[m]   when

    The last three may be empty where only verdicts are asked for (`parquet.read(…, whole=False)`).

    mark_row int64[c], mark_cut int32[c] (code in `cuts`), mark_ns int64[c]: the colour changes in the order of rows.
    `absent`: (row of a receive, node, life) for senders that the trace lacks. `fields`: by row of a mark, its fields.
    `is_one_clock`: times of different nodes compare.
    """

    lives: tuple[Life, ...]
    kind: Int8s
    seq: Int32s
    peer: Int32s
    what: Int32s
    xid: Int32s
    time_ns: Int64s
    mark_row: Int64s
    mark_cut: Int32s
    mark_ns: Int64s
    words: tuple[str, ...] = ()
    xids: tuple[str, ...] = ()
    cuts: tuple[str, ...] = ()
    absent: tuple[tuple[int, str, int], ...] = ()
    peers: tuple[str, ...] = ()
    fields: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    is_one_clock: bool = True

    def __post_init__(self) -> None:
        types = {"kind": "int8", "time_ns": "int64", "mark_row": "int64", "mark_ns": "int64"}
        for name in ("kind", "seq", "peer", "what", "xid", "time_ns", "mark_row", "mark_cut", "mark_ns"):
            column, wanted = getattr(self, name), types.get(name, "int32")
            if column.dtype != wanted or column.ndim != 1 or not column.flags.c_contiguous:
                raise ValueError(f"expected {name} as contiguous {wanted}[…], got {column.dtype}")
        rows = len(self.kind)
        if {len(self.seq), len(self.peer), rows} != {rows}:
            raise ValueError("expected kind, seq and peer of one length")
        if not {len(self.what), len(self.xid), len(self.time_ns)} <= {0, rows}:
            raise ValueError("expected what, xid and time_ns of the length of kind, or empty")
        ends = [0, *(life.end for life in self.lives)]
        if [life.first for life in self.lives] != ends[:-1] or ends[-1] != rows:
            raise ValueError("expected lives that cover all rows, one after the other")
        if len(self.nodes) != len({life.node for life in self.lives}):
            raise ValueError("expected the lives of a node one after the other")

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes in the order of their rows."""
        names = [life.node for life in self.lives]
        return tuple(name for place, name in enumerate(names) if place == 0 or names[place - 1] != name)

    @property
    def node_first(self) -> Int64s:
        """By node the first row, and behind the last node the number of rows."""
        firsts = [
            life.first
            for place, life in enumerate(self.lives)
            if place == 0 or self.lives[place - 1].node != life.node
        ]
        return numpy.array([*firsts, len(self)], numpy.int64)

    def life_of(self, row: int) -> int:
        """The index in `lives` of the life that a row belongs to."""
        firsts = numpy.array([life.first for life in self.lives], numpy.int64)
        return int(numpy.searchsorted(firsts, row, side="right")) - 1

    def place(self, row: int) -> dict[str, Any]:
        """Where a row is, as JSON: its node, its life and its position in that life (0 is the first)."""
        life = self.lives[self.life_of(row)]
        return {"node": life.node, "life": life.life, "position": int(row) - life.first}

    def row_of(self, place: Mapping[str, Any]) -> int:
        """The row at such a place; LookupError if there is none."""
        for life in self.lives:
            if (life.node, life.life) == (place["node"], place["life"]):
                position = place["position"]
                if type(position) is int and 0 <= position < life.end - life.first:
                    return life.first + position
                break
        raise LookupError(f"no row at {dict(place)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeRows:
    """One life as it was recorded: its rows in the form of the trace file, without the row "life"."""

    node: str
    life: int
    rows: Sequence[Sequence[Any]]
    wall_ns: int = 0
    time_ns: int = 0
    over_ns: int = -1
    torn: str = ""


def trace_of(recorded: Iterable[LifeRows], *, is_one_clock: bool = True) -> Trace:
    """The columns of some lives. Nodes keep the order in which they come first; lives stand by their times.

    Raises HistoryError if a row has another form, or a life is there twice.
    """
    given = list(recorded)
    order = list(dict.fromkeys(life.node for life in given))
    given.sort(key=lambda life: (order.index(life.node), life.time_ns))
    index = {(life.node, life.life): place for place, life in enumerate(given)}
    if len(index) < len(given):
        raise _refused("each life of a node once", "one twice")
    return _Builder(given, index).trace(is_one_clock)


class _Builder:
    def __init__(self, given: Sequence[LifeRows], index: Mapping[tuple[str, int], int]) -> None:
        self.given, self.index = given, index
        self.table: list[tuple[int, int, int, int, int, int]] = []
        self.words: dict[str, int] = {}
        self.xids: dict[str, int] = {}
        self.cuts: dict[str, int] = {}
        self.marks: list[tuple[int, int, int]] = []
        self.absent: list[tuple[int, str, int]] = []
        self.peers: dict[str, int] = {}
        self.fields: dict[int, Mapping[str, Any]] = {}

    def trace(self, is_one_clock: bool) -> Trace:
        lives = []
        for life in self.given:
            first = len(self.table)
            for row in life.rows:
                self._row(row)
            known = {name: getattr(life, name) for name in LIFE}
            lives.append(Life(first=first, end=len(self.table), **known))
        table = numpy.array(self.table, numpy.int64).reshape(-1, 6)
        marks = numpy.array(self.marks, numpy.int64).reshape(-1, 3)
        kind, seq, peer, what, xid = (
            numpy.ascontiguousarray(table[:, column].astype(wanted))
            for column, wanted in enumerate((numpy.int8, *[numpy.int32] * 4))
        )
        return Trace(
            lives=tuple(lives),
            kind=kind,
            seq=seq,
            peer=peer,
            what=what,
            xid=xid,
            time_ns=numpy.ascontiguousarray(table[:, 5]),
            mark_row=numpy.ascontiguousarray(marks[:, 0]),
            mark_cut=numpy.ascontiguousarray(marks[:, 1].astype(numpy.int32)),
            mark_ns=numpy.ascontiguousarray(marks[:, 2]),
            words=tuple(self.words),
            xids=tuple(self.xids),
            cuts=tuple(self.cuts),
            absent=tuple(self.absent),
            peers=tuple(self.peers),
            fields=self.fields,
            is_one_clock=is_one_clock,
        )

    def _row(self, row: Sequence[Any]) -> None:
        place = len(self.table)
        try:
            columns = self._columns(place, row)
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            raise _refused(
                '["send", seq, peer, word, xid, ns], ["receive", …] or ["mark", …]', repr(row)
            ) from error
        self.table.append(columns)

    def _columns(self, place: int, row: Sequence[Any]) -> tuple[int, int, int, int, int, int]:
        if len(row) != _LENGTHS[row[0]]:
            raise ValueError("another length")
        match row:
            case ["send", seq, str(peer), str(word), xid, ns] if _counts(seq) and _is_time(ns):
                to = self._code(self.peers, peer)
                return SEND, seq, to, self._code(self.words, word), self._xid(xid), ns
            case ["receive", str(node), int(life), seq, ns] if _counts(seq) and _is_time(ns):
                sender = self.index.get((node, life), NOT_RECORDED)
                if sender == NOT_RECORDED:
                    self.absent.append((place, node, life))
                return RECEIVE, seq, sender, -1, -1, ns
            case ["mark", str(kind), dict(fields), ns] if _is_time(ns):
                self.fields[place] = fields
                if kind == CUT_MARK:
                    self.marks.append((place, self._code(self.cuts, name_of(fields["cut"])), ns))
                return MARK, 0, NOT_RECORDED, self._code(self.words, kind), self._xid(fields.get("xid")), ns
        raise ValueError("another form")

    def _xid(self, xid: Any) -> int:
        return -1 if xid is None else self._code(self.xids, name_of(xid))

    @staticmethod
    def _code(codes: dict[str, int], name: str) -> int:
        return codes.setdefault(name, len(codes))


def _counts(seq: Any) -> bool:
    """Whether it may be the number of a message, in int32."""
    return type(seq) is int and 0 < seq < 1 << 31


def _is_time(ns: Any) -> bool:
    return type(ns) is int and -(1 << 63) <= ns < 1 << 63


def name_of(identifier: Any) -> str:
    """The name of a cut or a transaction: its own text, or the JSON of any other value."""
    if isinstance(identifier, str):
        return identifier
    return msgspec.json.encode(identifier, order="sorted").decode()


def described(trace: Trace, row: int) -> str:
    """A row for a person: `n1 (life 1) row 4: sends "finish" 3 of transaction t7 to n2`."""
    life = trace.lives[trace.life_of(row)]
    where = f"{life.name} row {row - life.first}"
    word = f' "{trace.words[trace.what[row]]}"' if len(trace.what) and trace.what[row] >= 0 else ""
    about = f" of transaction {trace.xids[trace.xid[row]]}" if len(trace.xid) and trace.xid[row] >= 0 else ""
    match int(trace.kind[row]):
        case 0:
            to = f" to {trace.peers[trace.peer[row]]}" if trace.peer[row] >= 0 else ""
            return f"{where}: sends{word} {trace.seq[row]}{about}{to}"
        case 1:
            sender = trace.peer[row]
            named = "a life that is not recorded" if sender < 0 else trace.lives[sender].name
            return f"{where}: takes message {trace.seq[row]} of {named}"
    return f"{where}: mark{word}{about}"


def _refused(expected: str, came: str) -> HistoryError:
    return HistoryError(expected=expected, came=came, attempt="record the trace again")
