"""Whatever a client of a user's own answers or raises becomes an outcome that a record can hold."""

from __future__ import annotations

import pytest

from harness.clients.client import NotDone, in_words
from harness.clients.operations import (
    Asked,
    Completion,
    Done,
    Dump,
    Mismatch,
    Read,
    Transaction,
    Write,
    can_be_recorded,
    fitting,
)

READ, WRITE = Transaction((Read("s", "k"),)), Transaction((Write("s", "k", 1),))


class Unshowable:
    def __repr__(self) -> str:
        raise ValueError("this value has no words")


def deep() -> object:
    value: object = 1
    for _ in range(2000):
        value = [value]
    return value


@pytest.mark.parametrize(
    "outcome", [Done([deep()]), deep(), Unshowable(), Done([Unshowable()]), Mismatch(0, Unshowable())]
)
@pytest.mark.parametrize(("asked", "type_"), [(READ, "fail"), (WRITE, "info"), (Dump(), "fail")])
def test_an_answer_that_cannot_be_shown_is_unexpected(outcome: object, asked: Asked, type_: str) -> None:
    """If it failed, one answer of a store would end the run with a traceback of the harness."""
    found = fitting(outcome, asked)
    assert isinstance(found, Completion) and found.type == type_
    assert found.error is not None and found.error.startswith("unexpected answer, of type ")
    assert can_be_recorded(found, Completion)


@pytest.mark.parametrize("kind", [NotDone, ValueError, OSError])
def test_the_words_of_an_error_can_be_recorded(kind: type[Exception]) -> None:
    """If it failed, bytes of a store in the text of an error would end the run when the harness writes the record."""
    said = in_words(kind("bad name \udcff"))
    assert said.endswith("bad name \\udcff")
    assert can_be_recorded(said, str)


def test_an_error_without_words_has_its_kind() -> None:
    """If it failed, an operation would have an empty error, which says that there was none."""
    assert [in_words(each) for each in (NotDone(), ValueError(), TimeoutError("late"))] == [
        "not done",
        "ValueError",
        "timeout",
    ]


@pytest.mark.parametrize(
    ("outcome", "asked", "error"),
    [
        (
            Done({"spaces": {}}),  # type: ignore[arg-type]
            Dump(),
            'unexpected answer, not Done([{"spaces": {space: [[key, value], …]}}]): Done(results={',
        ),
        (
            Done([]),
            READ,
            "unexpected answer, not Done([one result for each step; of a Scan: [[key, value], …]]): Done(",
        ),
    ],
)
def test_an_answer_that_does_not_fit_is_told_the_form_that_does(
    outcome: Done, asked: Asked, error: str
) -> None:
    """If it failed, the author of a client would look for the form of a Dump in the code of the harness."""
    found = fitting(outcome, asked)
    assert isinstance(found, Completion) and str(found.error).startswith(error)
