"""The optional parts of a system: small objects, each with defaults for a store of which nothing more is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from checkers.check import Check
from checkers.history.history import History
from checkers.logs.wal.record import LogRules, NodeLog
from harness.faults.directed import Scenes
from harness.plan.dice import Dice
from harness.plan.plan import Plan
from harness.systems.status import Status, Statuses

NodeFiles = Mapping[str, Mapping[str, bytes]]
"""Node → path in its folder ("wal-000001.log", "trace/trace-000001.jsonl") → bytes."""


class Inspected(Protocol):
    """The state of one file. `is_torn` means that only its end is damaged, as a crash leaves it."""

    @property
    def is_sound(self) -> bool: ...

    @property
    def is_torn(self) -> bool: ...

    @property
    def sentence(self) -> str: ...


class Logs:
    """What nodes leave behind: logs, which are decoded once into the records that `checkers.logs.wal` audits, and files
    that checks of the system's own judge. As it is: nothing."""

    suffixes: tuple[str, ...] = ()
    """Of log files that a person can look into; the first is that of logs that a crash may tear."""
    torn: tuple[str, ...] = ()
    """Patterns of the names of logs, such as "*.xlog", whose last record may be torn by a crash.
    `harness.cluster.damaged_files` knows the forms of records that are cut and torn."""

    def read(self, folder: Path) -> tuple[NodeLog, ...] | None:
        """The log of every node: `folder` has a folder for each, or is itself that of one. None: nodes keep none."""
        return None

    def of(self, disks: NodeFiles) -> tuple[NodeLog, ...] | None:
        """The same, from the bytes of each node's files by name."""
        return None

    def rules(self, plan: Plan) -> LogRules | None:
        """By which rules the logs of a run are audited."""
        return None

    def checks(self, plan: Plan, logs: Sequence[NodeLog]) -> tuple[Check, ...]:
        """The checks of a run that left these logs; each gets the run's history."""
        return ()

    def checks_of_files(self, plan: Plan, files: NodeFiles) -> tuple[Check, ...]:
        """The checks of a run that left these files; each gets the run's history."""
        return ()

    def inspected(self, data: bytes) -> Inspected:
        """One file with a name of `suffixes`."""
        raise NotImplementedError

    def rows_in(self, data: bytes) -> list[dict[str, object]]:
        """The good rows of such a file, with the names of what they hold."""
        raise NotImplementedError


class Reports:
    """What nodes report of themselves beside the words of every system (`harness.systems.status`)."""

    def headline(self, status: Status) -> tuple[str, ...]:
        """The leader's status in a few words, for the live view: ("term 2", "limbo 3")."""
        term = status.get("term")
        return (f"term {term}",) if isinstance(term, int) else ()

    def stopped(self, status: Status) -> Mapping[str, str]:
        """The nodes that it follows no more for good, because their logs contradict its own, and why."""
        return {}

    def rollbacks(self, status: Status) -> int | None:
        """How many transactions it rolled back since its start; None if it does not say."""
        return None

    def untold(self, statuses: Statuses) -> tuple[str, ...]:
        """The nodes that report nothing by which they could be seen to settle: they may be behind."""
        return ()


class Variety:
    """What a hunt draws of a system from each seed (`harness.campaigns.hunt.variety`), and the rare turns that it is to
    reach: nodes count some, plan and history tell the rest.

    `given` are the names of the fields that the user set: the hunt keeps them, whatever is drawn.
    """

    has_all_loads: bool = False
    """All that a hunt may ask clients to do makes sense to it; else it is asked for what any system knows."""
    rare_turns: tuple[str, ...] = ()
    scenes: Mapping[str, Scenes] = {}
    """Name in the table of faults (`holds`, `moments`) → the scenes that it draws, of moments of the nodes and kinds of
    their messages."""
    reference: str = ""
    """Of a real system: the name of that with its reference node, in which bugs can be switched on in its stead."""

    def rare_turns_of(self, plan: Plan, history: History) -> Mapping[str, int]:
        """How often each of those came about that nodes do not count."""
        return {}

    def drawn(self, dice: Dice, plan: Plan, given: frozenset[str]) -> dict[str, Any]:
        """Fields of the plan: its nodes, its pace, its options."""
        return {
            "nodes": dice.nodes(),
            "rate": dice.rate(),
            "calm_s": dice.calm_s(),
            "overlap": dice.overlap(),
        }

    def workloads(
        self, plan: Plan, drawn: Mapping[str, Any], weights: Mapping[str, float]
    ) -> dict[str, float]:
        """How often each workload is drawn beside these fields; `weights` are the usual ones."""
        return dict(weights)

    def submitting(self, dice: Dice) -> dict[str, Any]:
        """Fields of the plan, for a workload with writes that may be answered before they are confirmed."""
        return {}

    def fitted(self, plan: Plan, given: frozenset[str]) -> Plan:
        """The plan without the fields that have no meaning beside the drawn options."""
        return plan

    def unfit(self, plan: Plan) -> frozenset[str]:
        """The faults that these options have no room for."""
        return frozenset()

    def varied_late(self, plan: Plan, given: frozenset[str]) -> Plan:
        """The plan with its late additions. Their random streams are separate, because older seeds lack them."""
        return plan

    def bug_plan(self, bugs: tuple[str, ...]) -> Mapping[str, Any]:
        """The fields of a plan in which the first of these seeded bugs shows."""
        return {}


class Pictures:
    """What a system draws of a run for the page, in values that `harness.pages` has a picture for."""

    are_there: bool = False
    """They are made of what the nodes left."""

    def of(
        self, plan: Plan, files: NodeFiles, history: History, verdict: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """By the name of the picture ("queues": `harness.pages.queues`). `verdict`: what its checks said."""
        return {}


class Parts:
    """The parts of a system that has none of its own."""

    @property
    def logs(self) -> Logs:
        return NO_LOGS

    @property
    def reports(self) -> Reports:
        return NO_REPORTS

    @property
    def variety(self) -> Variety:
        return NO_VARIETY

    @property
    def pictures(self) -> Pictures:
        return NO_PICTURES


NO_LOGS, NO_REPORTS, NO_VARIETY, NO_PICTURES = Logs(), Reports(), Variety(), Pictures()
