"""Rolling upgrades of real processes: the nodes tell the new version, keep what there was, or the verdict says so."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from checkers.history.history import History
from checkers.history.versions import version_spans
from harness.errors import WrongUse
from harness.plan.plan import Drawn, Operation, Plan, to_json
from harness.run.assemble import parts_of
from harness.run.execute import execute
from harness.run.finish import finish, read_history
from harness.systems.plans import from_json, planned
from harness.workloads import Workload
from nodes.version import VERSION
from tests.harness.faults.test_membership import fault
from tests.harness.node_versions import FORGETFUL, INCOMPATIBLE, ROOT, wheel

OLDER = "0.0.9"


WRITTEN = tuple((f"r{number}", number) for number in range(8))


class WrittenBefore:
    """A workload whose load begins when all of `WRITTEN` is acknowledged, however long that takes."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload

    def __getattr__(self, name: str) -> Any:
        return getattr(self._workload, name)

    def first_operations(self, plan: Plan, owner: str) -> list[Operation]:
        return [
            Operation(at_ns=0, worker=0, f="write", key=key, value=value, node=owner)
            for key, value in WRITTEN
        ]


def plan(folder: Path, *steps: tuple[str, str], **given: Any) -> Plan:
    """The steps one behind the other, however long each takes."""
    faults = tuple(fault(number, does, 1 + 2 * number, node) for number, (does, node) in enumerate(steps))
    drawn = Drawn(faults=faults, operations=())
    kept = {"time_limit_s": 300.0, "settle_timeout_s": 100.0, "request_timeout_s": 20.0}
    older = str(wheel(folder, OLDER))
    return planned(**{"faults": ("rolling-upgrade",), "node_from": older, "drawn": drawn, **kept, **given})


def run(asked: Plan, folder: Path) -> tuple[dict[str, Any], History]:
    parts = parts_of(asked)
    workload = cast(Workload, WrittenBefore(parts.workload))
    executed = execute(replace(parts, workload=workload), folder)
    assert executed.failure is None, executed.failure
    return finish(executed.folder, parts.plan), read_history(executed.folder)


@pytest.mark.long
def test_every_node_comes_to_the_newer_version_with_what_it_had(tmp_path: Path) -> None:
    """Broken, the upgrade starts the version that was there, on an empty disk, or nobody can see who ran what when."""
    steps = [("upgrade", "n2"), ("upgrade", "n1"), ("upgrade", "n3"), ("downgrade", "n2")]
    verdict, history = run(plan(tmp_path, *steps), tmp_path / "results")
    assert [(step.took_effect, step.healed) for step in history.faults] == [(True, True)] * 4, history.faults
    assert verdict["violations"] == []
    for dump in history.dumps:
        assert {tuple(row) for row in dump.value["spaces"]["register"]} == {*WRITTEN}, dump
    assert not any("upgrade" in finding["checker"] for finding in verdict["findings"])
    told = {
        node: [span.version.partition("+")[0] for span in version_spans(history) if span.node == node]
        for node in history.header.nodes
    }
    assert sorted(told.values()) == [[OLDER, VERSION], [OLDER, VERSION], [OLDER, VERSION, OLDER]]
    assert {row["node"] for row in verdict["versions"]} == {"n1", "n2", "n3"}


@pytest.mark.long
def test_a_version_that_does_not_start_on_the_older_files_is_told_in_one_line(tmp_path: Path) -> None:
    """Broken, an upgrade that cannot be done is a crash, an error of the harness, or green."""
    newer = wheel(tmp_path, "0.2.0", INCOMPATIBLE)
    asked = plan(tmp_path, ("upgrade", "n2"), ("upgrade", "n1"), nodes=2, node_to=str(newer))
    verdict, history = run(asked, tmp_path / "results")
    (step,) = history.faults  # nobody goes on behind a version that does not start
    assert not step.took_effect
    assert history.crashes == ()
    assert verdict["outcome"] == "inconclusive"
    (finding,) = [each for each in verdict["findings"] if each["checker"] == "upgrade"]
    assert re.match(r"incompatible: n\d does not start in qsync_harness-0.2.0", finding["summary"])
    assert "its format is that of the version before" in finding["summary"]
    assert {span.version.partition("+")[0] for span in version_spans(history)} == {OLDER}


@pytest.mark.long
def test_a_version_that_forgets_what_the_older_one_wrote_is_found(tmp_path: Path) -> None:
    """Broken, acknowledged writes that are lost over an upgrade go unseen."""
    newer = wheel(tmp_path, "0.3.0", FORGETFUL)
    asked = plan(tmp_path, ("upgrade", "n2"), ("upgrade", "n1"), nodes=2, node_to=str(newer))
    verdict, history = run(asked, tmp_path / "results")
    assert all(step.took_effect for step in history.faults)
    assert verdict["outcome"] == "anomaly", verdict["sentence"]
    assert "linearizable" in verdict["violations"]


def test_a_plan_keeps_its_versions(tmp_path: Path) -> None:
    """Broken, a stored plan repeats the run without its upgrade."""
    asked = plan(tmp_path, ("upgrade", "n2"), node_to="HEAD")
    again = from_json(to_json(asked), "the plan")
    assert (again.node_from, again.node_to) == (asked.node_from, "HEAD")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"node_from": "/nowhere/at/all"}, "no file, folder or commit /nowhere/at/all"),
        ({"node_from": str(ROOT / "docs")}, "holds no nodes"),
        ({"node_from": str(ROOT / "README.md")}, "cannot be read as a wheel"),
        ({"node_from": str(ROOT)}, "are the same version"),
        ({"node_to": str(ROOT)}, "--node-to needs --node-from"),
        ({"node_from": str(ROOT), "cluster": "sim"}, "the simulator runs the nodes of this checkout"),
        ({"node_from": str(ROOT), "system": str(ROOT / "docs/mystore.py")}, "does not tell the harness how"),
    ],
)
def test_what_is_no_other_version_is_refused_in_one_line(given: dict[str, str], why: str) -> None:
    """Broken, a wrong path is a traceback, or a run that upgrades nothing."""
    with pytest.raises(WrongUse, match=why) as refused:
        parts_of(planned(**{"faults": ("none",), **given}))  # type: ignore[arg-type]  # texts, all of them
    assert "\n" not in refused.value.message
