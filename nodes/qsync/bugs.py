"""Known bugs that can be switched on by name, so that a harness can be seen to find them.

A switch changes one decision at the place where it is made; with no switch on there is no trace of it. Each tells where
it comes from (an issue of Tarantool's, if it has one), what is done wrong, what clients see, and which checker must
find it. Which configuration and faults it shows in is the harness's business (`harness.hunt.bug_plans`).
"""

from __future__ import annotations

from dataclasses import dataclass

CONFIRM_EARLY = "confirm-early"
ACK_BEFORE_FSYNC = "ack-before-fsync"
PROMOTE_AT_ONCE = "promote-at-once"
ACK_WITHOUT_TERM = "ack-without-term"
PROMOTE_FORGETS_QUORUM = "promote-forgets-quorum"
NO_CASCADE = "no-cascading-rollback"
CONFIRM_BEFORE_WAL_REPLICA = "confirm-before-wal-replica"
CONFIRM_BEFORE_WAL_OWNER = "confirm-before-wal-owner"
NO_TERM_FILTER = "no-term-filter"
FILTER_BY_SENDER = "filter-by-sender"
WRITABLE_BEFORE_PROMOTE = "writable-before-promote"
NO_SPLIT_BRAIN_CHECK = "no-split-brain-check"
DEFINITE_TIMEOUT = "definite-timeout"
DUPLICATE_CONFIRM = "duplicate-confirm"
VOTE_BEFORE_FLUSH = "vote-before-flush"
NO_FENCING = "no-fencing"
NO_PRE_VOTE = "no-pre-vote"
QUORUM_HALF = "quorum-without-plus-one"
LINEARIZABLE_FROM_CONFIRMED = "linearizable-from-confirmed"
CAS_FROM_PENDING = "cas-from-pending"
DECIDE_ON_CONFIRMED = "decide-on-confirmed"
LEASE_BY_WALL_CLOCK = "lease-by-wall-clock"
TIMERS_BY_WALL_CLOCK = "timers-by-wall-clock"
JOIN_SENDS_PENDING = "join-sends-pending"
SNAPSHOT_HOLDS_PENDING = "snapshot-holds-pending"
QUEUE_LIMIT_ON_REPLICA = "queue-limit-on-replica"
PROMOTE_KEEPS_QUORUM = "promote-keeps-old-quorum"
SUBMIT_BEFORE_QUEUE = "submit-before-queue"


@dataclass(frozen=True, slots=True)
class Bug:
    """One switch. `issue` is a number in tarantool/tarantool, None if it has none; `checkers` any of which finds it."""

    does: str
    seen: str
    checkers: tuple[str, ...]
    issue: int | None = None

    def __str__(self) -> str:
        origin = f" (#{self.issue})" if self.issue else ""
        return f"{self.does}{origin}: {self.seen}"


TABLE: dict[str, Bug] = {
    PROMOTE_FORGETS_QUORUM: Bug(
        "a new leader keeps only what it knows to be confirmed, and rolls back what a quorum has acknowledged",
        "an acknowledged write is lost in a failover",
        ("linearizable", "convergence", "audit", "leadership"),
        5435,
    ),
    NO_CASCADE: Bug(
        "a timeout rolls back the oldest transaction alone and leaves those behind it in the owner's queue",
        "the owner commits what its log and its replicas have rolled back: memory and log differ, replicas stop",
        ("convergence", "linearizable", "audit", "leadership", "crash"),
        5140,
    ),
    CONFIRM_BEFORE_WAL_REPLICA: Bug(
        "a replica applies a CONFIRM before it is in its log",
        "its read-confirmed reads go back after a crash",
        ("prefix", "linearizable", "audit"),
        5213,
    ),
    CONFIRM_BEFORE_WAL_OWNER: Bug(
        "the owner commits and answers before its CONFIRM is in the log",
        "after a crash the owner has it pending again, shows the old value, and may roll it back",
        ("linearizable", "convergence", "quorum", "audit"),
        5213,
    ),
    NO_TERM_FILTER: Bug(
        "rows and decisions of an owner whose term is over are applied as if it still were the owner",
        "rolled-back transactions return",
        ("convergence", "linearizable", "audit", "crash", "prefix", "dirty"),
        5445,
    ),
    FILTER_BY_SENDER: Bug(
        "the term filter asks for the term of the peer that sends a row, not of the node that wrote it",
        "an old owner's rolled-back rows return over a third node",
        ("convergence", "linearizable", "audit", "crash", "prefix", "leadership"),
        6035,
    ),
    WRITABLE_BEFORE_PROMOTE: Bug(
        "a node that won the election is writable before its PROMOTE has effect",
        "writes enter a queue that is still another's, and are answered without a quorum or rolled back",
        ("linearizable", "convergence", "quorum", "audit", "crash", "leadership"),
        12333,
    ),
    NO_SPLIT_BRAIN_CHECK: Bug(
        "rows that contradict our history are applied instead of stopping the applier",
        "equal vclocks, different data",
        ("convergence", "audit", "prefix", "crash", "linearizable"),
        5295,
    ),
    PROMOTE_AT_ONCE: Bug(
        "a PROMOTE takes effect when it is written, without a quorum of its own, as Tarantool ships it",
        "two leader deaths around a PROMOTE that reached nobody lose an acknowledged write",
        ("leadership", "linearizable", "convergence", "audit"),
        9376,
    ),
    DEFINITE_TIMEOUT: Bug(
        "a transaction that waited for too long is refused with an error that says it surely was not done (97)",
        "a failed write is committed: another leader confirms it",
        ("linearizable", "convergence", "prefix", "dirty", "audit"),
    ),
    ACK_BEFORE_FSYNC: Bug(
        "a record counts as on disk when it is written, not when it is synced: replies and sends pass it",
        "a power loss loses acknowledged writes",
        ("linearizable", "convergence", "audit", "crash"),
    ),
    DUPLICATE_CONFIRM: Bug(
        "the owner writes every CONFIRM twice",
        "nothing, but for who reads the logs; Tarantool since 2.10 stops following such an owner",
        ("audit", "leadership"),
        5144,
    ),
    VOTE_BEFORE_FLUSH: Bug(
        "a voter compares the candidate's vclock with what it has on disk, and not with what is on the way there",
        "it votes for a node that lacks what it acknowledges a moment later: an acknowledged write is lost, or, where "
        "its CONFIRM came first, a node stops at the new leader's PROMOTE (split-brain)",
        ("linearizable", "convergence", "audit", "leadership"),
        7253,
    ),
    NO_FENCING: Bug(
        "a leader that lost its quorum of followers does not resign",
        "an isolated old leader stays writable: asynchronous writes are acknowledged there and lost",
        ("leadership",),
        6661,
    ),
    NO_PRE_VOTE: Bug(
        "a node that hears nobody stands for election again and again",
        "its term runs away, and it deposes a healthy leader when it is back",
        ("leadership",),
        6654,
    ),
    QUORUM_HALF: Bug(
        "the default quorum is N/2, without the + 1",
        "with an even number of nodes two halves commit",
        ("linearizable", "convergence", "quorum", "crash", "leadership", "audit"),
    ),
    LINEARIZABLE_FROM_CONFIRMED: Bug(
        "a node that is asked by a linearizable read tells what it knows to be confirmed, not what it has written",
        "a linearizable read misses an acknowledged write",
        ("linearizable",),
    ),
    CAS_FROM_PENDING: Bug(
        "a compare-and-set that failed is answered at once, though what it saw is not confirmed",
        "it observed a value that is rolled back",
        ("linearizable",),
    ),
    DECIDE_ON_CONFIRMED: Bug(
        "a writing transaction decides on what is confirmed, and does not see what others are about to write",
        "two that run together start from the same state, and one of them is lost: money is made, numbers come twice",
        (
            "transactional",
            "bank",
            "balances",
            "counter",
            "unique-ids",
            "queues",
            "durability",
            "linearizable",
        ),
    ),
    LEASE_BY_WALL_CLOCK: Bug(
        "an owner that a quorum has answered serves linearizable reads by itself for two heartbeats of its wall clock",
        "when that clock goes back, a deposed owner goes on with it, and linearizable reads are stale",
        ("linearizable",),
    ),
    TIMERS_BY_WALL_CLOCK: Bug(
        "whatever a node times (elections, silent links, waiting for a quorum), it times by its wall clock",
        "when that clock goes back, a leader without a quorum is not fenced and a candidate does not stand; "
        "when it goes forward, clients are told of a timeout that has not passed",
        ("leadership", "early-timeout"),
    ),
    JOIN_SENDS_PENDING: Bug(
        "who joins is given what is written, without waiting until it is confirmed",
        "what is rolled back while it joins stays in its data: extra rows, shown as confirmed",
        ("convergence", "prefix", "linearizable", "audit", "leadership"),
        5097,
    ),
    SNAPSHOT_HOLDS_PENDING: Bug(
        "a snapshot file is written without waiting until all that is in it is confirmed",
        "a node that starts from it shows again what was rolled back",
        ("convergence", "prefix", "linearizable", "audit", "leadership"),
        5167,
    ),
    QUEUE_LIMIT_ON_REPLICA: Bug(
        "a replica too waits until its queue has room before it takes a transaction in",
        "the CONFIRM that would make room stands behind that transaction: the replica never goes on",
        ("leadership",),
        11836,
    ),
    PROMOTE_KEEPS_QUORUM: Bug(
        "a PROMOTE waits for the quorum that there was when it began, whatever is set meanwhile",
        "after the quorum was lowered, a leader with enough followers stays read-only",
        ("leadership",),
        11574,
    ),
    SUBMIT_BEFORE_QUEUE: Bug(
        "a write that need not wait for its commit is answered before it is in the queue, and goes in when it is empty",
        "what was asked for after its answer, and acknowledged, comes before it and is replaced by it",
        ("queue-order",),
    ),
    CONFIRM_EARLY: Bug(
        "the client is answered and the row shown before the quorum; the entry stays in the limbo",
        "a timeout or another leader rolls an acknowledged write back",
        ("linearizable", "quorum", "convergence", "audit"),
    ),
    ACK_WITHOUT_TERM: Bug(
        "an acknowledgement counts whatever the term of the replica is, as in Tarantool up to 2.10",
        "a deposed owner confirms what the replica has thrown away as rows of an old term",
        ("linearizable", "convergence", "audit", "leadership"),
    ),
}

BUGS: dict[str, str] = {name: str(bug) for name, bug in TABLE.items()}
"""Name → what it does, in a line."""
