"""The lines of a history about second clusters (`harness.run.second_clusters`).

The lines are of the process "operator". Their `cut` is the one that the second cluster begins from.

| line | value beside `cut` |
|---|---|
| restore-asked | |
| restore-refused | "why": nothing was restored anywhere |
| restore-broke | "why": the second cluster did not do what it was asked; "ended": nodes that ended by themselves |
| restored-read | "rows": all that a client reads at `node`, "when": "first" (before any write there) or "last" |
| restored-dump | "rows": all that `node` holds, and "when" |
| restored-cut | of one more cut there: "named" (in logs), "state", "why"; "writes": how many came through |
| restored-again | "rows": what a restore of `node` to that further cut gives |

Rows are [[space, key, value], …].
"""

from __future__ import annotations

ASKED, REFUSED, BROKE = "restore-asked", "restore-refused", "restore-broke"
READ, DUMP, CUT, AGAIN = "restored-read", "restored-dump", "restored-cut", "restored-again"
FIRST, LAST = "first", "last"
NAME = "cuts-restored"
"""The check that the store makes of these lines."""
RULE = "a second cluster has what the cut has, all its copies are the same, and it goes on"
