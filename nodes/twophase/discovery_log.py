"""The discovery log on a server's disk: term, vote, entries, all there before a message tells of them (Raft).

Records: `["term", term, vote]`, `["entry", index, term, entry]`. An entry at an index that is taken discards that
one and all behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nodes.kernel.effects import Truncate
from nodes.kernel.errors import StartRefused
from nodes.twophase.agreed import Entry
from nodes.twophase.records import framed, records_of
from nodes.twophase.site import Site, Then
from nodes.twophase.sometimes import TORN_TAIL

FILE = "discovery.log"


class DiscoveryLog:
    def __init__(self, site: Site) -> None:
        self._site = site
        self.term = 0
        self.vote: str | None = None
        self.entries: list[tuple[int, Entry]] = []
        """(term, entry); the first has index 1."""
        self.durable = 0
        """The last index that our disk surely has."""

    @property
    def last_index(self) -> int:
        return len(self.entries)

    @property
    def last_term(self) -> int:
        return self.entries[-1][0] if self.entries else 0

    def term_at(self, index: int) -> int:
        return self.entries[index - 1][0] if index else 0

    def read(self, files: Mapping[str, bytes]) -> None:
        data = files.get(FILE, b"")
        records, whole = records_of(FILE, data)
        if whole < len(data):
            self._site.out.append(Truncate(FILE, whole))
            self._site.sometimes.note(TORN_TAIL)
        for record in records:
            match record:
                case ["term", term, vote]:
                    self.term, self.vote = term, vote
                case ["entry", index, term, entry] if index <= len(self.entries) + 1:
                    del self.entries[index - 1 :]
                    self.entries.append((term, entry))
                case _:
                    raise StartRefused(f"{FILE} has a record that does not follow: {record!r}"[:120])
        self.durable = len(self.entries)
        if data:
            self._site.sync(FILE)

    def promise(self, term: int, vote: str | None) -> None:
        """A term, and our vote in it."""
        self.term, self.vote = term, vote
        self._site.persist(FILE, framed(["term", term, vote]), "term")

    def append(self, term: int, entry: Entry, then: Then) -> int:
        """At the end; `then` when it is on disk."""
        self._write(len(self.entries) + 1, term, entry, then)
        return len(self.entries)

    def take(self, first: int, entries: Sequence[Sequence[Any]], then: Then) -> None:
        """A coordinator's entries from index `first` on; those that we have already stay as they are."""
        for index, (term, entry) in enumerate(entries, first):
            if index > len(self.entries) or self.term_at(index) != term:
                self._write(index, term, entry, then)

    def _write(self, index: int, term: int, entry: Entry, then: Then) -> None:
        del self.entries[index - 1 :]
        self.durable = min(self.durable, index - 1)
        self.entries.append((term, entry))

        def on_disk() -> None:
            if index <= len(self.entries) and self.entries[index - 1] == (term, entry):
                self.durable = max(self.durable, index)
                then()

        self._site.persist(FILE, framed(["entry", index, term, entry]), "entry", on_disk)
