"""A run that is read as columns is judged as one that is read as objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from checkers.history import jsonl, stored
from checkers.history.history import History
from checkers.history.stored import StoredOperations
from checkers.linearizable import checker
from checkers.logs.wal import NodeLog
from checkers.logs.wal.plain import StoredRecords
from checkers.replicas import availability, convergence
from harness.judge import Case, Left, judge
from harness.judge.evidence import evidence_of
from harness.judge.promised import checks_of, promise_of
from harness.plan.plan import Plan
from harness.run.assemble import header, parts_of, simulated
from harness.run.conductor import Conductor
from harness.systems.qsync import logs as qsync_logs
from harness.systems.qsync.options import settings_of
from tests.checkers.over_objects import over_objects
from tests.harness.runs import small
from tests.suites import mostly_long

PLANS = (
    small(seed=1, faults=("all",), overlap=2, time_limit_s=12.0, deletes=0.2, write_once=0.1),
    small(seed=2, configuration="H", faults=("all", "membership"), time_limit_s=12.0),
    small(seed=3, workload="set", faults=("kill", "isolate-owner")),
    small(seed=4, workload="bank", failing=0.1, faults=("pause",)),
    small(seed=5, bugs=("confirm-early",), faults=("isolate-owner",)),
    small(seed=6, faults=("isolate-owner",), least_ok=100_000, deletes=0.5, rate=3.0),
    small(seed=7, commit_wait="mixed", faults=("isolate-owner",)),
)
SHORT = (
    small(
        seed=8,
        faults=("kill",),
        time_limit_s=4.0,
        rate=60.0,
        deletes=0.2,
        write_once=0.1,
        cut_every_s=0,  # cuts make objects of logs
    ),
    small(seed=9, workload="set", faults=("isolate-owner",), time_limit_s=4.0, rate=60.0),
    small(seed=10, workload="bank", failing=0.1, faults=("none",), time_limit_s=2.0, rate=60.0),
    small(seed=11, bugs=("confirm-early",), faults=("isolate-owner",), time_limit_s=5.0, rate=60.0),
    small(seed=12, commit_wait="mixed", faults=("none",), time_limit_s=2.0, rate=60.0),
)


@pytest.mark.parametrize(
    "plan", mostly_long((*SHORT, *PLANS), quick=(*SHORT, PLANS[5])), ids=lambda plan: str(plan.seed)
)
def test_a_long_record_is_judged_as_a_short_one(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verdict, or what a run is said to lack, would hang on its length."""
    parts = parts_of(plan)
    cluster = simulated(parts, None)
    path = tmp_path / "history.jsonl"
    with path.open("wb") as file:
        record = jsonl.Writer(file, header(parts))
        cluster.run(Conductor(plan, cluster, parts.system, parts.workload, record).run())
    files, effects = cluster.files(), cluster.effects()
    logs = parts.system.logs.of(files)
    with over_objects():
        expected = judge(Case(plan, jsonl.read(path), Left(logs=logs, effects=effects)))
    assert expected["settled"] is not None
    assert _told(judge(Case(plan, jsonl.read(path), Left(logs=logs, effects=effects)))) == _told(expected)
    monkeypatch.setattr(jsonl, "LARGE", 0)
    monkeypatch.setattr(checker, "CALLS_AT_ONCE", 50)
    monkeypatch.setattr(convergence, "AT_ONCE", 50)
    monkeypatch.setattr(availability, "AT_ONCE", 50)
    history = jsonl.read(path)
    assert isinstance(history.operations, StoredOperations) or plan.workload == "bank"
    assert _told(judge(Case(plan, history, Left(logs=logs, effects=effects)))) == _told(expected)
    if plan.workload == "register":
        _logs_too(plan, history, files, logs, tmp_path, monkeypatch)


def _logs_too(
    plan: Plan,
    history: History,
    files: Mapping[str, Mapping[str, bytes]],
    logs: Sequence[NodeLog],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The logs of a cluster of processes: nobody records what disks and links do there."""
    for node, its_files in files.items():
        for name, data in its_files.items():
            path = folder / node / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    history = replace(history, header=structs.replace(history.header, cluster="local"))
    expected = judge(Case(plan, history, Left(logs=logs)))
    monkeypatch.setattr(qsync_logs, "LARGE", 0)
    columns = qsync_logs.read_logs(folder)
    assert all(isinstance(log.records, StoredRecords) for log in columns)
    assert _told(judge(Case(plan, history, Left(logs=columns)))) == _told(expected)
    if not plan.bugs and not plan.submits and not settings_of(plan).cut_every_s:
        for log in columns:
            assert isinstance(log.records, StoredRecords)
            assert log.records._made is None, "objects were made, although the logs are in order"


@pytest.mark.parametrize("read", [pytest.param("linearizable", marks=pytest.mark.long), "read-confirmed"])
def test_a_valid_run_of_registers_is_judged_without_all_objects(
    read: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken, a run of a day takes half a KiB for each of its operations when it is judged."""
    plan = small(seed=8, read=read, faults=("all",), replica_reads=0.5)
    parts = parts_of(plan)
    cluster = simulated(parts, None)
    with (tmp_path / "history.jsonl").open("wb") as file:
        record = jsonl.Writer(file, header(parts))
        cluster.run(Conductor(plan, cluster, parts.system, parts.workload, record).run())
    monkeypatch.setattr(jsonl, "LARGE", 0)
    monkeypatch.setattr(stored, "MANY", 1.0)
    monkeypatch.setattr(StoredOperations, "all", property(_no_objects))
    history = jsonl.read(tmp_path / "history.jsonl")
    promise = promise_of(plan, history)
    verdicts = {check.name: check.run(history) for check in checks_of(plan, promise)}
    assert {name for name, each in verdicts.items() if each.result == "invalid"} <= {"early-timeout"}
    assert verdicts["convergence"].result == "valid"
    assert bool(verdicts["prefix"].details["replica_reads"]) == (read == "read-confirmed")
    assert evidence_of(Case(plan, history), ()).facts["ok"]


def _no_objects(operations: StoredOperations) -> None:
    raise AssertionError("all operations are asked for")


def _told(verdict: dict[str, Any]) -> dict[str, Any]:
    """Without the time that checks took, and without what the order of two searches decides."""
    for check in (*verdict["checks"], *verdict["settled"]["checks"]):
        check["seconds"] = 0
        check["details"] = {
            name: each
            for name, each in check["details"].items()
            if name not in ("configurations_max", "decided_by")
        }
    return verdict
