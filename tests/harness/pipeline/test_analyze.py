"""The whole pipeline on simulated runs, against a plain Python twin."""

from __future__ import annotations

import shutil
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pytest

from checkers.history import jsonl
from checkers.history.spans import within
from harness.campaigns.fingerprint import sightings
from harness.errors import StoreError
from harness.pipeline.analyze import analyze
from harness.pipeline.overview import overview
from harness.pipeline.report import Report
from harness.pipeline.sources import FolderSource, Portion
from tests.harness.pipeline.stored_runs import store_run

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs, one of them with an anomaly and one with cuts, and what does not belong there."""
    folder = tmp_path_factory.mktemp("a [strange] {folder}*") / "results"
    for seed, cut_every_s in ((1, 0.0), (2, 1.0)):
        store_run(folder, seed, cut_every_s=cut_every_s)
    store_run(folder, 3, name="bugs", time_limit_s=10.0, bugs=("confirm-early",), faults=("isolate-owner",))
    (folder / "notes.txt").write_text("mine")
    torn = store_run(folder, 4)
    (torn / "verdict.json").unlink()
    cut = store_run(folder, 5)
    (cut / "hashes.json").unlink()  # as a run of an earlier version
    (cut / "history.parquet").write_bytes((cut / "history.parquet").read_bytes()[:-9])
    strange = store_run(folder, 6)
    (strange / "hashes.json").unlink()
    (strange / "verdict.json").write_text("[1]")
    spoilt = store_run(folder, 8) / "history.parquet"
    data = bytearray(spoilt.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 4] = bytes(each ^ 0x55 for each in data[len(data) // 2 :][:4])
    spoilt.write_bytes(data)
    return folder


@pytest.fixture(scope="module")
def analyzed(spark: Any, results: Path) -> tuple[Report, Path]:
    tables = results / "_tables"
    return analyze(results, tables, lambda: nullcontext(spark)), tables


def rows(tables: Path, name: str) -> list[dict[str, Any]]:
    import pyarrow.dataset

    if not (tables / name).exists():
        return []  # no run has such rows
    found: list[dict[str, Any]] = (
        pyarrow.dataset.dataset(tables / name, partitioning="hive").to_table().to_pylist()
    )
    return found


def runs(results: Path) -> dict[str, Path]:
    whole = [path for path in results.glob("*/*Z-[123]") if path.parent.name != "latest"]
    return {f"{path.parent.name}/{path.name}": path for path in whole}


def test_what_is_whole_is_taken_and_all_else_is_named(analyzed: tuple[Report, Path], results: Path) -> None:
    """If it failed, one torn run would stop the analysis of all, or go into the tables."""
    report, tables = analyzed
    assert {row["run"] for row in rows(tables, "runs")} == set(runs(results))
    assert (report.new, report.changed, report.known) == (3, 0, 0)
    assert Counter(each.why.split(";")[0] for each in report.left_out) == {
        "half-written: it has no verdict (yet)": 1,
        "half-written: history.parquet is torn": 1,
        "damaged: verdict.json is not ours: Expected `object`, got `array`": 1,
        "it differs from its hashes.json: history.parquet has another content": 1,
    }
    assert report.changed_files == 1
    assert [each.path.name for each in report.foreign] == ["notes.txt"]


def test_operations_are_those_of_the_plain_twin(analyzed: tuple[Report, Path], results: Path) -> None:
    """If it failed, the tables would tell another story than the records."""
    _, tables = analyzed
    stored = {(row["run"], row["invoke_index"]): row for row in rows(tables, "operations")}
    count = 0
    for name, path in runs(results).items():
        history = jsonl.read(path / "history.jsonl")
        spans = [(fault.name, *fault.sure) for fault in history.faults if fault.sure is not None]
        for operation in history.operations:
            row = stored[name, operation.invoke_index]
            same = (
                "process",
                "f",
                "key",
                "node",
                "role",
                "mode",
                "phase",
                "type",
                "error",
                "complete_index",
                "complete_ns",
            )
            assert {field: row[field] for field in same} == {
                field: getattr(operation, field) for field in same
            }
            value = None if row["value"] is None else msgspec.json.decode(row["value"])
            assert value == operation.value
            end_ns = operation.complete_ns or operation.invoke_ns
            on = sorted(
                {fault for fault, start, end in spans if start <= end_ns and end >= operation.invoke_ns}
            )
            assert row["fault"] == ("+".join(on) or "none")
            count += 1
    assert count == len(stored) > 300


def test_faults_counts_and_verdicts_are_those_of_the_verdict(
    analyzed: tuple[Report, Path], results: Path
) -> None:
    """If it failed, a campaign's summary and its tables would disagree."""
    _, tables = analyzed
    stored = {row["run"]: row for row in rows(tables, "runs")}
    faults = Counter((row["run"], row["name"], row["took_effect"]) for row in rows(tables, "faults"))
    verdicts = {(row["run"], row["checker"]): row["result"] for row in rows(tables, "verdicts")}
    for name, path in runs(results).items():
        verdict = msgspec.json.decode((path / "verdict.json").read_bytes())
        for field in ("ok", "fail", "info", "ok_under_fault", "asked"):
            assert stored[name][field] == verdict["evidence"][field]
        assert stored[name]["outcome"] == verdict["outcome"]
        for fault in verdict["evidence"]["faults"]:
            assert faults[name, fault["name"], fault["took_effect"]] > 0
        for check in verdict["checks"]:
            assert verdicts[name, check["checker"]] == check["result"]


def test_load_while_a_fault_was_on_is_counted_as_the_plain_twin_does(
    analyzed: tuple[Report, Path], results: Path
) -> None:
    """If it failed, fault coverage would praise faults under which nothing was asked."""
    _, tables = analyzed
    for row in rows(tables, "faults"):
        history = jsonl.read(runs(results)[row["run"]] / "history.jsonl")
        (fault,) = [each for each in history.faults if each.id == row["fault_id"]]
        spans = [fault.sure] if fault.sure else []
        ended = [each for each in history.operations if each.phase == "load" and each.complete_ns is not None]
        inside = [each for each in ended if within(each.complete_ns or 0, spans)]
        assert row["ok_meanwhile"] == sum(each.type == "ok" for each in inside)
        assert row["not_ok_meanwhile"] == sum(each.type != "ok" for each in inside)


def test_anomalies_carry_the_fingerprints_of_the_plain_function(
    analyzed: tuple[Report, Path], results: Path
) -> None:
    """If it failed, known.toml and the tables would speak of different anomalies."""
    _, tables = analyzed
    found = {(row["checker"], row["number"]): row["fingerprint"] for row in rows(tables, "anomalies")}
    (path,) = [path for name, path in runs(results).items() if name.startswith("bugs/")]
    verdict = msgspec.json.decode((path / "verdict.json").read_bytes())
    plain = sightings(verdict, jsonl.read(path / "history.jsonl"))
    assert found == {(each.checker, each.number): each.fingerprint for each in plain} != {}
    assert {row["fingerprint"] for row in rows(tables, "recurrence")} == set(found.values())


def test_few_runs_and_many_make_the_same_tables(
    analyzed: tuple[Report, Path], results: Path, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, what a run's rows are would depend on how many others came with it."""
    from harness.pipeline import analyze as module
    from harness.pipeline.overview import AGGREGATES
    from harness.pipeline.schemas import TABLES

    monkeypatch.setattr(module, "FEW", 0)
    analyze(results, tmp_path / "tables", lambda: nullcontext(spark))
    for name in (*TABLES, *AGGREGATES):
        few, many = (sorted(map(repr, rows(tables, name))) for tables in (analyzed[1], tmp_path / "tables"))
        assert few == many, name


def test_a_second_call_does_nothing_and_needs_no_spark(analyzed: tuple[Report, Path], results: Path) -> None:
    """If it failed, every night would read all nights before it."""
    _, tables = analyzed
    before = {path: path.stat().st_mtime_ns for path in tables.rglob("*.parquet")}

    def no_session() -> Any:
        raise AssertionError("Spark was started")

    again = analyze(results, tables, no_session)
    assert (again.new, again.changed, again.known) == (0, 0, 3)
    assert len(again.left_out) == 4
    assert before == {path: path.stat().st_mtime_ns for path in tables.rglob("*.parquet")}


def test_only_what_is_new_or_changed_is_read_and_nothing_is_there_twice(
    analyzed: tuple[Report, Path], results: Path, spark: Any, tmp_path: Path
) -> None:
    """If it failed, a run that was judged again would be counted twice, or keep its old verdict."""
    shutil.copytree(results, tmp_path / "results", symlinks=True)
    moved, tables = tmp_path / "results", tmp_path / "results" / "_tables"
    name, path = min(runs(moved).items())
    verdict = msgspec.json.decode((path / "verdict.json").read_bytes())
    (path / "verdict.json").write_bytes(msgspec.json.encode({**verdict, "sentence": "mended"}))
    (path / "hashes.json").unlink()
    added = store_run(moved, 7)
    for other in runs(moved).values():
        if other not in (path, added):
            shutil.rmtree(other)  # retention
    report = analyze(moved, tables, lambda: nullcontext(spark))
    assert (report.new, report.changed) == (1, 1)
    stored = rows(tables, "runs")
    assert Counter(row["run"] for row in stored) == Counter(
        {**dict.fromkeys(runs(results), 1), f"nightly/{added.name}": 1}
    )
    assert [row["sentence"] for row in stored if row["run"] == name] == ["mended"]
    operations = Counter((row["run"], row["invoke_index"]) for row in rows(tables, "operations"))
    assert set(operations.values()) == {1}
    assert sum(row["runs"] for row in rows(tables, "trend")) == 4


def test_a_newer_version_reads_all_again_and_keeps_what_retention_removed(
    analyzed: tuple[Report, Path], results: Path, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, every change of a column would take months of runs out of the tables that are not kept any more."""
    from harness.pipeline import analyze as module

    shutil.copytree(results, tmp_path / "results", symlinks=True)
    moved, tables = tmp_path / "results", tmp_path / "results" / "_tables"
    gone = next(name for name in sorted(runs(moved)) if name.startswith("nightly/"))
    before = Counter(row["run"] for row in rows(tables, "operations"))
    shutil.rmtree(runs(moved)[gone])
    monkeypatch.setattr(module, "_schema_mark", lambda: "of a newer version")
    report = analyze(moved, tables, lambda: nullcontext(spark))
    assert (report.new, report.changed, report.known) == (0, 2, 0)
    assert Counter(row["run"] for row in rows(tables, "operations")) == before and before[gone] > 0
    assert {row["run"] for row in rows(tables, "runs")} == set(runs(results))
    assert sum(row["runs"] for row in rows(tables, "trend")) == 3
    assert analyze(moved, tables, lambda: nullcontext(spark)).known == 2


@pytest.mark.parametrize("is_lost", [False, True], ids=["with its state", "without"])
def test_anew_reads_all_again_and_keeps_what_retention_removed(
    analyzed: tuple[Report, Path], results: Path, spark: Any, tmp_path: Path, is_lost: bool
) -> None:
    """If it failed, `--anew` would take months of runs out of the tables that are not kept any more."""
    shutil.copytree(results, tmp_path / "results", symlinks=True)
    moved, tables = tmp_path / "results", tmp_path / "results" / "_tables"
    gone = next(name for name in sorted(runs(moved)) if name.startswith("nightly/"))
    before = {
        name: Counter(row["run"] for row in rows(tables, name)) for name in ("runs", "operations", "faults")
    }
    shutil.rmtree(runs(moved)[gone])
    if is_lost:
        (tables / "_state.json").unlink()
        with pytest.raises(StoreError, match=r"_state[.]json is missing"):
            analyze(moved, tables, lambda: nullcontext(spark))
    for left in (2, 0):
        report = analyze(moved, tables, lambda: nullcontext(spark), anew=True)
        assert (report.new, report.changed, report.known, report.lost) == (left, 0, 0, ())
        assert before == {name: Counter(row["run"] for row in rows(tables, name)) for name in before}
        assert sum(row["runs"] for row in rows(tables, "trend")) == 3
        for path in runs(moved).values():
            shutil.rmtree(path)
    assert analyze(moved, tables, lambda: nullcontext(spark)).new == 0


def test_any_name_and_any_damage_takes_no_other_run_along(results: Path, spark: Any, tmp_path: Path) -> None:
    """If it failed, one odd folder would stop the analysis of a night, or its rows be there twice or not at all."""
    source = next(path for name, path in sorted(runs(results).items()) if name.startswith("nightly/"))
    moved, tables = tmp_path / "results", tmp_path / "results" / "_tables"
    plans = ("a b=c", "d:e+f", "50%20", "é#?x", "h*[i]{j}k'\"l^m\\n")
    whole = {f"{plan}/{source.name}" for plan in plans} | {
        "first/00010101T000000Z-1",
        "last/99991231T235959Z-1",
    }
    damaged = {"damaged/99999999T999999Z-7", *(f"damaged/20261121T10150{digit}Z-7" for digit in range(4))}
    for name in (*whole, *damaged):
        shutil.copytree(source, moved / name)
        (moved / name / "hashes.json").unlink()
    outcome, history, columns, plan = (moved / name for name in sorted(damaged)[:4])
    verdict = msgspec.json.decode((source / "verdict.json").read_bytes())
    (outcome / "verdict.json").write_bytes(msgspec.json.encode({**verdict, "outcome": "perhaps"}))
    lines = (source / "history.jsonl").read_bytes().splitlines(keepends=True)
    (history / "history.jsonl").write_bytes(b"".join([*lines[:9], lines[9][:20], *lines[10:]]))
    data = (source / "history.parquet").read_bytes()
    (columns / "history.parquet").write_bytes(data[:200] + bytes(9) + data[209:])
    (plan / "plan.json").write_bytes(b"[]")
    report = analyze(moved, tables, lambda: nullcontext(spark))
    assert {str(each.path.relative_to(moved)) for each in report.left_out} == damaged  # type: ignore[union-attr]
    assert (report.new, report.reasons) == (len(whole), "4 damaged, 1 half-written")
    operations = Counter(row["run"] for row in rows(tables, "operations"))
    assert set(operations) == whole == {row["run"] for row in rows(tables, "runs")}
    for name in whole:
        (moved / name / "verdict.json").write_bytes(msgspec.json.encode({**verdict, "sentence": "again"}))
    assert analyze(moved, tables, lambda: nullcontext(spark)).changed == len(whole)
    assert operations == Counter(row["run"] for row in rows(tables, "operations"))
    assert [row["sentence"] for row in rows(tables, "runs")] == ["again"] * len(whole)


def test_the_overview_shows_what_came_out(analyzed: tuple[Report, Path], tmp_path: Path) -> None:
    """If it failed, nobody would see the anomaly, or the page would take markup from a stranger's file name."""
    report, tables = analyzed
    found = overview(tables)
    found.write(tmp_path / "page.html", report)
    page = (tmp_path / "page.html").read_text()
    (first, *_) = rows(tables, "recurrence")
    assert first["fingerprint"] in page and "notes.txt" in page and "isolate-owner" in page
    screen = "\n".join(found.lines(report, tmp_path / "page.html"))
    assert "4 left out of the tables: 1 damaged, 1 differs from its hashes.json, 2 half-written" in screen
    assert screen.index("history.parquet has another content") < screen.index("notes.txt")
    assert "history.parquet has another content" in page and "2 half-written" in page
    assert "3 new, 0 changed" in screen and first["fingerprint"] in screen and "notes.txt" in screen


def test_a_job_that_breaks_is_one_line_and_leaves_the_tables_as_they_were(
    spark: Any, results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a full disk would end in pages of Java, or in half a batch."""
    from harness.pipeline import curate

    def full(table: Any, path: Path, **_: Any) -> None:
        spark.sql("select raise_error('No space left on device')").collect()

    monkeypatch.setattr(curate, "write", full)
    with pytest.raises(StoreError, match=r"Spark could not finish: .*No space left") as raised:
        analyze(results, tmp_path / "tables", lambda: nullcontext(spark))
    assert "\n" not in raised.value.message
    assert raised.value.message.endswith("; the tables are as they were")
    assert list((tmp_path / "tables").glob("*/**/*.parquet")) == []


def test_a_portion_that_breaks_leaves_those_before_it(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, the tables would be taken for those of before, although the first portions are in place."""
    from pyspark.errors import PySparkException

    taken: list[Any] = []

    def second_is_full(batch: Any) -> None:
        if taken:
            raise PySparkException("No space left on device")
        taken.append(batch)

    monkeypatch.setattr("harness.pipeline.analyze._Batch.run", second_is_full)
    monkeypatch.setattr(FolderSource, "portions", lambda _, runs, tell: [Portion([run]) for run in runs])
    with pytest.raises(StoreError, match=r"No space.*; the tables took in 1 run of the portions before$"):
        analyze(results, tmp_path / "tables", nullcontext)  # type: ignore[arg-type]


def test_rows_that_changed_on_the_disk_are_not_read_again(
    analyzed: tuple[Report, Path], results: Path, spark: Any, tmp_path: Path
) -> None:
    """If it failed, a spoilt file of the tables would spoil every aggregate that is made of it, unnoticed."""
    shutil.copytree(results, tmp_path / "results", symlinks=True)
    moved, tables = tmp_path / "results", tmp_path / "results" / "_tables"
    file = next((tables / "runs").glob("**/*.parquet"))
    data = bytearray(file.read_bytes())
    data[-40] ^= 0x20  # in the footer, which has no checksum of Parquet's
    file.write_bytes(data)
    store_run(moved, 9)
    with pytest.raises(StoreError, match=rf"{file.name} has changed since it was written"):
        analyze(moved, tables, lambda: nullcontext(spark))
    assert analyze(moved, tables, lambda: nullcontext(spark), anew=True).new == 4


def test_spark_verifies_the_checksums_of_pages(spark: Any, results: Path, tmp_path: Path) -> None:
    """If it failed, a file that is spoilt between our look and Spark's reading would give other rows."""
    import pyarrow.parquet

    source = next(iter(runs(results).values())) / "history.parquet"
    column = pyarrow.parquet.ParquetFile(source).metadata.row_group(0).column(1)
    data = bytearray(source.read_bytes())
    data[column.data_page_offset + column.total_compressed_size // 2] ^= 0xFF
    (tmp_path / "history.parquet").write_bytes(data)
    with pytest.raises(Exception, match=r"(?i)crc|checksum"):
        spark.read.parquet(str(tmp_path / "history.parquet")).collect()
