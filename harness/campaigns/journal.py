"""The progress of a campaign on disk, so that a killed campaign can continue.

    results/_campaigns/<name>/<utc>/campaign.json     the runs in their order, each with cell and seed
                                    runs.jsonl        a line for each run that began, that was recorded for a later
                                                      judgement, and that ended
                                    summary.json …    written at the end; a campaign with it is over

A line is appended and synced when it is true. A kill may tear the last line; readers skip it, and any other line that
they cannot read. A run that began and did not end begins again, and its half-written folder stays for inspection. A
recorded run is judged, not run again.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec

from checkers.history.errors import NOT_JSON
from harness.errors import StoreError, WrongUse, given_path
from harness.results import output_file
from harness.results.run_folder import LATEST
from harness.run.finish import Failure

FOLDER = "_campaigns"
HEAD = "campaign.json"
RUNS = "runs.jsonl"
OUTCOMES = ("valid", "anomaly", "unknown", "inconclusive", "broken")
"""Of runs: those of a verdict, and "broken" if the harness itself broke."""
SUMMARY = "summary.json"


class Task(msgspec.Struct, frozen=True):
    """One run to do: the name of its cell in the campaign's plan, and its seed."""

    cell: str
    seed: int


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check of one run, in the words of that run.

    `documented`: the sentence of the store's own documentation, if there is one.
    """

    checker: str
    standing: Literal["violation", "finding"]
    summary: str
    documented: str = ""


class Ended(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="ended"):
    """One run that is over. `outcome`: one of `OUTCOMES`; "not-evidence" is what older versions wrote for inconclusive.

    `fingerprints`: all of them, the leading one first; `shapes`: the same in words.
    """

    cell: str
    seed: int
    outcome: Literal["valid", "anomaly", "unknown", "inconclusive", "broken", "not-evidence"]
    exit_code: int
    sentence: str
    at: str
    seconds: float
    run: str = ""
    """The run's folder, relative to results/."""
    fingerprints: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    found: tuple[CheckResult, ...] = ()
    """The violations and findings of the checks, whatever the outcome of the run."""
    kinds_in_effect: tuple[str, ...] | None = None
    """The kinds of faults that took effect; None of a run without evidence, and in journals of older versions."""
    observed: tuple[str, ...] = ()
    not_observed: tuple[str, ...] = ()
    """The kinds that its plan asks for, by whether they took effect; of directed faults the names of their scenes."""
    rare_turns: tuple[str, ...] | None = None
    """The rare turns that came about (`harness.judge.evidence.rare_turns`); None as above."""


class ToJudge(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="recorded"):
    """A run that ended and has no verdict yet. `run`: its folder, relative to results/."""

    cell: str
    seed: int
    at: str
    seconds: float
    run: str
    interrupted: bool = False
    failure: Failure | None = None


class _Began(msgspec.Struct, frozen=True, tag_field="event", tag="began"):
    cell: str
    seed: int
    at: str = ""


class _Spent(msgspec.Struct, frozen=True, tag_field="event", tag="spent"):
    """The end of a part of the campaign, and how long the part took."""

    seconds: float
    at: str = ""


_Line = _Began | ToJudge | Ended | _Spent
_LINE = msgspec.json.Decoder(_Line)


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """campaign.json."""

    name: str
    digest: str
    begun: str
    tasks: tuple[Task, ...]
    rare_turns: tuple[str, ...] = ()
    """The rare turns that runs of these systems can reach."""
    format: Literal["qsync-campaign"] = "qsync-campaign"
    version: Literal[1] = 1


@dataclass(slots=True)
class Journal:
    """One campaign's folder, locked for as long as this process works on it."""

    folder: Path
    head: Head
    ended: list[Ended] = field(default_factory=list)
    spent_s: float = 0.0
    """The part of the budget that is used: by the parts of a resumed campaign, a killed part up to its last line."""
    unwritten: int = 0
    """Lines that could not be written: the disk was full."""
    damaged: list[int] = field(default_factory=list)
    """The numbers of lines that are no JSON: their runs are unknown, and count as not done."""
    _recorded: dict[tuple[str, int], ToJudge] = field(default_factory=dict)
    _begun: dict[tuple[str, int], Task] = field(default_factory=dict)
    _times: list[str] = field(default_factory=list)
    """Of the lines since a part of the campaign noted its end."""
    _lock: BinaryIO | None = None

    @property
    def to_judge(self) -> list[ToJudge]:
        """The runs that are recorded and not judged."""
        return list(self._recorded.values())

    @property
    def interrupted(self) -> list[Task]:
        """The runs that began, and have no result: they are under way, or were interrupted."""
        return list(self._begun.values())

    def left(self) -> list[Task]:
        """The tasks without an outcome, in their order."""
        done = {(run.cell, run.seed) for run in self.ended}
        return [task for task in self.head.tasks if (task.cell, task.seed) not in done]

    def to_run(self) -> list[Task]:
        """The tasks that are neither done nor recorded, in their order."""
        return [task for task in self.left() if (task.cell, task.seed) not in self._recorded]

    def begin(self, task: Task) -> None:
        self.note(_Began(task.cell, task.seed, now()))

    def spend(self, seconds: float) -> None:
        """End a part of the campaign, which took so long."""
        self.note(_Spent(round(seconds, 3), now()))

    def note(self, line: _Line) -> None:
        """Append a line, whole and synced; if the disk is full, remove the written part."""
        self._take(line)
        path = self.folder / RUNS
        data = msgspec.json.encode(line) + b"\n"
        try:
            with path.open("ab", buffering=0) as file:  # a buffer would write the rest when it is closed
                before = file.tell()
                try:
                    if file.write(data) < len(data):
                        raise OSError
                    os.fsync(file.fileno())
                except OSError:
                    os.truncate(path, before)
                    raise
        except OSError:
            # The campaign goes on. If it is killed, a run that is not noted is done again.
            self.unwritten += 1

    def _take(self, line: _Line) -> None:
        self._times.append(line.at)
        match line:
            case _Spent():
                self.spent_s += line.seconds
                self._times.clear()
            case _Began():
                self._begun[line.cell, line.seed] = Task(line.cell, line.seed)
            case ToJudge():
                self._begun.pop((line.cell, line.seed), None)
                self._recorded[line.cell, line.seed] = line
            case Ended():
                self._begun.pop((line.cell, line.seed), None)
                self._recorded.pop((line.cell, line.seed), None)
                if line.outcome == "not-evidence":  # as older versions said
                    line = msgspec.structs.replace(line, outcome="inconclusive")
                self.ended.append(line)

    def write(self, name: str, data: bytes) -> None:
        """A file of the summary. StoreError in one line if it cannot be written."""
        output_file.write(self.folder / name, data, name)

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def create(
    results: Path, name: str, digest: str, tasks: Sequence[Task], rare_turns: Sequence[str] = ()
) -> Journal:
    """A new campaign, in a folder of its own even if two begin in the same second. Raises StoreError."""
    root = results / FOLDER / name
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    number = 1
    try:
        root.mkdir(parents=True, exist_ok=True)
        while True:
            folder = root / (stamp if number == 1 else f"{stamp}-{number}")
            try:
                folder.mkdir()
                break
            except FileExistsError:
                number += 1
        head = Head(name=name, digest=digest, begun=now(), tasks=tuple(tasks), rare_turns=tuple(rare_turns))
        journal = Journal(folder, head)
        # Before the head is there: by it another process finds the campaign, and would go on with it.
        journal._lock = _locked(folder)
    except OSError as error:
        raise StoreError(f"cannot write to {root}: {error.strerror}; try: --results FOLDER") from error
    journal.write(HEAD, msgspec.json.encode(journal.head))
    return journal


def unfinished(results: Path, name: str, digest: str, first_seed: int | None = None) -> Journal | None:
    """The newest unfinished campaign of this plan, with this first seed if it is given, that no process works on."""
    for folder in reversed(folders(results, name)):
        if (folder / SUMMARY).exists():
            continue
        lock = _locked(folder)
        if lock is None:
            continue
        journal = load(folder)  # under the lock: until then another process may have ended the campaign
        if (
            journal is not None
            and journal.head.digest == digest
            and first_seed in (None, min((task.seed for task in journal.head.tasks), default=first_seed))
            and not (folder / SUMMARY).exists()
        ):
            _cut_torn_line(folder / RUNS)
            journal._lock = lock
            journal.spend(_seconds(journal._times))
            return journal
        lock.close()
    return None


def folders(results: Path, name: str) -> list[Path]:
    """All campaigns of this name, oldest first."""
    heads = (results / FOLDER / name).glob(f"[!.]*/{HEAD}")
    found = (path.parent for path in heads if path.parent.name != LATEST)
    return sorted(
        found, key=lambda path: (path.name.partition("-")[0], len(path.name), path.name)
    )  # -10 behind -2


def night_of(results: Path, given: str) -> Journal:
    """The campaign that the user names: its folder, or `<name>/<utc>` (also `<name>/latest`) below results/_campaigns.

    Raises WrongUse if there is none, StoreError if its runs are damaged: a lost anomaly would be none.
    """
    tried = [given_path(given), results / FOLDER / given]
    for folder in tried:
        book = load(Path(os.path.realpath(folder)))  # Path.resolve raises for a circle of links
        if book is not None:
            if book.damaged:
                raise StoreError(
                    f"{book.folder / RUNS}: expected a run of the campaign in each line, got something else in line "
                    f"{book.damaged[0]}; try: the file as it was"
                )
            return book
    raise WrongUse(
        f"{given} is no campaign: expected a folder with {HEAD} in it, or NAME/UTC below {results / FOLDER}; "
        f"try: ls {results / FOLDER}/*"
    )


def load(folder: Path) -> Journal | None:
    """A campaign from its files; None if there is none that this version can read."""
    try:
        head = msgspec.json.decode((folder / HEAD).read_bytes(), type=Head)
    except (OSError, *NOT_JSON):
        return None
    journal = Journal(folder, head)
    for number, line in _lines(folder / RUNS):
        if line is None:
            journal.damaged.append(number)
        else:
            journal._take(line)
    return journal


def _seconds(times: Sequence[str]) -> float:
    """From the first of these times to the last one; 0 if a clock was set back, or a time cannot be read."""
    try:
        passed = datetime.fromisoformat(times[-1]) - datetime.fromisoformat(times[0])
    except (IndexError, ValueError, TypeError):
        return 0.0
    return max(passed.total_seconds(), 0.0)


def _lines(path: Path) -> Iterator[tuple[int, _Line | None]]:
    """The whole lines by number, None of a damaged one; a torn last line may be in the middle of a write."""
    try:
        data = path.read_bytes()
    except OSError:
        return
    for number, line in enumerate(data[: data.rfind(b"\n") + 1].splitlines(), 1):
        try:
            yield number, _LINE.decode(line)
        except msgspec.ValidationError:  # of another version
            continue
        except NOT_JSON:
            yield number, None


def _cut_torn_line(path: Path) -> None:
    """Remove a torn last line, so that the next one stands on a line of its own."""
    data = path.read_bytes() if path.exists() else b""
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        os.truncate(path, whole)


def _locked(folder: Path) -> BinaryIO | None:
    """The lock of a campaign's folder, which the kernel releases for a killed process; None if a process holds it."""
    lock = (folder / "lock").open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        return None
    return lock
