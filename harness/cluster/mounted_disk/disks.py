"""The harness's end of mounted disks: one process for each node of a run, and what faults ask of it.

Started before the nodes, ended after them. The process at the other end of the pipes is the disk: if it ends
by itself the run is inconclusive, because its node lost all files at once.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import starmap
from pathlib import Path
from typing import Any, Final, Literal

from harness.cluster import damaged_files
from harness.cluster.damaged_files import NodeDisk
from harness.cluster.empty_disk import forget_data
from harness.cluster.mounted_disk import mounts
from harness.cluster.mounted_disk.undo import WRITTEN_BACK_AFTER_NS
from harness.cluster.node_book import all_over
from harness.cluster.ownership import RunId
from harness.cluster.place import ROOT
from harness.errors import ClusterError
from harness.faults.fault import Damage

Mounted = Literal["", "journal", "strict"]
"""Whether disks are mounted under the nodes, and what makes names last there: any sync, or that of their folder."""
_READY_WITHIN_S: Final = 20.0
_PATIENCE_S: Final = 20.0
_ENDS_WITHIN_S: Final = 5.0


class MountedDisk:
    """Implements `harness.faults.hands.Storage`. `folder` is the node's, over which the disk is mounted."""

    def __init__(self, node: str, folder: Path, process: asyncio.subprocess.Process) -> None:
        self._node = node
        self._folder = folder
        self._process = process
        self._turn = asyncio.Lock()
        self._unread = 0
        """How many of its lines are still to be read: a late answer is not that of the next question."""

    @classmethod
    async def start(cls, node: str, folder: Path, errors: Path, words: Iterable[str]) -> MountedDisk:
        """Mount a disk, or raise ClusterError. `words`: the arguments of its process after the folder."""
        with errors.open("ab") as file:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "harness.cluster.mounted_disk.server"),
                *(str(folder), *words),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=file,
                cwd=ROOT,
                start_new_session=True,  # the terminal's Ctrl-C is not for it
            )
        disk = cls(node, folder, process)
        try:
            answer = await disk._answer(_READY_WITHIN_S)
            if "ready" not in answer:
                raise ClusterError(f"the disk under {node}: {answer.get('error', answer)}")
        except BaseException:
            await disk.stop()
            raise
        return disk

    async def stop(self) -> bool:
        """Unmount, and end the process; False if it had ended by itself."""
        was_there = self._process.returncode is None
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), _ENDS_WITHIN_S)
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        if any(point == str(self._folder) for point, _ in mounts.ours()):
            with suppress(OSError):
                mounts.unmount(str(self._folder))
        return was_there

    async def _ask(self, do: str, **given: object) -> dict[str, Any]:
        async with self._turn:
            assert self._process.stdin is not None
            try:
                self._process.stdin.write(json.dumps({"do": do, **given}).encode() + b"\n")
                await self._process.stdin.drain()
            except (BrokenPipeError, ConnectionResetError) as error:
                raise ClusterError(
                    f"the disk under {self._node} was gone before the command {do!r}"
                ) from error
            answer = await self._answer(_PATIENCE_S)
        if "error" in answer:
            raise ClusterError(
                f"the disk under {self._node} could not do the command {do!r}: {answer['error']}"
            )
        return answer

    async def _answer(self, patience_s: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        self._unread += 1
        try:
            while self._unread:
                line = await asyncio.wait_for(self._process.stdout.readline(), patience_s)
                self._unread -= 1
        except TimeoutError:
            raise ClusterError(f"the disk under {self._node} does not answer") from None
        if not line:
            raise ClusterError(f"the disk under {self._node} ended")
        return dict(json.loads(line))

    # For faults

    async def order(self, orders: Mapping[str, Any]) -> None:
        await self._ask("order", orders=dict(orders))

    async def effects(self) -> dict[str, Any]:
        return await self._ask("affected")

    async def power_fails(self) -> None:
        await self._ask("freeze")

    async def lose_unsynced(self, seed: str) -> int:
        """ClusterError if the node never wrote to it: then it is not the disk under the node."""
        answer = await self._ask("lose", seed=seed)
        if not answer["writes"]:
            raise ClusterError(f"{self._node} has not written to the disk that is mounted for it")
        return int(answer["bytes"])

    async def save(self) -> None:
        await asyncio.to_thread(damaged_files.save, NodeDisk(self._folder))

    async def damage(self, what: Damage, logs: Sequence[str], seed: str) -> int:
        disk = NodeDisk(self._folder)
        size = await asyncio.to_thread(damaged_files.damage, disk, what, logs, random.Random(seed))
        await self._ask("settle")
        return size

    async def restore(self) -> None:
        await asyncio.to_thread(damaged_files.restore, NodeDisk(self._folder))
        await self._ask("settle")

    async def forget(self) -> None:
        await asyncio.to_thread(forget_data, self._folder)
        await self._ask("settle")


class MountedDisks:
    """The disks of all nodes of a run. `errors`: the file that gets the stderr of their processes."""

    def __init__(
        self,
        folders: Mapping[str, Path],
        errors: Path,
        how: Mounted,
        written_back_after_ns: int = WRITTEN_BACK_AFTER_NS,
    ) -> None:
        self._folders = {node: folder.resolve() for node, folder in folders.items()}
        self._errors = errors
        self._words = (how, str(written_back_after_ns))
        self._disks: dict[str, MountedDisk] = {}

    async def start(self) -> None:
        """Raises ClusterError."""
        if reason := mounts.why_not():
            raise ClusterError(f"a disk under a node cannot be made here: {reason}")
        run = RunId.new().text

        async def begin(node: str, folder: Path) -> None:
            words = (mounts.source(run, node), *self._words)
            self._disks[node] = await MountedDisk.start(node, folder, self._errors, words)

        await all_over(starmap(begin, self._folders.items()))

    def __getitem__(self, node: str) -> MountedDisk:
        return self._disks[node]

    async def stop(self) -> None:
        """Stop all disks; safe at any time. ClusterError if one had ended by itself."""
        disks, self._disks = self._disks, {}
        were_there = await asyncio.gather(*(disk.stop() for disk in disks.values()))
        if self._errors.exists() and not self._errors.stat().st_size:
            self._errors.unlink()
        gone = [node for node, was in zip(disks, were_there, strict=True) if not was]
        if gone:
            raise ClusterError(
                f"the disk under {', '.join(gone)} ended in the middle of the run: see {self._errors}"
            )


async def mounted(
    how: Mounted,
    folder: Path,
    nodes: Iterable[str],
    written_back_after_ns: int = WRITTEN_BACK_AFTER_NS,
) -> MountedDisks | None:
    """Disks under the nodes of a run, unless `how` is ""; mounts of dead runs are removed. Raises ClusterError."""
    await asyncio.to_thread(mounts.remove_leftovers)
    if not how:
        return None
    folders = {node: folder / "nodes" / node for node in nodes}
    for node_folder in folders.values():
        node_folder.mkdir(parents=True, exist_ok=True)
    disks = MountedDisks(folders, folder / "disks.txt", how, written_back_after_ns)
    try:
        await disks.start()
    except BaseException:
        await disks.stop()
        raise
    return disks
