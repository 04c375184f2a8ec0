"""The whole pipeline over an object store: the same tables as from folders."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.errors import StoreError, WrongUse
from harness.pipeline import follow
from harness.pipeline.analyze import analyze
from harness.pipeline.remote_tables import files_of, opened
from harness.pipeline.report import Report
from harness.results import hashes
from harness.results.objects import Address, ObjectStore
from harness.results.remote_runs import put_run
from tests.harness.pipeline.stored_runs import store_run
from tests.harness.results.object_server import Gone, ObjectServer, object_server

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("default")]
RESULTS = Address("s3", "b/results")
TABLES = Address("s3", "b/tables")
COMPARED = (
    "runs", "operations", "faults", "latency", "availability", "cuts", "verdicts", "anomalies", "findings",
    "node_log", "wal", "trend", "recurrence", "recurring_findings", "flaky_or_fixed", "fault_coverage", "slowest",
)  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs, one of them with an anomaly and one with cuts."""
    folder = tmp_path_factory.mktemp("results")
    for seed, cut_every_s in ((1, 0.0), (2, 1.0)):
        store_run(folder, seed, cut_every_s=cut_every_s)
    store_run(folder, 3, name="bugs", time_limit_s=10.0, bugs=("confirm-early",), faults=("isolate-owner",))
    return folder


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, runs: Path) -> Iterator[ObjectServer]:
    """With these runs, one that is torn, one without a verdict, and an object that is no run's."""
    with object_server("b") as found:
        found.speak_through(monkeypatch)
        store = ObjectStore(RESULTS)
        places = [put_run(store, RESULTS, path) for path in whole(runs)]
        torn = "results/nightly/20261121T000000Z-4/"
        for key in found.present():
            name = key.removeprefix(f"{places[0].key.removeprefix('b/')}/")
            if name in ("plan.json", "history.jsonl", "verdict.json", "history.parquet"):
                data = found.buckets["b"][key]
                found.put("b", torn + name, data[:-9] if name.endswith("parquet") else data)
                if name != "verdict.json":
                    found.put("b", torn.replace("-4/", "-5/") + name, data)
        found.put("b", "results/notes.txt", b"mine")
        yield found


def whole(results: Path) -> list[Path]:
    return sorted(path for path in results.glob("*/*Z-*") if path.parent.name != "latest")


def rows(files: list[str]) -> Counter[str]:
    """Rows as text, however they are spread over files; where a run lies is no part of what is compared."""
    import pyarrow.parquet

    found: Counter[str] = Counter()
    for file in files:
        table = pyarrow.parquet.read_table(file, partitioning=None)
        for row in table.to_pylist():
            row.pop("path", None)
            found[repr(sorted(row.items()))] += 1
    return found


def remote_rows(table: str) -> Counter[str]:
    return rows(files_of(TABLES, table))


def local_rows(tables: Path, table: str) -> Counter[str]:
    return rows([str(file) for file in sorted((tables / table).glob("**/*.parquet"))])


def analyzed(spark: Any, tmp_path: Path, **options: Any) -> Report:
    return analyze(RESULTS, TABLES, lambda: nullcontext(spark), spool=tmp_path / "spool", **options)


def test_tables_at_an_address_are_those_of_folders(
    spark: Any, server: ObjectServer, runs: Path, tmp_path: Path
) -> None:
    """If it failed, a team's shared tables would tell another story than those on the machines."""
    analyze(runs, tmp_path / "tables", lambda: nullcontext(spark))
    report = analyzed(spark, tmp_path)
    assert (report.new, report.changed, report.known) == (3, 0, 0)
    assert sorted((each.path.name, each.why.partition(";")[0]) for each in report.left_out) == [
        ("20261121T000000Z-4", "half-written: history.parquet is torn"),
        ("20261121T000000Z-5", "half-written: it has no verdict (yet)"),
    ]
    assert [str(each.path) for each in report.foreign] == ["s3://b/results/notes.txt"]
    for table in COMPARED:
        assert remote_rows(table) == local_rows(tmp_path / "tables", table), table
    assert sum(remote_rows("operations").values()) > 300 and remote_rows("anomalies") and remote_rows("wal")
    import pyarrow.dataset

    rows_read = pyarrow.dataset.dataset(**opened(str(TABLES), "runs")).to_table()
    assert set(rows_read["campaign"].to_pylist()) == {"nightly", "bugs"}
    assert all("/campaign=" in name for name in files_of(TABLES, "runs"))
    assert not list((tmp_path / "spool").glob("runs/*"))  # what was fetched is removed


def test_only_what_is_new_or_changed_is_fetched_and_an_outage_in_the_middle_changes_nothing(
    spark: Any, server: ObjectServer, runs: Path, tmp_path: Path
) -> None:
    """If it failed, every night would fetch all nights before it, a run that was judged again would keep its verdict,
    or an outage would leave half a batch for everybody.
    """
    analyzed(spark, tmp_path)
    server.asked.clear()

    def no_session() -> Any:
        raise AssertionError("Spark was started")

    again = analyze(RESULTS, TABLES, no_session, spool=tmp_path / "another spool")
    assert (again.new, again.changed, again.known, len(again.left_out)) == (0, 0, 3, 2)
    fetched = [asked for asked in server.asked if asked.startswith("GET b/results/")]
    assert all("20261121T000000Z-4" in asked for asked in fetched)  # the torn one may have been mended
    shutil.copytree(runs, tmp_path / "runs", symlinks=True)
    judged = next(path for path in whole(tmp_path / "runs") if path.parent.name == "nightly")
    verdict = msgspec.json.decode((judged / "verdict.json").read_bytes())
    (judged / "verdict.json").write_bytes(msgspec.json.encode({**verdict, "sentence": "mended"}))
    listed = {**(hashes.listed(judged) or {}), "verdict.json": hashes.of_file(judged / "verdict.json")}
    (judged / "hashes.json").write_bytes(hashes.document(listed))
    put_run(ObjectStore(RESULTS), RESULTS, judged)
    put_run(ObjectStore(RESULTS), RESULTS, store_run(tmp_path / "runs", 7))
    before = {table: remote_rows(table) for table in ("runs", "operations", "trend")}

    def away(asked: str) -> None:
        if "b/tables/wal/" in asked and asked.startswith(("PUT", "POST")):
            raise Gone

    server.breaks = away
    with pytest.raises(StoreError, match="no server answers at http://127") as raised:
        analyzed(spark, tmp_path)
    assert "\n" not in raised.value.message and raised.value.exit_code == 3
    server.breaks, server.is_gone = (lambda asked: None), False
    assert {table: remote_rows(table) for table in before} == before
    report = analyzed(spark, tmp_path)
    assert (report.new, report.changed, report.known) == (1, 1, 2)
    assert sum(remote_rows("runs").values()) == 4
    assert sum("'mended'" in row for row in remote_rows("runs")) == 1
    assert set(remote_rows("operations").values()) == {1}


def test_following_an_address_takes_what_comes_and_outlives_an_outage(
    spark: Any, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, whoever watches a team's night would look at yesterday's tables, or lose the watch to a hiccup."""
    monkeypatch.setattr(follow, "session", lambda *_, **__: nullcontext(spark))
    said: list[str] = []
    with object_server("b") as server:
        server.speak_through(monkeypatch)
        steps = [
            lambda: server.put("b", "results/notes.txt", b"mine"),
            lambda: put_run(ObjectStore(RESULTS), RESULTS, whole(runs)[-1]),
            lambda: setattr(server, "is_gone", True),
            lambda: setattr(server, "is_gone", False),
        ]

        def until() -> bool:
            if steps:
                steps.pop(0)()
                return False
            return True

        follow.follow_address(
            RESULTS,
            TABLES,
            tmp_path,
            "local[2]",
            {},
            said.append,
            log=tmp_path / "log",
            until=until,
            every_s=0.01,
        )
        assert sum(remote_rows("runs").values()) == 1
        assert "tables/overview.html" in server.present()
    told = [line for line in said if "following" not in line]
    assert len(told) == 2 and "1 new, 0 changed" in told[0] and "no server answers" in told[1], said


def test_the_verb_takes_addresses_and_says_in_one_line_what_is_wrong(
    server: ObjectServer, tmp_path: Path
) -> None:
    """If it failed, addresses would work in the library only, or a wrong one would be a traceback."""

    def said(*words: str, environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", "harness.cli", "analyze", *words]
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, **(environ or {})},
            check=False,
        )

    done = said("--results", "s3a://b/results", "--json")
    assert done.returncode == 0, done.stderr
    told = msgspec.json.decode(done.stdout)
    assert (told["new"], told["tables"], told["page"]) == (
        3, "s3://b/results/_tables", "s3://b/results/_tables/overview.html"
    )  # fmt: skip
    assert b"confirm" in server.buckets["b"]["results/_tables/overview.html"]
    for words, environ, code, line in (
        (("--results", "s3://none/x"), {}, 64, "there is no bucket none"),
        (
            ("--results", "s3://b/x"),
            {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"},
            3,
            "no server answers at http://127.0.0.1:9",
        ),
        (("--results", "s3://b/x", "--master", "spark://host:1"), {}, 64, "try: --spool FOLDER"),
    ):
        done = said(*words, environ=environ)
        assert done.returncode == code and line in done.stderr and done.stderr.count("\n") == 1, done.stderr
        assert "not-told" not in done.stderr


def test_an_address_without_a_spool_is_refused() -> None:
    """If it failed, what is fetched would land wherever the call happened to be."""
    with pytest.raises((StoreError, WrongUse), match="try: --spool"):
        analyze(RESULTS, TABLES, lambda: nullcontext(None))  # type: ignore[arg-type]
