"""`qsync xlog`: one line a file, and an exit code that a script can trust."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgpack import ExtType, Timestamp  # type: ignore[import-untyped]  # it ships no types

from harness.cli.verbs.xlog import command
from harness.errors import WrongUse
from nodes.iproto import xlog
from nodes.iproto.messages import Row, Type

INSTANCE = "7170b4a6-5a1d-4a0c-a8ae-0f7ba5b0a1e7"
ROW = Row(Type.REPLACE.value, 1, 1, 1.5, 1, body={0x10: 512, 0x21: ("k", 1)})
LOG = xlog.encode_header("XLOG", INSTANCE, {}) + xlog.encode_block([ROW])


def said(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(command, arguments, standalone_mode=False, catch_exceptions=False)
    return result.return_value, result.output


def test_a_good_file_and_its_rows(tmp_path: Path) -> None:
    """Broken, a person could not look into a node's log without Tarantool's own tool."""
    path = tmp_path / "00000000000000000000.xlog"
    path.write_bytes(LOG)
    code, output = said(str(tmp_path), "--rows")
    line, row = output.splitlines()
    assert code == 0
    assert line.startswith(f"{path}: log of 3.2.0 from {{}} on: good: 1 rows")
    assert json.loads(row)["body"] == {"space_id": 512, "tuple": ["k", 1]}


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (b"\xff\x00", "ff00"),
        ("\udcff", "\udcff"),
        ({b"\x01": 2}, {"01": 2}),
        ({ExtType(5, b"\x02"): 3}, {"[5, '02']": 3}),
        ([ExtType(5, b"\x02"), None], [[5, "02"], None]),
        (Timestamp(1, 0), [-1, "00000001"]),
        ([float("inf"), {float("-inf"): float("nan")}], ["inf", {"-inf": "nan"}]),
    ],
)
@pytest.mark.parametrize("kind", ["XLOG", "VYLOG"])
def test_rows_with_values_that_json_lacks(tmp_path: Path, kind: str, given: object, shown: object) -> None:
    """Broken, one such value in a log of Tarantool ends the listing of it with a traceback."""
    row = replace(ROW, body={0x10: 512, 0x21: ("k", given)})
    data = xlog.encode_header("XLOG", INSTANCE, {}) + xlog.encode_block([row]) + xlog.encode_eof()
    path = tmp_path / "00000000000000000000.xlog"
    path.write_bytes(data.replace(b"XLOG", kind.encode(), 1))
    code, output = said(str(path), "--rows")
    assert code == 0
    assert json.loads(output.splitlines()[1])["body"]["tuple"] == ["k", shown]


def test_a_row_that_is_nested_deeper_than_python(tmp_path: Path) -> None:
    """Broken, one tuple that Tarantool takes ends the listing of a good log with a traceback."""
    nested: list[object] = []
    for _ in range(500):
        nested = [nested]
    (path := tmp_path / "00000000000000000000.xlog").write_bytes(
        xlog.encode_header("XLOG", INSTANCE, {})
        + xlog.encode_block([replace(ROW, body={0x10: 512, 0x21: (nested,)}), replace(ROW, lsn=2, tsn=2)])
    )
    code, output = said(str(path), "--rows")
    deep, flat = map(json.loads, output.splitlines()[1:])
    assert code == 0
    assert "91" * 500 + "90" in deep["body"]
    assert flat["body"] == {"space_id": 512, "tuple": ["k", 1]}


def test_a_damaged_file(tmp_path: Path) -> None:
    """Broken, a script that asks whether a file is good would be told that a damaged one is."""
    path = tmp_path / "damaged.xlog"
    path.write_bytes(LOG[:-1])
    code, output = said(str(path))
    assert code == 1
    assert "the 0 rows in the first" in output
    assert len(output.splitlines()) == 1


def test_a_folder_without_logs_is_named(tmp_path: Path) -> None:
    """If it failed, a node whose folder is empty would count as a node with sound logs."""
    path = tmp_path / "00000000000000000000.xlog"
    path.write_bytes(LOG)
    (tmp_path / "n2").mkdir()
    with pytest.raises(WrongUse, match=r"n2: expected .* found none"):
        said(str(path), str(tmp_path / "n2"))
