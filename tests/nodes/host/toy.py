"""A toy system for the host's tests: lines of text for a protocol, an echo that may persist for a node.

`python -m tests.nodes.host.toy` is `python -m nodes.host` with one more system in the table, "toy".

| line | what the node does |
|---|---|
| echo X | answers X |
| store X | appends X to journal.txt, answers "stored X" behind it; "lost X" if the write failed |
| misplace F | asks for a record in the file F |
| hear | answers how many records it has been told are persisted |
| dial P | connects to peer P; says "hello" there when it stands; answers "connected P" or "failed P: why" |
| timer N | answers "fired" after N milliseconds |
| flood N | answers N bytes |
| log X | writes a log line |
| turn X | counts the rare turn X, and answers how often it came about |
| end | answers "bye" and ends the link |
| break | fails an assertion |
| files | answers the names of the files it started with |
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence

from nodes.host import lifeline
from nodes.host.systems import SYSTEMS, Hosted
from nodes.kernel.effects import Connect, Disconnect, Effect, Log, Persist, Send, SetTimer, Truncate
from nodes.kernel.events import (
    Accepted,
    Connected,
    ConnectFailed,
    Disconnected,
    Event,
    Instant,
    Persisted,
    PersistFailed,
    Received,
    Started,
    Stopping,
    TimerFired,
)

GREETING = b"toy greets you\n"


class BrokenLine(Exception):
    """A byte that is no ASCII."""


class ToyDecoder:
    def __init__(self, greeted: bool) -> None:
        self.greeted = greeted
        self._rest = b""

    def feed(self, data: bytes) -> Sequence[object]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        if not self.greeted and lines:
            if lines.pop(0) + b"\n" != GREETING:
                raise BrokenLine("that is no greeting")
            self.greeted = True
        try:
            return [line.decode("ascii") for line in lines]
        except UnicodeDecodeError as error:
            raise BrokenLine(f"no ASCII at byte {error.start}") from error


class ToyCodec:
    broken_framing: type[Exception] = BrokenLine

    def accepted(self) -> tuple[bytes, ToyDecoder]:
        return GREETING, ToyDecoder(greeted=True)

    def peer_decoder(self) -> ToyDecoder:
        return ToyDecoder(greeted=False)

    def encode(self, message: object) -> bytes:
        assert isinstance(message, str)
        return message.encode() + b"\n"


class Toy:
    def __init__(self) -> None:
        self.files: tuple[str, ...] = ()
        self.lsn = 0
        self.stored: dict[int, tuple[int, str]] = {}
        self.asked: dict[str, int] = {}
        self.clients: set[int] = set()
        self.sometimes: dict[str, int] = {}

    def status(self) -> Mapping[str, object]:
        return {"lsn": self.lsn, "term": 1}

    def step(self, event: Event, now: Instant) -> Sequence[Effect]:
        match event:
            case Started(files):
                if b"unreadable" in files.values():
                    raise ValueError("journal.txt is not a journal")
                self.files = tuple(files)
                if torn := len(files.get("journal.txt", b"").rpartition(b"\n")[2]):
                    return [Truncate("journal.txt", len(files["journal.txt"]) - torn)]
            case Received(link, message):
                return self.obey(link, *str(message).partition(" ")[::2])
            case Persisted(token):
                self.lsn += 1
                del self.stored[token]
            case PersistFailed(tokens, error):
                assert list(tokens) == list(self.stored)
                return [Send(*self.lost(token)) for token in tokens]
            case Connected(link, peer):
                return [Send(link, "echo hello"), Send(self.asked[peer], f"connected {peer}")]
            case ConnectFailed(peer, error):
                return [Send(self.asked[peer], f"failed {peer}: {error}")]
            case TimerFired(name):
                return [Send(int(name), "fired")]
            case Accepted(link):
                self.clients.add(link)
            case Disconnected(link, reason):
                self.clients.discard(link)
                return [Log("info", "a link ended", {"link": link, "reason": reason})]
            case Stopping():
                last = [Persist(10**9, "journal.txt", b"the end\n", "row")]
                self.stored[10**9] = (0, "the end")
                return [*last, *(Send(link, "goodbye") for link in sorted(self.clients))]
        return []

    def lost(self, token: int) -> tuple[int, str]:
        link, text = self.stored.pop(token)
        return link, f"lost {text}"

    def obey(self, link: int, verb: str, rest: str) -> Sequence[Effect]:
        match verb:
            case "echo":
                return [Send(link, rest)]
            case "store":
                token = max(self.stored, default=self.lsn) + 1
                self.stored[token] = (link, rest)
                record = Persist(token, "journal.txt", rest.encode() + b"\n", "row")
                return [record, Send(link, f"stored {rest}", after=token)]
            case "misplace":
                return [Persist(max(self.stored, default=self.lsn) + 1, rest, b"x", "row")]
            case "hear":
                return [Send(link, str(self.lsn))]
            case "dial":
                self.asked[rest] = link
                return [Connect(rest)]
            case "timer":
                return [SetTimer(str(link), int(rest) * 1_000_000)]
            case "flood":
                return [Send(link, "x" * int(rest))]
            case "log":
                return [Log("info", rest, {"colour": "blue"})]
            case "turn":
                self.sometimes[rest] = self.sometimes.get(rest, 0) + 1
                return [Send(link, str(self.sometimes[rest]))]
            case "end":
                return [Send(link, "bye"), Disconnect(link)]
            case "files":
                return [Send(link, " ".join(self.files))]
            case "break":
                assert verb != "break", "asked to break"
        return []


def toy(config: bytes) -> Hosted:
    return Hosted(str(json.loads(config)["name"]), Toy(), ToyCodec())


if __name__ == "__main__":
    lifeline.die_with_parent()
    from nodes.host import process

    sys.exit(process.main(sys.argv[1:], {**SYSTEMS, "toy": toy}))
