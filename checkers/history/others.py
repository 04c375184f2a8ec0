"""The events of a large record that are no client's: of the nemesis, the monitor, the harness and the operator."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Iterator
from heapq import merge
from operator import attrgetter
from sys import intern
from typing import Final

import msgspec

from checkers.history.alike import Alike
from checkers.history.operation import Event

OFTEN: Final = frozenset({"state", "used", "skipped"})
"""The names of nearly all of them, if the monitor or the harness wrote them. Most readers look for none of these."""
TELL_OFTEN: Final = frozenset({"monitor", "harness"})
BLOCK_BYTES: Final = 1 << 16
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Event).decode


def is_frequent(event: Event) -> bool:
    """Whether nearly all events of no client are like this one."""
    return event.f in OFTEN and event.process in TELL_OFTEN


class Others:
    """The events of no client, added in the order of their indexes.

    Frequent events are packed: a run of some hours has two hundred thousand, which take 0.6 to 0.9 KB each as objects,
    and less than a tenth of that packed.
    """

    def __init__(self) -> None:
        self.rare: list[Event] = []
        self._often = {name: _Packed() for name in OFTEN}
        self._alike = Alike()

    def add(self, event: Event) -> None:
        if is_frequent(event):
            self._often[event.f].add(event)
        else:
            self.rare.append(_small(event, self._alike))

    def __iter__(self) -> Iterator[Event]:
        return merge(self.rare, *self._often.values(), key=attrgetter("index"))

    def named(self, names: Collection[str]) -> Iterable[Event]:
        """The events with one of these names, in order. Without names: all that are not frequent."""
        rare = (event for event in self.rare if not names or event.f in names)
        packed = [self._often[name] for name in names if name in OFTEN]
        return merge(rare, *packed, key=attrgetter("index")) if packed else rare


class _Packed:
    """Events as lines, compressed some hundred together."""

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._lines: list[bytes] = []
        self._bytes = 0

    def add(self, event: Event) -> None:
        self._lines.append(_encode(event))
        self._bytes += len(self._lines[-1])
        if self._bytes > BLOCK_BYTES:
            self._blocks.append(zlib.compress(b"\n".join(self._lines), 1))
            self._lines, self._bytes = [], 0

    def __iter__(self) -> Iterator[Event]:
        """The values of the monitor's share what they have in common."""
        alike = Alike()
        for block in self._blocks:
            for line in zlib.decompress(block).split(b"\n"):
                yield _small(_decode(line), alike)
        for line in self._lines:
            yield _small(_decode(line), alike)


def _small(event: Event, alike: Alike) -> Event:
    """The event in less memory: each line brings words of its own."""
    assert isinstance(event.process, str)
    node = None if event.node is None else intern(event.node)
    value = event.value
    if event.process == "monitor" and isinstance(value, dict):
        value = alike.of(node, value)
    return msgspec.structs.replace(
        event, process=intern(event.process), f=intern(event.f), node=node, value=value
    )
