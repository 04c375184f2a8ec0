"""Whether masters split, wait and restore as their strategy says.

| rule | a run breaks it if |
|---|---|
| split-without-cause | masters are left out, and no fault kept all others from them for the split time-out |
| strategy-changed | the strategy changes while masters are left out, or in a recovery |
| split-without-backup | masters are left out with `simple` or `smart`, and there is no backup |
| acted-without-strategy | with `none` there is a backup, a recovery or a restore |
| executed-too-early | with `simple` or `smart`, something is executed in a split before MaxPeerLag is over |
| executed-in-recovery | something is executed while the queues are frozen, before the recovery is over or thaws |

Logs have no times. A split is not older than the fault that can have caused it, nor than what was submitted before it
(`Clock`). An execution is not younger than its master's answer to a client. So a run is never blamed for what may have
been in time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy

from checkers.logs.txlog import kernels
from checkers.logs.txlog.columns import LogColumns
from checkers.logs.txlog.disturbances import DRIFT
from checkers.logs.txlog.given import Given
from checkers.logs.txlog.kernels import NEVER
from checkers.logs.txlog.records import (
    Chosen,
    Lagged,
    Life,
    Rare,
    Recovered,
    Recovering,
    Rejoined,
    Restored,
    Split,
    Thawed,
)
from checkers.logs.txlog.report import Breach, Report

Array = Any  # numpy's


def judge(given: Given) -> Report:
    report = Report()
    for log in given.columns.logs.values():
        report.count("policy", masters=1)
        report.breaches += _Master(given, log, report).breaches()
    report.proofs["policy"] = {"rule": "all by the strategy", **report.compared.get("policy", {})}
    return report


class _Master:
    """One master, from one rare record to the next; in between it only executes."""

    def __init__(self, given: Given, log: LogColumns, report: Report) -> None:
        self.given, self.log, self.report = given, log, report
        self._strategy = ""
        self._missing: Sequence[str] = ()
        self._is_recovering = self._is_frozen = self._has_backup = self._is_restoring = False
        self._lag_ns = given.max_peer_lag_ns
        self._executed = 0
        self._since = 0
        """The record since which MaxPeerLag runs."""

    def breaches(self) -> Iterator[Breach]:
        executions = self.log.rows.of_kind(kernels.EXECUTED)
        places = [*(event.place for event in self.log.rare), len(self.log.rows.kind) + 1]
        ends = numpy.searchsorted(executions + 1, places)
        for event, (begin, end) in zip((None, *self.log.rare), pairwise((0, *ends.tolist())), strict=True):
            if event is not None:
                yield from self._rare(event)
            if begin < end:
                yield from self._executes(executions[begin:end])
                self._executed = int(self.log.rows.number[executions[end - 1]])

    def _rare(self, event: Rare) -> Iterator[Breach]:
        match event:
            case Split(place=place, missing=missing):
                yield from self._split(event)
                self._missing = missing  # after `_split`, which asks whether this is the first split
            case Rejoined():
                self._missing = ()
            case Chosen(place=place, strategy=strategy) | Life(place=place, strategy=strategy):
                yield from self._chosen(event)
                self._since = place if self._missing else self._since
                self._strategy = strategy
                if isinstance(event, Life):
                    self._lag_ns = self.given.max_peer_lag_ns
            case Lagged(lag_ns=lag_ns):
                self._lag_ns = lag_ns
            case Recovering(place=place, backup=backup):
                self._has_backup = self._has_backup or backup is not None
                yield from self._acts(place, "freezes its queues")
                self._is_recovering = self._is_frozen = True
            case Thawed():
                self._is_frozen = False
            case Recovered(common=common):
                self._is_restoring |= self._executed > common
                self._has_backup &= self._is_restoring
                self._missing, self._is_recovering, self._is_frozen = (), False, False
            case Restored(place=place, index=index):
                self._is_restoring, self._executed = False, index
                self._has_backup &= bool(self._missing) or self._is_recovering
                yield from self._acts(place, "goes back to a backup")

    def _breach(self, rule: str, place: int, says: str) -> Breach:
        master = self.log.master
        return Breach(rule=rule, summary=f"{master} {says}", records=[(master, place)])

    def _acts(self, place: int, says: str) -> Iterator[Breach]:
        if self._strategy == "none":
            yield self._breach("acted-without-strategy", place, f"{says} with the strategy none")

    def _chosen(self, event: Chosen | Life) -> Iterator[Breach]:
        is_fixed = bool(self._missing) or self._is_recovering
        if is_fixed and event.strategy != self._strategy:
            says = f"changes from {self._strategy} to {event.strategy} in a split"
            yield self._breach("strategy-changed", event.place, says)

    def _split(self, event: Split) -> Iterator[Breach]:
        self.report.count("policy", splits=1)
        missing = ", ".join(event.missing)
        if not self._missing:
            self._since = event.place
        by_ns = self.given.clocks[self.log.master].not_after_ns(event.place)
        if not self._has_cause(event.missing, self._strategy, by_ns):
            says = f"leaves {missing} out, and no fault is the cause"
            yield self._breach("split-without-cause", event.place, says)
        if event.backup is not None:
            self._has_backup = True
            yield from self._acts(event.place, "takes a backup")
        elif not self._has_backup and self._strategy != "none":
            yield self._breach("split-without-backup", event.place, f"leaves {missing} out without a backup")

    def _has_cause(self, missing: Sequence[str], strategy: str, by_ns: int) -> bool:
        """With `none`, a master leaves out masters whose branches contradict its own. That may happen within one part,
        too: each master has taken a different piece of another part's branch.
        """
        disturbances = self.given.disturbances
        if strategy != "none":
            return disturbances.may_leave_out(missing, by_ns=by_ns)
        return any(
            disturbances.may_be_apart(*pair, by_ns=by_ns) for pair in combinations(self.given.masters, 2)
        )

    def _executes(self, executions: Array) -> Iterator[Breach]:
        """`executions`: their rows, one behind the other."""
        waits = bool(self._missing) and self._strategy != "none"
        early = numpy.zeros(len(executions), dtype=bool)
        done_ns, since_ns = executions, 0
        if waits:
            self.report.count("policy", executed_in_a_split=len(executions))
            given, clock = self.given, self.given.clocks[self.log.master]
            since_ns = given.disturbances.not_left_out_before_ns(
                self._missing, clock.not_before_ns(self._since)
            )
            done_ns = clock.not_after_all_ns(executions + 1)
            early = (done_ns < NEVER) & (done_ns - since_ns < self._lag_ns * (1 - DRIFT))
        if not self._is_frozen and not early.any():
            return
        for at, row in enumerate(executions.tolist()):
            name = self.given.columns.names[int(self.log.rows.name[row])]
            if self._is_frozen:
                yield self._breach("executed-in-recovery", row + 1, f"executes {name} in a recovery")
            if early[at]:
                waited_ms = max(0, int(done_ns[at]) - since_ns) // 1_000_000
                says = (
                    f"executes {name} at most {waited_ms} ms after it left {', '.join(self._missing)} out; "
                    f"MaxPeerLag is {self._lag_ns // 1_000_000} ms"
                )
                yield self._breach("executed-too-early", row + 1, says)
