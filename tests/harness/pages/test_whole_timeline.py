"""The data of the page's canvas: packed and unpacked, chosen by the rule, in rows that do not overlap."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.history import Operation
from harness.pages import material, page, whole_timeline
from harness.pages.fault_bands import fault_bands
from harness.pages.kept_operations import NEAR_NS, kept
from harness.pages.packing import Coded, differences, packed
from harness.pages.process_rows import process_rows
from harness.pages.run_columns import Gathered, RunColumns, operations_at
from tests.harness.pages.run_folders import build
from tests.harness.pages.unpacking import unpacked

DATA = re.compile(r'<script type="application/octet-stream;base64" id="timeline-data">([^<]*)</script>')


def data_of(html: str) -> tuple[dict[str, Any], dict[str, list[int]]]:
    found = DATA.findall(html)
    assert len(found) == 1
    return unpacked(found[0])


def signed(values: list[int]) -> list[int]:
    return [-(value + 1) // 2 if value % 2 else value // 2 for value in values]


def texts_of(codes: list[int], table: list[Any]) -> list[Any]:
    fresh, said = 0, []
    for code in codes:
        said.append(table[fresh - code])
        fresh += code == 0
    return said


@given(
    values=st.lists(st.integers(-(2**52), 2**52)),
    words=st.lists(st.sampled_from([None, "a", "</script>", "é"])),
)
def test_what_is_packed_comes_back(values: list[int], words: list[str | None]) -> None:
    """If it failed, the canvas would show operations that the history does not have."""
    coded = Coded()
    for word in words:
        coded.add([word])
    text = packed(
        {"table": coded.table},
        {"steps": differences(numpy.array(values, dtype=numpy.int64)), "codes": coded.codes},
    )
    assert re.fullmatch(r"[\w-]*", text), "no slash: a page without network has no //"
    head, columns = unpacked(text)
    assert numpy.cumsum(signed(columns["steps"])).tolist() == values
    assert texts_of(columns["codes"], head["table"]) == words


def test_every_operation_of_a_small_run_is_on_the_page(tmp_path: Path) -> None:
    """If it failed, a link to an operation would lead nowhere, or to a different one."""
    folder = build(tmp_path / "run", "anomaly")
    head, columns = data_of(page.html(folder))
    lines = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()[1:]]
    asked = {
        line["index"]: line for line in lines if line["type"] == "invoke" and line["process"] != "nemesis"
    }
    assert head["there"] == len(asked) and head["slices"] == 0
    index = numpy.cumsum(signed(columns["index"])).tolist()
    assert sorted(index) == sorted(asked)
    start = numpy.cumsum(signed(columns["start"])).tolist()
    process = numpy.cumsum(signed(columns["process"])).tolist()
    keys = texts_of(columns["keys"], head["tables"]["keys"])
    for place, each in enumerate(index):
        line = asked[each]
        assert start[place] == line["time_ns"] // 1000
        assert (process[place], keys[place]) == (line["process"], line.get("key"))
    assert [window["words"].partition(":")[0] for window in head["witnesses"]] == ["lost-write"]
    assert [fault["name"] for fault in head["faults"]][:2] == ["slow-links", "pause"]


@pytest.mark.parametrize("room", [0, 40, 300, 1_000])
def test_what_does_not_fit_is_left_out_by_the_rule(
    tmp_path: Path, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, the page could leave out the operations that prove an anomaly, or not say so."""
    monkeypatch.setattr(whole_timeline, "ROOM", room)
    folder = build(tmp_path / "run", "anomaly")
    html = page.html(folder)
    head, columns = data_of(html)
    index = set(numpy.cumsum(signed(columns["index"])).tolist())
    assert len(index) == room
    proof = material.witness_indexes(
        json.loads((folder / "verdict.json").read_text())["checks"][1]["witnesses"][0]
    )
    assert room == 0 or len(index & set(proof)) == 5, "of five operations the invocations"
    assert f"{room:,} of {head['there']:,} operations are on this page one by one" in html
    assert sum(columns["row_density"]) == sum(columns["node_density"]) == head["there"]


def test_data_that_grow_too_long_are_thinned_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, long values would make a page that no browser opens."""
    monkeypatch.setattr(whole_timeline, "BYTES_MAX", 30_000)
    read = material.read(build(tmp_path / "run", "anomaly"))
    drawn = whole_timeline.whole_timeline(read, fault_bands(read), "run")
    assert len(drawn.data) <= 30_000 and 0 < drawn.kept < drawn.operations


def test_a_long_text_is_clipped_and_says_so(tmp_path: Path) -> None:
    """If it failed, one value of a megabyte would be the whole page, or a reader would take a part for all of it."""
    folder = build(tmp_path / "run", "anomaly")
    lines = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    for line in lines:
        if line.get("value") == 7:
            line["value"] = "v" * 5_000
    (folder / "history.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    head, _ = data_of(page.html(folder))
    long = [value for value in head["tables"]["values"] if value and "vvv" in value]
    assert long == ["v" * 200 + "… (clipped: 5,000 characters)"]


def operation(
    index: int, start_ns: int, took_ns: int | None, process: int, type_: str, key: str
) -> Operation:
    end_ns = None if took_ns is None else start_ns + took_ns
    return Operation(
        type=type_ if end_ns is not None else "info",  # type: ignore[arg-type]
        process=process,
        f="write",
        key=key,
        value=1,
        invoke_index=2 * index,
        invoke_ns=start_ns,
        complete_index=None if end_ns is None else 2 * index + 1,
        complete_ns=end_ns,
    )


def columns_of(operations: list[Operation]) -> RunColumns:
    gathered = Gathered()
    for each in operations:
        gathered.take(each, 0, 0)
    return gathered.columns()


drawn_operations = st.lists(
    st.tuples(
        st.integers(0, 10**9),
        st.none() | st.integers(0, 10**8),
        st.integers(0, 6),
        st.sampled_from(["ok", "fail", "info"]),
        st.sampled_from("abc"),
    ),
    max_size=40,
).map(
    lambda drawn: [
        operation(place, *each) for place, each in enumerate(sorted(drawn, key=lambda each: each[0]))
    ]
)


@given(
    operations=drawn_operations,
    named=st.sets(st.integers(0, 80), max_size=6),
    edges_ns=st.lists(st.integers(0, 10**9), max_size=3),
    room=st.integers(0, 50),
)
def test_the_choice_agrees_with_the_rule_written_plainly(
    operations: list[Operation], named: set[int], edges_ns: list[int], room: int
) -> None:
    """If it failed, the page would say of a group that all of it is there, and it would not."""
    chosen = kept(columns_of(operations), named, {"b"}, edges_ns, room)

    def group(each: Operation) -> int:
        if named & set(each.events):
            return 0
        if each.key == "b":
            return 1
        if each.type != "ok":
            return 2
        end_ns = each.invoke_ns if each.complete_ns is None else each.complete_ns
        near = any(each.invoke_ns - NEAR_NS <= edge <= end_ns + NEAR_NS for edge in edges_ns)
        return 3 if near else 4

    groups = [[each for each in operations if group(each) == number] for number in range(5)]
    left, counts = room, []
    for number, members in enumerate(groups):
        share = left if number in (0, 4) or len(operations) <= room else left // 2
        counts.append(min(len(members), share))
        left -= counts[-1]
    assert [(share.kept, share.there) for share in chosen.shares] == [
        (count, len(members)) for count, members in zip(counts, groups, strict=True) if members
    ]
    taken = [operations[row] for row in chosen.rows.tolist()]
    assert taken == sorted(taken, key=lambda each: (each.invoke_ns, each.invoke_index))
    assert [sum(group(each) == number for each in taken) for number in range(5)] == counts
    assert chosen.left_out == len(operations) - len(taken) == len(operations) - sum(counts)


@given(
    steps=st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=60),
)
def test_processes_of_a_row_follow_each_other(steps: list[tuple[int, bool]]) -> None:
    """If it failed, bars of two clients would lie on each other, five workers would have a hundred rows, or the bar of
    one process would stand under the name of another."""
    operations, names, fresh = [], dict(enumerate(range(5))), 5
    for place, (worker, ends) in enumerate(steps):
        operations.append(operation(place, 10 * place, 5 if ends else None, names[worker], "ok", "a"))
        if not ends:
            names[worker], fresh = fresh, fresh + 1
    rows, labels = process_rows(columns_of(operations))
    first = [int(label.removesuffix(" …")) for label in labels]
    of_row: dict[int, list[Operation]] = {}
    for each, row in zip(operations, rows.tolist(), strict=True):
        of_row.setdefault(row, []).append(each)
    for members in of_row.values():
        spans = {
            each.process: [other.invoke_index for other in members if other.process == each.process]
            for each in members
        }
        ordered = sorted((min(places), max(places)) for places in spans.values())
        assert all(before[1] < after[0] for before, after in pairwise(ordered))
    assert len(first) <= 5 and first == sorted(first)
    shared = [len({each.process for each in of_row[row]}) > 1 for row in range(len(labels))]
    assert [label.endswith(" …") for label in labels] == shared
    assert all(row_first in {each.process for each in of_row[row]} for row, row_first in enumerate(first))


def test_rows_lead_back_to_their_lines(tmp_path: Path) -> None:
    """If it failed, an operation would have the value or the error of its neighbour."""
    read = material.read(build(tmp_path / "run", "anomaly"))
    rows = numpy.arange(len(read.columns))
    for row, found in operations_at(tmp_path / "run" / "history.jsonl", read.columns, rows):
        assert found.invoke_index == read.columns.index[row]
        assert (found.complete_index if found.complete_index is not None else -1) == read.columns.complete[
            row
        ]
        assert found.process == read.columns.process[row]
    missing = tmp_path / "nowhere"
    assert list(operations_at(missing, read.columns, rows)) == []
