"""The audit of a run: what its nodes' own logs say, by rules that no client could check.

Two things come of it. A verdict over the logs (`checkers.wal`): what one node confirmed no other may have rolled
back. And the black-box check once more with the operations settled whose outcome no client learned: that verdict
stands beside the other one, never in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from checkers import linearizable, wal
from checkers.history.history import History
from checkers.history.operation import Operation
from checkers.verdict import Verdict, Witness, merged, run_safely
from checkers.wal import NodeLog, Promotes, Settled

FORMAT = "qsync-audit"
VERSION = 1
LISTED_MAX = 20
SETTLED = "settled"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRules:
    """How the logs of a configuration are to be read. None: not known, so rules that count nodes say nothing."""

    promotes: Promotes
    has_votes: bool
    quorum: int | None = None
    members: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """`settling` is None where there is no history, or nothing in it that logs can settle."""

    logs: Verdict
    settling: Settled | None = None
    settled: Verdict | None = None

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        return (self.logs,) if self.settled is None else (self.logs, self.settled)


def audit(logs: Sequence[NodeLog], rules: LogRules, history: History | None = None, **check: Any) -> Audit:
    """Judge the logs of a cluster and, with them, what its clients saw; `check` goes to `checkers.linearizable`."""
    nodes = [wal.replay(log, rules.promotes) for log in logs]
    verdict = run_safely(
        wal.check_replayed,
        nodes,
        has_votes=rules.has_votes,
        quorum=rules.quorum,
        members=rules.members,
        name=wal.NAME,
    )
    if history is None or not any(operation.f in ("write", "cas") for operation in history.operations):
        return Audit(logs=verdict)
    is_whole = len(logs) == rules.members and all(log.is_whole for log in logs)
    settling = wal.settle(history, nodes, is_final=is_whole and has_settled(history))
    settled = run_safely(linearizable.check, settling.history, name=SETTLED, **check)
    return Audit(logs=verdict, settling=settling, settled=_with_contradictions(settled, settling))


def has_settled(history: History) -> bool:
    """The conductor saw all queues empty and all nodes equal before the final reads."""
    noted = [event for event in history.events if event.process == "harness" and event.f == "settled"]
    return bool(noted) and noted[-1].value is True


def _with_contradictions(settled: Verdict, settling: Settled) -> Verdict:
    """What clients were told and the logs deny is an anomaly by itself."""
    witnesses = [
        *(_contradiction("acknowledged-but-discarded", lost, _LOST) for lost in settling.lost),
        *(_contradiction("failed-but-confirmed", kept, _KEPT) for kept in settling.kept),
    ][:LISTED_MAX]
    details = {
        **settled.details,
        "happened": len(settling.happened),
        "did_not": len(settling.did_not),
        "open": len(settling.open),
    }
    result = merged([settled.result, "invalid" if witnesses else "valid"])
    summary = settled.summary if not witnesses else f"{len(witnesses)} answers that the logs deny"
    return Verdict(
        checker=SETTLED,
        model=settled.model,
        result=result,
        summary=summary,
        witnesses=(*witnesses, *settled.witnesses),
        details=details,
        seconds=settled.seconds,
    )


_LOST = "was acknowledged, and every log that has it discarded it"
_KEPT = "was said to have failed for sure, and a log confirms it"


def _contradiction(rule: str, operation: Operation, what: str) -> Witness:
    return Witness(
        rule=rule,
        summary=f"process {operation.process}'s {operation.f} of {operation.value} to {operation.key} {what}",
        events=operation.events,
        key=operation.key,
        node=operation.node,
        start_ns=operation.invoke_ns,
        end_ns=operation.complete_ns,
    )


def to_json(found: Audit) -> dict[str, Any]:
    """A dict of JSON values: what `qsync audit --json` prints."""
    result = merged(verdict.result for verdict in found.verdicts)
    outcome, code = {"valid": ("valid", 0), "invalid": ("anomaly", 1), "unknown": ("unknown", 2)}[result]
    return {
        "format": FORMAT,
        "version": VERSION,
        "outcome": outcome,
        "exit_code": code,
        "sentence": _sentence(found),
        "checks": [verdict.to_json() for verdict in found.verdicts],
    }


def _sentence(found: Audit) -> str:
    for verdict in sorted(found.verdicts, key=lambda verdict: ("invalid", "unknown", "valid").index(verdict.result)):
        text = verdict.witnesses[0].summary if verdict.witnesses else verdict.summary
        return f"{text[:1].upper()}{text[1:].rstrip('.')}."
    raise AssertionError("an audit has a verdict")
