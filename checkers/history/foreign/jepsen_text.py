"""Reads Jepsen's logs: operations a line each, between lines of other kinds, which are left out.

    INFO  jepsen.util - 3	:invoke	:cas	[3 0]
    2024-05-01 10:00:00,000{GMT}	INFO	[jepsen worker 3] jepsen.util: 3	:fail	:read	nil	:timed-out
    3	:ok	:txn	[[:append 8 2] [:r 8 [1 2]]]

These logs have no clock that could be trusted, so the time of an event is its index. A last line that is cut off
anywhere is left out; a line before it that has lost its type or its f is refused.
"""

from __future__ import annotations

import re
from typing import Any

from checkers.history.errors import HistoryError
from checkers.history.foreign import edn
from checkers.history.foreign.operation_maps import LineOf, Maps, no_operations
from checkers.history.history import Header

_BEGINS = r"^(?:.*\bjepsen\.util(?:: | - )(?:\[ *\d+ *\] )?)?(?P<process>:?[\w-]+)"
LINE = re.compile(
    _BEGINS + r"\s+:(?P<type>invoke|ok|fail|info)\s+:(?P<f>[^\s,\[\](){}\"]+)(?P<rest>.*)$", re.MULTILINE
)
_LIKE_IT = re.compile(_BEGINS + r"[^\S\n]+:.*$", re.MULTILINE)
"""A word and a keyword: no other line of a log begins so."""

LOG = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\S*\s+[A-Z]+\s+\[[^\]\n]+\] \S+: ")
"""How a jepsen.log begins: it may have no operation."""


def parse(text: str) -> Maps:
    """The operation maps in such a log. Raises HistoryError if it holds no operations or they do not pair."""
    matches = list(LINE.finditer(text))
    torn = None
    last = text.rfind("\n") + 1
    has_half = bool(matches) and matches[-1].end() == len(text) and _is_cut(matches[-1]["rest"])
    if has_half:
        matches.pop()
    if has_half or (text[last:].strip() and LINE.search(text, last) is None):
        torn = f"line {edn.line_of(text, len(text))} was torn off and is left out"
    whole = {match.start() for match in matches}
    for match in _LIKE_IT.finditer(text, 0, last):
        if match.start() not in whole:
            raise HistoryError(
                expected="process :type :f value",
                came=repr(text[match.start("process") : match.end()][:60]),
                attempt="give the file as Jepsen wrote it, or remove the line",
                line=edn.line_of(text, match.start("process")),
            )
    if not matches:
        raise no_operations("a log without a line of jepsen.util, so the test ended before the first")

    def line_of(place: int) -> int:
        return edn.line_of(text, matches[place].start("process"))

    maps = [_map(match, line_of, place) for place, match in enumerate(matches)]
    return Maps(maps, line_of, Header(system="jepsen"), torn, are_flat=True)


def _is_cut(rest: str) -> bool:
    """Whether the value, or what stands behind it, has no end; or there is no value, for which Jepsen writes nil."""
    try:
        return not rest.strip() or edn.read(f"{rest} nil").torn_at is not None
    except HistoryError:
        return False  # `_values` says what is wrong with it, and in which line


def _map(match: re.Match[str], line_of: LineOf, place: int) -> dict[str, Any]:
    process = match["process"]
    values = _values(match["rest"], line_of, place)
    return {
        "process": int(process) if re.fullmatch(r"\d{1,18}", process) else process.removeprefix(":"),
        "type": match["type"],
        "f": match["f"],
        "value": values[0] if values else None,
        "error": values[1] if len(values) > 1 else None,
    }


def _values(rest: str, line_of: LineOf, place: int) -> list[Any]:
    """Value and error: the rest of the line, which is EDN, or at least begins so."""
    try:
        return edn.values_in(rest)
    except HistoryError as error:
        raise HistoryError(
            expected="a value in EDN",
            came=repr(rest.strip()[:60]),
            attempt=error.attempt,
            line=line_of(place),
        ) from error
