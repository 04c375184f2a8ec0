"""The kernel's log lines about a process that it ended for want of memory: nothing else explains such a signal 9."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

KERNEL_LOG: Final = Path("/dev/kmsg")
_RECORD_BYTES: Final = 8192
_DRIFT: Final = 10_000
"""The clock that stamps these lines is never adjusted: after 10,000 s it may be a second behind the monotonic one."""
_WORDS_MAX: Final = 300
_NUMBER: Final = re.compile(r",pid=(\d+)\b")


def ended_process(pid: int, since_ns: int, log: Path = KERNEL_LOG) -> str:
    """The kernel's line about the process with this number, written since then (monotonic); "" if there is none."""
    return _last((f"Killed process {pid} (",), since_ns, log)[:_WORDS_MAX]


def ended_in_group(name: str, since_ns: int, log: Path = KERNEL_LOG) -> str:
    """The same of a process in a group with `name` in its path: one line has its number, another its memory."""
    line = _last(("oom-kill:", name), since_ns, log)
    number = _NUMBER.search(line)
    return (ended_process(int(number[1]), since_ns, log) if number else "") or line[:_WORDS_MAX]


def _last(words: tuple[str, ...], since_ns: int, log: Path) -> str:
    last = ""
    for time_us, text in _records(log):
        if time_us * 1000 >= since_ns - since_ns // _DRIFT and all(word in text for word in words):
            last = text
    return last


def _records(log: Path) -> list[tuple[int, str]]:
    """(microseconds since the machine started, line); none if this user may not read them."""
    records: list[tuple[int, str]] = []
    for line in _content(log).decode(errors="replace").splitlines():
        head, _, text = line.partition(";")
        fields = head.split(",")
        if len(fields) > 2 and fields[2].isdigit():  # else it belongs to the line before
            records.append((int(fields[2]), text))
    return records


def _content(log: Path) -> bytes:
    """The kernel gives one record a read, and says "again" where a file would end."""
    parts: list[bytes] = []
    with suppress(OSError):
        file = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
        try:
            while True:
                # Overwritten meanwhile; the next read gives what is the oldest now.
                with suppress(BrokenPipeError):
                    if not (part := os.read(file, _RECORD_BYTES)):
                        break
                    parts.append(part)
        finally:
            os.close(file)
    return b"".join(parts)
