"""A history that we wrote as Jepsen's EDN gets the verdict of the original: what a refusal observed is not lost."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers import by_model
from checkers.history import Header, History, foreign, jsonl
from checkers.history.foreign import jepsen_edn
from tests import examples
from tests.checkers.brute import tiny_domains, tiny_objects, tiny_transactions
from tests.checkers.brute.histories import Line, history_of

CAS = [
    Line("invoke", 0, "write", 1),
    Line("ok", 0, "write", 1),
    Line("invoke", 1, "cas", [2, 3]),
    Line("fail", 1, "cas", [2, 3], error="mismatch"),
]
OBJECTS = ("register", "cas-register", "multi-register", "kv", "list", "set", "counter", "queue")
DOMAINS = {
    "queue": tiny_domains.queue,
    "bank": tiny_domains.bank,
    "long-fork": tiny_domains.long_fork,
    "causal-reverse": tiny_domains.causal_reverse,
}


def drawn(model: str, seed: int) -> list[Line]:
    if model in ("append", "rw-register"):
        return tiny_transactions.drawn(seed, workload=model)
    if model in DOMAINS and (model not in OBJECTS or seed % 2):
        return DOMAINS[model](seed)
    return tiny_objects.drawn(seed, model=model)


def said(history: History, model: str) -> list[tuple[str, list[tuple[str, str]]]]:
    judged = (
        by_model.judge(history, model, failed_cas_observes=observes) for observes in (None, True, False)
    )
    return [(each.result, [(one.checker, one.result) for one in each.verdicts]) for each in judged]


@examples.up_to(250)
@given(
    model=st.sampled_from([*OBJECTS, *DOMAINS, "append", "rw-register"]),
    seed=st.integers(0, 10_000),
    error=st.sampled_from(["", None, "mismatch of versions", "not the leader"]),
)
def test_the_export_has_the_verdict_of_the_original(model: str, seed: int, error: str | None) -> None:
    """Breaks if an export is judged otherwise than the run that it is of."""
    lines = [
        replace(line, error=error) if line.type == "fail" and error != "" else line
        for line in drawn(model, seed)
    ]
    history = history_of(lines)
    again = foreign.parse(jepsen_edn.write(history).encode())
    assert said(again, model) == said(history, model)


@pytest.mark.parametrize("observes", [True, False])
def test_a_refusal_of_another_tool_stays_one(observes: bool) -> None:
    """Breaks if an export of a foreign history says that its refusals observed something."""
    history = history_of(CAS) if observes else replace(history_of(CAS), origin="edn")
    text = jepsen_edn.write(history)
    assert (":refusal-observed? true" in text) == observes
    assert foreign.parse(text.encode()).failed_cas_observes == observes
    assert by_model.judge(foreign.parse(text.encode()), "cas-register").result == (
        "valid" if observes else "unknown"
    )


def test_an_answer_that_names_no_key_is_written_with_that_of_its_question() -> None:
    """If it failed, all keys would be one register to the second checker, and to whom the file was sent."""
    lines = [
        '{"index":0,"time_ns":0,"type":"invoke","process":0,"f":"write","key":"x","value":1}',
        '{"index":1,"time_ns":1,"type":"ok","process":0,"f":"write"}',
        '{"index":2,"time_ns":2,"type":"invoke","process":0,"f":"read","key":"y"}',
        '{"index":3,"time_ns":3,"type":"ok","process":0,"f":"read"}',
    ]
    data = b"\n".join((jsonl.header_line(Header()), *(line.encode() for line in lines))) + b"\n"
    history = jsonl.parse(data)
    again = foreign.parse(jepsen_edn.write(history, reads=lambda role, mode: True).encode())
    assert [(each.key, each.value) for each in again.operations] == [("x", 1), ("y", None)]


def test_transactions_have_their_keys_inside() -> None:
    """A run with transactions that must fail has a word in the place of their key: Elle could not read the file."""
    fails = [
        Line(type_, 0, "txn", [["append", "x", 1]], key="fails by compare") for type_ in ("invoke", "fail")
    ]
    reads = [Line("invoke", 0, "txn", [["r", "x", None]]), Line("ok", 0, "txn", [["r", "x", []]])]
    text = jepsen_edn.write(history_of([*fails, *reads]))
    assert "fails by" not in text and by_model.judge(foreign.parse(text.encode()), "append").result == "valid"


def test_transactions_that_only_read_are_reads() -> None:
    """Elle held a dirty read of several keys to a promise that it does not have."""
    writes = [Line(type_, 0, "txn", [["append", "x", 1]]) for type_ in ("invoke", "ok")]
    answers = [
        Line("ok", 0, "txn", [["r", "x", []]], mode="dirty"),
        Line("ok", 0, "txn", [["r", "x", []], ["append", "y", 2]], mode="dirty"),
    ]
    written = []
    for answer in answers:
        asked = Line("invoke", 0, "txn", [[f, key, None if f == "r" else 2] for f, key, _ in answer.value])
        text = jepsen_edn.write(
            history_of([*writes, asked, answer]), reads=lambda role, mode: mode != "dirty"
        )
        written.append(text.count(":r"))
    assert written == [0, 2]
