"""Runs conducted on a made-up cluster, recorded in memory."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from typing import Any

from checkers.history import jsonl
from checkers.history.history import History
from checkers.history.operation import Event
from harness.faults.fault import Fault
from harness.plan.plan import Drawn, Operation, Plan
from harness.run.assemble import header, parts_of
from harness.run.conductor import Conductor
from harness.systems import System
from harness.systems.plans import planned
from tests.harness.fake_cluster import FakeCluster

MILLISECOND_NS = 1_000_000
AtTime = dict[int, Callable[[Conductor], object]]
"""Milliseconds → what to do then."""
PAUSE = Fault(
    id=0, name="pause", does="pause", at_ns=50 * MILLISECOND_NS, until_ns=150 * MILLISECOND_NS, nodes=("n2",)
)


def operation(at_ms: int, f: str = "write", *, worker: int = 0, key: str = "x", **others: Any) -> Operation:
    values: dict[str, Any] = {"write": at_ms + 1, "cas": ("@seen", at_ms + 1)}
    value = values.get(f)
    return Operation(
        at_ns=at_ms * MILLISECOND_NS, worker=worker, f=f, key=key, value=value, node="n1", **others
    )


def drawn(*operations: Operation, faults: tuple[Fault, ...] = (), **others: Any) -> Plan:
    own = {} if "system" in others else {"cut_every_s": 0}  # no operator among the recorded requests
    return planned(
        cluster="sim",
        configuration="C",
        workers=2,
        settle_timeout_s=1,
        drawn=Drawn(faults=faults, operations=operations),
        **{**own, **others},
    )


class Recorded:
    """One run of a plan on a made-up cluster, whatever came of it."""

    def __init__(
        self,
        plan: Plan,
        cluster: FakeCluster,
        *,
        at: AtTime | None = None,
        system: System | None = None,
    ) -> None:
        parts = parts_of(plan)
        self.file = io.BytesIO()
        self.cluster = cluster
        self.conductor = Conductor(
            plan, cluster, system or parts.system, parts.workload, jsonl.Writer(self.file, header(parts))
        )
        self.error: BaseException | None = None
        try:
            cluster.run(self._run(at or {}))
        except Exception as error:
            self.error = error

    async def _run(self, at: AtTime) -> None:
        for time_ms, action in at.items():
            self.cluster.later(time_ms * MILLISECOND_NS, partial(action, self.conductor))
        await self.conductor.run()

    @property
    def history(self) -> History:
        return jsonl.parse(self.file.getvalue())

    @property
    def events(self) -> tuple[Event, ...]:
        return self.history.events

    def of(self, process: str) -> list[Event]:
        return [event for event in self.events if event.process == process]
