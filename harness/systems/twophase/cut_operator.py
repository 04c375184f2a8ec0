"""An operator who takes cuts at a steady pace, from one node after the other, and a base snapshot where cuts need one.

All that is asked for and all that came of it are lines of the history, of the process "operator":

| line | value |
|---|---|
| cut-asked | {"cut"}: before the request leaves |
| cut-ended | {"cut", "named", "state", "why"}: "ok", "failed" or "refused" by a node's report, else "unknown" |
| snapshot | {"snapshot", "done", "why"} |

"named" is the cut's name in the nodes' logs, which in some variants is a number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.clients.reply import Replied
from harness.cluster.protocol import Cluster
from harness.run.plan import SECOND_NS, Plan
from harness.systems.system import Note
from harness.systems.twophase.options import said_of, servers_of

PROCESS = -3
ASKED, ENDED, SNAPSHOT = "cut-asked", "cut-ended", "snapshot"
REQUEST_TIMEOUT_NS = SECOND_NS
ENDS_WITHIN_NS = 5 * SECOND_NS
LOOK_EVERY_NS = SECOND_NS // 20
NEEDS_BASE = "rebalanced"
"""In the reason of a cut that fails until there is a new base snapshot."""


@dataclass(slots=True)
class CutOperator:
    plan: Plan
    cluster: Cluster
    note: Note
    _number: int = 0
    _requests: int = 0

    async def run(self, is_over: Callable[[], bool]) -> None:
        every_ns = int(said_of(self.plan).cut_every_s * SECOND_NS)
        while not is_over():
            begun_ns = self.cluster.now_ns()
            await self._cut()
            await self.cluster.sleep_until(max(begun_ns + every_ns, self.cluster.now_ns() + LOOK_EVERY_NS))

    async def _cut(self) -> None:
        names = self.plan.node_names
        node = names[self._number % len(names)]
        self._number += 1
        cut = f"cut-{self._number}"
        self.note(ASKED, node, {"cut": cut})
        answer = await self._ask(node, "cut", cut)
        named, state, why = cut, "refused", ""
        match answer:
            case {"type": "fail", "error": str() as why} if "refused" in why:
                pass
            case _:  # it began, or nothing is known: the nodes say
                named, state, why = await self._ended(cut)
        self.note(ENDED, node, {"cut": cut, "named": named, "state": state, "why": why})
        if NEEDS_BASE in why:
            await self._snapshot()

    async def _ended(self, cut: str) -> tuple[str, str, str]:
        """The cut's name in logs, the state in which it ended, and why."""
        deadline_ns = self.cluster.now_ns() + ENDS_WITHIN_NS
        while self.cluster.now_ns() < deadline_ns:
            for node in servers_of(self.plan):
                told = await self._ask(node, "cuts")
                for each in told if isinstance(told, list) else ():
                    if isinstance(each, dict) and each.get("request") == cut and each.get("state") != "runs":
                        return str(each["cut"]), str(each["state"]), str(each.get("why") or "")
            await self.cluster.sleep_until(self.cluster.now_ns() + LOOK_EVERY_NS)
        return cut, "unknown", "no node reported its end in time"

    async def _snapshot(self) -> None:
        name = f"base-{self._number}"
        node = servers_of(self.plan)[0]
        match await self._ask(node, "snapshot", name):
            case {"type": "ok"}:
                self.note(SNAPSHOT, node, {"snapshot": name, "done": True, "why": ""})
            case told:
                self.note(SNAPSHOT, node, {"snapshot": name, "done": False, "why": str(told)[:200]})

    async def _ask(self, node: str, word: str, *rest: str) -> Any:
        """What the node answered; None if it did not."""
        self._requests += 1
        request = [word, self._requests, *rest]
        reply = await self.cluster.call(PROCESS, node, request, REQUEST_TIMEOUT_NS)
        match reply:
            case Replied([_, _, told]):
                return told
        return None
