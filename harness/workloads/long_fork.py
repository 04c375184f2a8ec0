"""Keys that are written once, and reads of a whole group of them: a read that shows more is later.

If each of two reads misses a write that the other shows, they cannot both show a moment of one order (a *long fork*),
wherever they were served, however old they are. The keys of a group are written at about the same time, each by
its own worker, and then the group is left behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from checkers.domain import long_fork
from checkers.history.history import History
from checkers.history.operation import Operation as Recorded
from harness.plan.plan import SECOND_NS, Plan
from harness.plan.promise import Promise
from harness.workloads.checks import Check
from harness.workloads.common import paced
from harness.workloads.generators import Context, Draft, Generator
from harness.workloads.generators.generator import Next
from harness.workloads.reads import drawn_read
from harness.workloads.transactions import Transactions, micros_of
from harness.workloads.workload import USUAL

TURNS = 6
"""How often a worker acts, on average, while its keys are the present ones."""
GROUP_SIZE = 3
SHARE_IN_BETWEEN = 1 / 50
"""The share of the reads which must have seen a part of their group."""


@dataclass(frozen=True, slots=True)
class Turns:
    """One worker: one write of its key in each window of time, and reads of the present groups."""

    plan: Plan
    worker: int
    written: int = -1

    def next(self, context: Context) -> Next:
        window = context.time_ns // int(TURNS * self.plan.workers / self.plan.rate * SECOND_NS)
        if window > self.written and context.chance.random() < 0.4:
            key = _key(window, self.worker)
            return Draft("txn", value=(("w", key, self.worker + 1),)), replace(self, written=window)
        node, mode = drawn_read(self.plan, context)
        keys = _group(window, context.chance.randrange(_groups(self.plan)), self.plan)
        return Draft("txn", value=tuple(("r", key, None) for key in keys), node=node, mode=mode), self


@dataclass(frozen=True, slots=True, kw_only=True)
class LongFork(Transactions):
    needs_fresh_reads: bool = True
    shares: frozenset[str] = USUAL - {"stray_writes"}

    @property
    def spaces(self) -> tuple[str, ...]:
        return ("rw-register",)

    def generator(self, plan: Plan, worker: int) -> Generator:
        return paced(plan, Turns(plan, worker))

    def checks(self, promise: Promise, stricter: str | None) -> tuple[Check, ...]:
        durable, *others = Transactions.checks(self, promise, stricter)
        forward = any(check.name == "snapshots" and check.model for check in others)
        fork = Check(
            long_fork.NAME,
            "of two reads of the same keys, one saw all that the other saw",
            long_fork.MODEL if forward else "",
            long_fork.check,
        )
        return (fork, durable, *others)

    def missing(self, history: History) -> Iterator[str]:
        reads = [each for each in history.select(f="txn", outcome="ok", phase="load") if _is_of_a_group(each)]
        wanted = max(1, int(len(reads) * SHARE_IN_BETWEEN))
        between = sum(len({value is None for _, _, value in micros_of(each.value)}) == 2 for each in reads)
        if not reads:
            yield f"no read of several keys succeeded; with one worker there is none: try --workers {GROUP_SIZE}"
        elif between < wanted:
            yield f"too few reads saw a part of their group: {between} of {len(reads)}, {wanted} are needed"
        yield from self.unread(history)


def _groups(plan: Plan) -> int:
    return max(1, plan.workers // GROUP_SIZE)


def _key(window: int, worker: int) -> str:
    return f"g{window}-{worker}"


def _group(window: int, group: int, plan: Plan) -> list[str]:
    return [_key(window, worker) for worker in range(group, plan.workers, _groups(plan))]


def _is_of_a_group(operation: Recorded) -> bool:
    micros = list(micros_of(operation.value))
    return len(micros) > 1 and all(f == "r" for f, _, _ in micros)


LONG_FORK = LongFork(
    summary="keys written once and reads of several at one moment, at any node",
    weight=0.7,
    model="rw-register",
    word="w",
)
