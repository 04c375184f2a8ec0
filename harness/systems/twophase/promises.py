"""Promises of the two-phase store, by concurrency and isolation, with the words of Apache Ignite's documentation.

| concurrency | isolation | transactions | a write that depends on what was there |
|---|---|---|---|
| pessimistic | serializable, repeatable-read | strict-serializable | is atomic |
| optimistic | serializable | strict-serializable | is atomic |
| pessimistic | read-committed | strong-read-committed | is atomic |
| optimistic | repeatable-read, read-committed | strong-read-committed, of plain reads and writes | may be lost |

An atomic space has no transactions; its keys are linearizable, each by itself.

`strong-read-committed` (`checkers.transactional.anomalies`): transactions have an order that fits real time, and reads
show what earlier ones have committed. Under every pair each key by itself is linearizable for reads and plain writes: a
read asks the primary, and the near node answers when a majority confirms that this was still the primary.

The quotations are of github.com/apache/ignite, docs/_docs, as of 2025.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.plan.promise import Promise, promised
from nodes.twophase.configuration import Concurrency, Isolation

_LOCKED = (
    "each key of a transaction is locked at its primary from the first access to the commit, and the near node commits "
    "only if a majority of the servers confirms that no owner was replaced meanwhile"
)
_VALIDATED = (
    "versions that were read are compared under locks when the transaction prepares, and the near node commits only if "
    "a majority of the servers confirms that no owner was replaced meanwhile"
)
_UNLOCKED = (
    "keys are locked from the first write to the commit, and reads take no lock: a transaction may see another one's "
    "effects in part"
)
_UNCHECKED = (
    "what was read is not compared when the transaction prepares: a transaction may see another one's effects in part, "
    "and what it makes of a value that it read may replace a newer one"
)

WHY: Mapping[tuple[Concurrency, Isolation], str] = {
    ("pessimistic", "serializable"): _LOCKED,
    ("pessimistic", "repeatable-read"): _LOCKED,
    ("pessimistic", "read-committed"): f"{_UNLOCKED}; a second read of a key may show a different value",
    ("optimistic", "serializable"): _VALIDATED,
    ("optimistic", "repeatable-read"): f"{_UNCHECKED}; a second read of a key shows the same value",
    ("optimistic", "read-committed"): f"{_UNCHECKED}; a second read of a key may show a different value",
}

_PARTIAL = (
    "“it is possible to see a partial transaction state. This means that if one transaction updates objects A and B, "
    "then another transaction may see the new value for A and the old value for B.” (Read Consistency)"
)
_SAME = (
    "“In the PESSIMISTIC mode, this isolation level works the same way as REPEATABLE_READ.” "
    "(Pessimistic Transactions)"
)
_FIRST_ACCESS = (
    "“Entry lock is acquired and data is fetched from the primary node on the first read or write access […] no other "
    "concurrent transactions can make changes to the locked data” (Pessimistic Transactions)"
)
_FIRST_WRITE = (
    "“Data is read without a lock and is never cached in the transaction itself. […] The lock is only acquired at the "
    f"time of first write access” (Pessimistic Transactions); {_PARTIAL}"
)
_CONFLICT = (
    "“Ignite fails a transaction at the commit stage if the Ignite engine detects that at least one of the entries "
    "used as part of the initiated transaction has been modified.” (Optimistic Transactions)"
)
_NOT_CHECKED = (
    "“This mode combination does not check if the entry value has been modified since the first read or write access "
    f"and never raises an optimistic exception.” (Optimistic Transactions); {_PARTIAL}"
)
_CACHED = (
    "“read values are cached on the originating node and all subsequent reads are guaranteed to be local.”"
)
_NEVER_CACHED = "“Transaction data is read without a lock and is never cached in the transaction.”"
DOCUMENTED: Mapping[tuple[Concurrency, Isolation], str] = {
    ("pessimistic", "serializable"): _SAME,
    ("pessimistic", "repeatable-read"): _FIRST_ACCESS,
    ("pessimistic", "read-committed"): _FIRST_WRITE,
    ("optimistic", "serializable"): _CONFLICT,
    ("optimistic", "repeatable-read"): f"{_CACHED} {_NOT_CHECKED}",
    ("optimistic", "read-committed"): f"{_NEVER_CACHED} {_NOT_CHECKED}",
}
"""From the page Performing Transactions (key-value-api/transactions.adoc)."""

CHECKERS = ("transactional", "bank", "balances", "linearizable")
"""Those that judge what these sentences are about."""

STRICT = frozenset(
    {("pessimistic", "serializable"), ("pessimistic", "repeatable-read"), ("optimistic", "serializable")}
)
"""Every transaction has its place in one order of all, between its request and its answer."""
WEAKER = "strong-read-committed"
MAY_END_UNDER = ("disk-error",)
"""A server whose disk takes nothing stops, and recovers from its log when it is started again."""


ATOMIC_WHY = (
    "the primary does the writes of a key one after the other, each is on the disk of the one backup before its own, "
    "and a read is answered when a majority of the servers confirms that no owner was replaced meanwhile"
)
ATOMIC_DOCUMENTED = (
    "“All operations are performed atomically, one at a time. Transactions are not supported. The ATOMIC mode provides "
    "better performance by avoiding transactional locks, whilst providing data atomicity and consistency for each "
    "single operation.” (Atomicity Modes)"
)


def promise_of_atomic(space: str) -> Promise:
    """Of a run whose one space is atomic: each key by itself, whatever the transactions of other spaces promise."""
    return promise_of("pessimistic", "serializable").but(
        configuration=f"atomic space {space}",
        why=ATOMIC_WHY,
        transactions="",
        documented=dict.fromkeys(CHECKERS, ATOMIC_DOCUMENTED),
    )


def listed() -> Iterator[tuple[Promise, Mapping[str, str]]]:
    """Every promise."""
    for concurrency, isolation in WHY:
        yield promise_of(concurrency, isolation), {}
    yield promise_of_atomic("of its own"), {}


def promise_of(concurrency: Concurrency, isolation: Isolation) -> Promise:
    pair = concurrency, isolation
    is_lost = pair not in STRICT and concurrency == "optimistic"
    return promised(
        f"{concurrency} {isolation}",
        WHY[pair],
        writes="" if is_lost else "linearizable",
        plain_writes="linearizable",
        transactions="as writes" if pair in STRICT else WEAKER,
        owner_reads="linearizable",
        replica_reads="linearizable",
        linearizable_reads="linearizable",
        dirty_reads="",
        final_state="",
        leaders="",
        logs="",
        quorum="",
    ).but(
        documented=dict.fromkeys(CHECKERS, DOCUMENTED[pair]),
        has_leader=False,
        has_dumps=False,
        may_end_under=MAY_END_UNDER,
    )
