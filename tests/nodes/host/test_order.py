"""The order in which the host tells the node, and syncs its files."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

from nodes.host import folder, process
from nodes.host.files import Committed
from nodes.host.host import Host
from nodes.host.iproto_codec import IprotoCodec
from nodes.host.log import NodeLog
from nodes.host.options import parse
from nodes.kernel.effects import Effect, Persist, Send
from nodes.kernel.events import Event, Instant, Persisted, PersistFailed, Stopping


class Noting:
    """A node that notes its events, and asks for nothing."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def step(self, event: Event, now: Instant) -> Sequence[Effect]:
        self.events.append(event)
        return ()

    def status(self) -> dict[str, object]:
        return {}


async def hosted(node: Noting, directory: Path) -> Host:
    log = NodeLog(str(directory / "n.log"), "n", 0, node.status)
    return Host(node, IprotoCodec("u"), {}, str(directory), "synced", log)


def test_a_node_learns_what_is_on_disk_before_it_learns_what_failed(tmp_path: Path) -> None:
    """If it failed, a node would take back a record that is on disk, and use its numbers again."""
    node = Noting()

    async def commit() -> None:
        host = await hosted(node, tmp_path)
        host._outbox.put([Persist(1, "a", b"1", "row"), Persist(2, "b", b"2", "row"), Send(1, "x", after=2)])
        host._outbox.take_records()
        host._committed(Committed((1,), "b: no space left on device (ENOSPC)"))
        await host.stop()

    asyncio.run(commit())
    failed = PersistFailed((2,), "b: no space left on device (ENOSPC)")
    assert node.events == [Persisted(1), failed, Stopping()]


def test_a_stopping_node_gets_no_more_messages(tmp_path: Path) -> None:
    """If it failed, a node would answer, or write, behind its last words."""
    node = Noting()

    async def stop() -> None:
        host = await hosted(node, tmp_path)
        await host.stop()
        host._deliver_from_outside(Stopping())

    asyncio.run(stop())
    assert node.events == [Stopping()]


def test_a_data_folder_is_locked_before_it_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If it failed, a node could start from files to which the process before it is still appending."""
    calls: list[str] = []

    def contents(directory: str, except_for: Collection[str]) -> dict[str, bytes]:
        calls.append("read")
        return {}

    monkeypatch.setattr(folder, "lock", lambda directory: calls.append("lock"))
    monkeypatch.setattr(folder, "contents", contents)
    given = {"system": "toy", "config": "c", "data": str(tmp_path), "listen": "127.0.0.1:0", "log": "l"}
    words = [word for name, value in given.items() for word in (f"--{name}", value)]
    process._files(parse(words, ("toy",)))
    assert calls == ["lock", "read"]
