"""The page over many runs, from rows of the aggregates and without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.pipeline.overview import AGGREGATES, Overview, Rows
from harness.pipeline.report import Report


def page(folder: Path, **rows: Rows) -> str:
    made = Overview(folder, {name: rows.get(name, []) for name in AGGREGATES})
    made.write(folder / "overview.html", Report(folder))
    return (folder / "overview.html").read_text()


def covered(**of: Any) -> dict[str, Any]:
    counts = ("runs", "injected", "took_effect", "healed", "in_effect_s", "ok_meanwhile", "not_ok_meanwhile")
    names = {"campaign": "nightly", "system": "qsync", "cluster": "sim", "workload": "bank", "name": "kill"}
    return dict.fromkeys(counts, 1) | names | of


def test_faults_of_different_systems_and_workloads_have_rows_that_differ(tmp_path: Path) -> None:
    """A reader could not tell on which system a fault never took effect."""
    rows = [covered(), covered(workload="set"), covered(system="txlog")]
    html = page(tmp_path, fault_coverage=rows)
    drawn = [line for line in html.split("<tr>") if ">kill<" in line]
    assert len(drawn) == len(set(drawn)) == 3


def test_a_plan_of_an_early_version_may_lack_its_cluster(tmp_path: Path) -> None:
    """One such run would end every analyze with a traceback, after its rows are in the tables."""
    assert ">kill<" in page(tmp_path, fault_coverage=[covered(cluster=None, workload=None, system=None)])
