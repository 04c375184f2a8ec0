"""The table of workloads: what clients do. A new one is a file here and a line in this table."""

from __future__ import annotations

from harness.clients.operations import Append, Take
from harness.errors import WrongUse
from harness.workloads.append import APPEND
from harness.workloads.bank import Bank
from harness.workloads.counter import Counter
from harness.workloads.long_fork import LONG_FORK
from harness.workloads.mixed_spaces import MixedSpaces
from harness.workloads.queue import Queue
from harness.workloads.register import Register
from harness.workloads.restore import Restore
from harness.workloads.rw_register import RW_REGISTER
from harness.workloads.set import Set
from harness.workloads.unique_ids import UniqueIds
from harness.workloads.workload import Workload

WORKLOADS: dict[str, Workload] = {
    "register": Register(),
    "read-write": Register(
        summary="reads and writes of several keys, for stores that cannot compare and set",
        weight=0,
        has_cas=False,
    ),
    "append": APPEND,
    "rw-register": RW_REGISTER,
    "mixed-spaces": MixedSpaces(),
    "set": Set(),
    "bank": Bank(),
    "counter": Counter(),
    "queue": Queue(),
    "unique-ids": UniqueIds(),
    "long-fork": LONG_FORK,
    "restore": Restore(),
    "message-queue": Queue(
        summary="elements put into queues and taken out, for stores that can do no more, such as message brokers",
        weight=0,
        uses=frozenset({Append, Take}),
    ),
}
"""Their order decides which of them a seed draws: a new one comes last."""


def workload_of(name: str) -> Workload:
    """WrongUse if there is none of this name."""
    if name not in WORKLOADS:
        raise WrongUse(f"unknown workload {name!r}; try one of: {', '.join(WORKLOADS)}")
    return WORKLOADS[name]


__all__ = ["WORKLOADS", "Workload", "workload_of"]
