"""Requests to the application in this process, as a socket would bring them: no client tidies their paths up."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

from harness.serve.app import Application, application


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


class Asked:
    """The application over one results/. `failed`: the defects that it told of."""

    def __init__(self, results: Path, host: str = "127.0.0.1") -> None:
        self.failed: list[Exception] = []
        self.app: Application
        self.app, self.served = application(results, host, self.failed.append)

    def __call__(self, target: str, *, host: str = "127.0.0.1:8000", method: str = "GET") -> Answer:
        """`target`: the path with its query, percent-encoded or raw."""
        return asyncio.run(self._ask(target, host, method))

    async def _ask(self, target: str, host: str, method: str) -> Answer:
        path, _, query = target.partition("?")
        raw = path.encode("utf-8", "surrogateescape")
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote_to_bytes(raw).decode("utf-8", "replace"),
            "raw_path": raw,
            "query_string": query.encode("utf-8", "surrogateescape"),
            "root_path": "",
            "headers": [(b"host", host.encode("latin-1", "replace"))],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8000),
        }
        said: list[dict[str, Any]] = []
        parts = [{"type": "http.request", "body": b"", "more_body": False}]

        async def receive() -> dict[str, Any]:
            """The request, and then nothing: the client stays."""
            return parts.pop() if parts else await asyncio.get_running_loop().create_future()

        async def send(message: Any) -> None:
            said.append(dict(message))

        await self.app(scope, receive, send)
        start = said[0]
        headers = {name.decode().lower(): value.decode("latin-1") for name, value in start["headers"]}
        return Answer(start["status"], headers, b"".join(each.get("body", b"") for each in said[1:]))
