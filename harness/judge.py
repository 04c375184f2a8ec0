"""The judge: verdicts of checkers + what was promised + what evidence there is → the outcome and the exit code.

| outcome | exit | when |
|---|---|---|
| anomaly | 1 | a checker's verdict is invalid where something is promised, whatever else is the case |
| not-evidence | 3 | the run shows too little to say anything good of it |
| unknown | 2 | a checker could not decide |
| valid | 0 | none of these |

A *violation* is of the promise. A *finding* is allowed, yet weaker than a reader may think: it is shown just as well
and changes no exit code. What a run must show to be evidence stands in `_missing`: load that succeeded, also under
faults, and faults that were felt and healed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from checkers import availability, convergence, crash, dirty, linearizable, prefix, quorum
from checkers.history.history import History
from checkers.history.operation import Operation
from checkers.verdict import Verdict, run_safely
from harness.plan import SECOND_NS, Plan
from harness.systems.promises import Promise

FORMAT = "qsync-verdict"
VERSION = 1
CHECK_TIMEOUT_S = 60.0
USEFUL_SHARE = 1 / 3
"""The share of the operations asked for that must succeed."""
USEFUL_SHARE_UNDER_FAULT = 1 / 20
"""The share of the operations asked for that must succeed while a fault is active."""
STALLED_MS_MAX = 1_000.0

Outcome = Literal["valid", "anomaly", "unknown", "not-evidence"]
EXIT_CODES: dict[Outcome, int] = {"valid": 0, "anomaly": 1, "unknown": 2, "not-evidence": 3}


@dataclass(frozen=True, slots=True)
class Check:
    """One checker: its rule in a few words, and the model that it judges against ("": it only measures)."""

    name: str
    summary: str
    model: str
    run: Callable[[History], Verdict]


def checks_for(promise: Promise, stricter: str | None) -> tuple[Check, ...]:
    """The checks of a run; `stricter` judges every read that is not dirty by that model."""
    everywhere = stricter == "linearizable"

    def reads(role: str | None, mode: str | None) -> bool:
        return mode != "dirty" and (everywhere or linearizable.promised_linearizable(role, mode))

    return (
        Check(
            "linearizable",
            "every key has one order of its operations that fits real time",
            promise.owner_reads,
            lambda history: linearizable.check(history, timeout_s=CHECK_TIMEOUT_S, reads=reads),
        ),
        Check(
            "quorum",
            "nothing is acknowledged while the owner cannot reach a quorum",
            "acknowledged only with a quorum",
            quorum.check,
        ),
        Check(
            "prefix",
            "reads at a replica show confirmed values only and never go back",
            promise.replica_reads,
            prefix.check,
        ),
        Check(
            "dirty", "dirty reads show only what somebody asked to write", promise.dirty_reads, dirty.check
        ),
        Check(
            "convergence",
            "after healing all nodes hold the same: nothing confirmed is missing, nothing failed is there",
            "all nodes the same, nothing confirmed lost",
            convergence.check,
        ),
        Check("crash", "no node ends without a fault telling it to", "no node ends untold", crash.check),
        Check(
            "availability",
            "how long nodes could not serve, and how much load came through",
            "",
            availability.check,
        ),
    )


def judge(
    plan: Plan, promise: Promise, history: History, *, interrupted: bool = False, failure: str | None = None
) -> dict[str, Any]:
    """The content of verdict.json."""
    checks = checks_for(promise, plan.promise)
    verdicts = [run_safely(check.run, history, name=check.name) for check in checks]
    evidence = _evidence(plan, history, interrupted, failure)
    outcome = _outcome(verdicts, evidence["missing"])
    return {
        "format": FORMAT,
        "version": VERSION,
        "outcome": outcome,
        "exit_code": EXIT_CODES[outcome],
        "sentence": _sentence(outcome, verdicts, evidence),
        "promise": {
            "configuration": promise.configuration,
            "why": promise.why,
            **{check.name: check.model for check in checks if check.model},
        },
        "violations": [verdict.checker for verdict in verdicts if verdict.result == "invalid"],
        "findings": [
            {"checker": verdict.checker, "summary": finding}
            for verdict in verdicts
            for finding in verdict.details.get("findings", ())
        ],
        "evidence": evidence,
        "checks": [verdict.to_json() for verdict in verdicts],
        "repeat": {
            "command": repeat_line(plan),
            "repeats": "outcome" if plan.cluster == "sim" else "schedule",
        },
        "run": {
            "system": plan.system,
            "cluster": plan.cluster,
            "workload": plan.workload,
            "seed": plan.seed,
            "bugs": list(plan.bugs),
        },
    }


def _outcome(verdicts: Sequence[Verdict], missing: Sequence[str]) -> Outcome:
    results = {verdict.result for verdict in verdicts}
    if "invalid" in results:
        return "anomaly"
    if missing:
        return "not-evidence"
    return "unknown" if "unknown" in results else "valid"


# ---- evidence


def _evidence(plan: Plan, history: History, interrupted: bool, failure: str | None) -> dict[str, Any]:
    load = [operation for operation in history.operations if operation.phase == "load"]
    done = [operation for operation in load if operation.type == "ok"]
    spans = [
        (fault.all_in_effect_ns, fault.heal_asked_ns)
        for fault in history.faults
        if fault.bit and fault.all_in_effect_ns is not None and fault.heal_asked_ns is not None
    ]
    evidence: dict[str, Any] = {
        "asked": int(plan.rate * plan.time_limit_s),
        "ok": len(done),
        "fail": sum(operation.type == "fail" for operation in load),
        "info": sum(operation.type == "info" for operation in load),
        "ok_under_fault": sum(_is_inside(operation, spans) for operation in done),
        "rollbacks": _rollbacks(history),
        "faults": [
            {
                "id": fault.id,
                "name": fault.name,
                "bit": fault.bit,
                "healed": fault.healed,
                "ended": fault.end_index is not None,
            }
            for fault in history.faults
        ],
        "kinds_that_bit": sorted({fault.name for fault in history.faults if fault.bit}),
        "stalls": len(history.stalls),
        "torn": history.torn,
    }
    evidence["missing"] = _missing(plan, history, evidence, interrupted, failure)
    return evidence


def _is_inside(operation: Operation, spans: Sequence[tuple[int, int]]) -> bool:
    """The operation was answered while a fault was surely in effect."""
    return any(start_ns <= (operation.complete_ns or 0) <= end_ns for start_ns, end_ns in spans)


def _has_settled(history: History) -> bool:
    """The conductor saw all queues empty and all nodes equal before the final reads."""
    noted = [event for event in history.events if event.process == "harness" and event.f == "settled"]
    return bool(noted) and noted[-1].value is True


def _rollbacks(history: History) -> int:
    """Transactions that were rolled back, as the nodes counted them; a restart begins to count anew."""
    return max((int(state.status.get("rollbacks", 0)) for state in history.states), default=0)


def _missing(
    plan: Plan, history: History, evidence: dict[str, Any], interrupted: bool, failure: str | None
) -> list[str]:
    missing: list[str] = []
    if failure is not None:
        missing.append(failure)
    if interrupted:
        missing.append("the run was interrupted")
    if history.torn is not None:
        missing.append(f"the record is torn: {history.torn}")
    wanted = int(evidence["asked"] * USEFUL_SHARE)
    if evidence["ok"] == 0:
        missing.append("no operation succeeded")
    elif evidence["ok"] < wanted:
        missing.append(f"too little load: {evidence['ok']} operations succeeded, {wanted} are needed")
    missing.extend(_missing_of_faults(plan, history, evidence))
    worst_ms = max((stall.stalled_ms for stall in history.stalls), default=0.0)
    if worst_ms > STALLED_MS_MAX:
        missing.append(f"the harness itself stood still for {worst_ms:.0f} ms")
    if failure is None and not interrupted and not _has_settled(history):
        missing.append("the nodes were not quiet and equal in time for the final reads")
    return missing


def _missing_of_faults(plan: Plan, history: History, evidence: dict[str, Any]) -> list[str]:
    missing: list[str] = []
    if plan.faults in ((), ("none",)):
        return missing
    if not history.faults:
        return ["faults were asked for, but there was no time for one"]
    for fault in history.faults:
        if fault.end_index is None:
            missing.append(f"fault {fault.id} ({fault.name}) never ended")
        elif not fault.bit:
            missing.append(f"fault {fault.id} ({fault.name}) did not bite")
        elif fault.healed is False:
            missing.append(f"fault {fault.id} ({fault.name}) was not seen to heal")
    wanted = int(evidence["asked"] * USEFUL_SHARE_UNDER_FAULT)
    if evidence["ok_under_fault"] < wanted:
        missing.append(
            f"too little load under faults: {evidence['ok_under_fault']} operations succeeded while one was active, "
            f"{wanted} are needed"
        )
    longest_ns = max(
        (
            fault.heal_asked_ns - fault.all_in_effect_ns
            for fault in history.faults
            if fault.name == "isolate-owner" and fault.bit and fault.heal_asked_ns and fault.all_in_effect_ns
        ),
        default=0,
    )
    waited = longest_ns > 2 * plan.synchro_timeout_s * SECOND_NS and plan.quorum_size > 1
    if waited and evidence["rollbacks"] == 0:
        missing.append("the owner was isolated, and yet nothing was ever rolled back")
    return missing


# ---- words


def _sentence(outcome: Outcome, verdicts: Sequence[Verdict], evidence: dict[str, Any]) -> str:
    match outcome:
        case "anomaly":
            return _anomaly([verdict for verdict in verdicts if verdict.result == "invalid"])
        case "not-evidence":
            return "Nothing can be said of this run: " + "; ".join(evidence["missing"][:3]) + "."
        case "unknown":
            undecided = [verdict for verdict in verdicts if verdict.result == "unknown"]
            return "Not decided: " + "; ".join(f"{v.checker}: {v.summary}" for v in undecided) + "."
        case "valid":
            bit = sum(1 for fault in evidence["faults"] if fault["bit"])
            under = f"{evidence['ok_under_fault']:,} of them during {bit} faults that were felt"
            return (
                f"All that clients saw was allowed: {evidence['ok']:,} operations succeeded, "
                f"{under if evidence['faults'] else 'with no fault injected'}."
            )


def _anomaly(wrong: Sequence[Verdict]) -> str:
    """The first witness in its own words, and how much more there is."""
    first = wrong[0].witnesses[0]
    text = first.summary.rstrip(".")
    others = [verdict.checker for verdict in wrong[1:]]
    also = f" Violated as well: {', '.join(others)}." if others else ""
    return f"{text[:1].upper()}{text[1:]}.{also}"


_NAMED = {
    "system": "--system",
    "cluster": "--cluster",
    "workload": "--workload",
    "nodes": "--nodes",
    "time_limit_s": "--time-limit",
    "rate": "--rate",
    "workers": "--workers",
    "quorum": "--quorum",
    "synchro_timeout_s": "--synchro-timeout",
    "replication_timeout_s": "--replication-timeout",
    "request_timeout_s": "--request-timeout",
    "read": "--read",
    "replica_reads": "--replica-reads",
    "promise": "--promise",
}


def repeat_line(plan: Plan) -> str:
    """The command that runs the same plan again; a drawn-out plan needs its file."""
    if plan.drawn is not None:
        return "./qsync run --plan plan.json"
    default = Plan()
    words = [f"./qsync run --seed {plan.seed}"]
    for field, option in _NAMED.items():
        value = getattr(plan, field)
        if value != getattr(default, field):
            words.append(f"{option} {value:g}" if isinstance(value, float) else f"{option} {value}")
    if plan.faults != default.faults:
        words.append(f"--faults {','.join(plan.faults)}")
    words.extend(f"--bug {bug}" for bug in plan.bugs)
    return " ".join(words)
