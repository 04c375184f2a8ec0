"""The disk under one node, as faults see it: takes orders, reports what it did, can be changed while the node is dead.

The changes to files are the same everywhere (`perform`): in the folder of a local node or of a container, or on a
remote host, where the supervisor carries them out (`harness.cluster.ssh.remote.supervisor`). Only the folder of that
one node is touched.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from harness.cluster import damaged_files
from harness.cluster.damaged_files import NodeDisk
from harness.cluster.empty_disk import forget_data
from nodes.host.medium import AFFECTED, ORDERS

if TYPE_CHECKING:  # hosts have no msgspec
    from harness.faults.fault import Damage

Answer = dict[str, Any]  # JSON's door
Word = Literal["order", "affected", "lose-unsynced", "save", "damage", "restore", "forget"]
WORDS: Final[tuple[Word, ...]] = get_args(Word)

Perform = Callable[[Word, Mapping[str, Any]], Awaitable[Answer]]


class FileStorage:
    """A disk with its files reached by `perform`, and a disk layer of ours in its node that reads orders."""

    def __init__(self, perform: Perform) -> None:
        self._perform = perform

    @classmethod
    def here(cls, folder: Path) -> FileStorage:
        async def done(word: Word, given: Mapping[str, Any]) -> Answer:
            return await asyncio.to_thread(perform, folder, word, given)

        return cls(done)

    async def order(self, orders: Mapping[str, Any]) -> None:
        await self._perform("order", {"orders": orders})

    async def effects(self) -> Answer:
        return await self._perform("affected", {})

    async def power_fails(self) -> None:
        """Nothing to prepare: the node itself recorded which bytes it synced."""

    async def lose_unsynced(self, seed: str) -> int:
        return int((await self._perform("lose-unsynced", {"seed": seed}))["bytes"])

    async def save(self) -> None:
        await self._perform("save", {})

    async def damage(self, what: Damage, logs: Sequence[str], seed: str) -> int:
        given = {"what": what, "logs": list(logs), "seed": seed}
        return int((await self._perform("damage", given))["bytes"])

    async def restore(self) -> None:
        await self._perform("restore", {})

    async def forget(self) -> None:
        await self._perform("forget", {})


def perform(folder: Path, word: Word, given: Mapping[str, Any]) -> Answer:
    """Carry out a word in the folder of one node. Raises ClusterError, or OSError."""
    disk = NodeDisk(folder)
    match word:
        case "order":
            _order(disk, given["orders"])
        case "affected":
            return _effects(disk)
        case "lose-unsynced":
            return {"bytes": damaged_files.lose_unsynced(disk, random.Random(given["seed"]))}
        case "save":
            damaged_files.save(disk)
        case "damage":
            chance = random.Random(given["seed"])
            return {"bytes": damaged_files.damage(disk, given["what"], given["logs"], chance)}
        case "restore":
            damaged_files.restore(disk)
        case "forget":
            forget_data(folder)
    return {}


def _order(disk: NodeDisk, orders: Mapping[str, Any]) -> None:
    """By renaming: a reader sees the old orders or the new."""
    disk.faults.mkdir(parents=True, exist_ok=True)
    fresh = disk.faults / f"{ORDERS}.new"
    fresh.write_text(json.dumps(orders))
    fresh.replace(disk.faults / ORDERS)


def _effects(disk: NodeDisk) -> Answer:
    try:
        return dict(json.loads((disk.faults / AFFECTED).read_bytes()))
    except (OSError, ValueError):
        return {}
