"""The record of the messages that a node sends to its peers and takes from them, written by its host.

A *life* is one process of a node; lives count from 1. A host that traces puts each message to a peer into an
`Envelope`, which names the message among all of the run: (node, life, seq). The node never sees it. The rows of one
life, in the order in which things happened to the node:

| row | when |
|---|---|
| `["life", node, life, wall_ns, time_ns]` | the process starts |
| `["send", seq, peer, what, about, time_ns]` | a step asks for it: what the node does later is not in the message |
| `["receive", node, life, seq, time_ns]` | a step takes the message in, and does not ask for it `Again` |
| `["mark", kind, fields, time_ns]` | a step returns a `Mark` |

`peer`: the name that the link was dialed by, "" on one that the peer dialed. `what` and `about` are what `Described`
says of the message, such as the word and the transaction. `time_ns` is the host's monotonic clock, which no fault
changes; orders of events come from the rows' places, never from times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from nodes.kernel.effects import Again, Effect, Mark, Send
from nodes.kernel.events import Connected, Event, Received

TRACE_FILE: Final = "trace-{:06}.jsonl"
"""The file of a life, of a row a line."""
Row = list[object]
Described = Callable[[object], tuple[str, str] | None]
"""A message → its kind and its subject; None: it is not for a peer, and is not traced."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """A message between two nodes, and its name: message `seq` (from 1) of that life of that node."""

    node: str
    life: int
    seq: int
    message: object


class Tracer:
    """One life of one node. A host calls `opened` with each event, and `closed` with the effects of its step."""

    def __init__(
        self,
        node: str,
        life: int,
        wall_ns: int,
        described: Described,
        now_ns: Callable[[], int],
        write: Callable[[Row], None],
    ) -> None:
        self._node = node
        self._life = life
        self._described = described
        self._now_ns = now_ns
        self._write = write
        self._last = 0
        self._peers: dict[int, str] = {}
        self._taken: tuple[Event, Event, Envelope] | None = None
        """The event as it came, the event as the node gets it, and its envelope."""
        self._note("life", node, life, wall_ns)

    def opened(self, event: Event) -> Event:
        """The event as the node gets it."""
        self._taken = None
        match event:
            case Received(link, Envelope() as envelope):
                plain = Received(link, envelope.message)
                self._taken = (event, plain, envelope)
                return plain
            case Connected(link, peer):
                self._peers[link] = peer
        return event

    def closed(self, effects: Sequence[Effect]) -> Sequence[Effect]:
        """The effects as the host does them: peers' messages in envelopes, without marks."""
        came, plain, envelope = self._taken or (None, None, None)
        if envelope is not None and not any(
            type(asked) is Again and asked.event is plain for asked in effects
        ):
            self._note("receive", envelope.node, envelope.life, envelope.seq)
        done: list[Effect] = []
        for effect in effects:
            match effect:
                case Send(link, message) if (described := self._described(message)) is not None:
                    self._last += 1
                    self._note("send", self._last, self._peers.get(link, ""), *described)
                    done.append(
                        replace(effect, message=Envelope(self._node, self._life, self._last, message))
                    )
                case Mark(kind, fields):
                    self._note("mark", kind, dict(fields))
                case Again(event) if came is not None and event is plain:
                    done.append(Again(came))
                case _:
                    done.append(effect)
        return done

    def _note(self, *fields: object) -> None:
        self._write([*fields, self._now_ns()])
