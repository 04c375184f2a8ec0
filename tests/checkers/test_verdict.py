"""Verdicts: three values that never hide one another, and checkers that break."""

from __future__ import annotations

import itertools

import pytest

from checkers.history import HistoryError
from checkers.verdict import CheckerDefect, Result, Verdict, Witness, merged, run_safely

RESULTS: tuple[Result, ...] = ("valid", "invalid", "unknown")
WITNESS = Witness(
    rule="stale-read", summary="s", events=(1, 2), key="r1", start_ns=3, end_ns=4, explanation=("e",)
)
INVALID = Verdict(checker="x", result="invalid", summary="s", witnesses=(WITNESS,), details={"n": 1})


ALL = [results for count in (1, 2, 3) for results in itertools.product(RESULTS, repeat=count)]


@pytest.mark.parametrize("results", ALL)
def test_an_unknown_never_hides_an_anomaly(results: tuple[Result, ...]) -> None:
    """A run with an anomaly would count as undecided, or an undecided one as good."""
    expected = "invalid" if "invalid" in results else "unknown" if "unknown" in results else "valid"
    assert merged(results) == expected


def test_no_verdict_is_no_green_light() -> None:
    """A run that nobody checked would count as good."""
    assert merged([]) == "unknown"


def raises(*_: object) -> Verdict:
    raise ZeroDivisionError("by nought")


@pytest.mark.parametrize("limit", [RecursionError, MemoryError, AssertionError, ZeroDivisionError])
def test_a_broken_checker_says_unknown(limit: type[Exception]) -> None:
    """A bug in a checker would end the run, or count as valid."""

    def broken(_: object) -> Verdict:
        raise limit("so it goes")

    verdict = run_safely(broken, None)
    assert (verdict.result, verdict.checker) == ("unknown", "broken")
    assert limit.__name__ in verdict.summary and "so it goes" in verdict.summary
    assert verdict.details["where"].startswith("test_verdict.py, line ")
    assert verdict.details["where"].endswith(", in broken")
    assert Verdict.from_json(verdict.to_json()) == verdict


def test_a_checker_that_returns_nothing_says_unknown() -> None:
    """A checker that forgot its return would count as valid."""
    assert run_safely(lambda _: None, None, name="forgetful").result == "unknown"  # type: ignore[arg-type, return-value]  # the point


def test_a_history_that_cannot_be_judged_is_unknown() -> None:
    """A checker that refuses a history would be called broken."""

    def refuses(_: object) -> Verdict:
        raise HistoryError(expected="a", came="b", attempt="c")

    assert run_safely(refuses, None).summary == "cannot be judged: expected a, got b; c"


def test_interrupts_are_not_swallowed() -> None:
    """Ctrl-C during a long check would be taken for its verdict."""

    def interrupted(_: object) -> Verdict:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_safely(interrupted, None)


def test_seconds_are_what_the_clock_says() -> None:
    """The report would show wrong times."""
    clock = iter([10.0, 12.5])
    assert run_safely(lambda: INVALID, name="x", clock=lambda: next(clock)).seconds == 2.5


def test_invalid_needs_a_witness() -> None:
    """An alarm would ring with nothing to show for it."""
    with pytest.raises(AssertionError):
        Verdict(checker="x", result="invalid", summary="s")
    with pytest.raises(AssertionError):
        Verdict(checker="x", result="valid", summary="s", witnesses=(WITNESS,))


def test_json_round_trip() -> None:
    """A stored verdict would say something else when it is read again."""
    assert Verdict.from_json(INVALID.to_json()) == INVALID


def test_a_defect_of_a_checker_is_no_verdict() -> None:
    """If this fails, a proof that does not replay is told as unknown, and nobody looks for the defect."""

    def caught() -> Verdict:
        raise CheckerDefect("a proof does not replay")

    with pytest.raises(CheckerDefect):
        run_safely(caught)
