"""The states that a night reached, and those that it reached no more."""

from __future__ import annotations

import datetime
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest

from harness.campaigns import compared, coverage
from harness.campaigns.chance import Count
from harness.campaigns.compare import compare, trend
from harness.campaigns.coverage import covered
from harness.campaigns.documents import markdown, page
from harness.campaigns.journal import Ended, Head, Journal, create, load
from harness.campaigns.judging import fields_of_verdict
from harness.campaigns.known import KnownList
from harness.campaigns.summary import summarize
from harness.pages.tables_page import html
from tests.harness.campaigns.journals import ended

ROWS = ("split vote", "leader fenced", "never seen")
HOSTILE = "<img src=x onerror=alert(1)>"


def reaching(
    cell: str, count: int, *turns: str, kinds: tuple[str, ...] = ("kill",), **more: object
) -> list[Ended]:
    return [
        ended(cell, seed, rare_turns=turns, kinds_in_effect=kinds, observed=kinds, **more)
        for seed in range(count)
    ]


def night(day: int, *runs: list[Ended], rows: tuple[str, ...] = ROWS) -> Journal:
    begun = f"2026-11-{day:02}T02:17:00+00:00"
    head = Head(name="nightly", digest="d", begun=begun, tasks=(), rare_turns=rows)
    return Journal(Path(f"night-{day}"), head, [run for cell in runs for run in cell])


def test_what_no_run_reached_is_named() -> None:
    """If it failed, a night that never saw an election would look as good as one that saw hundreds."""
    found = covered(
        night(
            22,
            reaching("a", 2, "leader fenced", "split vote", not_observed=("holds",)),
            reaching("b", 1, "leader fenced", kinds=("pause",), not_observed=("kill", "clock")),
            [ended("old", 1), ended("broken", 2, "broken")],
        )
    )
    assert found.kinds is not None and found.rare_turns is not None
    assert found.rare_turns.to_json() == {
        "runs": 3,
        "reached": {"split vote": 2, "leader fenced": 3},
        "never": ["never seen"],
    }
    assert list(found.rare_turns.counts) == ["split vote", "leader fenced"]  # in the order of the table
    assert found.kinds.to_json() == {
        "runs": 3,
        "reached": {"kill": 2, "pause": 1},
        "never": ["clock", "holds"],
    }


def test_a_scene_that_one_run_reached_is_not_missing() -> None:
    """If it failed, directed faults would be missing on every night: they take effect under names of their own."""
    reached = ended("a", 1, kinds_in_effect=("kill at a moment",), observed=("moments",))
    lacks = ended("b", 1, kinds_in_effect=(), not_observed=("moments",))
    found = covered(night(22, [reached, lacks]))
    assert found.kinds is not None and found.kinds.never == ()
    alone = covered(night(22, [lacks]))
    assert alone.kinds is not None and alone.kinds.never == ("moments",)


def test_a_night_that_does_not_say_claims_nothing() -> None:
    """If it failed, the journal of an older version would say that its runs reached no state at all."""
    found = covered(night(22, [ended("a")]))
    assert found == coverage.Covered(None, None)
    assert "do not say" in html_of(found)
    assert found.to_json() == {"kinds": None, "rare_turns": None}


def html_of(found: coverage.Covered) -> str:
    from harness.pages.tables_page import section_html

    return str(section_html(coverage.section(found)))


def test_the_states_are_on_the_page_in_the_json_and_in_the_markdown() -> None:
    """If it failed, only a program that reads the journal could tell what a night covered."""
    book = night(22, reaching("a", 2, "split vote", kinds=(HOSTILE,)))
    found = summarize(book, KnownList((), datetime.date(2026, 11, 22)), [])
    assert found.to_json()["covered"]["rare_turns"]["never"] == ["leader fenced", "never seen"]
    shown = page(found, Path("x"), Path(), None, trend([book], 14))
    told = markdown(found)
    for text in (shown, told):
        assert "split vote (2)" in text.replace("\\", "")
        assert "leader fenced; never seen" in text
        assert HOSTILE not in text
    assert "| rare turns that never came about | leader fenced; never seen |" in told


@pytest.mark.parametrize(
    ("before", "after", "change", "code"),
    [(12, 12, "lost", 3), (1, 12, "not reached", 0), (12, 0, "not tried", 3)],
)
def test_a_rare_turn_of_yesterday_that_is_missing_today_is_told(
    before: int, after: int, change: str, code: int
) -> None:
    """If it failed, a change that switches elections off would pass, or every night would be a false alarm."""
    yesterday = night(
        22, reaching("a", before, "split vote", "leader fenced"), reaching("b", 2, "leader fenced")
    )
    today = night(23, reaching("a", after, "leader fenced", "new"), reaching("b", 2, "leader fenced"))
    found = compare(yesterday, today)
    assert found.turns is not None
    turns = {turn.name: turn for turn in found.turns}
    assert turns["split vote"].change == change
    assert (turns["split vote"].before, turns["split vote"].after) == (Count(before, before), Count(0, after))
    assert turns["leader fenced"].change == ""
    assert found.exit_code == code
    assert ("no longer reached: split vote" in found.sentence) == (change == "lost")
    shown, told = (
        html(compared.page(found, [], str)),
        "\n".join(line for line, _ in compared.lines(found, [])),
    )
    assert f">{change}</" in shown and "split vote" in shown
    assert ("split vote" in told) == (change != "not tried")
    assert found.to_json()["rare_turns"]["split vote"]["change"] == change


def test_a_rare_turn_that_is_new_is_told_and_harms_nothing() -> None:
    """If it failed, a night that covers more would be worse than one that covers less."""
    found = compare(night(22, reaching("a", 3)), night(23, reaching("a", 3, "split vote")))
    assert found.turns is not None
    assert [(turn.name, turn.change, turn.chance) for turn in found.turns] == [
        ("split vote", "added", Fraction(1))
    ]
    assert found.exit_code == 0


def test_two_nights_of_which_one_does_not_say_are_not_compared() -> None:
    """If it failed, the first night after an upgrade would lack every rare turn, or have found them all."""
    found = compare(night(22, [ended("a")]), night(23, reaching("a", 3, "split vote")))
    assert found.turns is None and found.to_json()["rare_turns"] is None
    assert "does not say which rare turns" in html(compared.page(found, [], str))


def test_the_journal_keeps_what_a_verdict_says(tmp_path: Path) -> None:
    """If it failed, the states would be in each run's verdict, and in no night."""
    evidence = {
        "kinds_in_effect": ["kill"],
        "observed": ["kill"],
        "not_observed": ["clock"],
        "rare_turns": {"split vote": 2, "leader fenced": 0},
    }
    told = fields_of_verdict(
        {"outcome": "valid", "sentence": "fine", "evidence": evidence}, tmp_path / "r", tmp_path
    )
    book = create(tmp_path, "nightly", "d", [], ROWS)
    run = Ended(cell="a", seed=1, at="now", seconds=1.0, exit_code=0, **told)
    book.note(run)
    book.close()
    again = load(book.folder)
    assert again is not None and again.ended == [run] and again.head.rare_turns == ROWS
    assert run.rare_turns == ("split vote",) and run.not_observed == ("clock",)
    older = msgspec.json.decode(
        msgspec.json.encode({**msgspec.to_builtins(run), "rare_turns": None}), type=Ended
    )
    assert older.rare_turns is None
