"""Limits of nodes on other hosts: each host's supervisor does it, where its user may."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.cluster.ssh.machine import Machine
from harness.faults.hands import Ballast, Counts


class SshLimits:
    """Implements `harness.faults.hands.Limits`; raises ClusterError where it cannot be done."""

    def __init__(self, machines: Mapping[str, Machine]) -> None:
        self._machines = machines

    async def counts(self, node: str) -> Counts:
        return dict(await self._ask(node, "counts"))

    async def limit_cpu(self, node: str, percent: int) -> None:
        await self._ask(node, "cpu", percent)

    async def limit_memory(self, node: str, spare_bytes: int) -> None:
        await self._ask(node, "memory", spare_bytes)

    async def press(self, node: str, ballast: Ballast) -> None:
        await self._ask(node, "press", ballast)

    async def release(self, node: str) -> None:
        await self._ask(node, "release")

    async def lift(self, node: str) -> bool:
        return bool(await self._ask(node, "lift"))

    async def _ask(self, node: str, what: str, given: object = None) -> Any:
        return (await self._machines[node].ask("limit", node=node, what=what, given=given))["result"]
