"""Proofs about logs and traces of nodes are checked again by code that shares nothing with the checkers."""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from checkers import linearizable
from checkers.history import Header, History
from checkers.proofs.meaning import Terms
from harness.judge.files import verified
from harness.run.assemble import parts_of
from harness.run.execute import execute
from harness.run.finish import Recorded, stored
from harness.run.finish import judged as judge
from harness.systems.plans import planned

PROVED = {
    "twophase": ("cuts-messages", "cuts-transactions", "cuts-closure", "cuts-external-causality"),
    "txlog": ("txlog-order", "txlog-once", "txlog-executed", "txlog-counters"),
}


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """By system: the verdict on a run, its history, and what verifies its checks."""

    @cache
    def made(system: str) -> tuple[dict[str, Any], History, dict[str, verified.Verifier]]:
        results: Path = tmp_path_factory.mktemp(system)
        plan = planned(system=system, cluster="sim", seed=1, time_limit_s=4.0, faults=("kill",))
        folder = execute(parts_of(plan), results).folder
        run = stored(folder, plan, Recorded(str(folder.path)))
        verdict = msgspec.json.decode(msgspec.json.encode(judge(run)))
        return verdict, run.case.history, verified.verifiers_in_run(run.case)

    return made


@pytest.mark.parametrize("system", PROVED)
def test_the_proofs_of_nodes_are_accepted(system: str, judged: Any) -> None:
    """If it failed, a verdict on cuts or on the TxLog's logs would have to be believed."""
    verdict, history, verifiers = judged(system)
    verdict = copy.deepcopy(verdict)
    verdict["checks"] = [check for check in verdict["checks"] if check["checker"] in PROVED[system]]
    verified.add_to(verdict, history, verifiers)
    assert verdict["verified"]["accepted"] >= len(PROVED[system])
    assert verdict["verified"]["holds"] is True


@pytest.mark.parametrize("check", PROVED["twophase"][:3])
def test_a_cut_that_is_said_to_be_wrong_without_being_it_is_refused(check: str, judged: Any) -> None:
    """If it failed, any word about a cut would be accepted, whatever messages and logs say."""
    verdict, history, verifiers = judged("twophase")
    verdict = copy.deepcopy(verdict)
    (told,) = (each for each in verdict["checks"] if each["checker"] == check)
    cut = next(each for each in told["details"]["cuts"] if each["result"] == "valid")
    cut["result"] = "invalid"
    verified.add_to(verdict, history, verifiers)
    assert any(cut["cut"] in reason for reason in verdict["verified"]["refused"])


def test_a_verdict_that_leaves_a_cut_out_is_refused(judged: Any) -> None:
    """If it failed, a wrong cut could be left out of a verdict, and its proofs would still be accepted."""
    verdict, history, verifiers = judged("twophase")
    verdict = copy.deepcopy(verdict)
    (told,) = (each for each in verdict["checks"] if each["checker"] == "cuts-messages")
    name = told["details"]["cuts"].pop()["cut"]
    verified.add_to(verdict, history, verifiers)
    assert verdict["verified"]["refused"] == [f"messages of {name}: it is left out"]


def test_a_log_that_is_shorter_than_its_proof_is_refused(judged: Any) -> None:
    """If it failed, a proof that all masters agree would be accepted without a look at their logs."""
    verdict, history, verifiers = judged("txlog")
    verdict = copy.deepcopy(verdict)
    (told,) = (each for each in verdict["checks"] if each["checker"] == "txlog-order")
    told["details"]["proofs"][0]["lengths"]["n1"] += 1
    verified.add_to(verdict, history, verifiers)
    assert verdict["outcome"] == "unknown"
    assert "txlog-order" in verdict["sentence"]


def test_a_proof_that_is_too_deep_to_read_is_refused() -> None:
    """If it failed, `certify --verify` would end with a traceback at a bundle that was bent."""
    deep: Any = 1
    for _ in range(600):
        deep = [deep]
    history = History.of(Header(), [])
    proof = {"kind": "zones", "keys": ["x"], "values": [deep]}
    check = linearizable.check(history).to_json() | {"result": "valid"}
    check["details"] = check["details"] | {"proofs": [proof]}
    verdict = {"outcome": "valid", "checks": [check]}
    verified.add_to(verdict, history, verified.verifiers({"linearizable": Terms(model="register")}))
    assert verdict["outcome"] == "unknown"
    assert "its proofs cannot be read: RecursionError" in verdict["verified"]["refused"][0]
