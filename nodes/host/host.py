"""One node joined to the real world: events in, effects out, in the order that the kernel promises.

Each event is one `node.step`. Its timers and log lines are done at once; sends, connects, disconnects and records go
into the outbox. Once per turn of the loop the host *settles*: it does the effects that the outbox releases and, if the
disk is idle, gives it all records that have gathered. When a group is on disk, the sends behind it go out and then the
node gets `Persisted`; when one of its records failed, the node gets `Persisted` of those before it and then
`PersistFailed`, before any other event.

A node with a step that raises is broken, and must not close its connections in order: the process ends on the spot. So
does a node that refuses to go on (`StartRefused`), with a line on stderr instead of a traceback.
"""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NoReturn

from nodes.host.clock import Clock
from nodes.host.codec import Codec
from nodes.host.disk import Disk, Outcome
from nodes.host.files import Committed
from nodes.host.links import Address, Links
from nodes.host.log import NodeLog
from nodes.host.medium import LOOK_EVERY_S, FaultyMedium
from nodes.host.message_trace import MessageTrace
from nodes.host.timers import Timers
from nodes.kernel.effects import (
    Again,
    CancelTimer,
    Connect,
    Disconnect,
    Effect,
    Log,
    Persist,
    Remove,
    Send,
    SetTimer,
    Truncate,
)
from nodes.kernel.errors import StartAgain, StartRefused
from nodes.kernel.events import Event, Persisted, PersistFailed, Received, Started, Stopping
from nodes.kernel.node import RARE_TURN, CountsRareTurns, Node
from nodes.kernel.outbox import Durability, Outbox, Queued

EXIT_REFUSED = 1
EXIT_BROKEN = 70
RARE_TURNS_EVERY_S = 1.0
"""How often rare turns are logged; the turns since the last time are lost when the node is killed."""


class Host:
    """Runs on the running loop. All events enter the node through `deliver`."""

    def __init__(
        self,
        node: Node,
        codec: Codec,
        peers: Mapping[str, Address],
        directory: str,
        durability: Durability,
        log: NodeLog,
        clock: Clock | None = None,
        medium: FaultyMedium | None = None,
        trace: MessageTrace | None = None,
    ) -> None:
        self._clock = clock or Clock()
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(self._loop_failed)
        self._node = node
        self._log = log
        self._trace = trace
        self.start_again: Callable[[], NoReturn] = lambda: self.end_broken("started again", StartAgain())
        """Called when the node's life is over; a process that can start again sets its own function."""
        self._is_stopping = False
        self._is_life_over = False
        """The node's life ended in the middle of a stop: it gets no more events, and the stop goes on without it."""
        self._rare_turns: dict[str, None] = {}
        """The rare turns that are in the log."""
        self._outbox = Outbox()
        self._timers = Timers(self._loop, self._deliver_from_outside, self._clock)
        self.links = Links(codec, peers, self._deliver_from_outside, log)
        self._disk = Disk(directory, durability, self._report_from_thread, medium=medium)
        if medium is not None:
            self._look_at(medium)
        self._disk_is_busy = False
        self._will_settle = False
        self._settled = asyncio.Event()

    def start(self, files: Mapping[str, bytes]) -> None:
        """Deliver the first event. Its exceptions go to the caller, which reports them."""
        self._take(self._stepped(Started(files)))
        if isinstance(self._node, CountsRareTurns):
            self._note_rare_turns_again(self._node)

    def _stepped(self, event: Event) -> Sequence[Effect]:
        if self._trace is None:
            return self._node.step(event, self._clock.now())
        tracer = self._trace.tracer
        return tracer.closed(self._node.step(tracer.opened(event), self._clock.now()))

    async def stop(self) -> None:
        """Let the node send its last messages, wait for the disk, close everything."""
        self._is_stopping = True  # from now on only the disk reports to the node
        self._deliver(Stopping())
        self._timers.cancel_all()
        self._settle()
        while self._disk_is_busy or len(self._outbox):
            self._settled.clear()
            await self._settled.wait()
        await self.links.close()
        self._disk.close()
        self._note_rare_turns()

    def _look_at(self, medium: FaultyMedium) -> None:
        """Read the disk's faults regularly, also while no record is written."""
        medium.look()
        if not self._is_stopping:
            self._loop.call_later(LOOK_EVERY_S, self._look_at, medium)

    def _note_rare_turns_again(self, node: CountsRareTurns) -> None:
        self._note_rare_turns()
        if not self._is_stopping:
            self._loop.call_later(RARE_TURNS_EVERY_S, self._note_rare_turns_again, node)

    def _note_rare_turns(self) -> None:
        """A line in the log for each rare turn that came about for the first time in this life."""
        if not isinstance(self._node, CountsRareTurns):
            return
        for row, times in self._node.sometimes.items():
            if times and row not in self._rare_turns:
                self._rare_turns[row] = None
                self._log.line("info", RARE_TURN, {"row": row})

    def _deliver_from_outside(self, event: Event) -> None:
        if not self._is_stopping:
            self._deliver(event)

    def _deliver(self, event: Event) -> None:
        if self._is_life_over:
            return
        try:
            effects = self._stepped(event)
        except StartAgain as over:  # what the step would have sent or written is dropped: the life is over
            self._note_rare_turns()
            does = "is over while it stops" if self._is_stopping else "starts again"
            self._log.line("warning", does, {"why": str(over)})
            if self._is_stopping:
                self._is_life_over = True
                return
            self.start_again()
        except StartRefused as refused:
            self._note_rare_turns()
            self._log.line("error", "refused to go on", {"why": str(refused)})
            print(refused, file=sys.stderr, flush=True)
            os._exit(EXIT_REFUSED)
        except Exception as error:  # whatever it is, the node is broken and ends
            self.end_broken("assertion failed", error)
        self._take(effects)

    def _take(self, effects: Sequence[Effect]) -> None:
        queued: list[Queued] = []
        for effect in effects:
            match effect:
                case Send() | Persist() | Connect() | Remove():
                    queued.append(effect)
                case Disconnect():
                    self.links.mute(effect.link)  # at once, though the close waits for its turn in the queue
                    queued.append(effect)
                case SetTimer():
                    self._timers.set(effect.name, effect.after_ns)
                case CancelTimer():
                    self._timers.cancel(effect.name)
                case Truncate():
                    self._disk.truncate(effect.file, effect.size)
                case Log():
                    self._log.line(effect.level, effect.message, effect.fields)
                case Again():
                    self._loop.call_soon(self._deliver_again, effect.event)
        self._outbox.put(queued)
        # Rows of the trace go to their file even if nothing leaves: a killed process loses none.
        if queued or (self._trace is not None and self._trace.is_waiting):
            self._settle_soon()

    def _deliver_again(self, event: Event) -> None:
        if not isinstance(event, Received) or self.links.hears(event.link):
            self._deliver_from_outside(event)

    def _settle_soon(self) -> None:
        if not self._will_settle:
            self._will_settle = True
            self._loop.call_soon(self._settle)

    def _settle(self) -> None:
        self._will_settle = False
        if self._trace is not None:  # before any message that the rows record leaves
            self._write_trace(self._trace)
        for effect in self._outbox.take_released():
            match effect:
                case Send():
                    self.links.send(effect.link, effect.message)
                case Connect():
                    self.links.connect(effect.peer)
                case Disconnect():
                    self.links.disconnect(effect.link)
                case Remove():
                    self._disk.remove(effect.file)
        self.links.flush()
        if not self._disk_is_busy and (group := self._outbox.take_records()):
            self._disk_is_busy = True
            self._disk.commit(group)
        self._settled.set()

    def _write_trace(self, trace: MessageTrace) -> None:
        """Write the trace's rows. If that fails the node ends: a trace without these rows would look complete."""
        try:
            trace.flush()
        except OSError as error:
            self.end_broken("the record of messages cannot be written", error)

    def _report_from_thread(self, outcome: Outcome) -> None:
        self._loop.call_soon_threadsafe(self._reported, outcome)

    def _reported(self, outcome: Outcome) -> None:
        if isinstance(outcome, Committed):
            self._committed(outcome)
        elif isinstance(outcome, Exception):
            self.end_broken("the disk's thread failed", outcome)
        else:
            self._log.line("error", "a record counted as durable was not synced", {"error": outcome.error})

    def _committed(self, outcome: Committed) -> None:
        for token in outcome.tokens:
            self._outbox.persisted(token)
        self._settle()  # the disk still counts as busy: what `Persisted` brings forth belongs to the next group
        for token in outcome.tokens:
            self._deliver(Persisted(token))
        if outcome.error is not None:
            # Behind `Persisted` of the records before it: the node takes back all that is still in flight.
            failed = self._outbox.failed()
            self._log.line("error", "write failed", {"error": outcome.error, "records": len(failed)})
            self._deliver(PersistFailed(failed, outcome.error))
        self._disk_is_busy = False
        self._settle()

    def _loop_failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        """An error was raised in a callback: an OSError is the machine's and is logged, any other ends the process."""
        error = context.get("exception")
        if isinstance(error, Exception) and not isinstance(error, OSError):
            self.end_broken("host failed", error)
        self._log.line("error", str(context.get("message")), {"error": repr(error)})

    def end_broken(self, message: str, error: Exception) -> NoReturn:
        """End the process without closing connections: an observer must see a crash."""
        with suppress(Exception):  # a broken node may not know them; why it ends is what must be told
            self._note_rare_turns()
        self._log.line("error", message, fields_of_failure(error))
        traceback.print_exception(error)
        os._exit(EXIT_BROKEN)


def fields_of_failure(error: BaseException) -> dict[str, object]:
    """The last line of the traceback, and where it happened."""
    where = [
        f"{frame.filename}:{frame.lineno} in {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
    ]
    return {"error": traceback.format_exception_only(error)[-1].strip(), "where": where[-1:]}
