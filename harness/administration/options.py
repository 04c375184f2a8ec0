"""Options changed while nodes run, as an operator does by `box.cfg`, on one node after the other; and changed back.

Bit if every node said afterwards that it has the new value, and had another before; healed if every node says that it
has the old one again.
A node that is down takes what its configuration says when it starts, so it is asked again until it answers.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.administration.site import POLL_NS, Site
from harness.faults.fault import Evidence, Fault
from harness.plan import SECOND_NS
from harness.protocols import Replied
from nodes.iproto.messages import Answer, Call

PROCESS = -3
TIMEOUT_NS = SECOND_NS
FUNCTION = "qsync.cfg"


class ChangedOptions:
    def __init__(self, fault: Fault, site: Site) -> None:
        self._fault = fault
        self._site = site
        self._asked_ns = site.cluster.now_ns()
        self._usual: dict[str, Mapping[str, object]] = {}
        self._seen_ns: list[int] = []
        self._details: list[str] = []

    async def begin(self) -> None:
        self._tell(settled=False)
        for node in self._fault.nodes:
            told = await self._told(node)
            if told is None:
                self._details.append(f"{node} did not tell its options")
                continue
            self._usual[node] = {name: told.get(name) for name in self._fault.options}
            wanted = self._wanted()
            if self._usual[node] == wanted:
                self._details.append(f"{node} had {dict(wanted)} already")
            elif await self._change(node, wanted, self._fault.until_ns):
                self._seen_ns.append(self._site.cluster.now_ns())

    async def _told(self, node: str) -> Mapping[str, object] | None:
        """What it has now; asked until it answers, or the fault is over."""
        cluster = self._site.cluster
        while True:
            told = await self._ask(node)
            if told is not None or cluster.now_ns() >= self._fault.until_ns:
                return told
            await cluster.sleep_until(cluster.now_ns() + POLL_NS)

    def _wanted(self) -> Mapping[str, object]:
        """A quorum is a whole number."""
        return {
            name: int(value) if name.endswith("quorum") else value
            for name, value in self._fault.options.items()
        }

    async def end(self) -> Evidence:
        heal_asked_ns = self._site.cluster.now_ns()
        deadline_ns = self._site.deadline_ns()
        healed = [await self._change(node, usual, deadline_ns) for node, usual in self._usual.items()]
        self._tell(settled=all(healed))
        return Evidence(
            bit=bool(self._seen_ns) and len(self._seen_ns) == len(self._fault.nodes),
            asked_ns=self._asked_ns,
            first_effect_ns=min(self._seen_ns, default=None),
            all_in_effect_ns=max(self._seen_ns, default=None),
            heal_asked_ns=heal_asked_ns,
            last_effect_ns=self._site.cluster.now_ns(),
            healed=all(healed),
            counters={"nodes_seen_changed": len(self._seen_ns)},
            detail="; ".join(self._details),
        )

    def _tell(self, *, settled: bool) -> None:
        """While the quorum changes, some nodes count by the one and some by the other: one that starts again, too."""
        quorum = self._wanted().get("replication_synchro_quorum")
        if isinstance(quorum, int):
            self._site.tell(settled=settled, quorum=None if settled else quorum)

    async def _change(self, node: str, options: Mapping[str, object], deadline_ns: int) -> bool:
        """Ask until the node says that it has them."""
        cluster = self._site.cluster
        while True:
            reply = await self._call(node, (dict(options),))
            told = await self._ask(node) if isinstance(reply, Answer) else None
            if told is not None and all(told.get(name) == value for name, value in options.items()):
                return True
            if cluster.now_ns() >= deadline_ns:
                self._details.append(f"{node} did not take {dict(options)}: {reply}"[:200])
                return False
            await cluster.sleep_until(cluster.now_ns() + POLL_NS)

    async def _ask(self, node: str) -> Mapping[str, object] | None:
        reply = await self._call(node, ())
        match reply:
            case Answer(data=(Mapping() as told, *_)):
                return told
        return None

    async def _call(self, node: str, arguments: tuple[object, ...]) -> object:
        cluster = self._site.cluster
        reply = await cluster.call(PROCESS, node, Call(1 + cluster.now_ns(), FUNCTION, arguments), TIMEOUT_NS)
        return reply.response if isinstance(reply, Replied) else reply
