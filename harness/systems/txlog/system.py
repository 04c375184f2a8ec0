"""The reference TxLog under test: masters that all take writes, and no leader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from checkers.check import Check
from checkers.history.history import History
from harness.clients.reply import Replied
from harness.cluster.place import Command, node_host
from harness.cluster.protocol import Cluster
from harness.faults.abilities import Ability
from harness.plan.plan import SECOND_NS, Plan
from harness.plan.promise import Promise
from harness.systems.framed_client import FramedClient
from harness.systems.framed_wire import FRAMED, Framed
from harness.systems.leaderless import Leaderless
from harness.systems.parts import Logs, Members, NodeFiles, Pictures
from harness.systems.status import Statuses
from harness.systems.txlog.client import CLIENT
from harness.systems.txlog.options import ROUND_MS, TxLogOptions, said_of
from harness.systems.txlog.promises import listed, promise_of
from harness.systems.txlog.variety import TxLogVariety
from harness.workloads import workload_of
from nodes.txlog import bugs
from nodes.txlog.configuration import MILLISECOND, Configuration

REQUEST_TIMEOUT_NS = SECOND_NS
OPERATOR = -2
"""The process of the operator's requests."""


class TxLogLogs(Logs):
    torn = ("txlog.log",)

    def checks_of_files(self, plan: Plan, files: NodeFiles) -> tuple[Check, ...]:
        from harness.systems.txlog.judging import checks_of_logs  # not before a run is judged

        return checks_of_logs(plan, files)


class TxLogPictures(Pictures):
    are_there = True

    def of(
        self, plan: Plan, files: NodeFiles, history: History, verdict: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        from harness.systems.txlog.picture import drawn  # not before a run is judged

        queues = drawn(plan.node_names, files, history, verdict)
        return {} if queues is None else {"queues": queues}


class TxLogMembers(Members):
    are_added_running = True

    async def add(self, node: str, member: str, cluster: Cluster) -> str | None:
        """The newcomer, too, is asked to count the member: perhaps it knows the first ones alone."""
        return await self._told(member, node, cluster) or await self._told(node, member, cluster)

    async def _told(self, member: str, node: str, cluster: Cluster) -> str | None:
        match await cluster.call(OPERATOR, member, ["add-peer", 0, node], REQUEST_TIMEOUT_NS):
            case Replied([_, _, {"type": "ok"}]):
                return None
            case Replied([_, _, {"error": str() as error}]):
                return None if "is a master of this cluster" in error else error
            case Replied(other):
                return f"unexpected answer {other}"
        return "it did not answer"

    def counts(self, status: Mapping[str, object], node: str) -> bool:
        return node in _names(status.get("masters")) and bool(status.get("ready"))


@dataclass(frozen=True, slots=True)
class TxLogSystem(Leaderless):
    """Implements `harness.systems.system.System`."""

    hosted: ClassVar[str] = "txlog"
    store: ClassVar[str] = "the TxLog"
    not_met: ClassVar[str] = "the masters had not all met"
    logs: ClassVar = TxLogLogs()
    members: ClassVar = TxLogMembers()
    variety: ClassVar = TxLogVariety()
    pictures: ClassVar = TxLogPictures()

    summary: str = "the reference TxLog: masters that all take writes and agree on one log in rounds"
    client: FramedClient = CLIENT
    wire: Framed = FRAMED
    options: type[TxLogOptions] = TxLogOptions
    abilities: frozenset[Ability] = frozenset(
        {"torn logs", "disk layer", "clock", "drift", "scenes", "newcomers"}
    )
    are_dialed_unready: bool = False

    def command(self, plan: Plan) -> Command:
        return node_host(self.hosted, self.durability(plan))

    def configurations(self, plan: Plan, spaces: tuple[str, ...]) -> dict[str, bytes]:
        said, first = said_of(plan), plan.members_at_first.present
        return {
            name: Configuration(
                name=name,
                masters=first if name in first else (*first, name),
                strategy=said.strategy,
                split_ns=said.split_ns,
                max_peer_lag_ns=int(said.max_peer_lag * SECOND_NS),
                busy_ns=int(said.busy_ms * MILLISECOND),
                idle_ns=int(said.idle_ms * MILLISECOND),
                round_ns=int(ROUND_MS * MILLISECOND),
                execute_ns=int(said.execute_ms * MILLISECOND),
                workers=said.workers_per_master,
                worker_loss=said.worker_loss,
                backup_ns=int(said.backup_ms * MILLISECOND),
                spurious=said.spurious,
                bugs=plan.bugs,
                seed=plan.seed,
            ).to_json()
            for name in plan.node_names
        }

    def is_settled(self, statuses: Statuses) -> bool:
        """All masters reach each other, and have synchronised and executed all that they know.

        Without a strategy, parts with different queues stay apart: then that holds of each part.
        """
        known = {node: status for node, status in statuses.items() if status is not None}
        return len(known) == len(statuses) and all(
            status.get("ready")
            and not status.get("waiting")
            and status.get("executed") == status.get("synchronised")
            and len(_names(status.get("reaches"))) == len(statuses) - 1
            and _has_rejoined(node, known)
            for node, status in known.items()
        )

    def promise(self, plan: Plan) -> Promise:
        said = said_of(plan)
        return promise_of(
            said.strategy,
            can_split=said.can_split,
            is_deterministic=said.is_deterministic,
            is_order_free=workload_of(plan.workload).is_order_free,
        )

    def promises(self) -> Iterator[tuple[Promise, Mapping[str, str]]]:
        return listed()

    def bugs(self) -> Mapping[str, str]:
        return {name: str(bugs.bug(name)) for name in bugs.NAMES}


def _has_rejoined(node: str, statuses: Mapping[str, Mapping[str, object]]) -> bool:
    """The master takes part again. Without a strategy its part may stay apart; then all of that part are equal."""
    status = statuses[node]
    missing = _names(status.get("missing")) if status.get("strategy") == "none" else []
    part = [peer for name, peer in statuses.items() if name not in missing]
    return status.get("mode") == ("split" if missing else "normal") and (
        len({peer.get("base") for peer in part}) == 1
    )


def _names(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else []
