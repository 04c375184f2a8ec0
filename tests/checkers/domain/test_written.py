"""A value that no client wrote is an anomaly under every promise: `checkers.domain.written`, and `by_model` for all
models."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers import by_model
from checkers.domain import written
from checkers.history import Event, Header, History
from checkers.history.start import Start
from checkers.models import EVENTUAL, MODELS
from checkers.verdict import run_safely
from tests import examples
from tests.checkers.brute.histories import Line, history_of
from tests.checkers.domain import etcd_twin
from tests.checkers.over_objects import over_objects

Call = tuple[str, str, Any]  # f, how it ended, value asked or shown


def lines_of(*calls: Call, key: str | None = "x") -> list[Line]:
    """One after the other. What is asked is what is shown, but for reads."""
    lines = []
    for process, (f, ended, value) in enumerate(calls):
        asks = f not in ("read", "get", "dequeue", "drain")
        lines += [
            Line("invoke", process, f, value if asks else None, key=key),
            Line(ended, process, f, value, key=key),
        ]
    return lines


FROM_NOWHERE: dict[str, list[Line]] = {
    "register": lines_of(("write", "ok", 1), ("read", "ok", 7)),
    "cas-register": lines_of(("write", "ok", 1), ("cas", "ok", [7, 8])),
    "multi-register": lines_of(("txn", "ok", [["w", "x", 1]]), ("txn", "ok", [["r", "x", 7]]), key=None),
    "kv": lines_of(("put", "ok", "a"), ("append", "ok", "bc"), ("get", "ok", "abb")),
    "list": lines_of(("append", "ok", 1), ("read", "ok", [1, 7])),
    "set": lines_of(("add", "ok", 1), ("read", "ok", [1, 7])),
    "queue": lines_of(("enqueue", "ok", 1), ("dequeue", "ok", 7)),
    "unordered-queue": lines_of(("enqueue", "ok", 1), ("dequeue", "ok", 7)),
    "stack": lines_of(("push", "ok", 1), ("pop", "ok", 7)),
    "priority-queue": lines_of(("insert", "ok", 1), ("poll", "ok", 7)),
    "log": lines_of(
        ("send", "ok", [["send", "x", [0, 1]]]), ("poll", "ok", [["poll", {"x": [[1, 7]]}]]), key=None
    ),
    "counter": lines_of(("add", "ok", 2), ("add", "info", 2), ("read", "ok", 3)),
    "append": lines_of(("txn", "ok", [["append", "x", 1]]), ("txn", "ok", [["r", "x", [7]]]), key=None),
    "rw-register": lines_of(("txn", "ok", [["w", "x", 1]]), ("txn", "ok", [["r", "x", 7]]), key=None),
    "long-fork": lines_of(("write", "ok", [["w", "x", 1]]), ("read", "ok", [["r", "x", 7]]), key=None),
    "etcd": lines_of(
        (
            "etcd-range",
            "ok",
            etcd_twin.record(etcd_twin.get("x"), {"Range": {"KVs": [], "Count": 0}, "Revision": 1}),
        ),
        ("etcd-range", "ok", etcd_twin.record(etcd_twin.get("x"), etcd_twin.shown_from_nowhere("x"))),
        key=None,
    ),
    "causal-reverse": lines_of(("write", "ok", 1), ("read", "ok", [1, 7])),
    "monotonic": lines_of(
        ("add", "ok", {"val": 1, "sts": 1}),
        ("read", "ok", [{"val": 1, "sts": 1}, {"val": 7, "sts": 2}]),
    ),
    "write-once": [
        Line("invoke", 0, "insert", {"spaces": {"s": [1]}}),
        Line("ok", 0, "insert", {"spaces": {"s": [1]}}),
        Line("invoke", 1, "read", {"from": 0, "below": 9, "spaces": {"s": None}}),
        Line("ok", 1, "read", {"from": 0, "below": 9, "spaces": {"s": [1, 7]}}),
    ],
}
"""By model; a bank, identifiers and locks show no values that clients write."""


def test_every_model_is_in_the_table() -> None:
    """If this fails, a new model has no history here with a value that no client wrote."""
    locks = {name for name in MODELS if name.endswith("mutex")}
    assert MODELS.keys() - {"bank", "unique-ids"} - locks == FROM_NOWHERE.keys()


@pytest.mark.parametrize(
    ("model", "promise"), [(model, promise) for model in FROM_NOWHERE for promise in MODELS[model].promises]
)
def test_a_value_that_no_client_wrote_breaks_every_promise(model: str, promise: str) -> None:
    """If this fails, a store may invent data where little else is promised."""
    judged = by_model.judge(history_of(FROM_NOWHERE[model]), model, promise=promise)
    assert judged.result == "invalid" and judged.strongest in (None, "none")
    told = [each for each in judged.verdicts if each.checker in judged.violations]
    assert all(witness.events for each in told for witness in each.witnesses) and told[0].witnesses


@pytest.mark.parametrize("mode", ["dirty", "read-confirmed"])
def test_reads_that_linearizability_does_not_judge_are_judged_too(mode: str) -> None:
    """If this fails, a replica may show anything at all."""
    lines = lines_of(("write", "ok", 1), ("read", "ok", 7))
    lines[-1] = Line("ok", 1, "read", 7, key="x", role="replica", mode=mode)
    assert by_model.judge(history_of(lines), "register").violations == (written.NAME,)


def transactions(word: str, shown: Any, *, mode: str, role: str) -> History:
    """Two writes, one after the other, a read of both, and then one that shows `shown`."""
    lines = lines_of(
        ("txn", "ok", [[word, "x", 1]]),
        ("txn", "ok", [[word, "x", 2]]),
        ("txn", "ok", [["r", "x", [1, 2] if word == "append" else 2]]),
        ("txn", "ok", [["r", "x", shown]]),
        key=None,
    )
    lines[-1] = replace(lines[-1], mode=mode, role=role)
    return history_of(lines)


OLD_AND_INVENTED = {
    "append": ("append", [1], [1, 7]),
    "rw-register": ("w", 1, 7),
    "multi-register": ("w", 1, 7),
}


@pytest.mark.parametrize("model", OLD_AND_INVENTED)
@pytest.mark.parametrize(
    ("mode", "role", "is_judged"),
    [
        ("dirty", "owner", False),
        ("read-confirmed", "replica", False),
        ("read-confirmed", "owner", True),
        ("linearizable", "replica", True),
    ],
)
def test_transactions_that_read_are_judged_by_what_is_promised_of_their_reads(
    model: str, mode: str, role: str, is_judged: bool
) -> None:
    """If this fails, the record of a run that was valid is an anomaly as a file, or a replica may show anything."""
    word, old, invented = OLD_AND_INVENTED[model]
    stale = by_model.judge(transactions(word, old, mode=mode, role=role), model)
    assert stale.result == ("invalid" if is_judged else "valid")
    if stale.strongest is not None:
        assert (stale.strongest in ("linearizable", "strict-serializable")) == (mode == "dirty")
    history = transactions(word, invented, mode=mode, role=role)
    found = by_model.judge(history, model)
    assert found.result == "invalid" and found.strongest in (None, "none")


# ---- against the definition

OUTCOMES = st.sampled_from(["ok", "ok", "info", "fail"])
VALUES = st.sampled_from([1, 2, "1", "", None, -(2**63), 2**53 + 1])
TEXTS = st.sampled_from(["a", "ab", "b", ""])
AMOUNTS = st.sampled_from([1, 2, -3, 2**53, 0.1])


@st.composite
def drawn(draw: Any, model: str) -> list[Line]:
    """Questions and answers of up to four clients, interleaved by chance; what clients asked is shown most often."""
    values = {"kv": TEXTS, "counter": AMOUNTS}.get(model, VALUES)
    words = {"kv": ("put", "append"), "counter": ("add",), "list": ("append",)}.get(model, ("write", "cas"))
    lines: list[Line] = []
    asked: dict[int, tuple[str, Any]] = {}
    for _ in range(draw(st.integers(2, 10))):
        process = draw(st.integers(0, 3))
        if process in asked:
            f, value = asked.pop(process)
            ended = draw(OUTCOMES)
            if f in ("read", "get") and ended == "ok":
                value = draw(_answers(model, values))
            lines.append(Line(ended, process, f, value, key="x"))
        elif not any(line.process == process and line.type == "info" for line in lines):
            f = draw(st.sampled_from((*words, "get" if model == "kv" else "read")))
            value = None if f in ("read", "get") else draw(values)
            asked[process] = f, [draw(values), value] if f == "cas" else value
            lines.append(Line("invoke", process, f, asked[process][1], key="x"))
    return lines


def _answers(model: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(values, max_size=3)
    match model:
        case "list":
            return some
        case "kv":
            return some.map("".join)
        case "counter":
            return some.map(_total)
    return values


def _total(amounts: Any) -> Any:
    """As it would be written: tenths without a float's rounding."""
    tenths = sum(round(amount * 10) if isinstance(amount, float) else amount * 10 for amount in amounts)
    return tenths // 10 if tenths % 10 == 0 else tenths / 10


def right(model: str, history: History, read: Any) -> bool:
    """By the definition: every value, text and sum that what was asked for could leave, is tried."""
    before = [each for each in history.operations if each is not read]
    kept = [each for each in before if each.type != "fail"]
    match model:
        case "list":
            there = [each.value for each in kept if each.f == "append"]
            return all(any(_same(each, one) for one in there) for each in read.value)
        case "counter":
            amounts = [each.value for each in kept if each.f == "add"]
            subsets = chain.from_iterable(combinations(amounts, size) for size in range(len(amounts) + 1))
            return any(_total(some) == read.value for some in subsets)
        case "kv":
            puts = ["", *(each.value for each in kept if each.f == "put")]
            appends = {each.value for each in kept if each.f == "append"} - {""}
            tails = chain.from_iterable(product(appends, repeat=size) for size in range(len(read.value) + 1))
            return any(put + "".join(tail) == read.value for tail in tails for put in puts)
    shown = read.value[0] if read.f == "cas" else read.value
    writes = [each for each in before if each.f == "write"]
    changes = [each.value for each in before if each.f == "cas" and not _same(*each.value)]
    there = [None, *(each.value for each in writes), *(new for _, new in changes)]
    return any(_same(each, shown) for each in there)


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


OF_TRANSACTIONS = {"multi-register": "register", "rw-register": "register", "append": "list"}
"""Models of transactions, and the model of their micro-operations."""
AS_MICRO = {"write": "w", "append": "append", "read": "r"}


@examples.up_to(200)
@given(data=st.data(), model=st.sampled_from(sorted(OF_TRANSACTIONS)))
def test_transactions_show_what_some_transaction_asked_to_write(data: st.DataObject, model: str) -> None:
    """If this fails, a value from nowhere is missed in a transaction, or what a client wrote is called invented."""
    single = [line for line in data.draw(drawn(OF_TRANSACTIONS[model])) if line.f != "cas"]
    micros = [replace(line, f="txn", value=[[AS_MICRO[line.f], "x", line.value]]) for line in single]
    asked = [line.value for line in single if line.type == "invoke" and line.f != "read"]
    wrong = [
        line
        for line in single
        if (line.type, line.f) == ("ok", "read")
        and not all(
            any(_same(element, each) for each in asked) or (element is None and model != "append")
            for element in (line.value if model == "append" else [line.value])
        )
    ]
    verdict = written.check(history_of(micros), model=model)
    answered = any(line.type == "ok" for line in single)
    assert verdict.result == ("invalid" if wrong else "valid" if answered else "unknown")


@examples.up_to(300)
@given(data=st.data(), model=st.sampled_from(sorted(written.MODELS.keys() - OF_TRANSACTIONS.keys())))
def test_what_is_written_is_what_the_definition_says(data: st.DataObject, model: str) -> None:
    """If this fails, a value from nowhere is missed, or one that a client wrote is called invented."""
    history = history_of(data.draw(drawn(model)))
    shown = [
        each
        for each in history.operations
        if each.type == "ok" and each.f in ("read", "get", *(("cas",) if "register" in model else ()))
    ]
    wrong = [each for each in shown if not right(model, history, each)]
    verdict = written.check(history, model=model)
    assert verdict.result == ("invalid" if wrong else "valid" if shown else "unknown")
    assert all(set(each.events) & {read.invoke_index for read in wrong} for each in verdict.witnesses)


@pytest.mark.parametrize(
    ("model", "start", "shown"),
    [
        ("register", 7, 7),
        ("list", [7], [7]),
        ("kv", "a", "a"),
        ("counter", 10, 10),
        ("register", 1.5, 1.5),
        ("list", [1.5], [1.5]),
        ("cas-register", "a", "a"),
    ],
)
def test_what_was_there_before_counts_as_written(model: str, start: Any, shown: Any) -> None:
    """If this fails, a history with a start value is an anomaly under every promise."""
    f = "get" if model == "kv" else "read"
    history = history_of(lines_of((f, "ok", shown)))
    assert written.check(history, model=model).result == "invalid"
    assert written.check(history.starting_at(Start(value=start)), model=model).result == "valid"


def test_numbers_as_columns_and_as_objects_are_judged_alike() -> None:
    """If this fails, the verdict on a big history of numbers differs from that on a small one."""
    calls: list[Call] = [("write", "ok", 1), ("read", "ok", 1), ("cas", "ok", [1, 2]), ("read", "ok", 7)]
    for count in range(len(calls) + 1):
        plain = lines_of(*calls[:count])
        mixed = [*plain, *lines_of(("write", "ok", "a"), key="y")]  # a text takes objects
        for lines in (plain, mixed):
            with over_objects():
                expected = written.check(history_of(lines), model="register")
            assert written.check(history_of(lines), model="register") == expected


def test_when_a_value_was_asked_for_does_not_matter() -> None:
    """If this fails, a promise without real time would be broken by a read from the future."""
    events = [
        Event(index=0, time_ns=0, type="invoke", process=0, f="read", key="x"),
        Event(index=1, time_ns=1, type="ok", process=0, f="read", key="x", value=1),
        Event(index=2, time_ns=2, type="invoke", process=1, f="write", key="x", value=1),
        Event(index=3, time_ns=3, type="ok", process=1, f="write", key="x", value=1),
    ]
    history = History.of(Header(), events)
    assert by_model.judge(history, "register", promise=EVENTUAL).result == "valid"
    assert by_model.judge(history, "register", promise="coherence").result == "valid"
    assert by_model.judge(history, "register").result == "invalid"


@pytest.mark.parametrize(
    ("model", "calls", "why"),
    [
        (
            "list",
            [("append", "fail", 1), ("read", "ok", [1])],
            "read 1, although every write of it surely failed",
        ),
        ("list", [("read", "ok", [1])], "read 1, which no client ever asked to write"),
        (
            "kv",
            [("append", "fail", "a"), ("get", "ok", "a")],
            "read a, and no puts and appends that may have",
        ),
        (
            "counter",
            [("add", "fail", 1), ("read", "ok", 1)],
            "read 1, and no additions that may have happened give",
        ),
    ],
)
def test_what_a_client_asked_for_in_vain_is_not_said_to_be_asked_by_nobody(
    model: str, calls: list[Call], why: str
) -> None:
    """If this fails, the sentence of an anomaly is not so: the history has the operation that asked for it."""
    (found,) = written.check(history_of(lines_of(*calls)), model=model).witnesses
    assert why in found.summary


def test_a_counter_that_nobody_added_to_may_be_read_as_nothing() -> None:
    """If this fails, such a history is not judged under a promise without order, though the model knows it."""
    calls: list[Call] = [("read", "ok", None), ("add", "ok", 1), ("read", "ok", 1)]
    assert written.check(history_of(lines_of(*calls)), model="counter").result == "valid"


@pytest.mark.parametrize(("put", "shown"), [(None, "None"), (5, "5"), (True, "True")])
def test_what_is_no_text_was_not_written_as_one(put: Any, shown: str) -> None:
    """A green light: no client asked to write the text "None", "5" or "True"."""
    asked = history_of(lines_of(("put", "ok", put), ("get", "ok", shown)))
    verdict = run_safely(written.check, asked, name=written.NAME, model="kv")
    assert (verdict.result, "expected a text" in verdict.summary) == ("unknown", True)
