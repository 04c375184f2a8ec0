"""A history that we wrote as Jepsen's EDN gets the verdict of the original: what a refusal observed is not lost."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers import by_model
from checkers.history import History, foreign
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
