"""Logs whose rows are whole transactions are good, and those with a part of one are damaged, whatever the part is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nodes.iproto import xlog
from nodes.iproto.inspection import inspect
from nodes.iproto.messages import Row, Type
from nodes.iproto.transactions import flaw_in
from tests import examples

INSTANCE = "7170b4a6-5a1d-4a0c-a8ae-0f7ba5b0a1e7"
SHAPES = st.lists(st.lists(st.booleans(), min_size=1, max_size=5), min_size=1, max_size=4)
"""Of each transaction, which of its rows are local."""


def transactions_of(shapes: list[list[bool]], origin: int = 1) -> list[list[Row]]:
    """As Tarantool and ours number them: by the first row that is not local."""
    lsn = {0: 0, origin: 0}
    found = []
    for shape in shapes:
        rows = []
        for is_local in shape:
            replica = 0 if is_local else origin
            lsn[replica] += 1
            body = {0x10: 512, 0x21: (lsn[replica], 1)}
            rows.append(
                Row(Type.REPLACE.value, replica, lsn[replica], 1.0, 0, group_id=int(is_local), body=body)
            )
        head = next((row for row in rows if row.replica_id), rows[0])
        found.append([replace(row, tsn=head.lsn, is_commit=row is rows[-1]) for row in rows])
    return found


def file_of(rows: list[Row], *, block: int = 1, version: str = "3.2.0", eof: bool = True) -> bytes:
    parts = [rows[at : at + block] for at in range(0, len(rows), block)]
    data = xlog.encode_header("XLOG", INSTANCE, {}, server_version=version)
    return data + b"".join(map(xlog.encode_block, parts)) + (xlog.encode_eof() if eof else b"")


@given(SHAPES, st.integers(1, 4))
def test_whole_transactions_are_good(shapes: list[list[bool]], block: int) -> None:
    """Broken, a log of local and replicated rows, as any Tarantool writes it, is called damaged."""
    rows = [row for each in transactions_of(shapes) for row in each]
    assert flaw_in(xlog.decode(file_of(rows, block=block))) is None


@examples.up_to(300)
@given(SHAPES.filter(lambda shapes: any(len(each) > 1 for each in shapes)), st.data())
def test_a_part_of_a_transaction_is_damage(shapes: list[list[bool]], data: st.DataObject) -> None:
    """Broken, rows that are gone pass for rows that were never written."""
    whole = transactions_of(shapes)
    number = data.draw(st.sampled_from([at for at, each in enumerate(whole) if len(each) > 1]))
    rows = whole[number]
    before = [row for each in whole[:number] for row in each]
    behind = [row for each in whole[number + 1 :] for row in each]
    # A local row and the next row of a replica may have one number: then they are a transaction.
    assume(not behind or behind[0].tsn != rows[0].tsn)
    of_origin = [row for row in rows if row.replica_id == rows[-1].replica_id]
    match data.draw(st.sampled_from(["no end", "no first row", "a gap", "interleaved"])):
        case "no end":
            damaged = [*before, *rows[:-1], *behind]
        case "no first row":
            head = next((row for row in rows if row.replica_id), rows[0])
            left = rows[rows.index(head) + 1 :]
            assume(not left or left[0].tsn != left[0].lsn)  # a row with its own number begins a transaction
            damaged = [*before, *left, *behind]
            if rows[-1] is head:
                damaged = [*before, *rows[:-1], *behind]
        case "a gap" if len(of_origin) > 2:
            damaged = [*before, *(row for row in rows if row is not of_origin[1]), *behind]
        case _:
            single = Row(Type.REPLACE.value, 2, 77, 1.0, 77, body={0x10: 512, 0x21: (7, 7)})
            damaged = [*before, *rows[:1], single, *rows[1:], *behind]
    for eof in (True, False):
        found = inspect(file_of(damaged, eof=eof))
        assert not found.is_sound
        assert not found.is_torn, "a crash tears blocks"
        flaw = flaw_in(xlog.decode(file_of(damaged, eof=eof)))
        assert flaw is not None and flaw.good == len(before)


def test_a_decision_stands_in_no_transaction() -> None:
    """Broken, a CONFIRM that Tarantool refuses decides about a queue."""
    ((first, second),) = transactions_of([[False, False]])
    confirm = Row(Type.CONFIRM.value, 1, 2, 1.0, 1, is_commit=False, body={2: 1, 3: 1})
    assert flaw_in(xlog.decode(file_of([first, confirm, replace(second, lsn=3)]))) is not None


def test_a_replica_of_2_6_that_wrote_local_rows_has_a_good_log() -> None:
    """Broken, a log that real Tarantool 2.6.0 wrote, and reads again, is called damaged: until 2.11.1 a transaction of
    the master got the number of the rows that a trigger of the replica wrote behind it."""
    rows = [
        Row(Type.REPLACE.value, 1, 1, 1.0, 1, body={16: 512, 33: (1, 1)}),
        Row(Type.REPLACE.value, 1, 2, 1.0, 1, is_commit=False, body={16: 513, 33: (1, 1)}),
        Row(Type.NOP.value, 1, 3, 1.0, 1, is_commit=False),
        Row(Type.REPLACE.value, 1, 4, 1.0, 1, body={16: 513, 33: (3, 1)}),
        Row(Type.REPLACE.value, 0, 1, 1.0, 1, is_commit=False, group_id=1, body={16: 512, 33: (101, 1)}),
        Row(Type.NOP.value, 2, 1, 1.0, 1),
    ]
    assert flaw_in(xlog.decode(file_of(rows, version="2.6.0-0-g47aa4e01e"))) is None
    assert flaw_in(xlog.decode(file_of(rows))) is not None
    without = [rows[0], *rows[2:]]
    assert flaw_in(xlog.decode(file_of(without, version="2.6.0-0-g47aa4e01e"))) is not None, "a gap"


@pytest.mark.parametrize("cut", range(1, 120, 7))
def test_a_crash_in_the_middle_of_a_transaction_is_a_torn_tail(cut: int) -> None:
    """Broken, a log that a kill has torn counts as one from which rows were taken."""
    rows = [row for each in transactions_of([[False] * 3, [False] * 4]) for row in each]
    data = (
        xlog.encode_header("XLOG", INSTANCE, {}) + xlog.encode_block(rows[:3]) + xlog.encode_block(rows[3:])
    )
    found = inspect(data[:-cut])
    assert found.is_torn
    assert "damaged, as a crash leaves it" in found.sentence
