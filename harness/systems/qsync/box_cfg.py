"""`qsync.cfg`: the options of a running node, as `box.cfg` has them; our nodes and Tarantool with our Lua answer it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any

from harness.clients.reply import Replied
from harness.cluster.protocol import Cluster
from harness.faults.fault import Fault
from harness.faults.membership import Membership
from harness.plan.plan import SECOND_NS, Plan
from harness.systems.parts import Settings
from harness.systems.qsync.reconfiguring import draw_options, switches_on
from nodes.iproto.messages import Answer, Call

PROCESS = -3
TIMEOUT_NS = SECOND_NS
FUNCTION = "qsync.cfg"


class BoxCfg(Settings):
    def drawn(
        self,
        name: str,
        plan: Plan,
        members: Membership,
        owner: str,
        chance: random.Random,
        before: Iterable[Fault],
    ) -> dict[str, Any] | None:
        return draw_options(name, plan, members, owner, chance, before)

    def begins_elections(self, plan: Plan, faults: Iterable[Fault]) -> bool:
        return switches_on(plan, faults)

    async def of(self, node: str, cluster: Cluster) -> Mapping[str, object] | None:
        match await _call(node, (), cluster):
            case Answer(data=(Mapping() as options, *_)):
                return options
        return None

    async def change(self, node: str, options: Mapping[str, object], cluster: Cluster) -> str:
        reply = await _call(node, (dict(options),), cluster)
        return "" if isinstance(reply, Answer) else str(reply)


async def _call(node: str, arguments: tuple[object, ...], cluster: Cluster) -> object:
    reply = await cluster.call(PROCESS, node, Call(1 + cluster.now_ns(), FUNCTION, arguments), TIMEOUT_NS)
    return reply.response if isinstance(reply, Replied) else reply
