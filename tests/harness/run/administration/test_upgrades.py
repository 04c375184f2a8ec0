"""Rolling upgrades of real processes: the nodes tell the new version, keep what there was, or the verdict says so."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from checkers.history.history import History
from checkers.history.versions import version_spans
from harness.cluster.place import FROM, TO, Which
from harness.cluster.protocol import Cluster
from harness.errors import ClusterError, WrongUse
from harness.faults.fault import Does, Evidence
from harness.plan.plan import Drawn, Operation, Plan, to_json
from harness.run.administration.deployed import Deployed
from harness.run.administration.upgrades import VersionStep
from harness.run.assemble import parts_of
from harness.run.execute import execute
from harness.run.finish import finish, read_history
from harness.systems import system_of
from harness.systems.plans import from_json, planned
from harness.workloads import Workload
from nodes.version import VERSION
from tests.harness.faults.test_membership import fault
from tests.harness.node_versions import FORGETFUL, INCOMPATIBLE, ROOT, wheel
from tests.harness.run.administration.test_newcomers import _Now, over

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


# ---- one step, without any node


class _Nodes:
    """n1 to n3. A start gives a node the version that `told` has for what was asked for, without its last `lost` rows.
    `refuses` are the last words of a node that does not start, `broken` is what the cluster says of its failure."""

    def __init__(
        self,
        *,
        told: Mapping[str, str] = {FROM: "1", TO: "2"},
        lost: int = 0,
        refuses: str = "",
        broken: str = "",
        ends_by_sigterm: bool = True,
    ) -> None:
        self.states: dict[str, dict[str, object] | None] = {
            node: {"version": told[FROM], "vclock": {"1": 7}, "following": ["a", "b"]}
            for node in ("n1", "n2", "n3")
        }
        self.told, self.lost, self.refuses, self.broken = told, lost, refuses, broken
        self.ends_by_sigterm = ends_by_sigterm
        self.asked: list[tuple[str, ...]] = []
        self._now_ns = 0

    def now_ns(self) -> int:
        self._now_ns += 1
        return self._now_ns

    async def sleep_until(self, time_ns: int) -> None:
        self._now_ns = max(self._now_ns, time_ns)
        await _Now()

    async def status(self, node: str) -> Mapping[str, object] | None:
        return self.states[node]

    async def terminate(self, node: str) -> bool:
        self.asked.append(("terminate", node))
        self.states[node] = None
        return self.ends_by_sigterm

    async def destroy(self, node: str) -> None:
        raise AssertionError(node)

    async def start_again(self, node: str, **given: object) -> None:
        raise AssertionError(node)

    async def start_in(self, node: str, version: Which, otherwise: Which) -> str:
        self.asked.append(("start", node, version, otherwise))
        if self.broken:
            raise ClusterError(self.broken)
        runs = self.told[otherwise if self.refuses else version]
        self.states[node] = {"version": runs, "vclock": {"1": 7 - self.lost}, "following": ["a", "b"]}
        return self.refuses


def stepped(
    nodes: _Nodes, does: Does = "upgrade", deployed: Deployed | None = None
) -> tuple[Evidence, Deployed]:
    """The evidence of a step of n2."""
    deployed = deployed_over(nodes) if deployed is None else deployed

    async def both() -> Evidence:
        step = VersionStep(fault(0, does, 1, "n2"), deployed)
        await step.begin()
        return await step.end()

    return over(both()), deployed


def deployed_over(nodes: _Nodes) -> Deployed:
    asked = planned(node_from="older", node_to="newer.whl")
    return Deployed(
        asked, cast(Cluster, nodes), system_of(asked.system), (), lambda value: None, asked.members_at_first
    )


def test_a_step_takes_effect_when_the_node_tells_another_version() -> None:
    """Broken, an upgrade that starts what was there before would count as one that was survived."""
    nodes = _Nodes()
    evidence, deployed = stepped(nodes)
    assert nodes.asked == [("terminate", "n2"), ("start", "n2", TO, FROM)]
    assert (evidence.took_effect, evidence.healed) == (True, True)
    assert evidence.counters == {"ended": 1, "refused_to_start": 0}
    assert evidence.detail == "n2 ran 1, and runs 2"
    assert deployed.run_in == {"n2": TO} and not deployed.refused_versions
    evidence, _ = stepped(nodes, "downgrade", deployed)
    assert nodes.asked[-1] == ("start", "n2", FROM, TO)
    assert (evidence.took_effect, evidence.detail) == (True, "n2 ran 2, and runs 1")
    for told in ({FROM: "1", TO: "1"}, {FROM: "1", TO: ""}):
        evidence, _ = stepped(_Nodes(told=told))
        assert (evidence.took_effect, evidence.healed) == (False, True)


def test_a_version_that_was_not_told_in_time_is_no_other_one() -> None:
    """Broken, an upgrade that changed nothing would take effect because one answer came late."""

    class LateOnce(_Nodes):
        looks = 0

        async def status(self, node: str) -> Mapping[str, object] | None:
            self.looks += 1
            return None if self.looks == 4 else await super().status(node)

    evidence, _ = stepped(LateOnce(told={FROM: "1", TO: "1"}))
    assert (evidence.took_effect, evidence.detail) == (False, "n2 ran 1, and runs 1")


def test_a_node_without_its_earlier_rows_is_not_back() -> None:
    """Broken, the next node would be stopped although this one lacks what a quorum had."""
    evidence, _ = stepped(_Nodes(lost=1))
    assert (evidence.took_effect, evidence.healed, evidence.detail) == (False, False, "n2 has not caught up")


def test_a_refusal_is_told_and_a_failure_of_the_cluster_is_none() -> None:
    """Broken, a version would be accused of what the harness could not do, or the next step be made all the same."""
    evidence, deployed = stepped(_Nodes(refuses="no such format", ends_by_sigterm=False))
    assert (evidence.took_effect, evidence.healed) == (False, True)
    assert evidence.counters == {"ended": 1, "refused_to_start": 1}
    assert evidence.detail == (
        "n2 did not end by SIGTERM alone; "
        "n2 does not start in newer.whl on the files of 1: no such format; it goes on in 1"
    )
    assert deployed.refused_versions == ["n2"] and not deployed.run_in
    evidence, deployed = stepped(_Nodes(broken="no daemon"))
    assert (evidence.took_effect, evidence.healed) == (False, False)
    assert evidence.detail == "no daemon; n2 has not caught up"
    assert deployed.refused_versions == ["n2"] and not deployed.run_in


def test_a_step_waits_until_the_steps_before_it_are_over() -> None:
    """Broken, two of three nodes would be down at once, and a right store be without a quorum."""
    for wrong in ({"n1": None}, {"n1": {"version": "2", "following": ["a"]}}):
        nodes = _Nodes()
        nodes.states |= wrong
        deployed = deployed_over(nodes)
        deployed.run_in["n1"] = TO
        evidence, _ = stepped(nodes, deployed=deployed)
        assert nodes.asked == []
        assert (evidence.took_effect, evidence.healed, evidence.counters["ended"]) == (False, False, 0)
        assert evidence.detail.endswith("came before: nothing was done")


def test_all_nodes_tell_the_same_version_after_the_same_step() -> None:
    """Broken, a cluster of three versions would pass for one of two."""
    deployed = deployed_over(nodes := _Nodes())
    deployed.reported_versions[TO] = "3"
    evidence, _ = stepped(nodes, deployed=deployed)
    assert (evidence.took_effect, evidence.healed) == (True, False)
    assert evidence.detail == "n2 ran 1, and runs 2; other nodes run 3 after the same step"
