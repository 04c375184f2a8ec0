"""Clocks of real nodes that are wrong: files in the node's folder say by how much.

The machine's own clock is never touched. A node of ours reads `clock.json` (offset and drift), a process under
libfaketime `faketime` (offset; its monotonic clock stays the machine's, so nothing of it drifts).
"""

from __future__ import annotations

import json
from pathlib import Path

from harness.cluster.place import FAKETIME, OUR_CLOCK


def clock_files(wall_offset_ns: int, drift_ppm: int) -> dict[str, str]:
    """The content of the files in a node's folder of clocks, by their names."""
    ours = json.dumps({"wall_offset_ns": wall_offset_ns, "drift_ppm": drift_ppm})
    return {OUR_CLOCK: ours + "\n", FAKETIME: f"{wall_offset_ns / 1e9:+.6f}\n"}


def write_clock(folder: Path, wall_offset_ns: int, drift_ppm: int) -> None:
    """Say how wrong a node's clocks are from now on."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in clock_files(wall_offset_ns, drift_ppm).items():
        fresh = folder / f"{name}.new"
        fresh.write_text(text)
        fresh.replace(folder / name)
