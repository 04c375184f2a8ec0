"""Where reads and writes are drawn to go, and how reads ask.

A client of the plan's share that *roams* reads at one node for a while, and then at the next one in the ring.
"""

from __future__ import annotations

from harness.plan.expectations import READ_MIXES
from harness.plan.plan import SECOND_NS, Plan
from harness.workloads.generators import Context

STAYS_NS = SECOND_NS // 2
"""How long a client that roams stays at a node."""


def drawn_read(plan: Plan, context: Context) -> tuple[str, str]:
    """The node and the read mode.

    A client that roams reads where it is now. Others read at the owner, or for the plan's share of reads at a replica.
    """
    # Drawn for one that roams, too.
    elsewhere = plan.nodes > 1 and context.chance.random() < plan.replica_reads
    mode = plan.read_mode
    if mix := READ_MIXES.get(mode):
        mode = context.chance.choices(*mix)[0]
    return roams_to(plan, context) or ("@replica" if elsewhere else "@owner"), mode


def roams_to(plan: Plan, context: Context) -> str:
    """The node at which a client that roams is now; "" for one that does not."""
    if context.worker >= plan.roaming * plan.workers:
        return ""
    return plan.node_names[(context.worker + context.time_ns // STAYS_NS) % plan.nodes]


def drawn_write(plan: Plan, context: Context) -> str:
    """The owner; for the plan's share of stray writes another node, which refuses them."""
    strays = plan.stray_writes > 0 and context.chance.random() < plan.stray_writes
    return "@replica" if strays else "@owner"


def final_mode(plan: Plan) -> str:
    """The mode in which a read at the owner shows all that there is. Without MVCC no node serves linearizable reads.

    An option that changes can switch elections on, and from then on a confirmed read at an owner may be stale.
    """
    is_fixed = not plan.fails_over and not plan.changes_options
    return "read-confirmed" if is_fixed or not plan.keeps_versions else "linearizable"
