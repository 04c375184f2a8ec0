"""What real Tarantool 2.6.0 does wrong or allows, seen every time: a scripted peer leaves nothing to chance.

Each scene is told in docs/findings/tarantool-2.6.0.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.errors import ClusterError
from nodes.iproto.messages import Answer, Eval, Insert, Key, Message, Refusal, Replace, Row, Type
from tests import needs
from tests.harness.scripted.replica import CLUSTER_SPACE, ScriptedReplica
from tests.harness.scripted.source import ScriptedSource
from tests.nodes.host import tarantools
from tests.nodes.host.tarantools import REGISTER, UUID, Tarantool
from tests.nodes.host.test_qsync import free_ports

TIMES = 10
PATIENCE_S = 60.0


async def ask(port: int, request: Message) -> Message:
    return await asyncio.to_thread(tarantools.ask, port, request, PATIENCE_S)


async def put(port: int, key: str, value: int) -> Message:
    return await ask(port, Replace(1, REGISTER, (key, value)))


async def do(port: int, lua: str) -> tuple[object, ...]:
    answer = await ask(port, Eval(1, lua, ()))
    assert isinstance(answer, Answer), answer
    return answer.data


async def rows(port: int) -> list[list[object]] | None:
    return await asyncio.to_thread(tarantools.rows, port)


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await condition():
            await asyncio.sleep(0.01)


@dataclass
class Scene:
    """A real master with the id 1; a scripted member with the id 3, and what follows it if anybody does."""

    folder: Path
    master: Tarantool
    peer: ScriptedReplica
    source: ScriptedSource
    ports: dict[str, int]


@asynccontextmanager
async def scene_of(folder: Path, timeout_s: float) -> AsyncIterator[Scene]:
    ports = free_ports()
    master = Tarantool(folder / "master", ports["n1"], UUID.format(1), read_only=False, timeout_s=timeout_s)
    peer = ScriptedReplica(UUID.format(3))
    source = ScriptedSource(peer)
    try:
        await asyncio.to_thread(master.start, {})
        member = Insert(1, CLUSTER_SPACE, (2, UUID.format(2)))  # whoever is to follow the scripted one
        assert isinstance(await ask(master.port, member), Answer)
        await peer.join(master.port)
        await peer.follow(master.port)
        await source.open()
        yield Scene(folder, master, peer, source, ports)
    finally:
        await peer.close()
        await source.close()
        await asyncio.to_thread(master.end)


def run(scene: Awaitable[None]) -> None:
    async def limited() -> None:
        await asyncio.wait_for(scene, 4 * PATIENCE_S)

    asyncio.run(limited())


@pytest.mark.real
@needs.tarantool
@pytest.mark.parametrize("time", range(TIMES))
def test_a_write_reported_rolled_back_is_committed_elsewhere(time: int, tmp_path: Path) -> None:
    """If it failed, the finding would hang on luck again; or 2.6.0 would have been mended.

    The client hears 216; another server confirms the row; healed, both follow each other at equal vclocks, and differ.
    """

    async def scene() -> None:
        async with scene_of(tmp_path, timeout_s=0.4) as here:
            master, peer = here.master, here.peer
            assert isinstance(await put(master.port, "a", 1), Answer)
            other = Tarantool(tmp_path / "other", here.ports["n2"], UUID.format(2), timeout_s=0.4)
            await asyncio.to_thread(other.start, {"source": here.source.port})
            try:
                peer.hold()
                writing = asyncio.create_task(put(master.port, "x", 7))
                await peer.until(lambda: peer.has(REGISTER, "x"))
                here.source.stop_passing_on()
                known = dict(peer.vclock)

                async def has_travelled() -> bool:
                    return await rows(other.port) == [["a", 1], ["x", 7]]

                await eventually(has_travelled)
                told = await writing
                assert isinstance(told, Refusal) and told.code == 216, told
                assert await rows(master.port) == [["a", 1]]
                await peer.leave(master.port)
                await peer.follow(other.port, known)
                peer.acknowledge()
                await do(other.port, "box.ctl.clear_synchro_queue() box.cfg{read_only = false}")
                await peer.until(lambda: any(row.replica_id == 2 for row in peer.decisions(Type.CONFIRM)))
                assert await rows(other.port) == [["a", 1], ["x", 7]]
                await heal(master, other)
                assert await rows(master.port) == [["a", 1]]
                assert await rows(other.port) == [["a", 1], ["x", 7]]
            finally:
                await asyncio.to_thread(other.end)

    run(scene())


async def heal(master: Tarantool, other: Tarantool) -> None:
    """Both follow each other, and their vclocks become equal."""
    follow = "box.cfg{{replication = {{'127.0.0.1:{}'}}}}"
    await do(master.port, "box.cfg{read_only = true} " + follow.format(other.port))
    await do(other.port, follow.format(master.port))
    look = "local up = box.info.replication[{}].upstream return box.info.vclock, up and up.status"

    async def is_healed() -> bool:
        one, two = await do(master.port, look.format(2)), await do(other.port, look.format(1))
        return one == two and one[1] == "follow"

    await eventually(is_healed)


@pytest.mark.real
@needs.tarantool
@pytest.mark.parametrize("time", range(TIMES))
def test_a_pending_write_is_read_and_then_rolled_back(time: int, tmp_path: Path) -> None:
    """If it failed, dirty reads would be a matter of luck."""

    async def scene() -> None:
        async with scene_of(tmp_path, timeout_s=0.5) as here:
            here.peer.hold()
            writing = asyncio.create_task(put(here.master.port, "x", 7))
            await here.peer.until(lambda: here.peer.has(REGISTER, "x"))
            assert await rows(here.master.port) == [["x", 7]]
            told = await writing
            assert isinstance(told, Refusal) and told.code == 216, told
            assert await rows(here.master.port) == []
            await here.peer.until(lambda: len(here.peer.decisions(Type.ROLLBACK)) == 1)

    run(scene())


@pytest.mark.real
@needs.tarantool
@pytest.mark.parametrize("time", range(TIMES))
def test_a_master_that_recovered_a_pending_write_dies_of_the_next_quorum(time: int, tmp_path: Path) -> None:
    """If it failed, the crash would be a matter of luck, or 2.6.0 would have been mended."""

    async def scene() -> None:
        async with scene_of(tmp_path, timeout_s=20) as here:
            master, peer = here.master, here.peer
            peer.hold()
            writing = asyncio.create_task(put(master.port, "x", 7))
            await peer.until(lambda: peer.has(REGISTER, "x"))
            await asyncio.to_thread(master.end)
            with pytest.raises(OSError, match=r"closed without an answer|reset"):
                await writing
            await asyncio.to_thread(master.start, {})
            assert await rows(master.port) == [["x", 7]]
            await peer.follow(master.port)
            writing = asyncio.create_task(put(master.port, "y", 1))
            await peer.until(lambda: peer.has(REGISTER, "y"))
            process = master.process
            assert process is not None and process.poll() is None
            peer.acknowledge()
            with pytest.raises(OSError, match=r"closed without an answer|reset"):
                await writing
            assert await asyncio.to_thread(process.wait, PATIENCE_S) == -6
            said = await asyncio.to_thread(master.said)
            assert "Segmentation fault" in said and "txn_limbo_ack" in said, said

    run(scene())


def row(lsn: int, key: str) -> Row:
    body = {int(Key.SPACE_ID): REGISTER, int(Key.TUPLE): (key, lsn)}
    return Row(int(Type.REPLACE), 1, lsn, 0.5, lsn, body=body)


def test_a_replica_hears_through_another_what_it_passes_on() -> None:
    """If it failed, a server behind a scripted peer would know of more than the script lets through."""

    async def scene() -> None:
        first, second = ScriptedReplica(UUID.format(1)), ScriptedReplica(UUID.format(2))
        first.cluster_uuid = second.cluster_uuid = tarantools.CLUSTER
        first.replica_id = 1
        source = ScriptedSource(first)
        await source.open()
        try:
            second.replica_id = 2
            first.take(row(1, "a"), row(2, "b"))
            await second.follow(source.port)
            await second.until(lambda: second.has(REGISTER, "b"))
            source.stop_passing_on()
            first.take(row(3, "c"))
            await asyncio.sleep(0.2)
            assert second.vclock == {1: 2}
            source.passes_on = None
            await second.until(lambda: second.has(REGISTER, "c"))
            second.hold()
            first.take(row(4, "d"))
            await second.until(lambda: second.vclock == {1: 4})
            assert second.acknowledged == {1: 3}
            second.acknowledge()
            assert second.acknowledged == {1: 4}
        finally:
            await second.close()
            await source.close()
        with pytest.raises(ClusterError, match="nobody listens"):
            await second.follow(source.port)

    run(scene())
