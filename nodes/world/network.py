"""The virtual network: connections as pairs of first-in-first-out streams, and what can be done to them.

Everything that travels on a connection (its opening, greeting, messages, its end) stands in the stream of its
direction, in order, so that a cut needs to know nothing of what it holds up:

- a **cut** of (source, target) withholds what would arrive; on healing it goes on, or the connection is reset;
- a **shaped** pair is late, uneven, or narrow (`shaping.py`); order is kept in each stream;
- **hold** stops the stream before the next message of a class, **stop** before one of some kinds, until released;
- the **end** of a process travels as the end of the stream behind what was sent; a power loss sends nothing.

Loss and duplication happen only through the death of a connection: these are byte streams. With a codec, messages
travel as bytes in chunks of random length and are put together again at the other end.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from nodes.kernel.chance import Streams
from nodes.world.agenda import Agenda
from nodes.world.shaping import Shaping, Shapings

Pair = tuple[str, str]

MICROSECOND = 1_000
MILLISECOND = 1_000_000
PACKET_BYTES = 60
"""The bytes that go with every message, and all that an opening or an end is."""
CONNECT_TIMEOUT_NS = 2_000 * MILLISECOND


class Decoder(Protocol):
    def feed(self, data: bytes) -> Sequence[object]: ...


class Codec(Protocol):
    """Bytes for messages, as the real host uses them."""

    def encode(self, message: object) -> bytes: ...

    def greeting(self) -> bytes: ...

    def server_decoder(self) -> Decoder: ...

    def peer_decoder(self) -> Decoder: ...

    def client_decoder(self) -> Decoder: ...


class Endpoint(Protocol):
    """The owner of one end of connections: a node or the clients."""

    name: str

    def accepted(self, link: int) -> None: ...

    def connected(self, link: int) -> None: ...

    def connect_failed(self, link: int, reason: str) -> None: ...

    def received(self, link: int, message: object) -> None: ...

    def ended(self, link: int, reason: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Item:
    """Something on its way: what it is, and the message, or a chunk of its bytes, if it is one."""

    kind: Literal["open", "greeting", "message", "end"]
    message: object = None
    begins: str = ""
    """The class of the message that begins here."""
    whole: object = None
    """The message that begins here."""


@dataclass(slots=True, eq=False)
class Stream:
    """One direction of a connection."""

    pair: Pair
    source: Endpoint
    target: Endpoint
    queue: deque[tuple[int, Item]] = field(default_factory=deque)
    last_arrival_ns: int = 0
    is_open: bool = True
    """The receiving end still listens."""
    is_silent: bool = False
    """The receiving end lost power: it answers nothing until it is up again."""
    scheduled: bool = False
    withheld_since_ns: int | None = None
    decoder: Decoder | None = None


@dataclass(slots=True, eq=False)
class Connection:
    link: int
    there: Stream
    back: Stream
    established: bool = False

    def towards(self, target: Endpoint) -> Stream:
        return self.there if self.there.target is target else self.back

    def onwards(self, source: Endpoint) -> Stream:
        return self.there if self.there.source is source else self.back


@dataclass(slots=True, eq=False)
class Stop:
    """Messages of these kinds (all, if none are named) do not arrive over these pairs, nor what is behind them."""

    pairs: frozenset[Pair]
    kinds: frozenset[str]
    stopped: int = 0
    """Messages of these kinds that did not arrive; what is behind them is not counted."""
    first_ns: int | None = None
    heads: dict[Stream, Item] = field(default_factory=dict)
    """The message that each stream was stopped at last: it is looked at again with all that is sent behind it."""


@dataclass(slots=True)
class Effect:
    """The effect of a cut on a directed pair since it began; times are nanoseconds of the simulator."""

    withheld: int = 0
    """How often something came to the cut; what comes at once counts once."""
    first_withheld_ns: int | None = None
    longest_withheld_ns: int = 0
    passed: int = 0


class Network:
    """All connections of a world."""

    def __init__(self, agenda: Agenda, streams: Streams, codec: Codec | None = None) -> None:
        self._agenda = agenda
        self._streams = streams
        self._codec = codec
        self._endpoints: dict[str, Endpoint] = {}
        self._connections: dict[int, Connection] = {}
        self._links = 0
        self._cuts: dict[Pair, int] = {}
        self._shapings = Shapings()
        self._holds: set[tuple[str, str]] = set()
        self._stops: list[Stop] = []
        self._refused: set[Pair] = set()
        self._chance: dict[Pair, random.Random] = {}
        self._used: set[Pair] = set()
        self.effects: dict[Pair, Effect] = {}
        self.is_up: Callable[[str], bool] = lambda name: True
        self.size_of: Callable[[object], int] = lambda message: PACKET_BYTES
        self.trace: Callable[[str], None] | None = None
        self.kinds_of: Callable[[object], Sequence[str]] = lambda message: (type(message).__name__,)
        self.on_message: Callable[[str, Pair, object], None] | None = None
        """Called with "sends" or "gets", source and target, and the message; None while no fault waits."""

    def add(self, endpoint: Endpoint) -> None:
        self._endpoints[endpoint.name] = endpoint

    def knows(self, name: str) -> bool:
        """Whether there is an endpoint of this name."""
        return name in self._endpoints

    # ---- what endpoints do

    def connect(self, source: Endpoint, target_name: str) -> int:
        """Begin a connection; `connected` or `connect_failed` follows."""
        target = self._endpoints[target_name]
        self._links += 1
        link = self._links
        there = Stream((source.name, target_name), source, target)
        back = Stream((target_name, source.name), target, source)
        if self._codec is not None:
            there.decoder = self._codec.server_decoder()
            is_peer = source.name in self._endpoints and source.name != "client"
            back.decoder = self._codec.peer_decoder() if is_peer else self._codec.client_decoder()
        connection = self._connections[link] = Connection(link, there, back)
        self._put(connection, there, Item("open"))
        self._agenda.after(CONNECT_TIMEOUT_NS, self._give_up_connecting, connection)
        return link

    def greet(self, link: int, greeter: Endpoint) -> None:
        """The server has accepted: its greeting makes the connection stand."""
        connection = self._connections.get(link)
        if connection is None:
            return
        greeting = b"" if self._codec is None else self._codec.greeting()
        self._put(connection, connection.onwards(greeter), Item("greeting", greeting))

    def send(self, link: int, source: Endpoint, message: object) -> None:
        connection = self._connections.get(link)
        if connection is None:
            return
        stream = connection.onwards(source)
        if self.on_message is not None:
            self.on_message("sends", stream.pair, message)
        if self._codec is None:
            self._put(connection, stream, Item("message", message, type(message).__name__, message))
            return
        begins, whole = type(message).__name__, message
        for chunk in _chunks(self._codec.encode(message), self._chance_of(stream.pair)):
            self._put(connection, stream, Item("message", chunk, begins, whole))
            begins, whole = "", None

    def close(self, link: int, closer: Endpoint) -> None:
        """End a connection cleanly: what was sent still arrives."""
        connection = self._connections.get(link)
        if connection is not None:
            connection.towards(closer).is_open = False
            self._put(connection, connection.onwards(closer), Item("end"))

    def process_died(self, endpoint: Endpoint, *, silently: bool) -> None:
        """All connections of an endpoint end: with an end of stream, or, if power was lost, without a word."""
        for connection in list(self._connections.values()):
            if endpoint not in (connection.there.source, connection.there.target):
                continue
            towards, onwards = connection.towards(endpoint), connection.onwards(endpoint)
            if silently:
                towards.is_silent = True
                has_begun = not any(item.kind == "open" for _, item in onwards.queue)
                onwards.queue.clear()
                if not has_begun or not onwards.is_open or onwards.is_silent:
                    self._forget(connection.link)  # no end is left that could hear of it
            elif towards.is_open and not towards.is_silent:  # else it is of a former life
                self.close(connection.link, endpoint)

    # ---- what faults do

    def cut(self, pairs: Iterable[Pair]) -> None:
        for pair in pairs:
            self._cuts[pair] = self._cuts.get(pair, 0) + 1
            self.effects.setdefault(pair, Effect())

    def heal(self, pairs: Sequence[Pair], chance: random.Random) -> int:
        """Lift a cut. Held messages go on, or their connection is reset; returns the number of reset connections.

        While another cut still holds one of its directions, a connection is not reset: no end could hear of it.
        """
        reset = 0
        for pair in pairs:
            self._cuts[pair] -= 1
            if self._cuts[pair] == 0:
                del self._cuts[pair]
        healed = [pair for pair in pairs if pair not in self._cuts]
        for connection in list(self._connections.values()):
            both = (connection.there, connection.back)
            held = [s for s in both if s.pair in healed and s.withheld_since_ns is not None]
            if not held:
                continue
            is_whole = not any(s.pair in self._cuts for s in both)
            # The draw comes first: whether another cut stands changes no draw for the connections behind.
            if chance.random() < 0.5 and is_whole:
                reset += 1
                self.reset(connection.link, "reset after a cut")
            else:
                for stream in held:
                    self._flow_again(connection, stream)
        return reset

    def is_used(self, pair: Pair) -> bool:
        """Something was ever sent over it, and be it an attempt to connect."""
        return pair in self._used

    def is_cut(self, pair: Pair) -> bool:
        """Some fault cuts it now."""
        return pair in self._cuts

    def refuse(self, caller: str, called: str) -> None:
        """Connections that `caller` makes to `called` end, and new ones are refused; the other way is as before."""
        self._refused.add((caller, called))
        for connection in list(self._connections.values()):
            if connection.there.pair == (caller, called):
                self.reset(connection.link, "connection refused")

    def accept(self, caller: str, called: str) -> None:
        """The end of `refuse`."""
        self._refused.discard((caller, called))

    def shape(self, pairs: Iterable[Pair], shaping: Shaping) -> None:
        self._shapings.add(pairs, shaping)

    def unshape(self, pairs: Iterable[Pair], shaping: Shaping) -> None:
        self._shapings.remove(pairs, shaping)

    def hold(self, target: str, message_class: str) -> None:
        """Stop the next message of a class (its type's name) that would arrive at a node, and what is behind it."""
        self._holds.add((target, message_class))

    def release(self, target: str, message_class: str) -> None:
        """Let held messages of the class go on."""
        self._holds.discard((target, message_class))
        for connection in list(self._connections.values()):
            for stream in (connection.there, connection.back):
                if stream.target.name == target and stream.withheld_since_ns is None:
                    self._flow_again(connection, stream)

    def stop(self, pairs: Iterable[Pair], kinds: Iterable[str]) -> Stop:
        """Stop what is of these kinds on these pairs, and what is behind it, until `go_on`."""
        stop = Stop(frozenset(pairs), frozenset(kinds))
        self._stops.append(stop)
        return stop

    def go_on(self, stop: Stop) -> None:
        self._stops.remove(stop)
        for connection in list(self._connections.values()):
            for stream in (connection.there, connection.back):
                if stream.pair in stop.pairs and stream.withheld_since_ns is None:
                    self._flow_again(connection, stream)

    def reset(self, link: int, reason: str) -> None:
        """Both ends learn that the connection is gone; nothing that was under way arrives."""
        connection = self._forget(link)
        if connection is None:
            return
        for stream in (connection.there, connection.back):
            stream.queue.clear()
            self._tell_end(connection, stream, reason)

    def take_effects(self, pairs: Iterable[Pair]) -> dict[Pair, Effect]:
        """The effects on these pairs since they were first cut; counting begins anew."""
        taken: dict[Pair, Effect] = {}
        for pair in pairs:
            effect = self.effects.pop(pair, Effect())
            for stream in self._streams_of(pair):
                if stream.withheld_since_ns is not None:
                    self._note_withheld_time(effect, stream.withheld_since_ns)
            taken[pair] = effect
        return taken

    # ---- streams

    def _put(self, connection: Connection, stream: Stream, item: Item) -> None:
        self._used.add(stream.pair)
        arrival_ns = self._arrival_ns(stream, item)
        stream.last_arrival_ns = arrival_ns
        stream.queue.append((arrival_ns, item))
        if not stream.scheduled:
            stream.scheduled = True
            self._agenda.at(arrival_ns, self._arrive, connection, stream)

    def _latency_ns(self, pair: Pair) -> int:
        chance = self._chance_of(pair)
        draw = chance.random()
        latency_ns = 80 * MICROSECOND + int(draw * 200 * MICROSECOND)
        if draw > 0.995:
            latency_ns += int(chance.random() * 15 * MILLISECOND)
        return latency_ns

    def _arrival_ns(self, stream: Stream, item: Item) -> int:
        """When what is sent now will be at the head of its stream, and the wire will have brought it."""
        now_ns, pair = self._agenda.now_ns, stream.pair
        # Before the shaping: the latency of a message is the same draw with or without it.
        latency_ns = self._latency_ns(pair)
        shaped = self._shapings.of(pair)
        if shaped is None:
            return max(stream.last_arrival_ns, now_ns + latency_ns)
        late_ns = shaped.late_ns(now_ns, self._bytes_of(item), self._chance_of(pair))
        arrival_ns = max(stream.last_arrival_ns, now_ns + latency_ns + sum(late_ns.values()))
        shaped.sent(now_ns, arrival_ns, arrival_ns - now_ns - latency_ns, late_ns)
        return arrival_ns

    def _late_ns(self, pair: Pair) -> int:
        shaped = self._shapings.of(pair)
        return 0 if shaped is None else sum(shaped.drawn_ns(self._chance_of(pair)).values())

    def _bytes_of(self, item: Item) -> int:
        match item.message:
            case None:
                return PACKET_BYTES
            case bytes(chunk):
                return PACKET_BYTES + len(chunk)
            case message:
                return PACKET_BYTES + self.size_of(message)

    def _chance_of(self, pair: Pair) -> random.Random:
        chance = self._chance.get(pair)
        if chance is None:
            chance = self._chance[pair] = self._streams[f"link {pair[0]} {pair[1]}"]
        return chance

    def _arrive(self, connection: Connection, stream: Stream) -> None:
        stream.scheduled = False
        now_ns = self._agenda.now_ns
        while stream.queue:
            arrival_ns, item = stream.queue[0]
            if arrival_ns > now_ns:
                stream.scheduled = True
                self._agenda.at(arrival_ns, self._arrive, connection, stream)
                return
            if stream.pair in self._cuts:
                self._withhold(stream)
                return
            if (stream.target.name, item.begins) in self._holds:
                return
            if self._stops and self._is_stopped(stream, item):
                return
            stream.queue.popleft()
            if stream.pair in self.effects:
                self.effects[stream.pair].passed += 1
            self._hand_over(connection, stream, item)

    def _withhold(self, stream: Stream) -> None:
        if stream.withheld_since_ns is None:
            stream.withheld_since_ns = self._agenda.now_ns
        effect = self.effects.setdefault(stream.pair, Effect())
        effect.withheld += 1
        if effect.first_withheld_ns is None:
            effect.first_withheld_ns = self._agenda.now_ns

    def _is_stopped(self, stream: Stream, item: Item) -> bool:
        if item.whole is None:
            return False
        for stop in self._stops:
            if stream.pair in stop.pairs and (
                not stop.kinds or not stop.kinds.isdisjoint(self.kinds_of(item.whole))
            ):
                if stop.heads.get(stream) is not item:
                    stop.heads[stream] = item
                    stop.stopped += 1
                if stop.first_ns is None:
                    stop.first_ns = self._agenda.now_ns
                return True
        return False

    def _flow_again(self, connection: Connection, stream: Stream) -> None:
        if stream.withheld_since_ns is not None:
            effect = self.effects.get(stream.pair)
            if effect is not None:
                self._note_withheld_time(effect, stream.withheld_since_ns)
            stream.withheld_since_ns = None
        if stream.queue and not stream.scheduled:
            stream.scheduled = True
            passes_ns = self._agenda.now_ns + self._latency_ns(stream.pair) + self._late_ns(stream.pair)
            self._agenda.at(passes_ns, self._arrive, connection, stream)

    def _note_withheld_time(self, effect: Effect, since_ns: int) -> None:
        effect.longest_withheld_ns = max(effect.longest_withheld_ns, self._agenda.now_ns - since_ns)

    def _streams_of(self, pair: Pair) -> list[Stream]:
        return [s for c in self._connections.values() for s in (c.there, c.back) if s.pair == pair]

    # ---- arrivals

    def _hand_over(self, connection: Connection, stream: Stream, item: Item) -> None:
        if self.trace is not None:
            self.trace(f"{stream.pair[0]}>{stream.pair[1]} #{connection.link} {item.kind} {item.message!r}")
        if stream.is_silent and self.is_up(stream.target.name):
            self.reset(connection.link, "connection reset by peer")
            return
        if stream.is_silent or not stream.is_open:
            if item.kind == "end":  # nor does the other end listen any more
                self._forget(connection.link)
            return
        match item.kind:
            case "open":
                if self.is_up(stream.target.name) and stream.pair not in self._refused:
                    stream.target.accepted(connection.link)
                else:
                    self._refuse(connection)
            case "greeting":
                self._feed(connection, stream, item)
                connection.established = True
                stream.target.connected(connection.link)
            case "message":
                self._feed(connection, stream, item)
                if self.on_message is not None and item.whole is not None:
                    self.on_message("gets", stream.pair, item.whole)
            case "end":
                self._forget(connection.link)
                self._tell_end(connection, stream, "end of stream")

    def _feed(self, connection: Connection, stream: Stream, item: Item) -> None:
        if stream.decoder is None:
            if item.kind == "message":
                stream.target.received(connection.link, item.message)
            return
        assert isinstance(item.message, bytes)
        for message in stream.decoder.feed(item.message):
            stream.target.received(connection.link, message)

    def _forget(self, link: int) -> Connection | None:
        """A connection is gone; what was withheld on it until now still counts."""
        connection = self._connections.pop(link, None)
        if connection is not None:
            for stream in (connection.there, connection.back):
                if stream.withheld_since_ns is not None and stream.pair in self.effects:
                    self._note_withheld_time(self.effects[stream.pair], stream.withheld_since_ns)
        return connection

    def _refuse(self, connection: Connection) -> None:
        self._forget(connection.link)
        self._tell_end(connection, connection.back, "connection refused")

    def _give_up_connecting(self, connection: Connection) -> None:
        waits = connection.back.is_open and not connection.back.is_silent
        if waits and not connection.established and connection.link in self._connections:
            self._put(connection, connection.there, Item("end"))
            self._tell_end(connection, connection.back, "no greeting in time")

    def _tell_end(self, connection: Connection, stream: Stream, reason: str) -> None:
        """Tell the receiving end of a stream, if it still listens, that the connection is gone."""
        if not stream.is_open or stream.is_silent:
            return
        stream.is_open = False
        if stream is connection.back and not connection.established:
            stream.target.connect_failed(connection.link, reason)
        else:
            stream.target.ended(connection.link, reason)


def _chunks(data: bytes, chance: random.Random) -> list[bytes]:
    """Bytes cut where chance wants it."""
    if len(data) < 2 or chance.random() < 0.7:
        return [data]
    place = chance.randrange(1, len(data))
    return [data[:place], data[place:]]
