"""The connection of stores that speak HTTP: with many files open, and when it is closed or gets a bad answer."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection, HTTPException, NotConnected
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from harness.clients.client import NotDone
from harness.cluster import http as http_module
from harness.cluster.http import Http
from tests.harness.processes import PATIENCE_S

FILES = 1_100
"""More than `select` knows."""
DEEP = b"[" * 200_000


class Answers(BaseHTTPRequestHandler):
    """A server of these answers one connection after another: it comes to the next one when a client has closed."""

    protocol_version = "HTTP/1.1"
    asked: list[str]
    is_asked: threading.Event
    may_answer: threading.Event

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if self.path == "/nonsense":
            self.wfile.write(b"nonsense\r\n")
            return
        if self.path == "/without%20end":
            self.wfile.write(
                b"HTTP/1.1 200 OK\r\n\r\n[1"
            )  # the end of the connection is the end of the answer
        if self.path in ("/late", "/without%20end"):
            self.is_asked.set()
            self.may_answer.wait(PATIENCE_S)
        self.answer(DEEP if self.path == "/deep" else b"{}")

    def do_POST(self) -> None:
        self.asked.append(self.path)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(json.dumps([self.headers["Content-Type"], body]).encode())

    def answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        if self.path == "/last":
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None: ...


@contextmanager
def served() -> Iterator[tuple[type[Answers], int]]:
    """The handler, with what it was asked, and its port."""

    class Handler(Answers):
        asked, is_asked, may_answer = list[str](), threading.Event(), threading.Event()

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield Handler, server.server_port
        finally:
            Handler.may_answer.set()
            server.shutdown()


def test_a_client_asks_whatever_the_number_of_its_socket() -> None:
    """If it failed, every operation would fail where many clients ask many nodes."""
    with served() as (_, port), ExitStack() as files:
        for _ in range(FILES):
            files.callback(os.close, os.open(Path(os.devnull), os.O_RDONLY))
        with closing(Http("127.0.0.1", port, PATIENCE_S)) as http:
            assert http.ask("GET", "/") == (200, {})


def test_a_connection_that_is_closed_while_it_dials_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a write would be sent after its client was given up, and its socket would stay open."""
    connect = HTTPConnection.connect
    with served() as (handler, port), closing(Http("127.0.0.1", port, PATIENCE_S)) as http:
        assert http.ask("GET", "/last") == (200, {})

        def closed_meanwhile(self: HTTPConnection) -> None:
            http.close()
            connect(self)

        with monkeypatch.context() as patched:
            patched.setattr(HTTPConnection, "connect", closed_meanwhile)
            with pytest.raises(NotDone, match="ConnectionAbortedError: closed"):
                http.ask("POST", "/write", 1)
        with closing(Http("127.0.0.1", port, PATIENCE_S)) as other:
            assert other.ask("GET", "/") == (200, {})
        assert handler.asked == ["/last", "/"]


def test_a_connection_that_is_closed_just_before_it_asks_is_not_dialed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If it failed, `http.client` would dial by itself, and send a write of a client that was given up."""
    with served() as (handler, port), closing(Http("127.0.0.1", port, PATIENCE_S)) as http:

        def closed_meanwhile(_: object) -> bool:
            http.close()
            return False

        monkeypatch.setattr(http_module, "_has_ended", closed_meanwhile)
        with pytest.raises(NotConnected):
            http.ask("POST", "/write", 1)
        assert handler.asked == []


@pytest.mark.parametrize("path", ["/late", "/without%20end"])
def test_a_thread_that_waits_for_an_answer_is_ended_from_outside(path: str) -> None:
    """If it failed, a call that hangs would hold its thread and its socket until the time-out of the socket, or half an
    answer be taken for the whole."""
    errors: list[Exception] = []
    with served() as (handler, port):
        http = Http("127.0.0.1", port, 10 * PATIENCE_S)

        def ask() -> None:
            try:
                http.ask("GET", path)
            except Exception as error:
                errors.append(error)

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        assert handler.is_asked.wait(PATIENCE_S)
        threading.Thread(target=http.close, daemon=True).start()
        thread.join(PATIENCE_S / 12)
        assert len(errors) == 1


def test_after_an_error_the_next_request_has_a_new_connection() -> None:
    """If it failed, one bad answer would end the connection for good, or a late one be taken for the next."""
    with served() as (_, port), closing(Http("127.0.0.1", port, PATIENCE_S)) as http:
        with pytest.raises(HTTPException):
            http.ask("GET", "/nonsense")
        assert http.ask("GET", "/") == (200, {})


def test_bodies_are_json_and_an_answer_that_is_not_is_text() -> None:
    """If it failed, a server that wants its requests labelled would refuse all, or an odd answer be no answer."""
    with served() as (_, port), closing(Http("127.0.0.1", port, PATIENCE_S)) as http:
        assert http.ask("POST", "/", {"key": 1}) == (200, ["application/json", {"key": 1}])
        assert http.ask("GET", "/deep") == (200, DEEP.decode())
