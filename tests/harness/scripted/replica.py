"""A replica that acknowledges when it is told to.

It speaks Tarantool 2.6's replication: VOTE, JOIN, SUBSCRIBE, then rows one way and acknowledgements the other. To a
master it is a member like any other: registered, alive (it repeats its last acknowledgement, as a replica with nothing
new does), and as slow as the script wants it. What it hears it keeps in memory, so a script can look at what has
travelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from harness.errors import ClusterError
from nodes.iproto.frames import ApplierDecoder, encode
from nodes.iproto.greeting import version_number
from nodes.iproto.messages import (
    Ack,
    Ballot,
    Join,
    Key,
    Message,
    Refusal,
    Row,
    Rows,
    Stage,
    Subscribe,
    Subscribed,
    Type,
    Vote,
)

Vclock = dict[int, int]
VERSION: Final = "2.6.0"
CLUSTER_SPACE: Final = 320
"""`_cluster`: who is a member, by id and UUID."""
SCHEMA_SPACE: Final = 272
"""`_schema`: the cluster's own UUID, among others."""
_BEAT_S: Final = 0.05
_LOOK_AGAIN_S: Final = 0.002
_PATIENCE_S: Final = 20.0
_HOST: Final = "127.0.0.1"
_SPACE, _TUPLE = int(Key.SPACE_ID), int(Key.TUPLE)


class ScriptedReplica:
    """One member. `snapshot` is what it joined with, `rows` what it has heard since, in order, with all decisions."""

    def __init__(self, uuid: str) -> None:
        self.uuid = uuid
        self.replica_id = 0
        self.cluster_uuid = ""
        self.snapshot: list[Row] = []
        self.snapshot_vclock: Vclock = {}
        self.rows: list[Row] = []
        self.vclock: Vclock = {}
        """All that was heard."""
        self.acknowledged: Vclock = {}
        """All that was acknowledged."""
        self._holds = False
        self._masters: dict[int, asyncio.StreamWriter] = {}
        self._tasks: list[asyncio.Task[None]] = []

    # ---- what a script says

    def hold(self) -> None:
        """Acknowledge nothing new from now on."""
        self._holds = True

    def acknowledge(self) -> None:
        """Acknowledge all that was heard, and from now on everything at once."""
        self._holds = False
        self._acknowledge_all()

    async def join(self, port: int) -> None:
        """Become a member, with all data of the master at that port of this machine. Raises ClusterError."""
        reader, writer = await _dial(port)
        try:
            decoder = ApplierDecoder()
            await _ask(reader, writer, decoder, Vote(1), Ballot)
            writer.write(encode(Join(2, self.uuid, version_number(VERSION))))
            await self._take_all(reader, decoder)
        finally:
            await end(writer)
        self.replica_id = self._registered_as()
        self.cluster_uuid = self._cluster()
        self.acknowledged = dict(self.vclock)

    async def follow(self, port: int, from_vclock: Mapping[int, int] | None = None) -> None:
        """Subscribe to the master at that port, from what was heard on if nothing else is said. Raises ClusterError."""
        reader, writer = await _dial(port)
        decoder = ApplierDecoder()
        since = dict(self.vclock if from_vclock is None else from_vclock)
        request = Subscribe(3, self.cluster_uuid, self.uuid, self.replica_id, since, version_number(VERSION))
        try:
            behind = await _ask(reader, writer, decoder, request, Subscribed)
        except ClusterError:
            await end(writer)
            raise
        if port in self._masters:  # of a master that has died since
            await end(self._masters.pop(port))
        self._masters[port] = writer
        self._take_rows(behind)
        self._tasks += [
            asyncio.create_task(self._hear(reader, decoder)),
            asyncio.create_task(self._beat(writer)),
        ]

    async def leave(self, port: int) -> None:
        """End the connection to that master; what was heard and acknowledged stays."""
        await end(self._masters.pop(port))

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until what was heard makes it true. Raises ClusterError after twenty seconds."""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                while not condition():
                    await asyncio.sleep(_LOOK_AGAIN_S)
        except TimeoutError:
            raise ClusterError(f"what was waited for did not come; heard: {self.rows[-5:]}") from None

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        for writer in self._masters.values():
            await end(writer)
        self._masters.clear()

    # ---- what a script looks at

    def has(self, space_id: int, key: object) -> bool:
        """A row of that space whose first field is the key has travelled here."""
        return any(_is_of(row, space_id, key) for row in self.rows)

    def decisions(self, kind: Type) -> list[Row]:
        """The CONFIRM or ROLLBACK rows that have travelled here."""
        return [row for row in self.rows if row.type == kind]

    # ---- joining

    async def _take_all(self, reader: asyncio.StreamReader, decoder: ApplierDecoder) -> None:
        """Three vclocks: behind the first comes the data, behind the second the rows since, the third ends it."""
        stages = 0
        while stages < 3:
            for message in decoder.feed(await _some(reader)):
                match message:
                    case Stage(_, vclock):
                        stages += 1
                        self.vclock = dict(vclock)
                        if stages == 1:
                            self.snapshot_vclock = dict(vclock)
                    case Rows(rows):
                        (self.snapshot if stages == 1 else self.rows).extend(rows)
                    case Refusal(_, code, text):
                        raise ClusterError(f"the master refuses our JOIN: {text} ({code})")
                    case _:
                        pass

    def _registered_as(self) -> int:
        for row in reversed([*self.snapshot, *self.rows]):
            fields = row.body.get(_TUPLE, ())
            if row.body.get(_SPACE) == CLUSTER_SPACE and isinstance(fields, tuple) and fields[1] == self.uuid:
                return int(fields[0])
        raise ClusterError("the master let us join and did not register us")

    def _cluster(self) -> str:
        for row in self.snapshot:
            fields = row.body.get(_TUPLE, ())
            if row.body.get(_SPACE) == SCHEMA_SPACE and isinstance(fields, tuple) and fields[0] == "cluster":
                return str(fields[1])
        raise ClusterError("the data of the master does not name its cluster")

    # ---- following

    async def _hear(self, reader: asyncio.StreamReader, decoder: ApplierDecoder) -> None:
        with suppress(ClusterError):  # a master that ends, ends
            while True:
                self._take_rows(decoder.feed(await _some(reader)))

    def _take_rows(self, messages: Sequence[Message]) -> None:
        for message in messages:
            if isinstance(message, Rows):
                self.take(*message.rows)

    def take(self, *rows: Row) -> None:
        """Hear rows, from whoever says them."""
        for row in rows:
            if row.lsn > self.vclock.get(row.replica_id, 0):  # else another master has told us already
                self.vclock[row.replica_id] = row.lsn
                self.rows.append(row)
        if not self._holds:
            self._acknowledge_all()

    def _acknowledge_all(self) -> None:
        self.acknowledged = dict(self.vclock)
        for writer in self._masters.values():
            writer.write(encode(Ack(self.acknowledged, 0)))

    async def _beat(self, writer: asyncio.StreamWriter) -> None:
        """A master takes a replica that says nothing for dead."""
        while not writer.is_closing():
            writer.write(encode(Ack(self.acknowledged, 0)))
            await asyncio.sleep(_BEAT_S)


def _is_of(row: Row, space_id: int, key: object) -> bool:
    fields = row.body.get(_TUPLE, ())
    return row.body.get(_SPACE) == space_id and isinstance(fields, tuple) and fields[0] == key


async def end(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


async def _dial(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        return await asyncio.open_connection(_HOST, port)
    except OSError as error:
        raise ClusterError(f"nobody listens at port {port}: {error}") from error


async def _some(reader: asyncio.StreamReader) -> bytes:
    try:
        data = await reader.read(1 << 16)
    except OSError as error:
        raise ClusterError(f"the master has gone: {error}") from error
    if not data:
        raise ClusterError("the master has closed the connection")
    return data


async def _ask(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    decoder: ApplierDecoder,
    request: Message,
    wanted: type,
) -> list[Message]:
    """Wait for the answer of that kind; what has come behind it."""
    writer.write(encode(request))
    while True:
        messages = decoder.feed(await _some(reader))
        for number, message in enumerate(messages, start=1):
            if isinstance(message, wanted):
                return messages[number:]
            if isinstance(message, Refusal):
                raise ClusterError(f"{type(request).__name__} is refused: {message.message} ({message.code})")
