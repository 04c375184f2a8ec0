"""The files of `nodes.kernel.trace`: one for each life of a node, in a folder beside its data.

Rows are JSON lines. They are written before their messages leave the process, and not synced: a process that is killed
loses none of them. The folder is the harness's, so faults of the node's disk do not affect it.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from nodes.kernel.trace import TRACE_FILE, Described, Row, Tracer


class MessageTrace:
    """The file of this life; OSError if it cannot be made."""

    def __init__(self, folder: str, node: str, described: Described) -> None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        self._rows: list[Row] = []
        life, self._file = _next_of(Path(folder))
        self.tracer = Tracer(node, life, time.time_ns(), described, time.monotonic_ns, self._rows.append)

    @property
    def is_waiting(self) -> bool:
        return bool(self._rows)

    def flush(self) -> None:
        """Write the gathered rows. Raises OSError."""
        if self._rows:
            text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in self._rows)
            self._rows.clear()
            data = text.encode()
            while data:
                data = data[os.write(self._file, data) :]


def _next_of(folder: Path) -> tuple[int, int]:
    """The number of the next life, which has no file in the folder, and its new file."""
    lives = (file.stem.removeprefix("trace-") for file in folder.glob("trace-*.jsonl"))
    life = 1 + max((int(number) for number in lives if number.isdecimal()), default=0)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
    return life, os.open(folder / TRACE_FILE.format(life), flags, 0o644)
