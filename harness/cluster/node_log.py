"""Node logs of real clusters, which take their time to start: they are brought to the run's own beginning."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path


def shift_log(path: Path, by_ns: int) -> None:
    """Subtract `by_ns` from the `time_ns` of every line; a line that is no JSON stays as it is."""
    if not by_ns or not path.exists():
        return
    lines = path.read_text(errors="replace").splitlines()
    path.write_text("".join(_shifted(line, by_ns) + "\n" for line in lines))


def _shifted(line: str, by_ns: int) -> str:
    with suppress(ValueError, TypeError, KeyError):
        fields = json.loads(line)
        fields["time_ns"] -= by_ns
        return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)
    return line
