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

    [[exclude]]                       # skips cells that have all of these
    cluster = "local"
    faults = "all"

    [[change]]                        # changes cells that have all of `where`
    where = { cluster = "local" }
    plan = { time_limit_s = 10 }

    [retention]                       # anomalies stay, whatever their age and size
    days = 30
    gib = 20

    [certificate]                     # for `certify`: docs/certificates.md
    product = "our store"

Every cell is looked up in the tables of names before anything runs; an impossible cell is refused, by name.
"""

from __future__ import annotations

import hashlib
import itertools
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from harness.campaign.bars import Certifying
from harness.errors import WrongUse
from harness.run.assemble import parts_of
from harness.run.plan import Name, Plan, fault_names
from harness.systems.plans import fields_of, known_fields, planned, problem
from harness.wrong_values import in_words

LISTS = ("faults", "bugs")
"""Fields with lists as values: a text names one, or several with commas between."""
NAMED = ("system", "configuration", "cluster", "workload", "faults", "bugs")
"""Fields that every cell's name has, in this order; the rest of the matrix follow as name=value."""
OWN = ("name", "seed", "drawn", "format", "version", "code")
"""Fields that no matrix may set."""
CELLS_MAX = 10_000

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


class CampaignFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the file."""

    matrix: dict[str, list[Any]]
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
    retention: Retention = Retention()
    certificate: Certifying = Certifying()

    def __post_init__(self) -> None:
        if self.name == "latest":
            raise ValueError("the name 'latest' is taken: results/latest points to the newest run")


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination: its name, and the plan of its runs without the seed."""

    name: str
    plan: Plan


@dataclass(frozen=True, slots=True)
class Campaign:
    """A campaign's plan, with its cells in the order of the matrix. `digest` depends on the
    runs that the file describes, not on the engine that judges them.
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
    engine: Engine = "process"
    master: str | None = None
    publish: str | None = None

    def at_once(self, cluster: str) -> int:
        """How many runs on this kind of cluster may be active at once."""
        return min(self.concurrency.get(cluster, self.concurrency["all"]), self.concurrency["all"])


def read(path: Path, *, runs_here: bool = True) -> Campaign:
    """The campaign in a file; WrongUse with one line that names its errors. `runs_here`: as of `parts_of`."""
    table: Any = None
    try:
        table = tomllib.loads(path.read_text())
        file = msgspec.convert(table, CampaignFile)
    except OSError as error:
        raise WrongUse(f"cannot read {path}: {error.strerror}; try: plans/smoke.toml") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise WrongUse(f"{path} is no TOML: {error}") from error
    except msgspec.ValidationError as error:
        told = in_words(error, table, CampaignFile)
        raise WrongUse(f"{path}: {told}; docs/campaigns.md shows the form") from error
    return campaign_of(file, path, runs_here=runs_here)


def campaign_of(file: CampaignFile, path: Path, *, runs_here: bool = True) -> Campaign:
    """Work the matrix out. `path` names the file in messages, and the campaign if the file does not."""
    name = file.name or path.stem
    _check_fields(file, path)
    cells: list[Cell] = []
    excluded = 0
    for fields in _combinations(file):
        if any(_has(fields, each) for each in file.exclude):
            excluded += 1
        else:
            cells.append(_cell(file, name, fields, path, runs_here))
    twice = [name for name, count in Counter(cell.name for cell in cells).items() if count > 1]
    if twice:
        raise WrongUse(
            f"{path}: {twice[0]}: two cells are the same; leave one out, or let what differs stand in [matrix]"
        )
    if not cells:
        raise WrongUse(f"{path}: no cell is left of the matrix ({excluded} are excluded)")
    return Campaign(
        name=name,
        cells=tuple(cells),
        excluded=excluded,
        seeds=file.seeds,
        first_seed=file.first_seed,
        budget_s=file.budget_s,
        concurrency=_concurrency(file.concurrency),
        retention=file.retention,
        certificate=file.certificate,
        digest=_digest(file, name),
        engine=file.engine,
        master=file.master,
        publish=file.publish,
    )


def _digest(file: CampaignFile, name: str) -> str:
    beside = ("engine", "master", "publish", "certificate")
    runs = {key: value for key, value in msgspec.to_builtins(file).items() if key not in beside}
    return hashlib.sha256(msgspec.json.encode([runs, name], order="sorted")).hexdigest()[:16]


def _check_fields(file: CampaignFile, path: Path) -> None:
    known = [field for field in known_fields() if field not in OWN]
    used = [*file.matrix, *file.plan]
    for each in (
        *file.exclude,
        *(change.where for change in file.change),
        *(change.plan for change in file.change),
    ):
        used += each
    for field in used:
        if field not in known:
            raise WrongUse(f"{path}: {field!r} is no field of a run's plan; try one of: {', '.join(known)}")
    sizes = [len(values) for values in file.matrix.values()]
    if not sizes or 0 in sizes:
        raise WrongUse(f"{path}: [matrix] needs at least one field, and a value for each")
    count = 1
    for size in sizes:
        count *= size
    if count > CELLS_MAX:
        raise WrongUse(f"{path}: the matrix has {count:,} cells, at most {CELLS_MAX:,} are taken")


def _combinations(file: CampaignFile) -> Iterator[Fields]:
    names = list(file.matrix)
    for values in itertools.product(*file.matrix.values()):
        yield {name: _value(name, value) for name, value in zip(names, values, strict=True)}


def _value(name: str, value: Any) -> Any:
    """The value of a list field as a list, in any of its written forms."""
    if name not in LISTS:
        return value
    if isinstance(value, str):
        names = [part.strip() for part in value.split(",") if part.strip()]
        return names or (
            [""] if name == "faults" else []
        )  # a fault without a name is a slip, "" for bugs is none
    return value


def _has(fields: Fields, wanted: Fields) -> bool:
    """Whether the cell has all of these values; a field that the cell lacks differs."""
    return all(name in fields and fields[name] == _value(name, value) for name, value in wanted.items())


def _cell(file: CampaignFile, name: str, fields: Fields, path: Path, runs_here: bool) -> Cell:
    shared = {key: _value(key, value) for key, value in file.plan.items()}
    whole = {**shared, **fields}
    for change in file.change:
        if _has(whole, change.where):
            whole |= {key: _value(key, value) for key, value in change.plan.items()}
    try:
        whole["faults"] = fault_names(whole.get("faults", Plan().faults))
        plan = planned(**{**whole, "name": name})
        parts_of(plan, runs_here=runs_here)
    except (ValueError, WrongUse) as error:
        told = error.message if isinstance(error, WrongUse) else problem(error, whole)
        words = ", ".join(f"{key} = {_word(value)}" for key, value in fields.items())
        raise WrongUse(f"{path}: the cell {words}: {told}; or leave it out with [[exclude]]") from error
    return Cell(cell_name(plan, [key for key in fields if key not in NAMED]), plan)


def cell_name(plan: Plan, more: list[str]) -> str:
    """The cell in words: the same for all its seeds, on every night."""
    fields = fields_of(plan)
    named = [
        str(fields[field]) for field in ("system", "configuration", "cluster", "workload") if field in fields
    ]
    words = [*named, "+".join(plan.faults) or "none"]
    if plan.bugs:
        words.append("with " + "+".join(plan.bugs))
    return " ".join([*words, *(f"{field}={_word(fields[field])}" for field in more)])


def _word(value: Any) -> str:
    return "+".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _concurrency(given: int | dict[str, int]) -> dict[str, int]:
    return {"all": given} if isinstance(given, int) else {"all": max(given.values()), **given}
