"""The transactions that the answer to an operation shows: each is the only writer of a value in it.

Writers are found in the servers' logs, so that a transaction without an answer counts, too. A value that two
transactions have written to a key shows neither of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from checkers.history.operation import Operation
from harness.systems.twophase.logs import Records

Shown = tuple[object, str]
"""A key, and its value as a text: a value may be a list."""


class Writers:
    def __init__(self, records: Records) -> None:
        self._of: dict[Shown, set[str]] = {}
        for log in records.values():
            for record in log:
                if record[0] == "committed":
                    for _, key, value, _ in record[5]:
                        self._of.setdefault((key, repr(value)), set()).add(record[1])

    def shown_by(self, operation: Operation) -> Sequence[str]:
        """The transactions, without the operation's own."""
        xids: dict[str, None] = {}
        for key, value in _read(operation):
            writers = self._of.get((key, repr(value)), set())
            if value is not None and len(writers) == 1:
                xids.update(dict.fromkeys(writers))
        return [xid for xid in xids if xid != operation.transaction]


def _read(operation: Operation) -> Iterator[tuple[str, object]]:
    """The keys that the operation read, with the values, if its answer shows stored values as they are."""
    match operation.type, operation.f, operation.value:
        case "ok", "read", value if operation.key is not None:
            yield operation.key, value
        case "ok", "cas", [old, _] if operation.key is not None:
            yield operation.key, old
        case "fail", "cas", [_, _, there] if operation.key is not None:
            yield operation.key, there
        case "ok", "txn", [*micros]:
            for micro in micros:
                match micro:
                    case ["r", str(key), value]:
                        yield key, value
