"""Disks that are really mounted: what a program sees of them, what a power loss takes, what is left of them."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]  # it has no types
import pytest
from click.testing import CliRunner

from harness.cli.verbs.doctor import command
from harness.cluster.containers.cluster import ContainerCluster, ContainerSettings
from harness.cluster.local.cluster import LocalCluster, LocalSettings
from harness.cluster.mounted_disk import mounts
from harness.cluster.mounted_disk.disks import MountedDisk, MountedDisks, mounted
from harness.cluster.mounted_disk.volume import GRAVES
from harness.errors import ClusterError
from harness.systems.iproto_wire import IPROTO
from nodes.host.orders import Orders
from tests import needs
from tests.harness.processes import is_gone, wait_until

pytestmark = [pytest.mark.real, needs.mounted_disks]
ROOT = Path(__file__).parents[4]
SEEDS = range(12)
HOUR_NS = 3600 * 10**9
"""No test is so slow that what it did not sync is written back meanwhile."""


def play(
    folder: Path, story: Callable[[MountedDisk, Path], Awaitable[None]], *, strict: bool = False
) -> None:
    """With a disk under the folder of n1; afterwards nothing is mounted there."""

    async def played() -> None:
        disks = await mounted("strict" if strict else "journal", folder, ["n1"], HOUR_NS)
        assert disks is not None
        try:
            await story(disks["n1"], folder / "nodes" / "n1")
        finally:
            await disks.stop()

    asyncio.run(played())
    assert not [point for point, _ in mounts.ours() if point.startswith(str(folder))]
    assert not list(folder.glob(f"**/{GRAVES}"))


def write(path: Path, data: bytes, *, sync: bool = False, flags: int = os.O_APPEND) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o644)
    try:
        os.write(file, data)
        if sync:
            os.fsync(file)
    finally:
        os.close(file)


def sync_folder(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def test_a_program_sees_a_disk_like_any_other(tmp_path: Path) -> None:
    """If it failed, a store that is not ours would fail for reasons that are ours."""

    async def story(disk: MountedDisk, folder: Path) -> None:
        (folder / "deep" / "er").mkdir(parents=True)
        big = os.urandom(700_001)
        (folder / "deep" / "big").write_bytes(big)
        (folder / "deep" / "big").rename(folder / "big")
        assert (folder / "big").read_bytes() == big
        with (folder / "big").open("r+b") as file:
            file.seek(300_000)
            file.write(b"changed")
            file.truncate(400_000)
        assert (folder / "big").read_bytes() == big[:300_000] + b"changed" + big[300_007:400_000]
        os.link(folder / "big", folder / "same")
        (folder / "short").symlink_to("big")
        assert (folder / "same").stat().st_nlink == 2 and (folder / "short").stat().st_size == 400_000
        (folder / "big").chmod(0o600)
        os.utime(folder / "big", ns=(5, 7))
        assert (folder / "same").stat().st_mode & 0o777 == 0o600 and (folder / "same").stat().st_mtime_ns == 7
        assert sorted(path.name for path in folder.iterdir()) == ["big", "deep", "same", "short"]
        for number in range(300):
            (folder / "deep" / f"{number}").touch()
        assert len(list((folder / "deep").iterdir())) == 301
        for path in (folder / "deep").iterdir():
            path.rmdir() if path.is_dir() else path.unlink()
        (folder / "deep").rmdir()
        with pytest.raises(FileExistsError):
            (folder / "same").open("x")
        with pytest.raises(FileNotFoundError):
            (folder / "nothing").read_bytes()
        open_file = (folder / "same").open("rb")
        (folder / "same").unlink()
        assert open_file.read(3) == big[:3]
        open_file.close()
        assert os.statvfs(folder).f_bavail > 0

    play(tmp_path, story)
    assert sorted(path.name for path in (tmp_path / "nodes" / "n1").iterdir()) == ["big", "short"]


def test_a_disk_has_room_for_many_files(tmp_path: Path) -> None:
    """If it failed, a store with some hundred files would find no room for one more, and only on this disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def story(disk: MountedDisk, folder: Path) -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for number in range(400):
            (folder / f"{number}").write_bytes(b"x")

    few = len(list(Path("/proc/self/fd").iterdir())) + 64
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, hard))
    try:
        play(tmp_path, story)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_power_loss_keeps_what_was_synced_and_no_more_than_was_written(tmp_path: Path) -> None:
    """If it failed, a store that syncs would be accused, or one that does not would go free."""
    lost = 0

    async def story(disk: MountedDisk, folder: Path) -> None:
        nonlocal lost
        for seed in SEEDS:
            synced, loose = folder / f"{seed}.synced", folder / f"{seed}.loose"
            write(synced, b"s" * 300, sync=True)
            write(synced, b"t" * 900, flags=os.O_APPEND | os.O_DSYNC)
            write(synced, b"u" * 900)
            write(loose, b"v" * 900)
            await disk.power_fails()
            lost += await disk.lose_unsynced(str(seed))
            left = synced.read_bytes()
            assert left.startswith(b"s" * 300 + b"t" * 900)
            assert set(left[1200:]) <= {0, ord("u")} and len(left) <= 2100
            if loose.exists():
                assert set(loose.read_bytes()) <= {0, ord("v")}

    play(tmp_path, story)
    assert lost > 0


def test_files_that_were_removed_or_replaced_and_not_synced_can_come_back(tmp_path: Path) -> None:
    """If it failed, a store that renames without a sync would never be caught."""
    seen: set[tuple[str, ...]] = set()

    async def story(disk: MountedDisk, folder: Path) -> None:
        for seed in SEEDS:
            place = folder / f"{seed}"
            place.mkdir()
            (place / "old").write_bytes(b"old")
            (place / "gone").write_bytes(b"gone")
            write(place / "old", b"", sync=True)
            write(place / "gone", b"", sync=True)
            (place / "new").write_bytes(b"new")
            (place / "new").replace(place / "old")
            (place / "gone").unlink()
            await disk.power_fails()
            await disk.lose_unsynced(str(seed))
            seen.add(tuple(sorted(path.name for path in place.iterdir())))

    play(tmp_path, story)
    assert seen <= {("gone", "old"), ("gone", "new", "old"), ("old",)}, seen
    assert len(seen) > 1


@pytest.mark.parametrize("strict", [False, True])
def test_what_makes_a_name_last(tmp_path: Path, strict: bool) -> None:
    """If it failed, the missing sync of a folder would be held against stores that rely on a journal, or not seen."""
    kept = {"file": 0, "folder": 0}

    async def story(disk: MountedDisk, folder: Path) -> None:
        for seed in SEEDS:
            for what in kept:
                path = folder / f"{seed}.{what}"
                write(path, b"data", sync=True)
                if what == "folder":
                    sync_folder(folder)
                await disk.power_fails()
                await disk.lose_unsynced(f"{seed}")
                kept[what] += path.exists()

    play(tmp_path, story, strict=strict)
    assert kept["folder"] == len(SEEDS)
    assert (kept["file"] < len(SEEDS)) == strict


def test_calls_fail_as_they_were_told_to_and_say_so(tmp_path: Path) -> None:
    """If it failed, a full or broken disk would be reported as felt where nothing had failed, or not where it had."""

    async def story(disk: MountedDisk, folder: Path) -> None:
        path = folder / "1.xlog"
        write(path, b"before", sync=True)
        await disk.order({"id": 4, "sync_delay_ns": 0, "write_error": "ENOSPC", "sync_error": ""})
        assert await disk.effects() == {"id": 4, "delayed": 0, "failed": 0}
        with path.open("ab", buffering=0) as file:
            assert file.write(b"12345678") == 4, "a full disk takes what it still can"
            with pytest.raises(OSError, match="No space left") as raised:
                file.write(b"5678")
        assert raised.value.errno == errno.ENOSPC
        (folder / "log.jsonl").write_text("what people read is written all the same")
        assert (await disk.effects())["failed"] == 1
        await disk.order({"id": 5, "sync_delay_ns": 1_000_000, "write_error": "", "sync_error": "EIO"})
        with pytest.raises(OSError, match="Input/output") as raised:
            write(path, b"", sync=True)
        assert raised.value.errno == errno.EIO
        assert await disk.effects() == {"id": 5, "delayed": 1, "failed": 1}
        await disk.order({name: getattr(Orders(), name) for name in Orders.__slots__})
        write(path, b"after", sync=True)
        assert path.read_bytes() == b"before1234after"

    play(tmp_path, story)


def test_a_sync_that_takes_long_holds_up_nobody_else(tmp_path: Path) -> None:
    """If it failed, one slow sync would freeze every file of the node, and the harness that reads them."""

    async def story() -> None:
        disks = await mounted("journal", tmp_path, ["n1"])
        assert disks is not None
        folder = tmp_path / "nodes" / "n1"
        await disks["n1"].order({"id": 1, "sync_delay_ns": HOUR_NS, "write_error": "", "sync_error": ""})
        syncing = asyncio.create_task(asyncio.to_thread(write, folder / "a", b"a", sync=True))
        while not (folder / "a").exists():
            await asyncio.sleep(0.001)
        await asyncio.to_thread((folder / "b").write_bytes, b"b")
        assert await asyncio.to_thread((folder / "b").read_bytes) == b"b"
        assert not syncing.done()
        await disks.stop()
        with suppress(OSError):  # the disk was taken away from under it
            await syncing

    asyncio.run(story())


def test_nothing_befalls_what_the_harness_keeps_there(tmp_path: Path) -> None:
    """If it failed, a power loss would take away a node's configuration, or what people read of it."""

    async def story(disk: MountedDisk, folder: Path) -> None:
        for seed in SEEDS:
            write(folder / f"{seed}.xlog", b"row")
            (folder / "faults").mkdir(exist_ok=True)
            (folder / "faults" / f"{seed}").write_text("kept")
            for name in ("config.json", "members.json"):
                (folder / f"{name}.new").write_text(f"{seed}")
                (folder / f"{name}.new").replace(folder / name)
            await disk.save()
            await disk.power_fails()
            await disk.lose_unsynced(f"{seed}")
            for name in ("config.json", "members.json"):
                assert (folder / name).read_text() == f"{seed}"
            assert (folder / "faults" / f"{seed}").read_text() == "kept"
            assert (folder / "faults" / "saved" / f"{seed}.xlog").read_bytes() == b"row"
            await disk.restore()
            assert (folder / f"{seed}.xlog").read_bytes() == b"row"

    play(tmp_path, story)


def test_a_disk_to_which_the_node_did_not_write_is_told(tmp_path: Path) -> None:
    """If it failed, a node that writes elsewhere would be said to have survived a power loss."""

    async def story(disk: MountedDisk, folder: Path) -> None:
        (folder / "output.txt").write_text("of the harness")
        with pytest.raises(ClusterError, match="has not written to the disk"):
            await disk.lose_unsynced("1")

    play(tmp_path, story)


def test_a_disk_that_ends_by_itself_ends_the_run_as_no_evidence(tmp_path: Path) -> None:
    """If it failed, nodes that lost all files at once by our fault would be reported as crashed by their own."""

    async def story() -> None:
        disks = MountedDisks({"n1": tmp_path}, tmp_path.parent / "disks.txt", "journal")
        await disks.start()
        process = disks["n1"]._process
        process.kill()
        await process.wait()
        with pytest.raises(ClusterError, match="ended in the middle of the run"):
            await disks.stop()

    asyncio.run(story())
    assert not [point for point, _ in mounts.ours() if point == str(tmp_path)]


HARNESS = """
import asyncio, sys
from pathlib import Path
from typing import Any
from harness.cluster.mounted_disk.disks import mounted

async def main():
    disks = await mounted("journal", Path(sys.argv[1]), ["n1", "n2"])
    for node in ("n1", "n2"):
        print(disks[node]._process.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def harness(folder: Path) -> tuple[subprocess.Popen[str], list[int]]:
    """Another harness with two disks; it, and the processes of those."""
    process = subprocess.Popen(
        [sys.executable, "-c", HARNESS, str(folder)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, [int(process.stdout.readline()) for _ in range(2)]


def points(folder: Path) -> list[str]:
    return [point for point, _ in mounts.ours() if point.startswith(f"{folder}/")]


def test_nothing_stays_mounted_after_a_killed_harness(tmp_path: Path) -> None:
    """If it failed, every killed run would leave mounts, and files that nobody can read or remove."""
    process, _ = harness(tmp_path)
    assert len(points(tmp_path)) == 2
    process.kill()
    process.communicate()
    wait_until(lambda: not points(tmp_path))


def test_what_a_killed_disk_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    """If it failed, cleaning up would leave dead mounts for ever, or take the disk from under a run that goes on."""
    dead, alive = tmp_path / "dead", tmp_path / "alive"
    living, living_disks = harness(alive)
    dying, disks = harness(dead)
    try:
        for pid in disks:
            os.kill(pid, signal.SIGKILL)
        assert points(dead) and not [line for line in mounts.remove_leftovers() if str(dead) in line], (
            "its harness lives"
        )
        dying.kill()
        dying.communicate()
        wait_until(lambda: is_gone_by_pid(disks))
        mounts.remove_leftovers()  # unless another run, or test, has done so by now
        assert not points(dead) and len(points(alive)) == 2
        (alive / "nodes" / "n1" / "file").write_text("goes on")
    finally:
        living.kill()
        living.communicate()
        wait_until(lambda: not points(alive) and is_gone_by_pid(living_disks))


def is_gone_by_pid(pids: list[int]) -> bool:
    def over(pid: int) -> bool:
        with suppress(psutil.NoSuchProcess):
            return bool(is_gone(psutil.Process(pid)))
        return True

    return all(map(over, pids))


def test_clean_tells_of_mounts_where_no_docker_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, `qsync doctor --clean` would need Docker to remove a mount of a local run."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    monkeypatch.setattr(mounts, "remove_leftovers", lambda: ["disk mounted at /somewhere"])
    said = CliRunner().invoke(command, ["--clean"], standalone_mode=False)
    assert "removed  disk mounted at /somewhere" in said.output


def test_who_may_not_mount_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, people without rights would see a traceback, or a run that breaks in the middle."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "only root may mount" in mounts.why_not()
    monkeypatch.setattr(mounts, "DEVICE", "/dev/no-such-device")
    assert "there is no /dev/no-such-device" in mounts.why_not()


def test_what_presses_for_memory_reads_beside_the_mounted_disks(tmp_path: Path) -> None:
    """If it failed, `memory-limit` beside a mounted disk would take no effect: what is read through such a disk is read
    too slowly to fill anybody's memory."""
    given: dict[str, Any] = {"configs": {"n1": b"{}"}, "folder": tmp_path, "heartbeat_ns": 1, "epoch_ns": 0}
    clusters = (
        LocalCluster(LocalSettings(talk=IPROTO, command=lambda place: (), **given)),
        ContainerCluster(ContainerSettings(talk=IPROTO, command=lambda place: (), **given)),
    )
    for cluster in clusters:
        assert cluster._limits._scratch("n1") == tmp_path
        assert cluster._folder("n1") != tmp_path
