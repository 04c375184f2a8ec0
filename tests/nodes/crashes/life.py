"""A node's life over a virtual folder: a conversation whose records go to the files of the real host.

`promise` is what the node may have told somebody by now: rows, a term and a vote, tuples. It grows when nothing that
the node knows waits for the disk any more, or when records are reported as durable.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from nodes.host.files import Files
from nodes.iproto.messages import JoinMeta, JoinSnapshot, RaftState, Row, Rows, Stage
from nodes.kernel.effects import Connect, Disconnect, Effect, Persist, Remove, Send, Truncate
from nodes.kernel.events import Event, Persisted, PersistFailed, Received, Started
from nodes.kernel.outbox import Outbox
from nodes.qsync import snapshot as snapshots
from nodes.qsync.bootstrap import Stored, first_snapshot, in_order, insert_row
from nodes.qsync.configuration import Configuration
from nodes.qsync.replica import Replica
from nodes.qsync.system_spaces import CLUSTER
from tests.nodes.crashes.virtual_folder import VirtualFolder
from tests.nodes.qsync.conversation import Conversation


@dataclass(frozen=True, slots=True)
class Promise:
    rows: frozenset[tuple[int, int]] = frozenset()
    """Replica id and lsn of each."""
    term: int = 0
    vote: int = 0
    tuples: frozenset[tuple[int, object]] = frozenset()
    """Number of a space, and a tuple of it."""


@dataclass
class Life(Conversation):
    """`refused`: why the node did not start, if it did not."""

    folder: VirtualFolder = field(default_factory=VirtualFolder)
    promise: Promise = field(default_factory=Promise)
    refused: str = ""

    def begin(self, conf: Configuration) -> None:
        self.conf = conf
        self.start()

    def start(self) -> None:
        self.node = Replica(self.conf)
        self.outbox = Outbox()
        self.disk = Files("", "synced", self.folder)
        self.timers, self.links, self.followed, self.names = {}, {}, {}, {}
        self.step(Started(self.folder.files()))

    def step(self, event: Event) -> None:
        super().step(event)
        self._release()

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Persist() | Remove() | Send() | Connect() | Disconnect():
                self.outbox.put([effect])
            case Truncate(name, size):
                self.disk.truncate(name, size)
            case _:
                super()._carry_out(effect)

    def _release(self) -> None:
        for effect in self.outbox.take_released():
            if isinstance(effect, Remove):
                self.disk.remove(effect.file)
        if not len(self.outbox):
            self.promise = self._promised(is_all=True)

    def write(self, all_: str = "") -> None:
        """Give the disk what has gathered; with `all_`, what comes of it as well."""
        while group := self.outbox.take_records():
            outcome = self.disk.commit(group)
            for token in outcome.tokens:
                self.outbox.persisted(token)
            self._release()
            for token in outcome.tokens:
                self.step(Persisted(token))
            self.promise = self._promised(is_all=not len(self.outbox))
            if outcome.error is not None:
                self.step(PersistFailed(self.outbox.failed(), outcome.error))
            if not all_:
                return

    def happen(self, line: str) -> list[str]:
        """One action more: `n1 gives all up to 9`, which ends a join; all is what we have and a tuple of its own."""
        found = re.fullmatch(r"(n\d) gives all up to (\d+)", line)
        if found is None:
            return super().happen(line)
        self._give_all(self.followed[found[1]], {1: int(found[2])})
        return self.lines

    def _give_all(self, link: int, vclock: dict[int, int]) -> None:
        known = self.node.schema.stored() if self.node.has_data else _of_the_first(self.conf)
        tuples = [*known, (513, (f"joined at {vclock[1]}", 0))]
        me = self.conf.me
        if not me.id:
            tuples.append((CLUSTER, (4, me.uuid)))
        rows = tuple(insert_row(pair, 0) for pair in in_order(tuples))
        state = RaftState(0, 2, 0, 1, 0, False)
        end = Stage(0, vclock)
        for message in (end, JoinMeta(0), state, JoinSnapshot(0), Rows(rows), end, end):
            self.step(Received(link, message))

    def restart(self, all_written: str, options: str = "") -> None:
        """Killed, and started again."""
        self.start()

    def _promised(self, *, is_all: bool) -> Promise:
        """`is_all`: its term and vote, too, are on disk."""
        journal, election = self.node.journal, self.node.election
        if not self.node.has_data:
            return self.promise
        rows = {(row.replica_id, row.lsn) for row in journal.rows if _is_in(row, journal.vclock)}
        term, vote = (election.term, election.vote) if is_all else (self.promise.term, self.promise.vote)
        return replace(
            self.promise, rows=self.promise.rows | rows, term=term, vote=vote, tuples=self._tuples()
        )

    def _tuples(self) -> frozenset[tuple[int, object]]:
        """Those that are confirmed."""
        return frozenset(
            (space.definition.id, tuple(fields))
            for space in self.node.schema.user_spaces()
            if not space.definition.is_temporary
            for fields in space.scan(dirty=False)
        )


def _of_the_first(conf: Configuration) -> Sequence[Stored]:
    return snapshots.read("first", first_snapshot(conf)).tuples


def _is_in(row: Row, vclock: dict[int, int]) -> bool:
    return row.lsn <= vclock.get(row.replica_id, 0)
