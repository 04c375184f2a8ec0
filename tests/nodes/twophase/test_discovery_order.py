"""Discovery in single steps: what must be on a disk before which message leaves, and what a majority has (Raft)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from nodes.kernel.effects import Effect, Persist
from nodes.kernel.events import Instant
from nodes.twophase.agreed import Agreed
from nodes.twophase.configuration import MILLISECOND, Configuration
from nodes.twophase.decisions import Decisions
from nodes.twophase.discovery import Discovery
from nodes.twophase.site import Site
from tests.nodes.twophase.virtual_cluster import SERVERS

NOOP = ["noop"]


@dataclass(frozen=True)
class Told:
    """A message to a peer, at its place among the records."""

    peer: str
    message: list[Any]


class Server:
    """The discovery of n1, one of three servers."""

    def __init__(self) -> None:
        configuration = Configuration(name="n1", role="server", baseline=SERVERS)
        self.site = Site(configuration, Decisions())
        self.site.begin(1)
        self.delivered: list[int] = []
        agreed = Agreed(configuration, True)
        self.discovery = Discovery(
            *(self.site, agreed, lambda peer, message: self.site.out.append(Told(peer, message))),  # type: ignore[arg-type]
            *(lambda index, entry: self.delivered.append(index), lambda: [0, 0]),
        )
        self.discovery.start({})

    def take(self, peer: str, *message: Any) -> list[str]:
        """The records and messages that a message brings forth, by kind, in order."""
        self.site.out = []
        self.discovery.take(peer, 1, list(message))
        return kinds_of(self.site.out)

    def written(self) -> None:
        """All records of the last step are on disk."""
        for effect in self.site.out[:]:
            if isinstance(effect, Persist):
                self.site.persisted(effect.token)

    def lead(self, term: int) -> None:
        """Win the election of this term."""
        log = self.discovery.log
        self.site.now = Instant(self.site.now.monotonic_ns + 10_000 * MILLISECOND, 0)
        self.discovery.beat()
        self.take("n2", "would-vote", 0, log.term, True)
        assert log.term == term
        self.take("n2", "vote", 0, term, True)
        assert self.discovery.role == "coordinator"


def kinds_of(effects: Sequence[Effect | Told]) -> list[str]:
    return [
        effect.record if isinstance(effect, Persist) else str(effect.message[0])
        for effect in effects
        if isinstance(effect, Persist | Told)
    ]


@pytest.fixture
def server() -> Server:
    return Server()


def test_a_vote_is_written_before_it_is_sent(server: Server) -> None:
    """If it failed, a server that restarts could vote twice in one term, for two coordinators."""
    assert server.take("n2", "vote?", 0, 5, 0, 0) == ["term", "term", "vote"]


def test_a_candidate_writes_its_vote_before_it_asks(server: Server) -> None:
    """If it failed, a candidate that restarts could vote for another one in the term in which it was elected."""
    server.site.now = Instant(10_000 * MILLISECOND, 0)
    server.discovery.beat()
    assert server.take("n2", "would-vote", 0, 0, True) == ["term", "vote?", "vote?"]


def test_entries_are_written_before_they_are_acknowledged(server: Server) -> None:
    """If it failed, the coordinator would commit an entry that a power loss takes away from its majority."""
    said = server.take("n2", "append", 0, 1, 0, 0, [[1, NOOP]], 0)
    assert said == ["term", "entry", "appended"]


def test_no_more_is_committed_than_the_message_covers(server: Server) -> None:
    """If it failed, an old entry behind the common part of two logs would be delivered here, and nowhere else."""
    server.take("n2", "append", 0, 1, 0, 0, [[1, NOOP], [1, ["cut", "old", "n2", 0]]], 0)
    server.take("n3", "append", 0, 2, 1, 1, [], 2)
    assert server.delivered == [1]


def test_the_coordinators_own_disk_is_one_of_the_majority(server: Server) -> None:
    """If it failed, an entry would count as committed that is on one disk of three."""
    server.lead(1)
    server.discovery.take("n2", 1, ["appended", 0, 1, True, 1, [0, 0]])
    assert server.delivered == []
    server.written()
    assert server.delivered == [1]


def test_an_entry_of_an_older_term_is_committed_by_one_of_the_own(server: Server) -> None:
    """If it failed, a committed entry could still be replaced, by a coordinator elected without it (section 3.6.2)."""
    server.take("n2", "append", 0, 1, 0, 0, [[1, ["cut", "old", "n2", 0]]], 0)
    server.written()
    server.lead(2)
    assert server.discovery.log.at(2) == (2, NOOP)
    server.written()
    server.discovery.take("n2", 1, ["appended", 0, 2, True, 1, [0, 0]])
    assert server.delivered == []
    server.discovery.take("n2", 1, ["appended", 0, 2, True, 2, [0, 0]])
    assert server.delivered == [1, 2]


def test_an_entry_that_was_replaced_on_its_way_to_the_disk_counts_for_nothing(server: Server) -> None:
    """If it failed, a coordinator would count itself for an entry that its disk does not have."""
    server.take("n2", "append", 0, 1, 0, 0, [[1, ["cut", "old", "n2", 0]]], 0)
    first = server.site.out
    server.take("n3", "append", 0, 2, 0, 0, [[2, NOOP]], 0)
    for effect in first:
        if isinstance(effect, Persist):
            server.site.persisted(effect.token)
    assert server.discovery.log.durable == 0
    server.written()
    assert server.discovery.log.durable == 1


def test_an_entry_that_replaces_a_written_one_is_not_on_disk_yet(server: Server) -> None:
    """If it failed, the disk would count for the new entry because it had the old one."""
    server.take("n2", "append", 0, 1, 0, 0, [[1, ["cut", "old", "n2", 0]]], 0)
    server.written()
    assert server.discovery.log.durable == 1
    server.take("n3", "append", 0, 2, 0, 0, [[2, NOOP]], 0)
    assert server.discovery.log.durable == 0
