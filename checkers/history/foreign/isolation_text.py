"""The text formats of testers of isolation.

w(0,1,1,1)                  Plume, PolySI, AWDIT: (key, value, session, transaction), a line each; transaction -1:
r(0,1,2,7)                  it was aborted

w 0 1                       AWDIT's test format: an operation a line, transactions between -----, sessions between
-----                       =====
r 0 1
=====

[x:=1 y:=1] [z==2 x==?]!    dbcop: := writes, == reads, ? is a key without a value, ! not committed; sessions between
---                         lines of dashes, comments behind //
"""

from __future__ import annotations

import re
from typing import Final

from checkers.history.foreign.sessions import Micro, Sessions, Transaction, damaged

PLUME: Final = re.compile(rb"\s*[rw]\(\d+,\d+,-?\d+,-?\d+\)\s*(?:\n|$)")
AWDIT: Final = re.compile(rb"(?:\s*+[-=]++[^\S\n]*+\n)*+\s*+[rw][ \t]+\d+[ \t]+\d+[ \t]*\r?(?:\n|$)")
DBCOP: Final = re.compile(rb"(?:\s|//[^\n]*\n)*\[[ \t]*\w+(?::=\d|==[\d?])")
_NUMBER = r"(\d{1,4000})"  # Python reads no longer one
_PLUME = re.compile(rf"([rw])\({_NUMBER},{_NUMBER},(-?\d+),(-?\d+)\)")
_AWDIT = re.compile(rf"([rw])\s+{_NUMBER}\s+{_NUMBER}")
_TRANSACTION = re.compile(r"\[([^\[\]]*)\](!?)\s*")
_DBCOP = re.compile(r"(\w+)(:=|==)(\d{1,4000}|\?)")
ABORTED = "-1"


def plume(text: str) -> Sessions:
    """Raises HistoryError."""
    sessions: dict[str, dict[str, Transaction]] = {}
    lone: list[Transaction] = []
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if not (stripped := line.strip()):
            continue
        found = _PLUME.fullmatch(stripped)
        if found is None:
            if number == len(lines) and not text.endswith("\n"):
                torn = f"a torn line {number}"
                return Sessions([list(one.values()) for one in sessions.values()], lone, torn)
            raise damaged("r(key,value,session,transaction) or w(…)", repr(line[:60]), number)
        f, key, value, session, name = found.groups()
        micro = f, int(key), int(value)
        if name != ABORTED:
            sessions.setdefault(session, {}).setdefault(name, Transaction()).micros.append(micro)
        elif f == "w":
            lone.append(Transaction([micro], "fail"))
    return Sessions([list(one.values()) for one in sessions.values()], lone)


def awdit(text: str) -> Sessions:
    """Raises HistoryError."""
    sessions: list[list[Transaction]] = [[Transaction()]]
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped:
            continue
        if found := _AWDIT.fullmatch(stripped):
            f, key, value = found.groups()
            sessions[-1][-1].micros.append((f, int(key), int(value)))
        elif set(stripped) == {"-"}:
            sessions[-1].append(Transaction())
        elif set(stripped) == {"="}:
            sessions.append([Transaction()])
        else:
            raise damaged("r KEY VALUE, w KEY VALUE, or a line of - or =", repr(line[:60]), number)
    return Sessions([[one for one in session if one.micros] for session in sessions])


def dbcop(text: str) -> Sessions:
    """Raises HistoryError."""
    sessions: list[list[Transaction]] = [[]]
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.partition("//")[0].strip()
        if stripped and set(stripped) == {"-"}:
            sessions.append([])
            continue
        at = 0
        while at < len(stripped):
            found = _TRANSACTION.match(stripped, at)
            if found is None:
                raise damaged("[x:=1 y==2], a line of -, or a comment", repr(line[:60]), number)
            micros = [_dbcop(word, number) for word in found[1].split()]
            sessions[-1].append(Transaction(micros, "fail" if found[2] else "ok"))
            at = found.end()
    return Sessions(sessions)


def _dbcop(word: str, number: int) -> Micro:
    found = _DBCOP.fullmatch(word)
    if found is None or (found[2] == ":=" and found[3] == "?"):
        raise damaged("x:=VERSION, x==VERSION or x==?", repr(word[:60]), number)
    return "w" if found[2] == ":=" else "r", found[1], None if found[3] == "?" else int(found[3])
