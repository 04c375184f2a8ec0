"""Real Tarantool: the server that Debian packages (2.6.0), or any binary that QSYNC_TARANTOOL names.

Its nodes run `nodes/tarantool/node.lua`, which answers the calls of the reference node, so clients, workloads and
checkers are the same. Which configurations there are depends on the version; a node that is of another one says so and
does not start, so it is the same on every cluster:

| configuration | versions | failover |
|---|---|---|
| A | 2.6 | none: one master for the whole run |
| B | 2.6 | an operator from outside (`harness.systems.qsync.operator`) |
| E | from 2.6.1 to 2.10 | `election_mode`; reads are dirty |
| F | since 2.11 | `election_mode`, and nothing is rolled back because a quorum takes long |
| G | since 2.11 | `election_mode`, with the server's own rollback after replication_synchro_timeout |

`harness.systems.tarantool.promises` has the documentation's promise of each.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import msgspec

from checkers.check import Check
from checkers.logs.wal.record import LogRules
from harness.cluster.place import FAKETIME, Command, Place, Version
from harness.cluster.protocol import Cluster
from harness.cluster.versions import binary
from harness.errors import ClusterError, NotHere, WrongUse
from harness.faults.abilities import ALL_ABILITIES, Ability
from harness.faults.fault import Does
from harness.faults.membership import Membership
from harness.plan.plan import SECOND_NS, Plan
from harness.plan.promise import Promise
from harness.systems.iproto_wire import IPROTO, Iproto
from harness.systems.parts import Members, Note, Variety
from harness.systems.qsync.box_cfg import BoxCfg
from harness.systems.qsync.calls import CALLS, CallClient
from harness.systems.qsync.configurations import DEFAULT
from harness.systems.qsync.logs import Xlogs
from harness.systems.qsync.operator import ClearQueueOperator, asked, stopped_upstreams, take_over
from harness.systems.qsync.options import USUAL_READS, VARIED_READS, must_be_times, said_of, settings_of
from harness.systems.qsync.promises import must_serve_reads, without_majority, without_versions
from harness.systems.qsync.status import QsyncReports
from harness.systems.qsync.system import FIRST_SPACE_ID, NOTES, identity
from harness.systems.status import Status
from harness.systems.system import System
from harness.systems.tarantool.options import NO_CONFIGURATION, TarantoolOptions
from harness.systems.tarantool.promises import CHECKS, PROMISES, without_power
from nodes.kernel.node import Node
from nodes.kernel.outbox import Durability

PROGRAM = "QSYNC_TARANTOOL"
"""The environment variable that names another binary."""
LUA = "nodes/tarantool/node.lua"
SET_UP_TIMEOUT_NS = 20 * SECOND_NS
PROMOTE_TIMEOUT_NS = 10 * SECOND_NS
MEMBERS_TIMEOUT_NS = 15 * SECOND_NS
"""A changed list of replicas is taken when all of them were tried."""
POLL_NS = SECOND_NS // 50
CANNOT_JOIN = (
    "can't initialize storage: Can't modify data because this instance is in read-only mode",
    "can't initialize storage: Incorrect value for option 'replication': failed to connect to one or more replicas",
)
"""A master registers a new member; without any other node there is nothing to join."""
FATAL = " F> "
FAKETIME_LIBRARY = "*/faketime/libfaketimeMT.so.1"
IN_CONTAINERS = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"
NO_READ_MODES = ("A", "B", "E")
FOREVER_S = 100 * 365 * 86_400.0
"""The time-out of a server that is to wait for ever."""
_OLDER, _NEWER = "--configuration B, or E since 2.6.1", "--configuration F or G, or E up to 2.10"
VERSIONS: Mapping[str, Mapping[str, str]] = {
    letter: {"letter": letter, "least": least, "below": below, "older": _OLDER, "newer": _NEWER}
    for letter, least, below in (
        ("A", "2.6.0", "2.7.0"),
        ("B", "2.6.0", "2.7.0"),
        ("E", "2.6.1", "2.11.0"),
        ("F", "2.11.0", ""),
        ("G", "2.11.0", ""),
    )
}
"""Of which versions each configuration is, and what to try with an older or a newer server."""
_NAMESPACE = uuid.UUID("0f6c35a7-7a0f-4a0e-9a5c-2f8f3d1f60aa")


class TarantoolLogs(Xlogs):
    def rules(self, plan: Plan) -> LogRules:
        return LogRules(
            promotes="at once", has_votes=plan.has_elections, quorum=plan.quorum_size, members=plan.nodes
        )


class TarantoolReports(QsyncReports):
    def stopped(self, status: Status) -> Mapping[str, str]:
        """The node receives nothing more from these: its applier ended with an error, and does not try again."""
        return stopped_upstreams(status)


class TarantoolVariety(Variety):
    reference = "qsync"


@dataclass(frozen=True, slots=True)
class Tarantool(System):
    logs: ClassVar = TarantoolLogs()
    settings: ClassVar = BoxCfg()
    reports: ClassVar = TarantoolReports()
    variety: ClassVar = TarantoolVariety()

    summary: str = "real Tarantool: 2.6 with an operator that fails over, or a newer one with its elections"

    client: CallClient = CALLS
    wire: Iproto = IPROTO
    options: type[TarantoolOptions] = TarantoolOptions

    def completed(self, plan: Plan) -> Plan:
        """B, in which an operator fails over, if none was asked for: that of the server which Debian packages.

        A plan that asks for elections without a configuration gets F.
        """
        said = said_of(plan)
        if said.configuration == DEFAULT:
            is_elected = said.election_mode not in (None, "off") and said.protocol != "2.6"
            return plan.changed(configuration="F" if is_elected else "B")
        if plan.expectations.configuration == "E" and said.read in (USUAL_READS, VARIED_READS):
            return plan.changed(read="dirty")
        return plan

    def validate(self, plan: Plan) -> None:
        if plan.cluster == "sim":
            raise WrongUse("real Tarantool cannot run in the simulator; try: --cluster local")
        if plan.bugs:
            raise WrongUse(f"real Tarantool has no seeded bugs, got {plan.bugs[0]!r}; try: --system qsync")
        said, letter = said_of(plan), plan.expectations.configuration
        is_2_6 = letter in ("A", "B")
        for option, is_said in (
            ("--queue-max-size", said.queue_max_size is not None),
            ("--cut-every", bool(said.cut_every_s)),
            ("--checkpoint-interval", said.checkpoint_interval_s is not None),
            ("--mvcc", not said.mvcc and letter in NO_READ_MODES),
            ("--rollback-on-timeout", said.rollback_on_timeout is False and is_2_6),
        ):
            if is_said:
                raise WrongUse(
                    f"{option} has no effect on real Tarantool in configuration {letter}; leave it out, "
                    "or try: --system qsync"
                )
        if said.start is not None:
            raise WrongUse(
                "--start: the harness has no stored logs of --system tarantool; try: --system qsync"
            )
        if isinstance(plan.quorum, str):
            raise WrongUse(f"--quorum: real Tarantool is told a number here, no formula; got {plan.quorum!r}")
        if letter not in VERSIONS:
            raise WrongUse(NO_CONFIGURATION.format(letter))
        if letter in NO_READ_MODES and plan.read_mode != "dirty":
            raise WrongUse(
                f"Tarantool has no read mode {plan.read_mode!r} in configuration {letter}; try: --read dirty"
            )
        must_serve_reads(plan)
        must_be_times(plan)
        if plan.submits:
            raise WrongUse(
                "real Tarantool is asked to answer when a write is confirmed, without commit wait modes; "
                "try: --commit-wait complete"
            )
        without_effect = [name for name in ("slow-disk", "io-error") if name in plan.faults]
        if without_effect and wal_mode(plan) == "write":
            raise WrongUse(
                f"with wal_mode=write, as shipped, Tarantool never syncs: {without_effect[0]!r} has no effect; "
                "try: --wal-mode fsync"
            )
        if plan.cluster == "local" and program() is None:
            raise NotHere(
                "there is no `tarantool` on PATH; try: apt-get install tarantool, "
                f"or name a binary in {PROGRAM}"
            )

    def command(self, plan: Plan) -> Command:
        def words(place: Place) -> tuple[str, ...]:
            peers = (f"{peer}={address}" for peer, address in place.peers.items())
            usual = program() if place.is_here else None if place.program else _program_there(place)
            binary = place.program or usual or "tarantool"
            return (
                *_under_faketime(place),
                binary,
                f"{place.root}/{LUA}",
                place.config,
                place.data,
                place.listen,
                *peers,
            )

        return words

    @property
    def abilities(self) -> frozenset[Ability]:
        """Nodes write through no disk layer of ours, keep the machine's monotonic clock, and report no moments."""
        return ALL_ABILITIES - {"disk layer", "drift", "scenes"}

    def why_not_here(self, does: frozenset[Does]) -> str:
        """Only libfaketime can change the wall clock of a node."""
        if "clock" not in does or _faketime_here() is not None:
            return ""
        return "there is no libfaketime; try: apt-get install libfaketime"

    @property
    def configuration_names(self) -> tuple[str, ...]:
        return tuple(VERSIONS)

    @property
    def are_dialed_unready(self) -> bool:
        """Its nodes come up together: each waits for all of them."""
        return True

    def version(self, given: str | None) -> Version:
        """Another binary; `node.lua` stays the one of this checkout."""
        if given:
            return binary(given)
        here = program()
        path = None if here is None else Path(here).resolve()
        return Version(given="the usual binary", program=path, is_usual=True)

    def configurations(self, plan: Plan, spaces: tuple[str, ...]) -> dict[str, bytes]:
        names = (*spaces, NOTES)
        return {name: self.configuration_of(plan, name, names) for name in plan.node_names}

    def configuration_of(
        self, plan: Plan, name: str, names: tuple[str, ...], others: Mapping[str, object] | None = None
    ) -> bytes:
        spaces = [
            {"id": number, "name": space, "is_sync": space != NOTES}
            for number, space in enumerate(names, start=FIRST_SPACE_ID)
        ]
        configuration: dict[str, object] = {
            "name": name,
            "owner": self.owner(plan),
            "members": plan.node_names,
            "names": {_uuid(plan, member): member for member in plan.node_names},
            "instance_uuid": _uuid(plan, name),
            "replicaset_uuid": _uuid(plan, "cluster"),
            "spaces": spaces,
            "space_names": names,
            "quorum": plan.quorum_size,
            "synchro_timeout_s": said_of(plan).synchro_timeout_s
            if settings_of(plan).rolls_back or not plan.has_elections
            else FOREVER_S,
            "replication_timeout_s": said_of(plan).replication_timeout_s,
            "wal_mode": wal_mode(plan),
            "has_operator": self.is_operated(plan),
            "versions": VERSIONS[plan.expectations.configuration],
            **({"elections": _elections(plan, name)} if plan.has_elections else {}),
            **(others or {}),
        }
        return msgspec.json.encode(configuration)

    def node_makers(self, plan: Plan, spaces: tuple[str, ...]) -> dict[str, Callable[[], Node]]:
        raise WrongUse("real Tarantool cannot run in the simulator; try: --cluster local")

    def durability(self, plan: Plan) -> Durability:
        return "synced" if wal_mode(plan) == "fsync" else "written"

    def owner(self, plan: Plan) -> str:
        return self.can_lead(plan)[0]

    def can_lead(self, plan: Plan) -> tuple[str, ...]:
        return tuple(node for node in plan.node_names if node not in plan.voters)

    async def promote(self, node: str, cluster: Cluster) -> str | None:
        if "election" in (await cluster.status(node) or {}):
            return await asked(cluster, node, "box.ctl.promote", (), PROMOTE_TIMEOUT_NS)
        return await take_over(node, cluster)

    def owner_now(self, statuses: Mapping[str, Mapping[str, object] | None]) -> str | None:
        """The master of the newest generation: an old one that was cut off still calls itself master."""
        masters = {
            node: int(str(status["term"]))
            for node, status in statuses.items()
            if status is not None and status["role"] == "owner"
        }
        return max(masters, key=lambda node: masters[node], default=None)

    def is_operated(self, plan: Plan) -> bool:
        return plan.expectations.configuration == "B" and plan.nodes > 1

    async def operate(self, plan: Plan, cluster: Cluster, note: Note, is_over: Callable[[], bool]) -> None:
        await ClearQueueOperator(plan, cluster, note, self.owner(plan)).run(is_over)

    async def set_up(self, plan: Plan, cluster: Cluster) -> None:
        """All nodes follow all nodes, and with elections there is a leader, promoted by the harness if necessary."""
        deadline_ns = cluster.now_ns() + SET_UP_TIMEOUT_NS
        asked_ns = 0
        while True:
            statuses = {node: await cluster.status(node) for node in plan.node_names}
            if all(_follows_all(status, plan.nodes) for status in statuses.values()):
                if not plan.has_elections or self.owner_now(statuses) is not None:
                    return
                if not plan.candidates and cluster.now_ns() >= asked_ns:
                    await self.promote(self.owner(plan), cluster)
                    asked_ns = cluster.now_ns() + int(2 * said_of(plan).election_timeout_s * SECOND_NS)
            if cluster.now_ns() > deadline_ns:
                raise ClusterError(f"the nodes did not find each other, or no leader, in 20 s: {statuses}")
            await cluster.sleep_until(cluster.now_ns() + POLL_NS)

    def is_settled(self, statuses: Mapping[str, Mapping[str, object] | None]) -> bool:
        """One master, nothing asked is unanswered (since 2.11: nothing queued), and equal vclocks."""
        known = [status for status in statuses.values() if status is not None]
        return (
            len(known) == len(statuses)
            and sum(status["role"] == "owner" for status in known) == 1
            and all(status["limbo"] == 0 for status in known)
            and all(_follows_all(status, len(statuses)) for status in known)
            and all(status["vclock"] == known[0]["vclock"] for status in known)
        )

    @property
    def members(self) -> TarantoolMembers:
        return TarantoolMembers(self)

    def promise(self, plan: Plan) -> Promise:
        promise = PROMISES[plan.expectations.configuration]
        if plan.has_elections and not said_of(plan).mvcc:
            promise = without_versions(promise)
        if plan.has_elections and not settings_of(plan).is_majority:
            promise = without_majority(promise, plan.quorum_size, plan.nodes)
        if plan.changes_quorum:
            promise = promise.but(linearizable_reads="")
        return without_power(promise) if plan.loses_power and wal_mode(plan) == "write" else promise

    def checks(self, plan: Plan) -> tuple[Check, ...]:
        return CHECKS

    def bugs(self) -> Mapping[str, str]:
        return {}


@dataclass(frozen=True, slots=True)
class TarantoolMembers(Members):
    system: Tarantool
    are_listed: bool = True

    def newcomer(
        self,
        plan: Plan,
        spaces: tuple[str, ...],
        node: str,
        generations: Mapping[str, int],
        members: Membership,
    ) -> bytes:
        """The node joins with an empty folder and a new UUID."""
        membership = {**_members(plan, members, generations), "joins": True}
        uuid = _uuid(plan, identity(node, generations.get(node, 0)))
        return self.system.configuration_of(
            plan, node, (*spaces, NOTES), {**membership, "instance_uuid": uuid}
        )

    async def remove(self, owner: str, number: int, cluster: Cluster) -> str | None:
        return await asked(cluster, owner, "qsync.remove_member", (number,), MEMBERS_TIMEOUT_NS)

    def cannot_join(self, how: str, last_words: Sequence[str]) -> str:
        """If the new node reaches no node, or no master, box.cfg fails and the process ends.

        The last line marked fatal says so. Lines that the process printed before an earlier end stand there as well.
        """
        last = next((line for line in reversed(last_words) if FATAL in line), "")
        return last if how == "exit 1" and any(words in last for words in CANNOT_JOIN) else ""

    async def tell(
        self, plan: Plan, members: Membership, generations: Mapping[str, int], node: str, cluster: Cluster
    ) -> str | None:
        """`box.cfg.replication` and `replication_synchro_quorum`, which 2.6 has as a number."""
        membership = _members(plan, members, generations)
        return await asked(cluster, node, "qsync.set_members", (membership,), MEMBERS_TIMEOUT_NS)


def _elections(plan: Plan, name: str) -> dict[str, object]:
    """The settings of elections in box.cfg of a newer version, and whether memory keeps versions."""
    modes = dict(zip(plan.node_names, settings_of(plan).election_modes, strict=True))
    return {
        "mode": modes[name],
        "timeout_s": said_of(plan).election_timeout_s,
        "fencing": said_of(plan).election_fencing,
        "mvcc": said_of(plan).mvcc and plan.expectations.configuration not in NO_READ_MODES,
    }


def wal_mode(plan: Plan) -> str:
    """As shipped, a transaction does not wait for fsync(2) of the log."""
    assert isinstance(plan.options, TarantoolOptions), plan.system
    return plan.options.wal_mode or "write"


def program() -> str | None:
    """The binary that is under test; None if there is none."""
    return shutil.which(os.environ.get(PROGRAM, "tarantool"))


def _under_faketime(place: Place) -> tuple[str, ...]:
    """The start of the command line that lets the node's wall clock jump, if libfaketime is there. Its monotonic
    clock stays the machine's.
    """
    library = _faketime(place)
    if library is None:
        return ()
    settings = {
        "LD_PRELOAD": library,
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_TIMESTAMP_FILE": f"{place.clock}/{FAKETIME}",
    }
    return ("env", *(f"{name}={value}" for name, value in settings.items()))


def _faketime(place: Place) -> str | None:
    if place.programs is not None:
        return place.programs.get("faketime")
    here = _faketime_here()
    return None if here is None else str(here) if place.is_here else IN_CONTAINERS


def _faketime_here() -> Path | None:
    return next(iter(sorted(Path("/usr/lib").glob(FAKETIME_LIBRARY))), None)


def _program_there(place: Place) -> str | None:
    """ClusterError if the host was asked, and has none."""
    if place.programs is None:
        return None
    if "tarantool" not in place.programs:
        raise ClusterError(
            f"the host of {place.node} has no `tarantool` on PATH; install it there, or name it in the inventory "
            'as programs = { tarantool = "…" }'
        )
    return place.programs["tarantool"]


def _uuid(plan: Plan, name: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, f"{plan.seed}/{name}"))


def _members(plan: Plan, members: Membership, generations: Mapping[str, int]) -> dict[str, object]:
    """The replication sources, the present UUIDs of the addresses, and the quorum."""
    return {
        "members": members.present,
        "names": {_uuid(plan, identity(name, generations.get(name, 0))): name for name in plan.node_names},
        "quorum": members.quorum,
    }


def _follows_all(status: Mapping[str, object] | None, nodes: int) -> bool:
    """The node receives from all other nodes."""
    if status is None:
        return False
    following = status["following"]
    return isinstance(following, list | tuple) and len(following) == nodes - 1
