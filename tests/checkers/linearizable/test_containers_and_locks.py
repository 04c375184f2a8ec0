"""Stacks, priority queues, unordered queues and locks: what each accepts, and the answer that it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from checkers import by_model, linearizable
from checkers.history import Event, Header, History
from checkers.history.errors import ModelError
from harness.cli.main import main
from tests.checkers.brute.linear import linearizable as has_order

FENCED: dict[str, Any] = {"client": "a", "fence": 1}


def history(*answers: tuple[Any, ...]) -> History:
    """One operation after the other: process, f, value, and the outcome if it is not "ok"."""
    events: list[Event] = []
    for process, f, value, *outcome in answers:
        asked = None if f in ("dequeue", "pop", "poll") else value
        for kind, shown in (("invoke", asked), (outcome[0] if outcome else "ok", value)):
            place = len(events)
            events.append(
                Event(index=place, time_ns=place, type=kind, process=process, f=f, value=shown)  # type: ignore[arg-type]
            )
    return History.of(Header(), events)


ORDERS: list[tuple[str, bool, History]] = [
    ("stack", True, history((0, "push", 1), (0, "push", 2), (1, "pop", 2), (1, "pop", 1), (1, "pop", None))),
    ("stack", False, history((0, "push", 1), (0, "push", 2), (1, "pop", 1))),
    ("stack", False, history((0, "push", 1), (1, "pop", None))),
    ("stack", True, history((0, "push", 1), (0, "push", 2), (1, "pop", None, "info"), (2, "pop", 1))),
    ("priority-queue", True, history((0, "insert", 1), (0, "insert", 3), (0, "insert", 2), (1, "poll", 3))),
    ("priority-queue", False, history((0, "insert", 1), (0, "insert", 3), (0, "insert", 2), (1, "poll", 2))),
    ("priority-queue", True, history((0, "insert", 0.5), (0, "insert", 1), (1, "poll", 1.0), (1, "poll", 0.5))),
    ("unordered-queue", True, history((0, "enqueue", 1), (0, "enqueue", 2), (1, "dequeue", 2), (1, "dequeue", 1))),
    ("unordered-queue", False, history((0, "enqueue", 1), (1, "dequeue", 1), (1, "dequeue", 1))),
    ("unordered-queue", False, history((0, "enqueue", 1), (1, "dequeue", None))),
    # An unanswered take may have taken what was there then, but not what came later.
    ("unordered-queue", True, history((0, "enqueue", 1), (1, "dequeue", None, "info"), (2, "dequeue", None))),
    (
        "unordered-queue",
        False,
        history((0, "enqueue", 1), (0, "enqueue", 2), (1, "dequeue", None, "info"), (2, "dequeue", None)),
    ),
    ("mutex", True, history((0, "acquire", None), (1, "release", None), (1, "acquire", None))),
    ("mutex", False, history((0, "acquire", None), (1, "acquire", None))),
    ("mutex", False, history((0, "release", None))),
    ("owner-aware-mutex", False, history((0, "acquire", None), (1, "release", None))),
    ("owner-aware-mutex", True, history((0, "acquire", "a"), (1, "release", "a"), (1, "acquire", "b"))),
    ("owner-aware-mutex", True, history((0, "acquire", None, "info"), (1, "release", "a"), (1, "acquire", "a"))),
    ("owner-aware-mutex", False, history((0, "acquire", None, "info"), (1, "release", None))),
    ("reentrant-mutex", True, history((0, "acquire", "a"), (0, "acquire", "a"), (0, "release", "a"))),
    ("reentrant-mutex", False, history((0, "acquire", "a"), (1, "acquire", "b"))),
    (
        "reentrant-mutex",
        False,
        history((0, "acquire", "a"), (0, "acquire", "a"), (0, "release", "a"), (1, "acquire", "b")),
    ),
    (
        "fenced-mutex",
        True,
        history((0, "acquire", FENCED), (0, "release", FENCED), (1, "acquire", {"client": "b", "fence": 2})),
    ),
    ("fenced-mutex", False, history((0, "acquire", FENCED), (0, "release", FENCED), (0, "acquire", FENCED))),
    ("fenced-mutex", True, history((0, "acquire", FENCED), (0, "release", FENCED), (0, "acquire", "a"))),
    ("fenced-mutex", False, history((0, "acquire", FENCED), (0, "acquire", FENCED))),
    ("reentrant-fenced-mutex", True, history((0, "acquire", FENCED), (0, "acquire", FENCED))),
    (
        "reentrant-fenced-mutex",
        False,
        history((0, "acquire", FENCED), (0, "acquire", {"client": "a", "fence": 2})),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("model", "is_right", "answers"), ORDERS)
def test_what_each_model_accepts_and_refuses(model: str, is_right: bool, answers: History) -> None:
    """If it failed, a broken lock or queue would pass, or a right one be blamed."""
    verdict = linearizable.check(answers, model=model)
    assert verdict.result == ("valid" if is_right else "invalid"), verdict.summary
    assert has_order(model, answers) == is_right


@pytest.mark.parametrize(
    ("model", "answers"),
    [
        ("priority-queue", history((0, "insert", "a"))),
        ("fenced-mutex", history((0, "acquire", {"client": "a", "fence": "x"}))),
        ("stack", history((0, "enqueue", 1))),
        ("mutex", history((0, "push", 1))),
    ],
)
def test_what_a_model_cannot_mean_is_refused(model: str, answers: History) -> None:
    """If it failed, a history of something else would be judged, or end with a traceback."""
    with pytest.raises(ModelError, match="expected"):
        linearizable.check(answers, model=model)


@pytest.mark.parametrize(
    ("model", "start", "f", "shown"),
    [
        ("priority-queue", [0.5, 2, 1], "poll", 2),
        ("stack", ["a", "b"], "pop", "b"),
        ("unordered-queue", [1, 2], "dequeue", 2),
    ],
)
def test_what_was_inside_at_first_comes_out(model: str, start: list[Any], f: str, shown: Any) -> None:
    """If it failed, a store that was not empty at first would be blamed for what it held."""
    taken = history((0, f, shown))
    assert by_model.judge(taken, model).result == "invalid"
    assert by_model.judge(taken, model, initial=start).result == "valid"


def test_a_priority_queue_begins_with_numbers() -> None:
    """If it failed, a start value that has no order would end with a traceback."""
    with pytest.raises(ModelError, match="expected numbers as the start value"):
        by_model.judge(history((0, "poll", 2)), "priority-queue", initial=["a", 2])


def test_a_lock_has_no_start_value() -> None:
    """If it failed, a start value that nobody can mean would be dropped in silence."""
    with pytest.raises(ModelError, match="no start value"):
        by_model.judge(history((0, "acquire", None)), "mutex", initial=1)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (("enqueue 1", "enqueue 2", "dequeue 2", "dequeue 1"), "say --model unordered-queue"),
        (('acquire "a"', 'acquire "a"', 'release "a"'), "say --model reentrant-mutex"),
        (("enqueue 1", "dequeue 2"), ""),
        (('acquire "a"', 'acquire "a"', "release nil", "release nil", "release nil"), ""),
    ],
)
def test_a_guess_that_fails_names_the_model_that_holds(
    lines: tuple[str, ...], said: str, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """If it failed, a right store would be called wrong for a promise that it never gave, and nobody were told."""
    path = tmp_path / "history.edn"
    with path.open("w") as file:
        for line in lines:
            f, value = line.split()
            for kind in ("invoke", "ok"):
                shown = "nil" if kind == "invoke" and f == "dequeue" else value
                file.write(f"{{:process 0 :type :{kind} :f :{f} :value {shown}}}\n")
    assert main(["check", str(path)]) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert said in printed and ("say --model" in printed) == bool(said)
