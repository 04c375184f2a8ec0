"""Reads the plain-text logs of Jepsen's etcd tests: one register, its operations a line each.

    INFO  jepsen.util - 3	:invoke	:cas	[3 0]

The logs have no clock, so the time of an event is its index. A failed cas is a mismatch, a failed read has
timed out. Lines of other kinds are left out.
"""

from __future__ import annotations

import re

from checkers.history.errors import HistoryError
from checkers.history.history import Header, History
from checkers.history.operation import Event

_LINE = re.compile(r"jepsen\.util - (\d+)\s+:(invoke|ok|fail|info)\s+:(read|write|cas)\s+(.+)$")
_PAIR = re.compile(r"\[(-?\d+) (-?\d+)\]$")


def parse(text: str) -> History:
    """The history in such a log. Raises HistoryError if it holds no operations or they do not pair."""
    events: list[Event] = []
    for line in text.splitlines():
        found = _LINE.search(line)
        if found:
            events.append(_event(len(events), *found.groups()))
    if not events:
        raise HistoryError(
            expected="lines of jepsen.util",
            came="no operations",
            attempt="check that the log was copied whole",
        )
    return History.of(Header(system="etcd", workload="register"), events, first_line=1)


def _event(index: int, process: str, type_: str, f: str, rest: str) -> Event:
    error = {"fail": "mismatch" if f == "cas" else "failed", "info": "timed out"}.get(type_)
    return Event(
        index=index,
        time_ns=index,
        type=type_,  # type: ignore[arg-type]  # one of the four by the pattern
        process=int(process),
        f=f,
        value=_value(rest.strip()),
        error=error,
    )


def _value(text: str) -> int | list[int] | None:
    pair = _PAIR.match(text)
    if pair:
        return [int(pair[1]), int(pair[2])]
    return int(text) if re.fullmatch(r"-?\d+", text) else None
