"""The strongest model that a run satisfied: over all answers, whatever was promised of them."""

from __future__ import annotations

import pytest

from checkers import linearizable
from checkers.history.history import Header, History
from checkers.history.operation import Event
from checkers.limits import Limits, within
from checkers.verdict import Verdict
from harness.judge.strongest import excused, strongest
from harness.workloads import WORKLOADS

Line = tuple[str, int, str, object, str]
"""Type, process, f, value, role."""


def recorded(*lines: Line, key: str | None = None, mode: str = "read-confirmed") -> History:
    events = [
        Event(
            index=index,
            time_ns=index,
            type=type_,  # type: ignore[arg-type]  # a word of the table below
            process=process,
            f=f,
            key=key,
            value=value,
            node="n1" if role == "owner" else "n2",
            role=role if type_ == "ok" else None,
            mode=mode if role == "replica" else "read-confirmed",
        )
        for index, (type_, process, f, value, role) in enumerate(lines)
    ]
    return History.of(Header(), events)


def told(workload: str, *lines: Line, key: str | None = None) -> str | None:
    nothing: list[Verdict] = []
    return strongest(WORKLOADS[workload], recorded(*lines, key=key), nothing)


def both(process: int, f: str, value: object, role: str = "owner") -> tuple[Line, Line]:
    return ("invoke", process, f, value, role), ("ok", process, f, value, role)


def test_a_stale_read_leaves_less_than_what_fresh_ones_are_promised() -> None:
    """If it failed, the page would say of a run with stale reads that nothing was weaker than it seems."""
    append = both(0, "txn", [["append", "x", 1]])
    fresh = both(1, "txn", [["r", "x", [1]]], "replica")
    stale = both(1, "txn", [["r", "x", None]], "replica")
    assert told("append", *append, *fresh) == "strict-serializable"
    assert told("append", *append, *stale) == "strong-session-serializable and strong-cursor-stability"
    write = both(0, "write", 1)
    assert told("register", *write, *both(1, "read", 1, "replica"), key="x") == "linearizable"
    assert told("register", *write, *both(1, "read", None, "replica"), key="x") == "coherence"


@pytest.mark.parametrize(("mode", "expected"), [("dirty", "linearizable"), ("dirty-page", "coherence")])
def test_only_dirty_reads_are_left_out(mode: str, expected: str) -> None:
    """If it failed, stale reads in a mode of a user's store that is called `dirty-page` would not count."""
    lines = *both(0, "write", 1), *both(1, "read", None, "replica"), *both(2, "read", 1)
    history = recorded(*lines, key="x", mode=mode)
    verdict = linearizable.check(history)
    assert verdict.details["reads_not_judged"] == {f"{mode} at replica": 1}
    assert strongest(WORKLOADS["register"], history, [verdict]) == expected


def test_a_weak_model_beside_stale_replicas_names_its_reason() -> None:
    """If it failed, "VALID" would stand beside a strongest model of "none", and nothing would explain it."""
    stale = Verdict(checker="prefix", result="valid", summary="", details={"stale_reads": 2})
    fresh = Verdict(checker="prefix", result="valid", summary="", details={"stale_reads": 0})
    assert excused("none", [stale]) == "none (replica reads may be stale by the promise)"
    assert excused("none", [fresh]) == "none"


def test_what_has_no_models_has_no_strongest() -> None:
    """If it failed, a bank's total would be called linearizable."""
    assert told("bank", *both(0, "read", {"a1": 3})) is None
    assert told("append") is None


def test_a_small_budget_is_no_reason_to_search_without_one() -> None:
    """If it failed, `--budget 4` would give the description of a run the ten billion steps of the default."""
    with within(Limits(steps=4)):
        write, read = both(0, "write", 1), both(1, "read", 1)
        assert told("register", *write, *read, *write, *read, key="x") == "not decided"
