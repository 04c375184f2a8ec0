"""The order in which the host tells the node, and syncs its files."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NoReturn

import pytest

from nodes.host import folder, process
from nodes.host.files import Committed
from nodes.host.host import Host
from nodes.host.iproto_codec import IprotoCodec
from nodes.host.log import NodeLog
from nodes.host.options import parse
from nodes.kernel.effects import Again, Effect, Persist, Send
from nodes.kernel.errors import StartAgain
from nodes.kernel.events import Accepted, Event, Instant, Persisted, PersistFailed, Received, Stopping


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


class Over(Noting):
    """Its life is over in the step of one event; at its stop it writes a record."""

    def __init__(self, at: Event) -> None:
        super().__init__()
        self.at = at

    def step(self, event: Event, now: Instant) -> Sequence[Effect]:
        super().step(event, now)
        if event == self.at:
            raise StartAgain("life 1 has left")
        return [Persist(1, "a", b"1", "row"), Persist(2, "b", b"2", "row")] if event == Stopping() else ()


def started_again() -> NoReturn:
    raise SystemExit("started again")


@pytest.mark.parametrize("at", [Stopping(), Persisted(1), Persisted(2)])
def test_a_stopping_node_does_not_start_again(tmp_path: Path, at: Event) -> None:
    """If it failed, a node that an operator has stopped would come back, at the address of the next one."""
    node = Over(at)

    async def stop() -> None:
        host = await hosted(node, tmp_path)
        host.start_again = started_again
        await asyncio.wait_for(host.stop(), 10)

    asyncio.run(stop())
    assert node.events[-1] == at, "its life is over: no more events"


def test_a_node_whose_life_is_over_starts_again(tmp_path: Path) -> None:
    """If it failed, the test before would pass where no node ever starts again."""

    async def end() -> None:
        host = await hosted(Over(Accepted(1)), tmp_path)
        host.start_again = started_again
        with pytest.raises(SystemExit, match="started again"):
            host._deliver_from_outside(Accepted(1))

    asyncio.run(end())


def test_the_sends_behind_a_record_go_out_before_the_node_hears_of_it(tmp_path: Path) -> None:
    """If it failed, an answer would wait for all that the node does when its record is on disk."""
    node = Noting()
    order: list[object] = []

    async def commit() -> None:
        host = await hosted(node, tmp_path)
        host.links.send = lambda number, message: order.append(message)  # type: ignore[method-assign]
        node.events = order  # type: ignore[assignment]
        host._outbox.put([Persist(1, "a", b"1", "row"), Send(1, "x", after=1)])
        host._outbox.take_records()
        host._committed(Committed((1,), None))

    asyncio.run(commit())
    assert order == ["x", Persisted(1)]


@pytest.mark.parametrize("is_heard", [False, True])
def test_a_message_comes_again_only_on_a_link_that_is_heard(tmp_path: Path, is_heard: bool) -> None:
    """If it failed, a node would get a message of a link that it has ended, behind its end."""
    node = Noting()

    async def again() -> None:
        host = await hosted(node, tmp_path)
        host.links.hears = lambda number: is_heard  # type: ignore[method-assign]
        host._take([Again(Received(5, "held")), Again(Accepted(6))])
        await asyncio.sleep(0)

    asyncio.run(again())
    assert node.events == [*([Received(5, "held")] if is_heard else []), Accepted(6)]


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
