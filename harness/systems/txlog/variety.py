"""The draws of a hunt for the TxLog.

| drawn | from |
|---|---|
| cluster | masters, mostly three; the strategy; half of the clusters never split; one of the masters is added late |
| pace | time between rounds, busy and idle; time of an execution, of a backup and its restore |
| workers | how often one ends |
| splits | the time-out, MaxPeerLag |

A cluster that can split promises little to its clients; one that cannot serves nothing while a master is away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.faults.members import ADD
from harness.plan.dice import Dice, Weighted
from harness.plan.plan import Plan
from harness.systems.parts import Variety
from harness.systems.txlog.scenes import SCENES
from nodes.txlog import sometimes

STRATEGIES: Weighted = (("none", 1), ("simple", 2), ("smart", 2))
BUSY_MS: Weighted = ((20.0, 3), (5.0, 1), (50.0, 1))
IDLE_MS: Weighted = ((500.0, 3), (100.0, 2))
EXECUTE_MS: Weighted = ((0.5, 3), (0.0, 1), (5.0, 1))
WORKER_LOSS: Weighted = ((0, 2), (50, 1))
BACKUP_MS: Weighted = ((20.0, 2), (1_500.0, 1))
SPLIT_S: Weighted = ((0.0, 5), (1.1, 3), (2.0, 2))
LAG_S: Weighted = ((0.2, 2), (2.0, 1))
LATE: Weighted = ((0, 4), (1, 1))
WORKERS = 24
"""More than usual: while a master is away, all operations wait."""
LEAST_OK = 150
"""Operations that must succeed in a seed with a drawn load and time."""
SERVE = 2.5
"""How much more calm there is: all masters must be back before anything is executed."""

HELD: Mapping[str, Any] = {
    "nodes": 3,
    "strategy": "none",
    "split_timeout": 0.0,
    "faults": ("holds",),
    "rate": 100.0,
    "workers": WORKERS,
    "busy_ms": 20.0,
    "idle_ms": 500.0,
    "time_limit_s": 12.0,
    "least_ok": 20,
}
SPLITTING: Mapping[str, Any] = {
    **HELD,
    "nodes": 5,
    "split_timeout": 1.1,
    "max_peer_lag": 0.2,
    "strategy": "simple",
    "workload": "set",
    "time_limit_s": 16.0,
}
SMART: Mapping[str, Any] = {**SPLITTING, "strategy": "smart"}
QUIET: Mapping[str, Any] = {**HELD, "faults": ("none",)}
BUG_PLANS: Mapping[str, Mapping[str, Any]] = {
    "counter-not-raised": QUIET,
    "last-added-stays": QUIET,
    "own-value": QUIET,
    "sort-by-timestamp": QUIET,
    "rejoin-with-duplicates": SPLITTING,
    "losers-dropped": SMART,
    "restore-keeps-index": SPLITTING,
    "shortest-is-common": SPLITTING,
    "partial-vote": SMART,
    "no-lag-window": {**SPLITTING, "max_peer_lag": 2.0},
}
"""The plans in which a bug shows most often; that of all others is HELD."""


class TxLogVariety(Variety):
    has_all_loads = True
    rare_turns = sometimes.ROWS
    scenes = SCENES
    bug_plans = BUG_PLANS
    other_bugs = HELD

    def workloads(
        self, plan: Plan, drawn: Mapping[str, Any], weights: Mapping[str, float]
    ) -> dict[str, float]:
        # A seed stays the run that it was: it was drawn from these before `long-fork` could run here.
        return {name: weight for name, weight in weights.items() if name != "long-fork"}

    def drawn(self, dice: Dice, plan: Plan, given: frozenset[str]) -> dict[str, Any]:
        nodes, strategy, split_s = dice.nodes(), dice.weighted(STRATEGIES), dice.weighted(SPLIT_S)
        is_fixed = {"nodes", "split_timeout"} & given or not plan.asks_for_all
        may_be_late = nodes > 2 and not split_s and not is_fixed
        return {
            "nodes": nodes,
            "strategy": strategy,
            "split_timeout": split_s,
            "max_peer_lag": dice.weighted(LAG_S),
            "busy_ms": dice.weighted(BUSY_MS),
            "idle_ms": dice.weighted(IDLE_MS),
            "execute_ms": dice.weighted(EXECUTE_MS),
            "worker_loss": dice.weighted(WORKER_LOSS),
            "backup_ms": dice.weighted(BACKUP_MS),
            "rate": dice.rate(),
            "calm_s": dice.calm_s() * SERVE,
            "workers": WORKERS,
            "least_ok": 0 if {"rate", "time_limit_s"} & given else LEAST_OK,
            "overlap": dice.overlap(),
            "late": dice.weighted(LATE) if may_be_late else 0,
        }

    def varied_late(self, plan: Plan, given: frozenset[str]) -> Plan:
        """A master that is to come is added early: nothing is known of one that never came."""
        return plan.changed(faults=(*plan.faults, ADD)) if plan.expectations.late else plan
