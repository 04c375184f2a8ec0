"""The audit of a run: the nodes' own logs, by rules that no client could check.

The audit has four results:

- a verdict over the logs (`checkers.logs.wal`): a transaction that one node confirmed is rolled back by no other, and
  the logs contradict no certain answer that a client got
- a verdict on the moments of answers and acknowledgements (`checkers.logs.wal.early`): by the record of disks and links
  where there is one, else by clocks
- a verdict on the states of nodes (`checkers.logs.wal.state`), where a simulator recorded them
- the checks of client operations, repeated after the logs have settled operations of unknown outcome. Their verdicts
  are added to the first ones and never replace them. A promised check that is invalid only then breaks the promise all
  the same, under a name of its own (`linearizable-settled`)

Every verb judges by `Audit.judged`: `run` and `check` report all that `qsync audit` reports.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from checkers.check import Check, run_here
from checkers.history.history import History
from checkers.history.members import at_the_end
from checkers.limits import until_ended
from checkers.logs import wal
from checkers.logs.wal import LogRules, Logs, Marks, NodeLog, Settled, early, state
from checkers.logs.wal.effects import Effect, Rested
from checkers.logs.wal.settle import joined, shown
from checkers.verdict import Verdict, run_safely, stopped
from harness.doing import doing
from harness.judge.causes import SETTLED
from harness.systems.status import furthest

SETTLED_CHECKS = frozenset({"linearizable", "transactional"})
"""Checks that may be valid only because an operation has no known outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """`settling`: None without a history; `settled`: the checks over the settled history, and their verdicts."""

    logs: Verdict
    early: Verdict | None = None
    """None if the record does not say when data were on disk."""
    state: Verdict | None = None
    """None if the states of nodes were not recorded."""
    settling: Settled | None = None
    settled: tuple[tuple[Check, Verdict], ...] = ()

    def judged(
        self, promised: str, answers: str, violated: Collection[str] = ()
    ) -> list[tuple[str, Verdict]]:
        """(model, verdict) of each verdict that counts. `promised`: the model of the logs; `answers`: of the moments of
        answers; `violated`: checks that are invalid without settling, and are not repeated."""
        # Only an invalid one counts: what logs say must not stand in for a verdict that clients' answers do not give.
        again = [
            (check.model, replace(verdict, checker=check.name + SETTLED))
            for check, verdict in self.settled
            if verdict.result == "invalid" and check.model and check.name not in violated
        ]
        early = [] if self.early is None else [(answers, self.early)]
        states = [] if self.state is None else [(state.MODEL, self.state)]
        return [(promised, self.logs), *early, *states, *again]

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """On the logs, and on the moments of answers and the states of nodes if these were recorded."""
        return (self.logs, *(verdict for verdict in (self.early, self.state) if verdict is not None))

    @property
    def findings(self) -> tuple[str, ...]:
        """A sentence for each check without a promise that is invalid after settling."""
        return tuple(
            f"with the outcomes that only the logs know it is not {verdict.model}: {verdict.witnesses[0].summary}"
            for check, verdict in self.settled
            if verdict.result == "invalid" and not check.model
        )

    def settled_json(self) -> dict[str, Any] | None:
        """A dict of JSON values for verdict.json."""
        if self.settling is None:
            return None
        return {
            "happened": len(self.settling.happened),
            "did_not": len(self.settling.did_not),
            "open": len(self.settling.open),
            "checks": [verdict.to_json() for _, verdict in self.settled],
        }


def audit(
    logs: Sequence[NodeLog],
    rules: LogRules,
    history: History | None = None,
    checks: Sequence[Check] = (),
    effects: Sequence[Effect] = (),
) -> Audit:
    """Judge the logs of a cluster, and repeat those of `checks` that change when the logs settle the history.

    `effects`: the recorded effects of disks and links; empty without a record.
    """
    doing("the nodes' logs")
    read = until_ended(lambda: _read(logs, rules, history), str)
    if isinstance(read, str):
        tells_when = history is not None and _tells_when(history, effects)
        return Audit(logs=stopped(wal.NAME, read), early=stopped(early.NAME, read) if tells_when else None)
    replayed, marks, settling = read
    if history is None or marks is None or settling is None:
        return Audit(logs=run_safely(wal.check_replayed, replayed, name=wal.NAME))

    def times(rows: Set[tuple[int, int]]) -> Mapping[tuple[int, int], int]:
        return early.times_of_rows(history, replayed, effects, rows)

    agree = Check(wal.NAME, "", "", lambda _: wal.check_replayed(replayed, settling, times))
    return Audit(
        logs=_of_whole_logs(run_here(agree, history), replayed, history),
        early=_early(history, effects, marks),
        state=_state(history, effects, rules),
        settling=settling,
        settled=_after_settling(settling, checks),
    )


def _after_settling(settling: Settled, checks: Sequence[Check]) -> tuple[tuple[Check, Verdict], ...]:
    """The checks that settling changes, with their verdicts."""
    # An operation that happened stays one without an end: only those that did not happen change a verdict.
    judged_again = [check for check in checks if check.name in SETTLED_CHECKS and settling.did_not]
    return tuple((check, run_here(check, settling.history)) for check in judged_again)


def _read(
    logs: Sequence[NodeLog], rules: LogRules, history: History | None
) -> str | tuple[Logs, Marks | None, Settled | None]:
    """The replayed logs, the operations joined to their rows, and the operations that the logs settle."""
    replayed = Logs.of(logs, rules)
    if history is None:
        return replayed, None, None
    marks = Marks.of(history, replayed)
    # A record that does not say whether nodes settled is not final: a row that is missing may still have come.
    is_final = rules.is_complete(logs) and history.settled is True
    settled = wal.settle(history, replayed, is_final=is_final, marks=marks)
    return replayed, marks, settled


def settled_history(logs: Sequence[NodeLog], rules: LogRules, history: History) -> History | None:
    """The history that `Audit.settled` judges."""
    read = _read(logs, rules, history)
    return None if isinstance(read, str) or read[2] is None else read[2].history


def _of_whole_logs(verdict: Verdict, logs: Logs, history: History) -> Verdict:
    """The verdict; unknown in place of valid if a member of the end left no log, or less than it had reported."""
    lost = list(_lost(logs, history))
    if not lost or verdict.result != "valid":
        return verdict
    return replace(
        verdict, result="unknown", summary=f"rows are missing: {'; '.join(lost)}; what is left agrees"
    )


def _lost(logs: Logs, history: History) -> Iterator[str]:
    """A sentence for each member of the end without its log, or with one that ends before its last report."""
    ends = {node.log.node: node.end for node in logs.nodes}
    members = at_the_end(history)
    if absent := [node for node in members if node not in ends]:
        yield f"{', '.join(absent)} left no log"
    # Before the nodes have settled, rows that are only queued for the disk may be in a report.
    newest = {state.node: state.status for state in history.states} if history.settled else {}
    for node in (node for node in members if node in ends and node in newest):
        for origin, lsn in furthest({node: newest[node]}).items():
            # Origin 0 counts the node's own rows, which no other node gets.
            if origin != "0" and (end := ends[node].get(int(origin), 0)) < lsn:
                yield f"{node} reported lsn {lsn} of replica {origin}, and its log ends at {end}"


def _tells_when(history: History, effects: Sequence[Effect]) -> bool:
    """Whether the record says when data were on disk; old records of the simulator do not."""
    return bool(effects) or history.header.cluster != "sim"


def _early(history: History, effects: Sequence[Effect], marks: Marks) -> Verdict | None:
    if not _tells_when(history, effects):
        return None
    if effects:
        rules, names = marks.logs.rules, joined(marks)
        by_record = Check(
            early.NAME,
            "",
            "",
            lambda recorded: early.check(
                recorded,
                effects=effects,
                promotes=rules.promotes,
                joined=names,
                shown=shown(marks),
                linearizable_reads=rules.linearizable_reads,
            ),
        )
        return run_here(by_record, history)
    by_clocks = Check(early.NAME, "", "", lambda recorded: early.check_by_clocks(recorded, marks.logs, marks))
    return run_here(by_clocks, history)


def _state(history: History, effects: Sequence[Effect], rules: LogRules) -> Verdict | None:
    if not any(isinstance(effect, Rested) for effect in effects):
        return None
    by_record = Check(
        state.NAME,
        "",
        "",
        lambda recorded: state.check(
            recorded, effects=effects, promotes=rules.promotes, has_votes=rules.has_votes
        ),
    )
    return run_here(by_record, history)
