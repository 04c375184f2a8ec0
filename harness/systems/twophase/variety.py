"""The draws of a hunt for the two-phase store.

| drawn | from |
|---|---|
| cluster | servers, near nodes that are clients, partitions, backups, order of locks |
| transactions | concurrency and isolation, one phase or always two, pauses before the prepare |
| cuts | how they are named, how often, by how many nodes at once |
| pace | time between the steps of a cut and of a commit; until each node delivers an agreed entry |
| log | the size of its files |

Each pair of concurrency and isolation has its own promise. Pairs that promise less than strict serializability are
drawn rarely.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from checkers.history.history import History
from harness.faults.directed import Scenes
from harness.faults.held import HOLDS, MOMENTS
from harness.plan.dice import Dice, Weighted
from harness.plan.plan import Plan
from harness.systems.parts import Variety
from harness.systems.twophase.bug_plans import BUG_PLANS, BUSY
from harness.systems.twophase.options import said_of
from harness.systems.twophase.rare_turns import RARE_TURNS, counted
from harness.systems.twophase.scenes import DRAWN, READY_MADE

SERVERS: Weighted = ((3, 8), (4, 3), (5, 4), (2, 1))
NEAR_CLIENTS: Weighted = ((0, 4), (1, 3), (2, 2))
BACKUPS: Weighted = ((1, 6), (2, 3), (0, 2))
PARTITIONS: Weighted = ((8, 4), (2, 2), (16, 1), (1, 1))
PAIRS: Weighted = (
    (("pessimistic", "serializable"), 6),
    (("pessimistic", "repeatable-read"), 3),
    (("optimistic", "serializable"), 6),
    (("pessimistic", "read-committed"), 1),
    (("optimistic", "repeatable-read"), 1),
    (("optimistic", "read-committed"), 1),
)
VARIANTS: Weighted = (("shipped", 4), ("seed-counter", 3), ("seed-colour", 3))
STEPS_MS: Weighted = ((0.0, 2), (0.3, 3), (2.0, 2), (10.0, 2))
DELIVERIES_MS = ("0", "0", "2", "10", "30")
DELIVERY_EACH = 0.3
"""How often nodes differ in it."""
RATES = (40.0, 70.0, 110.0)
WORKERS = 24
"""More than usual: those that wait for a partition without a primary leave some for the others."""
IN_A_CYCLE: Mapping[str, Any] = {"rate": 40.0, "workers": 4}
"""The load where transactions lock keys as their steps come: they wait for each other in a cycle until the lock wait
times out, and with many at once hardly one ends. Such a bank answered 33 of 712 reads of all accounts."""
LEAST_OK = 250
"""Operations that must succeed in a seed with a drawn load and time."""
SERVE, SERVE_LESS = 2.5, 3.5
"""How much more calm there is. Partitions serve again only when a server that is away has left; without backups or with
two servers, not before that server is back."""
CUTS_EVERY_S: Weighted = ((0.3, 3), (0.6, 3), (1.0, 2), (3.0, 1))


class TwoPhaseVariety(Variety):
    has_all_loads = True
    rare_turns = RARE_TURNS
    scenes: Mapping[str, Scenes] = {HOLDS: READY_MADE, MOMENTS: DRAWN}
    bug_plans = BUG_PLANS
    other_bugs = BUSY

    def rare_turns_of(self, plan: Plan, history: History) -> Mapping[str, int]:
        return counted(said_of(plan).variant, history)

    def drawn(self, dice: Dice, plan: Plan, given: frozenset[str]) -> dict[str, Any]:
        chance = dice.chance
        servers, clients = dice.weighted(SERVERS), dice.weighted(NEAR_CLIENTS)
        if "nodes" in given:
            clients = min(clients, plan.nodes - 1)
            servers = plan.nodes - clients
        nodes = servers + clients
        backups = min(dice.weighted(BACKUPS), servers - 1)
        concurrency, isolation = dice.weighted(PAIRS)
        deliveries = [chance.choice(DELIVERIES_MS) for _ in range(nodes)]
        drawn = {
            "nodes": nodes,
            "near_clients": clients,
            "partitions": dice.weighted(PARTITIONS),
            "backups": backups,
            "concurrency": concurrency,
            "isolation": isolation,
            "lock_order": "steps" if chance.random() < 0.25 else "keys",
            "one_phase": chance.random() < 0.7,
            "variant": dice.weighted(VARIANTS),
            "recovery_rollback_fails_cut": chance.random() < 0.3,
            "suspending": chance.choice((0.0, 0.0, 0.05, 0.3)),
            "segment_bytes": 4_096 if chance.random() < 0.3 else 4 << 20,
            "step_ms": dice.weighted(STEPS_MS),
            "delivery_ms": ",".join(deliveries) if chance.random() < DELIVERY_EACH else deliveries[0],
            "cut_every_s": dice.weighted(CUTS_EVERY_S),
            "cuts_at_once": 2 if nodes > 1 and chance.random() < 0.25 else 1,
            "rate": chance.choice(RATES),
            "calm_s": dice.calm_s() * (SERVE_LESS if servers == 2 or not backups else SERVE),
            "workers": WORKERS,
            "least_ok": 0 if {"rate", "time_limit_s"} & given else LEAST_OK,
            "overlap": dice.overlap(),
        }
        waits_in_a_cycle = drawn["lock_order"] == "steps" and concurrency == "pessimistic"
        return {**drawn, **IN_A_CYCLE} if waits_in_a_cycle else drawn
