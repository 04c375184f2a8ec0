"""The words of a node's status that the harness reads of every system. A store may leave out any of them.

| word | what |
|---|---|
| `role` | "owner" on the node that leads; "loading" on one that does not serve yet; else any word |
| `term` | the generation of leaders that the node knows |
| `owner` | the node that it takes for the leader |
| `vclock` | its rows: the last number of each origin; or any value that is equal on all nodes in the end |
| `lsn` | the last number of its own rows |
| `following` | the nodes that it receives rows from |
| `members`, `quorum`, `id` | where members change: their numbers, the size of a quorum, its own number |
| `version` | the version of its program |
| `wall_ns` | its wall clock |

All other fields of a status are the system's own (`harness.systems.parts.Reports`).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

Status = Mapping[str, object]
Statuses = Mapping[str, Status | None]


def has_synced(node: str, statuses: Statuses) -> bool:
    """The node is back: it has loaded its data and follows all other members, and every member answers."""
    own = statuses.get(node)
    if own is None or own.get("role") == "loading":
        return False
    following = own.get("following")
    if isinstance(following, list | tuple) and len(following) < len(statuses) - 1:
        return False  # a store that does not report its peers is trusted when it reports that it is up
    return all(other is not None for other in statuses.values())


def covers(status: Mapping[str, object] | None, vclock: Mapping[str, int]) -> bool:
    """The node's log has all rows up to `vclock`; of no rows also the log of a node without an answer."""
    own = _lsns(status)
    return all(own.get(origin, 0) >= lsn for origin, lsn in vclock.items())


def furthest(statuses: Statuses) -> dict[str, int]:
    """The greatest lsn of each origin that any of these nodes has."""
    lsns: dict[str, int] = {}
    for status in statuses.values():
        for origin, lsn in _lsns(status).items():
            lsns[origin] = max(lsns.get(origin, 0), lsn)
    return lsns


def rows_of(status: Status | None) -> int:
    """How many rows the node has in its log; 0 if its vclock has no numbers by origin."""
    return sum(_lsns(status).values())


def _lsns(status: Status | None) -> dict[str, int]:
    """Origin → lsn. A user's own store may have positions that are no numbers ("0/16B3748"): they are left out."""
    vclock = (status or {}).get("vclock")
    lsns: dict[str, int] = {}
    for origin, lsn in vclock.items() if isinstance(vclock, Mapping) else ():
        with suppress(TypeError, ValueError, OverflowError):
            lsns[str(origin)] = int(lsn)
    return lsns
