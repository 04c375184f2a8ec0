"""Which seeded bugs a matrix finds: its own runs, in the simulator, with one bug switched on.

For a real system they are runs of its reference node, because a real system has no bugs to switch on. A system
without one is not measured. A bug has a budget of runs: half of them those of the matrix that are most like the plan
that hunts the bug, half spread evenly over the cells. The word for a bug:

| word | means |
|---|---|
| found | a run of the matrix with this bug is an anomaly |
| missed | all runs of the matrix were tried with this bug, and none is an anomaly |
| not measured | the budget, the time or the matrix does not reach it; `why` says which |

The same runs without a bug count false alarms and rare turns. Rows are kept by code, matrix and budget, each when it is
done. A measure that was interrupted goes on.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec

from checkers.history.errors import NOT_JSON
from harness.campaigns.hunt.seeds import Tried, try_once
from harness.campaigns.plan import Campaign
from harness.campaigns.processes import spread
from harness.errors import StoreError, WrongUse
from harness.judge.evidence.rare_turns import rows_of
from harness.plan.plan import Plan
from harness.run.assemble import parts_of
from harness.systems import system_of
from harness.systems.plans import fields_of, fitting, planned

FOLDER = "_sensitivity"
Word = Literal["found", "missed", "not measured"]
CLEAN = ""
"""Stands for no bug."""
OF_A_REAL_CLUSTER = (
    *("cluster", "disk", "node_cpus", "node_memory_mib", "base_port", "inventory", "accept_new_host_keys"),
    *("node_from", "node_to", "code", "format", "version"),
)
"""Fields of a plan that the simulator lacks."""


class Bug(msgspec.Struct, frozen=True, kw_only=True):
    """A seeded bug under a matrix. `by`: the checks that found it; `again`: the line that repeats the run."""

    name: str
    about: str
    word: Word
    runs: int
    by: tuple[str, ...] = ()
    again: str = ""
    why: str = ""


class Clean(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of the matrix without a bug. `alarms`: the anomalies among them; `inconclusive`: neither these nor valid."""

    runs: int = 0
    valid: int = 0
    alarms: tuple[str, ...] = ()
    inconclusive: tuple[str, ...] = ()
    sometimes: dict[str, tuple[int, int]] = {}
    """Rare turn → how often, and in how many runs."""

    @property
    def sentence(self) -> str:
        if not self.runs:
            return "false alarms: not measured"
        decided = f"{self.valid} valid, {len(self.inconclusive)} neither"
        return f"{len(self.alarms)} false alarms in {self.runs} runs without a bug; {decided}"


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """The sensitivity of a matrix. `of`: the systems that were simulated; `notes`: its limits, a sentence each."""

    of: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    runs_per_bug: int
    runs_of_matrix: int = 0
    bugs: tuple[Bug, ...] = ()
    clean: Clean = Clean()

    def named(self, word: Word) -> tuple[Bug, ...]:
        return tuple(bug for bug in self.bugs if bug.word == word)

    @property
    def sentence(self) -> str:
        if not self.bugs:
            return "not measured"
        return f"{len(self.named('found'))} of {len(self.bugs)} seeded bugs found, " + ", ".join(
            f"{len(self.named(word))} {word}" for word in ("missed", "not measured")
        )


class Errand(msgspec.Struct, frozen=True):
    """Runs to try one after the other, until one is an anomaly. `able`: how many of the matrix can have the bug."""

    bug: str
    plans: tuple[Plan, ...]
    able: int


class Done(msgspec.Struct, frozen=True):
    """An errand and its runs. `is_cut`: the time was over before its last run."""

    bug: str
    place: int
    able: int
    tried: tuple[Tried, ...]
    is_cut: bool


def measure(
    campaign: Campaign,
    runs_per_bug: int,
    jobs: int,
    time_limit_s: float,
    *,
    kept_in: Path,
    code: str,
    tell: Callable[[str], None],
) -> Measured:
    """`code`: a digest of the code that runs. Rows are kept below `kept_in`."""
    clean, notes = simulated(campaign)
    if not clean:
        return Measured(runs_per_bug=runs_per_bug, notes=tuple(notes))
    names = tuple(dict.fromkeys(plan.system for plan in clean))
    about = {bug: text for name in names for bug, text in system_of(name).bugs().items()}
    errands, refused = _errands(clean, about, runs_per_bug)
    digest = hashlib.sha256(msgspec.json.encode([code, list(clean), runs_per_bug])).hexdigest()[:24]
    book = _Book(kept_in / f"{digest}.json")
    deadline_s = time.time() + time_limit_s
    todo = [
        (place, errand) for place, errand in enumerate(errands) if _key(errand.bug, place) not in book.done
    ]
    if todo:
        count = f"{len(about)} seeded bugs, at most {runs_per_bug} runs each, and {runs_per_bug} without"
        tell(f"measuring in the simulator which bugs this matrix finds: {count}")
    for number, done in enumerate(spread(partial(_ran, deadline_s=deadline_s), todo, jobs), 1):
        book.keep(done)
        _tell(done, number, len(todo), tell)
    made = [book.done[_key(errand.bug, place)] for place, errand in enumerate(errands)]
    of_bugs = {row.bug: row for row in made if row.bug != CLEAN}
    return Measured(
        of=names,
        notes=tuple(notes),
        runs_per_bug=runs_per_bug,
        runs_of_matrix=len(clean),
        bugs=tuple(_bug(name, about[name], of_bugs.get(name), refused.get(name, "")) for name in about),
        clean=_clean([row for row in made if row.bug == CLEAN], names),
    )


def simulated(campaign: Campaign) -> tuple[list[Plan], list[str]]:
    """The runs of a matrix in the simulator, by cells and then by seeds; and their limits, a sentence each."""
    plans: list[Plan] = []
    notes: list[str] = []
    first = 1 if campaign.first_seed is None else campaign.first_seed
    for cell in campaign.cells:
        system = system_of(cell.plan.system)
        name = system.variety.reference or cell.plan.system
        if not system_of(name).bugs():
            notes.append(f"{cell.plan.system} has no reference node, and so no seeded bugs: not measured")
            continue
        if name != cell.plan.system:
            notes.append(f"of the reference node {name} under the same plan, not of {cell.plan.system}")
        try:
            plan = _in_simulator(cell.plan, name)
            parts_of(plan)
        except (WrongUse, ValueError) as error:
            notes.append(f"without the cell {cell.name}, which the simulator cannot do: {error}")
            continue
        plans += [plan.changed(seed=seed) for seed in range(first, first + campaign.seeds)]
    return list(dict.fromkeys(plans)), list(dict.fromkeys(notes))


def _in_simulator(plan: Plan, system: str) -> Plan:
    """The same plan for the simulator, without bugs. ValueError or WrongUse if there is none."""
    fields = {name: value for name, value in fields_of(plan).items() if name not in OF_A_REAL_CLUSTER}
    kept = fitting(fields, system_of(system).options)
    return planned(**{**kept, "system": system, "cluster": "sim", "bugs": ()})


def spread_evenly(plans: Sequence[Plan], count: int) -> tuple[Plan, ...]:
    """`count` of the plans, at equal distances."""
    count = min(count, len(plans))
    return tuple(plans[number * len(plans) // count] for number in range(count))


def promising(plans: Sequence[Plan], bug: str, count: int) -> tuple[Plan, ...]:
    """`count` of the plans: half of them the most similar to the plan that hunts this bug, half at equal distances."""
    likely = sorted(plans, key=lambda plan: -_likeness(plan, bug))[: count - count // 2]
    others = [plan for plan in plans if plan not in likely]
    return (*likely, *spread_evenly(others, count - len(likely)))


def _likeness(plan: Plan, bug: str) -> float:
    system = system_of(plan.system)
    hunted = system.variety.bug_plan((bug,))
    fields = fields_of(plan)
    likeness = 0.0
    for name, value in hunted.items():
        if name == "faults":
            likeness += len({*value} & {*plan.faults}) / len(value)
        else:
            likeness += fields.get(name) == (list(value) if isinstance(value, tuple) else value)
    return likeness


def _errands(
    clean: Sequence[Plan], bugs: Mapping[str, str], runs_per_bug: int
) -> tuple[list[Errand], dict[str, str]]:
    """The errands: one for each run without a bug, then one for each bug. And bug → why no run can have it."""
    errands = [Errand(CLEAN, (plan,), 1) for plan in spread_evenly(clean, runs_per_bug)]
    refused = {}
    for bug in bugs:
        able: list[Plan] = []
        for plan in clean:
            if bug not in system_of(plan.system).bugs():
                continue
            with_bug = plan.changed(bugs=(bug,))
            try:
                parts_of(with_bug)
            except (WrongUse, ValueError) as error:
                refused[bug] = str(error)
            else:
                able.append(with_bug)
        if able:
            errands.append(Errand(bug, promising(able, bug, runs_per_bug), len(able)))
    return errands, refused


def _ran(given: tuple[int, Errand], deadline_s: float) -> Done:
    """Try the runs of an errand until the first anomaly, or until the time is over."""
    place, errand = given
    tried: list[Tried] = []
    for plan in errand.plans:
        if time.time() > deadline_s:
            return Done(errand.bug, place, errand.able, tuple(tried), is_cut=True)
        tried.append(try_once(plan))
        if tried[-1].outcome == "anomaly":
            break
    return Done(errand.bug, place, errand.able, tuple(tried), is_cut=False)


def _bug(name: str, about: str, done: Done | None, refused: str) -> Bug:
    if done is None:
        why = f"no run of the matrix can have it: {refused}"
        return Bug(name=name, about=about, word="not measured", runs=0, why=why)
    runs = len(done.tried)
    for run in done.tried:
        if run.outcome == "anomaly":
            return Bug(name=name, about=about, word="found", runs=runs, by=run.violated, again=run.again)
    if done.is_cut:
        why = f"the time was over after {runs} runs"
    elif all(run.outcome != "valid" for run in done.tried):
        why = f"none of {runs} runs is conclusive: {done.tried[0].sentence}"
    elif runs < done.able:
        why = f"no anomaly in {runs} of the {done.able} runs of the matrix"
    else:
        return Bug(name=name, about=about, word="missed", runs=runs)
    return Bug(name=name, about=about, word="not measured", runs=runs, why=why)


def _clean(done: Sequence[Done], systems: Sequence[str]) -> Clean:
    tried = [run for errand in done for run in errand.tried]
    rows = [row for name in systems for row in rows_of(system_of(name))]
    return Clean(
        runs=len(tried),
        valid=sum(run.outcome == "valid" for run in tried),
        alarms=tuple(f"{run.sentence} ({run.again})" for run in tried if run.outcome == "anomaly"),
        inconclusive=tuple(
            f"{run.outcome}: {run.sentence}" for run in tried if run.outcome not in ("valid", "anomaly")
        ),
        sometimes={
            row: (
                sum(run.sometimes.get(row, 0) for run in tried),
                sum(run.sometimes.get(row, 0) > 0 for run in tried),
            )
            for row in dict.fromkeys(rows)
        },
    )


def _tell(done: Done, number: int, whole: int, tell: Callable[[str], None]) -> None:
    name = done.bug or "without a bug"
    last = done.tried[-1].outcome if done.tried else "not tried"
    tell(f"[{number}/{whole}] {name}: {len(done.tried)} runs, {last}")


def _key(bug: str, place: int) -> str:
    return f"{place} {bug}"


class _Book:
    """The rows that are done, on disk; an errand that was cut short is tried again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.done: dict[str, Done]
        """Key of an errand (`_key`) → its runs."""
        try:
            self.done = msgspec.json.decode(path.read_bytes(), type=dict[str, Done])
        except (OSError, *NOT_JSON):
            self.done = {}

    def keep(self, done: Done) -> None:
        self.done[_key(done.bug, done.place)] = done
        whole = {key: row for key, row in self.done.items() if not row.is_cut}
        # Two certifications of one matrix may be at work.
        unfinished = self._path.with_name(f".{self._path.name}.{os.getpid()}.unfinished")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            unfinished.write_bytes(msgspec.json.encode(whole))
            unfinished.replace(self._path)
        except OSError as error:
            raise StoreError(f"cannot write {self._path}: {error.strerror or error}") from error


def lines_of(measured: Measured) -> Iterator[str]:
    """Lines for a terminal."""
    yield f"sensitivity  {measured.sentence}"
    yield from (f"             {note}" for note in measured.notes)
    for word in ("missed", "not measured"):
        if bugs := measured.named(word):
            yield f"             {word}: {', '.join(bug.name for bug in bugs)}"
    yield f"             {measured.clean.sentence}"
