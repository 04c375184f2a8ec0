"""From a run's folder to its row in a certificate. Nothing is taken from the stored verdict.

The run is judged again by its plan, its record and the files of its nodes. The stored verdict must say the same, and
the independent verifier (`checkers.proofs.verify`) must accept its proofs, because a reader of the bundle gets these.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import msgspec

from checkers.history.versions import version_spans
from harness.judge import judge
from harness.judge.files import verified
from harness.plan.plan import Plan
from harness.results import RunFolder
from harness.results.hashes import Hashed, of_history
from harness.run.finish import stored as read_run
from harness.systems import plans

OF_A_PLACE = ("repeat", "drawings", "strongest", "verified", "folder")
"""Parts of a stored verdict that are not compared: they judge nothing, or name a folder of the machine."""
LATER = ("rare_turns", "observed")
"""Parts of the evidence that verdicts of earlier versions lack; they judge nothing, and are worked out again."""
OF_THE_WAY = frozenset({"seconds", "decided_by", "configurations_max"})
"""Names in a verdict whose values depend on the judging process: on its speed, and on the code that it had loaded."""


class JudgedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run of the matrix, judged again. `run`: its folder below results/."""

    run: str
    cell: str
    seed: int
    plan: Plan
    outcome: str
    exit_code: int
    sentence: str
    evidence: dict[str, Any]
    promise: dict[str, str]
    sources: dict[str, str]
    checks: dict[str, str]
    """Name → result, of each check that judged something; the checks that had nothing to judge are `idle`."""
    idle: tuple[str, ...]
    findings: tuple[str, ...]
    proofs: int
    without: tuple[str, ...]
    refused: tuple[str, ...]
    """Why the stored verdict is refused."""
    versions: tuple[str, ...]
    history: Hashed

    @property
    def in_effect(self) -> Counter[str]:
        return Counter(fault["name"] for fault in self.evidence["faults"] if fault["took_effect"])

    @property
    def begun(self) -> Counter[str]:
        return Counter(fault["name"] for fault in self.evidence["faults"])


def row_of(folder: RunFolder, run: str, cell: str) -> JudgedRun:
    """Judge a run again. Raises HarnessError if it cannot be judged."""
    plan = plans.read(folder.plan_file)
    case = read_run(folder, plan).case
    verdict = msgspec.json.decode(msgspec.json.encode(judge(case)))
    stored = folder.read_verdict()
    refused = _refused(stored, verdict)
    proofs: dict[str, Any] = {}
    if stored is not None and not refused:
        proofs = dict(stored)
        settled = partial(verified.settled_in_run, case)
        verified.add_to(proofs, case.history, verified.verifiers_in_run(case), settled)
    report = proofs.get("verified", {})
    judged = {check["checker"]: check for check in verdict["checks"]}
    return JudgedRun(
        run=run,
        cell=cell,
        seed=plan.seed,
        plan=plan,
        outcome=verdict["outcome"],
        exit_code=verdict["exit_code"],
        sentence=verdict["sentence"],
        evidence=verdict["evidence"],
        promise=verdict["promise"],
        sources=dict(case.promise.documented),
        checks={
            name: entry["result"] for name, entry in judged.items() if not entry["details"].get("vacuous")
        },
        idle=tuple(name for name, entry in judged.items() if entry["details"].get("vacuous")),
        findings=tuple(f"{entry['checker']}: {entry['summary']}" for entry in verdict["findings"]),
        proofs=report.get("accepted", 0),
        without=tuple(report.get("without", ())),
        refused=(*refused, *report.get("refused", ())),
        versions=tuple(sorted({span.version or "" for span in version_spans(case.history)} - {""})),
        history=of_history(folder.history),
    )


def _refused(stored: dict[str, Any] | None, verdict: dict[str, Any]) -> list[str]:
    """How a stored verdict differs from that of its run judged again, a sentence each; empty if it does not."""
    if stored is None:
        return ["it has no stored verdict"]
    verdict = _as_early(verdict, stored)
    names = [name for name in (*verdict, *stored) if name not in OF_A_PLACE]
    differ = [
        name
        for name in dict.fromkeys(names)
        if _without_the_way(stored.get(name)) != _without_the_way(verdict.get(name))
    ]
    if not differ:
        return []
    said, is_now = stored.get("outcome"), verdict["outcome"]
    return [
        f"its stored verdict says {said}, judged again it is {is_now}; they differ in {', '.join(differ)}"
    ]


def _as_early(verdict: dict[str, Any], stored: dict[str, Any]) -> dict[str, Any]:
    """The verdict without the parts of the evidence that a stored verdict of an earlier version lacks."""
    earlier = stored.get("evidence")
    lacks = [name for name in LATER if isinstance(earlier, dict) and name not in earlier]
    evidence = {name: part for name, part in verdict["evidence"].items() if name not in lacks}
    return {**verdict, "evidence": evidence}


def _without_the_way(part: Any) -> Any:
    """The part without `OF_THE_WAY`, and with the number of proofs in their place, because equal proofs may differ in
    order. The stored proofs are verified by themselves."""
    match part:
        case dict():
            compared = {
                name: _without_the_way(inner) for name, inner in part.items() if name not in OF_THE_WAY
            }
            return compared | (
                {"proofs": len(part["proofs"])} if isinstance(part.get("proofs"), list) else {}
            )
        case list():
            return [_without_the_way(inner) for inner in part]
    return part
