"""A history by hand for every anomaly: it must be named, its cycle the smallest, and the right models left."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from checkers import transactional
from checkers.transactional.anomalies import ANOMALIES
from checkers.transactional.columns import Workload
from tests.checkers.transactional.txns import Txn, history, ok, register, txn


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
        left="strong-read-uncommitted",
    ),
    planted(
        "half a transaction is read", "G1b", 0, ok(1, "ax1 ax2", 0, 9), ok(2, "rx1", 0, 9), ok(3, "rx12")
    ),
    planted(
        "each reads what the other appended",
        *("G1c", 2),
        ok(1, "ax1 ry1", 0, 9),
        ok(2, "ay1 rx1", 0, 9),
        left="strong-read-uncommitted",
    ),
    planted(
        "one of two appends of a transaction is seen",
        *("G-single", 2),
        ok(1, "ax1 ay1", 0, 9),
        ok(2, "rx1 ry", 0, 9),
        ok(3, "ry1", 10, 11),
        left="strong-read-atomic",
    ),
    planted(
        "two readers see two writers in opposite orders (long fork)",
        *("G-nonadjacent", 4),
        ok(1, "ax1", 0, 9),
        ok(2, "ay1", 0, 9),
        ok(3, "rx1 ry", 0, 9),
        ok(4, "rx ry1", 0, 9),
        left="strong-parallel-snapshot-isolation",
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
        left="strong-parallel-snapshot-isolation strong-repeatable-read",
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
        left="serializable strong-read-uncommitted",
    ),
    planted(
        "a client does not see its own append",
        *("G-single-process", 2),
        ok(1, "ax1", 0, 1),
        ok(1, "rx", 2, 3),
        ok(2, "rx1", 0, 9),
        left="serializable strong-read-atomic",
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
        left="strong-session-serializable strong-read-uncommitted",
    ),
    planted(
        "a stale read",
        *("G-single-realtime", 2),
        ok(1, "ax1", 0, 1),
        ok(2, "rx", 2, 3),
        ok(3, "rx1", 0, 9),
        left="strong-session-serializable strong-read-atomic",
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
        left="strong-read-committed",
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
    planted("a stale read", "G-single-realtime", 2, ok(1, "wx1", 0, 1), register(2, "rx", 2, 3)),
    planted("its own write is missing", "internal", 0, ok(1, "wx1 rx2", 0, 9), ok(2, "wx2", 0, 9)),
    planted("it reads what it writes only then", "future-read", 0, ok(1, "rx1 wx1")),
    planted("a write on top of a failed one", "dirty-update", 0, txn("fail", 1, "wx1"), ok(2, "rx1 wx2")),
    planted(
        "both read one version and write", "lost-update", 0, ok(1, "rx wx1", 0, 9), ok(2, "rx wx2", 0, 9)
    ),
    planted("nobody wrote it", "garbage-read", 0, ok(1, "wx1"), register(2, "rx7")),
    planted(
        "the versions follow each other in a circle",
        *("cyclic-versions", 0),
        ok(1, "rx1 wx2", 0, 9),
        ok(2, "rx2 wx1", 0, 9),
    ),
]
ALL = LISTS + [
    Planted(name=each.name, anomaly=each.anomaly, size=each.size, txns=each.txns, workload="rw-register")
    for each in REGISTERS
]


def _identity(case: Planted) -> str:
    return f"{case.workload}-{case.anomaly}-{case.name}".replace(" ", "-")


@pytest.mark.parametrize("case", ALL, ids=_identity)
def test_it_is_named_and_its_cycle_is_the_smallest(case: Planted) -> None:
    """If this fails, an anomaly that somebody planted goes unseen, by another name, or longer than need be."""
    verdict = transactional.check(history(*case.txns), workload=case.workload, model="strict-serializable")
    found = verdict.details["anomalies"]
    assert verdict.result == "invalid"
    assert case.anomaly in found, f"{case.name}: {list(found)}"
    assert len(found[case.anomaly]["edges"]) == case.size
    if case.left is not None:
        assert tuple(verdict.details["left"]) == case.left


@pytest.mark.parametrize("case", ALL, ids=_identity)
def test_its_witness_explains_itself(case: Planted) -> None:
    """If this fails, a person who meets the anomaly gets no events, sentences or picture of it."""
    verdict = transactional.check(history(*case.txns), workload=case.workload, model="strict-serializable")
    witness = next(each for each in verdict.witnesses if each.rule == case.anomaly)
    assert witness.events
    assert witness.start_ns is not None
    assert len(witness.explanation) == (case.size + 1 if case.size else 1)
    picture = verdict.details["anomalies"][case.anomaly]
    names = {each["name"] for each in picture["transactions"]}
    assert all(
        edge["from"] in names and edge["to"] in names and edge["sentence"] for edge in picture["edges"]
    )


def test_there_is_one_for_every_anomaly() -> None:
    """If this fails, an anomaly has no history that must show it."""
    assert set(ANOMALIES) <= {case.anomaly for case in ALL}


def test_a_promise_that_allows_it_is_kept() -> None:
    """If this fails, what a weak promise allows counts as its violation, or goes unmentioned."""
    skew = history(ok(1, "rx ay1", 0, 9), ok(2, "ry ax1", 0, 9), ok(3, "rx1 ry1", 10, 11))
    verdict = transactional.check(skew, model="strong-snapshot-isolation")
    assert verdict.result == "valid"
    assert verdict.details["findings"] == ["G2-item"]
    assert verdict.details["proof"]["kind"] == "snapshots-and-commits"
    assert transactional.check(skew, model="serializable").result == "invalid"


def test_the_sentences() -> None:
    """If this fails, the explanation of a cycle reads otherwise than it was meant to."""
    verdict = transactional.check(
        history(ok(1, "ax1 ay1", 0, 9), ok(2, "rx1 ry", 0, 9), ok(3, "ry1", 10, 11)), model="serializable"
    )
    assert verdict.witnesses[0].explanation == (
        "T1 read y as []; T2 appended 1 to y, which T1 did not see, so T1 came before T2.",
        "Yet T2 appended 1 to x; T1 read x as [1], so T1 came after T2.",
        "So each of them would have to come before itself: there is no such order.",
    )
