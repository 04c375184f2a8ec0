"""The messages of the two-phase store, and the words for them that faults hold and wait for."""

from __future__ import annotations

from collections.abc import Iterable

from harness.systems.framed_wire import Framed
from nodes.kernel.trace import Envelope
from nodes.twophase.agreed import TOPOLOGY_WORDS, Entry
from nodes.twophase.dispatch import described

OF_TRANSACTION = "transaction"
"""Any message of a transaction."""
MARKED = "marked"
"""Any message of a transaction that carries the marker of a cut."""
NEWS_OF_CUT = "news of a cut"
"""A message of discovery that brings the entry of a cut."""
NEWS_OF_MEMBERS = "news of members"
"""One that brings an entry about members or owners in sync."""


class TwoPhaseWire(Framed):
    def kinds_of(self, message: object) -> tuple[str, ...]:
        """The message's own word; and which of the words above it comes under."""
        inner = message.message if isinstance(message, Envelope) else message
        kinds = super().kinds_of(inner)
        match inner:
            case ["append", _, _, _, _, list() as entries, _]:
                return (*kinds, *_news(entry for _, entry in entries))
            case ["learn", _, _, list() as entries]:
                return (*kinds, *_news(entries))
            case [_, _, marker, *_] if described(inner) is not None:
                return (*kinds, OF_TRANSACTION, *(() if marker is None else (MARKED,)))
        return kinds


def _news(entries: Iterable[Entry]) -> list[str]:
    words = {entry[0] for entry in entries}
    of_members = not words.isdisjoint(TOPOLOGY_WORDS)
    return [NEWS_OF_CUT] * ("cut" in words) + [NEWS_OF_MEMBERS] * of_members


WIRE = TwoPhaseWire()
