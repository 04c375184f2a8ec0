"""Simulated runs in memory for tests: small plans, and the bytes of what they record."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

from checkers.history import jsonl
from checkers.history.history import History
from harness.judge import Case, judge
from harness.plan.plan import Plan
from harness.run.assemble import Parts, header, parts_of, simulated
from harness.run.conductor import Conductor
from harness.run.draw import draw
from harness.systems.plans import planned


def small(**given: Any) -> Plan:
    """A plan of the simulator that takes a fraction of a second and still has room for two faults."""
    return planned(**{"cluster": "sim", "time_limit_s": 7.0, "rate": 100.0, **given})


def drawn_out(plan: Plan) -> Plan:
    parts = parts_of(plan)
    return draw(plan, parts.system, parts.workload)


@dataclass(frozen=True)
class Recorded:
    """What a simulated run left behind: the bytes of its record, and the digest of its trace if one was kept."""

    parts: Parts
    data: bytes
    trace_digest: str

    @property
    def history(self) -> History:
        return jsonl.parse(self.data)


def recorded(plan: Plan, *, record_trace: bool = False) -> Recorded:
    parts = parts_of(plan)
    cluster = simulated(parts, None, record_trace=record_trace)
    file = io.BytesIO()
    record = jsonl.Writer(file, header(parts))
    cluster.run(Conductor(plan, cluster, parts.system, parts.workload, record).run())
    return Recorded(parts, file.getvalue(), cluster.world.trace_digest())


def judged(plan: Plan) -> tuple[History, dict[str, Any]]:
    """The history and the verdict of a simulated run, by what its clients saw."""
    done = recorded(plan)
    history = done.history
    return history, judge(Case(plan, history, given_promise=done.parts.system.promise(plan)))
