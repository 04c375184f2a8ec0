"""How the logs of a run are judged: the checks of `checkers.txlog` over what the masters left."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from checkers.check import Check
from checkers.history.history import History
from checkers.history.members import at_the_end
from checkers.txlog import CHECKS, PREFIX, Given, Name, check, log_of
from checkers.verdict import Verdict
from harness.run.plan import SECOND_NS, Plan
from harness.systems.system import NodeFiles
from harness.systems.txlog.logs import logs_in
from harness.systems.txlog.options import TxLogOptions, said_of
from nodes.txlog.configuration import MILLISECOND

AGREES_WITHIN_NS = 8 * SECOND_NS
"""Links stand again, and all that has waited is synchronised and executed."""


def checks_of_logs(plan: Plan, files: NodeFiles) -> tuple[Check, ...]:
    """All of them; the logs are read and judged once."""
    judging = _Judging(plan, files)
    return tuple(
        Check(f"{PREFIX}{name}", summary, summary, partial(judging.verdict, name), is_of_nodes=True)
        for name, summary in CHECKS.items()
    )


def agrees_within_ns(said: TxLogOptions) -> int:
    """How long after the last fault something may wait at most: a split, its lag and its restore come on top."""
    waits_ms = 4 * said.idle_ms + 2 * said.backup_ms
    return AGREES_WITHIN_NS + int(waits_ms * MILLISECOND + said.max_peer_lag * SECOND_NS) + said.split_ns


class _Judging:
    def __init__(self, plan: Plan, files: NodeFiles) -> None:
        self._plan = plan
        self._files = files
        self._judged: tuple[History, Mapping[Name, Verdict]] | None = None

    def verdict(self, name: Name, history: History) -> Verdict:
        if self._judged is None or self._judged[0] is not history:
            self._judged = history, check(self._given(history))
        return self._judged[1][name]

    def _given(self, history: History) -> Given:
        plan, said = self._plan, said_of(self._plan)
        masters = at_the_end(history) or plan.node_names
        logs = logs_in(self._files, masters)
        return Given(
            masters=masters,
            late=plan.members_at_first.absent,
            logs={
                name: log_of(name, [[each.kind, *each.fields] for each in log.records], log.damage)
                for name, log in logs.items()
            },
            history=history,
            strategy=said.strategy,
            split_ns=said.split_ns,
            idle_ns=int(said.idle_ms * MILLISECOND),
            max_peer_lag_ns=int(said.max_peer_lag * SECOND_NS),
            agrees_within_ns=agrees_within_ns(said),
            is_deterministic=said.is_deterministic,
        )
