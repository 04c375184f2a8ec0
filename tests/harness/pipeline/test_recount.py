"""Fifteen figures over runs of all simulated systems, from the tables and counted by independent code."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.pipeline.analyze import analyze
from harness.pipeline.overview import overview
from harness.pipeline.report import Report
from tests.harness.pipeline.recount import of_runs, of_tables
from tests.harness.pipeline.stored_runs import store_run

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of each system a run with and one without an anomaly; a valid one whose checks found what is not promised."""
    folder = tmp_path_factory.mktemp("results")
    store_run(folder, 1, name="qsync", cut_every_s=1.0)
    bug = {"bugs": ("confirm-early",), "faults": ("isolate-owner",)}
    store_run(folder, 2, name="qsync", time_limit_s=10.0, **bug)
    weak: dict[str, Any] = {
        "workload": "append",
        "isolation": "read-committed",
        "faults": ("none",),
        "rate": 300.0,
    }
    store_run(folder, 6, name="twophase", system="twophase", **weak)
    torn = {"workload": "bank", "cut_every_s": 0.5, "faults": ("none",), "bugs": ("no-markers",)}
    store_run(folder, 4, name="twophase", system="twophase", **torn)
    store_run(folder, 5, name="txlog", system="txlog", time_limit_s=5.0, faults=("all",))
    store_run(folder, 3, name="txlog", system="txlog", bugs=("sort-by-timestamp",), faults=("none",))
    return folder


@pytest.fixture(scope="module")
def analyzed(spark: Any, results: Path) -> Report:
    return analyze(results, results / "_tables", lambda: nullcontext(spark))


def test_figures_of_the_tables_are_those_of_the_runs(analyzed: Report, results: Path) -> None:
    """If it failed, what a night says in its tables would not be what its runs said."""
    plain, found = of_runs(results), of_tables(results / "_tables")
    assert {name: found[name] for name in plain} == plain
    assert len(plain) >= 12 and all(plain.values())


def test_findings_are_no_anomalies(analyzed: Report, results: Path) -> None:
    """If it failed, valid runs of a store that promises little would be full of anomalies, without a fingerprint."""
    verdicts = {
        path.parent: msgspec.json.decode(path.read_bytes()) for path in results.glob("[!l]*/*/verdict.json")
    }
    outcomes = {f"{run.parent.name}/{run.name}": verdict["outcome"] for run, verdict in verdicts.items()}
    figures = of_tables(results / "_tables")
    assert figures["anomalous runs"] == {run for run, outcome in outcomes.items() if outcome == "anomaly"}
    assert {outcomes[run] for run in figures["runs with findings"]} >= {"valid"}
    content = overview(results / "_tables")
    content.write(results / "page.html", analyzed)
    page = (results / "page.html").read_text()
    anomalies, findings = page.index("Anomalies by fingerprint"), page.index("Findings by fingerprint")
    shown = content.as_json(analyzed, "page")
    for row in shown["findings"]:
        assert row["fingerprint"] in page[findings:] and row["fingerprint"] not in page[anomalies:findings]
    assert shown["findings"] and shown["fingerprints"]
    assert "of findings, which break no promise" in "\n".join(content.lines(analyzed, "page"))
