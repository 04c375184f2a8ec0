"""Counts, groups, exit codes, and the documents for others."""

from __future__ import annotations

import datetime
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as Xml

import msgspec
import pytest

from harness.campaigns import journal
from harness.campaigns.documents import junit, markdown, page
from harness.campaigns.journal import OUTCOMES, CheckResult, Ended, Head, Journal, Task, ToJudge
from harness.campaigns.judging import consistent, fields_of_verdict, judged
from harness.campaigns.known import Known, KnownList
from harness.campaigns.summary import LeftOut, Summary, summarize
from harness.judge.checks import NOT_PROMISED
from tests.harness.campaigns.journals import ended

DAY = datetime.date(2026, 11, 21)
KNOWN = KnownList(
    (
        Known(fingerprints=["k1", "k2"], issue="https://issues/1", expires=DAY),
        Known(fingerprints=["old"], issue="https://issues/2", expires=datetime.date(2026, 1, 1)),
    ),
    DAY,
)


def summary(*runs: Ended, left: int = 0, earlier: list[list[Ended]] | None = None) -> Summary:
    tasks = [Task(run.cell, run.seed) for run in runs] + [Task("left", seed) for seed in range(left)]
    head = Head(name="nightly", digest="", begun="2026-11-21T03:00:00+00:00", tasks=tuple(tasks))
    return summarize(Journal(Path("campaign"), head, list(runs)), KNOWN, earlier or [])


@pytest.mark.parametrize(
    ("runs", "code"),
    [
        ([ended("a")], 0),
        ([ended("a"), ended("b", 1, "anomaly", "k1", "k2")], 0),
        ([ended("a"), ended("b", 1, "anomaly", "old")], 1),
        ([ended("b", 1, "anomaly", "k1", "x"), ended("c", 1, "broken")], 1),
        ([ended("b", 1, "anomaly")], 1),
        ([ended("a", 1, "anomaly", "k1"), ended("b", 1, "unknown")], 2),
        ([ended("a", 1, "unknown"), ended("b", 1, "inconclusive")], 3),
        ([ended("a", 1, "inconclusive"), ended("b", 1, "broken")], 70),
        ([], 3),
    ],
)
def test_the_exit_code_is_the_gravest_that_is_not_known(runs: list[Ended], code: int) -> None:
    """If it failed, a night would be green with nothing behind it, or red for what was accepted."""
    assert summary(*runs).exit_code == code


def test_what_nobody_can_see_and_what_never_runs_is_not_green() -> None:
    """If it failed, a night would be green though its runs reached nobody, or a cell was never tried."""
    green = summary(ended("a"))
    assert green.exit_code == 0
    assert replace(green, unpublished="no server answers").exit_code == 3
    out = replace(green, left_out=(LeftOut("qsync docker", "no Docker daemon answers"),))
    assert out.exit_code == 3
    assert "1 cell left out, of which nothing can be said: no Docker daemon answers" in out.sentence
    (case,) = Xml.fromstring(junit(out)).findall(".//testcase[error]")
    assert (case.get("classname"), case.get("name")) == ("qsync docker", "left out")
    for text in (markdown(out), page(out, Path("campaign"), Path())):
        assert "qsync docker" in text and "no Docker daemon answers" in text
    assert out.to_json()["left_out"] == [{"cell": "qsync docker", "why": "no Docker daemon answers"}]
    never = replace(summary(ended("a"), left=1), too_long=("left",))
    assert never.exit_code == 3
    assert "longer than the whole budget: left" in never.sentence
    (case,) = Xml.fromstring(junit(never)).findall(".//testcase[error]")
    assert (case.get("classname"), Xml.fromstring(junit(never)).get("errors")) == ("left", "1")
    assert replace(green, is_interrupted=True).exit_code == 130
    strange = msgspec.structs.replace(ended("a"), outcome="excellent")
    assert summary(ended("b"), strange).exit_code == 70


def test_a_harness_that_breaks_does_not_look_like_an_anomaly() -> None:
    """If it failed, the page of a night would call a defect of the harness one of the store."""
    badge = re.compile('id="badge">([A-Z]+)<')
    badges = {
        outcome: badge.findall(page(summary(ended("a", 1, outcome)), Path("campaign"), Path()))
        for outcome in OUTCOMES
    }
    assert badges == {outcome: [outcome.upper()] for outcome in OUTCOMES}


def test_a_recorded_run_that_cannot_be_judged_says_why_alone(tmp_path: Path) -> None:
    """A run that is judged later would say that its verdict contradicts itself, and it has none."""
    run = ToJudge(cell="a", seed=1, at="", seconds=1.0, run="nightly/a-1")
    told = judged(tmp_path, run)
    assert (told.outcome, told.exit_code) == ("broken", 64)
    assert told.sentence.startswith("cannot read the plan")


def test_the_folder_of_a_run_that_cannot_be_judged_need_not_be_utf8(tmp_path: Path) -> None:
    """A night in such a folder would end in a traceback, and again each time that it went on."""
    results = tmp_path / "\udcff"
    book = journal.create(results, "nightly", "digest", [Task("a", 1)])
    told = judged(results, ToJudge(cell="a", seed=1, at="", seconds=1.0, run="nightly/a-1"))
    book.note(told)
    book.close()
    again = journal.load(book.folder)
    assert again is not None and again.ended == [told]
    assert told.sentence.startswith("cannot read the plan") and r"/\udcff/nightly" in told.sentence


@pytest.mark.parametrize(
    ("outcome", "code", "believed_as"),
    [
        ("valid", 0, "valid"),
        ("valid", -11, "broken"),
        ("valid", 70, "broken"),
        ("valid", 130, "inconclusive"),
        ("unknown", 2, "unknown"),
        ("unknown", 0, "broken"),
        ("anomaly", 70, "anomaly"),
    ],
)
def test_whoever_says_valid_and_breaks_is_not_believed(outcome: str, code: int, believed_as: str) -> None:
    """If it failed, a run that crashed behind its verdict would be green, or hide the anomaly that it found."""
    told = {"outcome": outcome, "sentence": "all is well", "run": "x/y", "fingerprints": (), "shapes": ()}
    found = consistent(told, code)
    assert (found["outcome"], found["run"]) == (believed_as, "x/y")
    assert (f"it ended with {code}" in found["sentence"]) == (believed_as != outcome)


def test_runs_are_grouped_by_what_leads_and_joined_with_earlier_sightings() -> None:
    """If it failed, one cause would look like twenty, or a new one like an old acquaintance."""
    found = summary(
        ended("a", 1, "anomaly", "x", "y"),
        ended("b", 1, "anomaly", "x", "z"),
        ended("c", 1, "anomaly", "k1"),
        ended("d"),
        earlier=[[ended("a", 9, "anomaly", "x", at="2026-11-01"), ended("b", 9, at="2026-11-02")]],
    )
    new, known = found.groups
    assert (new.fingerprint, new.cells, new.seen_with, new.standing) == ("x", ("a", "b"), ("y", "z"), "new")
    assert (new.earlier.runs, new.earlier.first, known.earlier.runs) == (1, "2026-11-01", 0)
    assert (known.standing, known.issue) == ("known", "https://issues/1")


EVERY = (
    ended("a"),
    ended("b", 1, "anomaly", "x", sentence="read <nothing> | at \x00 n1"),
    ended("c", 1, "anomaly", "k1"),
    ended("d", 1, "inconclusive"),
    ended("e", 1, "unknown"),
    ended("f", 1, "broken", run=""),
)


def test_junit_calls_only_a_valid_run_passed() -> None:
    """If it failed, a CI would show a run that is no evidence as passed, or could not read the file."""
    suites = Xml.fromstring(junit(summary(*EVERY, left=2)))
    (suite,) = suites
    kinds = {case.get("classname"): [child.tag for child in case] for case in suite}
    assert kinds == {
        "a": [],
        "b": ["failure"],
        "c": ["skipped"],
        "d": ["error"],
        "e": ["error"],
        "f": ["error"],
        "left": ["skipped"],
    }
    numbers = {name: suites.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert numbers == {"tests": "8", "failures": "1", "errors": "3", "skipped": "3"}
    (failure,) = suite.iter("failure")
    assert (failure.get("type"), failure.get("message")) == ("x", "read <nothing> | at \ufffd n1")


def test_markdown_shows_groups_cells_and_what_is_no_evidence() -> None:
    """If it failed, the page of a CI would leave out what a person must see, or be torn by a value."""
    text = markdown(summary(*EVERY, ended("g|h"), left=1))
    assert "| new | `x` | shape of x | 1 | b | never |  |" in text
    assert "| known | `k1` | shape of k1 | 1 | c | never | https://issues/1 (until 2026-11-21) |" in text
    assert "| g\\|h | 1 |" in text
    assert "d, seed 1: it is inconclusive" in text
    assert "| left |  |  |  |  |  | 1 |" in text


def test_markup_does_nothing_in_any_document(tmp_path: Path) -> None:
    """If it failed, a value of a store or a name in a plan could run a script on the page of a CI."""
    evil = "<img src=x onerror=alert(1)>"
    found = CheckResult(checker=evil, standing="violation", summary=evil, documented=evil)
    runs = (ended(evil, 1, "anomaly", "x", found=(found,)), ended(evil, 2, "inconclusive"))
    every = summary(*(msgspec.structs.replace(run, sentence=evil, shapes=(evil,)) for run in runs), left=1)
    named = replace(every, name=evil, notes=(evil,))
    text = markdown(named)
    assert text.count("\\<img") > 5
    assert "<img" not in text.replace("\\<img", "")
    assert "<img" not in page(named, tmp_path / "_campaigns" / "nightly" / "now", tmp_path)
    assert b"<img" not in junit(named)
    Xml.fromstring(junit(named))


STALE = CheckResult(
    checker="staleness", standing="finding", summary="n1 was stale", documented="“gone for good”"
)
CRASH = CheckResult(checker="crash", standing="violation", summary="n2 ended by signal 6")


def test_what_checks_found_is_counted_over_all_runs(tmp_path: Path) -> None:
    """If it failed, what a store allows itself could be seen only by who opens every run that is called valid."""
    other = msgspec.structs.replace(STALE, summary="n3 was stale")
    runs = (ended("a", found=(STALE,)), ended("b", 1, "anomaly", "x", found=(CRASH, other)), ended("c"))
    found = summary(*runs)
    assert [(kind.found, len(kind.runs)) for kind in found.kinds] == [(CRASH, 1), (STALE, 2)]
    assert [each["runs"] for each in found.to_json()["found"]] == [
        ["nightly/b-1"],
        ["nightly/a-1", "nightly/b-1"],
    ]
    assert "| finding | staleness | 2 of 3 | n1 was stale | “gone for good” |" in markdown(found)
    html = page(found, tmp_path / "_campaigns" / "nightly" / "now", tmp_path)
    assert "n2 ended by signal 6" in html and "“gone for good”" in html and "2 of 3" in html


def test_of_a_verdict_the_first_of_each_kind_is_noted(tmp_path: Path) -> None:
    """If it failed, a campaign would tell of fewer kinds than its runs found, or count one run twice."""
    verdict = {
        "outcome": "anomaly",
        "sentence": "",
        "checks": [{"checker": "crash", "result": "valid", "summary": "n2 ended", "witnesses": []}],
        "violations": ["crash"],
        "findings": [
            {"checker": "staleness", "summary": f"{NOT_PROMISED}n1 was stale"},
            {"checker": "staleness", "summary": "n3 was stale"},
        ],
        "documented": {"staleness": "“gone for good”"},
    }
    told = fields_of_verdict(verdict, tmp_path, tmp_path)
    assert told["found"] == (msgspec.structs.replace(CRASH, summary="n2 ended"), STALE)


def test_the_index_page_escapes_what_runs_say(tmp_path: Path) -> None:
    """If it failed, a node's answer could bring markup into the page of a campaign."""
    (tmp_path / "nightly" / "a-1").mkdir(parents=True)
    (tmp_path / "nightly" / "a-1" / "report.html").touch()
    html = page(summary(*EVERY, left=1), tmp_path / "_campaigns" / "nightly" / "now", tmp_path)
    assert "&lt;nothing&gt;" in html and "<nothing>" not in html
    assert 'href="../../../nightly/a-1/report.html"' in html
    assert "b-1/report.html" not in html
