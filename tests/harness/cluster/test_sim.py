"""The simulated cluster: what the harness sees of the virtual world, and that each fault is felt and healed."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.clients.reply import Lost, NotSent, Replied
from harness.cluster.sim.cluster import SimCluster
from harness.cluster.sim.virtual_tasks import Pending
from harness.errors import ClusterError, StoreError
from harness.faults.fault import Evidence, Fault, Shape
from harness.faults.node_options import Decisive
from harness.faults.overlap import exclude
from harness.plan.plan import SECOND_NS
from harness.run.assemble import parts_of, simulated
from harness.systems.framed_wire import FRAMED
from harness.systems.iproto_wire import IPROTO
from harness.systems.plans import planned
from nodes.iproto.messages import Answer, Call, Refusal
from nodes.kernel.errors import StartRefused
from tests.nodes.kernel.traced_pings import Pings, described

TENTH_NS = SECOND_NS // 10


def play(
    story: Callable[[SimCluster], Awaitable[Any]],
    folder: Path | None = None,
    *,
    set_up: bool = True,
    **given: Any,
) -> Any:
    """Run a story on nodes that are up and have an owner."""
    plan = planned(**{"cluster": "sim", "configuration": "C", **given})
    parts = parts_of(plan)
    cluster = simulated(parts, folder)

    async def told() -> Any:
        await cluster.start()
        if set_up:
            await parts.system.set_up(plan, cluster)
        outcome = await story(cluster)
        await cluster.stop()
        return outcome

    return cluster.run(told())


def write(sync: int, key: str = "x") -> Call:
    return Call(sync, "qsync.transaction", ([["replace", "register", [key, sync]]], {}))


def read(sync: int, key: str = "x") -> Call:
    return Call(sync, "qsync.transaction", ([["get", "register", key]], {}))


def test_a_request_is_answered_in_virtual_time() -> None:
    """If it failed, a simulated run would be told nothing, or would take real time."""

    async def story(cluster: SimCluster) -> None:
        before_ns = cluster.now_ns()
        reply = await cluster.call(1, "n1", write(1), SECOND_NS)
        assert isinstance(reply, Replied)
        assert isinstance(reply.response, Answer)
        assert 0 < cluster.now_ns() - before_ns < TENTH_NS

    play(story)


def test_one_seed_in_ten_goes_through_bytes() -> None:
    """If it failed, the simulator would never try the codec that real nodes speak."""

    async def story(cluster: SimCluster) -> object:
        reply = await cluster.call(1, "n1", write(1), SECOND_NS)
        assert isinstance(reply, Replied)
        return reply.response

    for seed in (19, 20):
        plan = planned(cluster="sim", seed=seed)
        codec = simulated(parts_of(plan), None).world.network._codec
        assert (codec is not None) == (seed % 10 == 9)
        assert isinstance(play(story, seed=seed), Answer)


def test_outcomes_say_whether_a_request_left() -> None:
    """If it failed, "nobody knows" could be taken for "surely not done"."""

    async def story(cluster: SimCluster) -> None:
        assert isinstance(await cluster.call(1, "n1", write(1), SECOND_NS), Replied)
        assert await cluster.call(1, "n9", write(1), SECOND_NS) == NotSent("no node is called n9")
        cut = fault("cut", links=(("client", "n1"), ("n1", "client")))
        await cluster.inject(cut)
        before_ns = cluster.now_ns()
        assert isinstance(await cluster.call(1, "n1", write(2), TENTH_NS), Lost)
        assert isinstance(await cluster.call(2, "n1", write(3), TENTH_NS), NotSent)
        assert cluster.now_ns() - before_ns == 2 * TENTH_NS
        await cluster.heal(cut)
        kill = fault("kill", nodes=("n1",), id=1)
        await cluster.inject(kill)
        assert isinstance(await cluster.call(3, "n1", write(4), TENTH_NS), NotSent)
        await cluster.heal(kill)
        late = await cluster.call(4, "n1", read(5), SECOND_NS)
        assert isinstance(late, Replied)

    play(story)


def test_a_replica_refuses_writes_and_says_what_it_is() -> None:
    """If it failed, answers of replicas would be judged by the owner's promise."""

    async def story(cluster: SimCluster) -> None:
        refused = await cluster.call(1, "n2", write(1), SECOND_NS)
        assert isinstance(refused, Replied)
        assert isinstance(refused.response, Refusal)
        served = await cluster.call(1, "n2", read(2), SECOND_NS)
        assert isinstance(served, Replied)
        assert isinstance(served.response, Answer)
        (answer,) = served.response.data
        assert isinstance(answer, dict)
        assert answer["role"] == "replica"

    play(story)


def fault(does: Any, **others: Any) -> Fault:
    return Fault(**{"id": 0, "name": "a-fault", "does": does, "at_ns": 0, "until_ns": 0, "seed": 3, **others})


ALL = ("n1", "n2", "n3")
AROUND_N1 = (("n1", "n2"), ("n2", "n1"), ("n1", "n3"), ("n3", "n1"))
SHAPES = (
    Shape(after_ns=0, links=AROUND_N1[:2]),
    Shape(after_ns=SECOND_NS, links=AROUND_N1[1:]),
)
FAULTS = {
    "cut": fault("cut", links=AROUND_N1),
    "one way": fault("cut", links=AROUND_N1[:1]),
    "slow": fault("slow", links=AROUND_N1, delay_ns=TENTH_NS // 2, jitter_ns=TENTH_NS // 4),
    "jitter": fault("jitter", links=AROUND_N1, delay_ns=TENTH_NS // 4, jitter_ns=TENTH_NS // 4),
    "reorder": fault("reorder", links=AROUND_N1, delay_ns=TENTH_NS // 4, percent=30),
    "bandwidth": fault("bandwidth", links=AROUND_N1, bytes_per_s=20_000),
    "changing partitions": fault("changing-cut", links=AROUND_N1, shapes=SHAPES),
    "kill": fault("kill", nodes=("n1",)),
    "pause": fault("pause", nodes=("n2",)),
    "power of all": fault("power", nodes=ALL),
    "slow disk": fault("slow-fsync", nodes=("n1",), delay_ns=TENTH_NS),
    "full disk": fault("disk-error", nodes=("n1",), error="ENOSPC"),
    "clock": fault("clock", nodes=("n3",), jump_ns=-3600 * SECOND_NS, drift_ppm=50_000),
    "clock that strobes": fault("clock", nodes=("n3",), jump_ns=60 * SECOND_NS, delay_ns=TENTH_NS),
    "clock without drift": fault("clock", nodes=("n3",), jump_ns=SECOND_NS),
}


async def endure(cluster: SimCluster, fault: Fault, lasts_ns: int = 2 * SECOND_NS) -> Evidence:
    """The fault, with a client that writes to n1 all the while."""
    await cluster.inject(fault)
    return await stay(cluster, fault, lasts_ns)


async def stay(cluster: SimCluster, fault: Fault, lasts_ns: int) -> Evidence:
    """The rest of a fault that is at work."""
    begun_ns = cluster.now_ns()
    process = 100
    changes = list(enumerate(fault.shapes))[1:]
    while cluster.now_ns() < begun_ns + lasts_ns:
        if changes and cluster.now_ns() >= begun_ns + changes[0][1].after_ns:
            await cluster.change(fault, changes.pop(0)[0])
        reply = await cluster.call(process, "n1", write(process), TENTH_NS)
        process += 1
        if not isinstance(reply, Replied):
            await cluster.sleep_until(cluster.now_ns() + TENTH_NS // 10)
    return await cluster.heal(fault)


@pytest.mark.parametrize("seed", [pytest.param(3, marks=pytest.mark.nightly), 9], ids=["values", "bytes"])
@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_takes_effect_and_healed(name: str, seed: int) -> None:
    """If it failed, a fault would only be believed to have happened, or to be over."""

    async def story(cluster: SimCluster) -> None:
        last_ns = max((shape.after_ns for shape in FAULTS[name].shapes), default=0)
        evidence = await endure(cluster, FAULTS[name], last_ns + SECOND_NS // 2)
        assert (evidence.took_effect, evidence.healed) == (True, True)
        times = [
            evidence.asked_ns,
            evidence.all_in_effect_ns,
            evidence.heal_asked_ns,
            evidence.last_effect_ns,
        ]
        known = [time_ns for time_ns in times if time_ns is not None]
        assert len(known) == 4
        assert known == sorted(known)
        assert evidence.first_effect_ns is not None
        assert evidence.asked_ns <= evidence.first_effect_ns <= known[2]
        assert evidence.counters
        assert evidence.counters.get("links_used") in (None, len(FAULTS[name].links)), "all nodes send"
        assert not evidence.counters.get("shapes_unused"), "all nodes send"
        await cluster.sleep_until(cluster.now_ns() + 2 * SECOND_NS)
        reply = await cluster.call(1, "n1", write(1), SECOND_NS)
        assert isinstance(reply, Replied)
        assert isinstance(reply.response, Answer)
        await cluster.sleep_until(cluster.now_ns() + SECOND_NS)  # the CONFIRM is on its way to the replicas
        statuses = [await cluster.status(node) for node in ALL]
        assert all(status is not None and status["limbo"] == 0 for status in statuses)
        assert cluster.ended() == ()

    play(story, seed=seed)


@pytest.mark.parametrize("name", [name for name, one in FAULTS.items() if not exclude(one, one, Decisive())])
def test_the_end_of_a_fault_leaves_a_like_one_at_work(name: str) -> None:
    """If it failed, with --overlap a fault would be over as soon as an earlier one of its kind is."""
    both = [msgspec.structs.replace(FAULTS[name], id=number) for number in (0, 1)]

    async def story(cluster: SimCluster) -> None:
        await cluster.inject(both[0])
        await cluster.sleep_until(cluster.now_ns() + SECOND_NS)
        await cluster.inject(both[1])
        # Nothing can come through a link that the other one cuts.
        may_pass = FAULTS[name].does != "cut"
        assert (await cluster.heal(both[0])).healed is (True if may_pass else None)
        last_ns = max((shape.after_ns for shape in both[1].shapes), default=0)
        evidence = await stay(cluster, both[1], last_ns + SECOND_NS // 2)
        assert (evidence.took_effect, evidence.healed) == (True, True)

    play(story)


@pytest.mark.parametrize("name", ["cut", "slow", "jitter", "reorder", "bandwidth"])
def test_a_fault_that_nobody_felt_did_not_bite(name: str) -> None:
    """If it failed, a run could be called good under a fault that touched nothing."""

    async def story(cluster: SimCluster) -> None:
        await cluster.inject(FAULTS[name])
        assert not (await cluster.heal(FAULTS[name])).took_effect

    play(story)


def test_killing_and_pausing_the_dead_takes_no_effect_a_second_time() -> None:
    """If it failed, a fault that found nothing to do would count as one that took effect."""

    async def story(cluster: SimCluster) -> None:
        first, second = fault("kill", nodes=("n2",)), fault("kill", nodes=("n2",), id=1)
        await cluster.inject(first)
        assert await cluster.status("n2") is None
        await cluster.inject(second)
        assert not (await cluster.heal(second)).took_effect
        assert (await cluster.heal(first)).took_effect
        assert await cluster.status("n2") is not None

    play(story)


def test_a_paused_node_says_nothing_and_goes_on() -> None:
    """If it failed, a pause would be a kill, or nothing at all."""

    async def story(cluster: SimCluster) -> None:
        pause = fault("pause", nodes=("n1",))
        await cluster.inject(pause)
        assert await cluster.status("n1") is None
        assert isinstance(await cluster.call(1, "n1", read(1), TENTH_NS), NotSent | Lost)
        assert (await cluster.heal(pause)).healed
        assert isinstance(await cluster.call(2, "n1", read(2), SECOND_NS), Replied)

    play(story)


def test_a_node_that_ends_untold_is_told_once() -> None:
    """If it failed, a crash would be no anomaly, or many."""

    async def story(cluster: SimCluster) -> None:
        machine = cluster.world.machines["n2"]
        machine._crash("assertion failed: on purpose")
        (ended,) = cluster.ended()
        assert (ended.node, ended.how) == ("n2", "assertion failed: on purpose")
        assert cluster.ended() == ()
        assert await cluster.status("n2") is None

    play(story)


def test_a_node_that_does_not_start_is_one_line() -> None:
    """If it failed, a run without one of its nodes would begin all the same."""
    parts = parts_of(planned(cluster="sim"))
    cluster = simulated(parts, None)
    machine = cluster.world.machines["n3"]

    class Refuses:
        def step(self, event: object, now: object) -> Any:
            raise StartRefused("the first record is damaged")

        def status(self) -> dict[str, object]:
            return {}

    machine._make = Refuses
    with pytest.raises(ClusterError, match="n3 did not start: refused to start: the first record is damaged"):
        cluster.run(cluster.start())


def test_nothing_left_to_happen_is_a_bug_of_ours() -> None:
    """If it failed, a conductor that waits for what nobody will do would hang for ever."""
    cluster = SimCluster({}, wire=IPROTO, seed=1, heartbeat_ns=1)

    async def waits() -> None:
        await Pending[None]()

    with pytest.raises(RuntimeError, match="nothing is left to happen"):
        cluster.run(waits())


def test_an_interrupted_run_ends_before_its_caller_goes_on() -> None:
    """If it failed, Ctrl-C or SIGTERM would print a traceback: a run's last lines go into a record that is closed."""
    cluster = SimCluster({"a": lambda: Pings([])}, wire=FRAMED, seed=1, heartbeat_ns=1)
    said: list[str] = []

    async def waits() -> None:
        try:
            await Pending[None]()
        finally:
            said.append("over")

    def interrupt() -> None:
        raise KeyboardInterrupt

    cluster.world.agenda.after(1, interrupt)
    run = waits()
    with pytest.raises(KeyboardInterrupt):
        cluster.run(run)
    assert said == ["over"]


def test_the_error_of_a_task_reaches_whoever_awaits_it() -> None:
    """If it failed, a worker's error would be lost in virtual time."""

    async def broken() -> None:
        raise ZeroDivisionError

    async def story(cluster: SimCluster) -> None:
        task = cluster.spawn(broken())
        assert not task.done()
        with pytest.raises(ZeroDivisionError):
            await task

    play(story, set_up=False)


def test_what_the_nodes_leave_behind_is_kept(tmp_path: Path) -> None:
    """If it failed, nobody could look into a node's journal after a simulated anomaly."""

    async def story(cluster: SimCluster) -> None:
        await cluster.call(1, "n1", write(1), SECOND_NS)

    play(story, tmp_path / "nodes")
    for node in ALL:
        folder = tmp_path / "nodes" / node
        assert any(path.suffix == ".xlog" and path.stat().st_size for path in folder.iterdir())
        lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
        assert lines
        assert all(line["node"] == node and line["message"] and line["level"] for line in lines)
        assert [line["time_ns"] for line in lines] == sorted(line["time_ns"] for line in lines)


def test_what_cannot_be_kept_is_one_line(tmp_path: Path) -> None:
    """If it failed, a full disk at the end of a simulated run would be a traceback."""
    (tmp_path / "nodes").write_text("a file where a folder should be")

    async def story(cluster: SimCluster) -> None:
        pass

    with pytest.raises(StoreError, match="nodes"):
        play(story, tmp_path / "nodes")


def test_the_record_of_messages_is_left_behind(tmp_path: Path) -> None:
    """Breaks if a run's folder has no record of what its nodes said to each other, or one of its first life alone."""
    makers = {"a": lambda: Pings(["b"]), "b": lambda: Pings(["a"])}
    cluster = SimCluster(makers, wire=FRAMED, seed=1, heartbeat_ns=1, folder=tmp_path, described=described)

    async def lives() -> None:
        await cluster.start()
        await cluster.sleep_until(cluster.now_ns() + 100_000_000)
        cluster.world.machines["b"].kill()
        cluster.world.machines["b"].start()
        await cluster.sleep_until(cluster.now_ns() + 100_000_000)
        await cluster.stop()

    cluster.run(lives())
    files = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/trace/*"))
    assert files == ["a/trace/trace-000001.jsonl", "b/trace/trace-000001.jsonl", "b/trace/trace-000002.jsonl"]
    rows = [msgspec.json.decode(line) for line in (tmp_path / files[1]).read_bytes().splitlines()]
    assert rows[0][:3] == ["life", "b", 1]
    assert {row[0] for row in rows} == {"life", "send", "receive", "mark"}
