"""Local clusters: real processes (a toy node, and the real one), a real relay, real signals."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil  # type: ignore[import-untyped]  # it has no types
import pytest

from harness.clients.reply import Lost, NotSent, Replied
from harness.cluster import real_cluster
from harness.cluster.local.cluster import LocalCluster, LocalSettings
from harness.cluster.place import Place, node_host
from harness.cluster.ports import free_ports
from harness.cluster.protocol import Cluster
from harness.cluster.stall import StallWatch
from harness.errors import ClusterError, WrongUse
from harness.faults.changing_cut import part_of
from harness.faults.fault import Evidence, Fault, Shape
from harness.systems.iproto_wire import IPROTO
from nodes.iproto.messages import Answer, Call, Replace
from nodes.qsync.configuration import Configuration, Identity, SpaceDefinition
from tests.harness.processes import PATIENCE_S, is_gone, wait_until

pytestmark = pytest.mark.usefixtures("patient")
ROOT = Path(__file__).parents[3]
TOY = (sys.executable, str(Path(__file__).with_name("toy.py")))
NODES = ("n1", "n2", "n3")
HEARTBEAT_NS = 50_000_000
SECOND_NS = 1_000_000_000
PATIENCE_NS = PATIENCE_S * SECOND_NS
AROUND_N1 = tuple(pair for other in ("n2", "n3", "client") for pair in ((other, "n1"), ("n1", other)))


def settings(folder: Path, **others: Any) -> LocalSettings:
    configs = {node: json.dumps({"name": node}).encode() for node in NODES}
    command = node_host("qsync", "synced", TOY)
    given: dict[str, Any] = {"configs": configs, "command": command, "heartbeat_ns": HEARTBEAT_NS} | others
    return LocalSettings(talk=IPROTO, folder=folder, epoch_ns=time.monotonic_ns(), **given)


@contextlib.asynccontextmanager
async def running(folder: Path, **others: Any) -> AsyncIterator[LocalCluster]:
    cluster = LocalCluster(settings(folder, **others))
    try:
        await cluster.start()
        yield cluster
    finally:
        await cluster.stop()
    assert children() == []


def play(folder: Path, story: Callable[[LocalCluster], Awaitable[None]], **others: Any) -> None:
    async def played() -> None:
        async with running(folder, **others) as cluster:
            await story(cluster)

    asyncio.run(played())


def children() -> list[psutil.Process]:
    """But for that of `multiprocessing`, which stays with a process in which a pool has ever run."""
    found = psutil.Process().children(recursive=True)
    return [
        each
        for each in found
        if not any("multiprocessing.resource_tracker" in word for word in each.cmdline())
    ]


def fault(does: Any, **others: Any) -> Fault:
    return Fault(id=1, name="a-fault", does=does, at_ns=0, until_ns=0, **others)


@pytest.mark.long
def test_what_came_before_the_beginning_is_no_part_of_a_run(tmp_path: Path) -> None:
    """If it failed, faults, stalls and the nodes' own logs would be told by another zero than the operations."""

    async def story(cluster: LocalCluster) -> None:
        log = tmp_path / "nodes" / "n1" / "log.jsonl"
        before_ns = cluster.now_ns()
        log.write_text(json.dumps({"time_ns": before_ns, "message": "ready"}) + "\n")
        later_ns = cluster.begin_now()
        assert before_ns <= later_ns
        assert cluster.now_ns() <= time.monotonic_ns() - cluster._settings.epoch_ns - later_ns
        await cluster.inject(fault("cut", links=AROUND_N1))
        evidence = await cluster.heal(fault("cut", links=AROUND_N1))
        told = (evidence.asked_ns, evidence.heal_asked_ns, evidence.last_effect_ns)
        assert all(time_ns is not None and 0 <= time_ns <= cluster.now_ns() for time_ns in told)
        assert all(at_ns >= 0 for at_ns, _ in cluster.stalls())
        kept.append(later_ns - before_ns)

    kept: list[int] = []
    play(tmp_path, story)
    (line,) = (tmp_path / "nodes" / "n1" / "log.jsonl").read_text().splitlines()
    assert json.loads(line)["time_ns"] == -kept[0]


def echo(sync: int) -> Call:
    return Call(sync, "echo", (sync,))


async def pid(cluster: LocalCluster, node: str) -> int:
    status = await cluster.status(node)
    assert status is not None
    return int(str(status["pid"]))


async def answers(cluster: Cluster, process: int, node: str) -> bool:
    match await cluster.call(process, node, echo(process), PATIENCE_NS):
        case Replied(Answer(sync, (value,))):
            return sync == value == process
    return False


async def until_in_effect(cluster: LocalCluster, number: int = 1) -> None:
    """Until a cut has held something back for longer than a heartbeat; it need not be the whole time on a busy machine.

    `number` is of the fault, or of the shape of one.
    """
    assert cluster._relay is not None
    async with asyncio.timeout(PATIENCE_S):
        while True:
            for counters in (await cluster._relay.counters(number)).values():
                waited_ns = counters["longest_withheld_ns"], counters["longest_hanging_ns"]
                if max(each or 0 for each in waited_ns) > HEARTBEAT_NS:
                    return
            await asyncio.sleep(0.005)


def in_order(evidence: Evidence) -> bool:
    times = [
        evidence.asked_ns,
        evidence.first_effect_ns,
        evidence.all_in_effect_ns,
        evidence.heal_asked_ns,
        evidence.last_effect_ns,
    ]
    known = [time_ns for time_ns in times if time_ns is not None]
    return len(known) == len(times) and known == sorted(known)


@pytest.mark.long
def test_a_new_node_is_started_by_a_command_for_the_members_that_it_joins(tmp_path: Path) -> None:
    """If it failed, a store that names its members on the command line would name one that has left, or found a
    cluster of its own."""
    places: list[Place] = []

    def command(place: Place) -> tuple[str, ...]:
        places.append(place)
        return node_host("qsync", "synced", TOY)(place)

    async def story(cluster: LocalCluster) -> None:
        await cluster.terminate("n3")
        await cluster.start_again("n3", configuration=b'{"name": "n3"}', members=("n1",))
        assert await cluster.status("n3") is not None

    play(tmp_path, story, command=command)
    usual, joining = [place for place in places if place.node == "n3"]
    assert (usual.joins, [*usual.peers]) == (False, ["n1", "n2"])
    assert (joining.joins, joining.peers) == (True, {"n1": usual.peers["n1"]})


@pytest.mark.long
def test_nodes_come_up_answer_and_leave_nothing_behind(tmp_path: Path) -> None:
    """Broken if a run leaves a process, a port or a temporary file."""

    async def story(cluster: LocalCluster) -> None:
        before_ns = time.monotonic_ns()
        assert before_ns <= cluster._settings.epoch_ns + cluster.now_ns() <= time.monotonic_ns()
        for process, node in enumerate(NODES):
            assert await answers(cluster, process, node)
            assert (await cluster.status(node) or {})["up"] is True
        assert cluster.ended() == ()
        await cluster.stop()
        await cluster.stop()
        assert await cluster.status("n1") is None

    play(tmp_path, story)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")) == sorted(
        f"nodes/{node}/{file}" for node in NODES for file in ("config.json", "output.txt")
    )


def test_an_outcome_says_whether_the_request_left(tmp_path: Path) -> None:
    """Broken if "nobody knows" is taken for "surely not done", or the other way round: both give false verdicts."""

    async def story(cluster: LocalCluster) -> None:
        assert await cluster.call(0, "n1", Call(1, "hang up", ()), PATIENCE_NS) == Lost("end of file")
        assert await answers(cluster, 1, "n1")  # greeted: what comes next surely leaves
        assert await cluster.call(1, "n1", Call(2, "silent", ()), 20_000_000) == Lost("timeout")
        assert await answers(cluster, 2, "n1")
        await cluster.inject(fault("kill", nodes=("n1",)))
        dead = [await cluster.call(process, "n1", echo(1), PATIENCE_NS) for process in (2, 3)]
        assert [type(reply) for reply in dead] == [NotSent, NotSent]
        assert await answers(cluster, 4, "n2")

    play(tmp_path, story)


def test_a_cut_isolates_takes_effect_and_heals(tmp_path: Path) -> None:
    """Broken if a partition is only believed to have happened, or to be over."""

    async def story(cluster: LocalCluster) -> None:
        assert await answers(cluster, 1, "n1")
        isolation = fault("cut", links=AROUND_N1, seed=3)
        await cluster.inject(isolation)
        new, old = await asyncio.gather(
            cluster.call(0, "n1", echo(1), 100_000_000), cluster.call(1, "n1", echo(2), 100_000_000)
        )
        assert isinstance(new, NotSent)
        assert old == Lost("timeout")
        assert await answers(cluster, 2, "n2")
        assert await cluster.status("n1") is not None
        await until_in_effect(cluster)
        evidence = await cluster.heal(isolation)
        assert evidence.took_effect
        assert evidence.healed is True
        assert in_order(evidence)
        assert evidence.counters["bytes_withheld"] > 0
        assert evidence.counters["connections_hanging"] > 0
        assert evidence.counters["bytes_passed"] > 0
        assert await answers(cluster, 3, "n1")

    play(tmp_path, story)


@pytest.mark.long
def test_a_cut_that_nobody_felt_did_not_bite(tmp_path: Path) -> None:
    """Broken if a run that proves nothing counts as evidence."""

    async def story(cluster: LocalCluster) -> None:
        short = fault("cut", links=AROUND_N1)
        await cluster.inject(short)
        evidence = await cluster.heal(short)
        assert not evidence.took_effect
        assert evidence.healed is True
        assert "no effect on" in evidence.detail

    play(tmp_path, story, heartbeat_ns=PATIENCE_NS)


@pytest.mark.long
def test_slow_links_are_slow_and_fast_again(tmp_path: Path) -> None:
    """Broken if delay does not reach the clients, or outlives its fault."""

    async def story(cluster: LocalCluster) -> None:
        slow = fault("slow", links=(("client", "n1"),), delay_ns=200_000_000, jitter_ns=10_000_000)
        await cluster.inject(slow)
        begun_ns = cluster.now_ns()
        assert await answers(cluster, 0, "n1")
        assert cluster.now_ns() - begun_ns >= 190_000_000
        evidence = await cluster.heal(slow)
        assert evidence.took_effect
        assert evidence.healed is True
        assert in_order(evidence)
        assert await answers(cluster, 0, "n1")

    play(tmp_path, story)


@pytest.mark.long
def test_a_partition_changes_without_healing_between(tmp_path: Path) -> None:
    """Broken if a link of two shapes is open between them, or the record does not say what was cut when."""

    async def story(cluster: LocalCluster) -> None:
        first, second = (("client", "n1"), ("n1", "client")), (("client", "n1"), ("client", "n2"))
        shapes = (Shape(after_ns=0, links=first), Shape(after_ns=1, links=second))
        changing = fault("changing-cut", links=(*first, second[1]), shapes=shapes, seed=3)
        assert await answers(cluster, 1, "n1")
        await cluster.inject(changing)
        hanging = cluster.spawn(cluster.call(9, "n1", echo(9), PATIENCE_NS))
        assert await cluster.call(1, "n1", echo(1), 200_000_000) == Lost("timeout")
        assert await answers(cluster, 2, "n2")
        await until_in_effect(cluster)
        await cluster.change(changing, 1)
        assert isinstance(await cluster.call(3, "n1", echo(3), 200_000_000), NotSent)
        assert isinstance(await cluster.call(2, "n2", echo(2), 200_000_000), Lost)
        assert await answers(cluster, 4, "n3")
        await until_in_effect(cluster, part_of(changing, 1).id)
        evidence = await cluster.heal(changing)
        assert (evidence.took_effect, evidence.healed) == (True, True)
        assert evidence.counters["shapes"] == evidence.counters["shapes_affected"] == 2
        assert evidence.counters["changes_affected"] == 1
        one, other = evidence.shapes
        assert (one.links, other.links) == (first, second)
        assert one.in_effect_ns is not None and one.until_ns is not None
        assert other.in_effect_ns is not None and other.until_ns is not None
        assert one.asked_ns <= one.in_effect_ns <= other.in_effect_ns <= one.until_ns <= other.until_ns
        assert await answers(cluster, 5, "n1")
        assert await answers(cluster, 6, "n2")
        assert not isinstance(await hanging, Lost)

    play(tmp_path, story)


@pytest.mark.long
def test_jitter_and_bandwidth_take_effect_by_what_was_measured(tmp_path: Path) -> None:
    """Broken if a fault that changed nothing for anybody counts as one that took effect, or the other way round."""

    async def story(cluster: LocalCluster) -> None:
        links = (("client", "n1"), ("n1", "client"))
        faults = (
            fault("jitter", links=links, delay_ns=20_000_000, jitter_ns=20_000_000),
            fault("bandwidth", links=links, bytes_per_s=2_000),
        )
        for each in faults:
            await cluster.inject(each)
            unfelt = await cluster.heal(each)
            assert (unfelt.took_effect, unfelt.healed) == (False, True)
            await cluster.inject(each)
            for _ in range(8):  # one after the other, then all at once: 20 bytes and more each
                assert await answers(cluster, 0, "n1")
            done = await asyncio.gather(*(answers(cluster, process, "n1") for process in range(8)))
            assert all(done)
            evidence = await cluster.heal(each)
            assert evidence.healed is True
            assert in_order(evidence)
            counters = evidence.counters
            assert counters["bytes_delayed"] > 0
            spread_ns = counters["longest_delay_ns"] - counters["shortest_delay_ns"]
            assert evidence.took_effect == (
                counters["bytes_queued"] > 0 if each.does == "bandwidth" else spread_ns >= 10_000_000
            )

    play(tmp_path, story)


def test_a_killed_node_is_dead_and_comes_back(tmp_path: Path) -> None:
    """Broken if kill -9 does not kill, or the restarted node cannot be reached."""

    async def story(cluster: LocalCluster) -> None:
        before = await pid(cluster, "n1")
        kill = fault("kill", nodes=("n1", "n2"))
        await cluster.inject(kill)
        assert not psutil.pid_exists(before)
        assert await cluster.status("n1") is None
        evidence = await cluster.heal(kill)
        assert evidence.took_effect
        assert evidence.healed is True
        assert in_order(evidence)
        assert await pid(cluster, "n1") != before
        assert await answers(cluster, 1, "n1")
        assert cluster.ended() == ()

    play(tmp_path, story)


@pytest.mark.long
def test_a_node_that_two_faults_killed_comes_back_with_the_last(tmp_path: Path) -> None:
    """Broken if healing one fault undoes another one."""

    async def story(cluster: LocalCluster) -> None:
        first, second = (
            fault("kill", nodes=("n1",)),
            Fault(id=2, name="other", does="kill", at_ns=0, until_ns=0, nodes=("n1",)),
        )
        await cluster.inject(first)
        await cluster.inject(second)
        assert (await cluster.heal(first)).healed is None
        assert await cluster.status("n1") is None
        assert (await cluster.heal(second)).healed is True

    play(tmp_path, story)


def test_a_paused_node_is_stopped_with_all_threads_and_goes_on(tmp_path: Path) -> None:
    """Broken if a pause leaves a thread running, or the status of a paused node is waited for."""

    async def story(cluster: LocalCluster) -> None:
        number = await pid(cluster, "n1")
        pause = fault("pause", nodes=("n1",))
        await cluster.inject(pause)
        stats = [path.read_text() for path in Path(f"/proc/{number}/task").glob("*/stat")]
        assert all(") T " in stat for stat in stats)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(cluster._admin, "status", None)  # nobody is asked, so nobody is waited for
            assert await cluster.status("n1") is None
        evidence = await cluster.heal(pause)
        assert evidence.took_effect
        assert evidence.healed is True
        assert in_order(evidence)
        assert await pid(cluster, "n1") == number

    play(tmp_path, story)


@pytest.mark.long
def test_a_cluster_is_stopped_in_the_middle_of_faults(tmp_path: Path) -> None:
    """Broken if Ctrl-C while nodes are paused, killed and cut leaves something behind."""

    async def story(cluster: LocalCluster) -> None:
        await cluster.inject(fault("pause", nodes=("n1",)))
        await cluster.inject(fault("kill", nodes=("n2",)))
        await cluster.inject(fault("cut", links=AROUND_N1))
        waiting = cluster.spawn(cluster.call(0, "n1", echo(1), 10 * SECOND_NS))
        await cluster.stop()
        assert isinstance(await waiting, NotSent)

    play(tmp_path, story)


@pytest.mark.long
def test_a_start_that_is_cancelled_leaves_nothing_behind(tmp_path: Path) -> None:
    """Broken if Ctrl-C during the start leaves half a cluster running."""

    async def cancelled(after_s: float) -> None:
        cluster = LocalCluster(settings(tmp_path))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(cluster.start(), after_s)
        await cluster.stop()
        assert children() == []

    for after_s in (0.001, 0.03, 0.06, 0.1):
        asyncio.run(cancelled(after_s))


def test_a_stop_that_is_cancelled_is_finished_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a second Ctrl-C while a run ends would leave its containers, or what else it has made."""

    async def scene() -> None:
        cluster, may_end = LocalCluster(settings(tmp_path)), asyncio.Event()
        has_ended = []

        async def end() -> None:
            await may_end.wait()
            has_ended.append(True)

        monkeypatch.setattr(cluster, "_end", end)
        stopping = asyncio.create_task(cluster.stop())
        for _ in range(3):
            await asyncio.sleep(0)
            stopping.cancel()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await stopping
        assert has_ended
        await cluster.stop()

    asyncio.run(scene())


def test_ports_that_are_chosen_are_different_ones() -> None:
    """If it failed, one start in ten of a cluster of fifty would end with an address in use."""
    for count in (1, 3, 50):
        span = free_ports(count, "127.0.0.1", range(20_000, 32_000))
        assert sorted(free_ports(count, "127.0.0.1", span)) == sorted({*span})
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        (_, port) = taken.getsockname()
        with pytest.raises(OSError, match=r"1 free ports are needed at 127\.0\.0\.1, found 0"):
            free_ports(1, "127.0.0.1", [port])


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ({"refuses": "the disk is full"}, "n2 does not come up: the disk is full"),
        ({"exits": 3}, r"n2 ended before it was ready \(exit 3\): a last word"),
    ],
)
def test_a_node_that_does_not_come_up_is_told_in_one_line(
    tmp_path: Path, config: dict[str, object], complaint: str
) -> None:
    """Broken if a cluster that cannot start hangs, or does not say why."""
    configs = {node: json.dumps({"name": node}).encode() for node in NODES} | {
        "n2": json.dumps(config).encode()
    }

    async def story(cluster: LocalCluster) -> None:
        raise AssertionError("it started")

    with pytest.raises(ClusterError, match=complaint):
        play(tmp_path, story, configs=configs)
    assert children() == []


def test_a_port_in_use_is_told_in_one_line(tmp_path: Path) -> None:
    """Broken if a taken port ends in a traceback, or is noticed only when nodes cannot talk."""

    async def story(cluster: LocalCluster) -> None:
        raise AssertionError("it started")

    with socket.create_server(("127.0.0.1", 0)) as taken:
        base = taken.getsockname()[1]
        with pytest.raises(ClusterError, match=f"port {base} is in use"):
            play(tmp_path, story, base_port=base)


def test_a_node_that_ends_untold_is_told_once(tmp_path: Path) -> None:
    """Broken if a crash passes unseen, or a fault's kill counts as a crash."""

    async def story(cluster: LocalCluster) -> None:
        assert isinstance(await cluster.call(0, "n1", Call(1, "end", (70,)), PATIENCE_NS), Lost)
        os.kill(await pid(cluster, "n2"), signal.SIGSEGV)
        await cluster.inject(fault("kill", nodes=("n3",)))
        ended = list(cluster.ended())
        while len(ended) < 2:
            await asyncio.sleep(0.005)
            ended += cluster.ended()
        assert {(end.node, end.how) for end in ended} == {("n1", "exit 70"), ("n2", "signal 11")}
        assert cluster.ended() == ()

    play(tmp_path, story)


@pytest.mark.long
def test_a_fault_that_it_cannot_do_is_refused(tmp_path: Path) -> None:
    """Broken if a fault that was not carried out is recorded as one that was."""

    async def story(cluster: LocalCluster) -> None:
        with pytest.raises(WrongUse, match="--cluster local cannot do 'loss'"):
            await cluster.inject(fault("loss", nodes=("n1",)))
        with pytest.raises(WrongUse, match="--cluster local cannot do 'reorder'"):
            await cluster.inject(fault("reorder", links=AROUND_N1, percent=30, delay_ns=1))
        with pytest.raises(WrongUse, match="no node is called n9"):
            await cluster.inject(fault("cut", links=(("n9", "n1"),)))

    play(tmp_path, story)


@pytest.mark.long
def test_a_relay_that_ended_is_told_and_the_rest_is_stopped(tmp_path: Path) -> None:
    """Broken if a run goes on without its network, or cannot be torn down any more."""

    async def story(cluster: LocalCluster) -> None:
        (relay,) = [child for child in children() if "harness.cluster.relay" in child.cmdline()]
        relay.kill()
        relay.wait(PATIENCE_S)
        with pytest.raises(ClusterError, match="the relay ended"):
            await cluster.inject(fault("cut", links=AROUND_N1))
        assert isinstance(await cluster.call(0, "n1", echo(1), PATIENCE_NS), NotSent)

    play(tmp_path, story)


@pytest.mark.long
def test_real_nodes_survive_a_kill_and_a_cut(tmp_path: Path) -> None:
    """Broken if the toy and the real host differ in what a local cluster needs of them."""

    async def story(cluster: LocalCluster) -> None:
        assert isinstance(await cluster.call(0, "n1", Call(1, "box.ctl.promote", ()), PATIENCE_NS), Replied)
        kill, cut = fault("kill", nodes=("n3",)), fault("cut", links=AROUND_N1)
        await cluster.inject(kill)
        assert isinstance(await cluster.call(0, "n1", Replace(2, 512, ("a", 1)), PATIENCE_NS), Replied)
        assert (await cluster.heal(kill)).healed is True
        await cluster.inject(cut)
        assert isinstance(await cluster.call(0, "n1", Replace(3, 512, ("a", 2)), 100_000_000), Lost)
        await until_in_effect(cluster)
        evidence = await cluster.heal(cut)
        assert (evidence.took_effect, evidence.healed) == (True, True)
        assert cluster.ended() == ()

    play(tmp_path, story, configs=qsync_configs(), command=node_host("qsync", "synced"))


def qsync_configs() -> dict[str, bytes]:
    members = tuple(Identity(id=number, name=f"n{number}", uuid=uuid(number)) for number in (1, 2, 3))
    register = SpaceDefinition(id=512, name="register", is_sync=True)
    return {
        node: Configuration(
            name=node,
            cluster_uuid=uuid(9),
            members=members,
            spaces=(register,),
            quorum=2,
            synchro_timeout_ns=SECOND_NS,
            replication_timeout_ns=HEARTBEAT_NS,
        ).to_json()
        for node in NODES
    }


def uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-00000000000{number}"


HARNESS = """
import asyncio, os, pathlib, sys, time
from harness.faults.changing_cut import part_of
from harness.cluster.local.cluster import LocalCluster
from harness.faults.fault import Fault
from tests.harness.cluster import test_local

async def main():
    cluster = LocalCluster(test_local.settings(pathlib.Path(sys.argv[1])))
    await cluster.start()
    await cluster.inject(test_local.fault("pause", nodes=("n1",)))
    print("running", flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.long
def test_a_killed_harness_leaves_nothing_running(tmp_path: Path) -> None:
    """Broken if kill -9 of the harness leaves nodes or the relay behind, paused nodes included."""
    command = [sys.executable, "-c", HARNESS, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as harness:
        assert harness.stdout is not None
        assert harness.stdout.readline() == b"running\n"
        left = psutil.Process(harness.pid).children(recursive=True)
        assert len(left) == len(NODES) + 1
        harness.kill()
    wait_until(lambda: all(is_gone(process) for process in left))


def test_a_disk_that_is_full_at_the_end_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a run whose logs can no more be written would end in a traceback."""

    def is_full(path: Path, by_ns: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(real_cluster, "shift_log", is_full)

    async def story() -> None:
        with pytest.raises(ClusterError, match=r"what the nodes left cannot be kept: .*No space left"):
            await LocalCluster(settings(tmp_path)).stop()

    asyncio.run(story())


def test_a_fault_on_a_machine_that_is_full_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a clock or a disk that cannot be given its orders would end a run with a traceback."""

    class Full:
        async def begin(self) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        end = begin

    monkeypatch.setattr(real_cluster, "action_of", lambda fault: SimpleNamespace(real=lambda *_: Full()))
    fault = Fault(id=3, name="clock", does="clock", at_ns=0, until_ns=1, nodes=("n1",))

    async def story() -> None:
        cluster = LocalCluster(settings(tmp_path))
        for word in (cluster.inject, cluster.heal):
            with pytest.raises(ClusterError, match=r"^fault 3 \(clock\) could not be .*No space left"):
                await word(fault)

    asyncio.run(story())


def test_a_stall_of_the_loop_is_noted_once() -> None:
    """Broken if a harness that was starved blames the cluster for it."""

    async def story() -> None:
        watch = StallWatch(time.monotonic_ns(), stalled_ms_min=100)
        running = asyncio.create_task(watch.run())
        await asyncio.sleep(0.03)
        watch.stalls()
        time.sleep(0.2)
        await asyncio.sleep(0.03)
        assert max(stalled_ms for _, stalled_ms in watch.stalls()) >= 150
        assert watch.stalls() == ()
        running.cancel()

    asyncio.run(story())
