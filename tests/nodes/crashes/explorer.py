"""Every crash of a scripted life: at each call that changes or syncs a file the process is killed, or the power goes.

What is left is given to a new process, which must start and hold all that was promised, and which may crash in the same
ways while it recovers, and so on. States that have been tried are not tried again.

A new process is a `Recovery`: the journal and the files of the host, as in a node that starts, without the schema,
which costs a hundred times as much and writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache

from harness.systems.qsync.log_reader import Shared
from harness.systems.qsync.logs import log_of
from nodes.host.files import Files
from nodes.iproto.messages import Key, Row, Type
from nodes.kernel.effects import Effect, Persist, Remove, Truncate
from nodes.kernel.errors import StartRefused
from nodes.kernel.outbox import Outbox
from nodes.qsync.bootstrap import first_snapshot
from nodes.qsync.configuration import Configuration
from nodes.qsync.journal import Draft, Journal
from nodes.qsync.snapshot import Snapshot, is_whole
from tests.nodes.crashes.life import Life, Promise
from tests.nodes.crashes.virtual_folder import State, VirtualFolder

FIRST_USER_SPACE = 512
Places = Callable[[bytes], Iterable[int]]


def every_byte(data: bytes) -> Iterable[int]:
    return range(len(data))


def telling_bytes(data: bytes) -> Iterable[int]:
    """Where tearing may make a difference: nothing, one byte, all but one, in the head of each block, behind it."""
    places = {0, 1, len(data) // 2, len(data) - 1}
    for magic in (b"\xd5\xba\x0b", b"\xd5\x10\xad\xed"):
        place = data.find(magic)
        while place >= 0:
            places |= {place, place + 2, place + 4, place + 19}
            place = data.find(magic, place + 1)
    return sorted(place for place in places if place < len(data))


@dataclass(frozen=True, slots=True)
class Crash:
    """`state` is what is left of the folder. `how`: for people, the calls that led there."""

    state: State
    promise: Promise
    conf: Configuration
    how: tuple[str, ...]


class Recovery:
    """A process that starts: reads the files, syncs what it read, writes a row."""

    def __init__(self, crash: Crash, watch: Callable[[Recovery, str, bytes], None]) -> None:
        """Raises StartRefused. `watch` is told of each call before it is done."""
        conf = crash.conf
        self.promise = crash.promise
        self.folder = VirtualFolder(crash.state)
        self.folder.before = lambda call, data: watch(self, call, data)
        self._disk = Files("", "synced", self.folder)
        self._outbox = Outbox()
        self.snapshot: Snapshot | None = None
        files = self.folder.files()
        self.journal = Journal(conf.me.id, conf.instance_uuid, first_snapshot=lambda: _first_snapshot(conf))
        self.has_data = not conf.joins or any(name.endswith(".snap") for name in files)
        if self.has_data:
            found, effects = self.journal.open(files)
            self.snapshot = found.snapshot
            for effect in effects:
                self._do(effect)
            self._release()

    def settle(self) -> None:
        """Do what waits for the disk."""
        while group := self._outbox.take_records():
            outcome = self._disk.commit(group)
            assert outcome.error is None
            for token in outcome.tokens:
                self._outbox.persisted(token)
            self._release()
            for token in outcome.tokens:
                self.journal.persisted(token)
            self._may_tell()

    def fail(self) -> None:
        """A record fails that holds no row, as that of a snapshot on a full disk does."""
        self.journal.failed()

    def write(self) -> None:
        """One more row, behind everything."""
        write = self.journal.write_own((Draft(Type.NOP.value, {}, is_local=True),), 0.0)
        for record in (*write.before, write.persist):
            self._do(record)
        self.settle()

    def _do(self, effect: Effect) -> None:
        match effect:
            case Truncate(name, size):
                self._disk.truncate(name, size)
            case Persist() | Remove():
                self._outbox.put([effect])

    def _release(self) -> None:
        for effect in self._outbox.take_released():
            assert isinstance(effect, Remove)
            self._disk.remove(effect.file)
        self._may_tell()

    def _may_tell(self) -> None:
        """If nothing waits for the disk, whatever is known may be told to others."""
        if not len(self._outbox):
            term, vote = self.term_and_vote()
            rows = {(row.replica_id, row.lsn) for row in self.journal.rows}
            self.promise = replace(self.promise, rows=self.promise.rows | rows, term=term, vote=vote)

    def term_and_vote(self) -> tuple[int, int]:
        for row in reversed(self._rows_behind()):
            if row.type == Type.RAFT:
                return int(str(row.body[0])), int(str(row.body.get(1, 0)))
        found = self.snapshot
        return (found.election.term, found.election.vote) if found is not None else (1, 0)

    def has_row(self, origin: int, lsn: int) -> bool:
        seen = self.snapshot.vclock if self.snapshot is not None else {}
        return lsn <= seen.get(origin, 0) or any(
            row.lsn == lsn and row.replica_id == origin for row in self.journal.rows
        )

    def tuples(self) -> set[tuple[int, object]]:
        """Space and tuple; of the snapshot, and of the rows behind it."""
        stored = self.snapshot.tuples if self.snapshot is not None else ()
        found: set[tuple[int, object]] = {
            (space, tuple(fields)) for space, fields in stored if space >= FIRST_USER_SPACE
        }
        for row in self._rows_behind():
            if Key.TUPLE.value in row.body and int(str(row.body[Key.SPACE_ID.value])) >= FIRST_USER_SPACE:
                fields = row.body[Key.TUPLE.value]
                assert isinstance(fields, Sequence)
                found.add((int(str(row.body[Key.SPACE_ID.value])), tuple(fields)))
        return found

    def _rows_behind(self) -> list[Row]:
        """The snapshot."""
        seen = self.snapshot.vclock if self.snapshot is not None else {}
        return [row for row in self.journal.rows if row.lsn > seen.get(row.replica_id, 0)]


@cache
def _first_snapshot(conf: Configuration) -> bytes:
    return first_snapshot(conf)


@dataclass
class Explorer:
    """`depth`: how many crashes follow the first one. `places`: where writes are torn.

    `one_in`: of the first crashes only one in so many is tried, from the number `which` on (of the rest of a division).
    """

    places: Places = telling_bytes
    depth: int = 2
    one_in: int = 1
    which: int = 0
    tried: dict[tuple[State, Promise], int] = field(default_factory=dict)
    """And how deep."""

    @property
    def starts(self) -> int:
        return len(self.tried)

    def play(self, script: Sequence[str], failing: int = -1) -> int:
        """Live through it; tries every crash on the way and at its end.

        `failing`: the number of the call that fails, and behind which alone crashes are tried. Returns how many calls
        there were.
        """
        life = Life()
        crashes: list[Crash] = []
        line = "the start"
        calls = 0

        def watch(call: str, data: bytes) -> None:
            nonlocal calls
            calls += 1
            if calls <= failing:
                return
            crash = Crash(life.folder.state, life.promise, life.conf, (f"{line}: {call}",))
            crashes.extend(self._crashes(crash, call, data))

        life.folder.before = watch
        life.folder.fails = lambda call: calls == failing + 1
        for line in script:
            life.happen(line)
        watch("the end", b"")
        for crash in crashes[self.which % self.one_in :: self.one_in]:
            self._recover(crash, self.depth)
        return calls - 1

    def _crashes(self, moment: Crash, call: str, data: bytes) -> Iterator[Crash]:
        """At the moment before a call."""
        yield replace(moment, how=(*moment.how, "killed"))
        for left in moment.state.after_power_loss(self.places):
            yield replace(moment, state=left, how=(*moment.how, "power lost"))

    def _recover(self, crash: Crash, depth: int) -> None:
        """`depth` 0: only look whether everything is there."""
        if self.tried.get((crash.state, crash.promise), -1) >= depth:
            return
        self.tried[crash.state, crash.promise] = depth
        again: list[Crash] = []

        def watch(process: Recovery, call: str, data: bytes) -> None:
            if depth:
                how = (*crash.how, f"recovery: {call}")
                moment = Crash(process.folder.state, process.promise, crash.conf, how)
                again.extend(self._crashes(moment, call, data))

        process = _started(crash, watch)
        if process.has_data:
            process.settle()
            _check(process, crash)
            for name, data in process.folder.files().items():
                assert not name.endswith(".snap") or is_whole(data), _told(crash, f"{name} is torn")
        if depth and process.has_data:
            if self.starts % 2:
                process.fail()
            process.write()
            watch(process, "the end", b"")
        for later in again:
            self._recover(later, depth - 1)


def _started(crash: Crash, watch: Callable[[Recovery, str, bytes], None]) -> Recovery:
    try:
        process = Recovery(crash, watch)
    except StartRefused as refused:
        raise AssertionError(_told(crash, f"refused to start: {refused}")) from refused
    _check(process, crash)
    return process


def _check(process: Recovery, crash: Crash) -> None:
    """All that was promised is there, and whoever reads the files agrees."""
    promise = crash.promise
    for files in (crash.state.files(), process.folder.files()):
        damage = _damage(tuple(each for each in files.items() if each[0].endswith(("xlog", "snap"))))
        assert damage is None, _told(crash, damage)
    missing = [row for row in promise.rows if not process.has_row(*row)]
    assert not missing, _told(crash, f"rows are lost: {sorted(missing)}")
    lost = promise.tuples - process.tuples()
    assert not lost, _told(crash, f"tuples are lost: {sorted(map(str, lost))}")
    if process.has_data:
        term, vote = process.term_and_vote()
        assert term >= promise.term, _told(crash, f"term {term}, but {promise.term} was said")
        assert term > promise.term or not promise.vote or vote == promise.vote, _told(crash, "another vote")


@lru_cache(maxsize=1_000)
def _damage(files: tuple[tuple[str, bytes], ...]) -> str | None:
    return log_of("n1", dict(files), _SHARED).damage


_SHARED = Shared()
"""Most blocks are in the folder of every crash."""


def _told(crash: Crash, what: str) -> str:
    files = ", ".join(f"{name} ({len(data)} bytes)" for name, data in crash.state.files().items())
    return "\n".join((what, *crash.how, files))
