"""Traces as files, their damage, the neighbourhood of a witness, and the export for ShiViz."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy
import pyarrow
import pyarrow.parquet
import pytest

from checkers.cuts import Cut, Given, Trace, check, jsonl, messages, neighbourhood, parquet, trace_of
from checkers.cuts.links import Links
from checkers.history.errors import HistoryError
from tests.checkers.cuts import scripts

SCRIPT = {"n1": "*k1 +a>c +f>n2 | +g>n2", "c": "-a +b>n2", "n2": "-b *k1 -f -g -z"}
WHOLE = b'["life","n1",1,5,0]\n["send",1,"n2","prepare","t1",7]\n["mark","cut",{"cut":"k1"},9]\n'


def _same(one: Trace, other: Trace) -> None:
    for field in fields(Trace):
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        assert numpy.array_equal(mine, theirs) if isinstance(mine, numpy.ndarray) else mine == theirs, (
            field.name
        )


def test_a_trace_is_the_same_from_lines_and_from_parquet(tmp_path: Path) -> None:
    """A column is lost, or changed, in a file."""
    trace = scripts.trace(SCRIPT, {("n2", 1): "torn"})
    lines = b"".join(jsonl.lines_of(scripts.trace(SCRIPT)))
    (tmp_path / "all.jsonl").write_bytes(lines)
    _same(scripts.trace(SCRIPT), jsonl.read([tmp_path / "all.jsonl"]))
    parquet.write(tmp_path / "trace.parquet", trace)
    _same(trace, parquet.read(tmp_path / "trace.parquet"))


def test_verdicts_need_no_words(tmp_path: Path) -> None:
    """The columns that verdicts can do without change one."""
    trace = scripts.trace(SCRIPT)
    parquet.write(tmp_path / "trace.parquet", trace)
    bare = parquet.read(tmp_path / "trace.parquet", whole=False)
    assert len(bare.what) == len(bare.time_ns) == 0
    given = Given(cuts=[Cut(id="k1")], trace=bare)
    assert check(given).of("messages", "k1").result == "invalid"
    parquet.write(tmp_path / "bare.parquet", bare)
    _same(bare, parquet.read(tmp_path / "bare.parquet"))


@pytest.mark.parametrize("damage", [b"", b"PAR1", None], ids=["empty", "cut off", "a changed byte"])
def test_a_damaged_parquet_is_refused(tmp_path: Path, damage: bytes | None) -> None:
    """A trace that has changed is judged."""
    path = tmp_path / "trace.parquet"
    parquet.write(path, scripts.trace(SCRIPT))
    whole = path.read_bytes()
    path.write_bytes(whole[:20] + bytes([whole[20] ^ 255]) + whole[21:] if damage is None else damage)
    with pytest.raises(HistoryError, match=r"trace\.parquet"):
        parquet.read(path)


def test_no_bit_of_the_footer_can_change(tmp_path: Path) -> None:
    """A flipped bit in lives, marks or cuts gives another verdict: Parquet has no checksum of its footer."""
    path = tmp_path / "trace.parquet"
    parquet.write(path, scripts.trace(SCRIPT))
    whole = path.read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    for at in range(footer, len(whole), 3):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(HistoryError, match=r"trace\.parquet"):
            parquet.read(path, whole=False)


def test_a_file_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    """Stored traces, which have no seal, are refused."""
    table, head = _table(tmp_path)
    _same(parquet.read(_written(tmp_path, table, head)), scripts.trace(SCRIPT))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            ("marks", [[10**30, 0, 0]]),
            ("marks", [[99, 0, 0]]),
            ("marks", [[-1, 0, 0]]),
            ("marks", [[0, 7, 0]]),
            ("marks", [[0, -1, 0]]),
            ("marks", [[1, 0, 0]]),
            ("words", ["x"] * 9),
        ),
        *(
            ("words", []),
            ("peers", []),
            ("kind", 9),
            ("peer", 9),
            ("seq", -1),
            ("seq", [{"a": 1}]),
            ("xid", [[1]]),
        ),
    ],
)
def test_a_code_that_stands_for_nothing_is_refused(tmp_path: Path, name: str, value: Any) -> None:
    """The check of such a file ends with a traceback, or judges rows that are not there."""
    table, head = _table(tmp_path)
    if name in head:
        head[name] = value
    else:
        column = pyarrow.array(value * len(table) if isinstance(value, list) else [value] * len(table))
        kept = column if isinstance(value, list) else column.cast(table.schema.field(name).type)
        table = table.set_column(table.schema.get_field_index(name), name, kept)
    with pytest.raises(HistoryError, match=r"trace\.parquet"):
        parquet.read(_written(tmp_path, table, head))


def test_names_of_transactions_may_be_plain_text(tmp_path: Path) -> None:
    """A table that a program has written again, without its dictionary, ends with a traceback."""
    table, head = _table(tmp_path)
    names = table.column("xid").cast(pyarrow.string())
    table = table.set_column(table.schema.get_field_index("xid"), "xid", names)
    _same(parquet.read(_written(tmp_path, table, head)), scripts.trace(SCRIPT))


def _table(folder: Path) -> tuple[Any, dict[str, Any]]:
    parquet.write(folder / "trace.parquet", scripts.trace(SCRIPT))
    table = pyarrow.parquet.read_table(folder / "trace.parquet")
    return table, msgspec.json.decode(table.schema.metadata[parquet.FORMAT])


def _written(folder: Path, table: Any, head: dict[str, Any]) -> Path:
    table = table.replace_schema_metadata({parquet.FORMAT: msgspec.json.encode(head)})
    pyarrow.parquet.write_table(table, folder / "trace.parquet")
    return folder / "trace.parquet"


@pytest.mark.parametrize(
    ("text", "rows", "torn"),
    [
        (WHOLE + b'["end",11]\n', 2, ""),
        (WHOLE + b'["end",null]\n', 2, ""),
        (WHOLE, 2, 'a life in f has no "end": rows behind its last one may be lost'),
        (WHOLE + b'["end",11]', 2, "f line 4 is torn"),
        (WHOLE[:-1], 1, "f line 3 is torn"),
        (WHOLE[:-5], 1, "f line 3 is torn"),
        (WHOLE + b"\x00\x00\n", 2, "f line 4 is torn"),
        (WHOLE + b'{"no": 1}\n["mark","x",{},9]\n', 2, "f line 4 is torn"),
    ],
    ids=[
        "whole",
        "whole, without a time",
        "no end",
        "half an end",
        "no end of line",
        "half a line",
        "noise",
        "noise before more",
    ],
)
def test_a_line_that_cannot_be_read_tears_its_life(text: bytes, rows: int, torn: str) -> None:
    """Rows behind a damaged line are taken for those that follow it, or rows that are lost for rows that never were."""
    (life,) = jsonl.lives_of("f", text)
    assert (len(life.rows), life.torn) == (rows, torn)


def test_a_recorder_that_writes_no_ends_loses_nothing() -> None:
    """Nothing can be said of the cuts of our own runs, whose processes are killed."""
    (life,) = jsonl.lives_of("f", WHOLE, has_ends=False)
    assert (len(life.rows), life.torn, life.over_ns) == (2, "", -1)
    assert b"".join(jsonl.lines_of(trace_of([life]))) == WHOLE + b'["end",null]\n'
    (torn,) = jsonl.lives_of("f", WHOLE[:-5], has_ends=False)
    assert torn.torn
    assert b'["end"' not in b"".join(jsonl.lines_of(trace_of([torn])))


@pytest.mark.parametrize("kept", [5, 4, 3, 2, 1])
def test_a_life_that_is_cut_off_leaves_its_cuts_open(kept: int) -> None:
    """A cut is consistent by a trace that lacks the row which shows that it is not."""
    lives = {
        "n0": (
            b'["life","n0",1,0,0]',
            *(b'["send",1,"n1","w",null,1]', b'["receive","n1",1,1,4]', b'["mark","cut",{"cut":"k"},5]'),
            b'["end",6]',
        ),
        "n1": (
            b'["life","n1",1,0,0]',
            *(b'["mark","cut",{"cut":"k"},2]', b'["send",1,"n0","w","t1",3]', b'["receive","n0",1,1,10]'),
            b'["end",13]',
        ),
    }
    texts = {name: b"".join(row + b"\n" for row in rows) for name, rows in lives.items()}
    texts["n0"] = b"".join(row + b"\n" for row in lives["n0"][:kept])
    trace = trace_of([life for name, text in texts.items() for life in jsonl.lives_of(name, text)])
    report = check(Given(cuts=[Cut(id="k")], trace=trace, baseline=list(texts)))
    assert report.of("messages", "k").result == ("invalid" if kept >= 4 else "unknown")


def test_the_end_of_a_life_is_no_event() -> None:
    """A life that ended well counts its end as a row, or loses it when it is written again."""
    (life,) = jsonl.lives_of("f", WHOLE + b'["end",11]\n')
    assert (len(life.rows), life.over_ns) == (2, 11)
    trace = trace_of([life])
    assert b"".join(jsonl.lines_of(trace)) == WHOLE + b'["end",11]\n'


@pytest.mark.parametrize("row", [b"[[1],2]", b'[{"a":1}]', b"[null]", b"7"])
def test_a_line_that_is_no_row_tears_its_life(row: bytes) -> None:
    """The command would end with a traceback."""
    (life,) = jsonl.lives_of("f", WHOLE + row + b"\n" + b'["end",11]\n')
    assert (len(life.rows), life.torn) == (2, "f line 4 is torn")


def test_a_torn_life_is_written_as_a_torn_one() -> None:
    """A life that lost rows would be whole when it is read again, and its cuts valid."""
    (life,) = jsonl.lives_of("f", WHOLE + b'["end",11]\n')
    torn = trace_of([replace(life, torn="a disk is full")])
    (again,) = jsonl.lives_of("f", b"".join(jsonl.lines_of(torn)))
    assert again.torn


def test_a_life_behind_a_torn_one_is_read() -> None:
    """A node that came back after a torn line has no trace."""
    text = WHOLE[:-5] + b"\n" + WHOLE.replace(b",1,5,0", b",2,6,50") + b'["end",60]\n'
    lives = list(jsonl.lives_of("f", text))
    assert [(life.life, len(life.rows), bool(life.torn)) for life in lives] == [(1, 1, True), (2, 2, False)]


@pytest.mark.parametrize(
    "text",
    [b'["send",1,"n2","w",null,7]\n', b'["life","n1","one",5,0]\n', b"not a trace\n"],
    ids=["no life", "a life of another form", "no JSON"],
)
def test_a_file_that_is_no_trace_is_refused(text: bytes) -> None:
    """Any file is taken for a trace."""
    with pytest.raises(HistoryError, match="a trace that begins with"):
        list(jsonl.lives_of("f", text))


@pytest.mark.parametrize(
    "row",
    [
        *('["send",1,"n2","w",7]', '["receive","n2",1,"1",7]', '["mark","cut",{},7]'),
        *('["send",true,"n2","w",null,7]', '["send",2147483648,"n2","w",null,7]'),
        *('["send",-2,"n2","w",null,7]', '["receive","n2",1,0,7]', '["end",true]'),
        *('["receive","n2",1,1,9223372036854775808]', '["mark","cut",{"cut":"k"},9223372036854775808]'),
    ],
)
def test_a_row_of_another_form_is_refused(tmp_path: Path, row: str) -> None:
    """A row without its parts is read as something else."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'["life","n1",1,5,0]\n' + row.encode() + b"\n")
    with pytest.raises(HistoryError, match="record the trace again"):
        jsonl.read([path])


def test_the_neighbourhood_of_a_witness_has_what_led_to_it() -> None:
    """A picture of a violation without the way on which it came, or without an end."""
    trace = scripts.trace(SCRIPT)
    crossing = messages.judge(trace, ["k1"]).crossings[0]
    assert crossing is not None
    rows = [trace.place(row)["node"] for row in crossing.path]
    assert rows == ["n1", "c", "c", "n2"]
    near = neighbourhood.around(Links.of(trace), crossing.path, steps=1)
    assert [trace.place(row) for row in near.rows if row not in crossing.path] == [
        {"node": "n1", "life": 1, "position": 0},
        {"node": "n2", "life": 1, "position": 1},
    ]
    assert len(near.messages) == 2
    assert len(neighbourhood.around(Links.of(trace), crossing.path, steps=99).rows) == 9
    assert len(neighbourhood.around(Links.of(trace), crossing.path, steps=99, most=2).rows) <= 6


def test_shiviz_reads_the_export() -> None:
    """A line that its expression does not match, or a clock that skips or leaves out a cause."""
    trace = scripts.trace(SCRIPT)
    lines = list(neighbourhood.shiviz(trace, neighbourhood.whole(trace)))
    assert len(lines) == len(trace)
    pattern = re.compile(neighbourhood.SHIVIZ_EXPRESSION.replace("?<", "?P<"))
    clocks: dict[str, list[dict[str, int]]] = {}
    for line in lines:
        found = pattern.fullmatch(line)
        assert found is not None, line
        clocks.setdefault(found["host"], []).append(msgspec.json.decode(found["clock"]))
    for host, of_host in clocks.items():
        assert [clock[host] for clock in of_host] == list(range(1, len(of_host) + 1))
    assert clocks["n2"][0] == {"n1": 2, "c": 2, "n2": 1}


def test_a_name_with_a_line_break_breaks_no_line() -> None:
    """ShiViz would refuse the file."""
    (life,) = jsonl.lives_of("f", WHOLE.replace(b'"mark","cut"', b'"mark","a\\nb"') + b'["end",11]\n')
    trace = trace_of([life])
    _, line = neighbourhood.shiviz(trace, neighbourhood.whole(trace))
    assert re.fullmatch(neighbourhood.SHIVIZ_EXPRESSION.replace("?<", "?P<"), line)


def test_a_trace_that_cannot_have_happened_has_no_export() -> None:
    """A picture in which a message comes before it is sent."""
    with pytest.raises(ValueError, match="happened before itself"):
        neighbourhood.whole(scripts.trace({"n1": "-a +a>n1"}))
