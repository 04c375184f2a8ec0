"""Whether masters split, wait and restore as their strategy says.

| rule | a run breaks it if |
|---|---|
| split-without-cause | masters are left out, and no fault kept all others from them for the split time-out |
| strategy-changed | the strategy changes while masters are left out, or in a recovery |
| split-without-backup | masters are left out with `simple` or `smart`, and there is no backup |
| acted-without-strategy | with `none` there is a backup, a recovery or a restore |
| executed-too-early | with `simple` or `smart`, something is executed in a split before MaxPeerLag is over |
| executed-in-recovery | something is executed while the queues are frozen |

Logs have no times. The split is not older than the fault that can have caused it, and than what was submitted before
it (`Clock`). An execution is not younger than the answer of a client to whom its master told it. So no run is blamed
for what may have been in time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from checkers.logs.txlog.disturbances import DRIFT
from checkers.logs.txlog.report import Breach, Report
from tests.checkers.logs.txlog.plain.given import Given
from tests.checkers.logs.txlog.plain.records import (
    Chosen,
    Event,
    Executed,
    Lagged,
    Life,
    Log,
    Recovered,
    Recovering,
    Restored,
    Split,
)
from tests.checkers.logs.txlog.plain.replay import NEVER, Replay


def judge(given: Given) -> Report:
    found = Report()
    for log in given.logs.values():
        found.count("policy", masters=1)
        found.breaches += _Master(given, log, found).breaches()
    found.proofs["policy"] = {"rule": "all by the strategy", **found.compared.get("policy", {})}
    return found


@dataclass(slots=True)
class _Master:
    given: Given
    log: Log
    found: Report
    _has_backup: bool = False
    _is_restoring: bool = False
    _executed: int = 0
    _lag_ns: int = 0
    _since: int = 0
    """The record since which MaxPeerLag runs."""

    def breaches(self) -> Iterator[Breach]:
        replay = Replay(self.log.master)
        self._lag_ns = self.given.max_peer_lag_ns
        for event in self.log.events:
            match event:
                case Split():
                    yield from self._split(replay, event)
                case Executed(index=index):
                    yield from self._executes(replay, event)
                    self._executed = index
                case Chosen() | Life():
                    yield from self._chosen(replay, event)
                    self._since = event.place if replay.missing else self._since
                    self._lag_ns = self.given.max_peer_lag_ns if isinstance(event, Life) else self._lag_ns
                case Lagged(lag_ns=lag_ns):
                    self._lag_ns = lag_ns
                case Recovering(backup=backup):
                    self._has_backup = self._has_backup or backup is not None
                    yield from self._acts(replay, event, "freezes its queues")
                case Recovered(common=common):
                    self._is_restoring |= self._executed > common
                    self._has_backup &= self._is_restoring
                case Restored(index=index):
                    self._is_restoring, self._executed = False, index
                    self._has_backup &= bool(replay.missing) or replay.is_recovering
                    yield from self._acts(replay, event, "goes back to a backup")
            replay.apply(event)

    def _breach(self, rule: str, event: Event, says: str) -> Breach:
        return Breach(
            rule=rule, summary=f"{self.log.master} {says}", records=[(self.log.master, event.place)]
        )

    def _acts(self, replay: Replay, event: Event, says: str) -> Iterator[Breach]:
        if replay.strategy == "none":
            yield self._breach("acted-without-strategy", event, f"{says} with the strategy none")

    def _chosen(self, replay: Replay, event: Chosen | Life) -> Iterator[Breach]:
        is_fixed = bool(replay.missing) or replay.is_recovering
        if is_fixed and event.strategy != replay.strategy:
            yield self._breach(
                "strategy-changed", event, f"changes from {replay.strategy} to {event.strategy} in a split"
            )

    def _split(self, replay: Replay, event: Split) -> Iterator[Breach]:
        self.found.count("policy", splits=1)
        missing = ", ".join(event.missing)
        if not replay.missing:
            self._since = event.place
        by_ns = self.given.clocks[self.log.master].not_after_ns(event.place)
        if not self._has_cause(event.missing, replay.strategy, by_ns):
            yield self._breach(
                "split-without-cause", event, f"leaves {missing} out, and no fault is the cause"
            )
        if event.backup is not None:
            self._has_backup = True
            yield from self._acts(replay, event, "takes a backup")
        elif not self._has_backup and replay.strategy != "none":
            yield self._breach("split-without-backup", event, f"leaves {missing} out without a backup")

    def _has_cause(self, missing: Sequence[str], strategy: str, by_ns: int) -> bool:
        """With `none`, masters whose branches contradict the own one are left out. Masters of one part may come to
        that, too: each has taken a different piece of another part's branch.
        """
        disturbances = self.given.disturbances
        if strategy != "none":
            return disturbances.may_leave_out(missing, by_ns=by_ns)
        return any(
            disturbances.may_be_apart(*pair, by_ns=by_ns) for pair in combinations(self.given.masters, 2)
        )

    def _executes(self, replay: Replay, event: Executed) -> Iterator[Breach]:
        if replay.is_frozen:
            yield self._breach("executed-in-recovery", event, f"executes {event.id} in a recovery")
        if not replay.missing or replay.strategy == "none":
            return
        self.found.count("policy", executed_in_a_split=1)
        given, clock = self.given, self.given.clocks[self.log.master]
        done_ns = clock.not_after_ns(event.place)
        if done_ns == NEVER:
            return
        since_ns = given.disturbances.not_left_out_before_ns(replay.missing, clock.not_before_ns(self._since))
        waited_ns = done_ns - since_ns
        if waited_ns < self._lag_ns * (1 - DRIFT):
            yield self._breach(
                "executed-too-early",
                event,
                f"executes {event.id} at most {max(0, waited_ns) // 1_000_000} ms after it left "
                f"{', '.join(replay.missing)} out; MaxPeerLag is {self._lag_ns // 1_000_000} ms",
            )
