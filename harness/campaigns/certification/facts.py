"""From a run's folder to the row that a certificate is made of. Nothing is taken from the stored verdict.

The run is judged again by its plan, its record and what its nodes left. The stored verdict must say the same, and the
independent verifier (`checkers.proofs.verify`) must accept its proofs, which are those that a reader of the bundle
gets.
"""

from __future__ import annotations

import copy
from collections import Counter
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
"""Parts of a stored verdict that judge nothing, or name a folder of the machine."""
LATER = ("rare_turns", "observed")
"""Parts of the evidence that verdicts of earlier versions lack; they judge nothing, and are worked out again."""
OF_THE_WAY = frozenset({"seconds", "decided_by", "configurations_max"})
"""Names in a verdict whose values hang on the process that judges: on its speed, and on the code that it had loaded."""
"""How long a check took, which is never the same."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
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
        return Counter(each["name"] for each in self.evidence["faults"] if each["took_effect"])

    @property
    def begun(self) -> Counter[str]:
        return Counter(each["name"] for each in self.evidence["faults"])


def row_of(folder: RunFolder, run: str, cell: str) -> Row:
    """Judge a run again. Raises HarnessError if it cannot be judged."""
    plan = plans.read(folder.plan_file)
    case = read_run(folder, plan).case
    verdict = msgspec.json.decode(msgspec.json.encode(judge(case)))
    stored = folder.read_verdict()
    refused = _refused(stored, verdict)
    proofs: dict[str, Any] = {}
    if stored is not None and not refused:
        proofs = copy.deepcopy(stored)
        verified.add_to(proofs, case.history, verified.verifiers_in_run(case))
    found = proofs.get("verified", {})
    judged = {check["checker"]: check for check in verdict["checks"]}
    return Row(
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
        checks={name: each["result"] for name, each in judged.items() if not each["details"].get("vacuous")},
        idle=tuple(name for name, each in judged.items() if each["details"].get("vacuous")),
        findings=tuple(f"{each['checker']}: {each['summary']}" for each in verdict["findings"]),
        proofs=found.get("accepted", 0),
        without=tuple(found.get("without", ())),
        refused=(*refused, *found.get("refused", ())),
        versions=tuple(sorted({span.version or "" for span in version_spans(case.history)} - {""})),
        history=of_history(folder.history),
    )


def _refused(stored: dict[str, Any] | None, verdict: dict[str, Any]) -> list[str]:
    """Why a stored verdict is not the one of its run."""
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
    """Without the later parts of the evidence that the stored verdict lacks."""
    told = stored.get("evidence")
    lacks = [name for name in LATER if isinstance(told, dict) and name not in told]
    evidence = {name: each for name, each in verdict["evidence"].items() if name not in lacks}
    return {**verdict, "evidence": evidence}


def _without_the_way(part: Any) -> Any:
    """Of proofs their number: another way proves the same by another order. The stored ones are verified themselves."""
    match part:
        case dict():
            told = {name: _without_the_way(each) for name, each in part.items() if name not in OF_THE_WAY}
            return told | ({"proofs": len(part["proofs"])} if isinstance(part.get("proofs"), list) else {})
        case list():
            return [_without_the_way(each) for each in part]
    return part
