"""The operations that Knossos and Porcupine get: those that our check judged, in the order of their events."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.history import Event, Header, History
from checkers.proofs.meaning import Terms
from harness.judge.files.register_checkers import ADAPTERS, CHECK, Question

READS_OF_OWNERS = Terms(model="register", reads=lambda _, mode: mode != "dirty", failed_cas_observes=True)


def asked(name: str, *lines: tuple[int, str, str, Any, str | None]) -> list[str]:
    """The lines of the file, of events: process, type, f, value, mode; all on one key."""
    events = [
        Event(
            index=at, time_ns=at, type=type_, process=process, f=f, key="x", value=value,  # type: ignore[arg-type]
            mode=mode,
        )
        for at, (process, type_, f, value, mode) in enumerate(lines)
    ]  # fmt: skip
    question = ADAPTERS[name].question(History.of(Header(), events), {CHECK: READS_OF_OWNERS})
    assert isinstance(question, Question)
    (text,) = question.files.values()
    return text.splitlines()


@pytest.mark.parametrize("name", ADAPTERS)
def test_operations_overlap_as_they_did(name: str) -> None:
    """If it failed, the other checker would call a right history wrong: a read would come after a write beside it."""
    lines = asked(
        name,
        (0, "invoke", "write", 1, None),
        (1, "invoke", "read", None, None),
        (1, "ok", "read", None, None),
        (0, "ok", "write", 1, None),
    )
    assert [("read" in line, "invoke" not in line) for line in lines] == [
        (False, False),
        (True, False),
        (True, True),
        (False, True),
    ]


@pytest.mark.parametrize("name", ADAPTERS)
@pytest.mark.parametrize(("outcome", "mode"), [("ok", "dirty"), ("info", None), ("fail", None)])
def test_a_read_that_was_not_judged_is_not_sent(name: str, outcome: str, mode: str | None) -> None:
    """If it failed, the two checkers would disagree about a read that promises nothing."""
    lines = asked(
        name,
        (0, "invoke", "write", 1, None),
        (0, "ok", "write", 1, None),
        (1, "invoke", "read", None, mode),
        (1, outcome, "read", None, mode),
    )
    assert len(lines) == 2 and not any("read" in line for line in lines)


@pytest.mark.parametrize("name", ADAPTERS)
@pytest.mark.parametrize("value", [None, 5, [1]])
def test_a_cas_without_its_two_values_is_not_asked_about(name: str, value: Any) -> None:
    """If it failed, `check --second-opinion` would end in a traceback where our check says what it cannot judge."""
    events = [
        Event(index=at, time_ns=at, type=type_, process=0, f="cas", key="x", value=value)  # type: ignore[arg-type]
        for at, type_ in enumerate(("invoke", "info"))
    ]
    why = ADAPTERS[name].question(History.of(Header(), events), {CHECK: READS_OF_OWNERS})
    assert isinstance(why, str) and "event 0: expected [old, new] of a cas" in why
