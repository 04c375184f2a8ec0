"""Group commit, and what is left on disk when the disk fails."""

from __future__ import annotations

import errno
import os
import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nodes.host.disk import Disk, Outcome, SyncedTooLate
from nodes.host.files import Committed, Files
from nodes.host.medium import Medium, sync_data
from nodes.kernel.effects import Persist
from nodes.kernel.outbox import Durability
from tests.nodes.host.hosts import StartHost

DiskOn = Callable[..., tuple[Disk, "queue.Queue[Outcome]"]]


class FailingSync:
    """fdatasync that fails when it is told to, and counts."""

    def __init__(self) -> None:
        self.fails_left = 0
        self.calls = 0

    def __call__(self, file: int) -> None:
        self.calls += 1
        if self.fails_left:
            self.fails_left -= 1
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync_data(file)


@pytest.fixture
def disk_on(tmp_path: Path) -> Iterator[DiskOn]:
    disks: list[Disk] = []

    def make(
        durability: Durability = "synced", sync: Callable[[int], None] = sync_data
    ) -> tuple[Disk, queue.Queue[Outcome]]:
        outcomes: queue.Queue[Outcome] = queue.Queue()
        disk = Disk(str(tmp_path), durability, outcomes.put, Medium(sync))
        disks.append(disk)
        return disk, outcomes

    yield make
    for disk in disks:
        disk.close()


def records(*pairs: tuple[str, str]) -> list[Persist]:
    return [Persist(token, file, text.encode(), "row") for token, (file, text) in enumerate(pairs, 1)]


def test_a_group_is_one_sync(disk_on: DiskOn, tmp_path: Path) -> None:
    """Broken, a hundred waiting records would cost a hundred syncs."""
    sync = FailingSync()
    disk, outcomes = disk_on(sync=sync)
    disk.commit(records(*[("a", f"{number} ") for number in range(100)]))
    assert outcomes.get() == Committed(tuple(range(1, 101)))
    assert (tmp_path / "a").read_text() == "".join(f"{number} " for number in range(100))
    assert sync.calls == 1


def test_a_failed_sync_leaves_the_file_as_it_was(disk_on: DiskOn, tmp_path: Path) -> None:
    """Broken, a record that the node was told is lost would come back at the next start."""
    sync = FailingSync()
    disk, outcomes = disk_on(sync=sync)
    disk.commit(records(("a", "good ")))
    assert outcomes.get() == Committed((1,))
    sync.fails_left = 1
    disk.commit(records(("a", "bad ")))
    assert outcomes.get() == Committed((), "a: Input/output error (EIO)")
    assert (tmp_path / "a").read_text() == "good "
    disk.commit(records(("a", "better ")))
    assert outcomes.get() == Committed((1,))
    assert (tmp_path / "a").read_text() == "good better "


def test_nothing_is_written_behind_a_torn_end(disk_on: DiskOn, tmp_path: Path) -> None:
    """Broken, good records would lie behind garbage, where recovery does not look."""
    sync = FailingSync()
    disk, outcomes = disk_on(sync=sync)
    sync.fails_left = 3  # the record, the cut, and the cut again before the next record
    disk.commit(records(("a", "bad ")))
    disk.commit(records(("a", "refused ")))
    disk.commit(records(("a", "good ")))
    assert [outcomes.get().error is None for _ in range(3)] == [False, False, True]
    assert (tmp_path / "a").read_text() == "good "


def test_files_of_a_group_reach_the_disk_in_order(disk_on: DiskOn, tmp_path: Path) -> None:
    """Broken, a record could survive a crash that an older one in another file did not."""
    sync = FailingSync()
    disk, outcomes = disk_on(sync=sync)
    disk.commit(records(("a", "1 "), ("b", "2 "), ("a", "3 ")))
    assert outcomes.get() == Committed((1, 2, 3))
    sync.fails_left = 1
    disk.commit(records(("b", "4 "), ("a", "5 ")))
    assert outcomes.get() == Committed((), "b: Input/output error (EIO)")
    assert [(tmp_path / name).read_text() for name in "ab"] == ["1 3 ", "2 "]


def test_written_does_not_wait_for_the_sync(disk_on: DiskOn) -> None:
    """Broken, the seeded bug ack-before-fsync would not be one; or its sync would never come."""
    may_sync = threading.Event()
    synced = threading.Event()

    def slow(file: int) -> None:
        assert may_sync.wait(20)
        sync_data(file)
        synced.set()

    disk, outcomes = disk_on("written", slow)
    disk.commit(records(("a", "1 ")))
    assert outcomes.get(timeout=20) == Committed((1,))
    assert not synced.is_set()
    may_sync.set()
    assert synced.wait(20)


def test_written_tells_of_a_late_failure(disk_on: DiskOn) -> None:
    """Broken, a lost record of the bug's would leave no trace in the log."""
    sync = FailingSync()
    sync.fails_left = 1
    disk, outcomes = disk_on("written", sync)
    disk.commit(records(("a", "1 ")))
    assert outcomes.get(timeout=20) == Committed((1,))
    assert outcomes.get(timeout=20) == SyncedTooLate("a: Input/output error (EIO)")


@pytest.mark.parametrize("durability", ["synced", "written"])
def test_a_full_disk_fails_what_waits_and_harms_nothing_else(start_host: StartHost, durability: str) -> None:
    """Broken, a full disk would end the node, hang its clients, or leave half a record behind."""
    no_file_over_10_to_20_kb = ("sh", "-c", 'ulimit -f 20; PYTHONDONTWRITEBYTECODE=1 exec "$@"', "sh")
    process = start_host("--durability", durability, through=no_file_over_10_to_20_kb)
    client = process.client()
    small, large = "x" * 3_000, "y" * 30_000
    assert client.ask(f"store {small}") == f"stored {small}"
    client.tell(f"store {large}", f"store {large}", "echo next")
    assert {client.line(), client.line()} == {"next", f"lost {large}"}
    assert client.line() == f"lost {large}"
    assert (process.data / "journal.txt").read_text() == small + "\n"
    assert client.ask(f"store {small}") == f"stored {small}"
    assert client.ask("hear") == "2"
    failed = next(line for line in process.log() if line["message"] == "write failed")
    assert failed["error"] == "journal.txt: File too large (EFBIG)"


def test_answers_wait_for_the_records_before_them(start_host: StartHost) -> None:
    """Broken, a reply would pass the record that it depends on."""
    process = start_host()
    client = process.client()
    client.tell(*(line for number in range(500) for line in (f"store {number}", f"echo {number}")))
    expected = [line for number in range(500) for line in (f"stored {number}", str(number))]
    assert [client.line() for _ in range(1000)] == expected
    assert client.ask("hear") == "500"


def test_a_removed_log_is_kept_aside(disk_on: DiskOn, tmp_path: Path) -> None:
    """Broken, an audit of a long run would not see the rows that its nodes have dropped."""
    disk, outcomes = disk_on()
    disk.commit(records(("1.xlog", "old"), ("2.xlog", "new")))
    outcomes.get()
    disk.remove("1.xlog")
    disk.commit(records(("1.xlog", "again")))
    outcomes.get()
    disk.remove("1.xlog")
    disk.commit(records(("2.xlog", "")))
    outcomes.get()
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["2.xlog", "removed"]
    assert (tmp_path / "removed" / "1.xlog").read_text() == "again"


def test_a_removed_log_that_was_not_synced_is_gone(disk_on: DiskOn, tmp_path: Path) -> None:
    """Broken, an audit would count on rows that a loss of power may have taken."""
    disk, outcomes = disk_on("written")
    disk.commit(records(("1.xlog", "old"), ("2.xlog", "new")))
    outcomes.get()
    disk.remove("1.xlog")
    disk.commit(records(("2.xlog", "")))
    outcomes.get()
    assert not (tmp_path / "removed").exists()


class Recording(Medium):
    """Notes the calls that put something on the disk."""

    def __init__(self) -> None:
        super().__init__(lambda file: self.calls.append("sync"))
        self.calls: list[str] = []

    def sync_folder(self, folder: int) -> None:
        self.calls.append("sync folder")

    def rename(self, folder: int, old: str, new: str) -> None:
        self.calls.append("rename")
        super().rename(folder, old, new)


def test_a_whole_file_is_on_disk_before_its_name_and_its_name_before_it_is_reported(tmp_path: Path) -> None:
    """Broken, a power loss leaves a snapshot that is there in part, or none that was reported."""
    medium = Recording()
    files = Files(str(tmp_path), "synced", medium)
    assert files.commit([Persist(1, "a", b"all", "snapshot", is_whole=True)]) == Committed((1,))
    assert medium.calls == ["sync", "rename", "sync folder"]
    files.close()


def test_the_name_of_a_log_is_synced_with_its_first_record(tmp_path: Path) -> None:
    """Broken, a power loss takes away a whole log, of which each record was reported."""
    medium = Recording()
    files = Files(str(tmp_path), "synced", medium)
    files.commit(records(("a", "one")))
    files.commit(records(("a", "two")))
    assert medium.calls == ["sync", "sync folder", "sync"]
    files.close()


def test_a_cut_that_could_not_be_synced_is_made_again(disk_on: DiskOn, tmp_path: Path) -> None:
    """Broken, a power loss brings back records that were reported as failed, in front of later ones."""
    sync = FailingSync()
    disk, outcomes = disk_on(sync=sync)
    sync.fails_left = 2
    disk.commit(records(("a", "lost")))
    assert outcomes.get().error is not None
    disk.commit(records(("a", "kept")))
    assert outcomes.get() == Committed((1,))
    assert sync.calls == 4
    assert (tmp_path / "a").read_text() == "kept"
