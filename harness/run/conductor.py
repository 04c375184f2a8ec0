"""The conductor of a run: set up, load, faults, heal, settle, final reads, tear down.

It awaits nothing but the cluster, so the same code runs in real and in virtual time. Everything that happens is
recorded in one order: an invocation before anything of it is sent, a completion after its answer was decoded.

| who | does |
|---|---|
| a worker | its own operations, one at a time; after an outcome that nobody knows it goes on as a new process |
| the nemesis | one fault after the other in each lane, its start, its end and the evidence of what it did |
| directed faults | each at its time or moment, beside the others |
| the monitor | asks every node for its state, notes nodes that ended untold, and keeps the record on disk |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from checkers.history.jsonl import Writer
from checkers.history.operation import SUBMITTED
from harness.administration.actions import Action, action_of
from harness.administration.deployed import Deployed
from harness.cluster.performing import Performs, performing
from harness.cluster.protocol import (
    BeginsAnew,
    ChangesShapes,
    Cluster,
    Ended,
    FindsOrphans,
    LooksForEnds,
    Task,
    WatchesMoments,
)
from harness.errors import ClusterError
from harness.faults.directed import in_place
from harness.faults.fault import Evidence, Fault
from harness.faults.lanes import ADMINISTERED, MEMBERSHIP, STEPS, exclude, lanes_of
from harness.faults.membership import Membership
from harness.generators.generator import Value
from harness.operations import Completion, Done, Dump
from harness.run.draw import faults_of, operations_of
from harness.run.failover import (
    Failover,
    Operator,
    fail_over,
    may_keep_owners_away,
    owner_within_ns,
    statuses_of,
)
from harness.run.plan import SECOND_NS, SUBMITTING, Operation, Plan
from harness.systems.system import CANNOT_JOIN, Operated, System, TellsWhyItCannotJoin
from harness.workloads.completed import asked_of, completed
from harness.workloads.workload import Remembers, Workload

MONITOR_EVERY_NS = SECOND_NS // 4
SETTLE_POLL_NS = SECOND_NS // 20
FINAL_TIMEOUT_NS = 10 * SECOND_NS
LEFT_OUT_NS = SECOND_NS // 10
"""A worker that is later than this leaves the operation out; a lane, a fault that has no time left then."""
GONE = "who it was for had left, or nobody could come"
OPTION = "option"
"""A line of the history: from when on a node has another value of an option."""
LATE = "its time passed while the one before it was at work or healed"


@dataclass(slots=True)
class Progress:
    """What a live view shows; counts grow while the run goes on."""

    phase: str = "starting"
    ok: int = 0
    fail: int = 0
    info: int = 0
    skipped: int = 0
    """Operations that were left out because their worker was late."""
    active: dict[int, Fault] = field(default_factory=dict)
    states: dict[str, Mapping[str, object] | None] = field(default_factory=dict)


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
    _next_process: int = 0
    _clients: Performs = field(init=False)
    _is_interrupted: bool = False
    _is_over: bool = False
    _is_up: bool = False
    """All nodes came up once."""
    _failure: Exception | None = None
    _keys: dict[str, None] = field(default_factory=dict)
    _begun: dict[int, None] = field(default_factory=dict)
    """Directed faults whose moment has come."""
    _is_ending: bool = False
    _is_settled: bool = False
    _failovers: dict[int, Failover] = field(default_factory=dict)
    _actions: dict[int, Action] = field(default_factory=dict)
    _deployed: Deployed = field(init=False)
    """Who is a member now, among the rest."""
    _operator: Operator | None = None
    _has_looked: bool = False
    """Whether it was looked who ended, or tried to, on a cluster that has to."""
    _silent: dict[str, None] = field(default_factory=dict)
    """Nodes that left a final operation without an answer."""
    _owner: str = ""
    """The node that takes writes now, as far as we know."""
    _former: str = ""
    """The node that did before; "" if there was none."""
    _first_owner: str = field(init=False)
    """The owner that the plan was drawn for."""
    _remembering: Remembers | None = field(init=False)
    """The workload, if it does: asking a protocol once an operation would cost more than most operations."""

    def __post_init__(self) -> None:
        self._first_owner = self.system.owner(self.plan)
        self._remembering = self.workload if isinstance(self.workload, Remembers) else None
        members = Membership.at_first(
            self.plan.node_names, self.plan.quorum, self.plan.voters, self.plan.without_a_vote
        )
        self._clients = performing(self.system.client, self.cluster)
        self._deployed = Deployed(
            self.plan, self.cluster, self.system, self.workload.spaces, self._note_members, members
        )
        self._deployed.note_option = self._note_option

    def _note_members(self, value: Mapping[str, object]) -> None:
        self._record("info", "harness", "members", value=value)

    def _note_option(self, node: str, value: Mapping[str, object]) -> None:
        self._record("info", "harness", OPTION, node=node, value=value)

    async def run(self) -> None:
        """The whole run. The cluster is stopped whatever happens; what was recorded stays recorded."""
        try:
            await self.cluster.start()
            self._is_up = True
            try:
                await self._conduct()
            except Exception:
                await self._look_all_the_same()
                raise
        finally:
            self._is_over = True
            try:
                self._note_ended()  # a node that broke before the monitor began is an anomaly all the same
                self.record.flush()
            finally:
                await self.cluster.stop()
                self._note_orphans()

    async def _conduct(self) -> None:
        try:
            await self.system.set_up(self.plan, self.cluster)
        except ClusterError:
            statuses = (await statuses_of(self.plan, self.cluster)).values()
            if any(status is not None and status.get("stopped") for status in statuses):
                await self._look_at_nodes()  # nodes that cannot follow each other are why
            raise
        if isinstance(self.cluster, BeginsAnew):
            self.cluster.begin_now()  # the times of a plan are those of load and faults, not of a slow start
        if self.plan.needs_operator and not self._has_own_operator():
            self._operator = Operator(self.plan, self.cluster, self.system)
        if self.plan.fails_over:
            await self._look_at_nodes()
        await self._begin()
        async with self._operated():
            await self._load()
            await self._settle()
        await self._read()

    async def _look_all_the_same(self) -> None:
        """What broke a run may be a node that has just ended, and that nobody has seen yet."""
        with suppress(ClusterError):  # what broke first is what is told
            await self._look()

    async def _look(self) -> None:
        """Once a run: who cannot see it has waited for long."""
        if isinstance(self.cluster, LooksForEnds) and not self._has_looked:
            self._has_looked = True
            await self.cluster.look()

    def interrupt(self) -> None:
        """Begin nothing new: what is under way ends, faults are healed, nothing is read any more."""
        self._is_interrupted = True

    # ---- load

    async def _begin(self) -> None:
        """What the workload needs before its load."""
        self._next_process = self.plan.workers
        for operation in self.workload.first_operations(self.plan, self._first()):
            process, self._next_process = self._next_process, self._next_process + 1
            if (await self._perform(operation, process, {})).type != "ok":
                raise ClusterError(f"the workload could not begin: {operation.f} did not succeed")

    async def _load(self) -> None:
        self._phase("load")
        workers = [self.cluster.spawn(self._part(self.work(worker))) for worker in range(self.plan.workers)]
        faults = faults_of(self.plan, self.system)
        if self.plan.changes_members or self.plan.changes_quorum:
            self._deployed.tell(settled=True)
        nemesis = [
            self.cluster.spawn(self._part(self._nemesis(lane)))
            for lane in lanes_of(fault for fault in faults if not fault.is_directed)
        ]
        directed = {
            fault.id: self.cluster.spawn(self._part(self._directed(fault)))
            for fault in faults
            if fault.is_directed
        }
        monitor = self.cluster.spawn(self._part(self._monitor()))
        try:
            for task in (*workers, *nemesis):
                await task
            await self._end_directed(directed)
            self._is_over = True
            await monitor
        finally:
            self._is_over = True
            for task in (*workers, *nemesis, *directed.values(), monitor):
                task.cancel()
        if self._failure is not None:
            raise self._failure
        self._note_ended()

    async def _part(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """A part of the load. If it breaks, the others end in order at once, and its error is raised after them:
        it may not wait until somebody awaits this part."""
        try:
            await coroutine
        except Exception as error:
            self._failure = self._failure or error
            self.interrupt()

    async def work(self, worker: int) -> None:
        """Everything that one worker does, from its first operation to its last."""
        process = client = worker
        seen: dict[str, Value] = {}
        skipped: list[Operation] = []
        for operation in operations_of(self.plan, self.system, self.workload, worker):
            late_ns = self.cluster.now_ns() - operation.at_ns
            await self._wait_until(operation.at_ns)
            if self._is_interrupted:
                break
            if late_ns > LEFT_OUT_NS:  # its time passed while this worker waited for an answer
                skipped.append(operation)
                continue
            self._note_skipped(worker, skipped)
            done = await self._perform(operation, process, seen, client=client)
            if done.type == "info":
                process, self._next_process = self._next_process, self._next_process + 1
                client = client if done.error == SUBMITTED else process
        self._note_skipped(worker, skipped)

    def _note_skipped(self, worker: int, skipped: list[Operation]) -> None:
        """One line for all operations that a worker skipped in a row; they are forgotten then."""
        if skipped:
            self.progress.skipped += len(skipped)
            kinds = Counter(operation.f for operation in skipped)
            value = {"worker": worker, "count": len(skipped), "kinds": dict(sorted(kinds.items()))}
            times = {"from_ns": skipped[0].at_ns, "to_ns": skipped[-1].at_ns}
            self._record("info", "harness", "skipped", value=value | times)
            skipped.clear()

    async def _perform(
        self,
        operation: Operation,
        process: int,
        seen: dict[str, Value],
        phase: str = "load",
        client: int | None = None,
    ) -> Completion:
        """One operation, recorded; how it ended. `client`: whose connection it goes over, if not that of `process`."""
        value: Value = operation.value
        if self._remembering is not None:
            value = self._remembering.resolved(operation, seen)
        node = self._present(operation.node)
        asked = asked_of(self.workload, operation, value)
        fields: dict[str, Any] = {"key": operation.key, "node": node, "mode": operation.mode}
        if operation.wait is not None:
            fields["wait"] = operation.wait
        self._record("invoke", process, operation.f, value=value, phase=phase, **fields)
        timeout_ns = self._patience_ns(node, phase)
        asked_ns = self.cluster.now_ns()
        connection = process if client is None else client
        outcome = await self._clients.perform(connection, node, asked, timeout_ns)
        if phase == "final" and self.cluster.now_ns() - asked_ns >= timeout_ns:
            self._silent[node] = None
        done = completed(self.workload, operation, value, asked, outcome)
        if done.error == SUBMITTED and operation.wait not in SUBMITTING:
            done = replace(done, error="unexpected answer: not confirmed, as was asked for")
        if operation.mode is not None and isinstance(outcome, Done) and outcome.mode is not None:
            fields["mode"] = outcome.mode  # what the server did, not what it was asked
        self._record(
            done.type,
            process,
            operation.f,
            value=done.value,
            error=done.error,
            role=done.role,
            phase=phase,
            **fields,
        )
        self._count(done.type)
        self._keys.update(dict.fromkeys(self.workload.keys(operation)))
        if self._remembering is not None:
            self._remembering.remember(operation, done, seen)
        return done

    def _patience_ns(self, node: str, phase: str) -> int:
        """How long an answer is waited for; at the end long, but not for each of many reads at a node that hangs."""
        if phase == "final" and node not in self._silent:
            return FINAL_TIMEOUT_NS
        return int(self.plan.request_timeout_s * SECOND_NS)

    def _count(self, type_: str) -> None:
        match type_:
            case "ok":
                self.progress.ok += 1
            case "fail":
                self.progress.fail += 1
            case _:
                self.progress.info += 1

    # ---- faults

    async def _nemesis(self, faults: Sequence[Fault]) -> None:
        is_late = False
        for drawn in faults:
            await self._wait_until(drawn.at_ns)
            if self._is_interrupted:
                return
            fault = self._later(drawn) if is_late or drawn.does in STEPS else drawn
            present = None if fault is None else self._at_present(fault)
            if present is not None and present.does in STEPS:
                present = await self._when_possible(present)
            if present is None or self._has_passed(present):
                is_for_nobody = fault is not None and self._at_present(fault) is None
                self._leave_out(drawn, GONE if is_for_nobody else LATE)
                continue
            is_late = is_late or present.does in ADMINISTERED
            beside = [other for other in self.progress.active.values() if self._exclude(present, other)]
            if beside:  # its node was exchanged for one that is down already, say
                self._leave_out(present, f"fault {beside[0].id} ({beside[0].name}) was still at work")
            else:
                await self._fault(present)

    def _is_hindered(self, directed: Fault) -> bool:
        """Options of a node change one at a time, and nobody is promoted by hand while election modes do."""
        touches = directed.does in ADMINISTERED or directed.does == "failover"
        return touches and any(
            self._exclude(directed, other)
            for other in self.progress.active.values()
            if other.options or directed.does in ADMINISTERED
        )

    def _exclude(self, one: Fault, other: Fault) -> bool:
        return exclude(one, other, is_real=self.plan.cluster != "sim")

    def _leave_out(self, fault: Fault, why: str) -> None:
        value = {"fault": msgspec.to_builtins(fault), "why": why}
        self._record("info", "harness", "left-out", value=value)

    async def _when_possible(self, step: Fault) -> Fault | None:
        """An operator waits until nothing else is done to the node, or to the members."""
        while any(self._exclude(step, other) for other in self.progress.active.values()):
            await self.cluster.sleep_until(self.cluster.now_ns() + SECOND_NS // 10)
            later = self._later(step)
            if self._is_interrupted or later is None:
                return None
            step = later
        return self._of_members(step)

    def _has_passed(self, fault: Fault) -> bool:
        """Its lane was busy healing the one before for so long that there is no time left in which it could be felt."""
        now_ns = self.cluster.now_ns()
        return now_ns - fault.at_ns > LEFT_OUT_NS and fault.until_ns - now_ns < self.plan.heartbeat_ns

    async def _directed(self, fault: Fault) -> None:
        """One fault that goes on beside the others, when its time or its moment has come."""
        await self._wait_until(fault.at_ns)
        it = ""
        if fault.on is not None and not self._is_interrupted:
            assert isinstance(self.cluster, WatchesMoments), "only the simulator knows moments"
            it = await self.cluster.moment(fault.on)
        if self._is_interrupted or self._is_ending:
            return
        lasts_ns = fault.until_ns - fault.at_ns
        now_ns = self.cluster.now_ns()
        owner = self._owner or self.system.owner(self.plan)
        resolved = self._of_members(in_place(fault, it, owner, self.plan.node_names, self._former))
        if resolved is None or self._is_hindered(resolved):
            return
        self._begun[fault.id] = None
        await self._fault(msgspec.structs.replace(resolved, at_ns=now_ns, until_ns=now_ns + lasts_ns))

    async def _end_directed(self, tasks: Mapping[int, Task[None]]) -> None:
        """What has begun ends in its time; what waits for its moment waits no more."""
        self._is_ending = True
        for number, task in tasks.items():
            if number in self._begun:
                await task
            else:
                task.cancel()

    def _later(self, drawn: Fault) -> Fault | None:
        """What an operator does takes as long as it takes: a fault behind it begins later, and lasts as long."""
        now_ns, lasts_ns = self.cluster.now_ns(), drawn.until_ns - drawn.at_ns
        at_ns = max(now_ns, drawn.at_ns)
        if at_ns + lasts_ns > self.plan.time_limit_ns:
            return None
        return msgspec.structs.replace(drawn, at_ns=at_ns, until_ns=at_ns + lasts_ns)

    def _present(self, name: str) -> str:
        """A plan is drawn as if its first owner stayed the owner: names of the two are exchanged."""
        drawn, owner = self._first_owner, self._owner
        if not drawn or not owner or owner == drawn:
            return name
        return owner if name == drawn else drawn if name == owner else name

    def _at_present(self, drawn: Fault) -> Fault | None:
        """The fault with today's names, and without who has left; None if nothing of it is left."""
        return self._of_members(
            msgspec.structs.replace(
                drawn,
                nodes=tuple(self._present(node) for node in drawn.nodes),
                links=tuple((self._present(source), self._present(target)) for source, target in drawn.links),
                shapes=tuple(
                    msgspec.structs.replace(
                        shape, links=tuple((self._present(a), self._present(b)) for a, b in shape.links)
                    )
                    for shape in drawn.shapes
                ),
            )
        )

    def _of_members(self, fault: Fault) -> Fault | None:
        absent = self._deployed.members.absent
        if fault.does == "failover" and {*fault.nodes} & self.plan.without_a_vote:
            return None
        if fault.does in STEPS:
            due = self._deployed.due(fault)
            return msgspec.structs.replace(fault, nodes=due) if due else None
        if fault.does == "add":
            return msgspec.structs.replace(fault, nodes=absent[:1]) if absent else None
        if not absent and fault.does not in MEMBERSHIP:
            return fault
        links = tuple(link for link in fault.links if not {*link} & {*absent})
        nodes = tuple(node for node in fault.nodes if node not in absent)
        if (fault.links and not links) or (fault.nodes and not nodes):
            return None
        if self._deployed.members.why_not(fault.does, nodes):
            return None
        kept = ((shape, [link for link in shape.links if not {*link} & {*absent}]) for shape in fault.shapes)
        shapes = tuple(msgspec.structs.replace(shape, links=tuple(left)) for shape, left in kept if left)
        if fault.shapes and len(shapes) < 2:
            return None  # what has one shape left changes for nobody
        return msgspec.structs.replace(fault, nodes=nodes, links=links, shapes=shapes)

    async def _fault(self, fault: Fault) -> None:
        self._record("invoke", "nemesis", fault.name, value=msgspec.to_builtins(fault))
        self.record.flush()  # whoever finds the record of a killed harness knows what was done to the nodes
        self.progress.active[fault.id] = fault
        self.on_progress(self.progress)
        broken: Exception | None = None
        try:
            await self._inject(fault)
            await self._change_shapes(fault)
            await self._wait_until(fault.until_ns)
        except Exception as error:
            broken = error  # first the healing
        finally:
            await self._heal(fault, broken)

    async def _inject(self, fault: Fault) -> None:
        if fault.does in ADMINISTERED:
            action = self._actions[fault.id] = action_of(fault, self._deployed)
            await action.begin()
        elif fault.does == "failover":
            self._failovers[fault.id] = await fail_over(self.plan, self.cluster, self.system, fault)
        else:
            await self.cluster.inject(fault)

    async def _change_shapes(self, fault: Fault) -> None:
        """A partition that changes goes from shape to shape; one whose time has passed is left out.

        Where a cluster was slow to begin it, the first shape lasts as long all the same.
        """
        begun_ns = max(self.cluster.now_ns(), fault.at_ns)
        ends = [min(begun_ns + shape.after_ns, fault.until_ns) for shape in fault.shapes[1:]]
        ends.append(fault.until_ns)
        for number in range(1, len(fault.shapes)):
            await self._wait_until(ends[number - 1])
            if self._is_interrupted:
                return
            if self.cluster.now_ns() < ends[number] or number == len(fault.shapes) - 1:
                assert isinstance(self.cluster, ChangesShapes), "a cluster that cannot do it has refused it"
                await self.cluster.change(fault, number)

    async def _undo(self, fault: Fault) -> Evidence:
        if fault.does in ADMINISTERED:
            return await self._actions.pop(fault.id).end()
        if fault.does != "failover":
            return await self.cluster.heal(fault)
        asked_ns = self.cluster.now_ns()
        has_owner = await self._has_owner_again(fault)
        return self._failovers.pop(fault.id).evidence(asked_ns, self.cluster.now_ns(), has_owner)

    async def _has_owner_again(self, failover: Fault) -> bool | None:
        """Soon after a promotion somebody owns the queue; None if another fault may keep that from being so."""
        deadline_ns = self.cluster.now_ns() + owner_within_ns(self.plan)
        states: Mapping[str, Mapping[str, object] | None] = await self._look_at_nodes()
        while self.system.owner_now(states) is None:
            others = [fault for fault in self.progress.active.values() if fault.id != failover.id]
            present = self._deployed.members.present
            if self._is_interrupted or may_keep_owners_away(others, failover, present, self.plan.quorum_size):
                return None
            if self.cluster.now_ns() >= deadline_ns:
                return False
            await self.cluster.sleep_until(self.cluster.now_ns() + SETTLE_POLL_NS)
            states = await statuses_of(self.plan, self.cluster)
        return True

    async def _heal(self, fault: Fault, broken: Exception | None) -> None:
        """Undo a fault and write its end, whatever comes of it; raises what broke first."""
        asked_ns = self.cluster.now_ns()
        evidence: Evidence | None = None
        try:
            evidence = await self._undo(fault)
        except Exception as error:
            broken = broken or error
        finally:
            told = evidence or _nothing_known(fault, asked_ns, broken)
            value = {"id": fault.id, **msgspec.to_builtins(told)}
            self._record("info", "nemesis", fault.name, value=value)
            del self.progress.active[fault.id]
            self.on_progress(self.progress)
        if broken is not None:
            raise broken

    async def _wait_until(self, time_ns: int) -> None:
        """Sleep in short steps, so that an interrupt is heard."""
        while self.cluster.now_ns() < time_ns and not self._is_interrupted:
            await self.cluster.sleep_until(min(time_ns, self.cluster.now_ns() + SECOND_NS // 10))

    # ---- who fails over from outside

    @asynccontextmanager
    async def _operated(self) -> AsyncIterator[None]:
        """Somebody outside looks after the nodes, if the system needs that."""
        is_over = False
        task: Task[None] | None = None
        if isinstance(self.system, Operated) and self._has_own_operator():
            work = self.system.operate(self.plan, self.cluster, self._note_operator, lambda: is_over)
            task = self.cluster.spawn(self._part(work))
        try:
            yield
        finally:
            is_over = True
            if task is not None:
                task.cancel()

    def _has_own_operator(self) -> bool:
        return isinstance(self.system, Operated) and self.system.is_operated(self.plan)

    def _note_operator(self, what: str, node: str, value: object) -> None:
        self._record("info", "operator", what, node=node, value=value)

    # ---- watching

    async def _monitor(self) -> None:
        due_ns = self.cluster.now_ns()
        while not self._is_over:
            await self._look_at_nodes()
            due_ns = max(due_ns + MONITOR_EVERY_NS, self.cluster.now_ns())
            await self.cluster.sleep_until(due_ns)

    async def _look_at_nodes(self) -> dict[str, Mapping[str, object] | None]:
        for node in self.plan.node_names:
            if node not in self._deployed.members.present:
                self.progress.states.pop(node, None)
                continue
            status = await self.cluster.status(node)
            self.progress.states[node] = status
            value = {"up": False} if status is None else {"up": True, **status}
            self._record("info", "monitor", "state", node=node, value=value)
        owner = self.system.owner_now(self.progress.states) or self._owner
        if owner != self._owner:
            self._former, self._owner = self._owner, owner
        if self._operator is not None:
            self._operator.look(self.progress.states)
        self._note_ended()
        self.record.flush()
        self.on_progress(self.progress)
        return dict(self.progress.states)

    def _note_ended(self) -> None:
        for ended in self.cluster.ended():
            if not self._is_up:
                continue  # the start failed; the error of `Cluster.start` says why, with the node's last lines
            if why := self._cannot_join(ended):
                self._record("info", "monitor", CANNOT_JOIN, node=ended.node, value={"why": why})
                continue
            value: dict[str, object] = {"how": ended.how, "at_ns": ended.time_ns}
            if ended.last_words:
                value["last_words"] = ended.last_words
            if ended.out_of_memory:
                value["out_of_memory"] = ended.out_of_memory
            self._record("info", "monitor", "crash", node=ended.node, value=value)
        for stalled_at_ns, stalled_ms in self.cluster.stalls():
            value = {"stalled_ms": stalled_ms, "at_ns": stalled_at_ns}
            self._record("info", "harness", "stall", value=value)
        self._note_orphans()

    def _note_orphans(self) -> None:
        if isinstance(self.cluster, FindsOrphans):
            for found in self.cluster.orphans():
                value = {"what": found.what, "at_ns": found.time_ns}
                self._record("info", "harness", "orphans", node=found.node, value=value)

    def _cannot_join(self, ended: Ended) -> str:
        """A newcomer that said that nobody can take it in ended in order; "" for any other end."""
        if not isinstance(self.system, TellsWhyItCannotJoin):
            return ""
        return self.system.cannot_join(ended.how, ended.last_words)

    # ---- the end

    async def _read(self) -> None:
        if not self._is_interrupted:
            self._phase("final reads")
            await self._read_everything()
        if self._is_interrupted:
            self._record("info", "harness", "interrupted")
        else:
            await self._look()
        self._note_ended()

    async def _settle(self) -> None:
        if self._is_interrupted:
            return
        self._phase("settling")
        self._is_settled = await self._has_settled()
        self._record("info", "harness", "settled", value=self._is_settled)

    async def _has_settled(self) -> bool:
        """Wait until all queues are empty and all nodes equal; False if they are not in time."""
        deadline_ns = self.cluster.now_ns() + int(self.plan.settle_timeout_s * SECOND_NS)
        settled = False
        while not settled and self.cluster.now_ns() < deadline_ns and not self._is_interrupted:
            settled = self.system.is_settled(await self._look_at_nodes())
            if not settled:
                await self.cluster.sleep_until(self.cluster.now_ns() + SETTLE_POLL_NS)
        return settled

    async def _read_everything(self) -> None:
        operations = self.workload.final_operations(self.plan, list(self._keys), self._first())
        members = [self._present(node) for node in self._deployed.members.present]  # by the names of the plan
        dumps = [Operation(at_ns=0, worker=0, f="dump", node=node) for node in members if self._can_dump()]
        await self._perform_all(operations)
        if self._is_settled and not await self._has_settled():  # what is asked at the end may write, too
            self._record("info", "harness", "settled", value=False)
        await self._perform_all(dumps)

    def _first(self) -> str:
        """The node that is asked before and after the load."""
        return self.system.owner(self.plan) or self.plan.node_names[0]

    def _can_dump(self) -> bool:
        return Dump in self.system.client.speaks

    async def _perform_all(self, operations: list[Operation]) -> None:
        for operation in operations:
            if self._is_interrupted:
                return
            process, self._next_process = self._next_process, self._next_process + 1
            await self._perform(operation, process, {}, phase="final")

    # ---- the record

    def _phase(self, name: str) -> None:
        self.progress.phase = name
        self.on_progress(self.progress)

    def _record(self, type_: Any, process: int | str, f: str, **fields: Any) -> None:
        self.record.record(type_, process, f, time_ns=self.cluster.now_ns(), **fields)


def _nothing_known(fault: Fault, heal_asked_ns: int, broken: Exception | None) -> Evidence:
    """Of a fault that could not be healed it is not even known whether it bit."""
    return Evidence(
        bit=False,
        asked_ns=fault.at_ns,
        first_effect_ns=None,
        all_in_effect_ns=None,
        heal_asked_ns=heal_asked_ns,
        last_effect_ns=None,
        healed=False,
        detail="not healed" if broken is None else f"not healed: {broken}",
    )
