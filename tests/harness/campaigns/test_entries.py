"""Entries for known.toml: printed, pasted, known."""

from __future__ import annotations

import datetime
import tomllib
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from harness.campaigns import known
from harness.campaigns.documents import page
from harness.campaigns.entries import ACCEPTED_FOR, entries
from harness.campaigns.journal import Ended, Head, Journal, Task
from harness.campaigns.known import KnownList
from harness.campaigns.summary import Summary, summarize
from tests.harness.campaigns.journals import ended

DAY = datetime.date(2026, 11, 23)
ODD = "read <img src=x onerror=alert(1)> \"at\" \\ \x7f\x00\nn1 # '''"


def night(runs: list[Ended], accepted: KnownList) -> Summary:
    tasks = tuple(Task(run.cell, run.seed) for run in runs)
    head = Head(name="nightly", digest="", begun="2026-11-23T03:00:00+00:00", tasks=tasks)
    return summarize(Journal(Path("campaign"), head, runs), accepted, [])


def pasted(text: str, folder: Path, day: datetime.date = DAY) -> KnownList:
    path = folder / "known.toml"
    path.write_text(text)
    return known.read(path, day)


prints = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4, unique=True)


@given(st.lists(prints, min_size=1, max_size=6), st.text(max_size=300))
def test_what_was_pasted_is_known(found: list[list[str]], shape: str) -> None:
    """If it failed, an accepted anomaly would show up as new the next morning."""
    runs = [
        ended("cell", seed, "anomaly", *fingerprints, shapes=(shape,) * len(fingerprints))
        for seed, fingerprints in enumerate(found)
    ]
    text = entries(night(runs, KnownList((), DAY)))
    listed = KnownList(
        tuple(known.Known(**each) for each in tomllib.loads(text)["known"]),
        DAY,
    )
    again = night(runs, listed)
    assert {group.standing for group in again.groups} == {"known"} and again.exit_code == 0
    assert entries(again) == ""


def test_an_entry_says_when_it_expires_and_then_fails_again(tmp_path: Path) -> None:
    """If it failed, an anomaly would be accepted for ever, or for a day less than is written."""
    runs = [ended("a", 1, "anomaly", "x", "y", shapes=(ODD, "s")), ended("b", 2, "anomaly", "x", "z")]
    text = entries(night(runs, KnownList((), DAY)))
    last = DAY + ACCEPTED_FOR
    assert text.count("[[known]]") == 1 and f"expires = {last}" in text and f"including {last}" in text
    assert tomllib.loads(text)["known"][0]["fingerprints"] == ["x", "y", "z"]
    assert night(runs, pasted(text, tmp_path, last)).exit_code == 0
    later = night(runs, pasted(text, tmp_path, last + datetime.timedelta(1)))
    assert [group.standing for group in later.groups] == ["expired"]
    renewed = pasted(text + entries(later), tmp_path, last + datetime.timedelta(1))
    assert night(runs, renewed).exit_code == 0


def test_an_anomaly_without_fingerprints_has_no_entry() -> None:
    """If it failed, an entry would accept every anomaly that cannot be told apart."""
    assert entries(night([ended("a", 1, "anomaly")], KnownList((), DAY))) == ""


def test_the_page_has_the_entries_as_text(tmp_path: Path) -> None:
    """If it failed, a shape with markup would act on the page, or a person would have to write the entry by hand."""
    text = page(night([ended("a", 1, "anomaly", "x", shapes=(ODD,))], KnownList((), DAY)), tmp_path, tmp_path)
    assert "[[known]]" in text and "fingerprints = [&#34;x&#34;]" in text
    assert "<img src=x" not in text


def test_the_note_of_an_entry_says_in_how_many_runs_and_cells() -> None:
    """If it failed, a person would accept an anomaly of many cells for one of a single run."""
    one, two = [ended("a", 1, "anomaly", "x")], [ended("b", 2, "anomaly", "x")]
    for runs, words in ((one, "in 1 run of a"), (one + two, "in 2 runs of a and 1 more cell")):
        assert f'note = "shape of x; {words}"' in entries(night(runs, KnownList((), DAY)))
