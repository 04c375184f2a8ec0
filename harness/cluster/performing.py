"""Operations of message clients, carried out on a cluster."""

from __future__ import annotations

from typing import Any, Final, Protocol, cast

from harness.clients.client import Client, Conversation, MessageClient, NotDone, in_words
from harness.clients.operations import Asked, Completion, Outcome, failed, fitting
from harness.clients.reply import NotSent
from harness.cluster.protocol import Cluster

_TOO_LATE: Final = NotSent("timeout")


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
        conversation = self._conversation(asked, node)
        reply: Any = None
        while True:
            try:
                send = conversation.send(reply)
                there, message = send.node, send.message
            except StopIteration as end:
                # A user's own store may answer anything, also through a client of ours.
                return fitting(end.value, asked)
            except NotDone as error:
                return Completion("fail", None, in_words(error))
            except Exception as error:  # as a library's
                return failed(in_words(error), is_read=asked.is_read)
            if reply is _TOO_LATE:  # it would send again for ever
                return failed(_TOO_LATE.reason, is_read=asked.is_read)
            is_late = left_ns <= 0
            reply = _TOO_LATE if is_late else await cluster.call(process, there, message, left_ns)
            left_ns = deadline_ns - cluster.now_ns()

    def _conversation(self, asked: Asked, node: str) -> Conversation:
        """The client's own. All that goes wrong in its code is raised here."""
        outcome = yield from self._client.converse(asked, node, self._next_id)
        return outcome

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id


def performing(client: Client, cluster: Cluster) -> Performs:
    """The object that carries out operations: a library's client runs beside the cluster's connections."""
    if isinstance(client, MessageClient):
        return Conversing(client, cluster)
    return cast(Performs, cluster)  # the real clusters have `perform`; the simulator refuses such clients
