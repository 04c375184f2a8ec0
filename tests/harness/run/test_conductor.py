"""The conductor, with a made-up cluster: what is recorded when, and that everything ends whatever fails."""

from __future__ import annotations

import gc
import io
from collections.abc import Awaitable, Mapping
from typing import Any, cast

import msgspec
import pytest

from checkers.history import jsonl
from harness.clients.client import MessageClient
from harness.clients.operations import Asked, Outcome
from harness.clients.reply import Lost, NotSent, Replied, Reply
from harness.cluster.performing import Conversing
from harness.cluster.protocol import Ended, Orphans
from harness.errors import ClusterError, StoreError
from harness.faults.fault import Fault
from harness.plan.plan import SECOND_NS
from harness.run import conductor
from harness.run.assemble import header, parts_of
from harness.run.conductor import Conductor, step_ns_of
from harness.run.course import Course
from harness.run.monitor import Monitor
from harness.systems.plans import planned
from harness.workloads import WORKLOADS
from nodes.iproto.messages import Answer, Call, Refusal, Request
from tests.harness.fake_cluster import AsyncioCluster, FakeCluster
from tests.harness.run.conducted import MILLISECOND_NS, PAUSE, Recorded, drawn, operation


def test_an_invocation_is_recorded_before_anything_is_sent() -> None:
    """If it failed, an operation that a killed harness had sent could be missing from the record: a false verdict."""
    lines_when_asked: list[bytes] = []
    cluster = FakeCluster()
    plan = drawn(operation(10))
    parts = parts_of(plan)
    file = io.BytesIO()

    def on_call(process: int, node: str, request: Request) -> None:
        if process >= 0:
            lines_when_asked.append(file.getvalue().splitlines()[-1])

    cluster.on_call = on_call
    record = jsonl.Writer(file, header(parts))
    cluster.run(Conductor(plan, cluster, parts.system, parts.workload, record).run())
    assert lines_when_asked
    assert all(b'"type":"invoke"' in line for line in lines_when_asked)


def test_after_an_unknown_outcome_the_worker_goes_on_as_a_new_process() -> None:
    """If it failed, the record would say that an operation had ended which may still take effect."""
    replies: dict[int, Reply] = {2: Lost("reset"), 4: Replied(Refusal(1, 217, "rolled back"))}
    count = 0

    def answering(process: int, node: str, statement: list[Any]) -> Reply | None:
        nonlocal count
        count += 1
        return replies.get(count)

    plan = drawn(*(operation(10 * number) for number in range(1, 6)))
    history = Recorded(plan, FakeCluster(answering=answering)).history
    load = [(one.process, one.type) for one in history.operations if one.phase == "load"]
    assert load == [(0, "ok"), (0, "info"), (2, "ok"), (2, "info"), (3, "ok")]
    assert [one.process for one in history.operations if one.phase == "final"] == [4, 5, 6, 7]


def test_after_silence_a_connection_is_new_and_after_an_answer_it_stays() -> None:
    """If it failed, the answer to an operation of unknown outcome could be taken for that to the next one; or each
    write that is only submitted would cost a connection."""
    submitted = Replied(Answer(1, ({"committed": None, "role": "owner", "results": [None]},)))
    replies: list[Reply | None] = [None, submitted, Lost("reset"), None]
    cluster = FakeCluster(answering=lambda *_: replies.pop(0) if replies else None)
    connections: list[int] = []
    cluster.on_call = lambda process, *_: connections.append(process)
    plan = drawn(*(operation(10 * number, wait="submit") for number in range(1, 5)), commit_wait="submit")
    history = Recorded(plan, cluster).history
    load = [(one.process, one.type) for one in history.operations if one.phase == "load"]
    assert load == [(0, "ok"), (0, "info"), (2, "info"), (3, "ok")]
    assert [each for each in connections if each >= 0][:4] == [0, 0, 0, 3]


def test_a_write_that_was_to_wait_is_not_only_submitted() -> None:
    """If it failed, a store that does not wait would be judged by the rules of writes that asked for no waiting."""
    submitted = Replied(Answer(1, ({"committed": None, "role": "owner", "results": [None]},)))
    replies: list[Reply | None] = [submitted, None]
    cluster = FakeCluster(answering=lambda *_: replies.pop(0) if replies else None)
    recorded = Recorded(drawn(operation(10), operation(20)), cluster)
    load = [(one.type, one.error) for one in recorded.history.operations if one.phase == "load"]
    assert load == [("info", "unexpected answer: not confirmed, as was asked for"), ("ok", None)]


def test_an_outcome_that_is_known_keeps_the_process() -> None:
    """If it failed, processes would be used up by reads that had no effect and by writes that were never sent."""
    replies: list[Reply] = [NotSent("refused"), Replied(Refusal(1, 7, "read-only")), Lost("reset")]
    plan = drawn(operation(10), operation(20), operation(30, "read"), operation(40))
    cluster = FakeCluster(answering=lambda *_: replies.pop(0) if replies else None)
    load = [one for one in Recorded(plan, cluster).history.operations if one.phase == "load"]
    assert [(one.process, one.type) for one in load] == [(0, "fail"), (0, "fail"), (0, "fail"), (0, "ok")]


def test_operations_whose_time_passed_are_left_out() -> None:
    """If it failed, a worker that had waited for an answer would fire everything it had missed at once."""
    plan = drawn(*(operation(at_ms) for at_ms in (10, 20, 390, 600, 790)))
    cluster = FakeCluster(answer_ns=400 * MILLISECOND_NS)
    recorded = Recorded(plan, cluster)
    begun = [
        event.time_ns // MILLISECOND_NS
        for event in recorded.events
        if event.type == "invoke" and event.phase == "load"
    ]
    # Set-up takes 400 ms, an answer too: 390 and 790 are late by a little, the others by more than a tenth of a second.
    assert begun == [400, 800]
    told = [event.value for event in recorded.events if (event.process, event.f) == ("harness", "skipped")]
    assert [(each["worker"], each["count"], each["kinds"]) for each in told] == [
        (0, 2, {"write": 2}),
        (0, 1, {"write": 1}),
    ]
    assert [(each["from_ns"] // MILLISECOND_NS, each["to_ns"] // MILLISECOND_NS) for each in told] == [
        (10, 20),
        (600, 600),
    ]
    assert recorded.conductor.progress.skipped == 3


def test_a_compare_expects_what_its_worker_last_saw() -> None:
    """If it failed, nearly every compare-and-set would fail, and tell nothing."""
    plan = drawn(
        operation(10),
        operation(20, "cas"),
        operation(30, "cas", key="y"),
        operation(40, "read"),
        operation(50, "cas"),
        operation(45, "cas", worker=1),
    )
    history = Recorded(plan, FakeCluster()).history
    asked = [(one.process, one.key, list(one.value), one.type) for one in history.select(f="cas")]
    assert asked == [
        (0, "x", [11, 21], "ok"),
        (0, "y", [None, 31], "ok"),
        (1, "x", [None, 46], "fail"),
        (0, "x", [21, 51], "ok"),
    ]


def test_the_final_phase_reads_every_key_at_the_owner_and_dumps_every_node() -> None:
    """If it failed, a lost write that nobody read again would stay unseen."""
    plan = drawn(operation(10), operation(20, key="y"), operation(30, "read", key="z", worker=1))
    history = Recorded(plan, FakeCluster()).history
    final = history.select(phase="final")
    assert [(one.key, one.node, one.mode) for one in final if one.f == "read"] == [
        (key, "n1", "read-confirmed") for key in ("x", "y", "z")
    ]
    assert [one.node for one in history.dumps] == ["n1", "n2", "n3"]
    assert history.dumps[0].value == {"spaces": {"register": [["x", 11], ["y", 21]]}}
    settled = [event.value for event in history.events if event.f == "settled"]
    assert settled == [True]


def test_each_member_is_dumped_whoever_leads_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, an election behind the final reads would leave out the dump of a member, where the plan's first
    leader has left: a write that is lost there would stay unseen."""
    leaders = ["n2", "n3"]

    async def has_settled(monitor: Monitor) -> bool:
        deployed = monitor.present.deployed
        deployed.members = deployed.members.without("n1")
        monitor.present.leads(leaders.pop(0))
        return True

    monkeypatch.setattr(Monitor, "has_settled", has_settled)
    history = Recorded(drawn(operation(10)), FakeCluster()).history
    assert leaders == []
    assert sorted(str(one.node) for one in history.dumps) == ["n2", "n3"]


def test_a_queue_is_emptied_by_takes_until_one_finds_nothing_or_its_time_is_over() -> None:
    """If it failed, a queue that a client cannot read as a whole would keep what is lost to itself; or a store that
    gives out an element for ever would keep the run from ending."""
    left = {"a": [11, 21], "b": []}

    def answering(process: int, node: str, statement: Any) -> Reply | None:
        if statement[0] != "take":
            return None
        key = statement[2]
        element = 31 if key == "endless" else left[key].pop(0) if left[key] else None
        return Replied(Answer(0, ({"committed": True, "role": "owner", "results": [element]},)))

    loads = [
        msgspec.structs.replace(operation(10 * place, "enqueue", key=key), value=place)
        for place, key in enumerate(("a", "b", "endless"), 1)
    ]
    recorded = Recorded(drawn(*loads, workload="message-queue"), FakeCluster(answering=answering))
    assert recorded.error is None
    final = recorded.history.select(phase="final", f="dequeue")
    assert [(one.key, one.value, one.error) for one in final if one.key != "endless"] == [
        ("a", 11, None),
        ("a", 21, None),
        ("a", None, "empty"),
        ("b", None, "empty"),
    ]
    endless = [one for one in final if one.key == "endless"]
    assert 9 < ((endless[-1].complete_ns or 0) - endless[0].invoke_ns) / 1e9 < 11
    (sentence,) = WORKLOADS["message-queue"].missing(recorded.history)
    assert sentence.startswith(
        "1 key had no final read that had to be fresh, endless among them: a dequeue answered"
    )


def test_final_reads_of_a_library_share_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a run of 150 keys would end in "too many connections", and its end would be unread."""
    clients: set[int] = set()
    plan = drawn(*(operation(place, key=f"k{place}") for place in range(20)))
    client = cast(MessageClient, parts_of(plan).system.client)

    class Performs(FakeCluster):
        async def perform(self, process: int, node: str, asked: Asked, timeout_ns: int) -> Outcome:
            clients.add(process)
            return await Conversing(client, self).perform(process, node, asked, timeout_ns)

    monkeypatch.setattr(conductor, "performing", lambda client, cluster: cluster)
    history = Recorded(plan, Performs()).history
    assert len({each.process for each in history.select(phase="final")}) == 23
    assert len(clients) <= 3, "a worker, the final reads, the dumps"


class HangsAtTheEnd(FakeCluster):
    """n1 answers nothing that is asked after the load."""

    async def call(self, process: int, node: str, request: Request, timeout_ns: int) -> Reply:
        if node != "n1" or self.now_ns() < 200 * MILLISECOND_NS:
            return await super().call(process, node, request, timeout_ns)
        await self.sleep_until(self.now_ns() + timeout_ns)
        return Lost("timeout")


def test_a_node_that_hangs_at_the_end_is_not_waited_for_again_and_again() -> None:
    """If it failed, each key of a node that hangs would cost ten seconds, and a campaign its time."""
    keys = [operation(place, key=f"k{place}") for place in range(20)]
    recorded = Recorded(drawn(*keys), HangsAtTheEnd())
    finals = [each for each in recorded.history.operations if each.phase == "final" and each.node == "n1"]
    assert len(finals) == 21, "every key and the dump are asked for all the same"
    waits_s = [round(((each.complete_ns or 0) - each.invoke_ns) / 1e9) for each in finals]
    assert waits_s == [10, *[2] * 20]


def test_a_cluster_that_does_not_settle_is_told() -> None:
    """If it failed, final reads of nodes that still change would pass for the end of the run."""
    recorded = Recorded(drawn(operation(10)), FakeCluster(settled=False))
    assert [event.value for event in recorded.of("harness") if event.f == "settled"] == [False]
    assert recorded.cluster.now_ns() < 2_000 * MILLISECOND_NS


def test_an_answer_that_is_late_when_the_wait_ends_leaves_no_node_out() -> None:
    """If it failed, nodes that stay apart for good would pass undecided on a busy machine."""

    class LateAtTheEnd(FakeCluster):
        def begin_now(self) -> None: ...

        async def status(self, node: str) -> Mapping[str, object] | None:
            is_late = (
                node == "n3" and 1_150 < self.now_ns() / MILLISECOND_NS < 1_230
            )  # the wait ends at 1,251
            return None if is_late else await super().status(node)

    recorded = Recorded(drawn(operation(10)), LateAtTheEnd(settled=False))
    ups = [event.value["up"] for event in recorded.of("monitor") if event.node == "n3"]
    assert (False in ups, ups[-1]) == (True, True)


BROKEN = RuntimeError("our own bug")


@pytest.mark.parametrize("kind", [FakeCluster, AsyncioCluster])
@pytest.mark.parametrize("method", ["start", "call", "status", "inject", "heal"])
def test_tear_down_runs_whatever_failed(kind: type[FakeCluster], method: str) -> None:
    """If it failed, nodes would outlive a run that broke, or its error would be lost, or be told a second time."""
    cluster = kind(raises={method: BROKEN})
    recorded = Recorded(drawn(operation(10), operation(300), faults=(PAUSE,)), cluster)
    gc.collect()
    assert recorded.error is BROKEN
    assert cluster.stopped == 1
    assert getattr(cluster, "complaints", []) == []
    assert recorded.file.getvalue().endswith(b"\n")


@pytest.mark.parametrize("kind", [FakeCluster, AsyncioCluster])
@pytest.mark.parametrize("worker", [0, 1])
def test_the_error_of_any_worker_ends_the_run_in_order(kind: type[FakeCluster], worker: int) -> None:
    """If it failed, a bug in one worker would be lost, or told only when the last of the others is done."""
    cluster = kind()

    def on_call(process: int, node: str, request: Request) -> None:
        assert isinstance(request, Call)
        if process == worker and cluster.now_ns() > 70 * MILLISECOND_NS:
            raise BROKEN

    cluster.on_call = on_call
    operations = [operation(at_ms, worker=at_ms // 10 % 2) for at_ms in range(10, 2_000, 10)]
    long = Fault(
        id=0,
        name="pause",
        does="pause",
        at_ns=50 * MILLISECOND_NS,
        until_ns=1_900 * MILLISECOND_NS,
        nodes=("n2",),
    )
    recorded = Recorded(drawn(*operations, faults=(long,)), cluster)
    gc.collect()
    assert recorded.error is BROKEN
    assert cluster.at_work == {}, "the fault was left in place"
    assert [fault.end_index is not None for fault in recorded.history.faults] == [True]
    assert recorded.events[-1].time_ns < 1_000 * MILLISECOND_NS
    assert getattr(cluster, "complaints", []) == []


class Buffered(io.BytesIO):
    """A record on a disk: `kept` is what a kill would leave."""

    kept = b""

    def flush(self) -> None:
        self.kept = self.getvalue()


@pytest.mark.parametrize(
    ("method", "line"),
    [("inject", b'"process":"nemesis"'), ("stop", b'"f":"dump"'), ("stop", b'"f":"crash"')],
)
def test_what_was_recorded_is_on_disk_before_nodes_are_touched(method: str, line: bytes) -> None:
    """If it failed, a harness that is killed while a fault begins, or while nodes are slow to stop, would leave a
    record without that fault, or without the end of the run."""
    kept: list[bytes] = []

    class Touched(FakeCluster):
        def _asked(self, asked: str, detail: object = "") -> None:
            if asked == method:
                kept.append(file.kept)
            super()._asked(asked, detail)

    cluster, file = Touched(), Buffered()
    cluster.later(
        2_200 * MILLISECOND_NS, lambda: cluster.to_end.append(Ended("n2", 2_200 * MILLISECOND_NS, "exit 1"))
    )
    plan = drawn(operation(10), operation(2_199, "read"), faults=(PAUSE,))
    parts = parts_of(plan)
    cluster.run(
        Conductor(plan, cluster, parts.system, parts.workload, jsonl.Writer(file, header(parts))).run()
    )
    assert len(kept) == 1
    assert line in kept[0]


def test_processes_that_are_found_when_nodes_are_stopped_are_recorded() -> None:
    """If it failed, a store whose workers outlive it would not be found out: most are found at the very end."""

    class LeavesWorkers(FakeCluster):
        def orphans(self) -> tuple[Orphans, ...]:
            return (Orphans("n2", self.now_ns(), "worker 7"),) * self.stopped

    told = Recorded(drawn(operation(10)), LeavesWorkers()).of("harness")
    assert [event.node for event in told if event.f == "orphans"] == ["n2"]


def test_a_record_that_cannot_be_kept_ends_the_run_and_the_cluster() -> None:
    """If it failed, a full disk would leave nodes running, or the run going on with nothing kept of it."""

    class Full(io.BytesIO):
        def flush(self) -> None:
            if cluster.now_ns() > 20 * MILLISECOND_NS:
                raise StoreError("cannot write the history: no space left on device")

    for kind in (FakeCluster, AsyncioCluster):
        cluster = kind()
        plan = drawn(*(operation(at_ms) for at_ms in range(10, 2_000, 10)), faults=(PAUSE,))
        parts = parts_of(plan)
        record = jsonl.Writer(Full(), header(parts))
        with pytest.raises(StoreError):
            cluster.run(Conductor(plan, cluster, parts.system, parts.workload, record).run())
        gc.collect()
        assert cluster.stopped == 1
        assert cluster.at_work == {}
        assert getattr(cluster, "complaints", []) == []
        ends = [call for call in cluster.calls if call.startswith("call")]
        assert len(ends) < 100, "the load went on although nothing was recorded"


@pytest.mark.parametrize("kind", [FakeCluster, AsyncioCluster])
def test_an_interrupt_ends_the_load_in_order(kind: type[FakeCluster]) -> None:
    """If it failed, Ctrl-C would leave faults in place, or operations open, or would wait for the whole plan."""
    operations = [operation(at_ms) for at_ms in range(10, 200, 10)]
    rare = operation(60_000, worker=1)  # a worker with nothing to do hears it as well
    long = Fault(
        id=0,
        name="pause",
        does="pause",
        at_ns=50 * MILLISECOND_NS,
        until_ns=900_000 * MILLISECOND_NS,
        nodes=("n2",),
    )
    next_ = Fault(
        id=1,
        name="pause",
        does="pause",
        at_ns=910_000 * MILLISECOND_NS,
        until_ns=920_000 * MILLISECOND_NS,
        nodes=("n2",),
    )
    cluster = kind()
    recorded = Recorded(
        drawn(*operations, rare, faults=(long, next_), time_limit_s=1000),
        cluster,
        at={100: lambda conductor: conductor.interrupt()},
    )
    assert recorded.error is None
    assert cluster.at_work == {}
    assert cluster.stopped == 1
    history = recorded.history
    assert [fault.end_index is not None for fault in history.faults] == [True]
    assert all(one.complete_index is not None for one in history.operations)
    assert history.select(phase="final") == ()
    assert [event.f for event in recorded.of("harness")] == ["interrupted"]
    assert history.events[-1].time_ns < 1_000 * MILLISECOND_NS


def test_an_interrupt_is_heard_during_the_final_reads() -> None:
    """If it failed, Ctrl-C would wait for a read of every key, each up to its timeout, and nobody could tell after."""
    cluster = FakeCluster()
    conductors: list[Conductor] = []

    def on_call(process: int, node: str, request: Request) -> None:
        if conductors and process == 2:
            conductors[0].interrupt()

    cluster.on_call = on_call
    plan = drawn(operation(10), operation(20, key="y"), operation(30, key="z"))
    recorded = Recorded(plan, cluster, at={1: conductors.append})
    assert len(recorded.history.select(phase="final")) == 1
    assert recorded.of("harness")[-1].f == "interrupted"


@pytest.mark.parametrize("phase", ["starting", "load", "settling", "final reads"])
def test_a_view_that_breaks_breaks_nothing_but_the_run(phase: str) -> None:
    """If it failed, a bug in the live view would leave a cluster running."""
    cluster = FakeCluster()
    plan = drawn(operation(10))
    parts = parts_of(plan)
    record = jsonl.Writer(io.BytesIO(), header(parts))

    def show(progress: Any) -> None:
        if progress.phase == phase:
            raise BROKEN

    conductor = Conductor(plan, cluster, parts.system, parts.workload, record, on_progress=show)
    if phase == "starting":
        cluster.run(conductor.run())  # there is nothing to show before the load begins
    else:
        with pytest.raises(RuntimeError, match="our own bug"):
            cluster.run(conductor.run())
    assert cluster.stopped == 1


def test_progress_counts_what_the_verdict_counts() -> None:
    """If it failed, the live view would tell another story than the verdict, which leaves the final reads out."""
    replies: list[Reply] = [Lost("reset"), NotSent("refused")]
    cluster = FakeCluster(answering=lambda *_: replies.pop(0) if replies else None)
    recorded = Recorded(drawn(*(operation(at_ms) for at_ms in (10, 20, 30, 40))), cluster)
    progress = recorded.conductor.progress
    assert recorded.history.select(phase="final")
    kinds = [one.type for one in recorded.history.select(phase="load")]
    assert (progress.ok, progress.fail, progress.info) == tuple(
        kinds.count(word) for word in ("ok", "fail", "info")
    )
    assert progress.active == {}


class SlowToStart(FakeCluster):
    """Its nodes come up after five seconds, as containers of a busy machine do."""

    def __init__(self) -> None:
        super().__init__()
        self._zero_ns = 0

    def now_ns(self) -> int:
        return super().now_ns() - self._zero_ns

    def sleep_until(self, time_ns: int) -> Awaitable[None]:
        return super().sleep_until(self._zero_ns + time_ns)

    async def start(self) -> None:
        await self.sleep_until(5_000 * MILLISECOND_NS)


class SlowWithATimeOfItsOwn(SlowToStart):
    def begin_now(self) -> None:
        self._zero_ns = self._agenda.now_ns


def test_the_times_of_a_plan_are_those_of_load_and_faults() -> None:
    """If it failed, a machine that is slow to start nodes would leave out the first operations and the first faults."""
    plan = drawn(operation(10), operation(20, key="y"), faults=(PAUSE,))
    late = Recorded(plan, SlowToStart())
    assert [event.f for event in late.of("harness") if event.f == "skipped-fault"] == ["skipped-fault"]
    run = Recorded(plan, SlowWithATimeOfItsOwn())
    assert run.error is None
    assert not [event for event in run.events if event.f == "skipped-fault"]
    begun = [
        event.time_ns for event in run.events if event.type == "invoke" and event.process in (0, "nemesis")
    ]
    assert begun == [10 * MILLISECOND_NS, 20 * MILLISECOND_NS, PAUSE.at_ns]


@pytest.mark.parametrize("comes_up", [True, False])
@pytest.mark.parametrize("how", ["exit 0", "exit 1", "exit 64", "signal 6"])
def test_a_node_that_ends_before_all_were_ready_is_a_start_that_failed(how: str, comes_up: bool) -> None:
    """If it failed, a store that cannot start would be an anomaly; or a crash after the start be excused."""
    cluster = FakeCluster(raises={} if comes_up else {"start": ClusterError("n1 does not come up")})
    cluster.to_end.append(Ended("n1", 0, how, ("a last line",)))
    recorded = Recorded(drawn(operation(10)), cluster)
    assert [crash.node for crash in recorded.history.crashes] == (["n1"] if comes_up else [])
    assert (recorded.error is None) == comes_up


def test_ten_thousand_workers_do_not_wake_up_ten_times_a_second_each() -> None:
    """That alone kept a core busy; in virtual time the steps are part of the trace."""
    many = planned(workers=10_000)
    assert 10_000 * SECOND_NS // step_ns_of(many) <= 5_000
    assert step_ns_of(planned(workers=10)) == SECOND_NS // 10
    assert step_ns_of(many.changed(cluster="sim")) == SECOND_NS // 10


def test_the_error_that_ended_a_run_is_the_first_one() -> None:
    """If it failed, a run would be told to have broken of what its breaking led to."""

    async def breaks(why: str) -> None:
        raise ClusterError(why)

    cluster = FakeCluster()
    course = Course(cluster)
    for why in ("the first", "the second"):
        cluster.run(course.part(breaks(why)))
    assert course.is_interrupted
    assert str(course.failure) == "the first"
