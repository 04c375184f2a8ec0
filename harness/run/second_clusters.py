"""Second clusters, when a run is over: each begins from a cut of the first, and shows what that was worth.

The first cluster has ended. The files that its nodes left go through the store's own restore, which gives the files for
a whole second cluster or refuses. No fault meets a second cluster: all nodes come up, clients read everything at each
of them, go on writing, take one more cut meanwhile, and read again. The history gets a line for each
(`harness.workloads.restoring`); checks of the workload and of the system judge them.

A second cluster and not the first one again: nothing of the first, such as what its nodes agreed on since, can make up
for what a restore lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any

from checkers.history.jsonl import Writer
from harness.clients.operations import Done, Dump, Transaction
from harness.cluster.performing import Performs, performing
from harness.cluster.protocol import BeginsAnew, Cluster
from harness.errors import ClusterError
from harness.plan.plan import SECOND_NS, Operation
from harness.run.assemble import Parts
from harness.run.draw import operations_of
from harness.systems.parts import NodeFiles, Rows
from harness.workloads.completed import asked_of
from harness.workloads.restoring import (
    AGAIN,
    ASKED,
    BROKE,
    CUT,
    DUMP,
    FIRST,
    LAST,
    READ,
    REFUSED,
)

WRITERS, WRITES_EACH = 3, 12
PATIENCE_NS = 10 * SECOND_NS
PAUSE_NS = SECOND_NS // 20

Work = Callable[[Cluster], Coroutine[Any, Any, None]]
Start = Callable[[Parts, str, NodeFiles, Work], NodeFiles]
"""(parts, cut, files, work): run a cluster whose nodes begin with these files, do the work there, and end it; returns
the files that its nodes left."""


def restore_drawn(parts: Parts, record: Writer, files: NodeFiles, start: Start) -> None:
    """Begin a second cluster from each of the drawn cuts. `files`: of the first cluster's nodes."""
    system, workload, plan = parts.system, parts.workload, parts.plan
    for cut in system.second_clusters.drawn_cuts(plan, files):
        lines = _Lines(record, cut)
        lines.note(ASKED, "", {})
        begins_with = system.second_clusters.files_at(plan, files, cut)
        if isinstance(begins_with, str):
            lines.note(REFUSED, "", {"why": begins_with})
            continue
        second = SecondCluster(Parts(plan, system.begun_from(cut), workload), lines)
        left = start(second.parts, cut, begins_with, second.run)
        if second.named is not None:
            rows = system.second_clusters.rows_at(plan, left, second.named)
            if isinstance(rows, str):
                lines.note(BROKE, "", {"why": f"its cut {second.named}: {rows}", "ended": []})
            else:
                for node, node_rows in rows.items():
                    lines.note(AGAIN, node, {"rows": node_rows})


@dataclass(slots=True)
class _Lines:
    """Lines about one second cluster; its time follows on that of the record."""

    record: Writer
    cut: str
    now_ns: Callable[[], int] = lambda: 0
    _begun_ns: int = field(init=False)

    def __post_init__(self) -> None:
        self._begun_ns = self.record.time_ns

    def note(self, what: str, node: str, value: dict[str, object]) -> None:
        # The clock of a second cluster begins at 0 again, twice if `begin_now` resets it: a record never goes back.
        time_ns = max(self.record.time_ns, self._begun_ns + self.now_ns())
        self.record.record(
            "info", "operator", what, time_ns=time_ns, node=node or None, value={"cut": self.cut, **value}
        )


@dataclass(slots=True)
class SecondCluster:
    """The actions on one second cluster; `named` is its own cut in its logs, if that ended well."""

    parts: Parts
    lines: _Lines
    named: str | None = None
    _processes: Iterator[int] = field(default_factory=count)
    _written: int = 0

    async def run(self, cluster: Cluster) -> None:
        """The cluster is stopped whatever happens."""
        self.lines.now_ns = cluster.now_ns
        try:
            await cluster.start()
            if isinstance(cluster, BeginsAnew):
                cluster.begin_now()
            await self._work(cluster, performing(self.parts.system.client, cluster))
            self._note_ended(cluster, "")
        except ClusterError as error:
            self._note_ended(cluster, error.message)
        finally:
            await cluster.stop()

    def _note_ended(self, cluster: Cluster, why: str) -> None:
        ended = [f"{end.node} ({end.how})" for end in cluster.ended()]
        if why or ended:
            self.lines.note(
                BROKE, "", {"why": why or f"ended by themselves: {', '.join(ended)}", "ended": ended}
            )

    async def _work(self, cluster: Cluster, clients: Performs) -> None:
        plan, system = self.parts.plan, self.parts.system
        await system.set_up(plan, cluster)
        await self._look(cluster, clients, FIRST)
        writers = [cluster.spawn(self._write(clients, worker)) for worker in range(WRITERS)]
        name = f"{self.lines.cut}-again"
        named, state, why = await system.second_clusters.take_cut(plan, cluster, name)
        for writer in writers:
            await writer
        self.lines.note(CUT, "", {"named": named, "state": state, "why": why, "writes": self._written})
        self.named = named if state == "ok" else None  # an unfinished cut is not restored
        await system.set_up(plan, cluster)  # until nothing is under way any more
        await self._look(cluster, clients, LAST)

    async def _look(self, cluster: Cluster, clients: Performs, when: str) -> None:
        """Read everything at every node, and dump the data of each."""
        workload = self.parts.workload
        everything = workload.everything(self.parts.plan)
        assert everything is not None, "who begins second clusters asks it first"
        for node in self.parts.plan.node_names:
            done = await self._done(cluster, clients, node, everything)
            rows = [
                [step.space, step.key, value]  # type: ignore[union-attr]  # steps that read one key
                for step, value in zip(everything.steps, done.results, strict=True)
            ]
            self.lines.note(READ, node, {"when": when, "rows": rows})
        for node in self.parts.plan.node_names:
            (dump,) = (await self._done(cluster, clients, node, Dump())).results
            self.lines.note(DUMP, node, {"when": when, "rows": _rows(dump)})

    async def _done(self, cluster: Cluster, clients: Performs, node: str, asked: Transaction | Dump) -> Done:
        deadline_ns = cluster.now_ns() + PATIENCE_NS
        while True:
            outcome = await clients.perform(next(self._processes), node, asked, PATIENCE_NS)
            if isinstance(outcome, Done):
                return outcome
            if cluster.now_ns() > deadline_ns:
                raise ClusterError(f"{node} does not let itself be read: {outcome}")
            await cluster.sleep_until(cluster.now_ns() + PAUSE_NS)

    async def _write(self, clients: Performs, worker: int) -> None:
        """The first writes of the workload, as fast as they are answered."""
        plan, system, workload = self.parts.plan, self.parts.system, self.parts.workload
        drawn = (
            draft for draft in operations_of(plan, system, workload, worker) if _writes(self.parts, draft)
        )
        for operation in islice(drawn, WRITES_EACH):
            asked = asked_of(workload, operation, operation.value)
            outcome = await clients.perform(next(self._processes), operation.node, asked, PATIENCE_NS)
            self._written += isinstance(outcome, Done)


def _writes(parts: Parts, operation: Operation) -> bool:
    return parts.workload.effects.get(operation.f) != "reads"


def _rows(dump: Any) -> Rows:
    return [[space, key, value] for space, rows in sorted(dump["spaces"].items()) for key, value in rows]
