"""A node's log for people: one JSON object a line, appended, each line written at once.

A line has `time_ns` (monotonic, since the epoch that the harness gave, so that the lines of all nodes and the
history share one clock), `level`, `message`, `node`, then the node's `term`, `owner` and `lsn` of that moment as far
as its status has them, then the fields of the effect.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

STATUS_FIELDS = ("term", "owner", "lsn")

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode


class NodeLog:
    """The log file of one node. `status` is called for each line."""

    def __init__(
        self, path: str, node: str, epoch_ns: int, status: Callable[[], Mapping[str, object]]
    ) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._node = node
        self._epoch_ns = epoch_ns
        self._status = status
        self._begin = b""
        """Ends a line of which a full disk took a part: it would spoil the next one, too."""

    def line(self, level: str, message: str, fields: Mapping[str, object] | None = None) -> None:
        line: dict[str, object] = {
            "time_ns": time.monotonic_ns() - self._epoch_ns,
            "level": level,
            "message": message,
            "node": self._node,
        }
        try:
            text = _encode({**line, **self._state(), **(fields or {})})
        except (TypeError, ValueError, RecursionError) as error:  # a user's own node may log any value
            text = _encode({**line, "fields": f"no JSON: {error}"})
        with suppress(OSError):  # a full disk is the journal's to tell; a log must not end a node
            data = self._begin + text.encode("utf-8", "backslashreplace") + b"\n"
            self._begin = b"\n" if os.write(self._file, data) < len(data) else b""

    def close(self) -> None:
        os.close(self._file)

    def _state(self) -> dict[str, object]:
        try:
            status = self._status()
        except Exception:  # a node that has just broken may not know its state; the line still counts
            return {}
        return {name: status[name] for name in STATUS_FIELDS if name in status}
