"""Files of a real vinyl engine (`vinyl/README.md`): what their rows mean, and that damage is seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.systems.qsync.log_rows import rows_as_json
from nodes.iproto import vinyl, xlog
from nodes.iproto.errors import XlogError
from nodes.iproto.inspection import inspect

FILES = {path.name: path.read_bytes() for path in sorted((Path(__file__).parent / "vinyl").glob("0*"))}
VYLOG, RUN, INDEX, SECOND = (
    FILES[f"000000000000000000{name}"] for name in ("00.vylog", "06.run", "06.index", "08.run")
)


def test_each_kind_is_named_and_good() -> None:
    """A person could not tell what a file of vinyl is, or would be told that it is damaged."""
    assert inspect(VYLOG).sentence.startswith("vinyl log of 2.6.0-0-g47aa4e01e from {} on: good: 15 rows")
    assert inspect(RUN).sentence.startswith("vinyl run of 2.6.0-0-g47aa4e01e: good: 21 rows")
    assert inspect(INDEX).sentence.startswith("page index of a vinyl run of 2.6.0-0-g47aa4e01e: good: 2 rows")
    assert all(inspect(data).is_sound for data in FILES.values())


def test_the_rows_say_what_they_mean() -> None:
    """A record would be shown as numbers, or as another."""
    records = [row["body"] for row in rows_as_json(VYLOG)]
    assert records[:2] == [
        {"record": "snapshot"},
        {"record": "prepare_lsm", "space_id": 512, "key_def": [{"field": 0, "type": "unsigned"}]},
    ]
    assert {"record": "create_run", "lsm_id": 2, "run_id": 4, "dump_lsn": 24, "dump_count": 1} in records
    statements = rows_as_json(RUN)
    assert [row["lsn"] for row in statements[:20]] == list(range(5, 25))
    assert statements[0]["body"] == {"tuple": [1, "name1", 10]} and statements[20]["type"] == "ROW_INDEX"
    assert [row["type"] for row in rows_as_json(SECOND)] == ["DELETE"] * 5 + ["REPLACE", "ROW_INDEX"]
    info, page = rows_as_json(INDEX)
    assert info["type"] == "RUN_INFO" and page["type"] == "PAGE_INFO"
    assert page["body"] == {
        "offset": 85,
        "size": 445,
        "row_count": 20,
        "min_key": [1],
        "unpacked_size": 426,
        "row_index_offset": 339,
    }


def test_packed_pages_are_read() -> None:
    """Runs of more than 2 KiB are packed: they would be shown as damaged."""
    header = VYLOG[: xlog.rows_at(VYLOG)].replace(b"VYLOG", b"RUN").replace(b"VClock: {}\n", b"")
    rows = b"".join(_rows(RUN)) * 20
    data = header + xlog.encode_packed([rows]) + xlog.encode_eof()
    assert bytes.fromhex("d5ba0bba") in data and len(vinyl.decode(data).rows) == 20 * 21


def _rows(data: bytes) -> list[bytes]:
    found = xlog.plain_block(data, xlog.rows_at(data))
    assert found is not None
    return [found[0][19:]]


@pytest.mark.parametrize("name", FILES)
def test_damage_is_one_line(name: str) -> None:
    """A damaged file would pass, or end in a traceback."""
    data = FILES[name]
    begins = xlog.rows_at(data)
    for place in range(begins, len(data), 7):
        flipped = data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :]
        found = inspect(flipped)
        assert not found.is_sound and "damaged" in found.sentence
        assert isinstance(rows_as_json(flipped), list)
    cut = inspect(data[:-4])
    assert cut.is_sound is name.endswith(".vylog"), "a run without its end marker is not whole"
    assert not inspect(data[: begins // 2]).is_sound


def test_no_file_of_vinyl_is_a_log() -> None:
    """An audit would take statements of a run for the rows of a log."""
    for data in FILES.values():
        with pytest.raises(XlogError, match="expected an XLOG or SNAP of version"):
            xlog.decode(data)
