"""Many seeds of one plan, each a whole simulated run with its verdict; nothing is kept of those that pass."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

import msgspec

from checkers.history import jsonl
from harness.campaigns.hunt.variety import hunted
from harness.campaigns.processes import spread
from harness.errors import TRACEBACK_NOTE, HarnessError, broke, keep_traceback
from harness.judge import Case, Left, judge, repeat_line
from harness.plan.plan import Plan
from harness.run.assemble import header, parts_of, simulated
from harness.run.conductor import Conductor
from harness.run.execute import in_memory, in_virtual_time
from harness.run.finish import BROKEN
from harness.run.second_clusters import restore_drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One seed and its outcome: that of its verdict, or "broken" if the harness itself broke.

    `violated` names the checkers that say invalid.
    """

    seed: int
    outcome: str
    exit_code: int
    sentence: str
    violated: tuple[str, ...] = ()
    ok: int = 0
    kinds_in_effect: int = 0
    rollbacks: int = 0
    configuration: str
    workload: str
    sometimes: dict[str, int] = field(default_factory=dict)
    cuts: int = 0
    """How many consistent cuts were judged."""
    again: str
    """The line that repeats this seed."""


def try_seed(plan: Plan, has_drawn_faults: bool = False) -> Tried:
    """Run a plan in memory and judge it; KeyboardInterrupt after the run has ended in order.

    `has_drawn_faults`: the user named no faults, so a seed need not have room for each.
    """
    parts = parts_of(plan)
    plan = parts.plan
    cluster = simulated(parts, None)
    record = io.BytesIO()
    writer = jsonl.Writer(record, header(parts))
    conductor = Conductor(plan, cluster, parts.system, parts.workload, writer)
    failure: str | None = None
    try:
        if in_virtual_time(cluster, conductor):
            raise KeyboardInterrupt
        if parts.workload.everything(plan):
            restore_drawn(parts, writer, cluster.files(), in_memory)
    except HarnessError as error:
        failure = error.message
    history = jsonl.parse(record.getvalue())
    left = Left.of(plan, cluster.files(), cluster.effects())
    verdict = judge(Case(plan, history, left, failure=failure, names_faults=not has_drawn_faults))
    evidence = verdict["evidence"]
    return Tried(
        seed=plan.seed,
        outcome=verdict["outcome"],
        exit_code=verdict["exit_code"],
        sentence=verdict["sentence"],
        violated=tuple(verdict["violations"]),
        ok=evidence["ok"],
        kinds_in_effect=len(evidence["kinds_in_effect"]),
        rollbacks=evidence["rollbacks"] or 0,
        configuration=plan.expectations.configuration,
        workload=plan.workload,
        sometimes=evidence["rare_turns"],
        cuts=evidence.get("cuts", {}).get("judged", 0),
        again=verdict["repeat"]["command"],
    )


def try_once(plan: Plan, has_drawn_faults: bool = False) -> Tried:
    """As `try_seed`, but a bug of the harness makes this seed "broken" and does not end the hunt."""
    try:
        return try_seed(plan, has_drawn_faults)
    except HarnessError:
        raise
    except Exception as error:
        return Tried(
            seed=plan.seed,
            outcome="broken",
            exit_code=BROKEN,
            sentence=f"{broke(error)}; {TRACEBACK_NOTE}{keep_traceback(error)}",
            configuration=plan.expectations.configuration,
            workload=plan.workload,
            again=repeat_line(plan, None),
        )


def hunt(plan: Plan, seeds: Iterable[int], jobs: int, given: frozenset[str] | None = None) -> Iterator[Tried]:
    """The results of all seeds as they come, `jobs` at a time; the hunt stops when no more are taken.

    With `given`, the names of the fields of the plan that stay, all other fields are drawn from each seed.
    """
    plans: Iterable[Plan] = (msgspec.structs.replace(plan, seed=seed, drawn=None) for seed in seeds)
    if given is not None:
        plans = (hunted(varied, given) for varied in plans)
    has_drawn_faults = given is not None and "faults" not in given
    yield from spread(partial(try_once, has_drawn_faults=has_drawn_faults), plans, jobs)
