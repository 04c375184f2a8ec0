"""Tables for benchmarks, with the machine they were measured on."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path


def machine() -> str:
    """One line: processor, cores, Python."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}"


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A Markdown table, ready for docs/benchmarks.md."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = [head, ["-" * width for width in widths], *rows]
    print(machine())
    print()
    for line in lines:
        print("| " + " | ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) + " |")
