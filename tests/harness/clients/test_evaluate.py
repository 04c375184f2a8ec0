"""Steps that a client evaluates for a store that cannot compute."""

from __future__ import annotations

import pytest

from harness.clients.operations.evaluate import ILLEGAL, Evaluated, evaluate
from harness.clients.operations.outcome import Completion, Mismatch
from harness.clients.operations.steps import Add, Append, Cas, Step, Take, Write

PLACE = ("s", "k")


@pytest.mark.parametrize("step", [Append("s", "k", 2), Take("s", "k"), Add("s", "k", 1)])
@pytest.mark.parametrize("value", ["text", True, {"a": 1}])
def test_what_a_step_cannot_change_is_kept(step: Step, value: object) -> None:
    """If it failed, a step would replace a value of another kind, and nobody would notice its loss."""
    outcome = evaluate([step], {PLACE: value})
    assert isinstance(outcome, Completion) and (outcome.type, outcome.error) == ("fail", ILLEGAL)


def test_a_value_that_is_equal_to_python_alone_is_written() -> None:
    """If it failed, an acknowledged write of true over 1 would not be in the store."""
    outcome = evaluate([Write("s", "k", True)], {PLACE: 1})
    assert isinstance(outcome, Evaluated) and outcome.changed[PLACE] is True
    assert isinstance(evaluate([Cas("s", "k", True, 2)], {PLACE: 1}), Mismatch)


def test_lists_grow_at_the_end_and_are_taken_from_at_the_front() -> None:
    """If it failed, a queue would not be one."""
    steps: list[Step] = [
        Append("s", "k", 1),
        Append("s", "k", 2),
        Take("s", "k"),
        Take("s", "k"),
        Take("s", "k"),
    ]
    outcome = evaluate(steps, {PLACE: None})
    assert isinstance(outcome, Evaluated)
    assert (list(outcome.results), outcome.changed) == ([True, True, 1, 2, None], {PLACE: []})
