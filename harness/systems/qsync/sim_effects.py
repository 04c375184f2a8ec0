"""The virtual world's own record of disks and links, for the checks of `checkers.logs.wal.early`.

While a run goes on only references are kept; what the bytes say is read when the record is asked for. The same rows
stand on several disks as the same bytes, and are read once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from checkers.logs.wal.effects import Answered, Begun, Claimed, Durable, Effect, Rested, Vclock
from harness.systems.qsync.block_reader import Block, BlockReader
from nodes.iproto.messages import Ack, Answer, RaftState, Refusal, Subscribe
from nodes.kernel.effects import Persist
from nodes.kernel.node import Node
from nodes.qsync.replica import Replica
from nodes.world.machine import Machine
from nodes.world.world import World

ProcessOf = Callable[[int], int | None]
"""The client process at the other end of a link; None: another node."""


Bytes = tuple[int, str, bytes, int | None, int]
"""Durable data, still to be read: when, where, the bytes of a log or snapshot, the client's process, written when.

A plain tuple, as there are thousands, and few of them are ever read.
"""


class Effects:
    """The durable data and other effects of all machines of a world."""

    def __init__(self, world: World, process_of: ProcessOf) -> None:
        self._observed: list[Bytes | Effect] = []
        for machine in world.machines.values():
            machine.watch(_Watch(machine, world, process_of, self._observed))

    def read(self) -> list[Effect]:
        """The effects until now, oldest first."""
        reader = BlockReader()
        known: dict[bytes, Block] = {}
        effects: list[Effect] = []
        for observed in self._observed:
            if not isinstance(observed, tuple):
                effects.append(observed)
                continue
            time_ns, node, data, process, written_ns = observed
            block = known.get(data)
            if block is None:
                block = known[data] = reader.read(data)
            if block.begins is not None:
                effects.append(_begun(time_ns, node, block, block.begins))
            if block.rows:
                effects.append(Durable(time_ns, node, block.rows, process, written_ns))
        return effects


RESTS_EVERY_NS = 50_000_000
"""How often a state is noted that has not changed."""


class _Watch:
    """Implements `nodes.world.machine.WatchesMachine`."""

    hears = frozenset[type]({Ack, RaftState, Subscribe, Answer, Refusal})

    def __init__(
        self, machine: Machine, world: World, process_of: ProcessOf, observed: list[Bytes | Effect]
    ) -> None:
        self._node = machine.name
        self._agenda = world.agenda
        self._process_of = process_of
        self._observed = observed
        self._unsynced: dict[str, deque[tuple[int, bytes, int | None, int]]] = {}
        self._said: dict[type, object] = {}
        self._rested: tuple[Node, tuple[object, ...]] | None = None
        self._rested_ns = 0

    def writes(self, record: Persist, end: int, link: int | None) -> None:
        if record.data and not record.is_whole:
            process = None if link is None or record.record != "row" else self._process_of(link)
            entry = (end, record.data, process, self._agenda.now_ns)
            self._unsynced.setdefault(record.file, deque()).append(entry)

    def synced(self, file: str, length: int) -> None:
        waiting = self._unsynced.get(file)
        while waiting and waiting[0][0] <= length:
            _, data, process, written_ns = waiting.popleft()
            self._observed.append((self._agenda.now_ns, self._node, data, process, written_ns))

    def cut(self, file: str, length: int) -> None:
        waiting = self._unsynced.get(file)
        while waiting and waiting[-1][0] > length:
            waiting.pop()

    def put(self, file: str, data: bytes) -> None:
        self._unsynced.pop(file, None)
        self._observed.append((self._agenda.now_ns, self._node, data, None, 0))

    def emptied(self) -> None:
        self._unsynced.clear()
        self._said.clear()
        self._observed.append(Begun(self._agenda.now_ns, self._node, (), 0, is_empty=True))

    def rests(self, node: Node) -> None:
        if not isinstance(node, Replica) or (state := node.state()) is None:
            return
        now_ns = self._agenda.now_ns
        if self._rested == (node, state) and now_ns < self._rested_ns + RESTS_EVERY_NS:
            return
        self._rested, self._rested_ns = (node, state), now_ns
        self._observed.append(Rested(now_ns, self._node, *state))

    def sends(self, link: int, message: object) -> None:
        kind = type(message)
        if kind is Answer or kind is Refusal:
            process = self._process_of(link)
            if process is not None:
                self._observed.append(Answered(self._agenda.now_ns, self._node, process))
        elif message != self._said.get(kind):  # said once more to another peer, it is the same claim
            self._said[kind] = message
            self._observed.append(_claimed(self._agenda.now_ns, self._node, message))


def _begun(time_ns: int, node: str, block: Block, vclock: Mapping[int, int]) -> Begun:
    return Begun(
        time_ns,
        node,
        _vclock(vclock),
        block.term,
        vote=block.vote,
        owner=block.owner,
        queue_term=block.queue_term,
        confirmed=_vclock(block.confirmed),
        members=block.members,
    )


def _claimed(time_ns: int, node: str, message: object) -> Claimed:
    match message:
        case Ack(vclock, term):
            return Claimed(time_ns, node, "acknowledgement", _vclock(vclock), term, 0)
        case RaftState(_, term, vote, vclock=vclock):
            return Claimed(time_ns, node, "election", _vclock(vclock or {}), term, vote)
        case Subscribe(vclock=vclock):
            return Claimed(time_ns, node, "subscription", _vclock(vclock), 0, 0)
    raise AssertionError(message)


def _vclock(vclock: Mapping[int, int]) -> Vclock:
    return tuple(sorted(vclock.items()))
