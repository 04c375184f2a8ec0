"""A cluster that is made up: nodes that answer at once or do what a test tells them, in virtual time or on asyncio.

`raises` names the methods that fail, and with what; `calls` is everything that was asked of the cluster, in order;
`stopped` counts how often it was ended.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar

from harness.clients.reply import Replied, Reply
from harness.cluster.protocol import Ended
from harness.cluster.sim.virtual_tasks import Pending, VirtualTask
from harness.faults.fault import Evidence, Fault
from nodes.iproto.messages import Answer, Call, Request
from nodes.world.agenda import Agenda

T = TypeVar("T")

MILLISECOND_NS = 1_000_000
Statement = list[Any]
Answering = Callable[[int, str, Statement], Reply | None]
"""(process, node, statement) → the reply, or None for the usual one."""


class FakeCluster:
    """Implements `harness.cluster.protocol.Cluster` in virtual time; an answer takes a millisecond."""

    def __init__(
        self,
        nodes: tuple[str, ...] = ("n1", "n2", "n3"),
        *,
        raises: Mapping[str, BaseException] | None = None,
        answering: Answering = lambda process, node, statement: None,
        answer_ns: int = MILLISECOND_NS,
        settled: bool = True,
    ) -> None:
        self.nodes = nodes
        self.raises = dict(raises or {})
        self.answering = answering
        self.answer_ns = answer_ns
        self.settled = settled
        self.calls: list[str] = []
        self.stopped = 0
        self.at_work: dict[int, Fault] = {}
        self.to_end: list[Ended] = []
        self.to_stall: list[tuple[int, float]] = []
        self.values: dict[str, Any] = {}
        self.on_call: Callable[[int, str, Request], None] = lambda process, node, request: None
        self._agenda = Agenda()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        task = VirtualTask(coroutine)
        task.start()
        while not task.done():
            assert self._agenda.advance(), "nothing is left to happen, and the run is not done"
        return task.result()

    def later(self, after_ns: int, action: Callable[[], object]) -> None:
        self._agenda.after(after_ns, action)

    # ---- Time

    def now_ns(self) -> int:
        return self._agenda.now_ns

    def sleep_until(self, time_ns: int) -> Awaitable[None]:
        wake: Pending[None] = Pending()
        self._agenda.at(time_ns, wake.resolve, None)
        return wake

    def spawn(self, coroutine: Coroutine[Any, Any, T]) -> Any:
        task = VirtualTask(coroutine)
        self._agenda.after(0, task.start)
        return task

    # ---- Cluster

    def _asked(self, method: str, detail: object = "") -> None:
        self.calls.append(f"{method} {detail}".strip())
        if method in self.raises:
            raise self.raises[method]

    async def start(self) -> None:
        self._asked("start")

    async def stop(self) -> None:
        self.stopped += 1
        self._asked("stop")

    async def call(self, process: int, node: str, request: object, timeout_ns: int) -> Reply:
        assert isinstance(request, Call)
        self.on_call(process, node, request)
        self._asked("call", f"{process} {node} {request.name}")
        await self.sleep_until(self.now_ns() + self.answer_ns)
        if request.name == "box.ctl.promote":
            return Replied(Answer(request.sync))
        if request.name == "qsync.dump":
            rows = [[key, value] for key, value in sorted(self.values.items())]
            return Replied(Answer(request.sync, ({"spaces": {"register": rows}},)))
        statement: Any = request.arguments[0]
        return self.answering(process, node, statement[0]) or self._usual(request.sync, statement[0])

    def _usual(self, sync: int, statement: Statement) -> Reply:
        """What a store does that is never at fault."""
        answer: dict[str, Any] = {"committed": True, "role": "owner", "results": [None]}
        match statement:
            case ["get", _, key] if key in self.values:
                answer["results"] = [[key, self.values[key]]]
            case ["replace", _, [key, value]]:
                self.values[key] = value
            case ["cas", _, key, old, new] if self.values.get(key) == old:
                self.values[key] = new
            case ["cas", *_]:
                answer = {"committed": False, "mismatch": 0, "role": "owner"}
        return Replied(Answer(sync, (answer,)))

    async def inject(self, fault: Fault) -> None:
        self.at_work[fault.id] = fault
        self._asked("inject", fault.id)

    async def heal(self, fault: Fault) -> Evidence:
        self._asked("heal", fault.id)
        self.at_work.pop(fault.id, None)
        asked_ns, now_ns = fault.at_ns, self.now_ns()
        return Evidence(
            took_effect=True,
            asked_ns=asked_ns,
            first_effect_ns=asked_ns,
            all_in_effect_ns=asked_ns,
            heal_asked_ns=now_ns,
            last_effect_ns=now_ns,
            healed=True,
        )

    async def status(self, node: str) -> Mapping[str, object] | None:
        self._asked("status", node)
        others = [other for other in self.nodes if other != node]
        return {
            "role": "owner" if node == self.nodes[0] else "replica",
            "owner": 1,
            "following": others,
            "followers": others,
            "limbo": 0 if self.settled else 1,
            "in_rollback": False,
            "vclock": {"1": 1},
            "rollbacks": 1,
        }

    def ended(self) -> tuple[Ended, ...]:
        ended, self.to_end = tuple(self.to_end), []
        return ended

    def stalls(self) -> tuple[tuple[int, float], ...]:
        stalls, self.to_stall = tuple(self.to_stall), []
        return stalls


class _NeverWaits(selectors.DefaultSelector):
    """Where the loop would wait, its time goes on."""

    waited_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            return super().select()
        self.waited_s += max(0.0, timeout)
        return super().select(0)


class _Loop(asyncio.SelectorEventLoop):
    """A busy machine makes nothing late here."""

    def __init__(self) -> None:
        self._never_waits = _NeverWaits()
        super().__init__(self._never_waits)

    def time(self) -> float:
        return self._never_waits.waited_s


class AsyncioCluster(FakeCluster):
    """The same on asyncio's loop. `complaints` is what the loop had to say of its tasks."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.complaints: list[str] = []

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        async def watched() -> T:
            loop = asyncio.get_running_loop()
            self._begun_s = loop.time()
            loop.set_exception_handler(lambda _, context: self.complaints.append(str(context)))
            return await coroutine

        with asyncio.Runner(loop_factory=_Loop) as runner:
            return runner.run(watched())

    def later(self, after_ns: int, action: Callable[[], object]) -> None:
        asyncio.get_running_loop().call_later(after_ns / 1e9, action)

    def now_ns(self) -> int:
        return int((asyncio.get_running_loop().time() - self._begun_s) * 1e9)

    async def sleep_until(self, time_ns: int) -> None:
        await asyncio.sleep((time_ns - self.now_ns()) / 1e9)

    def spawn(self, coroutine: Coroutine[Any, Any, T]) -> Any:
        return asyncio.get_running_loop().create_task(coroutine)
