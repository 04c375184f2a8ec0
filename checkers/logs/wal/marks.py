"""Whether the PROMOTEs and DEMOTEs of a log wait for a quorum.

A row says it itself (`Record.waits`). A row that does not was written by real Tarantool, or by a version of our nodes
that had no marks. Then the rows behind it decide, the first that does; each by the first of these rules that fits. A
PROMOTE (or DEMOTE) names an owner, and an lsn of that owner:

1. a CONFIRM by its origin of its own lsn: it waited
2. a PROMOTE that stands on it (names its origin, and its lsn): it waited
3. it names another owner than its origin, and a PROMOTE behind it names its origin: it took effect when it was written
4. a PROMOTE that names the same owner as it does:
   - that owner is another node: it waited, because the writer of the later one did not take it to be in effect
   - that owner is its origin: it waited if the later one names a smaller lsn, else it took effect when it was written
5. any other row of its origin: it took effect when it was written

Where no row decides, the configuration (`LogRules.promotes`) does. An independent reading of the rules, which shares no
code with the nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

from checkers.logs.wal.record import Promotes, Record


def marks(records: Sequence[Record], otherwise: Promotes) -> dict[tuple[int, int], bool]:
    """By origin and lsn of a PROMOTE or DEMOTE: whether it waits."""
    waits_of: dict[tuple[int, int], bool] = {}
    open_rows: list[Record] = []
    for row in records:
        still_open = []
        for earlier in open_rows:
            waits = _waits_by(earlier, row)
            if waits is None:
                still_open.append(earlier)
            else:
                waits_of[earlier.origin, earlier.lsn] = waits
        open_rows = still_open
        if row.kind in ("promote", "demote"):
            if row.waits is None:
                open_rows.append(row)
            else:
                waits_of[row.origin, row.lsn] = row.waits
    return waits_of | {(row.origin, row.lsn): otherwise == "synchronous" for row in open_rows}


def _waits_by(earlier: Record, row: Record) -> bool | None:
    """Whether the PROMOTE `earlier` waits, by the row behind it and the rules 1 to 5; None: it does not decide."""
    if row.kind == "confirm" and row.origin == earlier.origin and row.until == earlier.lsn:
        return True
    if row.kind in ("promote", "demote"):
        if row.owner == earlier.origin and row.until == earlier.lsn:
            return True
        if row.owner == earlier.origin != earlier.owner:
            return False
        if row.owner == earlier.owner:
            return row.owner != earlier.origin or row.until < earlier.until
    return False if row.origin == earlier.origin else None
