"""How the logs of a run are judged: the checks of `checkers.logs.txlog` over what the masters left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from checkers.check import Check
from checkers.history.history import History
from checkers.history.members import at_the_end
from checkers.logs.txlog import CHECKS, PREFIX, Given, Name, check, log_of, verify
from checkers.verdict import RefusedError, Verdict, Verified
from harness.plan.plan import SECOND_NS, Plan
from harness.systems.parts import NodeFiles
from harness.systems.txlog.logs import logs_in
from harness.systems.txlog.options import TxLogOptions, said_of
from harness.systems.txlog.queues import LINES, rows_of, times_ns
from nodes.txlog.configuration import MILLISECOND

AGREES_WITHIN_NS = 8 * SECOND_NS
"""Links stand again, and all that has waited is synchronised and executed."""


def checks_of_logs(plan: Plan, files: NodeFiles) -> tuple[Check, ...]:
    """All of them; the logs are read and judged once."""
    judging = _Judging(plan, files)
    return tuple(
        Check(
            f"{PREFIX}{name}",
            summary,
            summary,
            partial(judging.verdict, name),
            verify=judging.verified,
            is_of_nodes=True,
        )
        for name, summary in CHECKS.items()
    )


def agrees_within_ns(said: TxLogOptions) -> int:
    """How long after the last fault something may wait at most: a split, its lag and its restore come on top."""
    waits_ms = 4 * max(said.idle_ms, said.busy_ms) + 2 * said.backup_ms
    return AGREES_WITHIN_NS + int(waits_ms * MILLISECOND + said.max_peer_lag * SECOND_NS) + said.split_ns


class _Judging:
    def __init__(self, plan: Plan, files: NodeFiles) -> None:
        self._plan = plan
        self._files = files
        self._judged: tuple[History, Mapping[Name, Verdict]] | None = None
        self._times: dict[str, list[int]] = {}

    def verdict(self, name: Name, history: History) -> Verdict:
        if self._judged is None or self._judged[0] is not history:
            verdicts = check(self._given(history))
            self._judged = history, {each: self._timed(verdicts[each], history) for each in verdicts}
        return self._judged[1][name]

    def verified(self, history: History, verdict: Verdict) -> Verified:
        """Check the proofs by the records alone. A rule that records cannot show counts as without proof."""
        masters = self._masters(history)
        proofs = verdict.details["proofs"]
        hidden = tuple(proof["rule"] for proof in proofs if proof["rule"] in verify.NOT_SHOWN)
        without = hidden if proofs else (verdict.checker,)
        try:
            accepted = verify.check(masters, self._records(masters), verdict.to_json())
        except RefusedError as error:
            return Verified(0, (f"{verdict.checker}: {error}",), without, holds=False)
        return Verified(accepted, (), without, holds=not without)

    def _masters(self, history: History) -> tuple[str, ...]:
        return tuple(at_the_end(history)) or self._plan.node_names

    def _records(self, masters: Sequence[str]) -> Mapping[str, list[list[Any]]]:
        logs = logs_in(self._files, masters)
        return {name: [[record.kind, *record.fields] for record in log.records] for name, log in logs.items()}

    def _timed(self, verdict: Verdict, history: History) -> Verdict:
        """Witnesses with the window of their records; it is about right (`harness.systems.txlog.queues`)."""
        witnesses = []
        for witness, proof in zip(verdict.witnesses, verdict.details["proofs"], strict=False):
            times = [self._time_ns(master, place, history) for master, place in proof["records"]]
            is_open = bool(times) and witness.start_ns is None
            witnesses.append(
                replace(witness, start_ns=min(times), end_ns=witness.end_ns or max(times))
                if is_open
                else witness
            )
        return replace(verdict, witnesses=tuple(witnesses))

    def _time_ns(self, master: str, place: int, history: History) -> int:
        if master not in self._times:
            records = logs_in(self._files, (master,))[master].records
            lines = self._files[master].get(LINES, b"")
            self._times[master] = times_ns(records, rows_of(records), history, lines)
        times = self._times[master]
        return times[min(max(place, 1), len(times)) - 1]

    def _given(self, history: History) -> Given:
        plan, said = self._plan, said_of(self._plan)
        masters = self._masters(history)
        logs, records = logs_in(self._files, masters), self._records(masters)
        return Given(
            masters=masters,
            late=plan.members_at_first.absent,
            logs={name: log_of(name, records[name], log.damage) for name, log in logs.items()},
            history=history,
            strategy=said.strategy,
            split_ns=said.split_ns,
            idle_ns=int(said.idle_ms * MILLISECOND),
            max_peer_lag_ns=int(said.max_peer_lag * SECOND_NS),
            agrees_within_ns=agrees_within_ns(said),
            executes_within_ns=int((said.execute_ms + said.backup_ms * bool(said.worker_loss)) * MILLISECOND),
            is_deterministic=said.is_deterministic,
        )
