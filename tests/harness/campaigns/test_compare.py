"""Two nights made by hand, and what must be said of them."""

from __future__ import annotations

import itertools
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from harness.campaigns import compared
from harness.campaigns.chance import Count
from harness.campaigns.compare import FALSE_ALARM, compare, previous, trend
from harness.campaigns.journal import Ended, Head, Journal, Task
from harness.pages.tables_page import html
from tests.harness.campaigns.journals import ended


def night(day: int, *runs: Ended, left: int = 0) -> Journal:
    tasks = [Task(run.cell, run.seed) for run in runs] + [Task("left", seed) for seed in range(left)]
    begun = f"2026-11-{day:02}T02:17:00+00:00"
    head = Head(name="nightly", digest="d", begun=begun, tasks=tuple(tasks))
    return Journal(Path(f"night-{day}"), head, list(runs))


def many(cell: str, hits: int, runs: int, fingerprint: str, first: int = 0) -> list[Ended]:
    """`hits` anomalies among `runs` runs."""
    return [
        ended(cell, first + seed, "anomaly", fingerprint) if seed < hits else ended(cell, first + seed)
        for seed in range(runs)
    ]


def with_kinds(runs: list[Ended], *kinds: str) -> list[Ended]:
    return [msgspec.structs.replace(run, kinds_in_effect=kinds) for run in runs]


YESTERDAY = night(
    22,
    *many("always", 8, 8, "same"),
    *many("more", 1, 20, "grows"),
    *many("rarer", 9, 10, "shrinks"),
    *many("fixed", 8, 8, "fixed"),
    *many("chance", 1, 4, "rare"),
    *many("skipped", 2, 2, "away"),
    *with_kinds([ended("quiet", 1), ended("quiet", 2)], "kill", "pause"),
    ended("same-seed", 7),
)
TODAY = night(
    23,
    *many("always", 7, 8, "same", 100),
    *many("more", 12, 20, "grows", 100),
    *many("rarer", 1, 10, "shrinks", 100),
    *many("fixed", 0, 8, "fixed", 100),
    *many("chance", 0, 4, "rare", 100),
    ended("skipped", 100, "inconclusive"),
    *with_kinds([ended("quiet", 101), ended("quiet", 102, "anomaly", "fresh", "grows")], "kill"),
    ended("same-seed", 7, "unknown"),
    left=3,
)


def test_what_changed_between_two_nights_is_told() -> None:
    """If it failed, a new anomaly would look old, a fixed one open, or chance like a trend."""
    found = compare(YESTERDAY, TODAY)
    assert {each.fingerprint: each.change for each in found.anomalies} == {
        "fresh": "new",
        "grows": "more frequent",
        "same": "as frequent",
        "shrinks": "less frequent",
        "away": "not tried",
        "rare": "not seen",
        "fixed": "gone",
    }
    assert [each.fingerprint for each in found.anomalies][:2] == ["fresh", "grows"]
    by_name = {each.fingerprint: each for each in found.anomalies}
    assert (by_name["grows"].before, by_name["grows"].after) == (Count(1, 22), Count(13, 22))
    assert by_name["fresh"].was_tried
    assert by_name["rare"].chance > FALSE_ALARM > by_name["fixed"].chance
    assert found.exit_code == 1
    assert "1 new, 1 more frequent" in found.sentence


def test_runs_that_became_undecided_and_lost_coverage_are_told() -> None:
    """If it failed, a night that tests less would look as good as the one before."""
    found = compare(YESTERDAY, TODAY)
    assert [(each.cell, each.seed, each.before, each.after) for each in found.turned] == [
        ("same-seed", 7, "valid", "unknown")
    ]
    assert [(each.cell, each.words, each.is_worse) for each in found.undecided] == [
        ("skipped", "1 inconclusive", True),
        ("same-seed", "1 unknown", True),
    ]
    assert found.cells_lost == ("skipped", "same-seed") and found.cells_new == ()
    assert found.kinds == (("kill", Count(2, 2), Count(2, 2)), ("pause", Count(2, 2), Count(0, 2)))
    assert found.kinds_lost == ("pause",)
    only_less = compare(night(22, *with_kinds([ended("a")], "kill")), night(23, *with_kinds([ended("a")])))
    assert (only_less.exit_code, only_less.sentence.partition("; ")[2]) == (3, "no longer in effect: kill")


def test_a_night_is_as_the_same_night() -> None:
    """If it failed, a night without any change would cry."""
    found = compare(YESTERDAY, YESTERDAY)
    assert {each.change for each in found.anomalies} == {"as frequent"}
    assert (found.exit_code, found.turned, found.cells_lost, found.kinds_lost) == (0, (), (), ())


def test_nothing_in_common_is_no_green_light() -> None:
    """If it failed, two nights of different plans would be called equal."""
    assert compare(night(22, ended("a")), night(23, ended("b"))).exit_code == 3
    assert compare(night(22), night(23)).exit_code == 3
    one = compare(night(22, ended("a")), night(23, ended("b", 1, "anomaly", "x")))
    (new,) = one.anomalies
    assert (new.change, new.was_tried) == ("new", False)


@given(st.integers(0, 6), st.integers(0, 6))
def test_no_two_nights_of_six_runs_cry_more_often_than_the_bound(first: int, second: int) -> None:
    """If it failed, "more frequent" would be said by chance more often than once in fifty nights. The slow twin counts
    all ways in which the hits of both nights could have fallen.
    """
    found = compare(night(22, *many("a", first, 6, "x")), night(23, *many("a", second, 6, "x", 100)))
    changes = {each.change for each in found.anomalies}
    draws = list(itertools.combinations(range(12), first + second))
    so_much = sum(sum(place >= 6 for place in draw) >= second for draw in draws) / len(draws)
    assert ("more frequent" in changes) == (first > 0 and so_much <= FALSE_ALARM)


def test_the_previous_night_is_the_newest_before_with_runs() -> None:
    """If it failed, a night would be compared with itself, with a later one, or with one that ran nothing."""
    books = [night(20, ended("a")), night(21, ended("a")), night(22), night(24, ended("a"))]
    today = night(23, ended("a"))
    assert previous(today, [*books, today]) is books[1]
    assert previous(books[0], [*books, today]) is None
    assert [each.begun[8:10] for each in trend([today, *books], last=3)] == ["21", "23", "24"]


@pytest.mark.parametrize("fingerprints", [(), ("x",)])
def test_an_anomaly_without_a_fingerprint_counts(fingerprints: tuple[str, ...]) -> None:
    """If it failed, an anomaly whose history cannot be read would be left out."""
    found = compare(night(22, ended("a")), night(23, ended("a", 2, "anomaly", *fingerprints)))
    assert [each.change for each in found.anomalies] == ["new"] and found.exit_code == 1


def test_a_second_cause_that_is_new_is_told() -> None:
    """A new anomaly that shows only beside an older one would go through every night unnoticed."""
    before = night(22, *many("a", 4, 4, "old"))
    second = ended("a", 104, "anomaly", "old", "second")
    found = compare(before, night(23, *many("a", 4, 4, "old", 100), second))
    assert [(row.fingerprint, row.change, row.shape) for row in found.anomalies] == [
        ("second", "new", "shape of second"),
        ("old", "as frequent", "shape of old"),
    ]
    assert (found.exit_code, found.anomalies[0].run) == (1, second.run)
    assert compare(night(22, *before.ended, second), night(23, second)).exit_code == 0


def test_the_page_and_the_screen_say_the_same() -> None:
    """If it failed, a person at the terminal would miss what the page shows, or markup in a name would act."""
    odd = "<img src=x onerror=alert(1)>"
    today = night(23, *TODAY.ended, ended(odd, 1, "anomaly", odd, sentence=odd, shapes=(odd,)))
    found = compare(YESTERDAY, today)
    screen = "\n".join(line for line, _ in compared.lines(found, trend([YESTERDAY, today], 14)))
    text = html(compared.page(found, trend([YESTERDAY, today], 14), str))
    for each in found.anomalies:
        assert f"{each.change:<13} {each.fingerprint}" in screen
        assert escape(each.fingerprint) in text and escape(each.shape) in text
    assert "<img" not in text
    assert "WORSE" in text and "did not run before" in text and "did not run before" in screen
