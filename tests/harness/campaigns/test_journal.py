"""What a campaign keeps on disk, and what is left of it after a kill."""

from __future__ import annotations

import resource
from datetime import datetime, tzinfo
from pathlib import Path

import pytest

from harness.campaigns import journal
from harness.campaigns.journal import Journal, Task, ToJudge
from harness.errors import StoreError, WrongUse
from harness.run.finish import Failure
from tests.harness.campaigns.journals import ended

TASKS = (Task("a", 1), Task("b", 1), Task("c", 1))


def begun(results: Path) -> Journal:
    book = journal.create(results, "nightly", "digest", TASKS)
    book.begin(TASKS[0])
    book.note(ended("a"))
    book.spend(10.0)
    book.begin(TASKS[1])
    return book


def test_a_killed_campaign_goes_on_where_it_was(tmp_path: Path) -> None:
    """If it failed, a resumed night would do again what was done, or leave out what was under way."""
    book = begun(tmp_path)
    with (book.folder / journal.RUNS).open("ab") as file:
        file.write(b'{"event":"ended","cell":"b","se')
    book.close()  # the kernel does that for a killed process
    again = journal.unfinished(tmp_path, "nightly", "digest")
    assert again is not None
    assert [task.cell for task in again.left()] == ["b", "c"]
    assert (again.interrupted, again.spent_s, again.ended) == ([TASKS[1]], 10.0, [ended("a")])
    again.note(ended("b"))
    again.close()
    last = journal.load(book.folder)
    assert last is not None
    assert [each.cell for each in last.ended] == ["a", "b"]


def test_what_was_recorded_is_judged_and_not_run_again(tmp_path: Path) -> None:
    """If it failed, a resumed night would run again what only lacked its verdict, or forget why it failed."""
    book = begun(tmp_path)
    fields = {"at": "2026-11-21T03:00:00+00:00", "seconds": 2.5, "run": "nightly/b-1"}
    run = ToJudge(cell="b", seed=1, failure=Failure("ClusterError", "no node came up"), **fields)
    book.note(run)
    assert [task.cell for task in book.to_run()] == ["c"]
    book.close()
    again = journal.load(book.folder)
    assert again is not None
    assert (again.to_judge, again.interrupted) == ([run], [])
    assert ([task.cell for task in again.to_run()], [task.cell for task in again.left()]) == (
        ["c"],
        ["b", "c"],
    )
    again.note(ended("b"))
    last = journal.load(book.folder)
    assert last is not None
    assert (again.to_judge, last.to_judge) == ([], [])


@pytest.mark.parametrize("why", ["ended", "other plan", "other seed", "at work"])
def test_only_an_unfinished_campaign_of_this_plan_that_nobody_works_on_is_gone_on_with(
    tmp_path: Path, why: str
) -> None:
    """If it failed, two campaigns would write one journal, or one would go on with another's matrix."""
    book = begun(tmp_path)
    if why == "ended":
        book.write(journal.SUMMARY, b"{}")
    if why != "at work":
        book.close()
    digest, first_seed = "other" if why == "other plan" else "digest", 2 if why == "other seed" else 1
    assert journal.unfinished(tmp_path, "nightly", digest, first_seed) is None
    book.close()


def test_campaigns_that_begin_in_one_second_have_folders_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, they would disturb each other, or the newest one would not be the last."""

    class Still(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Still:
            return cls(2026, 1, 31, tzinfo=tz)

    monkeypatch.setattr(journal, "datetime", Still)
    books = [begun(tmp_path) for _ in range(11)]
    assert journal.folders(tmp_path, "nightly") == [book.folder for book in books]
    for book in books:
        book.close()


def test_a_new_campaign_is_nobody_elses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, two harnesses that begin at once would work on one campaign, and each run would be done twice."""
    write, found = Journal.write, []

    def written(book: Journal, name: str, data: bytes) -> None:
        write(book, name, data)
        found.append(journal.unfinished(tmp_path, "nightly", "digest"))

    monkeypatch.setattr(Journal, "write", written)
    journal.create(tmp_path, "nightly", "digest", TASKS).close()
    assert found == [None]
    again = journal.unfinished(tmp_path, "nightly", "digest")
    assert again is not None
    again.close()


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, what is noted after a full disk would stand behind half a line and be lost with it."""
    book = begun(tmp_path)
    before = (book.folder / journal.RUNS).read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(journal.os, "fsync", full)
        book.note(ended("b"))
    assert (book.folder / journal.RUNS).read_bytes() == before
    assert book.unwritten == 1
    book.note(ended("c"))
    book.close()
    again = journal.load(book.folder)
    assert again is not None
    assert [each.cell for each in again.ended] == ["a", "c"]


def test_a_disk_with_room_for_half_a_line_leaves_none_of_it(tmp_path: Path) -> None:
    """If it failed, the rest of a line that was taken back would stand in the journal as one of its own."""
    book = begun(tmp_path)
    path = book.folder / journal.RUNS
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 40, limits[1]))
    try:
        book.note(ended("b"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        book.close()
    assert (path.read_bytes(), book.unwritten) == (before, 1)


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    """If it failed, a wrong --results would end in a traceback."""
    (tmp_path / "_campaigns").write_text("a file")
    with pytest.raises(StoreError, match="try: --results"):
        begun(tmp_path)


def test_a_circle_of_links_is_no_campaign(tmp_path: Path) -> None:
    """If it failed, a damaged `latest` would end `--compare` in a traceback."""
    (tmp_path / "latest").symlink_to("latest")
    with pytest.raises(WrongUse, match="latest is no campaign"):
        journal.night_of(tmp_path, str(tmp_path / "latest"))


@pytest.mark.parametrize(
    "line",
    [
        b"[1]",
        b'{"event":"began"}',
        b'{"event":"ended","cell":"b"}',
        b'{"event":"spent","seconds":"long"}',
        b'{"event":"of a later version"}',
        b'{"event":"ended","cell":"b","seed":1,"outcome":"excellent","exit_code":0,"sentence":"","at":"","seconds":1}',
    ],
)
def test_a_line_that_cannot_be_read_is_skipped(tmp_path: Path, line: bytes) -> None:
    """One damaged line, or one of another version, would end every further night in a traceback."""
    book = begun(tmp_path)
    with (book.folder / journal.RUNS).open("ab") as file:
        file.write(line + b"\n")
    book.note(ended("c"))
    book.close()
    again = journal.load(book.folder)
    assert again is not None
    assert [run.cell for run in again.ended] == ["a", "c"]
    assert [task.cell for task in again.left()] == ["b"]


def test_a_night_with_a_damaged_run_is_not_compared(tmp_path: Path) -> None:
    """If it failed, a damaged line that was an anomaly would be "no anomaly on either night", exit 0."""
    book = begun(tmp_path)
    book.close()
    runs = book.folder / journal.RUNS
    runs.write_bytes(runs.read_bytes() + b'{"event":"a word of another version"}\n{"event":"beg')
    assert journal.night_of(tmp_path, str(book.folder)).interrupted == book.interrupted
    runs.write_bytes(runs.read_bytes().replace(b'"event"', b'"event\x00"', 1))
    with pytest.raises(
        StoreError, match="expected a run of the campaign in each line, got something else in line 1"
    ):
        journal.night_of(tmp_path, str(book.folder))


@pytest.mark.parametrize(
    ("now", "then"), [(b'"version":1', b'"version":9'), (b'"qsync-campaign"', b'"another"')]
)
def test_a_campaign_of_another_version_is_not_gone_on_with(tmp_path: Path, now: bytes, then: bytes) -> None:
    """If it failed, runs would be written to a journal that means something else."""
    book = begun(tmp_path)
    book.close()
    head = book.folder / journal.HEAD
    head.write_bytes(head.read_bytes().replace(now, then))
    assert then in head.read_bytes()
    assert journal.load(book.folder) is None
    assert journal.unfinished(tmp_path, "nightly", "digest") is None


def test_an_old_word_for_inconclusive_is_read(tmp_path: Path) -> None:
    """Runs of campaigns of older versions would be forgotten."""
    book = begun(tmp_path)
    book.note(ended("b", outcome="inconclusive"))
    book.close()
    file = book.folder / journal.RUNS
    file.write_bytes(file.read_bytes().replace(b'"inconclusive"', b'"not-evidence"'))
    again = journal.load(book.folder)
    assert again is not None
    assert [run.outcome for run in again.ended] == ["valid", "inconclusive"]


def test_the_time_of_a_killed_part_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A campaign that is killed every hour would never reach the end of its budget."""
    times = iter(f"2026-11-21T03:{minute:02}:00+00:00" for minute in range(60))
    monkeypatch.setattr(journal, "now", lambda: next(times))
    book = journal.create(tmp_path, "nightly", "digest", TASKS)
    for task in TASKS[:2]:
        book.begin(task)
        book.note(ended(task.cell, at=journal.now()))
    book.close()  # killed: nothing notes what it has spent
    for _ in range(2):
        again = journal.unfinished(tmp_path, "nightly", "digest")
        assert again is not None
        assert again.spent_s == 180.0
        again.close()
