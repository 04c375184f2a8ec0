"""Operations of message clients, carried out on a cluster."""

from __future__ import annotations

from typing import Protocol, cast

from harness.clients.client import Client, MessageClient
from harness.clients.operations import Asked, Outcome, fitting
from harness.clients.reply import Reply
from harness.cluster.protocol import Cluster


class Performs(Protocol):
    async def perform(self, process: int, node: str, asked: Asked, timeout_ns: int) -> Outcome:
        """One operation on the connections of client `process`, by `node`. It takes no longer than the timeout."""
        ...


class Conversing:
    """Implements `Performs` for a message client."""

    def __init__(self, client: MessageClient, cluster: Cluster) -> None:
        self._client = client
        self._cluster = cluster
        self._last_id = 0

    async def perform(self, process: int, node: str, asked: Asked, timeout_ns: int) -> Outcome:
        cluster, left_ns = self._cluster, timeout_ns
        deadline_ns = cluster.now_ns() + timeout_ns
        conversation = self._client.converse(asked, node, self._next_id)
        try:
            send = next(conversation)
            while True:
                reply: Reply = await cluster.call(process, send.node, send.message, left_ns)
                send = conversation.send(reply)
                left_ns = max(0, deadline_ns - cluster.now_ns())
        except StopIteration as end:
            # A user's own store may answer anything, also through a client of ours.
            return fitting(end.value, asked)

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id


def performing(client: Client, cluster: Cluster) -> Performs:
    """The object that carries out operations: a library's client runs beside the cluster's connections."""
    if isinstance(client, MessageClient):
        return Conversing(client, cluster)
    return cast(Performs, cluster)  # the real clusters have `perform`; the simulator refuses such clients
