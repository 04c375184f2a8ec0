"""The connection of stores that speak HTTP, in a process with many files open."""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from harness.cluster.http import Http
from tests.harness.processes import PATIENCE_S

FILES = 1_100
"""More than `select` knows."""


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *words: object) -> None: ...


def test_a_client_asks_whatever_the_number_of_its_socket() -> None:
    """If it failed, every operation would fail where many clients ask many nodes."""
    with HTTPServer(("127.0.0.1", 0), Answers) as server, ExitStack() as files:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            for _ in range(FILES):
                files.callback(os.close, os.open(Path(os.devnull), os.O_RDONLY))
            http = Http("127.0.0.1", server.server_port, PATIENCE_S)
            files.callback(http.close)
            assert http.ask("GET", "/") == (200, {})
        finally:
            files.close()
            server.shutdown()
