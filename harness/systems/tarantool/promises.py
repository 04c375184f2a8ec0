"""The promises of Tarantool, by version and configuration, in its own documentation's words; and how they are judged.

Sentences are quoted from the documentation of the version that is under test (github.com/tarantool/doc): for 2.6 (A and
B) as of February 2021, `doc/book/replication` and `doc/book/box`; for those with elections (E, F and G) as of October
2024, `doc/platform/replication` and `doc/platform/atomic`. A broken promise is a violation. Behaviour
that it leaves to the operator or to the application is a finding: allowed, and shown with the sentence of the page.
"""

from __future__ import annotations

from checkers.check import Check
from checkers.replicas import overruled, replication
from checkers.sessions import check_staleness
from harness.plan.promise import Promise
from harness.systems.qsync.promises import PROMISES as ROWS

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

TWO_MASTERS = dict.fromkeys(("convergence", "replication"), f"{IN_SYNC}; but {ONE_MASTER}")
"""Where an operator fails over there are two masters for a while: a node may stop following, and stay different."""

PROMISES: dict[str, Promise] = {
    "A": ROWS["A"].but(documented=DOCUMENTED, logs=""),
    "B": ROWS["B"].but(documented={**DOCUMENTED, **TWO_MASTERS}, logs=""),
}
"""Of 2.6, by the letter of the configuration: A has one master for the whole run, in B an operator fails over.

Its documentation says nothing of what stands in its logs: what the audit finds there is a finding."""


AS_RAFT = (
    "with synchronous spaces only, a quorum of N / 2 + 1, fencing, and a synchro_timeout of infinity “the system "
    "behavior can be specified exactly according to the Raft algorithm” (Automated leader election)"
)
ROLLED_BACK_IN_TIME = (
    "replication_synchro_timeout “tells how many seconds to wait for a synchronous transaction quorum replication "
    "until it is declared failed and is rolled back” (Configuration reference); nothing is said of a rollback that the "
    "other nodes never hear of"
)
ONE_LEADER = (
    "“Automated leader election in Tarantool helps guarantee that there is at most one leader at any given moment of "
    "time in a replica set.” (Automated leader election, Leader election process)"
)
CHANCES = (
    "a leader that has less than a quorum of alive connections resigns after some timeouts, which, where it is strict, "
    "“improves chances that there is only one leader at any time” (Automated leader election, on fencing): for so long "
    "an old one may answer"
)
SPLIT_BRAIN = (
    "“if an instance detects the split-brain anomaly in the incoming replication data, it breaks the connection with "
    "the instance sending the data and writes the ER_SPLIT_BRAIN error in the log” (Automated leader election): so "
    "nodes may stop following each other"
)
STARTED_COMMIT = (
    "“The read-committed isolation level makes visible all transactions that started commit”; for read transactions it "
    "“may be unsafe” (Transaction model, Read-committed)"
)
LINEARIZABLE_READS = (
    "“if a response for a write request arrived earlier than a read request was made, this read request should return "
    "the results of the write request” (Transaction model, Linearizable read)"
)

ELECTED = {
    "linearizable": f"{COMMITTED}; {AS_RAFT}",
    "quorum": COMMITTED,
    "kept": f"{COMMITTED}; {AS_RAFT}",
    "convergence": f"{IN_SYNC}; {SPLIT_BRAIN}",
    "replication": f"{IN_SYNC}; {SPLIT_BRAIN}",
    "leadership": ONE_LEADER,
    "staleness": CHANCES,
    "dirty": STARTED_COMMIT,
    "overruled": ROLLED_BACK_IN_TIME,
    "crash": NO_CRASH,
}
"""Of versions with elections: F keeps all conditions of that sentence, G rolls back after a time, E knows no terms in
acknowledgements yet (`harness.systems.qsync.promises` says what that comes to)."""

PROMISES |= {letter: ROWS[letter].but(documented=ELECTED, logs="") for letter in ("E", "G")}
PROMISES["F"] = ROWS["F"].but(
    logs="",
    documented={**ELECTED, "linearizable": f"{COMMITTED}; {AS_RAFT}; {LINEARIZABLE_READS}"},
)


def without_power(promise: Promise) -> Promise:
    """With wal_mode=write, when nodes lose power: writes acknowledged to clients or to other nodes may be gone."""
    documented = {name: f"{NOT_SYNCED}; {promise.documented[name]}" for name in promise.documented}
    return promise.without_power("wal_mode=write", {**documented, "crash": NO_CRASH})


CHECKS = (
    Check(
        "replication",
        "two nodes at the same vclock hold the same data",
        replication.MODEL,
        replication.check,
    ),
    Check(
        "staleness",
        "a node that calls itself master shows the newest acknowledged write",
        "",
        lambda history: check_staleness(
            history, versions_max=0, reads=lambda role, mode: role == "owner" and mode == "dirty"
        ),
    ),
    Check(
        "overruled",
        "a write that was reported rolled back is gone",
        "",
        overruled.check,
    ),
)
"""Beside those of the workload."""
