"""Runs that are fetched from an address, a portion at a time. No Spark is needed for that."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import StoreError, WrongUse
from harness.pipeline import sources
from harness.pipeline.sources import AddressSource, FolderSource, source_of
from harness.results.objects import Address
from tests.harness.results.object_server import ObjectServer, object_server

ROOT = Address("s3", "b/results")
DOCUMENTS = ("plan.json", "verdict.json", "history.parquet", "hashes.json")
OF_NODES = ("nodes/n1/log.jsonl", "nodes/n1/00.xlog", "nodes/n1/00.snap", "nodes/n2/00.xlog")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectServer]:
    with object_server("b") as found:
        found.speak_through(monkeypatch)
        yield found


def put(server: ObjectServer, seed: int, result: str = "valid", *, without: str = "") -> None:
    files = dict.fromkeys((*DOCUMENTS, *OF_NODES, "history.jsonl", "report.html", "nodes/n1/other"), b"x")
    files["verdict.json"] = f'{{"checks": [{{"result": "{result}"}}]}}'.encode()
    for name, data in files.items():
        if name != without:
            server.put("b", f"results/nightly/20261121T101500Z-{seed}/{name}", data)


def fetched(spool: Path) -> list[dict[str, set[str]]]:
    """Of each portion: run → the files that are here."""
    source = AddressSource(ROOT, spool)
    found = []
    for portion in source.portions(source.scan().runs, lambda words: None):
        assert not portion.left_out
        found.append(
            {
                run.path.name.rpartition("-")[2]: {
                    str(file.relative_to(run.path)) for file in run.path.rglob("*") if file.is_file()
                }
                for run in portion.runs
            }
        )
    assert not list(spool.rglob("*.json")), "what was fetched is still there"
    return found


def test_all_that_tables_are_made_of_is_fetched_and_nothing_else(
    server: ObjectServer, tmp_path: Path
) -> None:
    """If it failed, tables would lack rows, or call old writes asynchronous, or pages be fetched in vain."""
    put(server, 1)
    put(server, 2, "invalid")
    put(server, 3, without="history.parquet")
    put(server, 4, without="hashes.json")
    needed = {*DOCUMENTS, *OF_NODES}
    assert fetched(tmp_path) == [
        {
            "1": needed,
            "2": {*needed, "history.jsonl"},
            "3": {*needed, "history.jsonl"} - {"history.parquet"},
            "4": {*needed, "history.jsonl"} - {"hashes.json"},
        }
    ]


def test_many_runs_come_in_portions(
    server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, the first analysis of a year's runs would fill the disk, or leave some of them out."""
    monkeypatch.setattr(sources, "PORTION", 2)
    for seed in (1, 2, 3):
        put(server, seed)
    assert [sorted(portion) for portion in fetched(tmp_path)] == [["1", "2"], ["3"]]


def test_a_run_that_is_removed_meanwhile_is_left_out_and_the_others_are_taken(
    server: ObjectServer, tmp_path: Path
) -> None:
    """If it failed, retention on one machine would stop the analysis on another."""
    put(server, 1)
    put(server, 2)
    source = AddressSource(ROOT, tmp_path)
    runs = source.scan().runs
    for key in [key for key in server.present() if "Z-1/" in key]:
        del server.buckets["b"][key]
    (portion,) = source.portions(runs, lambda words: None)
    assert [run.name for run in portion.runs] == ["nightly/20261121T101500Z-2"]
    assert [str(each.path) for each in portion.left_out] == ["s3://b/results/nightly/20261121T101500Z-1"]


def test_what_holds_no_runs_is_refused(tmp_path: Path) -> None:
    """If it failed, a slip in a folder's name would be an analysis of nothing."""
    with pytest.raises(WrongUse, match="is no folder"):
        source_of(tmp_path / "none", None)
    with pytest.raises(StoreError, match="try: --spool"):
        source_of(ROOT, None)
    assert isinstance(source_of(tmp_path, None), FolderSource)
