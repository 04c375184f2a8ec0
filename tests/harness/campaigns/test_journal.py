"""What a campaign keeps on disk, and what is left of it after a kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.campaigns import journal
from harness.campaigns.journal import Journal, Task, ToJudge
from harness.errors import StoreError
from harness.run.finish import Failure
from tests.harness.campaigns.journals import ended

TASKS = (Task("a", 1), Task("b", 1), Task("c", 1))


def begun(results: Path) -> Journal:
    book = journal.create(results, "nightly", "digest", TASKS)
    book.begin(TASKS[0])
    book.end(ended("a"))
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
    again.end(ended("b"))
    again.close()
    last = journal.load(book.folder)
    assert last is not None
    assert [each.cell for each in last.ended] == ["a", "b"]


def test_what_was_recorded_is_judged_and_not_run_again(tmp_path: Path) -> None:
    """If it failed, a resumed night would run again what only lacked its verdict, or forget why it failed."""
    book = begun(tmp_path)
    fields = {"at": "2026-11-21T03:00:00+00:00", "seconds": 2.5, "run": "nightly/b-1"}
    run = ToJudge(cell="b", seed=1, failure=Failure("ClusterError", "no node came up"), **fields)
    book.keep(run)
    assert [task.cell for task in book.to_run()] == ["c"]
    book.close()
    again = journal.load(book.folder)
    assert again is not None
    assert (again.to_judge, again.interrupted) == ([run], [])
    assert ([task.cell for task in again.to_run()], [task.cell for task in again.left()]) == (
        ["c"],
        ["b", "c"],
    )
    again.end(ended("b"))
    last = journal.load(book.folder)
    assert last is not None
    assert (again.to_judge, last.to_judge) == ([], [])


@pytest.mark.parametrize("why", ["ended", "other plan", "at work"])
def test_only_an_unfinished_campaign_of_this_plan_that_nobody_works_on_is_gone_on_with(
    tmp_path: Path, why: str
) -> None:
    """If it failed, two campaigns would write one journal, or one would go on with another's matrix."""
    book = begun(tmp_path)
    if why == "ended":
        book.write(journal.SUMMARY, b"{}")
    if why != "at work":
        book.close()
    found = journal.unfinished(tmp_path, "nightly", "other" if why == "other plan" else "digest")
    assert found is None
    book.close()


def test_two_campaigns_that_begin_in_one_second_have_folders_of_their_own(tmp_path: Path) -> None:
    """If it failed, they would disturb each other."""
    first, second = begun(tmp_path), begun(tmp_path)
    assert first.folder != second.folder
    assert journal.folders(tmp_path, "nightly") == sorted([first.folder, second.folder])
    first.close()
    second.close()


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, what is noted after a full disk would stand behind half a line and be lost with it."""
    book = begun(tmp_path)
    before = (book.folder / journal.RUNS).read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(journal.os, "fsync", full)
        book.end(ended("b"))
    assert (book.folder / journal.RUNS).read_bytes() == before
    assert book.unwritten == 1
    book.end(ended("c"))
    book.close()
    again = journal.load(book.folder)
    assert again is not None
    assert [each.cell for each in again.ended] == ["a", "c"]


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    """If it failed, a wrong --results would end in a traceback."""
    (tmp_path / "_campaigns").write_text("a file")
    with pytest.raises(StoreError, match="try: --results"):
        begun(tmp_path)
