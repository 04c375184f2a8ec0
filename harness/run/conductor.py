"""The conductor of a run: set up, load, faults, heal, settle, final reads, tear down.

It awaits nothing but the cluster, so the same code runs in real and in virtual time. Everything that happens is
recorded in one order: an invocation before anything of it is sent, a completion after its answer was decoded.

| part | does |
|---|---|
| a worker | its own operations, one at a time; after an unknown outcome it goes on as a new process |
| the nemesis (nemesis.py) | one fault after the other in each slot, directed faults beside them |
| the monitor (monitor.py) | asks every node for its state, again and again |
| the recorder (recorder.py) | writes down what all of these do; course.py says whether they go on |
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from msgspec.structs import replace

from checkers.history.jsonl import Writer
from checkers.history.operation import SUBMITTED, Phase
from harness.clients.operations import Completion, Done, Dump
from harness.cluster.performing import Conversing, Performs, performing
from harness.cluster.protocol import BeginsAnew, Cluster
from harness.errors import ClusterError
from harness.faults.hands import Task
from harness.plan.plan import SECOND_NS, SUBMITTING, Operation, Plan
from harness.run.administration.deployed import Deployed
from harness.run.course import Course
from harness.run.draw import faults_of, operations_of
from harness.run.failover import ReelectionOperator, statuses_of
from harness.run.monitor import Monitor
from harness.run.nemesis import Nemesis
from harness.run.present import Present
from harness.run.recorder import Progress, Recorder
from harness.systems.system import System
from harness.workloads.completed import asked_of, completed
from harness.workloads.generators.generator import Value
from harness.workloads.workload import Workload

FINAL_TIMEOUT_NS = 10 * SECOND_NS
SHORT_STEP_NS = SECOND_NS // 10
WAKES_A_SECOND = 5_000
"""Of all workers together."""
SKIPPED_NS = SECOND_NS // 10
"""A worker that is later than this skips the operation."""


def step_ns_of(plan: Plan) -> int:
    """How long each worker sleeps at once. Thousands that wake up ten times a second would keep a core busy by that.
    In virtual time waking up is cheap, and the steps are part of the trace."""
    if plan.cluster == "sim":
        return SHORT_STEP_NS
    return max(SHORT_STEP_NS, plan.workers * SECOND_NS // WAKES_A_SECOND)


@dataclass(slots=True)
class Conductor:
    """Conducts one run of a plan; `interrupt` ends it early, in order."""

    plan: Plan
    cluster: Cluster
    system: System
    workload: Workload
    record: Writer
    on_progress: Callable[[Progress], None] = lambda progress: None
    progress: Progress = field(default_factory=Progress)
    _recorder: Recorder = field(init=False)
    _course: Course = field(init=False)
    _deployed: Deployed = field(init=False)
    _present: Present = field(init=False)
    _monitor: Monitor = field(init=False)
    _nemesis: Nemesis = field(init=False)
    _clients: Performs = field(init=False)
    _next_process: int = 0
    _keys: dict[str, None] = field(default_factory=dict)
    _silent: dict[str, None] = field(default_factory=dict)
    """Nodes that left a final operation without an answer."""
    _is_settled: bool = False
    _request_timeout_ns: int = field(init=False)
    ended_by: str = ""
    """The violation at which the run ended early, if it did."""

    def __post_init__(self) -> None:
        plan, cluster, system = self.plan, self.cluster, self.system
        self._request_timeout_ns = int(plan.request_timeout_s * SECOND_NS)
        self._clients = performing(system.client, cluster)
        self._recorder = recorder = Recorder(cluster, self.record, self.progress, self._show)
        self._course = course = Course(cluster, step_ns_of(plan))
        members = plan.members_at_first
        self._deployed = Deployed(plan, cluster, system, self.workload.spaces, recorder.members, members)
        self._deployed.note_option = recorder.option
        self._present = present = Present(plan, self._deployed, system.owner(plan))
        self._monitor = monitor = Monitor(plan, cluster, system, recorder, course, present)
        self._nemesis = Nemesis(plan, cluster, system, recorder, course, present, monitor)

    def _show(self, progress: Progress) -> None:
        self.on_progress(progress)

    def interrupt(self, why: str = "") -> None:
        """Begin nothing new: what is under way ends, faults are healed, nothing is read any more.

        `why` goes into the record: a reason other than a person's wish.
        """
        self.ended_by = self.ended_by or why
        self._course.interrupt()

    async def run(self) -> None:
        """The whole run. The cluster is stopped whatever happens; what was recorded stays recorded."""
        try:
            await self.cluster.start()
            self._monitor.is_up = True
            try:
                await self._conduct()
            except Exception:
                # The cause may be a node that has just ended, which the cluster has not noticed yet.
                with suppress(ClusterError):  # the first error is the one to report
                    await self._monitor.look_for_ends()
                raise
        finally:
            self._course.is_over = True
            try:
                self._monitor.note_ended()  # a node that broke before the monitor began is an anomaly all the same
                self.record.flush()  # before the stop, which may be slow: a kill meanwhile takes no line away
            finally:
                await self.cluster.stop()
                self._monitor.note_orphans()  # most are found when their nodes are stopped
                if self._monitor.is_up:
                    self._monitor.note_rare_turns()

    async def _conduct(self) -> None:
        try:
            await self.system.set_up(self.plan, self.cluster)
        except ClusterError:
            statuses = (await statuses_of(self.plan, self.cluster)).values()
            reports = self.system.reports
            if any(status is not None and reports.stopped(status) for status in statuses):
                await self._monitor.look()  # nodes that cannot follow each other are why
            raise
        if isinstance(self.cluster, BeginsAnew):
            self.cluster.begin_now()  # the times of a plan are those of load and faults, not of a slow start
        if self.plan.needs_operator and not self._has_own_operator():
            self._monitor.operator = ReelectionOperator(self.plan, self.cluster, self.system)
        if self.plan.fails_over:
            await self._monitor.look()  # operations go to the present leader from the first one on
        await self._begin()
        async with self._operated():
            await self._load()
            await self._settle()
        await self._read()

    # ---- load

    async def _begin(self) -> None:
        """Do what the workload needs before its load."""
        self._next_process = self.plan.workers
        for operation in self.workload.first_operations(self.plan, self._first()):
            process, self._next_process = self._next_process, self._next_process + 1
            if (await self._perform(operation, process, {})).type != "ok":
                raise ClusterError(f"the workload could not begin: {operation.f} did not succeed")

    async def _load(self) -> None:
        self._recorder.phase("load")
        course, nemesis, spawn = self._course, self._nemesis, self.cluster.spawn
        workers = [spawn(course.part(self.work(worker))) for worker in range(self.plan.workers)]
        faults = faults_of(self.plan, self.system)
        is_absent = bool(self._deployed.members.absent)
        if is_absent or self.plan.changes_members or self.plan.changes_quorum:
            self._deployed.tell(settled=True)
        nemesis.begin(faults)
        monitor = spawn(course.part(self._monitor.watch()))
        try:
            for task in (*workers, *nemesis.slots):
                await task
            await nemesis.end_directed()  # behind the slots: the monitor goes on until each fault is healed
            course.is_over = True
            await monitor
        finally:
            course.is_over = True
            for task in workers:
                task.cancel()
            nemesis.cancel()
            monitor.cancel()
        # Parts keep their errors: without this line a broken run would be judged.
        if course.failure is not None:
            raise course.failure
        self._monitor.note_ended()

    async def work(self, worker: int) -> None:
        """Everything that one worker does, from its first operation to its last."""
        process = client = worker
        seen: dict[str, Value] = {}
        skipped: list[Operation] = []
        course, now_ns = self._course, self.cluster.now_ns
        for operation in operations_of(self.plan, self.system, self.workload, worker):
            late_ns = now_ns() - operation.at_ns
            if late_ns < 0:
                await course.wait_until(operation.at_ns)
            if course.is_interrupted:  # which ends the wait early: the operation is not due
                break
            if late_ns > SKIPPED_NS:  # its time passed while this worker waited for an answer
                skipped.append(operation)
                continue
            if skipped:
                self._recorder.skipped(worker, skipped)
            done = await self._perform(operation, process, seen, client=client)
            if done.type == "info":
                # The operation stays open for ever, so its process does nothing more. The connection may still bring
                # its answer, which would be taken for the next one's; not where an answer came ("submitted").
                process, self._next_process = self._next_process, self._next_process + 1
                client = client if done.error == SUBMITTED else process
        self._recorder.skipped(worker, skipped)

    async def _perform(
        self,
        operation: Operation,
        process: int,
        seen: dict[str, Value],
        phase: Phase = "load",
        client: int | None = None,
    ) -> Completion:
        """Perform and record one operation. `client`: the process with the connection, if it is not `process`."""
        workload, now_ns = self.workload, self.cluster.now_ns
        f, key, mode, wait = operation.f, operation.key, operation.mode, operation.wait
        value = workload.resolved(operation, seen)
        node = self._present.name(operation.node)
        asked = asked_of(workload, operation, value)
        # The recorded interval holds the true one: a later begin or an earlier end would accuse a correct store.
        asked_ns = now_ns()
        # Straight to the writer: passing twelve names on costs more than writing the line.
        self.record.record(
            "invoke",
            process,
            f,
            time_ns=asked_ns,
            key=key,
            value=value,
            node=node,
            mode=mode,
            phase=phase,
            wait=wait,
        )
        timeout_ns = self._patience_ns(node, phase)
        connection = process if client is None else client
        outcome = await self._clients.perform(connection, node, asked, timeout_ns)
        done_ns = now_ns()
        if phase == "final" and done_ns - asked_ns >= timeout_ns:
            self._silent[node] = None
        done = completed(workload, operation, value, asked, outcome)
        if done.error == SUBMITTED and wait not in SUBMITTING:
            done = replace(done, error="unexpected answer: not confirmed, as was asked for")
        if mode is not None and isinstance(outcome, Done) and outcome.mode is not None:
            mode = outcome.mode  # what the server did, not what it was asked
        self.record.record(
            done.type,
            process,
            f,
            time_ns=done_ns,
            key=key,
            value=done.value,
            node=node,
            role=done.role,
            mode=mode,
            error=done.error,
            phase=phase,
            wait=wait,
            transaction=outcome.transaction,
        )
        if phase == "load":  # as the verdict counts
            self.progress.count(done.type)
        for touched in workload.keys(operation):
            self._keys[touched] = None
        workload.remember(operation, done, seen)
        return done

    def _patience_ns(self, node: str, phase: str) -> int:
        """How long an answer is waited for; at the end long, but not for each of many reads at a node that hangs."""
        if phase == "final" and node not in self._silent:
            return FINAL_TIMEOUT_NS
        return self._request_timeout_ns

    # ---- the end

    async def _read(self) -> None:
        if not self._course.is_interrupted:
            self._recorder.phase("final reads")
            await self._read_everything()
        if self._course.is_interrupted:  # looked at again: the final reads may have been cut short
            self._recorder.record("info", "harness", "interrupted", value=self.ended_by or None)
        else:
            await self._monitor.look_for_ends()
        self._monitor.note_ended()

    async def _settle(self) -> None:
        if self._course.is_interrupted:
            return
        self._recorder.phase("settling")
        self._is_settled = await self._monitor.has_settled()
        self._recorder.settled(self._is_settled, self._monitor.untold)

    async def _read_everything(self) -> None:
        operations = self.workload.final_operations(self.plan, list(self._keys), self._first())
        await self._perform_all(operations)
        # Final operations may write (a queue is drained): a dump before all nodes have that would show a difference.
        if self._is_settled and not await self._monitor.has_settled():
            self._recorder.settled(False)
        # By names of the plan, which `_perform` exchanges back: after the last look, which may show another leader.
        members = [self._present.name(node) for node in self._deployed.members.present]
        if Dump in self.system.client.speaks:
            await self._perform_all([Operation(at_ns=0, worker=0, f="dump", node=node) for node in members])

    def _first(self) -> str:
        """The node that is asked before and after the load."""
        return self._present.first or self.plan.node_names[0]

    async def _perform_all(self, operations: list[Operation]) -> None:
        # A library has a connection for each client and node: those of hundreds of keys are more than stores take.
        client = None if isinstance(self._clients, Conversing) else self._next_process
        for operation in operations:
            until_ns = self.cluster.now_ns() + FINAL_TIMEOUT_NS
            goes_on = True
            while goes_on:
                if self._course.is_interrupted:
                    return
                process, self._next_process = self._next_process, self._next_process + 1
                done = await self._perform(operation, process, {}, phase="final", client=client)
                # A queue that never ends, because its store gives elements out again, ends the reading of that queue.
                goes_on = self.workload.goes_on(operation, done) and self.cluster.now_ns() < until_ns

    # ---- failover from outside

    @asynccontextmanager
    async def _operated(self) -> AsyncIterator[None]:
        """An operator from outside looks after the nodes, if the system needs that."""
        is_over = False
        task: Task[None] | None = None
        if self._has_own_operator():
            work = self.system.operate(self.plan, self.cluster, self._recorder.operator, lambda: is_over)
            task = self.cluster.spawn(self._course.part(work))
        try:
            yield
        finally:
            is_over = True
            if task is not None:
                task.cancel()

    def _has_own_operator(self) -> bool:
        return self.system.is_operated(self.plan)
