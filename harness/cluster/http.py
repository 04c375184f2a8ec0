"""A connection for clients of stores that speak HTTP with JSON: one request at a time, and never a second try.

`http.client` alone would dial again behind the client's back, and a call that hangs could not be ended from outside.
"""

from __future__ import annotations

import json
import select
import socket
from contextlib import suppress
from http.client import HTTPConnection
from typing import Any

from harness.clients.client import NotDone


class Http:
    """A connection, made at once. Raises OSError; UnicodeError or InvalidURL for what cannot be the name of a host."""

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        self._http = HTTPConnection(host, port, timeout=timeout_s)
        self._http.auto_open = 0
        self._is_closed = False
        self._dial()

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """The status and the body of the answer: JSON, else text, None if it is empty.

        Raises NotDone if the server had closed the connection and cannot be dialed again. After any other error the
        outcome is unknown.
        """
        if self._http.sock is None or _has_ended(self._http.sock):
            self._http.close()
            try:
                self._dial()
            except OSError as error:
                raise NotDone(f"{type(error).__name__}: {error.strerror or error}") from error
        encoded = None if body is None else json.dumps(body).encode()
        try:
            self._http.request(method, path, encoded, {"Content-Type": "application/json"})
            response = self._http.getresponse()
            data = response.read()
            if self._is_closed:  # that may be why there was no more to read
                raise ConnectionAbortedError("closed")
        except BaseException:
            self._http.close()  # a late answer reaches no client
            raise
        with suppress(ValueError, RecursionError):
            return response.status, json.loads(data) if data else None
        return response.status, data.decode(errors="replace")

    def close(self) -> None:
        """A thread that waits for an answer gets an error. One that dials gets it at the end of the dial."""
        self._is_closed = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._http.close()

    def _dial(self) -> None:
        self._http.connect()
        self._socket: socket.socket = self._http.sock
        if self._is_closed:  # while it dialed, `close` found the old socket
            self._http.close()
            raise ConnectionAbortedError("closed")


def _has_ended(connection: socket.socket) -> bool:
    """The server sent something without a request: the end of the connection."""
    poll = select.poll()  # `select` knows no more than 1,024 files
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))
