"""Smallest histories on which a checker and its definition once differed: one for each cause, and the rows."""

from __future__ import annotations

from tests.checkers.brute.histories import Line
from tests.checkers.brute.tiny_transactions import Micro


def _one_by_one(*steps: tuple[str, int, list[Micro]]) -> list[Line]:
    """Lines of transactions: (type, process, micro-operations)."""
    return [Line(type_, process, "txn", micros) for type_, process, micros in steps]


def _calls(*steps: tuple[str, int, str, object]) -> list[Line]:
    """Lines of operations on x: (type, process, f, value)."""
    return [Line(type_, process, f, value, key="x") for type_, process, f, value in steps]


def _ok(process: int, f: str, value: object) -> tuple[tuple[str, int, str, object], ...]:
    return ("invoke", process, f, value), ("ok", process, f, value)


FOUND: dict[str, tuple[tuple[str, ...], list[Line]]] = {
    "a circle of items in real time, where keys alone are in order": (
        ("rw-register strong-repeatable-read", "rw-register strong-session-repeatable-read"),
        _one_by_one(
            ("invoke", 1, [["w", "y", 2]]),
            ("ok", 1, [["w", "y", 2]]),
            ("invoke", 0, [["w", "x", 1], ["r", "y", None]]),
            ("invoke", 1, [["w", "y", 1], ["r", "x", None]]),
            ("ok", 0, [["w", "x", 1], ["r", "y", 2]]),
            ("ok", 1, [["w", "y", 1], ["r", "x", None]]),
        ),
    ),
    "an info transaction seen in part, lists": (
        ("append serializable", "append repeatable-read", "append read-atomic"),
        _one_by_one(
            ("invoke", 0, [["r", "x", None], ["r", "y", None]]),
            ("ok", 0, [["r", "x", []], ["r", "y", [1]]]),
            ("invoke", 0, [["append", "y", 1], ["append", "x", 1]]),
            ("info", 0, [["append", "y", 1], ["append", "x", 1]]),
        ),
    ),
    "an info transaction seen in part, one list": (
        ("append read-committed", "append serializable"),
        _one_by_one(
            ("invoke", 1, [["append", "y", 1], ["append", "y", 2]]),
            ("invoke", 0, [["append", "y", 3], ["append", "y", 4]]),
            ("info", 1, [["append", "y", 1], ["append", "y", 2]]),
            ("invoke", 3, [["r", "y", None]]),
            ("ok", 3, [["r", "y", [3, 4, 2]]]),
            ("ok", 0, [["append", "y", 3], ["append", "y", 4]]),
        ),
    ),
    "an unread append of an info transaction that was seen closes a cycle": (
        ("append read-committed",),
        _one_by_one(
            ("invoke", 1, [["append", "x", 1], ["append", "y", 1]]),
            ("info", 1, [["append", "x", 1], ["append", "y", 1]]),
            ("invoke", 0, [["append", "y", 3], ["r", "x", None]]),
            ("ok", 0, [["append", "y", 3], ["r", "x", [1]]]),
            ("invoke", 0, [["r", "y", None]]),
            ("ok", 0, [["r", "y", [3]]]),
        ),
    ),
    "conflicting appends behind reads of own appends": (
        (
            "append snapshot-isolation",
            "append parallel-snapshot-isolation",
            "append strong-snapshot-isolation",
        ),
        _one_by_one(
            ("invoke", 0, [["append", "y", 1], ["r", "y", None]]),
            ("invoke", 2, [["append", "y", 2], ["r", "y", None]]),
            ("ok", 0, [["append", "y", 1], ["r", "y", [1]]]),
            ("ok", 2, [["append", "y", 2], ["r", "y", [2]]]),
        ),
    ),
    "a fractured read": (
        ("append read-atomic",),
        _one_by_one(
            ("invoke", 1, [["append", "y", 1], ["append", "x", 1]]),
            ("invoke", 0, [["r", "x", None], ["r", "y", None]]),
            ("ok", 0, [["r", "x", [1]], ["r", "y", None]]),
            ("ok", 1, [["append", "y", 1], ["append", "x", 1]]),
        ),
    ),
    "a write that its own session does not see": (
        ("rw-register strong-session-read-atomic", "rw-register strong-read-atomic"),
        _one_by_one(
            ("invoke", 0, [["w", "y", 3]]),
            ("ok", 0, [["w", "y", 3]]),
            ("invoke", 0, [["r", "y", None]]),
            ("ok", 0, [["r", "y", None]]),
        ),
    ),
    "an append that its own session does not see": (
        ("append strong-session-read-atomic", "append strong-read-atomic"),
        _one_by_one(
            ("invoke", 0, [["append", "y", 3]]),
            ("ok", 0, [["append", "y", 3]]),
            ("invoke", 0, [["r", "y", None]]),
            ("ok", 0, [["r", "y", None]]),
        ),
    ),
    "a second read shows an intermediate write": (
        ("append read-committed",),
        _one_by_one(
            ("invoke", 2, [["r", "x", None], ["r", "x", None]]),
            ("invoke", 1, [["append", "x", 1], ["append", "x", 2]]),
            ("ok", 1, [["append", "x", 1], ["append", "x", 2]]),
            ("ok", 2, [["r", "x", [1, 2]], ["r", "x", [1]]]),
        ),
    ),
    "a second read shows what nobody wrote": (
        ("rw-register read-committed",),
        _one_by_one(
            ("invoke", 0, [["r", "x", None], ["r", "x", None]]),
            ("ok", 0, [["r", "x", None], ["r", "x", 1]]),
        ),
    ),
    "no order of the versions fits, although none is known": (
        ("rw-register serializable", "rw-register snapshot-isolation", "rw-register read-atomic"),
        _one_by_one(
            ("invoke", 1, [["w", "y", 1], ["w", "x", 1]]),
            ("ok", 1, [["w", "y", 1], ["w", "x", 1]]),
            ("invoke", 1, [["r", "x", None], ["r", "y", None]]),
            ("invoke", 0, [["w", "y", 2], ["w", "x", 3]]),
            ("ok", 1, [["r", "x", 3], ["r", "y", 1]]),
            ("ok", 0, [["w", "y", 2], ["w", "x", 3]]),
        ),
    ),
    "a register that goes back, by the order of sessions or of real time": (
        ("rw-register strict-serializable", "rw-register strong-session-serializable"),
        _one_by_one(
            ("invoke", 2, [["w", "x", 1]]),
            ("ok", 2, [["w", "x", 1]]),
            ("invoke", 2, [["w", "x", 2]]),
            ("ok", 2, [["w", "x", 2]]),
            ("invoke", 2, [["r", "x", None]]),
            ("ok", 2, [["r", "x", 1]]),
        ),
    ),
    "a nil read after a write": (
        (
            "rw-register strict-serializable linearizable_keys",
            "rw-register strong-session-serializable sequential_keys",
        ),
        _one_by_one(
            ("invoke", 0, [["w", "x", 2]]),
            ("ok", 0, [["w", "x", 2]]),
            ("invoke", 0, [["r", "x", None]]),
            ("ok", 0, [["r", "x", None]]),
        ),
    ),
    "linearizable keys whose orders do not fit together": (
        ("rw-register strict-serializable linearizable_keys",),
        _one_by_one(
            ("invoke", 0, [["w", "x", 2], ["w", "y", 2]]),
            ("invoke", 2, [["r", "y", None], ["r", "x", None]]),
            ("invoke", 1, [["w", "y", 1], ["w", "x", 1]]),
            ("ok", 0, [["w", "x", 2], ["w", "y", 2]]),
            ("ok", 1, [["w", "y", 1], ["w", "x", 1]]),
            ("ok", 2, [["r", "y", 2], ["r", "x", 1]]),
        ),
    ),
    "a sum that equals what a failed addition would have added": (
        ("judge counter",),
        [
            *_calls(("invoke", 0, "add", 1), ("ok", 0, "add", 1), ("invoke", 0, "add", 2)),
            Line("fail", 0, "add", 2, key="x", error="refused"),
            *_calls(
                ("invoke", 0, "add", 1),
                ("ok", 0, "add", 1),
                ("invoke", 0, "read", None),
                ("ok", 0, "read", 2),
            ),
        ],
    ),
    "a dequeue that was answered with nothing": (
        ("judge queue",),
        _calls(("invoke", 0, "dequeue", None), ("ok", 0, "dequeue", None)),
    ),
    "a dequeue that failed with empty although there was an element": (
        ("linearizable queue unique refused", "judge queue refused"),
        [
            *_calls(("invoke", 0, "enqueue", 1), ("ok", 0, "enqueue", 1), ("invoke", 0, "dequeue", None)),
            Line("fail", 0, "dequeue", None, key="x", error="empty"),
            *_calls(("invoke", 0, "dequeue", None), ("ok", 0, "dequeue", 1)),
        ],
    ),
    "a dequeue that failed with empty, and one that nobody knows the answer of": (
        ("linearizable queue unique refused", "judge queue refused"),
        [
            *_calls(("invoke", 0, "enqueue", 1), ("ok", 0, "enqueue", 1), ("invoke", 0, "dequeue", None)),
            Line("fail", 0, "dequeue", None, key="x", error="empty"),
            *_calls(("invoke", 0, "dequeue", None), ("info", 0, "dequeue", None)),
        ],
    ),
    "a drain out of order": (
        ("queues",),
        _calls(
            ("invoke", 0, "enqueue", 5),
            ("ok", 0, "enqueue", 5),
            ("invoke", 0, "enqueue", 6),
            ("info", 0, "enqueue", 6),
            ("invoke", 1, "drain", None),
            ("ok", 1, "drain", [6, 5]),
        ),
    ),
    "a drain out of order, all answered": (
        ("queues",),
        _calls(
            ("invoke", 2, "enqueue", 1),
            ("invoke", 1, "enqueue", 2),
            ("ok", 2, "enqueue", 1),
            ("ok", 1, "enqueue", 2),
            ("invoke", 0, "enqueue", 4),
            ("ok", 0, "enqueue", 4),
            ("invoke", 3, "drain", None),
            ("ok", 3, "drain", [2, 4, 1]),
        ),
    ),
    "more were overtaken than a dequeue of unknown outcome can have taken": (
        ("queues",),
        _calls(
            *(step for value in (1, 2, 3) for step in _ok(2, "enqueue", value)),
            ("invoke", 0, "dequeue", None),
            ("info", 0, "dequeue", None),
            ("invoke", 1, "dequeue", None),
            ("ok", 1, "dequeue", 3),
        ),
    ),
    "a value is shown before the write that then failed was asked": (
        ("rollback-honesty",),
        [
            *_calls(("invoke", 1, "read", None), ("ok", 1, "read", 4), ("invoke", 1, "write", 4)),
            Line("fail", 1, "write", 4, key="x", error="refused"),
        ],
    ),
    "a failed write is asked again after its value was shown": (
        ("rollback-honesty",),
        [
            *_calls(("invoke", 0, "write", 4)),
            Line("fail", 0, "write", 4, key="x", error="refused"),
            *_calls(("invoke", 1, "read", None), ("ok", 1, "read", 4), ("invoke", 0, "write", 4)),
            Line("fail", 0, "write", 4, key="x", error="refused"),
        ],
    ),
    "a read that is older than an own write that was not the last": (
        ("sessions read-your-writes",),
        _calls(
            *(step for asked in ((1, "cas", [None, 1]), (1, "write", 3)) for step in _ok(*asked)),
            *(step for asked in ((1, "cas", [3, 4]), (1, "cas", [1, 6])) for step in _ok(*asked)),
        ),
    ),
    "a list ends with a part of what its reader had appended": (
        ("append read-committed", "append strong-read-committed", "append read-atomic"),
        _one_by_one(
            ("invoke", 1, [["append", "x", 1]]),
            ("ok", 1, [["append", "x", 1]]),
            ("invoke", 2, [["append", "x", 2], ["append", "x", 3], ["r", "x", None]]),
            ("ok", 2, [["append", "x", 2], ["append", "x", 3], ["r", "x", [2]]]),
        ),
    ),
    "a list ends with a later append of its reader, and lacks the one before it": (
        ("append read-committed", "append strong-read-committed"),
        _one_by_one(
            ("invoke", 1, [["append", "x", 1]]),
            ("ok", 1, [["append", "x", 1]]),
            ("invoke", 2, [["append", "x", 2], ["append", "x", 3], ["r", "x", None]]),
            ("ok", 2, [["append", "x", 2], ["append", "x", 3], ["r", "x", [1, 3]]]),
        ),
    ),
    "a write that nobody read": (
        ("linearizable register", "sessions coherence"),
        _calls(("invoke", 0, "write", 1), ("ok", 0, "write", 1)),
    ),
}
"""By cause: the rows, and the lines."""
