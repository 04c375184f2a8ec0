"""The relay alone: a real relay process between sockets of this test."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import psutil  # type: ignore[import-untyped]  # it has no types
import pytest

from harness.cluster.relay.remote import Relay
from harness.cluster.relay.switchboard import Switchboard
from harness.errors import ClusterError
from tests.harness.processes import PATIENCE_S, is_gone, wait_until

T = TypeVar("T")

ROOT = Path(__file__).parents[3]
BOTH = [("client", "n1"), ("n1", "client")]
SILENCE_S = 0.1


def _seed(reset: bool) -> int:
    """A seed of which the first connection that was held is reset, or goes on."""
    return next(seed for seed in range(100) if (random.Random(f"{seed} heal").random() < 0.5) == reset)


GOES_ON, IS_RESET = _seed(reset=False), _seed(reset=True)


class Server:
    """A node that greets, and remembers what it was sent; answers are the test's to give."""

    def __init__(self) -> None:
        self.accepted: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()

    async def start(self) -> int:
        self.server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return int(self.server.sockets[0].getsockname()[1])

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        self.accepted.put_nowait((reader, writer))

    def close(self) -> None:
        self.server.close()
        while not self.accepted.empty():
            self.accepted.get_nowait()[1].transport.abort()


class Scene:
    """A relay with one route, client → n1, and the server behind it."""

    def __init__(self, relay: Relay, route: int, server: Server) -> None:
        self.relay, self.route, self.server = relay, route, server
        self.writers: list[asyncio.StreamWriter] = []

    async def dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.route)
        self.writers.append(writer)
        return reader, writer

    async def connect(
        self,
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection that stands: the client's reader and writer, then the server's."""
        reader, writer = await self.dial()
        assert await within(reader.readexactly(5)) == b"hello"
        served = await within(self.server.accepted.get())
        self.writers.append(served[1])
        return reader, writer, *served

    async def counters(
        self, fault: int = 1, link: tuple[str, str] = ("client", "n1")
    ) -> dict[str, int | None]:
        return (await self.relay.counters(fault))[link]


@contextlib.asynccontextmanager
async def scene(folder: Path) -> AsyncIterator[Scene]:
    relay, server = await Relay.start(folder / "relay.txt"), Server()
    (route,) = await relay.listen([("client", "n1", 0)])
    await relay.set_port("n1", await server.start())
    played = Scene(relay, route, server)
    try:
        yield played
    finally:
        for writer in played.writers:
            writer.transport.abort()
        server.close()
        await relay.stop()
        await asyncio.sleep(0)
    assert not (folder / "relay.txt").exists(), (folder / "relay.txt").read_text()


def play(folder: Path, story: Callable[[Scene], Awaitable[None]]) -> None:
    async def played() -> None:
        async with scene(folder) as its_scene:
            await story(its_scene)

    asyncio.run(played())


async def within(awaitable: Awaitable[T]) -> T:
    return await asyncio.wait_for(awaitable, PATIENCE_S)


async def is_silent(reader: asyncio.StreamReader) -> bool:
    try:
        await asyncio.wait_for(reader.read(1), SILENCE_S)
    except TimeoutError:
        return True
    return False


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async def poll() -> None:
        while not await condition():
            await asyncio.sleep(0.005)

    await within(poll())


def test_a_cut_is_silent_both_ways_and_healing_delivers_every_byte_in_order(tmp_path: Path) -> None:
    """Broken if a partition leaks, or if it corrupts a stream that lives on: both give false verdicts."""

    async def story(its: Scene) -> None:
        reader, writer, server_reader, server_writer = await its.connect()
        await its.relay.cut(1, BOTH)
        forth, back = os.urandom(700_000), os.urandom(700_000)
        writer.write(forth)
        server_writer.write(back)
        assert await is_silent(reader)
        assert await is_silent(server_reader)
        await its.relay.heal(1, GOES_ON)
        assert await within(server_reader.readexactly(len(forth))) == forth
        assert await within(reader.readexactly(len(back))) == back

    play(tmp_path, story)


def test_a_one_way_cut_leaves_the_other_way_alone(tmp_path: Path) -> None:
    """Broken if one-way partitions are not one-way."""

    async def story(its: Scene) -> None:
        reader, writer, server_reader, server_writer = await its.connect()
        await its.relay.cut(1, [("client", "n1")])
        writer.write(b"withheld")
        server_writer.write(b"passes")
        assert await within(reader.readexactly(6)) == b"passes"
        assert await is_silent(server_reader)
        counters = await its.counters()
        assert counters["bytes_withheld"] == 8
        assert counters["bytes_passed"] == 0
        assert (counters["longest_withheld_ns"] or 0) >= SILENCE_S * 0.5e9

    play(tmp_path, story)


def test_no_end_of_a_connection_passes_a_cut(tmp_path: Path) -> None:
    """Broken if a node learns through a partition that its peer died."""

    async def story(its: Scene) -> None:
        _, writer, server_reader, _ = await its.connect()
        _, killed, its_server_reader, its_server_writer = await its.connect()
        await its.relay.cut(1, [("client", "n1")])
        writer.close()
        killed.transport.abort()
        its_server_writer.write(b"to the dead")  # provokes a RST, which must not pass either
        assert await is_silent(server_reader)
        its_server_writer.write(b"to the dead")
        assert await is_silent(its_server_reader)
        await its.relay.heal(1, GOES_ON)
        assert await within(server_reader.read()) == b""
        with contextlib.suppress(ConnectionResetError):
            assert await within(its_server_reader.read()) == b""

    play(tmp_path, story)


def test_a_connection_dialed_into_a_cut_hangs_and_goes_on_after_healing(tmp_path: Path) -> None:
    """Broken if a partition refuses or greets new connections instead of leaving them hanging."""

    async def story(its: Scene) -> None:
        await its.relay.cut(1, [("client", "n1")])
        reader, writer = await its.dial()
        assert await is_silent(reader)
        counters = await its.counters()
        assert counters["connections_hanging"] == 1
        assert (counters["longest_hanging_ns"] or 0) >= SILENCE_S * 0.5e9
        writer.write(b"early")
        await its.relay.heal(1, GOES_ON)
        assert await within(reader.readexactly(5)) == b"hello"
        server_reader, server_writer = await within(its.server.accepted.get())
        its.writers.append(server_writer)
        assert await within(server_reader.readexactly(5)) == b"early"
        assert (await its.counters())["bytes_fresh"] == 5

    play(tmp_path, story)


def test_a_hanging_connection_whose_dialer_gave_up_never_reaches_the_target(tmp_path: Path) -> None:
    """Broken if healing floods a node with the connections of clients that left long ago."""

    async def story(its: Scene) -> None:
        await its.relay.cut(1, BOTH)
        _, writer = await its.dial()
        await its.counters()
        writer.close()

        async def dropped() -> bool:
            return bool((await its.relay.totals())["connections"] == 0)

        await until(dropped)
        await its.relay.heal(1, GOES_ON)
        await its.connect()
        assert its.server.accepted.empty()

    play(tmp_path, story)


def test_healing_resets_a_connection_if_the_seed_says_so(tmp_path: Path) -> None:
    """Broken if what was held always goes on: half of what a partition does to clients would stay untried."""

    async def story(its: Scene) -> None:
        reader, writer, server_reader, _ = await its.connect()
        await its.relay.cut(1, BOTH)
        writer.write(b"lost with its connection")
        await asyncio.sleep(0.02)
        await its.relay.heal(1, IS_RESET)
        for end in (reader, server_reader):
            with pytest.raises(ConnectionResetError):
                await within(end.readexactly(1))
        assert (await its.counters())["connections_reset"] == 1

    play(tmp_path, story)


def test_a_link_stays_cut_until_the_last_of_overlapping_faults_is_healed(tmp_path: Path) -> None:
    """Broken if healing one partition heals another that overlaps it."""

    async def story(its: Scene) -> None:
        _, writer, server_reader, _ = await its.connect()
        await its.relay.cut(1, BOTH)
        await its.relay.cut(2, [("client", "n1")])
        writer.write(b"twice cut")
        await its.relay.heal(1, GOES_ON)
        assert await is_silent(server_reader)
        await its.relay.heal(2, GOES_ON)
        assert await within(server_reader.readexactly(9)) == b"twice cut"
        await its.relay.forget(1)
        assert list(await its.relay.counters(1)) == []
        assert (await its.counters(2))["bytes_fresh"] == 9

    play(tmp_path, story)


def test_probes_of_the_harness_do_not_make_a_link_a_used_one(tmp_path: Path) -> None:
    """Broken if a partition of links without traffic looks like one that a store survived, or the reverse."""

    async def story(its: Scene) -> None:
        is_used = []
        for fault in (1, 2):
            await its.relay.cut(fault, [("client", "n1")])
            await its.relay.heal(fault, GOES_ON)
            is_used.append((await its.counters(fault))["is_used"])
            _, writer, server_reader, _ = await its.connect()
            writer.write(b"probe")
            await within(server_reader.readexactly(5))
            await its.relay.forget(fault)
        assert is_used == [0, 0]
        writer.write(b"a node")
        await within(server_reader.readexactly(6))
        await its.relay.cut(3, [("client", "n1")])
        assert (await its.counters(3))["is_used"] == 1

    play(tmp_path, story)


def test_a_slow_link_delays_and_keeps_order(tmp_path: Path) -> None:
    """Broken if delay reorders a byte stream, or does not delay."""

    async def story(its: Scene) -> None:
        _, writer, server_reader, _ = await its.connect()
        await its.relay.slow(1, [("client", "n1")], delay_ns=60_000_000, jitter_ns=50_000_000, seed=7)
        begun = time.monotonic()
        for number in range(20):
            writer.write(bytes([number]))
            await asyncio.sleep(0.001)
        assert await within(server_reader.readexactly(1)) == b"\0"
        assert time.monotonic() - begun >= 0.01
        assert await within(server_reader.readexactly(19)) == bytes(range(1, 20))
        assert time.monotonic() - begun >= 0.06
        assert (await its.counters())["bytes_delayed"] == 20
        await its.relay.heal(1, 0)
        writer.write(b"fast again")
        assert await within(server_reader.readexactly(10)) == b"fast again"
        assert (await its.counters())["bytes_delayed"] == 20

    play(tmp_path, story)


def test_a_link_with_a_rate_lets_no_more_pass_and_loses_nothing(tmp_path: Path) -> None:
    """Broken if a bandwidth that was asked for limits nothing, what was held when it healed is lost or late, or a wider
    limit beside it counts as effective."""

    async def story(its: Scene) -> None:
        _, writer, server_reader, _ = await its.connect()
        sent = random.Random(5).randbytes(30_000)
        await its.relay.slow(1, [("client", "n1")], bytes_per_s=100_000, seed=7)
        await its.relay.slow(3, [("client", "n1")], bytes_per_s=1_000_000_000, seed=7)
        begun = time.monotonic()
        writer.write(sent)
        assert await within(server_reader.readexactly(len(sent))) == sent
        assert time.monotonic() - begun >= 0.3
        counters = await its.counters()
        assert counters["bytes_delayed"] == len(sent)
        assert 0 < (counters["bytes_queued"] or 0) < len(sent)
        assert (await its.counters(3))["bytes_queued"] == 0, "the narrower limit is the cause"
        await its.relay.slow(2, [("client", "n1")], bytes_per_s=10, seed=7)
        writer.write(sent)
        await its.relay.heal(2, 0)
        await its.relay.heal(1, 0)
        assert await within(server_reader.readexactly(len(sent))) == sent

    play(tmp_path, story)


def test_a_fault_that_is_over_slows_no_byte_of_the_next(tmp_path: Path) -> None:
    """If it failed, a link with a rate would pass nothing for as long as the queue of an earlier fault was."""

    async def story(its: Scene) -> None:
        _, writer, server_reader, _ = await its.connect()

        async def sent(size: int, fault: int) -> None:
            async def are_delayed() -> bool:
                return (await its.counters(fault))["bytes_delayed"] == size

            writer.write(bytes(size))
            await until(are_delayed)

        await its.relay.slow(1, [("client", "n1")], bytes_per_s=10, seed=7)
        await sent(30_000, 1)
        await its.relay.heal(1, 0)
        await within(server_reader.readexactly(30_000))
        await its.relay.slow(2, [("client", "n1")], bytes_per_s=1_000_000, seed=7)
        await sent(1000, 2)
        assert (await its.counters(2))["bytes_queued"] == 0
        await within(server_reader.readexactly(1000))
        await its.relay.heal(2, 0)

        await its.relay.slow(3, [("client", "n1")], delay_ns=3_600_000_000_000, seed=7)
        await sent(1, 3)
        await its.relay.heal(3, 0)
        await within(server_reader.readexactly(1))
        await its.relay.slow(4, [("client", "n1")], delay_ns=1_000_000, seed=7)
        await sent(1, 4)
        await within(server_reader.readexactly(1))

    play(tmp_path, story)


def test_healing_ends_a_rate_on_a_link_that_another_fault_slows(tmp_path: Path) -> None:
    """If it failed, what a healed fault held would still wait for its rate."""

    async def story(its: Scene) -> None:
        _, writer, server_reader, _ = await its.connect()
        await its.relay.slow(1, [("client", "n1")], delay_ns=1_000_000, seed=7)
        await its.relay.slow(2, [("client", "n1")], bytes_per_s=10, seed=7)

        async def are_held() -> bool:
            return (await its.counters(2))["bytes_delayed"] == 30_000

        writer.write(bytes(30_000))
        await until(are_held)
        await its.relay.heal(2, 0)
        await within(server_reader.readexactly(30_000))

    play(tmp_path, story)


def test_the_delays_of_a_link_are_measured(tmp_path: Path) -> None:
    """Broken if jitter counts as felt because it was asked for, not because the delays differed."""

    async def story(its: Scene) -> None:
        _, writer, server_reader, _ = await its.connect()
        await its.relay.slow(1, [("client", "n1")], delay_ns=20_000_000, jitter_ns=20_000_000, seed=7)
        assert (await its.counters())["shortest_delay_ns"] is None
        async with asyncio.timeout(60):
            while True:  # each is drawn anew, so the delays must differ at some time
                writer.write(b"x")
                assert await server_reader.readexactly(1) == b"x"
                counters = await its.counters()
                shortest_ns, longest_ns = counters["shortest_delay_ns"], counters["longest_delay_ns"]
                assert shortest_ns is not None and longest_ns is not None
                assert 0 <= shortest_ns <= longest_ns
                if longest_ns - shortest_ns >= 20_000_000:
                    break

    play(tmp_path, story)


def test_a_dead_target_resets_the_dialer_at_once(tmp_path: Path) -> None:
    """Broken if a killed node looks like a partitioned one."""

    async def story(its: Scene) -> None:
        for _ in range(2):
            its.server.close()
            with pytest.raises(ConnectionResetError):  # while dialing, or just after
                await within((await its.dial())[0].readexactly(1))
            await its.relay.set_port("n1", 0)

    play(tmp_path, story)


def test_a_target_of_no_possible_name_resets_the_dialer() -> None:
    """If it failed, clients of a host that no name server can know would wait for every deadline."""

    async def story() -> None:
        board = Switchboard()
        port = await board.listen("client", "n1", 0)
        board.set_port("n1", 1, "a..b")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with pytest.raises(ConnectionResetError):
            await within(reader.read())
        writer.close()
        for listener in board._listeners.values():
            listener.close()

    asyncio.run(story())


def test_a_restarted_target_is_found_on_its_new_port(tmp_path: Path) -> None:
    """Broken if a killed node stays unreachable after its restart."""

    async def story(its: Scene) -> None:
        await its.relay.set_port("n1", 0)
        its.server.close()
        await its.relay.set_port("n1", await its.server.start())
        await its.connect()

    play(tmp_path, story)


def test_an_end_passes_a_link_that_is_whole(tmp_path: Path) -> None:
    """Broken if a closed connection lingers: a node would not see that its peer has left."""

    async def story(its: Scene) -> None:
        reader, writer, server_reader, server_writer = await its.connect()
        writer.write(b"last words")
        writer.write_eof()
        assert await within(server_reader.read()) == b"last words"
        server_writer.write(b"answer")
        server_writer.close()
        assert await within(reader.read()) == b"answer"

        async def forgotten() -> bool:
            return bool((await its.relay.totals())["connections"] == 0)

        await until(forgotten)

    play(tmp_path, story)


def test_a_reset_reaches_a_dialer_that_has_just_said_its_last(tmp_path: Path) -> None:
    """If it failed, a client whose node died would wait until its timeout, and its sockets would stay open."""

    async def story() -> None:
        board, loop = Switchboard(), asyncio.get_running_loop()
        with socket.create_server(("127.0.0.1", 0)) as target:
            target.setblocking(False)
            route = await board.listen("client", "n1", 0)
            board.set_port("n1", target.getsockname()[1])
            reader, writer = await asyncio.open_connection("127.0.0.1", route)
            served, _ = await within(loop.sock_accept(target))
            with served:
                await within(loop.sock_sendall(served, b"hello"))
                await within(reader.readexactly(5))
                writer.write_eof()
                served.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            with pytest.raises(ConnectionResetError):
                await within(reader.readexactly(1))
            assert board.totals()["connections"] == 0
            writer.transport.abort()
            for listener in board._listeners.values():
                listener.close()

    asyncio.run(story())


def test_power_loss_forgets_what_was_held_and_says_nothing(tmp_path: Path) -> None:
    """Broken if bytes survive the power loss of their sender, or if its peer hears of it at once."""

    async def story(its: Scene) -> None:
        _, writer, server_reader, _ = await its.connect()
        await its.relay.cut(1, BOTH)
        writer.write(b"in a buffer that loses power")
        await asyncio.sleep(0.02)
        assert await its.relay.discard("n1") == 1
        await its.relay.heal(1, GOES_ON)
        assert await is_silent(server_reader)
        assert await its.relay.reset("n1") == 1
        with pytest.raises(ConnectionResetError):
            await within(server_reader.readexactly(1))

    play(tmp_path, story)


def test_healing_resets_no_connection_of_a_node_without_power(tmp_path: Path) -> None:
    """If it failed, a peer would hear at once, from a machine without power, that its connection is gone."""

    async def story(its: Scene) -> None:
        _, writer, server_reader, _ = await its.connect()
        await its.relay.cut(1, BOTH)
        writer.write(b"not read before the power went")
        await asyncio.sleep(0.02)
        await its.relay.discard("n1")
        await its.relay.heal(1, IS_RESET)
        assert (await its.counters())["connections_reset"] == 0
        assert await is_silent(server_reader)

    play(tmp_path, story)


def test_a_wrong_command_is_answered_and_ends_nothing(tmp_path: Path) -> None:
    """Broken if one bad command takes the whole cluster's network down."""

    async def story(its: Scene) -> None:
        with pytest.raises(
            ClusterError, match=r"^the relay could not do the command 'listen': port \d+ is in use$"
        ):
            await its.relay.listen([("client", "n2", its.route)])
        with pytest.raises(ClusterError, match="cut"):
            await its.relay.cut(1, [3])  # type: ignore[list-item]
        its.relay._commands.write(b"[1]\nno JSON\n")
        await its.connect()
        await its.relay.totals()

    play(tmp_path, story)


@pytest.mark.parametrize(
    "written", ['\'{"id": 1, "at\'', "'a warning\\n'", "'[1]\\n'", "'x' * (1 << 22) + '\\n'"]
)
def test_what_is_no_answer_fails_the_command_that_waits(tmp_path: Path, written: str) -> None:
    """Broken if a relay that is killed in the middle of an answer costs ten seconds, and a traceback at the end."""
    program = f"import sys; sys.stdin.readline(); print({written}, end='', flush=True); sys.stdin.read()"

    async def story() -> None:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", program), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        relay = Relay(process, tmp_path / "none")
        with pytest.raises(ClusterError, match="the relay ended \\(expected an answer in JSON, got "):
            await asyncio.gather(relay.totals(), ends(process))
        with pytest.raises(ClusterError, match=r"\) before the command 'totals'$"):
            await relay.totals()
        await relay.stop()

    async def ends(process: asyncio.subprocess.Process) -> None:
        if "\\n" not in written:
            await asyncio.sleep(0.2)
            process.kill()

    asyncio.run(story())


PARENT = """
import asyncio, pathlib, subprocess, sys
from harness.cluster.relay.remote import Relay

async def main():
    relay = await Relay.start(pathlib.Path(sys.argv[1]))
    sleepers = [subprocess.Popen(["sleep", "60"]) for _ in range(2)]
    for sleeper in sleepers:
        await relay.guard(sleeper.pid, "a mark")
    print(relay.pid, *(sleeper.pid for sleeper in sleepers), flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


def test_a_killed_harness_leaves_no_relay_and_no_guarded_process(tmp_path: Path) -> None:
    """Broken if kill -9 of a run leaves nodes behind, paused ones included."""
    command = [sys.executable, "-c", PARENT, str(tmp_path / "relay.txt")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as parent:
        assert parent.stdout is not None
        left = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
        left[1].send_signal(signal.SIGSTOP)
        parent.kill()
    wait_until(lambda: all(is_gone(process) for process in left))
