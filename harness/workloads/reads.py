"""Where reads are drawn to go, and how they ask."""

from __future__ import annotations

from harness.generators import Context
from harness.plan import Plan

MIXED = "mixed"
MIXED_MODES = ("linearizable", "read-confirmed", "dirty")
MIXED_SHARES = (0.7, 0.2, 0.1)


def drawn_read(plan: Plan, context: Context) -> tuple[str, str]:
    """The node (the owner, or a replica for the plan's share of reads) and the read mode."""
    elsewhere = plan.nodes > 1 and context.chance.random() < plan.replica_reads
    mode = plan.read_mode
    if mode == MIXED:
        mode = context.chance.choices(MIXED_MODES, MIXED_SHARES)[0]
    return ("@replica" if elsewhere else "@owner"), mode


def final_mode(plan: Plan) -> str:
    """The mode in which a read at the owner shows all that there is."""
    return "linearizable" if plan.fails_over else "read-confirmed"
