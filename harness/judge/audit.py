"""The audit of a run: what its nodes' own logs say, by rules that no client could check.

Two things come of it. A verdict over the logs (`checkers.wal`): what one node confirmed no other may have rolled back,
and what clients were told for sure the logs must not deny. And the checks over what clients saw once more, with the
operations settled whose outcome no client learned: those verdicts stand beside the others, never in their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from checkers import wal
from checkers.history.history import History
from checkers.verdict import Verdict, run_safely
from checkers.wal import LogRules, NodeLog, Settled
from harness.workloads.checks import Check

SETTLED_CHECKS = frozenset({"linearizable", "transactional"})
"""Checks that an operation without an outcome leaves room to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """`settling` is None where there is no history; `settled` are the verdicts over what it settled."""

    logs: Verdict
    settling: Settled | None = None
    settled: tuple[Verdict, ...] = ()

    @property
    def findings(self) -> tuple[str, ...]:
        """A sentence for each check that no longer holds with what the logs know."""
        return tuple(
            f"with the outcomes that only the logs know it is not {verdict.model}: {verdict.witnesses[0].summary}"
            for verdict in self.settled
            if verdict.result == "invalid"
        )

    def settled_json(self) -> dict[str, Any] | None:
        """A dict of JSON values for verdict.json."""
        if self.settling is None:
            return None
        return {
            "happened": len(self.settling.happened),
            "did_not": len(self.settling.did_not),
            "open": len(self.settling.open),
            "checks": [verdict.to_json() for verdict in self.settled],
        }


def audit(
    logs: Sequence[NodeLog], rules: LogRules, history: History | None = None, checks: Sequence[Check] = ()
) -> Audit:
    """Judge the logs of a cluster and, with them, what its clients saw: by those of `checks` that settling changes."""
    nodes = [wal.replay(log, rules.promotes) for log in logs]
    if history is None:
        return Audit(logs=run_safely(wal.check_replayed, nodes, rules, name=wal.NAME))
    is_final = rules.is_complete(logs) and history.settled is True
    settling = wal.settle(history, nodes, is_final=is_final)
    again = [check for check in checks if check.name in SETTLED_CHECKS and settling.did_not]
    return Audit(
        logs=run_safely(wal.check_replayed, nodes, rules, settling, name=wal.NAME),
        settling=settling,
        settled=tuple(run_safely(check.run, settling.history, name=check.name) for check in again),
    )
