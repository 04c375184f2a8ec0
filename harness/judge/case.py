"""A run to be judged: the one value that goes all the way to its verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from checkers.check import Check, RunCheck, run_here
from checkers.history.errors import HistoryError
from checkers.history.history import History
from checkers.logs.wal import LogRules, NodeLog
from checkers.logs.wal.effects import FILE as EFFECTS_FILE
from checkers.logs.wal.effects import Effect, of_lines
from harness.cluster.place import TRACE
from harness.errors import FAILED, StoreError
from harness.judge.promised import checks_of, logs_of_members, promise_of, rules_of
from harness.plan.plan import Plan
from harness.plan.promise import Promise
from harness.systems import System, system_of
from harness.systems.parts import NodeFiles
from harness.workloads import workload_of
from harness.workloads.workload import Workload


@dataclass(frozen=True)
class Left:
    """The files of the nodes of a run. `logs`: None if nodes of this system keep none. `files`: for a system that
    judges or draws them; else none are read. `effects`: of disks and links, where a simulator recorded them."""

    logs: Sequence[NodeLog] | None = None
    files: NodeFiles | None = None
    effects: Sequence[Effect] = ()

    @classmethod
    def of(cls, plan: Plan, files: NodeFiles, effects: Sequence[Effect]) -> Left:
        """The files of nodes in memory."""
        return cls(system_of(plan.system).logs.of(files), files, effects)

    @classmethod
    def in_folder(cls, nodes: Path, plan: Plan) -> Left:
        """The files of nodes in `nodes`, a folder for each. Raises StoreError."""
        return cls(system_of(plan.system).logs.read(nodes), files_in(nodes, plan), effects_in(nodes))


NOTHING_LEFT = Left()


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A user's restrictions of the verdict. `key`: checks of single keys judge this one alone; `promise`: stricter than
    the plan's."""

    key: str | None = None
    promise: str | None = None


@dataclass(frozen=True)
class Case:
    """The run (`plan`, `history`, `left`), and how to judge it.

    `interrupted`, `failure`: how the run ended, as far as the record does not say it. `plan_file`: for the line that
    repeats the run. `names_faults`: the user named the faults, so each must take effect
    (`harness.judge.evidence.named_faults`). `run_check` runs a check, but for those of the audit: here, or spread over
    workers. `given_promise`: instead of that of the plan's system.
    """

    plan: Plan
    history: History
    left: Left = NOTHING_LEFT
    interrupted: bool = False
    failure: str | None = None
    key: str | None = None
    plan_file: Path | None = None
    names_faults: bool = True
    run_check: RunCheck = run_here
    given_promise: Promise | None = None

    @cached_property
    def system(self) -> System:
        return system_of(self.plan.system)

    @cached_property
    def workload(self) -> Workload:
        return workload_of(self.plan.workload)

    @cached_property
    def promise(self) -> Promise:
        """Raises WrongUse if the plan's system is unknown."""
        return self.given_promise or promise_of(self.plan, self.history)

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """The checks of client operations, by the promise."""
        return checks_of(self.plan, self.promise)

    @cached_property
    def checks_of_nodes(self) -> tuple[Check, ...]:
        """The system's own checks of the files and logs of its nodes."""
        judged, left = self.system.logs, self.left
        of_files = () if left.files is None else judged.checks_of_files(self.plan, left.files)
        of_logs = () if left.logs is None else judged.checks(self.plan, left.logs)
        return (*of_files, *of_logs)

    @cached_property
    def log_rules(self) -> LogRules | None:
        """The rules of the audit; None if there are no logs."""
        return None if self.left.logs is None else rules_of(self.system.logs.rules(self.plan), self.history)

    @cached_property
    def logs(self) -> tuple[NodeLog, ...]:
        """The logs of the nodes that were members at the end."""
        return logs_of_members(self.left.logs or (), self.history)

    @cached_property
    def why_broken_off(self) -> str | None:
        """Why the harness broke the run off, if it did."""
        failures = self.history.told("harness", FAILED)
        return self.failure or next((str(event.value) for event in failures), None)

    @cached_property
    def was_interrupted(self) -> bool:
        """The user ended the run. The record says so, for later judgements."""
        return self.interrupted or any(True for _ in self.history.told("harness", "interrupted"))

    @property
    def is_whole(self) -> bool:
        """The run was neither broken off nor interrupted."""
        return self.why_broken_off is None and not self.was_interrupted


def files_in(nodes: Path, plan: Plan) -> NodeFiles:
    """The files in the folders of these nodes and in their traces, if the system of the plan has checks or pictures of
    them; else none. StoreError."""
    system = system_of(plan.system)
    if not (system.logs.checks_of_files(plan, {}) or system.pictures.are_there):
        return {}
    try:
        return {folder.name: _files(folder) for folder in sorted(nodes.iterdir()) if folder.is_dir()}
    except OSError as error:
        raise StoreError(f"cannot read what the nodes left: {error}") from error


def _files(folder: Path) -> Mapping[str, bytes]:
    paths = sorted((*folder.glob("*"), *folder.glob(f"{TRACE}/*")))
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths if path.is_file()}


def effects_in(nodes: Path) -> tuple[Effect, ...]:
    """The recorded effects of the disks and links of these nodes, if any are; StoreError if they cannot be read."""
    try:
        return of_lines((nodes / EFFECTS_FILE).read_bytes())
    except FileNotFoundError:
        return ()
    except HistoryError as error:
        raise StoreError(f"{nodes / EFFECTS_FILE}: {error}") from error
    except OSError as error:
        raise StoreError(f"cannot read {nodes / EFFECTS_FILE}: {error.strerror}") from error
