"""dbcop's histories in JSON, and as bincode.

JSON: a list of sessions, alone or as `data` of an object. A session is a list of {"events": […], "committed": true}.
An event is {"Read": {"variable": 0, "version": 1}}, {"Write": …}, ["r", 0, 1] or ["w", 0, 1]. A version null is a key
without a value. A transaction that is not committed was aborted.

JSON of dbcop's first versions has the values of the bincode below: an event is {"write": true, "variable": 0,
"value": 1, "success": true}, and a transaction has `success` in place of `committed`.

bincode (`history.bincode`; all numbers little-endian): five u64 (id, nodes, variables, transactions, events), three
texts (u64 and bytes: information, start, end), then lists (u64 and items): sessions of transactions of events (u8 is a
write, u64 variable, u64 value, u8 success), with a u8 success behind each transaction. Events without success did not
happen. The recorder also writes "no success" where a commit had no answer, so such a transaction counts as unsure.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from typing import Any, Final

from checkers.history.foreign import json_values
from checkers.history.foreign.sessions import Micro, Sessions, Transaction, damaged
from checkers.history.operation import Outcome

JSON: Final = re.compile(
    rb'\s*(?:(?:\{\s*"data"\s*:\s*)?\[(?:\s*\[\s*\]\s*,)*\s*\[\s*\{\s*"(?:events|committed)"|\{\s*"params"\s*:)'
)
_WHAT = "a transaction of dbcop: {events, committed} or {events, success}"
_IF_NOT: Final[Mapping[str, Outcome]] = {"committed": "fail", "success": "info"}
_HEAD = struct.Struct("<5Q")
_U64 = struct.Struct("<Q")
_EVENT = struct.Struct("<?QQ?")
_TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_INFORMATION_MAX = 1 << 10


def from_json(data: bytes) -> Sessions:
    """Raises HistoryError."""
    found = json_values.parse(data, "sessions of dbcop")
    whole = found.values
    sessions = whole[0].get("data") if len(whole) == 1 and isinstance(whole[0], dict) else whole
    if not isinstance(sessions, list) or not all(isinstance(session, list) for session in sessions):
        raise damaged("a list of sessions of dbcop, or an object with it as data", repr(whole)[:60])
    return Sessions([[_transaction(one) for one in session] for session in sessions], torn=found.torn)


def _transaction(one: Any) -> Transaction:
    if not isinstance(one, dict) or not isinstance(one.get("events"), list):
        raise damaged(_WHAT, repr(one)[:60])
    word = "success" if "success" in one else "committed"
    did = one.get(word)
    if type(did) is not bool:
        raise damaged(f"{word} as true or false", repr(did)[:60])
    micros = [micro for micro, happened in map(_event, one["events"]) if happened]
    return Transaction(micros, "ok" if did else _IF_NOT[word])


def _event(event: Any) -> tuple[Micro, bool]:
    """The event, and whether it happened."""
    happened = True
    match event:
        case ["r" | "w" as f, key, value]:
            pass
        case {"Read": {"variable": key, "version": value}}:
            f = "r"
        case {"Write": {"variable": key, "version": value}}:
            f = "w"
        case {"write": bool(is_write), "variable": key, "value": value, "success": bool(happened)}:
            f = "w" if is_write else "r"
        case _:
            raise damaged(
                "an event of dbcop: {Read} or {Write} with variable and version, or {write, variable, value, success}",
                repr(event)[:60],
            )
    if type(key) not in (int, str) or type(value) not in ((int, type(None)) if f == "r" else (int,)):
        raise damaged("a variable, and a whole number as its version", repr(event)[:60])
    return (f, key, value), happened


# ---- bincode


def is_bincode(data: bytes) -> bool:
    """Whether the bytes begin as such a file: behind two texts stand times."""
    if len(data) < _HEAD.size + 3 * _U64.size:
        return False
    reader = _Reader(data, _HEAD.size)
    try:
        if _U64.unpack_from(data, reader.at)[0] > _INFORMATION_MAX:
            return False
        reader.text()
        return all(_TIME.match(reader.text()) is not None for _ in range(2))
    except struct.error:
        return False


def from_bincode(data: bytes) -> Sessions:
    """Raises HistoryError."""
    reader = _Reader(data, _HEAD.size)
    try:
        for _ in range(3):
            reader.text()
        sessions = [[reader.transaction() for _ in range(reader.u64())] for _ in range(reader.u64())]
    except struct.error as error:
        raise damaged(
            "a history.bincode of dbcop", f"{len(data):,} bytes, of which the last ones are cut off"
        ) from error
    if reader.at != len(data):
        raise damaged("a history.bincode of dbcop", f"{len(data) - reader.at:,} bytes behind its end")
    return Sessions(sessions)


class _Reader:
    """Reads one value after the other. Raises struct.error at the end."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at

    def u64(self) -> int:
        (number,) = _U64.unpack_from(self.data, self.at)
        self.at += _U64.size
        return int(number)

    def text(self) -> bytes:
        size = self.u64()
        found = self.data[self.at : self.at + size]
        if len(found) < size:
            raise struct.error
        self.at += size
        return found

    def transaction(self) -> Transaction:
        micros: list[Micro] = []
        for _ in range(self.u64()):
            is_write, key, value, success = _EVENT.unpack_from(self.data, self.at)
            self.at += _EVENT.size
            if success:
                micros.append(("w" if is_write else "r", key, value))
        (success,) = struct.unpack_from("<?", self.data, self.at)
        self.at += 1
        return Transaction(micros, "ok" if success else _IF_NOT["success"])
