"""The clients' end in the virtual world: one connection for each process and node."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.clients.reply import Lost, NotSent, Replied, Reply
from harness.clients.wire import ClientWire
from harness.cluster.sim.virtual_tasks import Pending
from harness.plan.plan import CONNECTION_NAME
from nodes.world.world import World


@dataclass(slots=True, eq=False)
class Session:
    """A connection, as the client sees it."""

    process: int
    node: str
    link: int
    stands: Pending[str | None] = field(default_factory=Pending)
    """Resolved with None when the connection stands, or with the reason why it never will."""
    waiting: dict[int, Pending[Reply]] = field(default_factory=dict)


class VirtualClients:
    """An endpoint of the network that all client processes share; requests are matched by their numbers."""

    name = CONNECTION_NAME

    def __init__(self, world: World, wire: ClientWire) -> None:
        self._world = world
        self._wire = wire
        self._sessions: dict[tuple[int, str], Session] = {}
        self._by_link: dict[int, Session] = {}
        world.network.add(self)

    async def call(self, process: int, node: str, request: object, timeout_ns: int) -> Reply:
        if node not in self._world.machines:
            return NotSent(f"no node is called {node}")
        deadline_ns = self._world.agenda.now_ns + timeout_ns
        session = self._session(process, node)
        if not session.stands.is_resolved:
            self._world.agenda.at(deadline_ns, session.stands.resolve, "no connection in time")
        refused = await session.stands
        if refused is not None:
            self._forget(session, refused)
            return NotSent(refused)
        reply: Pending[Reply] = Pending()
        number = self._wire.request_id(request)
        session.waiting[number] = reply
        self._world.network.send(session.link, self, request)
        self._world.agenda.at(deadline_ns, reply.resolve, Lost("timeout"))
        result = await reply
        session.waiting.pop(number, None)
        if isinstance(result, Lost):
            self._forget(session, result.reason)
        return result

    def process_of(self, link: int) -> int | None:
        """The process that holds this connection, if a process still does."""
        session = self._by_link.get(link)
        return None if session is None else session.process

    def _session(self, process: int, node: str) -> Session:
        session = self._sessions.get((process, node))
        if session is None:
            link = self._world.network.connect(self, node)
            session = self._sessions[process, node] = Session(process, node, link)
            self._by_link[link] = session
        return session

    def _forget(self, session: Session, reason: str) -> None:
        """The connection is over for us; whatever still waits on it is lost."""
        if self._by_link.pop(session.link, None) is None:
            return
        self._sessions.pop((session.process, session.node), None)
        self._world.network.close(session.link, self)
        for reply in list(session.waiting.values()):
            reply.resolve(Lost(reason))

    # ---- the endpoint of the network

    def accepted(self, link: int) -> None:
        raise AssertionError("no node connects to a client")

    def connected(self, link: int) -> None:
        session = self._by_link.get(link)
        if session is not None:
            session.stands.resolve(None)

    def connect_failed(self, link: int, reason: str) -> None:
        session = self._by_link.get(link)
        if session is not None:
            session.stands.resolve(reason)
            self._forget(session, reason)

    def received(self, link: int, message: object) -> None:
        session = self._by_link.get(link)
        number = None if session is None else self._wire.answers(message)
        if session is not None and number is not None:
            reply = session.waiting.get(number)
            if reply is not None:
                reply.resolve(Replied(message))

    def ended(self, link: int, reason: str) -> None:
        session = self._by_link.get(link)
        if session is not None:
            self._forget(session, reason)
