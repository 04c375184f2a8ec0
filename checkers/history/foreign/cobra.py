"""Cobra's logs: a folder with a file for each session, which holds transactions one after the other.

    S txn            a transaction begins      W write key value         R txn write key value       C txn    it commits

Each is a byte and numbers of 64 bits, big-endian. Keys and values are hashes; the number of a write is unique, so it is
the value here. A read of the initial state has the marks `INITIAL` or `NOTHING` as its transaction and write. Reads and
writes of Cobra's own garbage collection are left out. Aborted transactions are not in the logs.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

from checkers.history.foreign.sessions import Sessions, Transaction, damaged

INITIAL: Final = 0xBEBEEBEE
NOTHING: Final = 0xDEADBEEF
COLLECTION: Final = (0x23332333, 0x66666666)
_NUMBERS = {
    b"S": struct.Struct(">q"),
    b"C": struct.Struct(">q"),
    b"W": struct.Struct(">qqq"),
    b"R": struct.Struct(">qqqq"),
}
_BEFORE = (INITIAL, NOTHING)


def logs_in(folder: Path) -> list[Path]:
    """The logs of a folder, if its .log files begin as Cobra's do."""
    found = sorted(folder.glob("*.log"))
    return found if found and all(_is_log(path) for path in found) else []


def _is_log(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        begins = file.read(10)
    return len(begins) == 10 and begins[:1] == b"S" and begins[9:] in _NUMBERS


def read(folder: Path) -> Sessions:
    """Raises HistoryError, OSError."""
    return Sessions([_session(path) for path in logs_in(folder)])


def _session(path: Path) -> list[Transaction]:
    data, at = path.read_bytes(), 0
    session: list[Transaction] = []
    running: Transaction | None = None
    while at < len(data):
        word = data[at : at + 1]
        numbers = _NUMBERS.get(word)
        if numbers is None or len(data) < at + 1 + numbers.size or (running is None) is not (word == b"S"):
            what = "cut off" if numbers is not None and len(data) < at + 1 + numbers.size else f"{word!r}"
            raise damaged(
                "a log of Cobra (S, W, R and C with their numbers)", f"{what} at byte {at} of {path.name}"
            )
        values = numbers.unpack_from(data, at + 1)
        at += 1 + numbers.size
        if word == b"S":
            running = Transaction(ended="info")  # until it commits
            session.append(running)
            continue
        assert running is not None
        if word == b"C":
            running.ended, running = "ok", None
        elif word == b"W" and values[0] not in COLLECTION:
            running.micros.append(("w", values[1], values[0]))
        elif word == b"R" and values[1] not in COLLECTION:
            is_first = values[0] in _BEFORE and values[1] in _BEFORE
            running.micros.append(("r", values[2], None if is_first else values[1]))
    return session
