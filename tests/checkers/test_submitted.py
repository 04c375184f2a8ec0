"""Writes that are answered when they are queued: what each checker makes of them, in histories written by hand.

A line of a history is `process what f key value`, where `what` says how the line ends an operation: `asks` (invoke),
`ok`, `submitted` (answered, not acknowledged), `lost` (no answer), `fail`. A process `f3` is 3 in the final phase; the
key `-` is none. Reads are at the owner.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from checkers import CHECKERS, run_safely, transactional
from checkers.history import Event, Header, History, parquet
from checkers.history.operation import SUBMITTED
from checkers.replicas import availability, quorum
from checkers.verdict import Verdict

TYPES = {"asks": "invoke", "submitted": "info", "lost": "info"}
ERRORS = {"submitted": SUBMITTED, "lost": "timeout", "fail": "queue-full (289)"}


def history(text: str, *, phase: str = "load", role: str = "owner") -> History:
    events: list[Event] = []
    for line in text.strip().splitlines():
        process, what, f, key, *rest = line.split(None, 4)
        is_final = process.startswith("f")
        events.append(
            Event(
                index=len(events),
                time_ns=1000 * len(events),
                type=TYPES.get(what, what),  # type: ignore[arg-type]
                process=int(process.lstrip("f")),
                f=f,
                key=None if key == "-" else key,
                value=json.loads(rest[0]) if rest else None,
                node="n1",
                role=role if what != "asks" else None,
                error=ERRORS.get(what),
                phase="final" if is_final else "load",
            )
        )
    return History.of(Header(nodes=("n1", "n2", "n3"), quorum=2, owner="n1"), events)


ONE_THEN_ANOTHER = """
1 asks write x 1
1 submitted write x
2 asks write x 2
2 ok write x 2
"""
TWO_LATER = """
1 asks write x 1
1 submitted write x
2 asks write x 2
3 asks write x 3
3 ok write x 3
"""
"""The third write is known to be confirmed before the second one, which was asked for sooner."""
AT_ONCE = """
1 asks write x 1
2 asks write x 2
1 submitted write x
2 ok write x 2
"""
"""The second write was asked for before the first one was in the queue: it may stand in front."""
LOST_THEN_ANOTHER = ONE_THEN_ANOTHER.replace("submitted", "lost")
ELSEWHERE = """
1 asks write x 1
1 submitted write x
2 asks write y 2
2 ok write y 2
"""
ADDED = """
1 asks add s 1
1 submitted add s
2 asks add s 2
2 ok add s 2
"""
APPENDED = """
1 asks txn - [["append", "x", 1]]
1 submitted txn -
2 asks txn - [["append", "x", 2]]
2 ok txn - [["append", "x", 2]]
"""


def read(process: int, key: str, value: object, f: str = "read") -> str:
    return f"{process} asks {f} {key}\n{process} ok {f} {key} {json.dumps(value)}\n"


def txn(process: int, value: object) -> str:
    return f"{process} asks txn - {json.dumps(value)}\n{process} ok txn - {json.dumps(value)}\n"


def final(process: int, key: str, value: object) -> str:
    return read(process, key, value).replace(f"{process} ", f"f{process} ")


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (ONE_THEN_ANOTHER + read(3, "x", 1), "overtaken"),
        (ONE_THEN_ANOTHER + final(3, "x", 1), "overtaken"),
        (TWO_LATER + read(4, "x", 1) + "2 ok write x 2\n", "overtaken"),
        (
            ONE_THEN_ANOTHER.replace("2 ok write x 2", "2 submitted write x")
            + read(3, "x", 2)
            + read(4, "x", 1),
            "overtaken",
        ),
        (ELSEWHERE + read(3, "x", None) + read(4, "x", 1), "late"),
        (ADDED + read(3, "s", [2]) + read(4, "s", [1, 2]), "late"),
        (APPENDED + txn(3, [["r", "x", [2, 1]]]), "out-of-order"),
        (ONE_THEN_ANOTHER.replace("write x 2", "cas x [1, true, 1]") + read(3, "x", 1), "overtaken"),
    ],
)
def test_a_submitted_write_that_took_effect_out_of_its_turn_is_refused(text: str, rule: str) -> None:
    """A mixed run would weaken what complete writes are promised: a submitted one would excuse that they are lost."""
    verdict = CHECKERS["queue-order"](history(text))
    assert verdict.result == "invalid"
    assert verdict.witnesses[0].rule == rule
    assert verdict.witnesses[0].events


@pytest.mark.parametrize(
    "text",
    [
        ONE_THEN_ANOTHER + read(3, "x", 2),
        ONE_THEN_ANOTHER.replace("2 ok write x 2", "2 lost write x") + read(3, "x", 1),
        LOST_THEN_ANOTHER + read(3, "x", 1) + "9 asks write z 9\n9 submitted write z\n",
        "1 asks write x 1\n1 submitted write x\n" + read(2, "x", None) + read(3, "x", 1),
        AT_ONCE + read(3, "x", 1),
        ELSEWHERE + read(3, "x", 1),
        ELSEWHERE + read(3, "x", None),
        ELSEWHERE.replace("x", "-") + read(3, "-", 1),
        ADDED + read(3, "s", [2]) + read(4, "s", [2]),
        ADDED + read(3, "s", [1, 2]),
        APPENDED + txn(3, [["r", "x", [1, 2]]]),
        APPENDED + txn(3, [["r", "x", [2]]]),
    ],
)
def test_what_a_submitted_write_may_do_is_no_anomaly(text: str) -> None:
    """A false alarm: it may be lost, or take effect later, as long as nothing that was asked for later is confirmed."""
    assert CHECKERS["queue-order"](history(text)).result == "valid"


def test_a_replica_that_is_behind_has_not_seen_anything_out_of_turn() -> None:
    """A false alarm: a replica may show an old value as long as it likes."""
    assert (
        CHECKERS["queue-order"](history(ONE_THEN_ANOTHER + read(3, "x", 1), role="replica")).result == "valid"
    )


@pytest.mark.parametrize(
    ("checker", "text", "result"),
    [
        # may be lost, wherever an acknowledged one may not
        ("linearizable", "1 asks write x 1\n1 submitted write x\n" + read(2, "x", None), "valid"),
        ("linearizable", "1 asks write x 1\n1 ok write x 1\n" + read(2, "x", None), "invalid"),
        ("durability", ADDED + final(3, "s", [2]), "valid"),
        ("durability", ADDED + final(3, "s", [1]), "invalid"),
        ("set-full", ADDED + final(3, "s", [2]), "valid"),
        ("set-full", ADDED + final(3, "s", [1]), "invalid"),
        # but not once it was seen
        (
            "linearizable",
            "1 asks write x 1\n1 submitted write x\n" + read(2, "x", 1) + read(3, "x", None),
            "invalid",
        ),
        ("set-full", ADDED + read(3, "s", [1, 2]) + final(4, "s", [2]), "invalid"),
        # nor before it was asked, nor twice
        ("linearizable", read(2, "x", 1) + "1 asks write x 1\n1 submitted write x\n", "invalid"),
        (
            "linearizable",
            "1 asks write x 1\n1 submitted write x\n"
            + read(2, "x", 1)
            + "3 asks write x 2\n3 ok write x 2\n"
            + read(4, "x", 1),
            "invalid",
        ),
        # refused is refused: the queue was full
        ("rollback-honesty", "1 asks write x 1\n1 fail write x\n" + read(2, "x", 1), "invalid"),
    ],
)
def test_what_else_a_submitted_write_may_and_may_not(checker: str, text: str, result: str) -> None:
    """A submitted write would count as acknowledged (a false alarm), or would excuse more than itself."""
    assert run_safely(CHECKERS[checker], history(text), name=checker).result == result


def test_a_submitted_transaction_is_seen_whole_or_not_at_all() -> None:
    """A transaction that nobody acknowledged, half applied, would pass."""
    asked = '1 asks txn - [["append", "x", 1], ["append", "y", 1]]\n1 submitted txn -\n'
    whole, nothing, half = (
        [["r", "x", x], ["r", "y", y]] for x, y in (([1], [1]), (None, None), ([1], None))
    )

    def judged(*values: object) -> Verdict:
        seen = history(asked + "".join(txn(2, value) for value in values))
        return transactional.check(seen, workload="append", model="strict-serializable")

    assert judged(nothing, whole).result == "valid"
    assert judged(half, whole).result == "invalid"


@pytest.mark.parametrize(
    ("x", "y", "result"),
    [
        ([1], [1], "valid"),
        (None, None, "valid"),
        ([1], None, "invalid"),
        ([1], [3], "invalid"),
        (1, None, "invalid"),
    ],
)
def test_half_of_a_submitted_transaction_is_not_lost_for_good(x: object, y: object, result: str) -> None:
    """A transaction of which a part is gone for ever would pass: no order of the others forbids what nobody saw."""
    f = "w" if x == 1 else "append"
    asked = f'1 asks txn - [["{f}", "x", 1], ["{f}", "y", 1]]\n1 submitted txn -\n'
    shown = txn(2, [["r", "x", x]]) + txn(3, [["r", "x", x], ["r", "y", y]]).replace("3 ", "f3 ", 1)
    shown = shown.replace("\n3 ", "\nf3 ")
    assert CHECKERS["queue-order"](history(asked + shown)).result == result


@pytest.mark.parametrize(
    ("deletion", "result"),
    [
        ("", "invalid"),
        ("4 asks write x null\n4 ok write x null\n", "valid"),
        ("4 asks write x null\n4 lost write x null\n", "valid"),
        ("4 asks write x null\n4 fail write x null\n", "invalid"),
    ],
)
def test_a_submitted_write_may_be_deleted_in_the_end(deletion: str, result: str) -> None:
    """A submitted write that was seen and then deleted would count as half of a transaction: a false alarm."""
    text = "1 asks write x 1\n1 submitted write x\n" + read(2, "x", 1) + deletion + final(3, "x", None)
    assert CHECKERS["queue-order"](history(text)).result == result


def test_an_answer_that_is_no_acknowledgement_needs_no_quorum() -> None:
    """A false alarm of `quorum`; and if such answers made a test of it, a run without one would look tested."""
    text = "1 asks write x 1\n1 {} write x 1\n"
    cut = {"id": 0, "name": "isolate-owner", "does": "cut", "at_ns": 0, "until_ns": 10_000}
    links = [["n1", "n2"], ["n2", "n1"], ["n1", "n3"], ["n3", "n1"]]
    told = {"id": 0, "took_effect": True, "asked_ns": 0, "first_effect_ns": 0, "all_in_effect_ns": 0}

    def judged(how: str) -> Verdict:
        lines = history(text.format(how)).events
        moved = [
            Event(
                **{
                    **{name: getattr(each, name) for name in Event.__struct_fields__},
                    "index": each.index + 1,
                    "time_ns": 1000 + each.time_ns,
                }
            )
            for each in lines
        ]
        start = Event(
            index=0,
            time_ns=0,
            type="invoke",
            process="nemesis",
            f="isolate-owner",
            value={**cut, "links": links, "nodes": []},
        )
        end = Event(
            index=3,
            time_ns=9000,
            type="info",
            process="nemesis",
            f="isolate-owner",
            value={**told, "heal_asked_ns": 9000, "last_effect_ns": 9000, "healed": True, "detail": ""},
        )
        return quorum.check(
            History.of(Header(nodes=("n1", "n2", "n3"), quorum=2, owner="n1"), [start, *moved, end])
        )

    assert judged("ok").result == "invalid"
    submitted = judged("submitted")
    assert submitted.result == "valid"
    assert submitted.details["vacuous"]


def test_a_node_that_answers_submitted_serves() -> None:
    """Availability would tell of a gap where every question was answered."""
    lines = "".join(f"{n} asks write x {n}\n{n} submitted write x\n" for n in range(1, 1001))
    told = availability.check(history(lines))
    assert told.details["gaps"]["n1"] == []
    assert told.details["ok"] == 0


def test_the_wait_mode_of_an_operation_is_in_its_record_and_in_the_columns(tmp_path: Path) -> None:
    """Nobody could tell which answers acknowledged something; and columns of older runs would not be read any more."""
    import pyarrow.parquet

    events = [
        Event(index=0, time_ns=0, type="invoke", process=1, f="write", key="x", value=1, wait="none"),
        Event(index=1, time_ns=1, type="info", process=1, f="write", key="x", error=SUBMITTED, wait="none"),
    ]
    whole = History.of(Header(), events)
    (operation,) = whole.operations
    assert (operation.wait, operation.is_submitted, operation.returned_index, operation.queued_index) == (
        *("none", True),
        *(None, 1),
    )
    path = tmp_path / "history.parquet"
    parquet.write(path, whole)
    assert parquet.read(path).operations == whole.operations
    table = pyarrow.parquet.read_table(path).drop(["wait"])
    kept = {name: value for name, value in table.schema.metadata.items() if name != b"qsync-seal"}
    pyarrow.parquet.write_table(table.replace_schema_metadata(kept), path)
    assert parquet.read(path).operations[0].wait is None
