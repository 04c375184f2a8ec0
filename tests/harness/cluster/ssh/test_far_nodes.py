"""Which ends of nodes on other hosts are reported: on a host that answers as the test says."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.cluster.relay.remote import Commands
from harness.cluster.ssh.machine import Machine
from harness.cluster.ssh.nodes import SshNodes, StartOptions


class Host:
    host = SimpleNamespace(reached_at="h", binds="h")

    async def ask(self, command: str, /, **arguments: object) -> dict[str, Any]:
        return {"start": {"pid": 7}, "terminate": {"in_order": True}}.get(command, {})


class NoRelays:
    async def set_port(self, node: str, port: int, host: str = "") -> None: ...


async def one_node() -> SshNodes:
    async def answers(node: str) -> bool:
        return True

    machine = cast(Machine, Host())
    options = StartOptions(node="n1", machine=machine, command=(), environment={}, port=1, early=False)
    nodes = SshNodes({"n1": options}, cast(Commands, NoRelays()), lambda: 0, answers, str)
    await nodes.start()
    return nodes


def ended(nodes: SshNodes, code: int) -> list[str]:
    event = {"event": 1, "node": "n1", "pid": 7, "code": code, "words": [], "starved": ""}
    nodes.event(cast(Machine, Host()), event)
    return [each.how for each in nodes.ended()]


@pytest.mark.parametrize(
    ("way", "code", "how"),
    [
        ("kill", -9, []),
        ("kill", 1, ["exit 1"]),
        ("kill", -11, ["signal 11"]),
        ("terminate", 1, []),
        ("terminate", 70, ["exit 70"]),
    ],
)
def test_who_had_ended_before_it_was_asked_to_has_crashed(way: str, code: int, how: list[str]) -> None:
    """If it failed, a crash that is reported while a kill is under way would be hidden by it."""

    async def told() -> list[str]:
        nodes = await one_node()
        await getattr(nodes, way)("n1")
        return ended(nodes, code)

    assert asyncio.run(told()) == how


def test_a_crash_of_a_process_that_has_the_number_of_a_killed_one() -> None:
    """If it failed, a kill of a dead node would hide a later crash, as numbers of processes are used again."""

    async def told() -> list[str]:
        nodes = await one_node()
        await nodes.kill("n1")
        assert ended(nodes, -9) == []
        await nodes.kill("n1")
        await nodes.start_again("n1")
        return ended(nodes, 3)

    assert asyncio.run(told()) == ["exit 3"]
