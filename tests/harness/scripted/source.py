"""The other end: a scripted replica that is followed, and passes on of what it has heard as much as the script wants.

A real server that has it as its only upstream knows of the master what is let through, and nothing else: rows without
the ROLLBACK behind them, for example, as after a partition, though without any race with one.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Final

from nodes.iproto.errors import ProtocolError
from nodes.iproto.frames import ServerDecoder, encode, greeting
from nodes.iproto.messages import (
    Ballot,
    Heartbeat,
    Join,
    Refusal,
    Row,
    Rows,
    Stage,
    Subscribe,
    Subscribed,
    Unknown,
    Vote,
)
from tests.harness.scripted.replica import VERSION, ScriptedReplica, end

_BEAT_S: Final = 0.05
_LOOK_AGAIN_S: Final = 0.002
_SALT: Final = bytes(32)
_HOST: Final = "127.0.0.1"


class ScriptedSource:
    """Serves VOTE, JOIN and SUBSCRIBE from what `replica` has heard, up to its row number `passes_on`."""

    def __init__(self, replica: ScriptedReplica) -> None:
        self.port = 0
        self.passes_on: int | None = None
        """How many of the replica's rows followers get; None: all, as they come."""
        self._replica = replica
        self._server: asyncio.Server | None = None
        self._served: set[asyncio.Task[None]] = set()

    def stop_passing_on(self) -> None:
        """Followers get nothing of what is heard from now on."""
        self.passes_on = len(self._replica.rows)

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._accept, _HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in tuple(self._served):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._served.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, ProtocolError, asyncio.CancelledError):
            pass  # a follower that ends, ends
        finally:
            self._served.discard(task)
            await end(writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(greeting(VERSION, self._replica.uuid, _SALT))
        decoder = ServerDecoder()
        while data := await reader.read(1 << 16):
            for message in decoder.feed(data):
                match message:
                    case Vote(sync):
                        ballot = Ballot(
                            sync, False, self._replica.vclock, self._replica.snapshot_vclock, False
                        )
                        writer.write(encode(ballot))
                    case Join(sync):
                        self._give_all(sync, writer)
                    case Subscribe(sync, _, _, _, vclock):
                        told = Subscribed(
                            sync, self._replica.cluster_uuid, self._replica.vclock, self._replica.replica_id
                        )
                        writer.write(encode(told))
                        feeding = asyncio.create_task(self._feed(writer, dict(vclock)))
                        self._served.add(feeding)
                        feeding.add_done_callback(self._served.discard)
                    case Unknown(sync, code, text):
                        writer.write(encode(Refusal(sync, code, text)))
                    case _:
                        pass  # acknowledgements: who follows us counts for no quorum of ours

    def _give_all(self, sync: int, writer: asyncio.StreamWriter) -> None:
        vclock = self._replica.snapshot_vclock
        writer.write(encode(Stage(sync, vclock)))
        writer.write(encode(Rows(tuple(self._replica.snapshot))))
        writer.write(encode(Stage(sync, vclock)))
        writer.write(encode(Stage(sync, vclock)))

    async def _feed(self, writer: asyncio.StreamWriter, vclock: dict[int, int]) -> None:
        """The rows behind a vclock, and a heartbeat where there are none."""
        beat_at = asyncio.get_running_loop().time()
        while not writer.is_closing():
            for row in self._passed_on():
                if row.lsn > vclock.get(row.replica_id, 0):
                    vclock[row.replica_id] = row.lsn
                    writer.write(encode(Rows((row,))))
            if asyncio.get_running_loop().time() > beat_at:
                writer.write(encode(Heartbeat(self._replica.replica_id, time.time())))
                beat_at += _BEAT_S
            await asyncio.sleep(_LOOK_AGAIN_S)

    def _passed_on(self) -> list[Row]:
        return self._replica.rows[: self.passes_on]
