"""Second clusters: what a system offers that can begin one from a cut, and the lines of the history about them.

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

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from harness.cluster.protocol import Cluster
from harness.plan.plan import Plan
from harness.systems.parts import NodeFiles
from harness.systems.system import System

ASKED, REFUSED, BROKE = "restore-asked", "restore-refused", "restore-broke"
READ, DUMP, CUT, AGAIN = "restored-read", "restored-dump", "restored-cut", "restored-again"
FIRST, LAST = "first", "last"

Rows = Sequence[Sequence[object]]


@runtime_checkable
class RestoresCuts(Protocol):
    """A system with cuts, of which further clusters can begin when the run is over."""

    def drawn_cuts(self, plan: Plan, files: NodeFiles) -> Sequence[str]:
        """The cuts to restore, of those that nodes left traces of."""
        ...

    def restored_files(self, plan: Plan, files: NodeFiles, cut: str) -> NodeFiles | str:
        """The files that the nodes of a second cluster begin with; or why there is none, in a sentence."""
        ...

    def restored(self, cut: str) -> System:
        """The same system, with nodes that begin from this cut."""
        ...

    async def take_cut(self, plan: Plan, cluster: Cluster, cut: str) -> tuple[str, str, str]:
        """One more cut: its name in the nodes' logs, the state in which it ended ("ok" if well), and why."""
        ...

    def rows_of(self, plan: Plan, files: NodeFiles, cut: str) -> Mapping[str, Rows] | str:
        """The result of a restore to this cut, node by node; or why it gives none."""
        ...
