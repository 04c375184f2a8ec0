"""The judge: verdicts of checkers + what was promised + what evidence there is → the outcome and the exit code.

| outcome | exit | when |
|---|---|---|
| anomaly | 1 | a checker's verdict is invalid where something is promised, whatever else is the case |
| not-evidence | 3 | the run shows too little to say anything good of it |
| unknown | 2 | a checker could not decide |
| valid | 0 | none of these |

A *violation* is of the promise. A *finding* is allowed, yet weaker than a reader may think: it is shown just as well
and changes no exit code. What a run must show to be evidence stands in `_missing`: load that succeeded, of every
kind and also under faults, faults that were felt and healed, and final reads that the owner answered.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
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
USEFUL_SHARE_OF_A_KIND = 1 / 10
"""The share of the reads, of the writes and of the compare-and-sets asked that must tell something."""
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
        if mode == "dirty":
            return False
        if promise.owner_reads != "linearizable":
            return everywhere or mode == "linearizable"
        return everywhere or linearizable.promised_linearizable(role, mode)

    return (
        Check(
            "linearizable",
            "every key has one order of its operations that fits real time",
            promise.writes,
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
    plan: Plan,
    promise: Promise,
    history: History,
    *,
    interrupted: bool = False,
    failure: str | None = None,
    plan_file: Path | None = None,
) -> dict[str, Any]:
    """The content of verdict.json. `plan_file` is where the plan is kept, for the line that repeats the run."""
    checks = checks_for(promise, plan.promise)
    verdicts = [run_safely(check.run, history, name=check.name) for check in checks]
    evidence = _evidence(plan, history, interrupted or _was_interrupted(history), failure)
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
            "command": repeat_line(plan, plan_file),
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
        "asked": _asked(plan),
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


def _asked(plan: Plan) -> int:
    """How many operations the plan asks for."""
    return int(plan.rate * plan.time_limit_s) if plan.drawn is None else len(plan.drawn.operations)


def _was_interrupted(history: History) -> bool:
    """A person ended the run; so its record says, whoever judges it later."""
    return any(event.process == "harness" and event.f == "interrupted" for event in history.events)


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
    wanted = _share(evidence["asked"], USEFUL_SHARE)
    if evidence["ok"] == 0:
        missing.append("no operation succeeded")
    elif evidence["ok"] < wanted:
        missing.append(f"too little load: {evidence['ok']} operations succeeded, expected at least {wanted}")
    missing.extend(_missing_kinds(history))
    missing.extend(_missing_of_faults(plan, history, evidence))
    worst_ms = max((stall.stalled_ms for stall in history.stalls), default=0.0)
    if worst_ms > STALLED_MS_MAX:
        missing.append(f"the harness itself stood still for {worst_ms:.0f} ms")
    if failure is None and not interrupted and not _has_settled(history):
        missing.append("the nodes were not quiet and equal in time for the final reads")
    if failure is None and not interrupted:
        missing.extend(_missing_final_reads(history))
    return missing


def _missing_kinds(history: History) -> Iterator[str]:
    """A store that refuses all writes serves perfect reads; a mismatch is an answer too."""
    load = [operation for operation in history.operations if operation.phase == "load"]
    for kind in sorted({operation.f for operation in load}):
        asked = [operation for operation in load if operation.f == kind]
        told = sum(operation.type == "ok" or operation.error == "mismatch" for operation in asked)
        wanted = int(len(asked) * USEFUL_SHARE_OF_A_KIND)
        if told < wanted:
            yield f"too few answers to {kind}: {told} of {len(asked)} operations, {wanted} are needed"


def _missing_final_reads(history: History) -> Iterator[str]:
    """Whatever was written must have been read at the end where a stale answer is a violation."""
    reads = history.select(f="read", phase="final")
    unread = {operation.key for operation in history.select(f=("write", "cas"), phase="load")}
    unread -= {
        read.key
        for read in reads
        if read.type == "ok" and (read.role != "replica" or read.mode == "linearizable")
    }
    if unread:
        example = sorted(map(str, unread))[0]
        yield f"{len(unread)} keys had no final read that had to be fresh, {example} among them"


def _asks_for_faults(plan: Plan) -> bool:
    if plan.drawn is not None:
        return bool(plan.drawn.faults)
    return any(name != "none" for name in plan.faults)


def _share(asked: int, share: float) -> int:
    """Never none: a plan of few operations needs something too."""
    return max(1, int(asked * share))


def _missing_of_faults(plan: Plan, history: History, evidence: dict[str, Any]) -> list[str]:
    missing: list[str] = []
    if not history.faults:
        return ["faults were asked for, but there was no time for one"] if _asks_for_faults(plan) else []
    for fault in history.faults:
        if fault.end_index is None:
            missing.append(f"fault {fault.id} ({fault.name}) never ended")
        elif not fault.bit:
            missing.append(f"fault {fault.id} ({fault.name}) did not bite")
        elif not fault.healed:  # None: it could not even be tried
            missing.append(f"fault {fault.id} ({fault.name}) was not seen to heal")
    least = 1 if plan.drawn is None else 0  # a plan that was cut down to a few operations may have none
    wanted = max(least, int(evidence["asked"] * USEFUL_SHARE_UNDER_FAULT))
    if evidence["ok_under_fault"] < wanted:
        missing.append(
            f"too little load under faults: {evidence['ok_under_fault']} operations succeeded while one was active, "
            f"expected at least {wanted}"
        )
    longest_ns = max(
        (
            fault.heal_asked_ns - fault.all_in_effect_ns
            for fault in history.faults
            if fault.name == "isolate-owner" and fault.bit and fault.heal_asked_ns and fault.all_in_effect_ns
        ),
        default=0,
    )
    waited = (
        longest_ns > 2 * plan.synchro_timeout_s * SECOND_NS
        and plan.quorum_size > 1
        and not plan.has_elections
    )
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
    "name": "--name",
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
    "settle_timeout_s": "--settle-timeout",
    "read": "--read",
    "election_mode": "--election-mode",
    "election_timeout_s": "--election-timeout",
    "rollback_on_timeout": "--rollback-on-timeout",
    "replica_reads": "--replica-reads",
    "promise": "--promise",
    "base_port": "--base-port",
}


def repeat_line(plan: Plan, plan_file: Path | None = None) -> str:
    """The command that runs the same plan again; a drawn-out plan needs the file that it stands in."""
    if plan.drawn is not None:
        return f"./qsync run --plan {shlex.quote(str(plan_file or 'plan.json'))}"
    default = Plan()
    words = [f"./qsync run --seed {plan.seed}"]
    for field, option in _NAMED.items():
        value = getattr(plan, field)
        if value != getattr(default, field):
            words.append(f"{option} {_shortest(value)}")
    if plan.faults != default.faults:
        words.append(f"--faults {','.join(plan.faults) or 'none'}")
    words.extend(f"--bug {bug}" for bug in plan.bugs)
    return " ".join(words)


def _shortest(value: object) -> str:
    """20 rather than 20.0, but never another number."""
    if isinstance(value, float) and float(f"{value:g}") == value:
        return f"{value:g}"
    return str(value)
