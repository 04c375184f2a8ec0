"""Cobra's logs: a folder with a file for each session, which holds transactions one after the other.

    S txn            a transaction begins      W write key value         R txn write key value       C txn    it commits

Each is a byte and numbers of 64 bits, big-endian. Keys and values are hashes; the number of a write is unique, so it is
the value here. A read that tells another transaction or value of that write has read a value that was not written. A
read of the initial state has the marks `INITIAL` or `NOTHING` as its transaction and write. Reads and writes of Cobra's
own garbage collection are left out. Aborted transactions are not in the logs.
"""

from __future__ import annotations

import struct
from collections.abc import Container
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
    """The logs of a folder, if its .log files begin as Cobra's do; some may be empty."""
    found = sorted(folder.glob("*.log"))
    begins = [_beginning(path) for path in found]
    return found if any(begins) and all(word in (b"", b"S") for word in begins) else []


def _beginning(path: Path) -> bytes:
    """b"S" of a log, b"" of an empty file."""
    if not path.is_file():
        return b"no file"
    with path.open("rb") as file:
        begins = file.read(10)
    is_log = len(begins) >= 9 and begins[:1] == b"S" and begins[9:] in (b"", *_NUMBERS)
    return b"S" if is_log else begins


def read(folder: Path) -> Sessions:
    """Raises HistoryError, OSError."""
    sessions = [_session(path) for path in logs_in(folder)]
    every = [transaction for session in sessions for transaction in session]
    written = {write for one in every for f, _, write in one.micros if f == "w"}
    for one in every:
        one.micros = [(f, key, _value(write, written)) for f, key, write in one.micros]
    return Sessions(sessions)


def _value(write: tuple[int, int, int] | None, written: Container[tuple[int, int, int]]) -> int | str | None:
    if write is None or write in written:
        return write and write[0]
    return "write {} of transaction {}, with the value {}".format(*write)


def _session(path: Path) -> list[Transaction]:
    """Values are (write, transaction, value)."""
    data, at = path.read_bytes(), 0
    if not data:  # the writes of a lost session would look as if they were never made
        raise damaged("a log of Cobra (S, W, R and C with their numbers)", f"nothing in {path.name}")
    session: list[Transaction] = []
    number = 0
    running: Transaction | None = None
    while at < len(data):
        word = data[at : at + 1]
        numbers = _NUMBERS.get(word)
        is_cut_off = numbers is not None and len(data) < at + 1 + numbers.size
        if numbers is None or is_cut_off or (running is None) is not (word == b"S"):
            what = "cut off" if is_cut_off else f"{word!r}"
            raise damaged(
                "a log of Cobra (S, W, R and C with their numbers)", f"{what} at byte {at} of {path.name}"
            )
        values = numbers.unpack_from(data, at + 1)
        at += 1 + numbers.size
        if word == b"S":
            (number,) = values
            running = Transaction(ended="info")  # until it commits
            session.append(running)
            continue
        assert running is not None
        if word == b"C":
            running.ended, running = "ok", None
        elif word == b"W" and values[0] not in COLLECTION:
            running.micros.append(("w", values[1], (values[0], number, values[2])))
        elif word == b"R" and values[1] not in COLLECTION:
            is_first = values[0] in _BEFORE and values[1] in _BEFORE
            write = None if is_first else (values[1], values[0], values[3])
            running.micros.append(("r", values[2], write))
    return session
