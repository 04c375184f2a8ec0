"""Connections between masters: every master calls every other one twice, for rounds and for updates of transactions.

| message | |
|---|---|
| `["hello", 0, master, {"lane", …}]` | the first one: the caller, the lane, and its pace (`settings.py`) |
| `["seen", 0]` | the answer to every message of rounds: a call without answers is given up |

On its own calls a master sends POSTs, differences and digests (lane `rounds`), or asks for updates (lane
`updates`). A master that is not configured is refused: its link is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nodes.kernel.effects import Connect, Disconnect, Send
from nodes.txlog.site import Site

ROUNDS, UPDATES = "rounds", "updates"
LANES = (ROUNDS, UPDATES)
RETRY_NS = 50_000_000
SILENT_NS = 600_000_000
"""A call without an answer for this time is given up."""
WORDS = ("hello", "seen", "post", "relayed", "difference", "digest", "updates?", "updates")
"""The first words of messages between masters."""
Message = list[Any]
Take = Callable[[str, int, Message], None]


def described(message: object) -> tuple[str, str] | None:
    """The word of a message between masters, for a host that records them (`nodes.kernel.trace`)."""
    match message:
        case [str() as word, *_] if word in WORDS:
            return word, ""
    return None


@dataclass(slots=True)
class Call:
    """One of our two calls to a peer; `link` is None while it does not stand."""

    peer: str
    lane: str
    link: int | None = None
    is_calling: bool = False
    asked_ns: int | None = None
    """When the oldest unanswered message was sent."""


class Links:
    """All calls of this master, and the links on which others call it."""

    def __init__(
        self, site: Site, is_peer: Callable[[str], bool], take: Take, says: Callable[[], Mapping[str, object]]
    ) -> None:
        """`take(peer, link, message)` gets the messages that do not concern the links themselves. `says`: the own
        settings, for a `hello`.
        """
        self._site = site
        self._is_peer = is_peer
        self._take = take
        self._says = says
        self._calls: list[Call] = []
        self._by_link: dict[int, Call] = {}
        self._callers: dict[int, str] = {}
        self._hung_up: set[int] = set()
        self.refused: set[str] = set()
        self.told: dict[str, Mapping[str, object]] = {}
        """Peer → the settings of its last `hello`."""

    def call(self, peer: str) -> None:
        for lane in LANES:
            self._calls.append(Call(peer, lane))
            self._connect(self._calls[-1])

    def send(self, peer: str, lane: str, message: Message) -> bool:
        """Send a message on a lane; False if its link does not stand."""
        now_ns = self._site.now.monotonic_ns
        for call in self._calls:
            if call.peer == peer and call.lane == lane and call.link is not None:
                if call.asked_ns is not None and now_ns - call.asked_ns > SILENT_NS:
                    self._site.out.append(Disconnect(call.link))
                    self._lose(call)
                    return False
                # The oldest counts: each message would else begin the silence anew.
                call.asked_ns = now_ns if call.asked_ns is None else call.asked_ns
                self._site.out.append(Send(call.link, message))
                return True
        return False

    # ---- connections

    def _connect(self, call: Call) -> None:
        call.is_calling = True
        self._site.out.append(Connect(call.peer))

    def _lose(self, call: Call) -> None:
        if call.link is not None:
            self._by_link.pop(call.link, None)
        call.link = call.asked_ns = None
        self._site.after(f"call {call.peer} {call.lane}", RETRY_NS, lambda: self._connect(call))

    def connected(self, link: int, peer: str) -> None:
        """A connection stands. Connections to one peer are alike until `hello`: the first one takes the first lane."""
        call = next(call for call in self._calls if call.peer == peer and call.is_calling)
        call.is_calling = False
        call.link = link
        self._by_link[link] = call
        self._site.out.append(Send(link, ["hello", 0, self._site.name, {"lane": call.lane, **self._says()}]))

    def connect_failed(self, peer: str) -> None:
        call = next(call for call in self._calls if call.peer == peer and call.is_calling)
        call.is_calling = False
        self._lose(call)

    def disconnected(self, link: int) -> bool:
        """False if no master is known to use the link. A call that was given up before is none any more."""
        call = self._by_link.get(link)
        if call is not None:
            self._lose(call)
        if link in self._hung_up:
            self._hung_up.discard(link)
            return True
        return self._callers.pop(link, None) is not None or call is not None

    def hang_up(self) -> None:
        """End all links that other masters have called on: their earlier messages are dropped, and they call again."""
        for link in self._callers:
            self._site.out.append(Disconnect(link))
        self._hung_up.update(self._callers)
        self._callers.clear()

    # ---- in

    def received(self, link: int, message: Message) -> bool:
        """False if the message is not from a master."""
        call = self._by_link.get(link)
        if call is not None:
            call.asked_ns = None
            if message[0] != "seen":
                self._take(call.peer, link, message)
            return True
        if link in self._hung_up:
            return True
        match message:
            case ["hello", _, str() as peer, about] if self._is_peer(peer):
                self._callers[link] = peer
                if isinstance(about, Mapping):
                    self.told[peer] = about
                return True
            case ["hello", _, peer, *_]:
                known = isinstance(peer, str) and self._is_peer(peer)
                why = "whose hello is malformed" if known else "that is not configured"
                self._site.log(f"refused a master {why}", "warning", peer=str(peer))
                self.refused.add(str(peer))
                self._site.out.append(Disconnect(link))
                return True
        caller = self._callers.get(link)
        if caller is None:
            return False
        if message[0] != "updates?":
            self._site.out.append(Send(link, ["seen", 0]))
        self._take(caller, link, message)
        return True
