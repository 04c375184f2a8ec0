"""The page of a campaign against the page that the campaign stored: both have one colour."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as Xml

import msgspec
import pytest

from harness.campaigns import documents
from harness.campaigns.journal import SUMMARY, Ended, Head, Journal, Task
from harness.campaigns.known import Known, KnownList
from harness.campaigns.summary import LeftOut, Summary, stored, summarize
from harness.serve.campaign_sheets import campaign, under_way
from tests.harness.campaigns.journals import ended

DAY = datetime.date(2026, 11, 21)
KNOWN = KnownList((Known(fingerprints=["k"], issue="https://issues/1", expires=DAY),), DAY)


def _book(folder: Path, runs: list[Ended], left: int = 0) -> Journal:
    tasks = [Task(run.cell, run.seed) for run in runs] + [Task("left", seed) for seed in range(left)]
    return Journal(folder, Head(name="n", digest="", begun="2026-11-21T03:00:00", tasks=tuple(tasks)), runs)


def _same(summary: Summary) -> Summary:
    return summary


@pytest.mark.parametrize(
    ("runs", "left", "change", "colour"),
    [
        ([ended("a")], 0, _same, "valid"),
        ([ended("a")], 2, _same, "valid"),
        ([ended("a")], 0, lambda one: replace(one, left_out=(LeftOut("b", "no Docker"),)), "inconclusive"),
        ([ended("a")], 0, lambda one: replace(one, unpublished="no server answers"), "inconclusive"),
        ([ended("a", 1, "unknown"), ended("a", 2, "inconclusive")], 0, _same, "inconclusive"),
        ([ended("a", 1, "unknown")], 0, _same, "unknown"),
        ([ended("a", 1, "anomaly", "k")], 0, _same, "valid"),
        ([ended("a", 1, "anomaly", "x")], 0, _same, "anomaly"),
        ([ended("a", 1, "broken")], 0, _same, "anomaly"),
        ([], 2, _same, "inconclusive"),
    ],
)
def test_a_campaign_has_the_colour_of_its_exit_code(
    tmp_path: Path, runs: list[Ended], left: int, change: Callable[[Summary], Summary], colour: str
) -> None:
    """If it failed, a night of which a part never ran would be green in the browser and exit 3 in the terminal."""
    book = _book(tmp_path, runs, left)
    summary = change(summarize(book, KNOWN, []))
    stored = documents.page(summary, tmp_path, tmp_path)
    (tmp_path / SUMMARY).write_bytes(msgspec.json.encode(summary.to_json()))
    sheet = campaign(book, [book], has_page=False)
    assert [sheet.tone] == re.findall(r'class="verdict ([a-z]+)"', stored) == [colour]
    assert sheet.sentence == summary.sentence
    marks = {"✅": "valid", "❌": "anomaly", "❔": "unknown", "⚪": "inconclusive", "💥": "anomaly"}
    assert marks[documents.markdown(summary)[3]] == colour
    suites = Xml.fromstring(documents.junit(summary))
    wrong = [case for case in suites.iter("testcase") if {each.tag for each in case} & {"error", "failure"}]
    assert len(wrong) == int(suites.attrib["errors"]) + int(suites.attrib["failures"])
    assert (not wrong) == (summary.exit_code == 0)
    assert int(suites.attrib["tests"]) == len([*suites.iter("testcase")])


@pytest.mark.parametrize("data", [None, b"", b"{}", b"\xff"])
def test_without_a_summary_only_an_anomaly_has_a_colour(tmp_path: Path, data: bytes | None) -> None:
    """If it failed, a campaign that was killed before its end would be green, or over."""
    if data is not None:
        (tmp_path / SUMMARY).write_bytes(data)
    for runs, colour in (([ended("a")], "list"), ([ended("a", 1, "anomaly", "k")], "anomaly")):
        book = _book(tmp_path, runs, left=1)
        assert campaign(book, [book], has_page=False).tone == colour


def test_a_campaign_that_was_killed_before_its_summary_is_not_over(tmp_path: Path) -> None:
    """If it failed, nobody would continue a campaign whose runs all ended, and whose summary, upload and exit code are
    still missing."""
    book = _book(tmp_path, [ended("a")])
    sheet = campaign(book, [book], has_page=False)
    assert (sheet.sentence, sheet.refreshes_ms) == ("under way or interrupted: 1 of 1", 2000)
    assert under_way([], [book]).sentence == "0 runs and 1 campaign without an end"


@pytest.mark.parametrize("code", [130, -1, 1000])
def test_a_summary_with_an_odd_exit_code_is_none(tmp_path: Path, code: int) -> None:
    """If it failed, the page of a campaign would be a traceback for a summary.json that another version wrote."""
    (tmp_path / SUMMARY).write_text(f'{{"exit_code": {code}, "sentence": "done"}}')
    assert stored(tmp_path) is None
