"""A run that goes on, read piece by piece, against one that is read at once."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.serve import under_way
from harness.serve.under_way import UnderWay

HEADER = {"format": "qsync-history", "version": 1, "nodes": ["n1", "n2", "n3"]}
LINES: list[dict[str, object]] = [
    {
        "type": "info",
        "process": "monitor",
        "f": "state",
        "node": "n1",
        "value": {"up": True, "role": "owner", "term": 2},
    },
    {"type": "info", "process": "monitor", "f": "state", "node": "n2", "value": {"up": False}},
    {"type": "invoke", "process": 1, "f": "write", "value": 1},
    {"type": "ok", "process": 1, "f": "write", "value": 1},
    {
        "type": "invoke",
        "process": "nemesis",
        "f": "kill",
        "value": {"id": 0, "does": "kill", "nodes": ["n3"]},
    },
    {
        "type": "invoke",
        "process": "nemesis",
        "f": "pause",
        "value": {"id": 1, "does": "pause", "nodes": ["n1"]},
    },
    {
        "type": "invoke",
        "process": "nemesis",
        "f": "isolate-one",
        "value": {"id": 2, "does": "cut", "nodes": ["n3"]},
    },
    {"type": "invoke", "process": 2, "f": "read"},
    {"type": "info", "process": 2, "f": "read", "error": "timeout"},
    {"type": "info", "process": "nemesis", "f": "pause", "value": {"id": 1, "took_effect": True}},
    {"type": "info", "process": "nemesis", "f": "odd", "value": "no mapping"},
    {"type": "invoke", "process": 1, "f": "read"},
    {"type": "info", "process": "nemesis", "f": "kill", "value": {"id": 5, "bit": True}},
    {"type": "invoke", "process": 3, "f": "read", "phase": "final"},
    {"type": "ok", "process": 3, "f": "read", "phase": "final"},
]
WHOLE = b"".join(
    json.dumps({"index": index, "time_ns": index * 1000, **line}).encode() + b"\n"
    for index, line in enumerate(LINES)
)
DATA = json.dumps(HEADER).encode() + b"\n" + WHOLE


@given(st.lists(st.integers(0, len(DATA)), max_size=8))
def test_pieces_add_up_wherever_they_are_torn(cuts: list[int]) -> None:
    """If it failed, a live view would lose or repeat an event whose line was torn when it looked."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.jsonl"
        path.write_bytes(DATA)
        once = UnderWay(path)
        once.look()
        growing = UnderWay(path)
        for cut in sorted(cuts):
            path.write_bytes(DATA[:cut])
            growing.look()
        path.write_bytes(DATA)
        growing.look()
        assert growing == once


def test_what_it_says(tmp_path: Path) -> None:
    """If it failed, the view would count what the verdict does not, forget a fault of an old record, or show a dead
    node as up."""
    path = tmp_path / "history.jsonl"
    path.write_bytes(DATA + b'{"index": 14, "to')
    seen = UnderWay(path)
    seen.look()
    assert (seen.asked, seen.outcomes) == (3, {"ok": 1, "info": 1})
    active = [(name, nodes) for name, _, nodes in seen.faults.values()]
    assert active == [("kill", ("n3",)), ("isolate-one", ("n3",))]
    assert seen.faults_over == {"pause": 1, "kill": 1}
    assert seen.phase == "final"
    assert seen.nodes() == [("n1", "up", "owner, term 2"), ("n2", "silent", ""), ("n3", "down", "")]
    assert seen.unreadable == 0 and not seen.is_behind


def test_garbage_is_counted_and_read_over(tmp_path: Path) -> None:
    """If it failed, one bad line would end the view."""
    path = tmp_path / "history.jsonl"
    path.write_bytes(DATA + b"garbage\n\xff\n[1]\n" + WHOLE)
    seen = UnderWay(path)
    seen.look()
    assert (seen.unreadable, seen.outcomes["ok"]) == (3, 2)


def test_a_line_longer_than_a_portion_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, one dump of a large store would look like several damaged lines, and move the link to the last
    events."""
    monkeypatch.setattr(under_way, "PORTION_BYTES", 1 << 10)
    path = tmp_path / "history.jsonl"
    path.write_bytes(DATA[: DATA[:-1].rfind(b"\n") + 1] + b'{"value": "' + b"x" * 5_000 + b'"}\n' + WHOLE)
    seen = UnderWay(path)
    for _ in range(16):
        seen.look()
    assert (seen.unreadable, seen.lines, seen.offset) == (1, len(LINES) * 2 + 1, path.stat().st_size)
