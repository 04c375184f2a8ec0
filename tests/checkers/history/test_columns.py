"""Records read as columns against records read as objects: random files, well-formed and not, and their verdicts."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from checkers import by_model, linearizable
from checkers.domain import rollback_honesty
from checkers.history import (
    Event,
    Header,
    History,
    HistoryError,
    columns,
    jsonl,
    line_kernels,
    lines,
    parquet,
    tables,
)
from checkers.history.columns import Columns, of_operations
from checkers.history.line_kernels import OTHER
from checkers.history.stored import StoredEvents, StoredOperations
from checkers.linearizable import checker
from checkers.linearizable.columns import register_columns
from checkers.linearizable.models import Register
from checkers.linearizable.order import placed, placed_columns
from checkers.linearizable.search import Limits, search
from checkers.linearizable.search import Limits as Budget
from checkers.verdict import Verdict
from tests import examples
from tests.checkers.over_objects import over_objects
from tests.checkers.strategies import calls

KEYS = ("x", "y", None, "ключ", 'a "key"', "")
PLAIN_KEYS = ("x", "y", "z")
ODD_VALUES: tuple[Any, ...] = (
    *(
        "text",
        "",
        1.5,
        -0.0,
        1.0,
        True,
        1 << 59,
        1 << 61,
        -(1 << 70),
        [1],
        [1, 2, 3],
        [1, "a"],
        [[1, 2]],
        {"a": 1},
    ),
    *([None, True], [1.0, 2], -5, [-1, 10**18 - 1]),
)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is large here, and read in pieces that cut lines, and operations."""
    monkeypatch.setattr(jsonl, "LARGE", 0)
    monkeypatch.setattr(lines, "PIECE_BYTES", 700)
    monkeypatch.setattr(lines, "ROWS_MAX", 4)
    monkeypatch.setattr(parquet, "_ROW_GROUP", 18)
    monkeypatch.setattr(parquet, "_AT_ONCE", 6)
    monkeypatch.setattr(parquet, "LARGE", 0)
    monkeypatch.setattr(tables, "BATCH", 7)


def events(chance: random.Random, *, odd: bool) -> Iterator[dict[str, Any]]:
    """A run of a few processes on a few keys, with lines of the nemesis and the monitor between."""
    running: dict[int, dict[str, Any]] = {}
    states: dict[Any, int | None] = {}
    time_ns, fresh, faults = 0, 0, 0
    for index in range(chance.randint(0, 60)):
        time_ns += chance.choice((0, 1, 1000))
        who = chance.randint(0, 3) if chance.random() < 0.97 else chance.choice((7, 123_456, 0))
        line: dict[str, Any] = {"index": index, "time_ns": time_ns}
        if chance.random() < 0.1:
            faults += 1
            value = {"id": faults, "name": "cut", "does": "cut", "nodes": ["n1"]}
            yield {**line, "type": "invoke", "process": "nemesis", "f": "cut", "value": value}
        elif chance.random() < 0.1:
            told = {"up": True, "вид": "лидер", "__class__": chance.choice(([1], [True], {"a": 1, "b": 2}))}
            value = dict(chance.sample(sorted(told.items()), chance.randint(0, 3)))
            node = chance.choice(("n1", "n2"))
            yield {**line, "type": "info", "process": "monitor", "f": "state", "node": node, "value": value}
        elif who in running:
            asked = running.pop(who)
            yield {**line, **_ended(chance, asked, states, odd=odd), "process": who}
        else:
            fresh += 1
            asked = _asked(chance, fresh, states, odd=odd)
            running[who] = asked
            yield {**line, "type": "invoke", "process": who, **asked}


def _asked(chance: random.Random, fresh: int, states: dict[Any, int | None], *, odd: bool) -> dict[str, Any]:
    key = chance.choice(KEYS if odd else PLAIN_KEYS)
    f = chance.choice(("read", "read", "write", "write", "cas"))
    new = chance.choice((fresh, fresh, 1, None))
    value: Any = {"read": None, "write": new, "cas": [chance.choice((states.get(key), 1, None)), fresh]}[f]
    if odd and chance.random() < 0.05:
        value = chance.choice(ODD_VALUES)
    asked = {"f": f, "key": key, "value": value, "node": chance.choice(("n1", None))}
    if chance.random() < 0.1:
        asked["wait"] = chance.choice(("submit", "complete", None))
    if chance.random() < 0.1:
        asked["phase"] = "final"
    if odd and chance.random() < 0.05:
        asked |= chance.choice(
            ({"wait": "submit"}, {"more": 1}, {"transaction": "n1:7"}, {"xxxxsaction": "x"})
        )
    return {name: each for name, each in asked.items() if each is not None or chance.random() < 0.1}


def _ended(
    chance: random.Random, asked: dict[str, Any], states: dict[Any, int | None], *, odd: bool
) -> dict[str, Any]:
    kind = chance.choice(("ok", "ok", "ok", "fail", "info"))
    key, value = asked.get("key"), asked.get("value")
    ended: dict[str, Any] = {"type": kind, "f": asked["f"]}
    if asked["f"] == "cas" and isinstance(value, list) and len(value) == 2:
        kind = "fail" if states.get(key) != value[0] else "ok"
        ended |= {"type": kind} | ({"error": "mismatch"} if kind == "fail" else {})
        if kind == "ok":
            states[key] = value[1]
        elif chance.random() < 0.5:
            ended["value"] = [*value, states.get(key)]
    elif asked["f"] == "write" and kind != "fail" and not isinstance(value, list):
        states[key] = value
    elif asked["f"] == "read" and kind == "ok":
        ended["value"] = states.get(key) if chance.random() < 0.97 else chance.choice((1, 2, 3, None))
    elif kind == "fail":
        ended["error"] = chance.choice(("timeout", "nothing-there", None))
    ended |= chance.choice(({}, {"role": "owner", "mode": "read-confirmed"}, {"role": "owner"}))
    if chance.random() < 0.1:
        ended["transaction"] = chance.choice(("n1:7", "", None))
    if chance.random() < 0.1:
        ended |= {"role": "replica", "mode": chance.choice(("dirty", "read-confirmed"))}
    if odd and chance.random() < 0.05:
        ended |= chance.choice(
            ({"f": "read"}, {"key": "x"}, {"key": "q"}, {"value": chance.choice(ODD_VALUES)})
        )
    return ended


def record(chance: random.Random, *, odd: bool) -> bytes:
    """Such a record as a file; an odd one may be damaged."""
    written = [jsonl.header_line(Header(system="s"))]
    has_blanks, has_order = chance.random() < 0.3, chance.random() < 0.7
    for event in events(chance, odd=odd):
        fields = [*event.items()]
        line = msgspec.json.encode(dict(fields if has_order else chance.sample(fields, len(fields))))
        if has_blanks:
            line = _with_blanks(chance, line)
        if odd and chance.random() < 0.02:
            line = line.replace(b'":', b'" : ').replace(b"x", b"\\u0078")
        written.append(line)
    data = b"\n".join(written) + (b"" if odd and chance.random() < 0.1 else b"\n")
    if odd and len(written) > 1 and chance.random() < 0.3:
        at = chance.randrange(len(written[0]) + 1, len(data) + 1)
        match chance.randint(0, 4):
            case 0:
                data = data[:at]
            case 1:
                data = data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
            case 2:
                data = data[:at] + data[at + 1 :]
            case 3:
                data = (
                    data[:at]
                    + chance.choice((b"\n", b"0", b"-", b'"', b"\r", b"e1", b" ", b"\xff"))
                    + data[at:]
                )
            case 4:
                data += b'{"index":'
    return data


def _with_blanks(chance: random.Random, line: bytes) -> bytes:
    """The same JSON with blanks between its parts, as `json.dumps` or a person writes them."""
    parts = re.findall(rb'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^"\[\]{}:,]+', line)
    blanks = chance.choice(((b" ",), (b"", b" "), (b"", b"\t", b"  ", b"\r")))
    return b"".join(part + chance.choice(blanks) for part in parts)


def said(read: Any, data: Any) -> Any:
    """The history, or the words of the error."""
    try:
        return read(data)
    except HistoryError as error:
        return str(error)


def same(ours: Columns, plain: Columns) -> None:
    """Assert that columns say the same, whatever the numbers of words."""
    for name in (
        "invoke",
        "complete",
        "invoke_ns",
        "complete_ns",
        "process",
        "is_final",
        "kind",
        "old",
        "new",
    ):
        assert getattr(ours, name).tolist() == getattr(plain, name).tolist(), name
    assert ours.type.tolist() == plain.type.tolist()
    ended = [end >= 0 for end in ours.complete.tolist()]
    for name in ("f", "key", "node", "role", "mode", "error"):
        told = [[each.words[code] for code in getattr(each, name).tolist()] for each in (ours, plain)]
        if name == "error":
            told = [[word for word, is_over in zip(each, ended, strict=True) if is_over] for each in told]
        assert told[0] == told[1], name


@given(st.integers(0, 1 << 40), st.booleans())
@examples.up_to(300)
def test_a_large_file_is_read_as_a_small_one(tmp_path_factory: Any, seed: int, odd: bool) -> None:
    """A verdict would hang on the size of the file: an error unseen, an operation read wrongly, other words."""
    path = tmp_path_factory.mktemp("columns") / "history.jsonl"
    data = record(random.Random(seed), odd=odd)
    path.write_bytes(data)
    ours, plain = said(jsonl.read, path), said(jsonl.parse, data)
    assert ours == plain
    if odd or not isinstance(ours, History):
        return
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(lines, "ODD_MAX", -(1 << 30))  # no line of a client is left to us
        ours = jsonl.read(path)
    assert isinstance(ours.operations, StoredOperations)
    made = of_operations(plain.operations)
    assert made is not None
    same(ours.operations.columns, made)
    assert (ours.names, ours.outcomes, ours.has_finals) == (plain.names, plain.outcomes, plain.has_finals)
    again = jsonl.read(path)
    assert isinstance(again.operations, StoredOperations)
    some = numpy.arange(0, len(plain.operations), 3)
    assert list(again.operations.at(some)) == list(plain.operations[::3])


def test_some_odd_files_are_columns_too(tmp_path: Path) -> None:
    """The test above would compare the reader of objects with itself."""
    stored = 0
    for seed in range(60):
        path = tmp_path / f"{seed}.jsonl"
        path.write_bytes(record(random.Random(seed), odd=True))
        found = said(jsonl.read, path)
        stored += isinstance(found, History) and isinstance(found.operations, StoredOperations)
    assert stored > 20


@given(st.integers(0, 1 << 40), st.booleans())
@examples.up_to(150)
def test_rows_of_lines_are_those_of_objects(tmp_path_factory: Any, seed: int, odd: bool) -> None:
    """The copy of a large record would say something else than the record, or would have other row groups."""
    folder = tmp_path_factory.mktemp("columns")
    data = record(random.Random(seed), odd=odd)
    (folder / "history.jsonl").write_bytes(data)
    ours = said(jsonl.read, folder / "history.jsonl")
    if not isinstance(ours, History):
        return
    parquet.write(folder / "ours.parquet", ours)
    parquet.write(folder / "plain.parquet", jsonl.parse(data))
    assert (folder / "ours.parquet").read_bytes() == (folder / "plain.parquet").read_bytes()


def test_some_odd_records_have_rows_of_lines(tmp_path: Path) -> None:
    """The test above would compare the rows of objects with themselves."""
    scanned = 0
    for seed in range(60):
        (tmp_path / f"{seed}.jsonl").write_bytes(record(random.Random(seed), odd=True))
        found = said(jsonl.read, tmp_path / f"{seed}.jsonl")
        events = found.events if isinstance(found, History) else ()
        scanned += isinstance(events, StoredEvents) and events.scan is not None
    assert scanned > 20


@pytest.mark.parametrize("many", [0, 5, 12])
def test_codes_are_as_wide_as_the_words_are_many(
    many: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operation would have the name, the node or the error of another one."""
    path = tmp_path / "history.jsonl"
    data = record(random.Random(4), odd=False)
    path.write_bytes(data)
    monkeypatch.setattr(columns, "WORDS_MAX", many or columns.WORDS_MAX)
    ours = jsonl.read(path).operations
    plain = of_operations(jsonl.parse(data).operations)
    assert isinstance(ours, StoredOperations) and plain is not None
    assert ours.columns.error.dtype == (numpy.int32 if many else numpy.int16)
    assert len(ours.columns.words) > 5
    same(ours.columns, plain)


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
@pytest.mark.parametrize("times_ns", [(5, 10, 7), (5, 10, 10), (5, 4, 7), (5, 10, 12)])
def test_time_goes_on_over_a_line_that_is_left_to_us(
    rows: int, times_ns: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record whose lines were moved would be judged, if only it is large."""
    monkeypatch.setattr(lines, "ROWS_MAX", rows)
    who: tuple[dict[str, Any], ...] = (
        {"process": 1, "f": "read"},
        {"process": "monitor", "f": "note"},
        {"process": 2, "f": "read"},
    )
    events = [
        {"index": index, "time_ns": time_ns, "type": "invoke", **each}
        for index, (time_ns, each) in enumerate(zip(times_ns, who, strict=True))
    ]
    data = b"".join(line + b"\n" for line in (jsonl.header_line(Header()), *map(msgspec.json.encode, events)))
    path = tmp_path / "history.jsonl"
    path.write_bytes(data)
    assert said(jsonl.read, path) == said(jsonl.parse, data)


WELL_FORMED = {"index": "1", "time_ns": "5", "type": '"ok"', "process": "1", "f": '"read"'}
NINES = "9" * 18
VALUES = "nul nulx nxll nu null1 01 -0 -01 - 00 0 -7 1.5 1e3 1x tru [] [1] [1;2] [1,2 [1,,2] [,1] [1,2]x [1,2,3] [01,2]"
CHANGED = {
    "value": [
        *VALUES.split(),
        "",
        "[1 2]",
        "[ 1 , 2 ]",
        "[nul,1]",
        NINES,
        f"-{NINES}",
        f"{NINES}9",
        f"{NINES}99",
    ],
    "index": ["7", "0", '"1"', "1.0", "01", "null", "-1"],
    "time_ns": ["4", "-5", "null", "5.0", NINES, f"{NINES}9", f"{NINES}99"],
    "type": ['"okk"', '"o"', "null", '"invoke"', "1", '"info"'],
    "process": ['"1"', "null", "2", "1.0", "-1", '"monitor"'],
    "phase": ['"load"', '"final"', '"finall"', "null", "1"],
    "f": ["null", "1", '"write"', '""', r'"r\u0065ad"', r'"read\n"', '"read\x01"', '"read\x7f"'],
    "key": ['"x', 'x"', "1", '"x"y', r'"\\"', '""', "nul", '"x""y"'],
    "node": [r'"\u0061"', r'"\""', '"\x01"', '"\x7f"', '"é"', '"\udcff"'],
    **{
        name: ['"x"']
        for name in ("xxxxsaction", "transaction", "nodes", "erro", "zz", "", "error", "mode", "wait")
    },
}
TWICE = (
    *(',"f":"read"', ',"index":1', ',"process":2,"process":1', ',"value":[1,2],"value":1', ',"type":"fail"'),
    *(',"phase":"final","phase":"load"', ",", ',"f"'),
)


def lines_to_read() -> Iterator[str]:
    """An answer as it should be, and with one part changed, left out, or there twice."""

    def line(fields: dict[str, str]) -> str:
        return "{" + ",".join(f'"{name}":{each}' for name, each in fields.items())

    for name, changed in CHANGED.items():
        yield from (f"{line(WELL_FORMED | {name: each})}}}" for each in changed)
    without_f = {"process": "2", "type": '"invoke"', "f": "null"}
    yield line(WELL_FORMED | without_f) + "}"
    for absent in WELL_FORMED:
        yield f"{line({name: each for name, each in WELL_FORMED.items() if name != absent})}}}"
    yield from (f"{line(WELL_FORMED)}{twice}}}" for twice in TWICE)
    yield from (f"{line(WELL_FORMED)}{end}" for end in ("}", "", "}x", "} \t\r", "}}", "},", "]"))
    yield from ("", " ", "null", "[]", "{}", "{,}", '{"', "x", '"{}"')


def test_lines_are_read_alike_in_files_of_all_sizes(tmp_path: Path) -> None:
    """Of a large record a damaged line would be believed, or a right one be refused, or be another in its copy."""
    asked = b'{"index":0,"time_ns":5,"type":"invoke","process":1,"f":"read"}'
    behind = b'{"index":2,"time_ns":9,"type":"invoke","process":3,"f":"read"}\n'
    path = tmp_path / "history.jsonl"
    for line in lines_to_read():
        told = (jsonl.header_line(Header()), asked, line.encode(errors="surrogateescape"), behind)
        path.write_bytes(b"\n".join(told))
        ours, plain = said(jsonl.read, path), said(jsonl.parse, b"\n".join(told))
        assert ours == plain, line
        if isinstance(ours, History) and (ours.columns.kind != OTHER).all():
            same(ours.columns, of_operations(plain.operations))
        if isinstance(ours, History) and '"x"' in line:
            for name, history in (("ours", ours), ("plain", plain)):
                parquet.write(tmp_path / name, history)
            assert (tmp_path / "ours").read_bytes() == (tmp_path / "plain").read_bytes(), line


@pytest.mark.parametrize(
    ("slots", "starts", "pool"), [(64, 64, 999), (8, 64, 999), (64, 6, 999), (64, 64, 9)]
)
def test_words_have_numbers_of_their_own(slots: int, starts: int, pool: int) -> None:
    """An operation would have the name or the key of another, or a full table would be searched for ever."""
    words = line_kernels.Words(
        numpy.full(slots, -1, numpy.int64), numpy.zeros(pool, numpy.uint8), numpy.zeros(starts, numpy.int64)
    )
    regs = numpy.zeros(line_kernels.REGS, numpy.int64)
    regs[line_kernels.WORDS] = 1
    known: dict[bytes, int] = {}
    for word in (bytes(each) for length in range(4) for each in itertools.product(b"ab", repeat=length)):
        for _ in range(2):
            text = numpy.frombuffer(b"x" + word + b"x", numpy.uint8)
            code = line_kernels.word_of(text, 1, 1 + len(word), regs, words)
            assert code in (known.get(word, len(known) + 1), line_kernels.NEW_WORD)
            if code == line_kernels.NEW_WORD:
                full = 2 * len(known) + 2 >= slots or len(known) + 3 > starts
                assert full or len(b"".join(known)) + len(word) > pool
            else:
                known[word] = code
    assert (
        len(known)
        == {(64, 64, 999): 15, (8, 64, 999): 3, (64, 6, 999): 4, (64, 64, 9): 6}[slots, starts, pool]
    )


INVOKE = {"type": "invoke", "process": 1, "f": "write"}


@pytest.mark.parametrize(
    "told",
    [
        [INVOKE, INVOKE],
        [INVOKE | {"process": 2}, {"type": "ok", "process": 1, "f": "write"}],
        [INVOKE | {"process": 4_095}, {"type": "ok", "process": -1, "f": "write"}],
        [INVOKE | {"role": "owner", "mode": "m", "node": "n1"}, {"type": "ok", "process": 1, "f": "write"}],
        *(
            [INVOKE | {"f": f, "value": asked}, {"type": kind, "process": 1, "f": f, "value": answered}]
            for f in ("write", "cas", "read", "add")
            for kind in ("ok", "fail", "info")
            for asked, answered in [
                *(
                    (asked, answered)
                    for asked in (None, 1, [1, 2])
                    for answered in (None, 1, 2, [1, 2], [2, 2])
                ),
                *(([1, 2], answered) for answered in ([1, 2, 3], [2, 2, 3])),
                *(
                    (asked, answered)
                    for asked in ([1, "a"], [1, 2, 3])
                    for answered in (1, [1, 2], [1, 2, 3])
                ),
            ]
        ),
    ],
)
def test_what_does_not_add_up_is_refused_in_a_large_file(told: list[dict[str, Any]], tmp_path: Path) -> None:
    """A large record in which clients share a process number would be judged, or operations have other values."""
    path = tmp_path / "history.jsonl"
    jsonl.write(path, Header(), [Event(index=at, time_ns=at, **each) for at, each in enumerate(told)])
    ours, plain = said(jsonl.read, path), said(jsonl.parse, path.read_bytes())
    assert ours == plain
    if isinstance(ours, History) and isinstance(ours.operations, StoredOperations):
        made = of_operations(plain.operations)
        assert ours.columns.kind.tolist() == made.kind.tolist()
        if not (made.kind == OTHER).any():  # columns tell no number of such a value
            same(ours.columns, made)


@pytest.mark.parametrize(
    ("asked", "answered"),
    [([["w", "x", 1]], [["w", "y", 1]]), ([["r", "x", None]], [["r", "x", 2]]), ({"a": 1}, 5), (5, 6)],
)
def test_answers_to_other_transactions_are_refused(asked: Any, answered: Any, tmp_path: Path) -> None:
    """A large record in which clients share a process number would be judged."""
    told = [
        Event(index=0, time_ns=0, type="invoke", process=1, f="txn", value=asked),
        Event(index=1, time_ns=1, type="ok", process=1, f="txn", value=answered),
    ]
    jsonl.write(tmp_path / "history.jsonl", Header(), told)
    parquet.write(tmp_path / "history.parquet", History(header=Header(), events=told, operations=()))
    plain = said(jsonl.parse, (tmp_path / "history.jsonl").read_bytes())
    assert isinstance(plain, str) == (asked != [["r", "x", None]])
    assert said(jsonl.read, tmp_path / "history.jsonl") == plain
    assert said(parquet.read, tmp_path / "history.parquet") == plain


def test_no_copy_is_made_of_a_file_that_has_changed(tmp_path: Path) -> None:
    """The copy would tell of lines that were never judged."""
    path = tmp_path / "history.jsonl"
    path.write_bytes(record(random.Random(3), odd=False))
    history = jsonl.read(path)
    with path.open("r+b") as file:
        file.write(b"?" * path.stat().st_size)
    with pytest.raises(HistoryError, match="it has changed meanwhile"):
        parquet.write(tmp_path / "history.parquet", history)


@pytest.mark.long
@given(st.integers(0, 1 << 40), st.booleans())
@examples.up_to(100)
def test_a_large_table_is_read_as_a_small_one(tmp_path_factory: Any, seed: int, odd: bool) -> None:
    """The same record would be judged in two ways."""
    folder = tmp_path_factory.mktemp("columns")
    history = said(jsonl.parse, record(random.Random(seed), odd=odd))
    if not isinstance(history, History):
        return
    parquet.write(folder / "history.parquet", history)
    ours = parquet.read(folder / "history.parquet")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(parquet, "LARGE", 1 << 60)
        assert ours == parquet.read(folder / "history.parquet")
    if odd:
        return
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tables, "ODD_MAX", 0)
        ours = parquet.read(folder / "history.parquet")
    assert isinstance(ours.operations, StoredOperations)
    made = of_operations(history.operations)
    assert made is not None
    same(ours.operations.columns, made)
    table = parquet.opened(folder / "history.parquet").read().combine_chunks()
    batches = table.filter(table["process"].is_valid()).combine_chunks().to_batches()
    straight = tables.operations_in(batches[0]) if batches else None
    assert (straight is None) == (bool((made.kind == OTHER).any()) or not batches)
    if straight is not None:
        same(straight, made)
        numbers = numpy.arange(len(made))
        assert columns.operations_at(made, numbers) == [
            structs.replace(each, wait=None, transaction=None) for each in history.operations
        ]
    again = parquet.read(folder / "history.parquet")
    assert isinstance(again.operations, StoredOperations)
    assert list(again.operations.at(numpy.arange(0, len(again.operations), 3))) == list(ours.operations[::3])


def test_a_table_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    """Columns that a later version added, or texts that are not numbered, would make a file unreadable."""
    import pyarrow.parquet

    plain = jsonl.parse(record(random.Random(3), odd=False))
    parquet.write(tmp_path / "new.parquet", plain)
    table = parquet.opened(tmp_path / "new.parquet").read()
    metadata = {key: value for key, value in table.schema.metadata.items() if key != b"qsync-seal"}
    fields = [
        field.with_type(pyarrow.string()) if pyarrow.types.is_dictionary(field.type) else field
        for field in table.schema
    ]
    old = table.cast(pyarrow.schema(fields)).drop_columns(["wait", "transaction", "error"])
    pyarrow.parquet.write_table(old.replace_schema_metadata(metadata), tmp_path / "old.parquet")
    ours = parquet.read(tmp_path / "old.parquet")
    assert isinstance(ours.operations, StoredOperations)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(parquet, "LARGE", 1 << 60)
        assert ours == parquet.read(tmp_path / "old.parquet")


def test_a_file_that_changes_under_way_is_refused(tmp_path: Path) -> None:
    """A traceback, or operations of two records."""
    path = tmp_path / "history.jsonl"
    path.write_bytes(record(random.Random(3), odd=False))
    history = jsonl.read(path)
    with path.open("r+b") as file:
        file.write(b"?" * path.stat().st_size)
    with pytest.raises(HistoryError, match="it has changed meanwhile"):
        list(history.operations)


def test_shrinking_has_a_budget_of_its_own() -> None:
    """A verdict that is found at once would come when all that was given has gone into its witness."""
    assert checker.for_a_proof(Budget(1, 10**10), 1).steps < 10**9
    assert checker.for_a_proof(Budget(1, 1_000), 5).steps == 50


@given(st.integers(0, 1 << 40), st.booleans())
@examples.up_to(200)
def test_columns_are_judged_as_objects_are(tmp_path_factory: Any, seed: int, observes: bool) -> None:
    """A history of a million operations would have another verdict, witness or proof than a short one."""
    path = tmp_path_factory.mktemp("columns") / "history.jsonl"
    data = record(random.Random(seed), odd=False)
    path.write_bytes(data)
    plain = jsonl.parse(data)
    with over_objects():
        expected = linearizable.check(plain, model="cas-register", failed_cas_observes=observes)
        honest = rollback_honesty.check(plain)
        strongest = (
            by_model.judge(plain, "cas-register", failed_cas_observes=observes) if plain.operations else None
        )
    for history in (jsonl.read(path), plain):
        verdict = linearizable.check(history, model="cas-register", failed_cas_observes=observes)
        assert _without_seconds(verdict) == _without_seconds(expected)
        assert _without_seconds(rollback_honesty.check(history)) == _without_seconds(honest)
        if strongest is not None:
            ours = by_model.judge(history, "cas-register", failed_cas_observes=observes)
            assert (ours.result, ours.violations, ours.strongest) == (
                strongest.result,
                strongest.violations,
                strongest.strongest,
            )


def _without_seconds(verdict: Verdict) -> dict[str, Any]:
    """The verdict without the time that it took, and without what the order of two algorithms decides."""
    found = verdict.to_json() | {"seconds": 0}
    details = dict(found["details"])
    for name in ("configurations_max", "decided_by"):
        details.pop(name, None)
    return {**found, "details": details}


@given(calls())
def test_orders_are_placed_alike(drawn: list[Any]) -> None:
    """A proof of a large history would be refused."""
    drawn = [call for call in drawn if call.complete is not None or call.action.kind != "observe"]
    drawn.sort(key=lambda call: call.invoke)
    found = search(Register(), drawn, Limits())
    if found.result == "yes" and found.log is not None:
        columns, _ = register_columns(drawn, (None,))
        assert placed_columns(columns, list(found.log)) == placed(Register(), drawn, found.log, None)
