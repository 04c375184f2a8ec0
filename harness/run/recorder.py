"""Writes down a run, in one order and with the time of its cluster; and counts for the live view."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from checkers.history.jsonl import Writer
from checkers.history.rest import UNSETTLED
from harness.faults.fault import Fault
from harness.faults.hands import Time
from harness.faults.node_options import OPTION
from harness.plan.plan import Operation


@dataclass(slots=True)
class Progress:
    """The counts for a live view; they grow while the run goes on."""

    phase: str = "starting"
    ok: int = 0
    fail: int = 0
    info: int = 0
    skipped: int = 0
    """Operations that were skipped because their worker was late."""
    active: dict[int, Fault] = field(default_factory=dict)
    states: dict[str, Mapping[str, object] | None] = field(default_factory=dict)

    def count(self, type_: str) -> None:
        match type_:
            case "ok":
                self.ok += 1
            case "fail":
                self.fail += 1
            case _:
                self.info += 1


@dataclass(slots=True)
class Recorder:
    """Everything that happens in a run is recorded here."""

    time: Time
    writer: Writer
    progress: Progress
    on_progress: Callable[[Progress], None]

    def record(self, type_: Any, process: int | str, f: str, **fields: Any) -> None:
        self.writer.record(type_, process, f, time_ns=self.time.now_ns(), **fields)

    def flush(self) -> None:
        self.writer.flush()

    def show(self) -> None:
        self.on_progress(self.progress)

    def phase(self, name: str) -> None:
        self.progress.phase = name
        self.show()

    def settled(self, is_settled: bool, untold: Sequence[str] = ()) -> None:
        """`untold`: the nodes that report nothing by which they could be seen to settle."""
        if untold:
            self.record("info", "harness", UNSETTLED, value=list(untold))
        self.record("info", "harness", "settled", value=is_settled)

    def members(self, value: Mapping[str, object]) -> None:
        self.record("info", "harness", "members", value=value)

    def option(self, node: str, value: Mapping[str, object]) -> None:
        self.record("info", "harness", OPTION, node=node, value=value)

    def operator(self, what: str, node: str, value: object) -> None:
        self.record("info", "operator", what, node=node, value=value)

    def skipped(self, worker: int, operations: list[Operation]) -> None:
        """One line for all operations that a worker skipped in a row; they are forgotten then."""
        if operations:
            self.progress.skipped += len(operations)
            kinds = Counter(operation.f for operation in operations)
            value = {"worker": worker, "count": len(operations), "kinds": dict(sorted(kinds.items()))}
            times = {"from_ns": operations[0].at_ns, "to_ns": operations[-1].at_ns}
            self.record("info", "harness", "skipped", value=value | times)
            operations.clear()

    def left_out(self, fault: Fault, why: str) -> None:
        value = {"fault": msgspec.to_builtins(fault), "why": why}
        self.record("info", "harness", "skipped-fault", value=value)
