"""Files of records: what a crash leaves of the last one is cut off, and damage before that is refused."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.kernel.errors import StartRefused
from nodes.records import framed, records_of
from nodes.twophase.wal import read_log

RECORDS = st.lists(
    st.tuples(st.sampled_from(["start", "finish"]), st.text(max_size=9), st.integers(0, 9)).map(list)
)


@given(RECORDS.filter(bool), st.data())
def test_a_file_cut_anywhere_keeps_its_whole_records(
    records: list[list[object]], data: st.DataObject
) -> None:
    """If it failed, a torn write would cost more than itself, or be read."""
    whole = [framed(record) for record in records]
    kept = data.draw(st.integers(0, sum(map(len, whole))))
    zeros = data.draw(st.sampled_from([0, 3, 64])) if kept < sum(map(len, whole)) else 0
    found, end = records_of("wal", b"".join(whole)[:kept] + bytes(zeros))
    ends = list(accumulate(map(len, whole)))
    count = sum(end <= kept for end in ends)
    if zeros and found[count:] == [records[count]]:
        count += 1  # what was lost of it were zeros
    assert (found, end) == (records[:count], ends[count - 1] if count else 0)


@given(RECORDS.filter(lambda records: len(records) > 1), st.data())
def test_damage_before_a_whole_record_is_refused(records: list[list[object]], data: st.DataObject) -> None:
    """If it failed, a node would forget what it has answered."""
    whole = [framed(record) for record in records]
    spoilt = bytearray(b"".join(whole))
    spoilt[data.draw(st.integers(0, len(b"".join(whole[:-1])) - 1))] ^= 0x55
    with pytest.raises(StartRefused, match="damaged at byte"):
        records_of("wal", bytes(spoilt))


def test_a_missing_file_is_refused() -> None:
    """If it failed, a log with a gap would be read as if nothing had been there."""
    one, three = framed(["rolled-back", "x"]), framed(["rolled-back", "y"])
    with pytest.raises(StartRefused, match=r"expected wal-000002\.log"):
        read_log({"wal-000001.log": one, "wal-000003.log": three})
    with pytest.raises(StartRefused, match="goes on in the next file"):
        read_log({"wal-000001.log": one[:-1], "wal-000002.log": three})
    records, lengths = read_log({"wal-000001.log": one, "wal-000002.log": three[:-1], "life": b"1"})
    assert records == [["rolled-back", "x"]]
    assert lengths == {"wal-000001.log": len(one), "wal-000002.log": 0}
