"""Campaigns with known bugs in some of their cells: exactly these are anomalies, each under its fingerprints.

The campaign is `plans/three-bugs.toml` with fewer and shorter runs; by default in the simulator alone.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests import needs

ROOT = Path(__file__).parents[3]
PLAN = ROOT / "plans" / "three-bugs.toml"
SEEDS, CLUSTERS, LIMIT = "seeds = 4", 'cluster = ["sim", "local", "docker"]', "time_limit_s = 20"
PRINTS = {
    "confirm-early": "b0fda81e30",
    "duplicate-confirm": "d036a306a9",
    "decide-on-confirmed": "eeda8da1d8",
}
BY_RECORD = {"confirm-early": "b34ca007a5"}
"""In the simulator, which records the disks of all nodes: there it is seen that the quorum lacks the write."""


def shorter(folder: Path, clusters: list[str], limit_s: int) -> Path:
    text = PLAN.read_text()
    for old, new in (
        (SEEDS, "seeds = 1"),
        (CLUSTERS, f"cluster = {json.dumps(clusters)}"),
        (LIMIT, f"time_limit_s = {limit_s}"),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path = folder / "three-bugs.toml"
    path.write_text(text)
    return path


def start(plan: Path, results: Path) -> subprocess.Popen[str]:
    words = [
        sys.executable,
        "-P",
        "-m",
        "harness.cli",
        "nightly",
        str(plan),
        "--json",
        "--results",
        str(results),
    ]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def resumed(plan: Path, results: Path, timeout_s: float) -> dict[str, Any]:
    """The summary of the campaign, which goes on after it was killed."""
    process = start(plan, results)
    said, complained = process.communicate(timeout=timeout_s)
    assert process.returncode == 1, complained
    assert "going on with the campaign" in complained
    assert len(list(results.glob("_campaigns/*/2*"))) == 1
    found: dict[str, Any] = json.loads(said)
    return found


def kill_after(process: subprocess.Popen[str], results: Path, ended: int) -> None:
    """Kill -9 when so many runs have ended and others go on."""
    deadline_s = time.monotonic() + 300
    while (
        sum(path.read_text().count('"ended"') for path in results.glob("_campaigns/*/*/runs.jsonl")) < ended
    ):
        assert time.monotonic() < deadline_s and process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not list(results.glob("_campaigns/*/*/summary.json"))


def cells_by_fingerprint(found: dict[str, Any]) -> dict[str, list[str]]:
    return {group["fingerprint"]: sorted(group["cells"]) for group in found["groups"]}


def wanted(clusters: list[str]) -> dict[str, list[str]]:
    """Every cell with a bug, and no other, under the fingerprint of its bug."""
    cells = {
        "confirm-early": "qsync C {} register isolate-owner with confirm-early",
        "duplicate-confirm": "qsync H {} register pause with duplicate-confirm",
        "decide-on-confirmed": "qsync C {} bank pause with decide-on-confirmed",
    }
    found: dict[str, list[str]] = {}
    for bug, words in cells.items():
        for each in clusters:
            fingerprint = BY_RECORD.get(bug, PRINTS[bug]) if each == "sim" else PRINTS[bug]
            found.setdefault(fingerprint, []).append(words.format(each))
    return {fingerprint: sorted(named) for fingerprint, named in found.items()}


@pytest.mark.long
def test_exactly_the_cells_with_a_bug_are_anomalies_after_a_kill(tmp_path: Path) -> None:
    """If it failed, a night would miss a bug, accuse a store that is in order, or end otherwise after a kill."""
    plan = shorter(tmp_path, ["sim"], 8)
    process = start(plan, tmp_path / "results")
    kill_after(process, tmp_path / "results", ended=2)
    found = resumed(plan, tmp_path / "results", 120)
    assert cells_by_fingerprint(found) == wanted(["sim"])
    assert found["counts"] == {"valid": 1, "anomaly": 3, "unknown": 0, "inconclusive": 0, "broken": 0}
    assert found["not_reached"] == []


@pytest.mark.docker
def test_so_they_are_on_real_clusters_and_a_kill_leaves_no_containers(tmp_path: Path) -> None:
    """If it failed, what the simulator finds would look like another anomaly elsewhere, or a kill would leave nodes."""
    needs.docker().close()
    clusters = ["docker"]
    plan = shorter(tmp_path, clusters, 10)
    process = start(plan, tmp_path / "results")
    kill_after(process, tmp_path / "results", ended=1)
    found = resumed(plan, tmp_path / "results", 500)
    assert cells_by_fingerprint(found) == wanted(clusters)
    assert found["counts"]["anomaly"] == 3
