"""Why there is no certificate: every gap of the evidence, in a line each, with the exit code that it deserves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from math import floor
from typing import NamedTuple

from harness.campaigns.bars import UNMEASURED, WORDS, Bar
from harness.campaigns.certification.facts import JudgedRun
from harness.campaigns.certification.sensitivity import Measured
from harness.campaigns.plan import Campaign
from harness.faults.table import FAULTS

ANOMALY, INCONCLUSIVE = 1, 3


class Lack(NamedTuple):
    """A gap; `exit_code`: what it means for a caller."""

    exit_code: int
    text: str


def of_matrix(campaign: Campaign, rows: Sequence[JudgedRun], commit: str, bar: Bar) -> list[Lack]:
    """The gaps in the runs of a matrix, anomalies first. `commit`: of the code that makes the certificate."""
    return sorted([*_of_matrix(campaign, rows, commit), *_below(rows, bar)])


def _of_matrix(campaign: Campaign, rows: Sequence[JudgedRun], commit: str) -> Iterator[Lack]:
    bugs = sorted({bug for cell in campaign.cells for bug in cell.plan.bugs})
    if bugs:
        yield Lack(INCONCLUSIVE, f"the plan switches a seeded bug on: {', '.join(bugs)}")
    for row in rows:
        if row.outcome != "valid":
            yield Lack(row.exit_code, f"{row.cell}, seed {row.seed}: {row.outcome}: {row.sentence}")
        elif row.evidence["ok"] == 0:
            yield Lack(INCONCLUSIVE, f"{row.cell}, seed {row.seed}: no operation succeeded")
        for why in row.refused:
            yield Lack(INCONCLUSIVE, f"{row.cell}, seed {row.seed}: {why}")
    yield from _missing_runs(campaign, rows)
    yield from _unseen_faults(rows)
    for code in sorted({row.plan.code for row in rows} - {commit}):
        yield Lack(
            INCONCLUSIVE,
            f"runs are of the commit {code or '(none)'}, and the certificate of {commit or '(none)'}",
        )


def _missing_runs(campaign: Campaign, rows: Sequence[JudgedRun]) -> Iterator[Lack]:
    """The gaps in the runs of each cell: too few seeds, a run twice, a plan or a seed that is not the cell's."""
    if not rows:
        yield Lack(INCONCLUSIVE, "nothing ran")
    for cell in campaign.cells:
        seeds = {row.seed for row in rows if row.cell == cell.name}
        if len(seeds) < campaign.seeds:
            yield Lack(INCONCLUSIVE, f"{cell.name}: {len(seeds)} of {campaign.seeds} runs were done")
    if len({(row.cell, row.seed) for row in rows}) < len(rows):
        yield Lack(INCONCLUSIVE, "a run is counted twice")
    histories = Counter(row.history.sha256 for row in rows)
    for row in rows:
        if histories[row.history.sha256] > 1:
            yield Lack(INCONCLUSIVE, f"{row.run}: another run has the same history")
    plans = {cell.name: cell.plan for cell in campaign.cells}
    for row in rows:
        plan = plans.get(row.cell)
        for lack in row.evidence.get("not_here", ()):
            left_out = ", ".join(lack["faults"])
            yield Lack(INCONCLUSIVE, f"{row.run}: its machine could not do {left_out}: {lack['why']}")
        if campaign.first_seed is not None and not 0 <= row.seed - campaign.first_seed < campaign.seeds:
            yield Lack(INCONCLUSIVE, f"{row.run}: its seed {row.seed} is not one of the plan")
        if plan is None or plan.changed(seed=row.seed, code=row.plan.code) != row.plan:
            yield Lack(INCONCLUSIVE, f"{row.run}: its plan is not that of the cell {row.cell}")


def _unseen_faults(rows: Sequence[JudgedRun]) -> Iterator[Lack]:
    """A gap for each kind of fault that the matrix asks for on a cluster and that never took effect there."""
    for cluster in sorted({row.plan.cluster for row in rows}):
        there = [row for row in rows if row.plan.cluster == cluster]
        # Steps of a directed schedule have names of their own, and need not take effect.
        asked = FAULTS.keys() & {
            name for row in there for name in (*row.evidence["not_observed"], *row.begun)
        }
        observed = {name for row in there for name in row.in_effect}
        for name in sorted(asked - observed):
            yield Lack(INCONCLUSIVE, f"the fault {name} never took effect on the cluster {cluster}")


def of_plan(campaign: Campaign, bar: Bar, runs_per_bug: int) -> Iterator[Lack]:
    """The requirements that no run of this plan can reach, named before hours are spent."""
    if campaign.rotates:
        yield Lack(INCONCLUSIVE, "the plan rotates: another day has other cells; leave `rotate` out")
    plans = [cell.plan for cell in campaign.cells]
    hours = timedelta(seconds=sum(plan.time_limit_s for plan in plans) * campaign.seeds)
    asked = sum(plan.time_limit_s * plan.rate for plan in plans) * campaign.seeds
    yield from _least(bar, "runs", len(plans) * campaign.seeds, "the plan has")
    yield from _least(bar, "hours", hours / timedelta(hours=1), "the plan has")
    yield from _least(bar, "operations", int(asked), "the plan asks for")
    yield from _least(bar, "runs_per_bug", runs_per_bug, "--seeds-per-bug is")


def _below(rows: Sequence[JudgedRun], bar: Bar) -> Iterator[Lack]:
    """The requirements that the runs did not reach."""
    effects = [row.in_effect for row in rows]
    hours = timedelta(seconds=sum(row.plan.time_limit_s for row in rows)) / timedelta(hours=1)
    yield from _least(bar, "runs", len(rows), "there are")
    yield from _least(bar, "hours", hours, "there are")
    yield from _least(bar, "operations", sum(row.evidence["ok"] for row in rows), "there succeeded")
    yield from _least(bar, "kinds_of_faults", len(FAULTS.keys() & set().union(*effects)), "there took effect")
    yield from _least(bar, "faults", sum(effect.total() for effect in effects), "there took effect")


def of_measure(measured: Measured, bar: Bar) -> Iterator[Lack]:
    """The gaps of the sensitivity: false alarms, and too few seeded bugs found."""
    for alarm in measured.clean.alarms:
        yield Lack(ANOMALY, f"a run without any bug is an anomaly in the simulator: {alarm}")
    yield from _least(bar, "runs_per_bug", measured.runs_per_bug, "the budget was")
    if measured.bugs:
        share = len(measured.named("found")) / len(measured.bugs)
        yield from _least(bar, "seeded_bugs", share, "the share found is")
    elif bar.requires.seeded_bugs:
        needs = f"the bar {bar.name} requires that seeded bugs are found"
        yield Lack(INCONCLUSIVE, f"{needs}, and this system has none; try: --bar {UNMEASURED}")


def _least(bar: Bar, field: str, came: float, words: str) -> Iterator[Lack]:
    wanted: float = getattr(bar.requires, field)
    if came < wanted:
        # A float is never rounded up to what is asked.
        shown = f"{came:,}" if type(came) is int else f"{floor(came * 100) / 100:,}"
        yield Lack(
            INCONCLUSIVE,
            f"{WORDS[field]}: {words} {shown}, the bar {bar.name} requires {wanted:,.10g}",
        )
