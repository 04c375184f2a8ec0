"""Damaged logs: which of them a node may refuse."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from harness.cluster.node_book import NodeBook
from harness.cluster.protocol import Ended
from harness.errors import ClusterError
from harness.faults.damage import RealDamage
from harness.faults.fault import Evidence, Fault
from tests.harness.faults.made_up_hands import MadeUpHands


class Refuses(NodeBook):
    """The processes of a node, and its disk, which ends on a damaged log and comes up on a whole one."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.is_whole = True, True

    def is_alive(self, node: str) -> bool:
        return self.up

    async def status(self, node: str) -> Mapping[str, object] | None:
        return {} if self.up else None

    async def kill(self, node: str) -> None:
        self.up = False

    async def left(self, node: str) -> str:
        return ""

    async def start_again(self, node: str) -> None:
        self.up = self.is_whole
        if not self.up:
            self._note(Ended(node, 1, "exit 1", ("a bad block",)))
            raise ClusterError(f"{node} ended")

    async def revive(self, node: str) -> bool:
        await self.start_again(node)
        return True

    async def save(self) -> None: ...

    async def damage(self, *_: object) -> int:
        self.is_whole = False
        return 7

    async def restore(self) -> None:
        self.is_whole = True


class DiskHands(MadeUpHands):
    def storage(self, node: str) -> Any:
        return self.processes


@pytest.mark.parametrize(
    ("damage", "crashes"), [("torn-tail", ["n1"]), ("truncated-tail", []), ("bit-flip", [])]
)
def test_a_node_may_refuse_only_what_it_need_not_survive(damage: Any, crashes: list[str]) -> None:
    """If it failed, a store that cannot start on the half record that a kill leaves would be called valid; or one that
    is right to refuse lost data would have crashed."""
    node = Refuses()

    async def damaged() -> Evidence:
        fault = Fault(id=0, name=damage, does="damage", at_ns=0, until_ns=1, nodes=("n1",), damage=damage)
        at_work = RealDamage(fault, DiskHands(node.status, processes=node))
        await at_work.begin()
        return await at_work.end()

    evidence = asyncio.run(damaged())
    assert evidence.took_effect
    assert [ended.node for ended in node.ended()] == crashes
    assert evidence.healed == (not crashes)
    assert evidence.counters["refused_to_start"] == (not crashes)
