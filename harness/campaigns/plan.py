"""The plan of a campaign: a TOML file that describes a matrix of runs.

    name = "nightly"                  # the runs' folder under results/; by default the file's name
    budget_s = 3600                   # a run begins only if it will probably end in time
    seeds = 2                         # runs of each cell
    first_seed = 1                    # default: new seeds for every campaign
    concurrency = { all = 2, local = 1, docker = 1 }     # or one number
    engine = "spark"                  # Spark judges all recorded runs; default: each judges itself
    master = "spark://host:7077"      # default: the cores of this machine
    publish = "s3://bucket/results"   # address to upload the runs to; default: none

    [plan]                            # for all runs: any field of a run's plan
    time_limit_s = 20

    [matrix]                          # any field of a run's plan, and the values to try
    configuration = ["H", "C"]
    faults = ["all", ["kill", "pause"]]
    cluster = ["sim", "local"]

    [[exclude]]                       # skips cells that have all of these, in [matrix] or in [plan]
    cluster = "local"
    faults = "all"

    [[change]]                        # changes cells that have all of `where`
    where = { cluster = "local" }
    plan = { time_limit_s = 10 }

    [[part]]                          # a matrix of its own beside [matrix], for fields that do not go together
    plan = { system = "twophase" }    # for its runs, in place of the same fields of [plan]
    matrix = { workload = ["bank", "queue", "counter"] }
    rotate = { workload = 1 }         # so many of the values each day (UTC), in turn; also beside [matrix]

    [retention]                       # anomalies stay, whatever their age and size
    days = 30
    gib = 20

    [certificate]                     # for `certify`: docs/certificates.md
    product = "our store"

A part may have `exclude` and `change` of its own. Every cell is looked up in the tables of names before anything runs;
an impossible cell is refused, by name. A cell that needs what this machine lacks is left out, and the campaign says so.
"""

from __future__ import annotations

import datetime
import hashlib
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from harness.campaigns.bars import Certifying
from harness.campaigns.known import table_in
from harness.errors import NotHere, WrongUse
from harness.plan.plan import Name, Plan, fault_names
from harness.run.assemble import CLUSTERS, parts_of
from harness.systems.plans import fields_of, known_fields, planned, problem
from harness.wrong_values import in_words

LISTS = ("faults", "bugs")
"""Fields with lists as values: a text names one, or several with commas between."""
NAMED = ("system", "configuration", "cluster", "workload", "faults", "bugs")
"""Fields that every cell's name has, in this order; the rest of the matrix follow as name=value."""
OWN = ("name", "seed", "drawn", "format", "version", "code")
"""Fields that no matrix may set."""
CELLS_MAX = 10_000
RUNS_MAX = 1_000_000

Fields = dict[str, Any]  # TOML's door
Engine = Literal["process", "spark"]
Positive = Annotated[int, msgspec.Meta(ge=1)]


class Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields that differ for the cells that have all of `where`."""

    where: Fields
    plan: Fields


class Retention(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The limits for stored runs; None: no limit."""

    days: Annotated[float, msgspec.Meta(gt=0)] | None = None
    gib: Annotated[float, msgspec.Meta(gt=0)] | None = None


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A matrix with its own plan fields, exclusions, changes and rotations."""

    matrix: dict[str, list[Any]] = {}
    plan: Fields = {}
    exclude: list[Fields] = []
    change: list[Change] = []
    rotate: dict[str, Positive] = {}
    """Field of the matrix → how many of its values a day has."""


class CampaignFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the file."""

    matrix: dict[str, list[Any]] = {}
    name: Name | None = None
    budget_s: Annotated[float, msgspec.Meta(gt=0)] | None = None
    seeds: Positive = 1
    first_seed: Annotated[int, msgspec.Meta(ge=0, lt=1 << 52)] | None = None
    concurrency: Positive | dict[str, Positive] = 1
    engine: Engine = "process"
    master: str | None = None
    publish: str | None = None
    plan: Fields = {}
    exclude: list[Fields] = []
    change: list[Change] = []
    rotate: dict[str, Positive] = {}
    part: list[Part] = []
    retention: Retention = Retention()
    certificate: Certifying = Certifying()

    @property
    def parts(self) -> list[Part]:
        """[matrix] and every [[part]], each with the common [plan], [[exclude]] and [[change]] added."""
        own = Part(matrix=self.matrix, rotate=self.rotate)
        return [
            msgspec.structs.replace(
                part,
                plan={**self.plan, **part.plan},
                exclude=[*self.exclude, *part.exclude],
                change=[*self.change, *part.change],
            )
            for part in ([own] if self.matrix or self.rotate or not self.part else []) + self.part
        ]


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination: its name, and the plan of its runs without the seed. `lacks`: what this machine lacks for it, in
    a sentence."""

    name: str
    plan: Plan
    lacks: str = ""


@dataclass(frozen=True, slots=True)
class Campaign:
    """A campaign's plan, with its cells in the order of the matrix. `digest` depends on all that the file says but the
    engine that judges the runs, where they are published, and the table [certificate].
    """

    name: str
    cells: tuple[Cell, ...]
    excluded: int
    seeds: int
    first_seed: int | None
    budget_s: float | None
    concurrency: Mapping[str, int]
    retention: Retention
    certificate: Certifying
    digest: str
    rotates: bool = False
    """Different days have different cells."""
    engine: Engine = "process"
    master: str | None = None
    publish: str | None = None

    def at_once(self, cluster: str) -> int:
        """How many runs on this kind of cluster may be active at once."""
        return min(self.concurrency.get(cluster, self.concurrency["all"]), self.concurrency["all"])


def read(path: Path, *, runs_here: bool = True, day: datetime.date | None = None) -> Campaign:
    """The campaign in a file; WrongUse with one line that names its errors. `runs_here`: as in `parts_of`; `day`:
    selects the values of rotating fields, None: today (UTC)."""
    table = table_in(path, attempt="; try: plans/smoke.toml")
    try:
        file = msgspec.convert(table, CampaignFile)
    except msgspec.ValidationError as error:
        reason = in_words(error, table, CampaignFile)
        raise WrongUse(f"{path}: {reason}; docs/campaigns.md shows the form") from error
    return campaign_of(file, path, runs_here=runs_here, day=day)


def campaign_of(
    file: CampaignFile, path: Path, *, runs_here: bool = True, day: datetime.date | None = None
) -> Campaign:
    """The cells of all matrices. `path`: for messages, and for the name of a campaign whose file has none."""
    name = file.name or path.stem
    try:
        planned(name=name)
    except ValueError as error:
        raise WrongUse(f'{path}: {problem(error, {"name": name})}; try: name = "nightly"') from error
    _check_fields(file, path)
    today = (day or datetime.datetime.now(datetime.UTC).date()).toordinal()
    by_part: list[list[Cell]] = []
    excluded = 0
    for part in file.parts:
        tonight = list(_combinations(rotated(part, today, path)))
        kept = [
            fields for fields in tonight if not any(_has(_whole(part, fields), rule) for rule in part.exclude)
        ]
        excluded += len(tonight) - len(kept)
        by_part.append([_cell(part, name, fields, path, runs_here) for fields in kept])
    # In turns: a short budget reaches each part.
    cells = [cell for row in itertools.zip_longest(*by_part) for cell in row if cell is not None]
    twice = [name for name, count in Counter(cell.name for cell in cells).items() if count > 1]
    if twice:
        raise WrongUse(
            f"{path}: {twice[0]}: two cells are the same; leave one out, or let what differs stand in [matrix]"
        )
    if not cells:
        raise WrongUse(f"{path}: no cell is left of the matrix ({excluded} are excluded)")
    if len(cells) * file.seeds > RUNS_MAX:
        runs = f"{len(cells):,} cells with {file.seeds:,} seeds each"
        raise WrongUse(f"{path}: {runs} are {len(cells) * file.seeds:,} runs, at most {RUNS_MAX:,} are taken")
    return Campaign(
        name=name,
        cells=tuple(cells),
        excluded=excluded,
        seeds=file.seeds,
        first_seed=file.first_seed,
        budget_s=file.budget_s,
        concurrency=_concurrency(file.concurrency, path),
        retention=file.retention,
        certificate=file.certificate,
        digest=_digest(file, name, [cell.name for cell in cells]),
        rotates=any(part.rotate for part in file.parts),
        engine=file.engine,
        master=file.master,
        publish=file.publish,
    )


def _digest(file: CampaignFile, name: str, cells: list[str]) -> str:
    beside = ("engine", "master", "publish", "certificate", "rotate", "part")
    runs = {key: value for key, value in msgspec.to_builtins(file).items() if key not in beside}
    if file.part or file.rotate:
        runs["parts"] = [msgspec.to_builtins(file.parts), cells]
    return hashlib.sha256(msgspec.json.encode([runs, name], order="sorted")).hexdigest()[:16]


def _check_fields(file: CampaignFile, path: Path) -> None:
    known = [field for field in known_fields() if field not in OWN]
    used = [*file.plan]
    for part in file.parts:
        changes = [fields for change in part.change for fields in (change.where, change.plan)]
        for each in (part.matrix, part.plan, part.rotate, *part.exclude, *changes):
            used += each
    for field in used:
        if field not in known:
            raise WrongUse(f"{path}: {field!r} is no field of a run's plan; try one of: {', '.join(known)}")
    sizes = [[len(values) for values in part.matrix.values()] for part in file.parts]
    if not all(each and 0 not in each for each in sizes):
        word = "each part's matrix" if file.part and not file.rotate else "[matrix]"
        raise WrongUse(f"{path}: {word} needs at least one field, and a value for each")
    count = sum(map(prod, sizes))
    if count > CELLS_MAX:
        raise WrongUse(f"{path}: the matrix has {count:,} cells, at most {CELLS_MAX:,} are taken")


def rotated(part: Part, day: int, path: Path) -> dict[str, list[Any]]:
    """The part's matrix on this day. The end of a list is followed by its beginning."""
    matrix = dict(part.matrix)
    for field, count in part.rotate.items():
        if field not in matrix:
            raise WrongUse(f"{path}: rotate: {field!r} is not in the matrix; try: {', '.join(matrix)}")
        values = matrix[field]
        first = day * count
        matrix[field] = [values[(first + place) % len(values)] for place in range(min(count, len(values)))]
    return matrix


def _combinations(matrix: dict[str, list[Any]]) -> Iterator[Fields]:
    names = list(matrix)
    for values in itertools.product(*matrix.values()):
        yield {name: _value(name, value) for name, value in zip(names, values, strict=True)}


def _value(name: str, value: Any) -> Any:
    """The value of a list field as a list, in any of its written forms."""
    if name not in LISTS:
        return value
    if isinstance(value, str):
        names = [part.strip() for part in value.split(",") if part.strip()]
        return names if names or name == "bugs" else [""]  # a fault without a name is a slip
    return value


def _has(fields: Fields, wanted: Fields) -> bool:
    """Whether the cell has all of these values; a field that the cell lacks differs."""
    return all(name in fields and fields[name] == _value(name, value) for name, value in wanted.items())


def _whole(part: Part, fields: Fields) -> Fields:
    """The fields of a cell, those of its part's plan included."""
    return {key: _value(key, value) for key, value in part.plan.items()} | fields


def _cell(part: Part, name: str, fields: Fields, path: Path, runs_here: bool) -> Cell:
    whole = _whole(part, fields)
    lacks = ""
    for change in part.change:
        if _has(whole, change.where):
            whole |= {key: _value(key, value) for key, value in change.plan.items()}
    try:
        whole["faults"] = fault_names(whole.get("faults", Plan().faults))
        plan = asked = planned(**{**whole, "name": name})
        try:
            # As its runs have it: the store may say who leads, and its faults that a disk is mounted.
            plan = parts_of(asked, runs_here=runs_here).plan
        except NotHere as error:
            lacks = error.message
    except (ValueError, WrongUse) as error:
        reason = error.message if isinstance(error, WrongUse) else problem(error, whole)
        words = ", ".join(f"{key} = {_word(value)}" for key, value in fields.items())
        raise WrongUse(f"{path}: the cell {words}: {reason}; or leave it out with [[exclude]]") from error
    return Cell(cell_name(asked, [key for key in fields if key not in NAMED]), plan, lacks)


def cell_name(plan: Plan, more: list[str]) -> str:
    """The cell in words: the same for all its seeds, on every night."""
    fields = fields_of(plan)
    named = [str(fields[field]) for field in NAMED[:4] if field in fields]
    words = [*named, "+".join(plan.faults) or "none"]
    if plan.bugs:
        words.append("with " + "+".join(plan.bugs))
    return " ".join([*words, *(f"{field}={_word(fields[field])}" for field in more)])


def _word(value: Any) -> str:
    return "+".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _concurrency(given: int | dict[str, int], path: Path) -> dict[str, int]:
    if isinstance(given, int):
        return {"all": given}
    known = ("all", *CLUSTERS)
    if not given or not given.keys() <= {*known}:
        names = ", ".join(name for name in given if name not in known) or "none"
        raise WrongUse(f"{path}: concurrency: expected some of {', '.join(known)}, got {names}")
    return {"all": max(given.values()), **given}
