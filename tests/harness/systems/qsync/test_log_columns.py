"""Logs that are read as columns hold the same records as those that are read as objects, whatever befell the files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.compiled import AS_COMPILED, PLAIN_VARIABLE
from checkers.history.line_kernels import ABSENT
from checkers.logs.wal import LogRules, NodeLog, Record, check
from checkers.logs.wal.columns import KINDS, UNTOLD, Rows
from checkers.logs.wal.plain import StoredRecords, StoredTuples
from checkers.logs.wal.record import NotPlain
from checkers.logs.wal.row_kernels import ENDS, SYNCHRONOUS
from harness.systems.qsync import logs
from harness.systems.qsync.log_columns import InColumns
from nodes.iproto import xlog
from nodes.iproto.messages import Row, Type
from nodes.iproto.rows import packed_insert, packed_row

UUID = "7170b4a6-5a1d-4a0c-a8ae-0f7ba5b0a1e7"
IS_PLAIN = os.environ.get(PLAIN_VARIABLE) == AS_COMPILED
TEXTS = ("r0-1", "r1-22", "", "fifteen letters", *(() if IS_PLAIN else ("ä", "\udc80")))
"""Keys. Eight bytes of a text are one number, which machine code alone wraps around if the first is above 127."""
SPACE_ID, KEY, TUPLE = 0x10, 0x20, 0x21


def rows_of_a_leader(chance: Random, count: int) -> list[list[Row]]:
    """Transactions and decisions of replica 1 or 2, in the order of their lsn."""
    found: list[list[Row]] = []
    lsn = dict.fromkeys((0, 1, 2), 0)
    for place in range(count):
        origin = 1 if place < count / 2 else 2

        def row(type_: int, body: dict[int, object], origin: int = origin, **flags: bool) -> Row:
            lsn[origin] += 1
            at = 1_700_000_000 + chance.random()
            return Row(type_, origin, lsn[origin], at, lsn[origin], body=body, **flags)

        def data(space: int = 512) -> Row:
            key = chance.choice(TEXTS[:5])
            value = chance.choice((lsn[1], 1 << 40, 0, 127, 128, 300, 70_000))
            if chance.random() < 0.2:
                return row(Type.DELETE, {SPACE_ID: space, KEY: (key,)}, wait_sync=True, wait_ack=True)
            return row(Type.REPLACE, {SPACE_ID: space, TUPLE: (key, value)}, wait_sync=True, wait_ack=True)

        match chance.randrange(9):
            case 0 | 1 | 2 | 3:
                found.append([data()])
            case 4:
                found.append([row(Type.CONFIRM, {2: origin, 3: lsn[origin]})])
            case 5:
                found.append([row(Type.PROMOTE, {2: 1, 3: 7, 0x53: place}, wait_sync=True)])
            case 6:
                found.append([row(Type.NOP, {})])
            case 7:
                several = [data() for _ in range(chance.choice((2, 3, 90)))]
                first = several[0].lsn
                each = [replace(one, tsn=first, is_commit=one is several[-1]) for one in several]
                found.append(each)
            case 8:
                found.append([row(Type.RAFT, {0: place, 1: 1}, origin=0)])
    return found


def _at_another_time(chance: Random, block: list[Row]) -> list[Row]:
    """Seldom: what a node has is what its origin wrote."""
    return [replace(row, timestamp=row.timestamp + 1) for row in block] if chance.random() < 0.05 else block


def files_of(chance: Random, blocks: Sequence[Sequence[Row]]) -> dict[str, bytes]:
    """One or two files, of which the last one may be torn and any of them damaged."""
    cut = chance.choice((len(blocks), chance.randint(0, len(blocks))))
    vclock: dict[int, int] = {}
    files: dict[str, bytes] = {}
    for part in (blocks[:cut], blocks[cut:]):
        data = xlog.encode_header("XLOG", UUID, vclock)
        name = xlog.file_name(vclock)
        held = list(part)
        while held:
            many = chance.choice((1, 1, 2, 40))
            data += xlog.encode_block([row for block in held[:many] for row in block])
            held = held[many:]
        for row in (row for block in part for row in block):
            vclock[row.replica_id] = max(row.lsn, vclock.get(row.replica_id, 0))
        files[name] = data + (xlog.encode_eof() if chance.random() < 0.5 else b"")
    last = max(files)
    match chance.randrange(5):
        case 0:
            files[last] = files[last][: chance.randint(0, len(files[last]))]
        case 1:
            spoilt = bytearray(files[min(files)])
            version = range(spoilt.index(b"Version"), spoilt.index(b"Instance"))
            # Files of an older version are read as objects.
            places = [place for place in range(len(spoilt)) if place not in version]
            spoilt[chance.choice(places)] ^= 1 << chance.randrange(8)
            files[min(files)] = bytes(spoilt)
        case 2 if len(files) > 1:
            files[f"removed/{min(files)}"] = files.pop(min(files))
    return files


def told(rows: Rows, at: int) -> tuple[object, ...]:
    """A row of columns, with all that a record of a user's data or of a decision has."""
    waits = int(rows.waits[at])
    kind = KINDS[rows.kind[at]]
    key = None if rows.key[at] < 0 else rows.keys[rows.key[at]]
    value = None if rows.value[at] == ABSENT else int(rows.value[at])
    owner = int(rows.owner[at])
    return (
        *(kind, int(rows.origin[at]), int(rows.lsn[at]), int(rows.first[at])),
        *(bool(rows.bits[at] & ENDS), bool(rows.bits[at] & SYNCHRONOUS), int(rows.space[at]), key, value),
        *(owner, int(rows.until[at]), int(rows.term[at]), None if waits == UNTOLD else bool(waits)),
        int(rows.time[at]),
    )


def expected(row: Record) -> tuple[object, ...]:
    is_data = row.kind == "write"
    return (
        *(row.kind, row.origin, row.lsn, row.first, row.ends, row.is_synchronous, row.space),
        *(row.key if is_data else None, row.tuple[1] if row.tuple else None),
        *(row.vote if row.kind == "vote" else row.owner, row.until, row.term, row.waits, row.time_ns),
    )


@given(st.integers(0, 1 << 40))
def test_columns_hold_the_same_records(seed: int) -> None:
    """Breaks if the kernel read a row otherwise, took one from a damaged block, or left one out."""
    chance = Random(seed)
    blocks = rows_of_a_leader(chance, chance.randint(0, 25))
    with TemporaryDirectory() as folder:
        for node in ("n1", "n2"):
            own = [_at_another_time(chance, block) for block in blocks if chance.random() < 0.95]
            for name, data in files_of(chance, own).items():
                path = Path(folder) / node / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        plain = logs.read_logs(Path(folder))
        with patch.object(logs, "LARGE", 0):
            columns = logs.read_logs(Path(folder))
        is_given_up = not any(isinstance(log.records, StoredRecords) for log in columns)
        assert not is_given_up or not plain, "given up for nothing"
        for one, other in zip(columns, plain, strict=True):
            compare(one, other)


def compare(columns: NodeLog, plain: NodeLog) -> None:
    for name in ("node", "begins", "damage", "instance", "members", "snapshots"):
        assert getattr(columns, name) == getattr(plain, name)
    records = columns.records
    if isinstance(records, StoredRecords):
        assert [told(records.rows, at) for at in records.at.tolist()] == [
            expected(row) for row in plain.records
        ]
    assert list(records) == list(plain.records)


def user_tuples(chance: Random) -> list[tuple[int, tuple[object, ...]]]:
    """Spaces of users and tuples. One key may come twice: the later tuple counts."""
    numbers = (0, 1, 127, 128, 255, 256, 70_000, 1 << 40, 1 << 60)
    return [
        (chance.choice((512, 513, 70_000)), (chance.choice(TEXTS), chance.choice(numbers)))
        for _ in range(chance.choice((0, 1, 5, 60)))
    ]


def snapshot_of(rows: Sequence[bytes], chance: Random) -> bytes:
    """Of packed rows, in blocks."""
    data = xlog.encode_header("SNAP", UUID, {1: 7})
    held = list(rows)
    while held:
        many = chance.choice((1, 5, 1000))
        data += xlog.encode_packed(held[:many])
        held = held[many:]
    return data + xlog.encode_eof()


EXTENSIONS = [msgspec.msgpack.Ext(1, bytes(size)) for size in (1, 2, 3, 4, 8, 16, 17, 256, 65_536)]
OF_SYSTEM = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False)
    | st.sampled_from([size * "x" for size in (0, 31, 32, 255, 256, 65_536)])
    | st.sampled_from([bytes(size) for size in (0, 255, 256, 65_536)])
    | st.sampled_from(EXTENSIONS),
    lambda inner: st.lists(inner, max_size=17) | st.dictionaries(st.text(max_size=2), inner, max_size=17),
    max_leaves=20,
)
"""Every form that msgpack has."""


@given(st.integers(0, 1 << 40), st.lists(OF_SYSTEM, max_size=6))
def test_columns_hold_the_same_tuples_of_snapshots(seed: int, of_system: list[object]) -> None:
    """Breaks if the kernel took a row for one of users that is none, left one out, or lost its way in a value."""
    chance = Random(seed)
    pairs = user_tuples(chance)
    rows = [packed_insert((530, ("k", 1)), 3, 1.5), *(packed_insert(pair, 3, 1.5) for pair in pairs)]
    for body in of_system:
        header = msgspec.msgpack.encode({0: 2, 3: 1 << chance.randrange(40), 4: 0.5})
        rows.insert(chance.randint(0, len(rows)), header + msgspec.msgpack.encode({0x10: 281, 0x21: [body]}))
    short_float = bytes.fromhex("8210cd01192191ca3f800000")
    rows.insert(chance.randint(0, len(rows)), msgspec.msgpack.encode({0: 2}) + short_float)
    rows.append(packed_row(Row(Type.NOP, 0, 1, 0.5, 1)))
    files = {"0.xlog": xlog.encode_header("XLOG", UUID, {}), "1.snap": snapshot_of(rows, chance)}
    (columns,) = logs.log_of("n1", files, InColumns(1)).snapshots
    (plain,) = logs.log_of("n1", files).snapshots
    assert isinstance(columns.tuples, StoredTuples)
    assert dict(columns.tuples) == dict(plain.tuples)
    assert len(columns.tuples) == len(plain.tuples)


@pytest.mark.parametrize(
    "odd", [("k", 1.5), ("k", None), ("sixteen letters.", 1), (1, 1), ("k", 1, 2), ("k", True)]
)
def test_a_tuple_that_has_no_place_in_columns(odd: tuple[object, ...]) -> None:
    """It is not left out: the logs are read as objects."""
    files = {
        "0.xlog": xlog.encode_header("XLOG", UUID, {}),
        "1.snap": snapshot_of([packed_insert((512, odd), 3, 1.5)], Random(1)),
    }
    with pytest.raises(NotPlain):
        logs.log_of("n1", files, InColumns(1))


@pytest.mark.parametrize("odd", [("k", -1), ("k", -(1 << 40))])
def test_a_tuple_that_the_kernel_does_not_take(odd: tuple[object, ...]) -> None:
    files = {
        "0.xlog": xlog.encode_header("XLOG", UUID, {}),
        "1.snap": snapshot_of([packed_insert((512, odd), 3, 1.5)], Random(1)),
    }
    (snapshot,) = logs.log_of("n1", files, InColumns(1)).snapshots
    assert dict(snapshot.tuples) == {(512, "k"): odd}


@pytest.mark.parametrize(
    ("row", "what"),
    [
        (Row(Type.NOP, 1, (1 << 64) - 1, 0.5, (1 << 64) - 1), "expected numbers below 9223372036854775808"),
        (Row(Type.NOP, 1 << 20, 1, 0.5, 1), "expected a replica below 32768, got 1048576"),
        (Row(Type.CONFIRM, 1, 1, 0.5, 1, body={2: 1 << 40, 3: 1}), "expected a replica below 32768"),
        (Row(Type.CONFIRM, 1, 1, 0.5, 1, body={2: 1, 3: 1 << 63}), "expected numbers below"),
        (Row(Type.NOP, 1, 1, float("nan"), 1), "expected the time of a row in seconds since 1970, got nan"),
        (Row(Type.NOP, 1, 1, 1e300, 1), "expected the time of a row in seconds since 1970, got 1e+300"),
    ],
)
@pytest.mark.parametrize("in_columns", [False, True])
def test_numbers_that_no_store_counts_to_are_damage(row: Row, what: str, in_columns: bool) -> None:
    """Broken, the audit of such a log ends with an error of arrays, or reads a time that nobody wrote."""
    data = xlog.encode_header("XLOG", UUID, {}) + xlog.encode_block([row])
    log = logs.log_of("n1", {"0.xlog": data}, InColumns(len(data)) if in_columns else None)
    assert log.damage is not None and what in log.damage
    assert check([log], LogRules()).result == "unknown"


@pytest.mark.parametrize("vclock", [{1: 1 << 63}, {1 << 15: 1}])
def test_a_vclock_that_no_store_comes_to_is_damage(vclock: dict[int, int]) -> None:
    files = {
        "0.xlog": xlog.encode_header("XLOG", UUID, vclock),
        "1.snap": xlog.encode_header("SNAP", UUID, vclock) + xlog.encode_eof(),
    }
    log = logs.log_of("n1", files)
    assert log.damage is not None and "names what no store counts to" in log.damage
    assert len(log.unread) == 1 and not log.snapshots
    assert check([log], LogRules()).result == "unknown"


@pytest.mark.parametrize("time_s", [-1.0, -0.0, 5e-324, 9.2e9])
def test_columns_hold_odd_times_as_objects_do(time_s: float) -> None:
    """Broken, a row from before 1970, which a wrong clock writes, stops one way of reading and not the other."""
    data = xlog.encode_header("XLOG", UUID, {}) + xlog.encode_block([Row(Type.NOP, 1, 1, time_s, 1)])
    times = []
    for shared in (None, InColumns(len(data))):
        log = logs.log_of("n1", {"0.xlog": data}, shared)
        assert log.damage is None
        times += [record.time_ns for record in log.records]
    assert times == [int(time_s * 1e9)] * 2
