"""An operator who takes cuts at a steady pace, from one node after the other, and a base snapshot where cuts need one.

Every request and its outcome are lines of the history (`harness.systems.cut_lines`). A line `snapshot`
has {"snapshot", "done", "why"}; "done": it has begun. The key "named" of `cut-ended` is the cut's name in logs, in some
variants a number.
A cut that was unknown gets a second line when a node reports its end after all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from harness.clients.reply import NotSent, Replied, Reply
from harness.cluster.protocol import Cluster
from harness.plan.plan import SECOND_NS, Plan
from harness.systems.cut_lines import ASKED, ENDED
from harness.systems.parts import Note
from harness.systems.twophase.options import said_of, servers_of

PROCESS = -3
SNAPSHOT = "snapshot"
REQUEST_TIMEOUT_NS = SECOND_NS
ENDS_WITHIN_NS = 5 * SECOND_NS
LOOK_EVERY_NS = SECOND_NS // 20
UNKNOWN = "unknown"
NEEDS_BASE = "rebalanced"
"""The word in the reason of a cut that fails until there is a new base snapshot."""


@dataclass(slots=True)
class CutOperator:
    plan: Plan
    cluster: Cluster
    note: Note
    _number: int = 0
    _requests: int = 0
    _open: dict[str, str] = field(default_factory=dict)
    """Cut whose end no node reported in time → the node that was asked."""

    async def run(self, is_over: Callable[[], bool]) -> None:
        every_ns = int(said_of(self.plan).cut_every_s * SECOND_NS)
        while not is_over():
            begun_ns = self.cluster.now_ns()
            await self._cuts(said_of(self.plan).cuts_at_once)
            await self.cluster.sleep_until(max(begun_ns + every_ns, self.cluster.now_ns() + LOOK_EVERY_NS))

    async def _cuts(self, at_once: int) -> None:
        """Ask the next nodes for a cut each."""
        tasks = [self.cluster.spawn(self._cut()) for _ in range(at_once - 1)]
        try:
            await self._cut()
            for task in tasks:
                await task
        finally:
            for task in tasks:
                task.cancel()

    async def _cut(self) -> None:
        names = self.plan.node_names
        node = names[self._number % len(names)]
        self._number += 1
        cut = f"cut-{self._number}"
        self.note(ASKED, node, {"cut": cut})
        named, state, why = await self.take(node, cut)
        self.note(ENDED, node, {"cut": cut, "named": named, "state": state, "why": why})
        if state == UNKNOWN:
            self._open[cut] = node
        if NEEDS_BASE in why:
            await self._snapshot()

    async def take(self, node: str, cut: str) -> tuple[str, str, str]:
        """The cut's name in logs, the state in which it ended, and why."""
        match await self._call(node, "cut", cut):
            case Replied([_, _, {"type": "fail", "error": str() as why}]) if "refused" in why:
                return cut, "refused", why
            case NotSent(reason):
                return cut, "refused", f"{node} could not be asked: {reason}"
            case _:  # it began, or nothing is known: the nodes say
                return await self._ended(cut)

    async def _ended(self, cut: str) -> tuple[str, str, str]:
        """The same, when a node has reported the end of the cut; unknown if none does in time."""
        deadline_ns = self.cluster.now_ns() + ENDS_WITHIN_NS
        while self.cluster.now_ns() < deadline_ns:
            for node in servers_of(self.plan):
                cuts = await self._ask(node, "cuts")
                ends = dict(_ends(cuts if isinstance(cuts, list) else ()))
                for late in [name for name in self._open if name in ends]:
                    named, state, why = ends[late]
                    value = {"cut": late, "named": named, "state": state, "why": why}
                    self.note(ENDED, self._open.pop(late), value)
                if cut in ends:
                    return ends[cut]
            await self.cluster.sleep_until(self.cluster.now_ns() + LOOK_EVERY_NS)
        return cut, UNKNOWN, "no node reported its end in time"

    async def _snapshot(self) -> None:
        name = f"base-{self._number}"
        node = servers_of(self.plan)[0]
        match await self._ask(node, "snapshot", name):
            case {"type": "ok"}:
                self.note(SNAPSHOT, node, {"snapshot": name, "done": True, "why": ""})
            case answer:
                self.note(SNAPSHOT, node, {"snapshot": name, "done": False, "why": str(answer)[:200]})

    async def _ask(self, node: str, word: str, *rest: str) -> Any:
        """The node's answer; None if there is none."""
        match await self._call(node, word, *rest):
            case Replied([_, _, answer]):
                return answer
        return None

    async def _call(self, node: str, word: str, *rest: str) -> Reply:
        self._requests += 1
        return await self.cluster.call(PROCESS, node, [word, self._requests, *rest], REQUEST_TIMEOUT_NS)


def _ends(cuts: Iterable[object]) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """The ended cuts in a node's list: request → name, state and why."""
    for entry in cuts:
        match entry:
            case {"request": str() as cut, "cut": named, "state": state, **rest} if state != "runs":
                yield cut, (str(named), str(state), str(rest.get("why") or ""))
