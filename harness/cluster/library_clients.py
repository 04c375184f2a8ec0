"""Clients that are libraries: one connection for each (process, node), each with a thread of its own.

The deadline of an operation is kept here, whatever the library does: its connection is closed, and the operation is
unknown. A library that swallows time-outs is the first mistake that authors of clients make.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from harness.clients.client import Connected, LibraryClient, NotDone, in_words
from harness.clients.operations import Asked, Completion, Outcome, can_be_recorded, failed, fitting
from harness.cluster.place import LOOPBACK

_STATUS_PROCESS: Final = 0

DOWN: Final = "the node is down, nothing was sent"


class TooLate(TimeoutError):
    """The deadline passed; what was asked may happen all the same."""


class Line:
    """A connection, and the thread that uses it."""

    def __init__(self, connect: Callable[[float], Connected]) -> None:
        self._connect = connect
        self._connected: Connected | None = None
        self._turn = threading.Lock()
        self._is_at_work = False
        self.is_closed = False
        self._todo: queue.SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]] | None] = (
            queue.SimpleQueue()
        )
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._run, daemon=True).start()  # one that hangs must not keep the harness

    async def call(self, work: Callable[[Connected], Any], timeout_s: float) -> Any:
        """The result of `work` in the thread, or its exception.

        NotDone if there was no connection. After the timeout the line is closed: TooLate, or NotDone.
        """
        done: asyncio.Future[Any] = self._loop.create_future()
        asked = threading.Event()
        self._todo.put((lambda: self._do(work, timeout_s, asked), done))
        try:
            await asyncio.wait((done,), timeout=timeout_s)
            if done.done():
                return done.result()
        finally:
            done.cancel()  # by a caller that gives up earlier, too: an error that comes later reaches no caller
        self.close()
        if asked.is_set():
            raise TooLate
        raise NotDone("no connection in time")

    def close(self) -> None:
        """Take no more requests, and make the library give up. It may take its time for that, so nothing waits here."""
        with self._turn:
            self.is_closed = True
            is_at_work = self._is_at_work
        self._todo.put(None)  # the thread closes the connection when it comes to this
        if is_at_work:
            threading.Thread(target=self._close, daemon=True).start()

    def _close(self) -> None:
        if self._connected is not None:
            with suppress(Exception):  # of a connection that is given up
                self._connected.close()

    def _do(self, work: Callable[[Connected], Any], timeout_s: float, asked: threading.Event) -> Any:
        connected = self._connected
        if connected is None:
            try:
                connected = self._connect(timeout_s)
            except Exception as error:
                raise NotDone(in_words(error)) from error
        with self._turn:
            self._connected = connected
            if not self.is_closed:
                self._is_at_work = True
                asked.set()
        if not asked.is_set():
            raise NotDone("closed")
        return work(connected)

    def _run(self) -> None:
        while (work := self._todo.get()) is not None:
            does, done = work
            try:
                result = does()
            except BaseException as error:
                # A library that was a program ends by SystemExit: that must not end the harness. Nor does a future
                # take StopIteration.
                may_be_raised = isinstance(error, Exception) and not isinstance(error, StopIteration)
                result = error if may_be_raised else RuntimeError(repr(error))
            self._is_at_work = False
            self._tell(done, result)
        self._close()  # what was asked last may have opened it again

    def _tell(self, done: asyncio.Future[Any], result: Any) -> None:
        def settle() -> None:
            if done.done():
                return
            if isinstance(result, BaseException):
                done.set_exception(result)
            else:
                done.set_result(result)

        with suppress(RuntimeError):  # the loop is closed: the run is over
            self._loop.call_soon_threadsafe(settle)


class LibraryClients:
    """Implements `harness.cluster.performing.Performs`, and what `harness.cluster.connections.Admin` does."""

    def __init__(
        self,
        client: LibraryClient,
        port_of: Callable[[str], int],
        host_of: Callable[[str], str] = lambda node: LOOPBACK,
        is_down: Callable[[str], bool] = lambda node: False,
    ) -> None:
        """`is_down`: the node's process is dead, and nothing carries bytes to it. Then nothing is sent: a relay
        would accept the connection and reset it, and every operation would be unknown."""
        self._client = client
        self._port_of = port_of
        self._host_of = host_of
        self._is_down = is_down
        self._lines: dict[tuple[int, str], Line] = {}
        self._why_silent: dict[str, str] = {}
        self._client_says: dict[str, str] = {}

    async def perform(self, process: int, node: str, asked: Asked, timeout_ns: int) -> Outcome:
        if self._is_down(node):
            self._end(process, node)
            return Completion("fail", None, DOWN)
        line = self._line(process, node)
        try:
            given = await line.call(lambda connected: connected.invoke(asked), timeout_ns / 1e9)
            outcome = fitting(given, asked)
        except NotDone as error:
            if line.is_closed:
                self._end(process, node)
            return Completion("fail", None, in_words(error))
        except Exception as error:
            outcome = failed(in_words(error), is_read=asked.is_read)
        else:
            if not isinstance(outcome, Completion) or outcome.type != "info":
                return outcome
        self._end(process, node)  # a late answer reaches no client
        if outcome.type == "info":  # the client goes on as another process
            for _, target in [pair for pair in self._lines if pair[0] == process]:
                self._end(process, target)
        return outcome

    async def status(self, node: str, timeout_ns: int) -> Mapping[str, object] | None:
        line = self._line(_STATUS_PROCESS, node)
        try:
            answer: Mapping[str, object] = await line.call(
                lambda connected: connected.status(), timeout_ns / 1e9
            )
        except Exception as error:
            why = in_words(error)
            if line.is_closed:  # out of time: the client's own last error says more
                own = self._client_says.get(node, "")
                why = f"{why} ({timeout_ns / 1e9:g} s){own and f'; before that {own}'}"
            else:
                self._client_says[node] = why
            self._end(_STATUS_PROCESS, node)
            self._why_silent[node] = why
            return None
        if not can_be_recorded(answer, dict[str, object]):
            self._why_silent[node] = f"not in its answer: {answer!r}"[:200]
            return None
        return answer

    def why_silent(self, node: str) -> str:
        return self._why_silent.get(node, "")

    def close(self) -> None:
        for process, node in list(self._lines):
            self._end(process, node)

    def _line(self, process: int, node: str) -> Line:
        line = self._lines.get((process, node))
        if line is None:
            line = self._lines[process, node] = Line(
                lambda timeout_s: self._client.connect(self._host_of(node), self._port_of(node), timeout_s)
            )
        return line

    def _end(self, process: int, node: str) -> None:
        line = self._lines.pop((process, node), None)
        if line is not None:
            line.close()
