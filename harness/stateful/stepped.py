"""A simulated run in steps: it goes on for one operation, one fault or some time at each call.

The conductor is that of every run. Its workers wait for given operations instead of drawing them; its nemesis begins
and ends given faults. So history, evidence and verdict are those of `qsync run`. The steps are kept as a drawn-out
plan, which `qsync run --plan` repeats.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import msgspec

from checkers.check import run_here
from checkers.history import jsonl
from checkers.history.history import History
from checkers.history.operation import SUBMITTED
from checkers.replicas.crash import NAME as CRASH
from harness.clients.operations import Completion
from harness.cluster.sim.cluster import SimCluster
from harness.cluster.sim.virtual_tasks import Pending, VirtualTask
from harness.errors import HarnessError, WrongUse
from harness.faults.failover import FAILOVER
from harness.faults.fault import Fault
from harness.judge import Case, Left, judge
from harness.judge.promised import checks_of, promise_of
from harness.plan.plan import SECOND_NS, Drawn, Operation, Plan
from harness.run.assemble import Parts, header, parts_of, simulated
from harness.run.conductor import Conductor
from harness.run.draw import refuse_impossible_fault
from harness.run.failover import owner_within_ns
from harness.systems.plans import planned, problem
from harness.workloads.generators.generator import Value

MILLISECOND_NS = 1_000_000
LASTS_NS = 86_400 * SECOND_NS
"""A fault lasts until it is ended; its line in the history must say some time."""
OVERLAP_MAX = 8


@dataclass(slots=True)
class _Commanded(Conductor):
    """Workers that wait for their operations."""

    waiting: dict[int, Pending[Operation | None]] = field(default_factory=dict)
    """The idle workers."""
    answers: dict[int, Completion] = field(default_factory=dict)
    """The newest answer to each worker."""
    is_over: bool = False

    async def work(self, worker: int) -> None:
        process = client = worker
        seen: dict[str, Value] = {}
        while (operation := await self._next(worker)) is not None:
            done = self.answers[worker] = await self._perform(operation, process, seen, client=client)
            if done.type == "info":
                process, self._next_process = self._next_process, self._next_process + 1
                client = client if done.error == SUBMITTED else process

    async def _next(self, worker: int) -> Operation | None:
        if self.is_over:
            return None
        asked = self.waiting[worker] = Pending()
        return await asked

    def begin(self, fault: Fault) -> Coroutine[Any, Any, None]:
        return self._course.part(self._nemesis.begin_fault(fault))

    def end(self, fault: Fault) -> Coroutine[Any, Any, None]:
        return self._course.part(self._nemesis.end_fault(fault))

    def excludes(self, fault: Fault) -> bool:
        return self._nemesis.excluded_by(fault) is not None

    @property
    def active(self) -> dict[int, Fault]:
        """The active faults; a fault stays active until it has healed."""
        return self._nemesis.active

    @property
    def failure(self) -> Exception | None:
        """The error of the first part of the run that broke."""
        return self._course.failure

    def drawn_name(self, node: str) -> str:
        """The name of this node in a drawn-out plan, which names the present leader as the first node."""
        return self._present.name(node)

    @property
    def leader(self) -> str:
        return self._present.leader


class Stepped:
    """A run of a plan, from its first operation on. `plan` has fields of a plan by name, as `planned` takes them.

    Raises WrongUse for a plan that cannot be, ClusterError if the nodes do not come to serve.
    """

    def __init__(self, **plan: Any) -> None:
        steps: dict[str, Any] = {
            "cluster": "sim",
            "faults": ("none",),
            "overlap": OVERLAP_MAX,
            "time_limit_s": 86_400.0,
            "workers": 8,
            **plan,
        }
        try:
            asked = msgspec.structs.replace(planned(**steps), drawn=Drawn(faults=(), operations=()))
        except ValueError as error:  # every error of msgspec is one
            raise WrongUse(problem(error, steps)) from error
        self.parts: Parts = parts_of(asked)
        self.plan: Plan = self.parts.plan
        self.cluster: SimCluster = simulated(self.parts, None)
        self._record = io.BytesIO()
        writer = jsonl.Writer(self._record, header(self.parts))
        self._conductor = _Commanded(self.plan, self.cluster, self.parts.system, self.parts.workload, writer)
        self._begun: dict[int, Fault] = {}
        self._healing: dict[int, VirtualTask[None]] = {}
        self._tasks: list[VirtualTask[None]] = []
        self._faults: list[Fault] = []
        self._operations: list[Operation] = []
        self.verdict: dict[str, Any] | None = None
        """The content of verdict.json, once the run has ended."""
        self._run = VirtualTask(self._conductor.run())
        self._run.start()
        self._until(lambda: len(self._conductor.waiting) == self.plan.workers)
        self.run_for(1)

    # ---- time

    def now_ns(self) -> int:
        return self.cluster.now_ns()

    def run_for(self, milliseconds: float) -> None:
        """Let so much virtual time pass."""
        self._until(self._timer(milliseconds))

    def _timer(self, milliseconds: float) -> Callable[[], bool]:
        over: list[None] = []
        self.cluster.world.agenda.after(int(milliseconds * MILLISECOND_NS), over.append, None)
        return lambda: bool(over)

    def _until(self, holds: Callable[[], bool]) -> None:
        agenda = self.cluster.world.agenda
        while not holds() and not self._run.done():
            if not agenda.advance():
                raise RuntimeError("nothing is left to happen, and the run is not done")
        if self._run.done():
            self._run.result()  # raises what ended it

    # ---- operations

    @property
    def first(self) -> str:
        """The node that is asked where none is named: the present leader, or the first node."""
        return self._conductor.leader or self.plan.node_names[0]

    @property
    def idle(self) -> int | None:
        """The first worker without an operation under way; None if all wait for answers."""
        return min(self._conductor.waiting, default=None)

    def ask(
        self,
        f: str,
        key: str | None = None,
        value: Value = None,
        *,
        node: str = "",
        mode: str | None = None,
        patience_ms: float = 0.0,
    ) -> Completion | None:
        """Begin an operation of the workload, and wait for its answer for so long; None if none has come by then.

        `node` "": the present leader, or the first node. All workers busy: time passes until one is idle. Raises
        WrongUse for an operation that the workload does not know, an unknown node, and behind the end of the run.
        """
        there = node or self.first
        if there not in self.plan.node_names:
            raise WrongUse(f"no node is called {there!r}; try one of: {', '.join(self.plan.node_names)}")
        self._until(lambda: self.idle is not None)
        self._refuse_late(f)
        worker = self.idle
        assert worker is not None
        operation = Operation(
            at_ns=self.now_ns(),
            worker=worker,
            f=f,
            key=key,
            value=value,
            node=self._conductor.drawn_name(there),
            mode=mode,
        )
        self.parts.workload.asked(operation, operation.value)  # refuses what it does not know
        self._operations.append(operation)
        # Before the worker goes on: an old answer would count as the one to this operation.
        self._conductor.answers.pop(worker, None)
        self._conductor.waiting.pop(worker).resolve(operation)
        is_late = self._timer(patience_ms)
        self._until(lambda: worker in self._conductor.answers or is_late())
        return self._conductor.answers.get(worker)

    # ---- faults

    @property
    def active(self) -> tuple[Fault, ...]:
        return tuple(self._conductor.active.values())

    def begin(self, name: str, does: Any, **fields: Any) -> int | None:
        """A fault (`harness.faults.fault.Fault`); its number, or None if one at work excludes it, or `OVERLAP_MAX` are
        at work. Raises WrongUse for one that cannot be, and behind the end of the run.

        A failover waits until its node is the owner, but not for ever: other faults may keep it from that.
        """
        number = len(self._begun)
        now_ns = self.now_ns()
        until_ns = now_ns + (owner_within_ns(self.plan) if does == FAILOVER else LASTS_NS)
        fault = Fault(id=number, name=name, does=does, at_ns=now_ns, until_ns=until_ns, seed=number, **fields)
        self._refuse_late(name)
        refuse_impossible_fault(
            self.plan, self.parts.system.abilities, msgspec.structs.replace(fault, until_ns=now_ns), ()
        )
        if self._conductor.excludes(fault) or len(self._conductor.active) >= OVERLAP_MAX:
            return None
        self._begun[number] = fault
        self._until(self._spawn(self._conductor.begin(fault)).done)
        if self._conductor.failure is not None:
            raise self._conductor.failure
        return number

    def _refuse_late(self, name: str) -> None:
        if self._run.done():
            raise WrongUse(f"{name!r} comes behind the end of the run; try: before finish()")

    def end(self, number: int, patience_ms: float = 0.0) -> None:
        """Heal the fault. Healing that takes longer than `patience_ms` goes on beside the next steps."""
        if number in self._healing:
            return
        fault = self._begun[number]
        self._faults.append(self._until_now(fault))
        task = self._healing[number] = self._spawn(self._conductor.end(fault))
        is_late = self._timer(patience_ms)
        self._until(lambda: task.done() or is_late())

    def _until_now(self, fault: Fault) -> Fault:
        return msgspec.structs.replace(fault, until_ns=min(fault.until_ns, self.now_ns()))

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> VirtualTask[None]:
        self._tasks.append(task := self.cluster.spawn(coroutine))
        return task

    # ---- what it shows

    @property
    def history(self) -> History:
        """The record so far."""
        return jsonl.parse(self._record.getvalue())

    def violated(self) -> str:
        """A violation in the record so far, by checks of single keys and crashes; "" if there is none.

        The other checks need the end of the run.
        """
        history = self.history
        promise = promise_of(self._as_done(), history)
        for check in checks_of(self.plan, promise):
            if check.model and (check.is_per_key or check.name == CRASH):
                verdict = run_here(check, history)
                if verdict.result == "invalid":
                    return f"{check.name}: {verdict.summary}"
        return ""

    def finish(self) -> dict[str, Any]:
        """Heal all, wait for answers, settle, read everything, and judge; the content of verdict.json."""
        if self.verdict is not None:
            return self.verdict
        failure: str | None = None
        try:
            for fault in reversed(list(self._conductor.active.values())):
                self.end(fault.id)
            self._until(lambda: all(task.done() for task in self._healing.values()))
            self._conductor.is_over = True
            for pending in list(self._conductor.waiting.values()):
                pending.resolve(None)
            self._until(self._run.done)
        except HarnessError as error:
            failure = error.message
        left = Left.of(self.plan, self.cluster.files(), self.cluster.effects())
        self.verdict = judge(Case(self._as_done(), self.history, left, failure=failure, names_faults=False))
        return self.verdict

    def close(self) -> None:
        """Cancel the tasks of a run that will not be judged."""
        for task in (*self._tasks, self._run):
            task.cancel()

    def _as_done(self) -> Plan:
        """The plan with the operations and faults of the steps drawn out; the promise depends on it."""
        begun = (
            self._until_now(fault) for number, fault in self._begun.items() if number not in self._healing
        )
        faults = tuple(sorted((*self._faults, *begun), key=lambda fault: fault.id))
        return msgspec.structs.replace(
            self.plan, drawn=Drawn(faults=faults, operations=tuple(self._operations))
        )

    @property
    def drawn(self) -> Plan:
        """The steps as a plan of their own, for `qsync run --plan`."""
        last_ns = self.now_ns() + SECOND_NS
        return msgspec.structs.replace(self._as_done(), time_limit_s=last_ns / SECOND_NS)
