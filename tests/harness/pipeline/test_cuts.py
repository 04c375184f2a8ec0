"""The table of cuts over stored runs of two systems, against what their records and verdicts say."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pytest

from checkers.history import jsonl
from harness.pipeline.analyze import analyze
from harness.systems.cut_lines import asked_cuts
from tests.harness.pipeline.stored_runs import store_run

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs with cuts that finish, cuts that fail, and no cuts at all."""
    folder = tmp_path_factory.mktemp("results")
    twophase = {"system": "twophase", "workload": "bank", "variant": "seed-counter", "time_limit_s": 6.0}
    store_run(folder, 1, faults=("kill",), **twophase)
    store_run(folder, 2, name="markers", cut_every_s=0.5, faults=("none",))
    store_run(folder, 3, name="markers", cut_every_s=0.5, faults=("none",), bugs=("place-before-marker",))
    store_run(folder, 4, name="without", cut_every_s=0.0, faults=("none",))
    return folder


def _plain(run: Path) -> dict[str, dict[str, Any]]:
    """By cut, from history.jsonl and verdict.json: the slow twin."""
    verdict = msgspec.json.decode((run / "verdict.json").read_bytes())
    levels: dict[str, dict[str, str]] = {}
    for check in verdict["checks"]:
        if check["checker"].startswith("cuts-"):
            for said in check["details"]["cuts"]:
                word = said["result"] if said["standing"] == "judged" else said["standing"]
                levels.setdefault(said["cut"], {})[check["checker"].removeprefix("cuts-")] = word
    return {
        cut.cut: {
            "node": cut.node,
            "asked_ns": cut.asked_ns,
            "ended_ns": None if cut.ended_ns < 0 else cut.ended_ns,
            "state": cut.state,
            "levels": levels.get(cut.value.get("named", cut.cut), {}),
        }
        for cut in asked_cuts(jsonl.read(run / "history.jsonl"))
    }


def test_each_cut_is_a_row_with_the_verdict_of_each_level(spark: Any, results: Path) -> None:
    """If it failed, a cut would be counted as consistent that no level, or the wrong one, has judged."""
    import pyarrow.dataset

    tables = results / "_tables"
    analyze(results, tables, lambda: nullcontext(spark))
    rows = pyarrow.dataset.dataset(tables / "cuts", partitioning="hive").to_table().to_pylist()
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        fields = {name: row[name] for name in ("node", "asked_ns", "ended_ns", "state")}
        found.setdefault(row["run"], {})[row["cut"]] = {**fields, "levels": dict(row["levels"] or ())}
    runs = {f"{path.parent.name}/{path.name}": path for path in results.glob("*/*Z-[1234]")}
    assert len(runs) == 4
    expected = {name: cuts for name, path in runs.items() if (cuts := _plain(path))}
    assert found == expected
    assert len(found) == 3
    variants = {row["run"].split("/")[0]: (row["system"], row["variant"]) for row in rows}
    assert variants == {"nightly": ("twophase", "seed-counter"), "markers": ("qsync", "H")}
    said = {level for cuts in found.values() for cut in cuts.values() for level in cut["levels"].items()}
    assert {("marker", "valid"), ("marker", "invalid"), ("messages", "valid")} <= said
    assert {cut["state"] for cuts in found.values() for cut in cuts.values()} >= {"ok", "failed"}
