"""Whole runs on mounted disks: real Tarantool without power, nodes of ours in containers, and who is refused."""

from __future__ import annotations

import io
import json
import os
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import main
from harness.cluster.mounted_disk import mounts
from harness.errors import WrongUse
from harness.plan.plan import Plan
from harness.plan.promise import WRITES
from harness.run.assemble import parts_of
from harness.systems.plans import planned
from tests import needs
from tests.harness.in_effect import TRIES, faults_in_effect, until_in_effect


def run(folder: Path, *words: str) -> dict[str, Any]:
    printed = io.StringIO()
    with redirect_stdout(printed):
        main(["run", *words, "--rate", "100", "--json", "--results", str(folder)])
    verdict: dict[str, Any] = json.loads(printed.getvalue())
    assert not [point for point, _ in mounts.ours() if point.startswith(str(folder))]
    return verdict


@pytest.mark.parametrize(
    ("plan", "disk"),
    [
        (planned(system="tarantool", cluster="docker", faults=("power-one",)), "mounted"),
        (planned(system="tarantool", cluster="docker", faults=("kill",)), "node"),
        (planned(system="tarantool", cluster="docker"), "node"),
        (planned(faults=("power-one",)), "node"),
        (planned(faults=("kill",), disk="mounted"), "mounted"),
    ],
)
def test_a_disk_is_mounted_where_a_fault_needs_one(plan: Plan, disk: str) -> None:
    """If it failed, a store would be said to have survived a power loss that took nothing from it."""
    assert parts_of(plan).plan.disk == disk


def test_where_none_can_be_mounted_it_is_refused() -> None:
    """If it failed, `--disk mounted` would be ignored on other people's hosts, and in virtual time."""
    with pytest.raises(WrongUse, match="--disk mounted is for --cluster local or docker"):
        parts_of(planned(cluster="sim", disk="mounted"))


def test_without_rights_nothing_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a run that cannot be would leave a folder, or end in a traceback."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with redirect_stderr(io.StringIO()) as said:
        code = main(["run", "--disk", "mounted", "--results", str(tmp_path / "results")])
    assert code == 64
    assert "needs a disk mounted under each node" in said.getvalue()
    assert not (tmp_path / "results").exists()


def test_what_is_promised_of_a_log_that_nobody_syncs() -> None:
    """If it failed, Tarantool would be accused of what its documentation says, or be excused when it syncs."""

    def writes(**fields: Any) -> tuple[str, bool]:
        plan = planned(system="tarantool", cluster="docker", configuration="A", **fields)
        parts = parts_of(plan)
        promise = parts.system.promise(parts.plan)
        return promise.model(WRITES), "no fsync(2)" in promise.documented["linearizable"]

    assert writes(faults=("power-all",)) == ("", True)
    assert writes(faults=("power-all",), wal_mode="fsync") == ("linearizable", False)
    assert writes(faults=("kill",)) == ("linearizable", False)


@needs.mounted_disks
@pytest.mark.real
@needs.tarantool
def test_real_tarantool_loses_power(tmp_path: Path) -> None:
    """If it failed, what a real store loses with its power could not be seen, or would be judged by no promise."""
    words = ("--system", "tarantool", "--faults", "power-all,power-one", "--time-limit", "12", "--seed", "7")
    affected: list[dict[str, int]] = []
    for _ in range(TRIES):
        verdict = run(tmp_path, *words)
        lines = map(json.loads, (Path(verdict["folder"]) / "history.jsonl").read_text().splitlines()[1:])
        affected = [told["counters"] for _, told in faults_in_effect(lines)]
        if affected:
            break
    assert affected and all("bytes_lost" in counters for counters in affected), verdict["sentence"]
    assert not {"linearizable", "convergence", "quorum"} & set(verdict["violations"]), verdict["sentence"]
    assert list(Path(verdict["folder"]).glob("nodes/n1/*.xlog")), "its files are not where they belong"


@needs.mounted_disks
@pytest.mark.docker
def test_a_mounted_disk_reaches_into_containers(tmp_path: Path) -> None:
    """If it failed, disk faults in containers would befall a folder that no node sees."""
    needs.docker().close()
    words = ("--cluster", "docker", "--disk", "mounted", "--faults", "power-one", "--time-limit", "10")
    until_in_effect(lambda: run(tmp_path, *words, "--seed", "3"), "power-one")
