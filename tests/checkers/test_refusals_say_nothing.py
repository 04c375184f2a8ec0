"""Where refusals observe nothing (`--failed-cas says-nothing`), no model concludes anything from one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers import by_model
from checkers.by_model import Judgement
from checkers.history import History
from checkers.history.operation import EMPTY, NOTHING_THERE
from checkers.models import MODELS
from tests import examples
from tests.checkers.brute import tiny_domains, tiny_objects
from tests.checkers.brute.histories import Line, history_of

OBSERVING = {*EMPTY, NOTHING_THERE, "mismatch"}
QUEUE = [
    Line("invoke", 0, "enqueue", 1, key="x"),
    Line("ok", 0, "enqueue", 1, key="x"),
    Line("invoke", 0, "dequeue", None, key="x"),
    Line("fail", 0, "dequeue", None, key="x", error="empty"),
]


def said(history: History, model: str, promise: str) -> tuple[str, list[tuple[str, str]], str | None]:
    judged: Judgement = by_model.judge(history, model, promise=promise, failed_cas_observes=False)
    return judged.result, [(each.checker, each.result) for each in judged.verdicts], judged.strongest


def lines_of(model: str, seed: int) -> list[Line]:
    if model == "queue":
        return tiny_domains.queue(seed)
    lines = tiny_objects.drawn(seed, model=model, unique=True)
    if model != "register":
        return lines
    return [  # deletions that were refused
        replace(
            line, value=None, **({"type": "fail", "error": NOTHING_THERE} if line.type != "invoke" else {})
        )
        if line.f == "write" and line.value == 1
        else line
        for line in lines
    ]


@examples.up_to(200)
@given(
    model=st.sampled_from(["register", "cas-register", "queue", "kv"]),
    seed=st.integers(0, 10_000),
    data=st.data(),
)
def test_a_refusal_is_as_any_other(model: str, seed: int, data: st.DataObject) -> None:
    """If this fails, a check takes a refusal for an observation that nobody promised."""
    promise = data.draw(st.sampled_from(MODELS[model].promises))
    lines = lines_of(model, seed)
    silent = [replace(line, error="refused") if line.error in OBSERVING else line for line in lines]
    assert said(history_of(lines), model, promise) == said(history_of(silent), model, promise)


@pytest.mark.parametrize(("observes", "result"), [(True, "invalid"), (False, "valid")])
def test_a_refused_dequeue_shows_no_loss_where_it_observes_nothing(observes: bool, result: str) -> None:
    """If this fails, stores that promise nothing of "empty" get a false alarm, or ours none."""
    assert by_model.judge(history_of(QUEUE), "queue", failed_cas_observes=observes).result == result
