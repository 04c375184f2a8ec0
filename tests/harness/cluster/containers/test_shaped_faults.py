"""Faults that shape packets, without a kernel."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest

from harness.cluster.containers import shaped_faults
from harness.cluster.containers.shaped_faults import PacketShaping


class Running:
    """Nodes that all run, and their addresses."""

    on_started: object = None
    addresses: ClassVar = {"n1": "10.0.0.1", "n2": "10.0.0.2"}

    def is_alive(self, node: str) -> bool:
        return node in self.addresses

    def pid(self, node: str) -> int:
        return [*self.addresses].index(node) + 1


class Holder:
    """Stands for the process that holds packets, and notes its commands."""

    started: list[Holder]

    def __init__(self) -> None:
        self.commands: list[tuple[str, str]] = []

    @classmethod
    async def start(cls, errors: Path) -> Holder:
        await asyncio.sleep(0)
        cls.started.append(cls())
        return cls.started[-1]

    async def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        self.commands.append((command, arguments.get("node", "")))
        return {}


def test_faults_that_begin_at_the_same_time_share_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken, two processes hold packets, and one of them is never stopped."""
    Holder.started = []
    monkeypatch.setattr(shaped_faults, "ShapingProcess", Holder)
    nodes = cast(Any, Running())
    shaping = PacketShaping(nodes, nodes, tmp_path / "errors.txt", lambda: 0)

    async def both() -> None:
        await asyncio.gather(shaping.process(), shaping.process())

    asyncio.run(both())
    (holder,) = Holder.started
    assert holder.commands == [("name", ""), ("enter", "n1"), ("enter", "n2")]
