"""What workloads share: the pace of their operations, unique values, keys without a final read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import replace
from textwrap import shorten

from checkers.domain import rollback_honesty
from checkers.history.history import History
from checkers.history.operation import Operation as Recorded
from checkers.history.values import many
from checkers.verdict import Verdict
from harness.plan.plan import SECOND_NS, WORKERS_MAX, Plan
from harness.workloads.checks import Check
from harness.workloads.generators import Context, Draft, Each, Generator, Mix, Stagger, Until

Draw = Callable[[Context, int], Draft]


def mixed(plan: Plan, *parts: tuple[float, Draw]) -> Generator:
    """Each worker's share of the plan's rate, drawn from these by their weights."""
    return paced(plan, Mix(tuple((weight, Each(make)) for weight, make in parts)))


def paced(plan: Plan, operations: Generator) -> Generator:
    return Until(Stagger(operations, int(plan.workers / plan.rate * SECOND_NS)), plan.time_limit_ns)


def unique(worker: int, count: int) -> int:
    """Of this worker alone, and independent of the number of workers: that must not change what it writes."""
    return 1 + worker + WORKERS_MAX * count


def unread_keys(history: History, f: Sequence[str], is_fresh: Callable[[Recorded], bool]) -> Iterator[str]:
    """A sentence if a key that was written to had no final read that had to be fresh, with the usual reason."""
    written, final = history.keys(f=f, phase="load"), history.select(phase="final")
    read = {each.key for each in final if is_fresh(each)}
    ends = Counter(
        shorten(str(each.error), 90)
        if each.error
        else f"a {each.f} answered as {each.role}, in mode {each.mode}"
        for each in final
        if each.key in written - read
    )
    why = "".join(f": {end} ({times} of {ends.total()})" for end, times in ends.most_common(1))
    return (sentence + why for sentence in unread(written, read))


def unread(written: Set[str | None], read: Set[str | None], what: str = "key") -> Iterator[str]:
    """A sentence if something was written to and, in the end, not read fresh. Where nodes may differ in the end and
    final states are missing, these reads alone look for lost writes (`harness.judge.outcome`)."""
    if missing := written - read:
        example = min(map(str, missing))
        yield f"{many(len(missing), what)} had no final read that had to be fresh, {example} among them"


def renamed(verdict: Verdict, name: str, model: str) -> Verdict:
    """The verdict under the name and the model of the check that asked for it."""
    return replace(verdict, checker=name, model=model)


HONESTY = Check(
    rollback_honesty.NAME,
    "what surely failed is never seen",
    rollback_honesty.MODEL,
    rollback_honesty.check,
)
