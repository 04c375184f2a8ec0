"""The optional parts of a system: small objects, each with defaults for a store of which nothing more is known."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from checkers.check import Check
from checkers.history.history import History
from checkers.logs.wal.record import LogRules, NodeLog
from harness.cluster.place import Version
from harness.cluster.protocol import READY_WITHIN_S, Cluster
from harness.errors import HarnessError
from harness.faults.directed import Scenes
from harness.faults.fault import Does, Fault
from harness.faults.membership import Membership
from harness.faults.node_options import Value
from harness.plan.dice import Dice
from harness.plan.plan import Plan
from harness.plan.promise import Promise
from harness.systems.status import Status, Statuses
from nodes.kernel.node import Node
from nodes.kernel.trace import Described

if TYPE_CHECKING:
    from harness.cluster.sim.cluster import Watch

Note = Callable[[str, str, object], None]
"""(what, node, value) → a line of the history."""

NodeFiles = Mapping[str, Mapping[str, bytes]]
"""Node → path in its folder ("wal-000001.log", "trace/trace-000001.jsonl") → bytes."""

Rows = Sequence[Sequence[object]]
"""Rows of a cluster: [[space, key, value], …]."""


def _lacking(part: str) -> HarnessError:
    """A system says by its abilities, clusters or suffixes of logs that it has this part, and does not define it."""
    return HarnessError(
        f"expected a system that defines {part}, got one without; try: define it, or offer less"
    )


class Inspected(Protocol):
    """The state of one file. `is_torn` means that only its end is damaged, as a crash leaves it."""

    @property
    def is_sound(self) -> bool: ...

    @property
    def is_torn(self) -> bool: ...

    @property
    def sentence(self) -> str: ...


class Logs:
    """The files of nodes: logs, which are decoded once into the records that `checkers.logs.wal` audits, and files
    that the system's own checks judge. By default there are none."""

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
        raise _lacking("logs.inspected")

    def rows_in(self, data: bytes) -> list[dict[str, object]]:
        """The good rows of such a file, with the names of what they hold."""
        raise _lacking("logs.rows_in")


class Reports:
    """Reports of nodes beside the words of every system (`harness.systems.status`)."""

    def headline(self, status: Status) -> tuple[str, ...]:
        """The leader's status in a few words, for the live view: ("term 2", "limbo 3")."""
        term = status.get("term")
        return (f"term {term}",) if isinstance(term, int) else ()

    def stopped(self, status: Status) -> Mapping[str, str]:
        """Peer → why the node never follows it again: their logs contradict each other."""
        return {}

    def rollbacks(self, status: Status) -> int | None:
        """How many transactions it rolled back since its start; None if it does not say."""
        return None

    def untold(self, statuses: Statuses) -> tuple[str, ...]:
        """The nodes whose reports do not show whether they have settled: they may lag."""
        return ()


class Variety:
    """A hunt's draws for a system from each seed (`harness.campaigns.hunt.variety`), and the rare turns that it is to
    reach: nodes count some, the rest follow from plan and history.

    `given` are the names of the fields that the user set: the hunt keeps them, whatever is drawn.
    """

    has_all_loads: bool = False
    """The system takes every load that a hunt draws; else it gets only what every system takes."""
    rare_turns: tuple[str, ...] = ()
    scenes: Mapping[str, Scenes] = {}
    """Name in the table of faults (`holds`, `moments`) → the scenes that it draws, of moments of the nodes and kinds of
    their messages."""
    bug_plans: Mapping[str, Mapping[str, Any]] = {}
    """Seeded bug → the fields of a plan in which it shows."""
    other_bugs: Mapping[str, Any] = {}
    """The same for all other bugs."""
    reference: str = ""
    """For a real system, the name of the system with its reference node, where bugs can be switched on."""

    def rare_turns_of(self, plan: Plan, history: History) -> Mapping[str, int]:
        """Rare turn that nodes do not count → how often it happened."""
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
        return next((self.bug_plans.get(bug, self.other_bugs) for bug in bugs), {})


class Pictures:
    """A system's pictures of a run for the page, as values that `harness.pages` can draw."""

    are_there: bool = False
    """There are pictures, drawn from the files of the nodes."""

    def of(
        self, plan: Plan, files: NodeFiles, history: History, verdict: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """By the name of the picture ("queues": `harness.pages.queues`). `verdict`: what its checks said."""
        return {}


class Members:
    """How members come and leave while a store runs, for a system with the ability "members" or "newcomers"."""

    are_admitted_first: bool = False
    """Members count a new node before it starts; its command names the members (`Place.joins`)."""
    are_added_running: bool = False
    """Nodes run, and are no members until every member is asked to count them."""
    are_listed: bool = False
    """Nodes do not learn the members from each other: an operator gives each node the list."""

    def newcomer(
        self,
        plan: Plan,
        spaces: tuple[str, ...],
        node: str,
        generations: Mapping[str, int],
        members: Membership,
    ) -> bytes:
        """The configuration of a node that comes to the address `node` with an identity of its own.

        `generations`: how many new nodes have come to each address, this one included; `members`: with it.
        """
        raise _lacking("members.newcomer")

    async def remove(self, owner: str, number: int, cluster: Cluster) -> str | None:
        """Ask the owner to delete the member of this id; None if that is confirmed, else why not."""
        raise _lacking("members.remove")

    async def add(self, node: str, member: str, cluster: Cluster) -> str | None:
        """Ask this member to count the node, which runs; None if it does, else why not."""
        raise _lacking("members.add")

    def counts(self, status: Mapping[str, object], node: str) -> bool:
        """The member with this status counts the node, and serves."""
        raise _lacking("members.counts")

    async def admit(self, owner: str, node: str, cluster: Cluster) -> str | None:
        """Ask the owner to count a new node at the address `node`, before each start of that node on an empty disk;
        None if that is confirmed, else why not."""
        raise _lacking("members.admit")

    async def tell(
        self, plan: Plan, members: Membership, generations: Mapping[str, int], node: str, cluster: Cluster
    ) -> str | None:
        """Give the node its replication sources and the quorum; None if it took them, else why not."""
        raise _lacking("members.tell")

    def cannot_join(self, how: str, last_words: Sequence[str]) -> str:
        """The line in which the process of a new node reported that no member can take it in; "" if it ended for a
        different reason."""
        return ""


class Settings:
    """Options of nodes that change in the course of a run (`harness.faults.node_options`), for a system with the
    ability "options"."""

    def configured(self, configuration: bytes, options: Mapping[str, Value]) -> bytes | None:
        """The same configuration with these options; None: nodes cannot be started with other ones."""
        return None

    async def of(self, node: str, cluster: Cluster) -> Mapping[str, object] | None:
        """All of them by name; None if the node does not answer."""
        raise _lacking("settings.of")

    async def change(self, node: str, options: Mapping[str, object], cluster: Cluster) -> str:
        """Ask the node to take these; "" if it did, else its answer."""
        raise _lacking("settings.change")

    def drawn(
        self,
        name: str,
        plan: Plan,
        members: Membership,
        owner: str,
        chance: random.Random,
        before: Iterable[Fault],
    ) -> dict[str, Any] | None:
        """The fields of the fault `name`, which changes options of `members`; None if it can change nothing then.

        `before`: what was drawn so far.
        """
        return None

    def begins_elections(self, plan: Plan, faults: Iterable[Fault]) -> bool:
        """One of these faults begins elections in a cluster that had none."""
        return False


class SecondClusters:
    """How further clusters begin from a cut of the first when the run is over, for a system with cuts and the workload
    restore (`harness.run.second_clusters`)."""

    def drawn_cuts(self, plan: Plan, files: NodeFiles) -> Sequence[str]:
        """The cuts to restore, of those that nodes left traces of."""
        raise _lacking("second_clusters.drawn_cuts")

    def files_at(self, plan: Plan, files: NodeFiles, cut: str) -> NodeFiles | str:
        """The files that the nodes of a second cluster begin with; or why there is none, in a sentence."""
        raise _lacking("second_clusters.files_at")

    async def take_cut(self, plan: Plan, cluster: Cluster, cut: str) -> tuple[str, str, str]:
        """One more cut: its name in the nodes' logs, the state in which it ended ("ok" if well), and why."""
        raise _lacking("second_clusters.take_cut")

    def rows_at(self, plan: Plan, files: NodeFiles, cut: str) -> Mapping[str, Rows] | str:
        """The result of a restore to this cut, node by node; or why it gives none."""
        raise _lacking("second_clusters.rows_at")


class Parts:
    """The defaults of a system: its parts, and all else that it need not define."""

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

    @property
    def members(self) -> Members:
        return NO_MEMBERS

    @property
    def settings(self) -> Settings:
        return NO_SETTINGS

    @property
    def second_clusters(self) -> SecondClusters:
        return NO_SECOND_CLUSTERS

    # ---- what nodes need, and begin with

    @property
    def packages(self) -> tuple[str, ...]:
        """Debian packages that nodes need in a container, beside the image of our nodes; what they depend on comes with
        them."""
        return ()

    @property
    def ready_within_s(self) -> float:
        """How long a real node may take until it answers, when it was started or a fault has ended."""
        return READY_WITHIN_S

    @property
    def image(self) -> str:
        """The Docker image that nodes in containers run in, as it is; "": an image of our nodes with `packages`."""
        return ""

    @property
    def files(self) -> tuple[str, ...]:
        """Absolute paths of files and folders of this machine; nodes in containers find them under the same path,
        read-only."""
        return ()

    def why_not_here(self, does: frozenset[Does]) -> str:
        """Why one of these actions of faults cannot take effect on local nodes of this machine; "" if all can."""
        return ""

    def version(self, given: str | None) -> Version | None:
        """Nodes in another version, by what people call it; None as `given`: the usual one. None: nodes run in one
        version alone. Raises WrongUse."""
        return None

    @property
    def asynchronous_spaces(self) -> tuple[str, ...]:
        """Spaces with transactions that no quorum confirms, beside those of the workload."""
        return ()

    @property
    def starts(self) -> Mapping[str, str]:
        """Stored logs that nodes can begin with: their names, and what they are."""
        return {}

    def first_files(self, plan: Plan, spaces: tuple[str, ...]) -> NodeFiles:
        """The files that nodes begin with; none if the plan names no start."""
        return {}

    def acknowledged_before(self, plan: Plan) -> Mapping[str, object]:
        """The answers that clients got while these logs were written (`checkers.replicas.stored_start`); empty if
        none."""
        return {}

    def begun_from(self, cut: str) -> Self:
        """The same system, with nodes that begin from this cut (`SecondClusters`)."""
        raise _lacking("begun_from")

    # ---- the simulator

    def maker(self, configuration: bytes) -> Callable[[], Node]:
        """Makes a node of whatever configuration it is given."""
        raise _lacking("maker")

    @property
    def watch(self) -> Watch | None:
        """Records what the disks and links of simulated nodes do (`checkers.logs.wal.early`)."""
        return None

    @property
    def described(self) -> Described | None:
        """Which messages between nodes hosts record (`nodes.kernel.trace`), and what to call them."""
        return None

    # ---- promises

    @property
    def configuration_names(self) -> tuple[str, ...]:
        """Values of its option `configuration`: named sets of options, of which each has its promise."""
        return ()

    def promises(self) -> Iterator[tuple[Promise, Mapping[str, str]]]:
        """Each promise that hangs on options of its own, with what is promised in which phase; with its source where
        that stands in no clause."""
        return iter(())

    def why_no_cuts(self, plan: Plan) -> str:
        """Why no consistent cut is taken by default; "" if cuts are taken, or if the user asked for none."""
        return ""

    # ---- an operator from outside

    def is_operated(self, plan: Plan) -> bool:
        """It needs one, to fail over or to take cuts."""
        return False

    async def operate(self, plan: Plan, cluster: Cluster, note: Note, is_over: Callable[[], bool]) -> None:
        """Operate the cluster until the run's load is over and all has settled."""


NO_LOGS, NO_REPORTS, NO_VARIETY, NO_PICTURES = Logs(), Reports(), Variety(), Pictures()
NO_MEMBERS, NO_SETTINGS, NO_SECOND_CLUSTERS = Members(), Settings(), SecondClusters()
