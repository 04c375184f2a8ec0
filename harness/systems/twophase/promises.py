"""What the two-phase store promises, by concurrency and isolation.

The sources are the documentation of Apache Ignite, the store that the consistent cut was made for; the reference node
keeps more than Ignite does where it says so.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.systems.promise import Promise, promised
from nodes.twophase.configuration import Concurrency, Isolation

_LOCKED = (
    "each key of a transaction is locked at its primary from the first access to the commit, and the near node commits "
    "only if a majority of the servers confirms that no owner was replaced meanwhile"
)
_VALIDATED = (
    "versions that were read are compared under locks when the transaction prepares, and the near node commits only if "
    "a majority of the servers confirms that no owner was replaced meanwhile"
)
_WEAK = "reads take no lock and are not compared again, so transactions may see each other's effects in part"
_UNCHECKED = "what was read is not compared when the transaction prepares, so that updates may be lost"

WHY: Mapping[tuple[Concurrency, Isolation], str] = {
    ("pessimistic", "serializable"): _LOCKED,
    ("pessimistic", "repeatable-read"): _LOCKED,
    ("pessimistic", "read-committed"): _WEAK,
    ("optimistic", "serializable"): _VALIDATED,
    ("optimistic", "repeatable-read"): _UNCHECKED,
    ("optimistic", "read-committed"): _UNCHECKED,
}
STRICT = frozenset(
    {("pessimistic", "serializable"), ("pessimistic", "repeatable-read"), ("optimistic", "serializable")}
)
"""Every transaction has its place in one order of all, between its request and its answer."""
MAY_END_UNDER = ("disk-error",)
"""A server whose disk takes nothing stops, and recovers from its log when it is started again."""


def promise_of(concurrency: Concurrency, isolation: Isolation) -> Promise:
    model = "linearizable" if (concurrency, isolation) in STRICT else ""
    return promised(
        f"{concurrency} {isolation}",
        WHY[concurrency, isolation],
        writes=model,
        owner_reads=model,
        replica_reads=model,
        linearizable_reads=model,
        dirty_reads="",
        final_state="",
        leaders="",
        logs="",
        quorum="",
    ).but(has_leader=False, has_dumps=False, may_end_under=MAY_END_UNDER)
