"""Limits of nodes on this machine, as faults ask for them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.cluster.limits.group import Group

if TYPE_CHECKING:  # hosts have no msgspec
    from harness.faults.hands import Ballast

PRESS_BYTES: Final = 64 << 20
"""The size of the file that is read again and again: many times the spare memory."""
_PROGRAM: Final = Path(__file__).with_name("ballast.py")
_INSIDE_WITHIN_S: Final = 10.0
_LOOK_AGAIN_S: Final = 0.005
_LIKELIEST: Final = "1000"


class LimitsHere:
    """`group` finds the group of a node that runs, `scratch` a folder on a disk of the machine, no mounted one."""

    def __init__(self, group: Callable[[str], Awaitable[Group]], scratch: Callable[[str], Path]) -> None:
        self._group = group
        self._scratch = scratch
        self._before: dict[str, Mapping[str, str]] = {}
        self._ballast: dict[str, asyncio.subprocess.Process] = {}
        self._scores: dict[str, dict[Path, str]] = {}
        """The values of oom_score_adj of the processes of a node's group."""

    async def counts(self, node: str) -> dict[str, int]:
        return (await self._group(node)).counts()

    async def limit_cpu(self, node: str, percent: int) -> None:
        (await self._remembered(node)).limit_cpu(percent)

    async def limit_memory(self, node: str, spare_bytes: int) -> None:
        group = await self._remembered(node)
        await asyncio.to_thread(lambda: group.limit_memory(group.needed_bytes() + spare_bytes))

    async def press(self, node: str, ballast: Ballast) -> None:
        group = await self._group(node)
        if ballast == "fill":
            self._choose(node, group)
        size = group.needed_bytes() + PRESS_BYTES
        process = self._ballast[node] = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", str(_PROGRAM), ballast, str(group.memory)),
            *(str(size), str(self._scratch(node))),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        await self._until_inside(group, process)

    def _choose(self, node: str, group: Group) -> None:
        """Make the present processes of the group the likeliest to be ended."""
        for pid in group.pids():
            score = Path(f"/proc/{pid}/oom_score_adj")
            with suppress(OSError):
                self._scores.setdefault(node, {})[score] = score.read_text()
                score.write_text(_LIKELIEST)

    async def _until_inside(self, group: Group, process: asyncio.subprocess.Process) -> None:
        async with asyncio.timeout(_INSIDE_WITHIN_S):
            while process.returncode is None:
                with suppress(OSError):
                    if process.pid in group.pids():
                        return
                await asyncio.sleep(_LOOK_AGAIN_S)

    async def release(self, node: str) -> None:
        process = self._ballast.pop(node, None)
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        for score, text in self._scores.pop(node, {}).items():
            with suppress(OSError):  # it was ended
                score.write_text(text)

    async def stop(self) -> None:
        """End all second processes: one in the group of a container would keep that from being removed."""
        for node in list(self._ballast):
            await self.release(node)

    async def lift(self, node: str) -> bool:
        if node not in self._before:
            return True
        group = await self._group(node)
        is_lifted = await asyncio.to_thread(group.restore, self._before[node])
        if is_lifted:
            del self._before[node]
        return is_lifted

    async def _remembered(self, node: str) -> Group:
        group = await self._group(node)
        self._before.setdefault(node, group.limits())
        return group
