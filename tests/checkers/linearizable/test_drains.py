"""Drains of queues, which are many dequeues in one operation, against the definition on tiny histories."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers import by_model, linearizable
from checkers.history import History
from checkers.history.operation import Operation
from checkers.history.start import Start
from checkers.linearizable.drains import DrainedQueue
from checkers.proofs import verify
from checkers.proofs.meaning import Terms
from tests import examples
from tests.checkers.brute.histories import Line, history_of

State = tuple[Any, ...]


def explained(history: History, first: State = (), *, in_order: bool = True) -> bool:
    """By the definition: every interleaving is tried, in which a drain takes one element at a time.

    `in_order`: elements come out as they went in; else any may.

    `done`: by operation, how many of its steps are behind it; a drain that listed n elements has n + 1 steps.
    """
    operations = [each for each in history.operations if each.type != "fail" or each.saw_empty]
    seen: set[Any] = set()

    def steps(operation: Operation) -> int:
        return len(operation.value or ()) + 1 if operation.f == "drain" and operation.type == "ok" else 1

    def may_begin(place: int, done: tuple[int, ...]) -> bool:
        began = operations[place].invoke_index
        return all(
            other.returned_index is None or other.returned_index > began or done[at] == steps(other)
            for at, other in enumerate(operations)
        )

    def go(done: tuple[int, ...], state: State) -> bool:
        if all(done[at] == steps(each) or each.type == "info" for at, each in enumerate(operations)):
            return True
        if (done, state) in seen:
            return False
        seen.add((done, state))
        for place, operation in enumerate(operations):
            is_unsure_drain = operation.f == "drain" and operation.type == "info"
            if (done[place] < steps(operation) or is_unsure_drain) and may_begin(place, done):
                behind = done if is_unsure_drain else (*done[:place], done[place] + 1, *done[place + 1 :])
                for turn in range(1 if in_order or operation.f == "enqueue" else max(1, len(state))):
                    after = _after(operation, done[place], (*state[turn:], *state[:turn]))
                    if after is not None and go(behind, after):
                        return True
        return False

    return go((0,) * len(operations), first)


def _after(operation: Operation, step: int, state: State) -> State | None:
    """The state after a step of the operation; None if it cannot be."""
    listed = operation.value or () if operation.f == "drain" and operation.type == "ok" else ()
    if operation.f == "enqueue":
        return (*state, operation.value)
    if operation.type == "info":
        return state[1:]
    if operation.saw_empty or (operation.f == "drain" and step == len(listed)):
        return None if state else ()
    wanted = listed[step] if operation.f == "drain" else operation.value
    return state[1:] if state[:1] == (wanted,) else None


@st.composite
def drawn(draw: Any) -> list[Line]:
    """Up to three clients of one queue. Answers are drawn from what was put in, most often what a queue would give."""
    lines: list[Line] = []
    asked: dict[int, str] = {}
    held: list[int] = []
    fresh = 0
    values = st.integers(1, 3)
    for _ in range(draw(st.integers(3, 11))):
        process = draw(st.integers(0, 2))
        if process not in asked:
            if any(line.process == process and line.type == "info" for line in lines):
                continue
            asked[process] = draw(st.sampled_from(["enqueue", "enqueue", "dequeue", "drain"]))
            value = None
            if asked[process] == "enqueue":
                value = fresh = fresh + 1 if draw(st.integers(0, 9)) else draw(values)
                held.append(value)
            lines.append(Line("invoke", process, asked[process], value, key="q"))
            continue
        f, ended = asked.pop(process), draw(st.sampled_from(["ok"] * 6 + ["info", "fail"]))
        value = next(line.value for line in reversed(lines) if line.process == process)
        error = None
        if f == "dequeue" and ended == "ok":
            value = held.pop(0) if held and draw(st.integers(0, 4)) else None
        elif f == "dequeue" and ended == "fail":
            error = draw(st.sampled_from(["empty", "refused"]))
        elif f == "drain" and ended == "ok":
            size = draw(st.sampled_from([len(held), len(held), max(0, len(held) - 1)]))
            value, held = held[:size], held[size:]
            if draw(st.integers(0, 4)) == 0:
                value = draw(st.permutations(value))
        lines.append(Line(ended, process, f, value, key="q", error=error))
    return lines


@pytest.mark.parametrize("model", ["queue", "unordered-queue"])
@examples.up_to(200)
@given(lines=drawn())
def test_a_drain_takes_one_after_the_other_until_the_queue_is_empty(model: str, lines: list[Line]) -> None:
    """If this fails, a wrong drain is not found, or a right one is called wrong; or its proof is refused."""
    history = history_of(lines)
    verdict = linearizable.check(history, model=model, failed_cas_observes=True)
    if verdict.details["operations"] and verdict.details["observations"]:
        has_order = explained(history, in_order=model == "queue")
        assert verdict.result == ("valid" if has_order else "invalid"), verdict.summary
    found = verify.check(history, verdict, Terms(model=model, failed_cas_observes=True))
    assert not found.refused
    assert all(witness.events for witness in verdict.witnesses)
    assert (by_model.judge(history, model).result == "invalid") >= (verdict.result == "invalid")


def lines_of(*calls: tuple[str, str, Any]) -> list[Line]:
    lines = []
    for process, (f, ended, value) in enumerate(calls):
        lines += [
            Line("invoke", process, f, value if f == "enqueue" else None, key="q"),
            Line(ended, process, f, value, key="q"),
        ]
    return lines


TWO = (("enqueue", "ok", 1), ("enqueue", "ok", 2))


@pytest.mark.parametrize(
    ("calls", "result"),
    [
        ((*TWO, ("drain", "ok", [1, 2])), "valid"),
        ((*TWO, ("drain", "ok", [2, 1])), "invalid"),
        ((*TWO, ("drain", "ok", [1])), "invalid"),
        ((*TWO, ("drain", "ok", []), ("dequeue", "ok", 1)), "invalid"),
        ((*TWO, ("drain", "info", None), ("dequeue", "ok", None)), "valid"),
        ((*TWO, ("drain", "info", None), ("dequeue", "ok", 2), ("drain", "ok", [])), "valid"),
        ((*TWO, ("drain", "fail", None), ("dequeue", "ok", 2)), "invalid"),
        ((("drain", "ok", None), *TWO, ("drain", "ok", [1, 2])), "valid"),
    ],
)
def test_drains_by_hand(calls: tuple[tuple[str, str, Any], ...], result: str) -> None:
    """As above."""
    history = history_of(lines_of(*calls))
    assert explained(history) == (result == "valid")
    verdict = linearizable.check(history, model="queue")
    assert verdict.result == result
    assert all("drain" not in sentence for each in verdict.witnesses for sentence in each.explanation)


def test_a_queue_that_held_something_is_drained_of_it_too() -> None:
    """If this fails, a start value and a drain do not go together."""
    history = history_of(lines_of(("enqueue", "ok", 2), ("drain", "ok", [1, 2])))
    begun = history.starting_at(Start(value=[1]))
    assert linearizable.check(history, model="queue").result == "invalid"
    assert linearizable.check(begun, model="queue").result == "valid"
    assert explained(begun, (1,))


def test_the_state_of_a_drained_queue_is_that_of_a_queue_without_one() -> None:
    """If this fails, an operation means something else because the key was drained some time."""
    assert DrainedQueue().first_elements == ()
    history = history_of(lines_of(*TWO, ("dequeue", "ok", 2)))
    assert linearizable.check(history, model="queue").result == "invalid"
