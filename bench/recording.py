"""How fast the harness records: operations per second against a store that answers at once.

The whole path of an operation is there (generator, request, two history lines, error table), only the cluster is
nothing: what is measured is the harness's own speed limit. `python -m bench.recording`
"""

from __future__ import annotations

import io
import time
from collections.abc import Coroutine, Mapping
from typing import Any

from bench.table import print_table
from checkers.history.jsonl import Writer
from harness.clients.reply import Replied, Reply
from harness.cluster.protocol import Ended
from harness.cluster.sim.virtual_tasks import VirtualTask
from harness.faults.fault import Evidence, Fault
from harness.run.assemble import header, parts_of
from harness.run.conductor import Conductor
from harness.systems.plans import planned
from nodes.iproto.messages import Answer, Call

OPERATIONS = 200_000


class NothingCluster:
    """Answers every call at once; time is what the plan says it is, so no worker ever waits."""

    def __init__(self) -> None:
        self._now_ns = 0

    def now_ns(self) -> int:
        return self._now_ns

    async def sleep_until(self, time_ns: int) -> None:
        self._now_ns = max(self._now_ns, time_ns)

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> VirtualTask[Any]:
        task = VirtualTask(coroutine)
        task.start()
        return task

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def call(self, process: int, node: str, request: object, timeout_ns: int) -> Reply:
        assert isinstance(request, Call)
        return Replied(Answer(request.sync, ({"committed": True, "results": [None], "role": "owner"},)))

    async def inject(self, fault: Fault) -> None: ...

    async def heal(self, fault: Fault) -> Evidence:
        raise AssertionError("no faults here")

    async def status(self, node: str) -> Mapping[str, object] | None:
        return None

    def ended(self) -> tuple[Ended, ...]:
        return ()

    def stalls(self) -> tuple[tuple[int, float], ...]:
        return ()


def record_once() -> tuple[int, float, int]:
    """Operations, seconds of the core, bytes of history."""
    plan = planned(faults=("none",), workers=1, rate=10_000.0, time_limit_s=OPERATIONS / 10_000.0, seed=1)
    parts = parts_of(plan)
    file = io.BytesIO()
    conductor = Conductor(plan, NothingCluster(), parts.system, parts.workload, Writer(file, header(parts)))
    began_s = time.process_time()
    task = VirtualTask(conductor.work(0))
    task.start()
    task.result()
    seconds = time.process_time() - began_s
    return conductor.progress.ok, seconds, len(file.getvalue())


def main() -> None:
    rows = []
    for _ in range(3):
        count, seconds, size = record_once()
        rows.append([f"{count:,}", f"{seconds:.2f}", f"{count / seconds:,.0f}", f"{size / count:.0f}"])
    print_table(["operations", "of the core, s", "operations/s", "bytes an operation"], rows)


if __name__ == "__main__":
    main()
