"""A disk that is told what goes wrong: what it does, what it says of it, and what the files hold afterwards."""

from __future__ import annotations

import json
import os
import queue
import threading
from pathlib import Path
from typing import Any

import pytest

from nodes.host.disk import Disk, Outcome
from nodes.host.files import Committed
from nodes.host.medium import AFFECTED, ORDERS, SYNCED, FaultyMedium, Medium
from nodes.kernel.effects import REMOVED, Persist
from nodes.kernel.outbox import Durability

WAIT_S = 10


class Bench:
    """A disk over a medium in a folder."""

    def __init__(self, folder: Path, durability: Durability = "synced") -> None:
        self.folder = folder
        self.medium = FaultyMedium(str(folder / "faults"))
        self.outcomes: queue.Queue[Outcome] = queue.Queue()
        self.disk = Disk(str(folder), durability, self.outcomes.put, medium=self.medium)
        self._token = 0

    def order(self, **orders: Any) -> None:
        fresh = self.folder / "faults" / "fresh"
        fresh.write_text(json.dumps(orders))
        fresh.replace(self.folder / "faults" / ORDERS)
        self.medium.look()

    def write(self, name: str, data: bytes) -> Outcome:
        self._token += 1
        self.disk.commit([Persist(self._token, name, data, "row")])
        return self.outcomes.get(timeout=WAIT_S)

    def felt(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "faults" / AFFECTED).read_text()))

    def synced(self, name: str) -> int | None:
        lines = (self.folder / "faults" / SYNCED).read_text().splitlines()
        told = {int(inode): int(length) for inode, length in map(str.split, lines)}
        return told.get((self.folder / name).stat().st_ino)


@pytest.mark.parametrize("orders", [{"write_error": "ENOSPC"}, {"sync_error": "EIO"}, {"write_error": "EIO"}])
def test_a_broken_disk_fails_and_goes_on_where_it_was(tmp_path: Path, orders: dict[str, str]) -> None:
    """Broken, half a record would stay in the log behind a failed write, or a mended disk would not be used."""
    bench = Bench(tmp_path)
    assert isinstance(bench.write("log", b"good "), Committed)
    bench.order(id=7, **orders)
    for _ in range(2):
        failed = bench.write("log", b"lost in parts ")
        assert isinstance(failed, Committed)
        assert failed.tokens == ()
        assert next(iter(orders.values())) in str(failed.error)
    assert bench.felt() == {"id": 7, "delayed": 0, "failed": bench.felt()["failed"]}
    assert bench.felt()["failed"] > 0
    bench.order(id=-1)
    assert bench.felt()["id"] == -1
    assert bench.write("log", b"better").error is None  # type: ignore[union-attr]  # it is Committed
    bench.disk.close()
    assert (tmp_path / "log").read_bytes() == b"good better"
    assert bench.synced("log") == len("good better")


def test_a_slow_disk_is_slow_and_says_how_often(tmp_path: Path) -> None:
    """Broken, a fault that nobody felt would count as one that took effect."""
    bench = Bench(tmp_path)
    bench.order(id=2, sync_delay_ns=1_000_000)
    assert bench.felt()["delayed"] == 0
    bench.write("log", b"slow")
    bench.disk.close()
    assert bench.felt()["delayed"] >= 1
    assert (tmp_path / "log").read_bytes() == b"slow"


def test_every_call_that_was_affected_is_told(tmp_path: Path) -> None:
    """Broken, the last calls of a quick series would be missing from a run's record of its faults."""
    bench = Bench(tmp_path)
    bench.order(id=7, write_error="ENOSPC")
    for _ in range(9):
        bench.write("log", b"x")
    bench.medium.look()
    assert bench.felt() == {"id": 7, "delayed": 0, "failed": 9}
    bench.disk.close()


def test_only_what_was_synced_is_noted(tmp_path: Path) -> None:
    """Broken, a power loss would take nothing from a node that acknowledges before its fsync."""
    bench = Bench(tmp_path, "written")
    bench.write("log", b"written")
    assert bench.synced("log") == 0
    bench.disk.close()
    assert bench.synced("log") == len("written")


def test_nothing_of_an_emptied_file_is_synced(tmp_path: Path) -> None:
    """Broken, a power loss would take nothing from a new file that has the inode of a removed or replaced one."""
    medium = FaultyMedium(str(tmp_path / "faults"))
    file = medium.open(medium.open_folder(str(tmp_path)), "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    medium.write(file, b"synced")
    medium.sync(file)
    medium.cut(file, 0)
    medium.write(file, b"new")
    inode = os.fstat(file).st_ino
    assert (tmp_path / "faults" / SYNCED).read_text().splitlines()[-1] == f"{inode} 0"


def test_nonsense_changes_nothing(tmp_path: Path) -> None:
    """Broken, a file that is half there would end the node."""
    bench = Bench(tmp_path)
    for text in (
        *("", "[]", "[" * 100_000, '{"id": "x"}', '{"write_error": "EBURNT"}', "null"),
        *('{"write_error": "errorcode"}', '{"sync_delay_ns": -1}', f'{{"sync_delay_ns": {10**30}}}'),
    ):
        (tmp_path / "faults" / ORDERS).write_text(text)
        bench.medium.look()
    assert bench.write("log", b"as ever") == Committed((1,))
    bench.disk.close()


def test_that_all_is_well_is_told_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken, a call that was just failing would tell of the old orders after the new ones were told: nobody would
    hear that the disk is well again, and a fault that was healed would count as one that was not."""
    bench = Bench(tmp_path)
    bench.order(id=7, write_error="ENOSPC")
    is_telling, may_tell = threading.Event(), threading.Event()
    dumps = json.dumps

    def slowly(told: dict[str, Any]) -> str:
        if told["id"] == 7:
            is_telling.set()
            may_tell.wait(WAIT_S)
        return dumps(told)

    monkeypatch.setattr(json, "dumps", slowly)
    bench.disk.commit([Persist(1, "log", b"x", "row")])
    assert is_telling.wait(WAIT_S)
    (tmp_path / "faults" / ORDERS).write_text('{"id": -1}')
    loop = threading.Thread(target=bench.medium.look)
    loop.start()
    loop.join(0.1)  # it may wait for the other, or be through
    may_tell.set()
    loop.join(WAIT_S)
    bench.outcomes.get(timeout=WAIT_S)
    bench.disk.close()
    assert bench.felt()["id"] == -1


def test_what_could_not_be_told_is_told_later(tmp_path: Path) -> None:
    """Broken, one failure to write the file would hide for good that the orders were seen."""
    bench = Bench(tmp_path)
    in_the_way = tmp_path / "faults" / f"{AFFECTED}.new"
    in_the_way.mkdir()
    bench.order(id=3, sync_error="EIO")
    assert not (tmp_path / "faults" / AFFECTED).exists()
    in_the_way.rmdir()
    bench.medium.look()
    assert bench.felt()["id"] == 3
    bench.disk.close()


def test_the_calls_reach_the_operating_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken, a node acknowledges what no disk has been asked to keep: no kill shows it, only a loss of power."""
    calls: list[tuple[str, int]] = []
    call = "fdatasync" if hasattr(os, "fdatasync") else "fsync"
    monkeypatch.setattr(os, "fsync", lambda file: calls.append(("fsync", file)))
    monkeypatch.setattr(os, call, lambda file: calls.append((call, file)))
    for medium in (Medium(), FaultyMedium(str(tmp_path / "faults"))):
        folder = medium.open_folder(str(tmp_path))
        file = medium.open(folder, "old", os.O_CREAT | os.O_RDWR)
        medium.sync(file)
        medium.sync_folder(folder)
        assert calls == [(call, file), ("fsync", folder)]
        calls.clear()
        medium.rename(folder, "old", "new")
        for _ in range(2):  # the second in place of the first
            medium.keep_aside(folder, "new")
        assert (tmp_path / REMOVED / "new").samefile(tmp_path / "new") and not (tmp_path / "old").exists()
        medium.remove(folder, "new")
        assert not (tmp_path / "new").exists()
        for each in (file, folder):
            medium.close(each)
            with pytest.raises(OSError, match="Bad file descriptor"):
                os.fstat(each)


def test_orders_that_are_there_at_the_start_are_obeyed_at_once(tmp_path: Path) -> None:
    """Broken, a node that starts again on a full disk writes to it until its loop looks for orders."""
    Bench(tmp_path).order(id=7, write_error="ENOSPC")
    failed = Bench(tmp_path).write("log", b"lost in parts ")
    assert isinstance(failed, Committed) and "ENOSPC" in str(failed.error)


def test_a_full_disk_takes_half_and_then_refuses(tmp_path: Path) -> None:
    """Broken, no node would ever be tried with half a record, which a real full disk leaves."""
    bench = Bench(tmp_path)
    bench.order(id=7, write_error="ENOSPC")
    with (tmp_path / "log").open("wb") as file:
        for whole in (b"0123456789", b"ab"):
            assert bench.medium.write(file.fileno(), whole) == len(whole) // 2
            with pytest.raises(OSError, match="No space left"):
                bench.medium.write(file.fileno(), whole)
        with pytest.raises(OSError, match="No space left"):
            bench.medium.write(file.fileno(), b"x")
        assert bench.medium.write(file.fileno(), b"bc") == 1
        bench.order(id=-1)
        assert bench.medium.write(file.fileno(), b"c") == 1
        bench.order(id=8, write_error="ENOSPC")
        assert bench.medium.write(file.fileno(), b"de") == 1, "the next full disk takes half, too"
    assert (tmp_path / "log").read_bytes() == b"01234abcd"


def test_orders_that_did_not_change_go_on_counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken, a fault that delayed a hundred syncs would be said to have met the last ones alone, or none."""
    slept: list[float] = []
    monkeypatch.setattr("nodes.host.medium.time.sleep", slept.append)
    bench = Bench(tmp_path)
    bench.order(id=7, sync_delay_ns=20_000_000)
    with (tmp_path / "log").open("wb") as file:
        for _ in range(3):
            bench.medium.sync(file.fileno())
            bench.medium.look()
    assert slept == [0.02] * 3 and bench.medium._delayed == 3
    bench.order(id=8)
    assert bench.felt() == {"id": 8, "delayed": 0, "failed": 0}
