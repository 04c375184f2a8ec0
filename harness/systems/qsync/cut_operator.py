"""An operator who takes cuts at a steady pace, by markers among the rows (`nodes.qsync.markers`).

It asks the owner to write a marker, and then every node for its place there, until each has one. The cut is finished if
all places are the vclock that the owner named with the marker. If a second node wrote rows meanwhile, as in a failover,
they are in front of the marker in some logs only. Acknowledgements of those rows may then pass the marker, and the
places may not fit together: the cut has failed, and the next one may finish.

All of it is in lines of the history (`harness.systems.cut_lines`). In `cut-ended`, "marker" is [origin, lsn], "vclock"
is the owner's, and "places" has each node's; a vclock is a list of [replica, lsn].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.clients.reply import Replied
from harness.cluster.protocol import Cluster
from harness.plan.plan import SECOND_NS, Plan
from harness.systems.cut_lines import ASKED, ENDED
from harness.systems.parts import Note
from harness.systems.qsync.calls import why_refused
from harness.systems.qsync.options import settings_of
from nodes.iproto.messages import Answer, Call

PROCESS = -3
REQUEST_TIMEOUT_NS = SECOND_NS
ENDS_WITHIN_NS = 5 * SECOND_NS
LOOK_EVERY_NS = SECOND_NS // 20


@dataclass(slots=True)
class CutOperator:
    plan: Plan
    cluster: Cluster
    note: Note
    owner_now: Callable[[Mapping[str, Mapping[str, object] | None]], str | None]
    _number: int = 0

    async def run(self, is_over: Callable[[], bool]) -> None:
        """Take cuts until the run is over."""
        every_ns = int(settings_of(self.plan).cut_every_s * SECOND_NS)
        while not is_over():
            begun_ns = self.cluster.now_ns()
            await self._cut()
            await self.cluster.sleep_until(max(begun_ns + every_ns, self.cluster.now_ns() + LOOK_EVERY_NS))

    async def _cut(self) -> None:
        statuses = {node: await self.cluster.status(node) for node in self.plan.node_names}
        owner = self.owner_now(statuses) or self.plan.node_names[0]
        self._number += 1
        cut = f"cut-{self._number}"
        self.note(ASKED, owner, {"cut": cut})  # before the request: a cut in the logs was asked for
        ended: dict[str, object]
        match await self._ask(owner, "qsync.cut"):
            case {"origin": int(origin), "lsn": int(lsn), "vclock": vclock}:
                marker, named = (origin, lsn), _pairs(vclock)
                places, silent = await self._places(marker)
                apart = [node for node, place in places.items() if place != named]
                state, why = "ok", ""
                if silent:
                    state, why = "unknown", f"{silent} told no place in time"
                elif apart:
                    state, why = "failed", f"{apart[0]} named a different place than the owner"
                ended = {"marker": marker, "vclock": named, "places": places, "state": state, "why": why}
            case str(why):
                ended = {"state": "refused", "why": why}
            case _:
                ended = {"state": "unknown", "why": f"{owner} did not answer"}
        self.note(ENDED, owner, {"cut": cut, **ended})

    async def _places(self, marker: tuple[int, int]) -> tuple[dict[str, list[tuple[int, int]]], str]:
        """Each node's place at the marker, and the first node that reported none in time."""
        deadline_ns = self.cluster.now_ns() + ENDS_WITHIN_NS
        places: dict[str, list[tuple[int, int]]] = {}
        while True:
            for node in self.plan.node_names:
                answer = None if node in places else await self._ask(node, "qsync.cut_places")
                for entry in answer if isinstance(answer, list | tuple) else ():
                    if isinstance(entry, Mapping) and (entry.get("origin"), entry.get("lsn")) == marker:
                        places[node] = _pairs(entry["vclock"])
            silent = [node for node in self.plan.node_names if node not in places]
            if not silent or self.cluster.now_ns() >= deadline_ns:
                return places, silent[0] if silent else ""
            await self.cluster.sleep_until(self.cluster.now_ns() + LOOK_EVERY_NS)

    async def _ask(self, node: str, function: str) -> Any:
        """The answer of the node: a text if it refused, None if there is no answer."""
        request = Call(1 + self.cluster.now_ns(), function, ())
        reply = await self.cluster.call(PROCESS, node, request, REQUEST_TIMEOUT_NS)
        match reply:
            case Replied(Answer(data=(answer,))):
                return answer
            case Replied(refusal):
                return why_refused(refusal)
        return None


def _pairs(vclock: Mapping[int, int]) -> list[tuple[int, int]]:
    return sorted(vclock.items())
