"""Logs and clients as Parquet: a folder of tables that are columns already, for runs of millions of transactions.

| file | rows | columns |
|---|---|---|
| ids.parquet | an id each | name |
| transactions.parquet | a transaction of a queue each | ts, id, origin |
| <master>/records.parquet | a record each | kind, number, other, name, count (how many are listed) |
| <master>/listed.parquet | the listed ones of all records | listed |
| <master>/states.parquet | an execution each | digest |
| <master>/steps.parquet | a "made" each | steps (JSON) |
| history.parquet | an event each | as `checkers.history.parquet` has them |

`columns.Rows` says what the numbers are. The metadata of transactions.parquet has the masters' names, the groups of
rounds and the missing masters of splits; that of records.parquet has the few records that are objects. Hashes must
have 8 bytes, and names must be different (that is looked at where answers do not come in the order of the names).
pyarrow is imported only when one of the functions is called.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy

from bench import txlog_kernels
from checkers.compiled import load
from checkers.history import parquet
from checkers.history.errors import HistoryError
from checkers.history.history import History
from checkers.logs.txlog import kernels, records
from checkers.logs.txlog.asked import INFO, OK, TYPES, Asked
from checkers.logs.txlog.columns import HASH_BYTES, Columns, LogColumns, Names, Rows, last_of, over_of
from checkers.logs.txlog.given import Given
from checkers.logs.txlog.records import Backup, Rare, Recovered

Array = Any  # numpy's
Arrow = Any  # pyarrow's

IDS, TRANSACTIONS, RECORDS, LISTED, STATES, STEPS, HISTORY = (
    f"{name}.parquet" for name in ("ids", "transactions", "records", "listed", "states", "steps", "history")
)
_METADATA = b"txlog"
_WORDS = ("type", "f", "node", "key")
_ASKED = ("index", "time_ns", "type", "process", "f", "node", "key", "transaction")


def write(folder: Path, columns: Columns, history: History | None = None) -> None:
    """Write the tables into a folder that there is. Raises ValueError if a hash has not 8 bytes."""
    import pyarrow

    first, data = map(pyarrow.py_buffer, (columns.names.first, columns.names.data))
    names = pyarrow.LargeStringArray.from_buffers(len(columns.names), first, data)
    _put(folder / IDS, {"name": names})
    shared = {"peers": columns.peers, "groups": columns.groups, "missing": columns.missing}
    whole = {**shared, "logs": {master: log.damage for master, log in columns.logs.items()}}
    of_refs = {"ts": columns.ts, "id": columns.id, "origin": columns.origin}
    _put(folder / TRANSACTIONS, of_refs, whole)
    for master, log in columns.logs.items():
        (folder / master).mkdir()
        _put_log(folder / master, log)
    if history is not None:
        parquet.write(folder / HISTORY, history)


def _put_log(folder: Path, log: LogColumns) -> None:
    import pyarrow

    rows = log.rows
    told = {"rare": [[type(each).__name__, asdict(each)] for each in log.rare]}
    count = numpy.diff(rows.first).astype(numpy.int32)
    fields = {
        "kind": rows.kind,
        "number": rows.number,
        "other": rows.other,
        "name": rows.name,
        "count": count,
    }
    _put(folder / RECORDS, fields, told)
    _put(folder / LISTED, {"listed": rows.listed})
    _put(folder / STATES, {"digest": _digests(log)})
    steps = [msgspec.json.encode(each).decode() for each in log.steps]
    _put(folder / STEPS, {"steps": pyarrow.array(steps, pyarrow.string())})


def _digests(log: LogColumns) -> Array:
    """The hashes as numbers."""
    if log.hashes is None:
        return log.digest
    hashes = [log.hash(number) for number in range(len(log.digest))]
    if any(len(each) != HASH_BYTES for each in hashes):
        raise ValueError(f"expected hashes of {HASH_BYTES} bytes in the log of {log.master}")
    return numpy.frombuffer(b"".join(hashes), dtype=">i8").astype(numpy.int64)


def _put(path: Path, fields: Mapping[str, Any], told: Any = None) -> None:
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table({name: pyarrow.array(values) for name, values in fields.items()})
    table = table.replace_schema_metadata({_METADATA: msgspec.json.encode(told)})
    # In one piece: arrays need not be joined then. Most columns are small numbers, which lz4 reads fastest.
    pyarrow.parquet.write_table(
        table,
        path,
        compression="lz4",
        use_dictionary=[name for name in ("kind", "count", "origin") if name in fields],
        row_group_size=max(1, len(table)),
        write_statistics=False,
        write_page_checksum=True,
    )


# ---- reading


def read(folder: Path, **configured: Any) -> Given:
    """The material in such a folder; `configured`: the other fields of `Given`.

    Raises HistoryError for a wrong table.
    """
    columns = _columns(folder)
    if not (folder / HISTORY).exists():
        return Given(logs=columns, **configured)
    history, asked, more = _asked(folder / HISTORY, columns.names)
    return Given(
        logs=Columns(**{**_fields(columns), "names": _joined(columns.names, more)}),
        history=history, told=asked, **configured,
    )  # fmt: skip


def _joined(names: Names, more: Names) -> Names:
    """All names, those of `more` behind the others."""
    size = int(names.first[-1])
    first = numpy.concatenate((names.first, more.first[1:] + size))
    return Names(first, numpy.concatenate((names.data[:size], more.data[: int(more.first[-1])])))


def _fields(columns: Columns) -> dict[str, Any]:
    return {name: getattr(columns, name) for name in Columns.__dataclass_fields__}


def _columns(folder: Path) -> Columns:
    names = names_of(_table(folder / IDS, "name")["name"])
    refs, told = _numbers(folder / TRANSACTIONS, "ts", "id", "origin")
    peers = tuple(told["peers"])
    peer = {name: number for number, name in enumerate(peers)}
    columns = Columns(
        names=names, ts=refs["ts"], id=refs["id"], origin=refs["origin"], peers=peers,
        groups=[(tuple(posters), tuple(absent)) for posters, absent in told["groups"]],
        missing=[tuple(each) for each in told["missing"]],
        logs={master: _log(folder / master, master, damage, peer) for master, damage in told["logs"].items()},
    )  # fmt: skip
    _check(folder, columns)
    return columns


def _log(folder: Path, master: str, damage: str, peer: Mapping[str, int]) -> LogColumns:
    fields, told = _numbers(folder / RECORDS, "kind", "number", "other", "name", "count")
    first = numpy.zeros(len(fields["kind"]) + 1, dtype=numpy.int64)
    numpy.cumsum(fields["count"].astype(numpy.int64), out=first[1:])
    rare = [_rare(name, each) for name, each in told["rare"]]
    recoveries = [each for each in rare if isinstance(each, Recovered)]
    rows = Rows(
        kind=fields["kind"], number=fields["number"], other=fields["other"], name=fields["name"], first=first,
        listed=_numbers(folder / LISTED, "listed")[0]["listed"],
    )  # fmt: skip
    return LogColumns(
        master=master, damage=damage, rows=rows, rare=rare, over=over_of(recoveries),
        over_last=last_of(recoveries, peer), digest=_numbers(folder / STATES, "digest")[0]["digest"], hashes=None,
        steps=_Steps(folder / STEPS, int((rows.kind == kernels.MADE).sum())),
    )  # fmt: skip


def _rare(name: str, fields: Mapping[str, Any]) -> Rare:
    kind = getattr(records, name)
    backup = fields.get("backup")
    if backup is not None:
        fields = {**fields, "backup": Backup(backup[0], _bytes(backup[1]))}
    if "hash" in fields:
        fields = {**fields, "hash": _bytes(fields["hash"])}
    made: Rare = kind(**fields)
    return made


def _bytes(told: str) -> bytes:
    """JSON has bytes as base64."""
    return msgspec.convert(told, bytes)


class _Steps(Sequence[Any]):
    """The steps of what a master made, read when they are asked for: only reads of a state taken back need them."""

    def __init__(self, path: Path, count: int) -> None:
        self._path, self._count = path, count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        for chunk in _table(self._path, "steps")["steps"].chunks:
            yield from (msgspec.json.decode(each) for each in chunk.to_pylist())

    def __getitem__(self, number: Any) -> Any:
        return [*self][number]


def _table(path: Path, *columns: str) -> Arrow:
    with parquet.damage_refused(path):
        return parquet.opened(path, pre_buffer=True).read(columns=[*columns])


def _numbers(path: Path, *columns: str) -> tuple[dict[str, Array], Any]:
    table = _table(path, *columns)
    told = msgspec.json.decode((table.schema.metadata or {}).get(_METADATA, b"null"))
    with parquet.damage_refused(path):
        return {name: _array(table[name]) for name in columns}, told


def _array(column: Arrow) -> Array:
    import pyarrow

    if column.null_count:
        raise ValueError("expected numbers alone, got a null")
    chunks = column.chunks or [pyarrow.array([], column.type)]
    whole = chunks[0] if len(chunks) == 1 else pyarrow.concat_arrays(chunks)
    return whole.to_numpy(zero_copy_only=False)


def names_of(column: Arrow) -> Names:
    """Of a column of texts."""
    import pyarrow

    texts = pyarrow.concat_arrays(
        column.cast(pyarrow.large_string()).chunks or [pyarrow.array([], pyarrow.large_string())]
    )
    _, offsets, data = texts.buffers()
    first = numpy.frombuffer(offsets, dtype=numpy.int64)[texts.offset : texts.offset + len(texts) + 1]
    return Names(first, numpy.frombuffer(data or b"\0", dtype=numpy.uint8))


def _check(folder: Path, columns: Columns) -> None:
    """Refuse numbers that kernels could not follow, and transactions that have two numbers."""
    refs, ids = len(columns.ts), len(columns.names)
    _need(folder / TRANSACTIONS, _within(columns.id, 0, ids), "a transaction with an id")
    _need(folder / TRANSACTIONS, _within(columns.origin, 0, len(columns.peers)), "a transaction of a master")
    _need(folder / TRANSACTIONS, _within(columns.ts, 0, records.MOST), "a timestamp from 0 on")
    _need(folder / TRANSACTIONS, _are_different(columns), "each transaction once")
    for master, log in columns.logs.items():
        path, rows = folder / master / RECORDS, log.rows
        _need(path, _within(rows.kind, 0, kernels.KINDS), "a kind of record")
        _need(
            path,
            _within(rows.number, 0, records.MOST) and _within(rows.other, -1, records.MOST),
            "numbers from 0 on",
        )
        _need(
            path,
            int(rows.first[-1]) == len(rows.listed) and (numpy.diff(rows.first) >= 0).all(),
            "so many listed",
        )
        _need(path, len(log.digest) == len(rows.of_kind(kernels.EXECUTED)), "a state for each execution")
        bounds = {
            kernels.MADE: refs, kernels.HEARD: len(columns.peers), kernels.ADDED: len(columns.groups),
            kernels.EXECUTED: ids, kernels.SPLIT: len(columns.missing), kernels.RECOVERED: len(log.over),
        }  # fmt: skip
        limit = numpy.full(kernels.KINDS, records.MOST, dtype=numpy.int64)
        limit[[*bounds]] = [*bounds.values()]
        _need(
            path,
            bool(((rows.name >= 0) & (rows.name < limit[rows.kind])).all()),
            "a number that the tables have",
        )
        _need(
            path,
            _within(rows.listed, 0, min(refs, ids)) or _are_listed(rows, refs, ids),
            "listed ones that there are",
        )
        recoveries, executions = rows.of_kind(kernels.RECOVERED), rows.of_kind(kernels.EXECUTED)
        size = rows.first[recoveries + 1] - rows.first[recoveries]
        _need(path, bool((rows.other[recoveries] <= size).all()), "no more synchronised ones than are listed")
        _need(path, bool((rows.number[executions] > 0).all()), "executed indexes from 1 on")
        few = rows.of_kind(*(kind for kind, _ in FEW))
        told = [(each.place - 1, type(each)) for each in log.rare]
        kinds = dict(FEW)
        wanted = [(row, kinds[kind]) for row, kind in zip(few.tolist(), rows.kind[few].tolist(), strict=True)]
        _need(path, told == wanted, "an object for each record of a split or a start")


FEW: Sequence[tuple[int, type[Rare]]] = (
    (kernels.LIFE, records.Life),
    (kernels.SPLIT, records.Split),
    (kernels.REJOINED, records.Rejoined),
    (kernels.RECOVERING, records.Recovering),
    (kernels.RECOVERED, records.Recovered),
    (kernels.RESTORED, records.Restored),
    (kernels.CHOSEN, records.Chosen),
    (kernels.JOINED, records.Joined),
    (kernels.THAWED, records.Thawed),
    (kernels.LAGGED, records.Lagged),
)
"""Kinds of records that are objects."""


def _are_listed(rows: Rows, refs: int, ids: int) -> bool:
    """Transactions, or ids where the record is one of updates."""
    of_ids = numpy.repeat(rows.kind == kernels.ACQUIRED, numpy.diff(rows.first))
    return _within(rows.listed[of_ids], 0, ids) and _within(rows.listed[~of_ids], 0, refs)


def _are_different(columns: Columns) -> bool:
    refs = len(columns.ts)
    seen = numpy.zeros(refs, dtype=bool)
    seen[columns.order] = True
    # Of one timestamp and id there may be several, with different origins: then the log of some master is wrong.
    return bool(seen.all()) or refs == len(
        numpy.unique(columns.order.astype(numpy.int64) * len(columns.peers) + columns.origin)
    )


def _within(values: Array, least: int, end: int) -> bool:
    return not len(values) or (int(values.min()) >= least and int(values.max()) < end)


def _need(path: Path, true: bool, expected: str) -> None:
    if not true:
        raise HistoryError(
            expected=f"{expected} in {path.parent.name}/{path.name}",
            came="different numbers",
            attempt="write the tables again from the logs of the masters",
        )


# ---- clients


def _of_all(clients: Array, found: Array, rows: int) -> Array:
    """The rows of completions by row: -1 where none was recorded, -2 for what is no client's invocation."""
    partner = numpy.full(rows, -2, dtype=numpy.int64)
    partner[clients] = numpy.where(found >= 0, clients[found], found)
    return partner


def _asked(path: Path, names: Names) -> tuple[History, Asked, Names]:
    """The record without its clients, their operations, and the ids that no log has."""
    with parquet.damage_refused(path):
        file = parquet.opened(path, read_dictionary=[*_WORDS], pre_buffer=True)
        table = file.read(columns=[*_ASKED])
    history = parquet.read_others(path)
    process = _array(table["process"].fill_null(-1))
    types, names_of_types = _coded(table["type"])
    invokes = types == _code(names_of_types, "invoke")
    clients = numpy.flatnonzero(process >= 0)
    found = _partners(process[clients], invokes[clients])
    f, key = _coded(table["f"]), _coded(table["key"])
    if (
        found is not None
        and _within(process, -1, 1 << 31)
        and _are_same(partner := _of_all(clients, found, len(process)), *f)
        and _are_same(partner, *key)
    ):
        with parquet.damage_refused(path):
            return history, *_operations(path, table, names, partner, (types, names_of_types), f)
    parquet.read(path)  # says what is wrong with the record
    raise AssertionError("the record of the clients adds up, and does not")


def _partners(process: Array, invokes: Array) -> Array | None:
    """Of each event that is an invocation the row of its completion (-1: none), of others -2. None if processes do not
    take turns, or have too large numbers."""
    if len(process) and (process.min() < 0 or process.max() > 4 * len(process) + 1_000_000):
        return None
    partner = numpy.empty(len(process), dtype=numpy.int64)
    nobody = numpy.full(int(process.max(initial=0)) + 1, -1, dtype=numpy.int64)
    take_turns = load(txlog_kernels).pair(process, invokes.astype(numpy.int64), nobody, partner)
    return partner if take_turns else None


def _are_same(partner: Array, codes: Array, words: Sequence[Any]) -> bool:
    """An end asks no other question than its invocation: it has the same word, or none."""
    if len(words) == 2 and not (codes == 1).any():  # there is one word alone
        return True
    asked = numpy.flatnonzero(partner >= 0)
    ends = codes[partner[asked]]
    return bool(((ends == codes[asked]) | (ends == len(words) - 1)).all())


Coded = tuple[Array, Sequence[Any]]
"""Codes of words, and the words; the last is None."""


def _operations(
    path: Path, table: Arrow, names: Names, partner: Array, types: Coded, f: Coded
) -> tuple[Asked, Names]:
    asked = numpy.flatnonzero(partner != -2)
    ended = partner[asked]
    last = numpy.where(ended >= 0, ended, asked)
    outcomes = numpy.array([TYPES.get(name, INFO) for name in types[1]], dtype=numpy.int64)
    kind = numpy.where(ended >= 0, outcomes[types[0][last]], INFO)
    number, more = _numbered(table["transaction"], names)
    transaction = numpy.where(ended >= 0, number[last], -1)
    kept = (transaction >= 0) | ((kind == OK) & (f[0][asked] == _code(f[1], "read")))
    asked, ended, last = asked[kept], ended[kept], last[kept]
    node, nodes = _coded(table["node"])
    index, time_ns = _array(table["index"]), _array(table["time_ns"])
    return Asked(
        nodes=nodes, type=kind[kept], transaction=transaction[kept],
        node=numpy.where(node[last] != len(nodes) - 1, node[last], node[asked]), invoke=index[asked],
        complete=numpy.where(ended >= 0, index[last], -1), invoke_ns=time_ns[asked],
        complete_ns=numpy.where(ended >= 0, time_ns[last], -1), read=_Reads(path, asked, ended),
    ), more  # fmt: skip


class _Reads:
    """Key and value of operations, read when the first is asked for."""

    def __init__(self, path: Path, asked: Array, ended: Array) -> None:
        self._path, self._asked, self._ended = path, asked, ended

    @cached_property
    def _table(self) -> Arrow:
        return _table(self._path, "key", "value").combine_chunks()

    def __call__(self, operation: int) -> tuple[str | None, Any]:
        asked, ended = int(self._asked[operation]), int(self._ended[operation])
        value = self._table["value"][ended].as_py() if ended >= 0 else None
        value = "null" if value is None else value
        if msgspec.json.decode(value) is None:
            value = self._table["value"][asked].as_py() or "null"
        return self._table["key"][asked].as_py(), msgspec.json.decode(value)


def _coded(column: Arrow) -> Coded:
    joined = column.unify_dictionaries()
    words = joined.chunk(0).dictionary.to_pylist() if joined.num_chunks else []
    codes = [each.indices.fill_null(len(words)).to_numpy(zero_copy_only=False) for each in joined.chunks]
    return numpy.concatenate([numpy.zeros(0, dtype=numpy.int32), *codes]), [*words, None]


def _code(words: Sequence[Any], word: str) -> int:
    return words.index(word) if word in words else -1


def _numbered(column: Arrow, names: Names) -> tuple[Array, Names]:
    """By row the number of its id, -1 for none, and the ids that are new."""
    compiled = load(txlog_kernels)
    told = names_of(column)
    found = numpy.empty(len(told), dtype=numpy.int64)
    if compiled.followed(told.first, told.data, names.first, names.data, found):
        table = numpy.full(1 << max(4, (2 * len(names)).bit_length()), -1, dtype=numpy.int32)
        with numpy.errstate(over="ignore"):
            if twice := compiled.filed(names.first, names.data, table):
                raise ValueError(f"{twice} ids have two numbers")
            compiled.looked_up(told.first, told.data, table, names.first, names.data, found)
    new: dict[str, int] = {}
    for place in numpy.flatnonzero(found == -1).tolist():
        found[place] = new.setdefault(told[place], len(names) + len(new))
    return found, Names.of(new)
