"""A history by hand for every anomaly."""

from __future__ import annotations

from dataclasses import dataclass

from checkers.transactional.columns import Workload
from tests.checkers.transactional.txns import Txn, ok, register, txn


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """`anomaly` is the worst that must be found, `size` its transactions (0: no cycle), `left` the strongest models."""

    name: str
    anomaly: str
    size: int
    txns: tuple[Txn, ...]
    workload: Workload = "append"
    left: tuple[str, ...] | None = None


def planted(
    name: str, anomaly: str, size: int, *txns: Txn, workload: Workload = "append", left: str | None = None
) -> Planted:
    models = None if left is None else tuple(left.split())
    return Planted(name=name, anomaly=anomaly, size=size, txns=txns, workload=workload, left=models)


# Moments: 0 … 9 everywhere: all at once. `ok(process, words, begin, end)`.
LISTS = [
    planted(
        "each one's append stands before the other's on one key",
        *("G0", 2),
        ok(1, "ax1 ay1", 0, 9),
        ok(2, "ax2 ay2", 0, 9),
        ok(3, "rx12 ry21", 10, 11),
        left="",
    ),
    planted(
        "the failed append is read",
        "G1a",
        0,
        txn("fail", 1, "ax1"),
        ok(2, "rx1"),
        left="",
    ),
    planted(
        "half a transaction is read", "G1b", 0, ok(1, "ax1 ax2", 0, 9), ok(2, "rx1", 0, 9), ok(3, "rx12")
    ),
    planted(
        "each reads what the other appended",
        *("G1c", 2),
        ok(1, "ax1 ry1", 0, 9),
        ok(2, "ay1 rx1", 0, 9),
        left="",
    ),
    planted(
        "one of two appends of a transaction is seen",
        *("G-single", 2),
        ok(1, "ax1 ay1", 0, 9),
        ok(2, "rx1 ry", 0, 9),
        ok(3, "ry1", 10, 11),
        left="strong-cursor-stability",
    ),
    planted(
        "one of two keys is read as it was before",
        *("fractured-read", 0),
        ok(1, "ax1 ay1", 0, 9),
        ok(2, "rx1 ry", 0, 9),
        left="strong-cursor-stability",
    ),
    planted(
        "two readers see two writers in opposite orders (long fork)",
        *("G-nonadjacent", 4),
        ok(1, "ax1", 0, 9),
        ok(2, "ay1", 0, 9),
        ok(3, "rx1 ry", 0, 9),
        ok(4, "rx ry1", 0, 9),
        left="update-serializable strong-parallel-snapshot-isolation",
    ),
    planted(
        "write skew",
        *("G2-item", 2),
        ok(1, "rx ay1", 0, 9),
        ok(2, "ry ax1", 0, 9),
        ok(3, "rx1 ry1", 10, 11),
        left="strong-snapshot-isolation",
    ),
    planted(
        "write skew by predicates",
        *("G2", 2),
        ok(1, "px ay1", 0, 9),
        ok(2, "py ax1", 0, 9),
        ok(3, "rx1 ry1", 10, 11),
        left="strong-snapshot-isolation strong-repeatable-read",
    ),
    planted(
        "one of two appends is seen by a predicate",
        *("G-single-predicate", 2),
        ok(1, "ax1 ay1", 0, 9),
        ok(2, "rx1 py", 0, 9),
        ok(3, "ry1", 10, 11),
        left="strong-repeatable-read",
    ),
    planted(
        "two predicates see two writers in opposite orders",
        *("G-nonadjacent-predicate", 4),
        ok(1, "ax1", 0, 9),
        ok(2, "ay1", 0, 9),
        ok(3, "rx1 py", 0, 9),
        ok(4, "px ry1", 0, 9),
        left="update-serializable strong-parallel-snapshot-isolation strong-repeatable-read",
    ),
    planted(
        "a client's second append stands before its first",
        *("G0-process", 2),
        ok(1, "ax1", 0, 1),
        ok(1, "ax2", 2, 3),
        ok(2, "rx21", 0, 9),
        left="serializable",
    ),
    planted(
        "a client reads what it appends only later",
        *("G1c-process", 2),
        ok(1, "rx1", 0, 1),
        ok(1, "ax1", 2, 3),
        left="serializable",
    ),
    planted(
        "a client does not see its own append",
        *("G-single-process", 2),
        ok(1, "ax1", 0, 1),
        ok(1, "rx", 2, 3),
        ok(2, "rx1", 0, 9),
        left="serializable strong-cursor-stability",
    ),
    planted(
        "two clients append, and then miss what the other appended",
        *("G-nonadjacent-process", 4),
        ok(1, "ax1", 0, 1),
        ok(1, "ry", 2, 8),
        ok(2, "ay1", 0, 1),
        ok(2, "rx", 2, 8),
        ok(3, "rx1 ry1", 7, 9),
    ),
    planted(
        "two in a row, and a client's order between",
        *("G2-item-process", 3),
        ok(1, "ax1", 0, 1),
        ok(1, "ry", 2, 9),
        ok(2, "ay1 rx", 0, 9),
        ok(3, "rx1 ry1", 10, 11),
    ),
    planted(
        "the same by predicates",
        *("G2-process", 3),
        ok(1, "ax1", 0, 1),
        ok(1, "py", 2, 9),
        ok(2, "ay1 px", 0, 9),
        ok(3, "rx1 ry1", 10, 11),
    ),
    planted(
        "a client does not find its own append by a predicate",
        *("G-single-predicate-process", 2),
        ok(1, "ax1", 0, 1),
        ok(1, "px", 2, 3),
        ok(2, "rx1", 0, 9),
    ),
    planted(
        "two clients append, and then find not what the other appended",
        *("G-nonadjacent-predicate-process", 4),
        ok(1, "ax1", 0, 1),
        ok(1, "py", 2, 8),
        ok(2, "ay1", 0, 1),
        ok(2, "px", 2, 8),
        ok(3, "rx1 ry1", 7, 9),
    ),
    planted(
        "an append that had ended stands after one that was begun later",
        *("G0-realtime", 2),
        ok(1, "ax1", 0, 1),
        ok(2, "ax2", 2, 3),
        ok(3, "rx21", 0, 9),
        left="strong-session-serializable",
    ),
    planted(
        "a read from the future",
        *("G1c-realtime", 2),
        ok(1, "rx1", 0, 1),
        ok(2, "ax1", 2, 3),
        left="strong-session-serializable",
    ),
    planted(
        "a stale read",
        *("G-single-realtime", 2),
        ok(1, "ax1", 0, 1),
        ok(2, "rx", 2, 3),
        ok(3, "rx1", 0, 9),
        left="strong-session-serializable strong-cursor-stability",
    ),
    planted(
        "a stale read by a predicate",
        *("G-single-predicate-realtime", 2),
        ok(1, "ax1", 0, 1),
        ok(2, "px", 2, 3),
        ok(3, "rx1", 0, 9),
    ),
    planted(
        "a long fork with real time in it",
        *("G-nonadjacent-realtime", 4),
        ok(1, "ax1", 0, 1),
        ok(2, "ry", 2, 9),
        ok(3, "ay1", 0, 9),
        ok(4, "ry1 rx", 0, 9),
        ok(5, "rx1 ry1", 10, 11),
        left="strong-session-serializable strong-parallel-snapshot-isolation",
    ),
    planted(
        "the same fork by predicates",
        *("G-nonadjacent-predicate-realtime", 4),
        ok(1, "ax1", 0, 1),
        ok(2, "py", 2, 9),
        ok(3, "ay1", 0, 9),
        ok(4, "ry1 px", 0, 9),
        ok(5, "rx1 ry1", 10, 11),
    ),
    planted(
        "two in a row, and real time between",
        *("G2-item-realtime", 3),
        ok(1, "ax1", 0, 1),
        ok(2, "ry", 2, 9),
        ok(3, "ay1 rx", 0, 9),
        ok(4, "rx1 ry1", 10, 11),
    ),
    planted(
        "the same by predicates in real time",
        *("G2-realtime", 3),
        ok(1, "ax1", 0, 1),
        ok(2, "py", 2, 9),
        ok(3, "ay1 px", 0, 9),
        ok(4, "rx1 ry1", 10, 11),
    ),
    planted(
        "its own append is missing",
        "internal",
        0,
        ok(1, "rx ax1 rx", 0, 9),
        ok(2, "rx1"),
        left="strong-cursor-stability",
    ),
    planted("a read does not repeat", "internal", 0, ok(1, "rx rx1", 0, 9), ok(2, "ax1", 0, 9)),
    planted("it reads what it appends only then", "future-read", 0, ok(1, "rx1 ax1"), left=""),
    planted(
        "an append on top of a failed one",
        "dirty-update",
        0,
        txn("fail", 1, "ax1"),
        ok(2, "ax2"),
        ok(3, "rx12"),
    ),
    planted("a value stands twice", "duplicate-elements", 0, ok(1, "ax1"), ok(2, "rx11"), left=""),
    planted("what nobody wrote stands twice", "duplicate-elements", 0, ok(1, "ax1"), ok(2, "rx177"), left=""),
    planted(
        "two reads cannot both be beginnings",
        "incompatible-order",
        0,
        ok(1, "ax1 ay1", 0, 9),
        ok(2, "ax2", 0, 9),
        ok(3, "rx12"),
        ok(4, "rx21"),
    ),
    planted("the first of two appends is gone", "incompatible-order", 0, ok(1, "ax1 ax2"), ok(2, "rx2")),
    planted(
        "both read one version and append",
        "lost-update",
        0,
        ok(1, "rx ax1", 0, 9),
        ok(2, "rx ax2", 0, 9),
        ok(3, "rx12"),
    ),
    planted("nobody wrote it", "garbage-read", 0, ok(1, "ax1"), ok(2, "rx17"), left=""),
]

REGISTERS = [
    planted("a failed write is read", "G1a", 0, txn("fail", 1, "wx1"), register(2, "rx1")),
    planted("an intermediate write is read", "G1b", 0, ok(1, "wx1 wx2", 0, 9), register(2, "rx1", 0, 9)),
    planted("each reads the other's write", "G1c", 2, ok(1, "wx1 ry1", 0, 9), ok(2, "wy1 rx1", 0, 9)),
    planted("one of two writes is seen", "G-single", 2, ok(1, "wx1 wy1", 0, 9), register(2, "rx1 ry", 0, 9)),
    planted(
        "long fork",
        *("G-nonadjacent", 4),
        ok(1, "wx1", 0, 9),
        ok(2, "wy1", 0, 9),
        register(3, "rx1 ry", 0, 9),
        register(4, "rx ry1", 0, 9),
    ),
    planted("write skew", "G2-item", 2, ok(1, "rx wy1", 0, 9), ok(2, "ry wx1", 0, 9)),
    planted("write skew by predicates", "G2", 2, ok(1, "px wy1", 0, 9), ok(2, "py wx1", 0, 9)),
    planted(
        "one of two writes is read as it was",
        "fractured-read",
        0,
        ok(1, "wx1 wy1", 0, 9),
        register(2, "rx1 ry", 0, 9),
    ),
    planted("a stale read", "G-single-realtime", 2, ok(1, "wx1", 0, 1), register(2, "rx", 2, 3)),
    planted("its own write is missing", "internal", 0, ok(1, "wx1 rx2", 0, 9), ok(2, "wx2", 0, 9)),
    planted("it reads what it writes only then", "future-read", 0, ok(1, "rx1 wx1")),
    planted("a write on top of a failed one", "dirty-update", 0, txn("fail", 1, "wx1"), ok(2, "rx1 wx2")),
    planted(
        "both read one version and write", "lost-update", 0, ok(1, "rx wx1", 0, 9), ok(2, "rx wx2", 0, 9)
    ),
    planted("nobody wrote it", "garbage-read", 0, ok(1, "wx1"), register(2, "rx7")),
    planted(
        "what was overwritten is read again",
        *("cyclic-versions-realtime", 0),
        ok(1, "wx1", 0, 1),
        ok(1, "wx2", 2, 3),
        register(1, "rx1", 4, 5),
    ),
    planted(
        "the versions follow each other in a circle",
        *("cyclic-versions", 0),
        ok(1, "rx1 wx2", 0, 9),
        ok(2, "rx2 wx1", 0, 9),
    ),
]
CATALOGUE: tuple[Planted, ...] = (
    *LISTS,
    *(
        Planted(name=each.name, anomaly=each.anomaly, size=each.size, txns=each.txns, workload="rw-register")
        for each in REGISTERS
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """A history that some models allow and others don't, whatever order they promise."""

    name: str
    txns: tuple[Txn, ...]
    workload: Workload
    allowed_by: tuple[str, ...]
    forbidden_by: tuple[str, ...]


def apart(
    name: str, *txns: Txn, workload: Workload = "rw-register", allowed_by: str, forbidden_by: str
) -> Apart:
    return Apart(
        name=name,
        txns=txns,
        workload=workload,
        allowed_by=tuple(allowed_by.split()),
        forbidden_by=tuple(forbidden_by.split()),
    )


APART = [
    apart(
        "a cause that the reader of its effect does not see",
        ok(1, "wx1", 0, 9),
        register(2, "rx1 wy1", 0, 9),
        register(3, "ry1 rx", 0, 9),
        allowed_by="update-atomic monotonic-atomic-view cursor-stability",
        forbidden_by="causal-cerone prefix monotonic-view update-serializable",
    ),
    apart(
        "a lost update",
        register(1, "rx wx1", 0, 9),
        register(2, "rx wx2", 0, 9),
        allowed_by="prefix causal-cerone monotonic-view monotonic-atomic-view",
        forbidden_by="cursor-stability update-atomic update-serializable",
    ),
    apart(
        "two that only read see two writers in opposite orders",
        ok(1, "wx1", 0, 9),
        ok(2, "wy1", 0, 9),
        register(3, "rx1 ry", 0, 9),
        register(4, "rx ry1", 0, 9),
        allowed_by="update-serializable causal-cerone update-atomic monotonic-view",
        forbidden_by="prefix",
    ),
    apart(
        "two that write read what the other one overwrites",
        register(1, "rx wy1", 0, 9),
        register(2, "ry wx1", 0, 9),
        allowed_by="prefix snapshot-isolation",
        forbidden_by="update-serializable",
    ),
    apart(
        "half of a transaction, the new half first",
        ok(1, "wx1 wy1", 0, 9),
        register(2, "rx1 ry", 0, 9),
        allowed_by="cursor-stability",
        forbidden_by="monotonic-atomic-view monotonic-view causal-cerone update-atomic",
    ),
    apart(
        "half of a transaction, the old half first",
        ok(1, "wx1 wy1", 0, 9),
        register(2, "ry rx1", 0, 9),
        allowed_by="monotonic-atomic-view monotonic-view",
        forbidden_by="read-atomic causal-cerone update-atomic",
    ),
    apart(
        "an append whose transaction overwrote what the reader misses",
        ok(1, "az1 ax1", 0, 9),
        ok(2, "az2 ay1", 0, 9),
        ok(3, "rz12", 0, 9),
        ok(4, "ry1 rx", 0, 9),
        workload="append",
        allowed_by="causal-cerone update-atomic cursor-stability",
        forbidden_by="monotonic-view prefix update-serializable",
    ),
    apart(
        "it overwrote what one of which it saw nothing wrote",
        ok(1, "az1 ax1", 0, 9),
        ok(2, "az2 rx", 0, 9),
        ok(3, "rz12", 10, 11),
        workload="append",
        allowed_by="prefix strong-prefix cursor-stability",
        forbidden_by="monotonic-view update-atomic parallel-snapshot-isolation",
    ),
    apart(
        "an own write that a second read does not show",
        register(1, "wx1 rx", 0, 9),
        allowed_by="cursor-stability read-committed",
        forbidden_by="monotonic-atomic-view monotonic-view",
    ),
    apart(
        "a client does not see what it wrote before",
        ok(1, "wx1", 0, 1),
        register(1, "rx", 2, 3),
        allowed_by="causal-cerone prefix strong-cursor-stability",
        forbidden_by="causal strong-causal strong-session-prefix strong-session-monotonic-view "
        "strong-session-monotonic-atomic-view strong-session-update-atomic",
    ),
    apart(
        "one client does not see what another one wrote before",
        ok(1, "wx1", 0, 1),
        register(2, "rx", 2, 3),
        allowed_by="causal strong-session-prefix",
        forbidden_by="strong-causal strong-prefix strong-update-atomic strong-monotonic-atomic-view",
    ),
    apart(
        "a client writes behind an update that is over",
        ok(1, "wx1", 0, 1),
        register(1, "rx wx2", 2, 3),
        allowed_by="cursor-stability causal-cerone",
        forbidden_by="strong-session-cursor-stability strong-cursor-stability causal",
    ),
]
"""What tells the models apart from their neighbours: each has a history that it allows, and one that it forbids."""
