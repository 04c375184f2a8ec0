"""Connections between nodes, and the sessions over them.

Each node calls each peer: once for discovery, and once for every *lane* of transactions. The id of a transaction gives
the lane of all its messages, so that they keep their order and transactions overtake each other. Only the node that
called sends on a connection; the other side answers `welcome` and `pong`.

| message | |
|---|---|
| `["hello", 0, node, life, lane]` | the first one: the caller, and the lane (0: discovery) |
| `["welcome", 0, life, seq]` | the other side's life, and the last message of this session that it has taken |
| `["ping", 0]`, `["pong", 0, seq]` | a link without an answer for some time is given up |
| `[word, seq, marker, …]` | a message of a session |

A *session* lasts as long as the two lives and the lane. Its messages are numbered from 1, and resent after a reconnect
until the other side has taken them; duplicates are dropped. Messages that a life has not taken when it leaves are
dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from nodes.kernel.effects import Again, Connect, Disconnect, Send
from nodes.kernel.events import Received
from nodes.twophase.site import Site
from nodes.twophase.sometimes import MARKER_HELD, RESENT

DISCOVERY = 0
ATOMIC = frozenset({"atomic", "atomic-done", "atomic-copy", "atomic-copied"})
"""Messages outside of transactions: they carry no marker."""
SILENT_BEATS = 4
RETRY_NS = 50_000_000
Message = list[Any]


@dataclass(slots=True)
class Session:
    """The messages of one life of this node to one life of a peer, on one lane."""

    last: int = 0
    sent: int = 0
    """The last message that was ever put on a link."""
    waiting: deque[tuple[int, str, Message]] = field(default_factory=deque)
    """(seq, word, payload) of messages that the other side has not confirmed as taken."""


@dataclass(slots=True)
class Call:
    """A connection that this node makes: to a peer, for one lane."""

    peer: str
    lane: int
    link: int | None = None
    life: int = 0
    """The life of the peer, once it has sent `welcome`."""
    heard_ns: int = 0
    is_calling: bool = False


@dataclass(slots=True)
class Caller:
    """A peer that has called this node on a link."""

    peer: str
    life: int
    lane: int


Take = Callable[[str, int, str, Message], None]


class Links:
    def __init__(
        self,
        site: Site,
        take_discovery: Callable[[str, int, Message], None],
        take: Take,
        marker: Callable[[], object],
        meet_marker: Callable[[object], bool],
    ) -> None:
        """`marker` gives the marker of the running cut; `meet_marker` is true if a message must wait for its cut."""
        self._site = site
        self._take_discovery = take_discovery
        self._take = take
        self._marker = marker
        self._meet_marker = meet_marker
        conf = site.configuration
        peers = conf.baseline + conf.clients if site.is_server else conf.baseline
        lanes = range(conf.lanes + 1)
        self._calls = [Call(peer, lane) for peer in peers if peer != site.name for lane in lanes]
        self._by_link: dict[int, Call] = {}
        self._callers: dict[int, Caller] = {}
        self._sessions: dict[tuple[str, int, int], Session] = {}
        self._taken: dict[tuple[str, int, int], int] = {}
        self.gone: set[tuple[str, int]] = set()
        """Lives that have left."""

    def start(self) -> None:
        for call in self._calls:
            self._connect(call)

    # ---- out

    def tell(self, peer: str, message: Message) -> None:
        """Send a message on the discovery link, if it stands."""
        for call in self._calls:
            if call.peer == peer and call.lane == DISCOVERY and call.link is not None:
                self._site.out.append(Send(call.link, message))

    def send(self, peer: str, life: int, xid: str, word: str, payload: Message) -> None:
        """Send to a life of a peer, in the order of its lane; the message is dropped only if that life leaves."""
        if (peer, life) in self.gone:
            return
        lane = 1 + crc32(xid.encode()) % self._site.configuration.lanes
        session = self._sessions.setdefault((peer, life, lane), Session())
        session.last += 1
        session.waiting.append((session.last, word, payload))
        for call in self._calls:
            if call.peer == peer and call.lane == lane and call.link is not None and call.life == life:
                session.sent = session.last
                self._emit(call.link, session.last, word, payload)

    def _emit(self, link: int, seq: int, word: str, payload: Message) -> None:
        is_marked = word not in ATOMIC and self._site.decisions.is_marked(word)
        marker = self._marker() if is_marked else None
        self._site.out.append(Send(link, [word, seq, marker, *payload]))

    def beat(self) -> None:
        """Ping peers, and give up silent links: `_lose` dials them again."""
        now_ns, silent_ns = self._site.now.monotonic_ns, SILENT_BEATS * self._site.configuration.beat_ns
        for call in self._calls:
            if call.link is None:
                continue
            if now_ns - call.heard_ns > silent_ns:
                self._site.out.append(Disconnect(call.link))
                self._lose(call)
            else:
                self._site.out.append(Send(call.link, ["ping", 0]))

    def forget(self, peer: str, life: int) -> None:
        """This life has left: drop the messages for it, and take none from it."""
        self.gone.add((peer, life))
        for key in [key for key in self._sessions if key[:2] == (peer, life)]:
            del self._sessions[key]

    # ---- connections

    def _connect(self, call: Call) -> None:
        call.is_calling = True
        self._site.out.append(Connect(call.peer))

    def _lose(self, call: Call) -> None:
        if call.link is not None:
            self._by_link.pop(call.link, None)
        call.link, call.life = None, 0
        self._site.after(f"call {call.peer} {call.lane}", RETRY_NS, lambda: self._connect(call))

    def connected(self, link: int, peer: str) -> None:
        """A connection stands. Connections to one peer are alike until `hello`: the first one takes the first lane."""
        call = next(call for call in self._calls if call.peer == peer and call.is_calling)
        call.is_calling = False
        call.link, call.life, call.heard_ns = link, 0, self._site.now.monotonic_ns
        self._by_link[link] = call
        self._site.out.append(Send(link, ["hello", 0, self._site.name, self._site.life, call.lane]))

    def connect_failed(self, peer: str) -> None:
        call = next(call for call in self._calls if call.peer == peer and call.is_calling)
        call.is_calling = False
        self._lose(call)

    def disconnected(self, link: int) -> bool:
        """False if the link was not one of a node."""
        call = self._by_link.get(link)
        if call is not None:
            self._lose(call)
        return self._callers.pop(link, None) is not None or call is not None

    # ---- in

    def received(self, event: Received) -> bool:
        """False if the message is not from a node."""
        message = event.message
        if not isinstance(message, list) or not message:
            return False
        call = self._by_link.get(event.link)
        if call is not None:
            self._answered(call, message)
            return True
        match message:
            case ["hello", _, str() as peer, int() as life, int() as lane] if any(
                (call.peer, call.lane) == (peer, lane) for call in self._calls
            ):
                self._welcome(event.link, peer, life, lane)
                return True
            case ["hello", *fields]:
                self._refuse(event.link, "refused a node that is not configured", repr(fields)[:100])
                return True
        caller = self._callers.get(event.link)
        if caller is None:
            return False
        if message[0] == "ping":
            taken = self._taken.get((caller.peer, caller.life, caller.lane), 0)
            self._site.out.append(Send(event.link, ["pong", 0, taken]))
        elif caller.lane == DISCOVERY:
            self._take_discovery(caller.peer, caller.life, message)
        else:
            self._take_in_order(event, caller, message)
        return True

    def _refuse(self, link: int, why: str, peer: str) -> None:
        self._site.log(why, "warning", peer=peer)
        self._callers.pop(link, None)
        self._site.out.append(Disconnect(link))

    def _welcome(self, link: int, peer: str, life: int, lane: int) -> None:
        for older, caller in list(self._callers.items()):
            if (caller.peer, caller.lane) == (peer, lane) and caller.life <= life:
                del self._callers[older]  # what it still holds comes again on the new one
                self._site.out.append(Disconnect(older))
        self._callers[link] = Caller(peer, life, lane)
        taken = self._taken.get((peer, life, lane), 0)
        self._site.out.append(Send(link, ["welcome", 0, self._site.life, taken]))

    def _answered(self, call: Call, message: Message) -> None:
        call.heard_ns = self._site.now.monotonic_ns
        match message:
            case ["welcome", _, int() as life, int() as taken]:
                assert call.link is not None
                call.life = life
                session = self._session_of(call, taken)
                if session is None or call.lane == DISCOVERY:
                    return
                for seq, word, payload in session.waiting:
                    self._site.sometimes.note(RESENT, seq <= session.sent)
                    self._emit(call.link, seq, word, payload)
                session.sent = session.last
            case ["pong", _, int() as taken]:
                self._session_of(call, taken)

    def _session_of(self, call: Call, taken: int) -> Session | None:
        session = self._sessions.get((call.peer, call.life, call.lane))
        while session is not None and session.waiting and session.waiting[0][0] <= taken:
            session.waiting.popleft()
        return session

    def _take_in_order(self, event: Received, caller: Caller, message: Message) -> None:
        match message:
            case [str() as word, int() as seq, marker, *payload]:
                pass
            case _:
                self._refuse(event.link, "refused a message that has no word, number and marker", caller.peer)
                return
        key = (caller.peer, caller.life, caller.lane)
        taken = self._taken.get(key, 0)
        comes_first = self._site.decisions.marker_comes_first
        if seq > taken + 1:
            self._site.out.append(Again(event))  # the one before waits for its cut
            return
        # Before it counts as taken: the message comes again when this node has changed its colour.
        if comes_first and self._meet_marker(marker):
            self._site.sometimes.note(MARKER_HELD)
            self._site.out.append(Again(event))
            return
        # A peer resends nothing that `welcome` has named as taken, so duplicates are not expected; one is dropped.
        if seq > taken:
            self._taken[key] = seq
            if key[:2] not in self.gone:
                self._take(caller.peer, caller.life, word, payload)
        if not comes_first:
            self._meet_marker(marker)
