"""The discovery log on a server's disk: term, vote and entries, on disk before a message depends on them (Raft).

Records: `["term", term, vote]`, `["entry", index, term, entry]`, `["state", index, term, state]`. An entry at an index
that is taken discards the entry there and all behind it. A state replaces all entries up to its index; those behind it
stay if the log has the same entry at that index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nodes.kernel.effects import Truncate
from nodes.kernel.errors import StartRefused
from nodes.records import framed, records_of
from nodes.twophase.agreed import Entry
from nodes.twophase.site import Site, Then
from nodes.twophase.sometimes import TORN_TAIL

FILE = "discovery.log"


class DiscoveryLog:
    def __init__(self, site: Site) -> None:
        self._site = site
        self.term = 0
        self.vote: str | None = None
        self.base, self.base_term = 0, 0
        """Index and term of the last entry that the state replaces."""
        self.state: Mapping[str, Any] | None = None
        """`Agreed.to_state` at the base; None: the log begins with its first entry."""
        self.entries: list[tuple[int, Entry]] = []
        """(term, entry); the first one has the index `base` + 1."""
        self.durable = 0
        """The last index that is surely on the own disk."""

    @property
    def last_index(self) -> int:
        return self.base + len(self.entries)

    @property
    def last_term(self) -> int:
        return self.term_at(self.last_index)

    def term_at(self, index: int) -> int:
        """The term of an entry at the base or behind it."""
        return self.base_term if index == self.base else self.at(index)[0]

    def at(self, index: int) -> tuple[int, Entry]:
        return self.entries[index - self.base - 1]

    def behind(self, index: int) -> list[tuple[int, Entry]]:
        return self.entries[index - self.base :]

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
                case ["entry", index, term, entry] if self.base < index <= self.last_index + 1:
                    del self.entries[index - self.base - 1 :]
                    self.entries.append((term, entry))
                case ["state", index, term, state] if index > self.base:
                    self._begin_with(index, term, state)
                case _:
                    raise StartRefused(f"{FILE} has a record that does not follow: {record!r}"[:120])
        self.durable = self.last_index
        if data:
            self._site.sync(FILE)

    def promise(self, term: int, vote: str | None) -> None:
        """Write a term, and the own vote in it."""
        self.term, self.vote = term, vote
        self._site.persist(FILE, framed(["term", term, vote]), "term")

    def append(self, term: int, entry: Entry, then: Then) -> int:
        """Append an entry; `then` is called when it is on disk."""
        self._write(self.last_index + 1, term, entry, then)
        return self.last_index

    def take(self, first: int, entries: Sequence[Sequence[Any]], then: Then) -> None:
        """Take a coordinator's entries from index `first` on; entries that the log has already stay."""
        for index, (term, entry) in enumerate(entries, first):
            if index > self.last_index or self.term_at(index) != term:
                self._write(index, term, entry, then)

    def begin_with(self, index: int, term: int, state: Mapping[str, Any]) -> None:
        """Let the state replace all entries up to this index, which are committed."""
        self._begin_with(index, term, state)

        def on_disk() -> None:
            self.durable = max(self.durable, index)

        self._site.persist(FILE, framed(["state", index, term, state]), "state", on_disk)

    def _begin_with(self, index: int, term: int, state: Mapping[str, Any]) -> None:
        has_it = index <= self.last_index and self.term_at(index) == term
        self.entries = self.behind(index) if has_it else []
        self.base, self.base_term, self.state = index, term, state

    def _write(self, index: int, term: int, entry: Entry, then: Then) -> None:
        del self.entries[index - self.base - 1 :]
        self.durable = min(self.durable, index - 1)  # what was there is discarded, on disk or not
        self.entries.append((term, entry))

        def on_disk() -> None:
            # A different entry may have taken its place while it was on its way to the disk.
            if index <= self.base or (index <= self.last_index and self.at(index) == (term, entry)):
                self.durable = max(self.durable, index)
                then()

        self._site.persist(FILE, framed(["entry", index, term, entry]), "entry", on_disk)
