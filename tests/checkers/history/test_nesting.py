"""Lists and maps in each other: each format takes a hundred, and refuses more on every version of Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers.history import Event, Header, History, parquet
from checkers.history.errors import HistoryError
from checkers.history.foreign import recognized

HEADER = b'{"format":"qsync-history","version":1,"workload":"register"}\n'
EDN = b"{:type :%s :process 0 :f :write :value %s}\n"
JSON = b'{"type":"%s","process":0,"f":"write","value":%s}\n'
OURS = b'{"index":%d,"time_ns":1,"type":"%s","process":0,"f":"write","key":"a","value":%s}\n'
FILES = {
    "edn": lambda value: EDN % (b"invoke", value) + EDN % (b"ok", value),
    "json": lambda value: JSON % (b"invoke", value) + JSON % (b"ok", value),
    "ours": lambda value: HEADER + OURS % (0, b"invoke", value) + OURS % (1, b"ok", value),
}


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("levels", [150, 900, 5_000, 50_000])
def test_too_deep_values_are_refused_with_their_line(kind: str, levels: int) -> None:
    """If it failed, Python 3.13 would judge a file that Python 3.11 refuses, or a checker's stack would overflow."""
    with pytest.raises(HistoryError, match=r"^line [12]: "):
        recognized.parse(FILES[kind](b"[" * levels + b"]" * levels))


@pytest.mark.parametrize("kind", FILES)
def test_what_is_not_deep_is_read(kind: str) -> None:
    """If it failed, long values would be taken for deep ones."""
    value = b"[" * 90 + b"]" * 90 if kind == "edn" else b"[" * 90 + b"[]," * 200 + b"[]" + b"]" * 90
    (operation,) = recognized.parse(FILES[kind](value)).operations
    assert operation.value is not None


@pytest.mark.parametrize("large", [1, 1_000_000])
def test_too_deep_values_of_tables_are_refused(
    large: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a table would be judged, or break a checker's stack, where its own history.jsonl is refused."""
    monkeypatch.setattr(parquet, "LARGE", large)
    deep: list[object] = []
    for _ in range(150):
        deep = [deep]
    asked, answered = (
        Event(index=place, time_ns=place, type=kind, process=0, f="write", value=deep)
        for place, kind in enumerate(("invoke", "ok"))
    )
    path = tmp_path / "history.parquet"
    parquet.write(path, History.of(Header(), [asked, answered]))
    with pytest.raises(HistoryError, match="line 2: expected at most 100 lists"):
        parquet.read(path)


@pytest.mark.parametrize("initial", ["[" * 150 + "]" * 150, "\udcff", ":\udcff"])
def test_a_start_value_that_no_file_could_have_is_refused(initial: str) -> None:
    """If it failed, an argument that is no UTF-8 would end in a traceback, and a deep one in a checker."""
    with pytest.raises(HistoryError, match="expected one value in JSON or EDN"):
        recognized.given(initial)
