"""A dequeue that found nothing, as it is answered (null) and as it is refused ("empty")."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checkers import linearizable
from checkers.domain import queues
from checkers.history import History
from checkers.proofs import verify
from tests.checkers.brute.histories import Line, history_of

OBSERVES = verify.Terms(model="queue", failed_cas_observes=True)


def told_empty(type_: str, *, before: bool) -> History:
    """An element, and a dequeue that is told "empty" although it is in, or before it is."""
    put = [Line("invoke", 0, "enqueue", 1, key="x"), Line("ok", 0, "enqueue", 1, key="x")]
    error = "empty" if type_ == "fail" else None
    empty = [
        Line("invoke", 1, "dequeue", None, key="x"),
        Line(type_, 1, "dequeue", None, key="x", error=error),
    ]
    took = [Line("invoke", 1, "dequeue", None, key="x"), Line("ok", 1, "dequeue", 1, key="x")]
    return history_of([*(empty if before else []), *put, *([] if before else empty), *took])


@pytest.mark.parametrize("type_", ["ok", "fail"])
@pytest.mark.parametrize("before", [True, False])
def test_empty_is_judged_and_its_proof_is_accepted(type_: str, before: bool) -> None:
    """If this fails, a wrong "empty" is not found, a right one is, or the verifier reads it otherwise."""
    history = told_empty(type_, before=before)
    verdict = linearizable.check(history, model="queue")
    assert verdict.result == ("valid" if before else "invalid")
    proved = verify.check(history, verdict, OBSERVES)
    assert proved.holds and not proved.refused


def test_refused_empty_is_no_observation_where_that_is_not_promised() -> None:
    """If this fails, stores that promise nothing of their refusals get false alarms."""
    history = told_empty("fail", before=False)
    verdict = linearizable.check(history, model="queue", failed_cas_observes=False)
    assert verdict.result == "valid" and verify.check(history, verdict, verify.Terms(model="queue")).holds


def test_null_means_that_the_queue_was_seen_empty() -> None:
    """If this fails, null is taken for an element, or what a null proves missing is not called lost."""
    history = told_empty("ok", before=True)
    assert queues.check(history).result == "valid"
    history = told_empty("ok", before=False)
    lost = queues.check(replace(history, operations=history.operations[:2]))
    assert [witness.rule for witness in lost.witnesses] == ["lost"]
