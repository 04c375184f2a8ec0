"""What Tarantool promises, by version and configuration, in its own documentation's words; and how that is judged.

Sentences are quoted from the documentation of the version that is under test (github.com/tarantool/doc as of February
2021: `doc/book/replication`, `doc/book/box`). What it promises and is not kept is a violation. What it leaves to the
operator or to the application is a finding: allowed, and shown with the sentence that says so.
"""

from __future__ import annotations

from dataclasses import replace

from checkers import overruled, replication
from checkers.sessions import check_staleness
from harness.check import Check
from harness.systems.promises import PROMISES as ROWS
from harness.systems.promises import Promise

COMMITTED = (
    "“Synchronous transactions are not considered committed and are not responded to a client until they are "
    "replicated onto some number of replicas.” (Synchronous replication, Overview)"
)
ONE_MASTER = (
    "“Synchronous transactions work only for master-slave topology. […] only one node can make synchronous "
    "transactions.” (Synchronous replication, Limitations); “Make sure that the old master is gone for good” "
    "(Recovering from a degraded state): an operator who cannot reach it cannot"
)
IN_SYNC = (
    "“The databases are kept in sync because each instance can communicate its changes to all the other instances.” "
    "(Replication)"
)
FOR_GOOD = (
    "“Make sure that the old master is gone for good” (Recovering from a degraded state); within a transaction that "
    "yields, “the transaction isolation level becomes read uncommitted” (Transaction control)"
)
UNCOMMITTED = (
    "where it yields, “the transaction isolation level becomes read uncommitted” (Transaction control)"
)
ROLLED_BACK = (
    "“If a transaction is rolled back, it does not mean the ROLLBACK message reached the replicas. It still can happen "
    "that the master node suddenly dies, so the transaction will be committed by the new master. Your application "
    "logic should be ready for that.” (Synchronous replication, Tips and tricks)"
)
NOT_SYNCED = (
    "“write: fibers wait for their data to be written to the write-ahead log (no fsync(2)); fsync: fibers wait for "
    "their data, fsync(2) follows each write(2)” (Configuration reference, wal_mode; write is the default): what no "
    "disk has been asked to keep may be gone when the power is"
)
NO_CRASH = "nowhere does the documentation allow a server to end by itself"

DOCUMENTED = {
    "linearizable": ONE_MASTER,
    "quorum": COMMITTED,
    "convergence": IN_SYNC,
    "replication": IN_SYNC,
    "staleness": FOR_GOOD,
    "dirty": UNCOMMITTED,
    "overruled": ROLLED_BACK,
    "crash": NO_CRASH,
}

PROMISES = {letter: replace(ROWS[letter], documented=DOCUMENTED, logs="") for letter in ("A", "B")}
"""Of 2.6, by the letter of the configuration: A has one master for the whole run, in B an operator fails over.

Its documentation says nothing of what stands in its logs: what the audit finds there is a finding."""


def without_power(promise: Promise) -> Promise:
    """With wal_mode=write, when nodes lose power: acknowledged writes may be gone, and what a node had told others."""
    documented = {name: f"{NOT_SYNCED}; {promise.documented[name]}" for name in promise.documented}
    return replace(
        promise,
        configuration=f"{promise.configuration}; wal_mode=write",
        writes="",
        final_state="",
        documented={**documented, "crash": NO_CRASH},
        why=f"{promise.why}; and with wal_mode=write a node that loses power may lose what it had acknowledged",
    )


CHECKS = (
    Check(
        "replication",
        "two nodes at the same vclock hold the same data",
        replication.MODEL,
        replication.check,
    ),
    Check(
        "staleness",
        "whoever calls itself master shows the newest acknowledged write",
        "",
        lambda history: check_staleness(
            history, versions_max=0, reads=lambda role, mode: role == "owner" and mode == "dirty"
        ),
    ),
    Check(
        "overruled",
        "what was reported rolled back is gone",
        "",
        overruled.check,
    ),
)
"""Beside those of the workload."""
