"""`qsync.cfg`: the options of a running node, as `box.cfg` has them; our nodes and Tarantool with our Lua answer it."""

from __future__ import annotations

from collections.abc import Mapping

from harness.clients.reply import Replied
from harness.cluster.protocol import Cluster
from harness.plan.plan import SECOND_NS
from nodes.iproto.messages import Answer, Call

PROCESS = -3
TIMEOUT_NS = SECOND_NS
FUNCTION = "qsync.cfg"


class HasBoxCfg:
    """Implements `harness.systems.system.ChangesOptions`."""

    async def options_of(self, node: str, cluster: Cluster) -> Mapping[str, object] | None:
        match await _call(node, (), cluster):
            case Answer(data=(Mapping() as told, *_)):
                return told
        return None

    async def change_options(self, node: str, options: Mapping[str, object], cluster: Cluster) -> str:
        reply = await _call(node, (dict(options),), cluster)
        return "" if isinstance(reply, Answer) else str(reply)


async def _call(node: str, arguments: tuple[object, ...], cluster: Cluster) -> object:
    reply = await cluster.call(PROCESS, node, Call(1 + cluster.now_ns(), FUNCTION, arguments), TIMEOUT_NS)
    return reply.response if isinstance(reply, Replied) else reply
