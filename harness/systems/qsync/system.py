"""The reference qsync: nodes of `nodes.qsync`, which elect their owner, or are promoted from outside."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from checkers.check import Check
from checkers.logs.wal.record import LogRules, NodeLog
from checkers.replicas import early_timeout, stored_start
from harness.clients.reply import Replied
from harness.cluster.place import Command, Version, node_host
from harness.cluster.protocol import Administered, BeginsAnew, Cluster
from harness.cluster.versions import package, this_package
from harness.errors import ClusterError, WrongUse
from harness.faults.abilities import ALL_ABILITIES, Ability
from harness.faults.fault import Fault
from harness.faults.membership import FORMULA, Membership
from harness.faults.node_options import CHANGE_OPTIONS, Value
from harness.plan.expectations import READ_MIXES
from harness.plan.plan import SECOND_NS, Plan
from harness.plan.promise import FINAL_STATE, LINEARIZABLE_READS, LOGS, WRITES, Promise
from harness.plan.schedule import draw_faults
from harness.systems.iproto_wire import IPROTO, Iproto
from harness.systems.parts import Members, Note
from harness.systems.qsync import starts
from harness.systems.qsync.box_cfg import BoxCfg
from harness.systems.qsync.calls import CALLS, CallClient, why_refused
from harness.systems.qsync.configurations import CONFIGURATIONS, letter_of
from harness.systems.qsync.cut_operator import CutOperator
from harness.systems.qsync.logs import Xlogs
from harness.systems.qsync.node_options import (
    BEAT,
    CHECKPOINTS,
    CLEANUP_DELAY,
    ELECTION_TIMEOUT,
    FENCING,
    GOES_ON,
    LOG_QUEUE,
    MODE,
    MVCC,
    QUEUE_SIZE,
    QUORUM,
    ROLLS_BACK,
    SYNCHRO_TIMEOUT,
    SYNCHRONOUS_PROMOTE,
    TIMEOUT_BEHAVIOUR,
    parsed,
)
from harness.systems.qsync.operator import ClearQueueOperator, asked, take_over
from harness.systems.qsync.options import (
    NEVER_S,
    USUAL_READS,
    VARIED_READS,
    QsyncOptions,
    is_2_6,
    must_be_times,
    protocol_of,
    quorum_follows,
    said_of,
    settings_of,
    started_from,
)
from harness.systems.qsync.promises import (
    PROMISES,
    must_serve_reads,
    with_asynchronous,
    with_promotes_at_once,
    without_majority,
    without_versions,
)
from harness.systems.qsync.reconfiguring import in_force, switches_on
from harness.systems.qsync.status import QsyncReports
from harness.systems.qsync.variety import QsyncVariety
from harness.systems.system import System
from harness.workloads import workload_of
from nodes.iproto.messages import Answer, Call, Delete
from nodes.kernel.node import Node
from nodes.kernel.outbox import Durability
from nodes.qsync import bugs as seeded
from nodes.qsync.configuration import (
    Configuration,
    Identity,
    SpaceDefinition,
)
from nodes.qsync.election import FENCINGS, MODES
from nodes.qsync.replica import Replica
from nodes.qsync.service import READ_MODES
from nodes.qsync.system_spaces import CLUSTER

if TYPE_CHECKING:
    from harness.cluster.sim.cluster import Watch

FIRST_SPACE_ID = 512
NOTES = "notes"
"""A space that is not synchronous, in every run: `harness.workloads.mixed_spaces` writes to it."""
_NAMESPACE = uuid.UUID("6f1a52a4-0c0e-4bfa-9d0e-8a4b5f1e7c11")
SET_UP_PROCESS = -1
SET_UP_TIMEOUT_NS = 10 * SECOND_NS
POLL_NS = SECOND_NS // 50
OPERATOR_PROCESS = -2
ACK_WITHOUT_TERM = "ack-without-term"
"""The seeded bug that was how Tarantool worked up to 2.10, and is so in configurations of that time."""
PROMOTE_TIMEOUT_NS = SECOND_NS
T = TypeVar("T", bound=str)


@dataclass(frozen=True, slots=True)
class Qsync(System):
    summary: str = "the reference node: quorum-synchronous replication and elections after Tarantool"

    client: CallClient = CALLS
    wire: Iproto = IPROTO
    options: type[QsyncOptions] = QsyncOptions

    def completed(self, plan: Plan) -> Plan:
        return plan

    def command(self, plan: Plan) -> Command:
        return node_host(plan.system, self.durability(plan))

    def version(self, given: str | None) -> Version:
        return this_package() if given is None else package(given)

    @property
    def abilities(self) -> frozenset[Ability]:
        return ALL_ABILITIES

    @property
    def configuration_names(self) -> tuple[str, ...]:
        return tuple(CONFIGURATIONS)

    @property
    def are_dialed_unready(self) -> bool:
        return False

    def validate(self, plan: Plan) -> None:
        for bug in plan.bugs:
            if bug not in seeded.NAMES:
                raise WrongUse(f"unknown bug {bug!r} of qsync; try one of: {', '.join(seeded.NAMES)}")
            if seeded.bug(bug).decides.durable_when == "written" and not (
                plan.loses_power or (plan.asks_for_all and plan.drawn is None)
            ):
                raise WrongUse(f"--bug {bug} shows only where a disk forgets; try: --faults lose-unsynced")
        if is_2_6(plan) and said_of(plan).queue_max_size is not None:
            raise WrongUse(
                "--queue-max-size: 2.6 knows no limit of its queue; try: --configuration C, "
                f"got {said_of(plan).configuration}"
            )
        if is_2_6(plan) and isinstance(plan.quorum, str):
            raise WrongUse(f"--quorum: 2.6 knows no formula, only a number; got {plan.quorum!r}")
        if is_2_6(plan) and not settings_of(plan).rolls_back:
            raise WrongUse("--rollback-on-timeout: 2.6 always rolls back; try: --configuration C")
        if plan.read_mode not in (*READ_MODES, *READ_MIXES):
            known = ", ".join((*READ_MODES, *READ_MIXES, USUAL_READS, VARIED_READS))
            raise WrongUse(f"unknown read mode {plan.read_mode!r}; try one of: {known}")
        must_serve_reads(plan)
        must_be_times(plan)
        start = said_of(plan).start
        if start is not None and plan.cluster != "sim":
            raise WrongUse(f"--start is for --cluster sim, got --cluster {plan.cluster}")
        if start is not None and (why := starts.fits(start, protocol_of(plan), plan.nodes)):
            raise WrongUse(why)
        if _others_join(plan) and not quorum_follows(plan):
            raise WrongUse(f"--start {start}: the quorum follows the members that join; leave --quorum out")

    def configurations(self, plan: Plan, spaces: tuple[str, ...]) -> dict[str, bytes]:
        members = tuple(
            Identity(id=number, name=name, uuid=_uuid(plan, name))
            for number, name in enumerate(plan.node_names, start=1)
        )
        begins_later = switches_on(plan, self._faults(plan))
        said, settings = said_of(plan), settings_of(plan)
        apart = parsed(said.node_options, plan.node_names)
        start = started_from(plan)
        alone = self.owner(plan) if _others_join(plan) else ""
        stored = () if start is None or start.makes_its_space else (starts.SPACE,)
        first = {
            member.name: Configuration(
                name=member.name,
                cluster_uuid=_uuid(plan, "cluster"),
                members=_before_joins(members, alone) if alone else members,
                joins=alone not in ("", member.name),
                spaces=(*_definitions(spaces), *stored),
                quorum=_quorum(plan),
                synchro_timeout_ns=int(said.synchro_timeout_s * SECOND_NS),
                replication_timeout_ns=plan.heartbeat_ns,
                bugs=_switches(plan),
                election_mode=_of(MODES, mode),
                election_fencing=_of(FENCINGS, said.election_fencing),
                election_timeout_ns=int(said.election_timeout_s * SECOND_NS),
                exact_elections=said.exact_elections,
                rollback_on_timeout=settings.rolls_back,
                synchronous_promote=settings.promote_waits or begins_later,
                protocol=protocol_of(plan),
                unmarked_promote=None if start is None else start.unmarked_promote,
                read_only=_is_cleared(plan) or (is_2_6(plan) and member.name != plan.node_names[0]),
                synchro_queue_max_size=queue_size,
                memtx_use_mvcc_engine=said.mvcc,
                checkpoint_interval_ns=int((said.checkpoint_interval_s or NEVER_S) * SECOND_NS),
                checkpoint_wal_threshold=settings.checkpoint_wal_threshold,
                seed=plan.seed,
            )
            for member, mode, queue_size in zip(
                members, settings.election_modes, settings.queue_sizes, strict=True
            )
        }
        return {
            name: _with_options(configuration, apart.get(name, {})).to_json()
            for name, configuration in first.items()
        }

    def node_makers(self, plan: Plan, spaces: tuple[str, ...]) -> dict[str, Callable[[], Node]]:
        return {name: self.maker(data) for name, data in self.configurations(plan, spaces).items()}

    def maker(self, configuration: bytes) -> Callable[[], Node]:
        read = Configuration.from_json(configuration)
        return lambda: Replica(read)

    @property
    def starts(self) -> Mapping[str, str]:
        return {name: starts.summary(name) for name in starts.names()}

    def first_files(self, plan: Plan, spaces: tuple[str, ...]) -> Mapping[str, Mapping[str, bytes]]:
        start = started_from(plan)
        if start is None:
            return {}
        configurations = self.configurations(plan, spaces)
        read = {node: Configuration.from_json(data) for node, data in configurations.items()}
        return starts.files_of(start, read)

    def acknowledged_before(self, plan: Plan) -> Mapping[str, object]:
        start = started_from(plan)
        rows = () if start is None else start.answered
        return {"space": starts.SPACE.name, "rows": rows} if rows else {}

    @property
    def watch(self) -> Watch:
        from harness.systems.qsync.sim_effects import Effects

        return Effects

    @property
    def asynchronous_spaces(self) -> tuple[str, ...]:
        return (NOTES,)

    def durability(self, plan: Plan) -> Durability:
        return seeded.decisions_with(plan.bugs).durable_when

    def owner(self, plan: Plan) -> str:
        return self.can_lead(plan)[0]

    def can_lead(self, plan: Plan) -> tuple[str, ...]:
        return tuple(node for node in plan.node_names if node not in plan.voters)

    def is_operated(self, plan: Plan) -> bool:
        return _is_cleared(plan) or settings_of(plan).cut_every_s > 0

    def why_no_cuts(self, plan: Plan) -> str:
        return settings_of(plan).why_none_is_taken

    async def operate(self, plan: Plan, cluster: Cluster, note: Note, is_over: Callable[[], bool]) -> None:
        if not _is_cleared(plan):
            await CutOperator(plan, cluster, note, self.owner_now).run(is_over)
            return
        await ClearQueueOperator(plan, cluster, note, self.owner(plan)).run(is_over)

    async def promote(self, node: str, cluster: Cluster) -> str | None:
        if "upstreams" in (await cluster.status(node) or {}):
            return await take_over(node, cluster)
        return await asked(cluster, node, "box.ctl.promote", (), PROMOTE_TIMEOUT_NS)

    def owner_now(self, statuses: Mapping[str, Mapping[str, object] | None]) -> str | None:
        owners = {
            node: status.get("term", 0)
            for node, status in statuses.items()
            if status is not None and status.get("role") == "owner"
        }
        return max(owners, key=lambda node: int(str(owners[node])), default=None)

    async def set_up(self, plan: Plan, cluster: Cluster) -> None:
        """The first owner is promoted, by election too: so no run begins with waiting for a death timeout.

        All nodes must follow each other and know it.
        """
        deadline_ns = cluster.now_ns() + SET_UP_TIMEOUT_NS
        newcomers = [node for node in plan.node_names if _others_join(plan) and node != self.owner(plan)]
        if newcomers:
            await self._lead_alone(plan, cluster, newcomers, deadline_ns)
        elif started_from(plan) is not None:
            await self._catch_up(plan, cluster, deadline_ns)
        if _is_cleared(plan):
            await self._take_over(plan, cluster)
        elif not plan.has_elections and not is_2_6(plan):
            await self._promote(plan, cluster)
        if newcomers:
            await self._join(cluster, self.owner(plan), newcomers, deadline_ns)
        asked_ns = 0
        while True:
            if plan.has_elections and cluster.now_ns() >= asked_ns:
                statuses = {node: await cluster.status(node) for node in plan.node_names}
                if all(_is_connected(status, plan.nodes) for status in statuses.values()):
                    if self.owner_now(statuses) is None:
                        await self.promote(self.owner(plan), cluster)
                    asked_ns = cluster.now_ns() + int(2 * said_of(plan).election_timeout_s * SECOND_NS)
            statuses = {node: await cluster.status(node) for node in plan.node_names}
            in_place = _is_connected if is_2_6(plan) else _is_in_place
            has_owner = started_from(plan) is None or self.owner_now(statuses) is not None
            if has_owner and all(in_place(status, plan.nodes) for status in statuses.values()):
                return
            await self._wait(cluster, deadline_ns, statuses)

    async def _wait(self, cluster: Cluster, deadline_ns: int, statuses: object) -> None:
        if cluster.now_ns() > deadline_ns:
            raise ClusterError(f"the nodes did not find each other, or no owner, in 10 s: {statuses}")
        await cluster.sleep_until(cluster.now_ns() + POLL_NS)

    async def _catch_up(self, plan: Plan, cluster: Cluster, deadline_ns: int) -> None:
        """Stored logs may differ in length. Without elections nothing else makes sure that the owner has all rows."""
        while True:
            statuses = [await cluster.status(node) for node in plan.node_names]
            vclocks = [status["vclock"] for status in statuses if status is not None]
            is_connected = all(_is_connected(status, plan.nodes) for status in statuses)
            if is_connected and all(vclock == vclocks[0] for vclock in vclocks):
                return
            await self._wait(cluster, deadline_ns, statuses)

    async def _lead_alone(
        self, plan: Plan, cluster: Cluster, newcomers: Sequence[str], deadline_ns: int
    ) -> None:
        """A node must be writable to be joined. Without elections it is promoted as always."""
        assert isinstance(cluster, Administered), "--start is for the simulator"
        for node in newcomers:
            await cluster.destroy(node)
        while plan.has_elections:
            status = await cluster.status(self.owner(plan))
            if self.owner_now({self.owner(plan): status}) is not None:
                return
            await self.promote(self.owner(plan), cluster)
            await self._wait(cluster, deadline_ns, status)

    async def _join(self, cluster: Cluster, owner: str, newcomers: Sequence[str], deadline_ns: int) -> None:
        """One after the other: the second needs the first for its quorum."""
        assert isinstance(cluster, Administered), "--start is for the simulator"
        for place, node in enumerate(newcomers, start=1):
            await cluster.start_again(node)
            present = (owner, *newcomers[:place])
            while True:
                statuses = [await cluster.status(each) for each in present]
                if all(_is_connected(status, len(present)) for status in statuses):
                    break
                await self._wait(cluster, deadline_ns, statuses)

    async def _take_over(self, plan: Plan, cluster: Cluster) -> None:
        error = await take_over(self.owner(plan), cluster, is_first=isinstance(cluster, BeginsAnew))
        if error is not None:
            raise ClusterError(f"{self.owner(plan)} could not take the queue over: {error}")

    async def _promote(self, plan: Plan, cluster: Cluster) -> None:
        reply = await cluster.call(
            SET_UP_PROCESS, self.owner(plan), Call(1, "box.ctl.promote", ()), SET_UP_TIMEOUT_NS
        )
        if not (isinstance(reply, Replied) and isinstance(reply.response, Answer)):
            raise ClusterError(f"{self.owner(plan)} could not be made the owner: {reply}")

    def is_settled(self, statuses: Mapping[str, Mapping[str, object] | None]) -> bool:
        known = [status for status in statuses.values() if status is not None]
        return (
            len(known) == len(statuses)
            and all(status["limbo"] == 0 and not status["in_rollback"] for status in known)
            and all(status.get("pending_promotes", 0) == 0 for status in known)
            and self.owner_now(statuses) is not None
            and not _are_rivals(known)
            and all(status["vclock"] == known[0]["vclock"] for status in known)
        )

    def promise(self, plan: Plan) -> Promise:
        settings, faults = settings_of(plan), self._faults(plan)
        has_elections = plan.has_elections or switches_on(plan, faults)
        fails_over = plan.fails_over or has_elections
        rolls_back = ROLLS_BACK in in_force(plan, TIMEOUT_BEHAVIOUR, faults)
        letter = letter_of(
            protocol=settings.named.protocol,
            has_elections=has_elections,
            fails_over=fails_over,
            terms_in_acks=settings.named.terms_in_acks,
            synchronous_promote=settings.promote_waits or not plan.has_elections,
            rollback_on_timeout=rolls_back,
        )
        promise = PROMISES[letter]
        waits = (in_force(plan, TIMEOUT_BEHAVIOUR, faults), in_force(plan, SYNCHRO_TIMEOUT, faults))
        if GOES_ON in waits[0] or len(waits[1]) > 1:
            promise = promise.but(isolated_owner_rolls_back=False)
        if settings.promote_waits and False in in_force(plan, SYNCHRONOUS_PROMOTE, faults):
            promise = with_promotes_at_once(promise)
        shows_prepared = plan.read_mode == "dirty" and not plan.keeps_versions
        if shows_prepared or in_force(plan, MVCC, ()) == (False,):
            promise = without_versions(promise)
        if has_elections and not settings.is_majority:
            promise = without_majority(promise, plan.quorum_size, plan.nodes)
        if workload_of(plan.workload).asynchronous and fails_over:
            promise = with_asynchronous(promise)
        if len(in_force(plan, QUORUM, faults)) == 1:
            return promise
        why = (
            "; nodes count by different quorums, or change theirs one after another: a read asks N - Q + 1 nodes by "
            "another Q than a write had, so no linearizable reads are promised"
        )
        return promise.but(linearizable_reads="", why=promise.why + why)

    def _faults(self, plan: Plan) -> tuple[Fault, ...]:
        """The faults of the plan, drawn or not, that change options."""
        if plan.drawn is not None:
            return tuple(fault for fault in plan.drawn.faults if fault.options)
        if not {*CHANGE_OPTIONS} & {*plan.faults}:
            return ()
        return tuple(fault for fault in draw_faults(plan, self.owner(plan), self) if fault.options)

    @property
    def logs(self) -> QsyncLogs:
        return QsyncLogs(self)

    @property
    def members(self) -> QsyncMembers:
        return QsyncMembers(self)

    @property
    def settings(self) -> QsyncSettings:
        return SETTINGS

    @property
    def reports(self) -> QsyncReports:
        return REPORTS

    @property
    def variety(self) -> QsyncVariety:
        return VARIETY

    def log_rules(self, plan: Plan) -> LogRules:
        """By which rules the logs of a run are audited."""
        is_synchronous = plan.has_elections and settings_of(plan).promote_waits
        begin_later = switches_on(plan, self._faults(plan))
        start = started_from(plan)
        return LogRules(
            promotes="synchronous" if is_synchronous else "at once",
            has_votes=plan.has_elections or begin_later,
            first_by_hand=begin_later,
            quorum=plan.quorum_size,
            members=plan.nodes,
            linearizable_reads=bool(self.promise(plan).model(LINEARIZABLE_READS)),
            started={} if start is None else start.vclock,
        )

    def checks(self, plan: Plan) -> tuple[Check, ...]:
        waits_s = in_force(plan, SYNCHRO_TIMEOUT, self._faults(plan))
        timeout_ns = int(min(float(seconds) for seconds in waits_s) * SECOND_NS)
        return (
            *((self._kept_from_start(plan),) if self.acknowledged_before(plan) else ()),
            Check(
                early_timeout.NAME,
                "no client gets a quorum timeout before it has passed",
                early_timeout.MODEL,
                lambda history: early_timeout.check(history, timeout_ns=timeout_ns),
            ),
        )

    def _kept_from_start(self, plan: Plan) -> Check:
        promise = self.promise(plan)
        return Check(
            stored_start.NAME,
            "writes acknowledged before the run, in the logs that it began with, are there at the end",
            stored_start.MODEL if promise.model(WRITES) == "linearizable" else "",
            lambda history: stored_start.check(history, everywhere=bool(promise.model(FINAL_STATE))),
        )

    def bugs(self) -> Mapping[str, str]:
        return {name: str(seeded.bug(name)) for name in seeded.NAMES}


@dataclass(frozen=True, slots=True)
class QsyncLogs(Xlogs):
    system: Qsync

    def rules(self, plan: Plan) -> LogRules:
        return self.system.log_rules(plan)

    def checks(self, plan: Plan, logs: Sequence[NodeLog]) -> tuple[Check, ...]:
        from harness.systems.qsync.judging import checks_of_cuts  # not before a run is judged

        is_promised = bool(self.system.promise(plan).model(LOGS))
        return checks_of_cuts(plan, logs, self.rules(plan), is_promised=is_promised)


@dataclass(frozen=True, slots=True)
class QsyncMembers(Members):
    system: Qsync

    def newcomer(
        self,
        plan: Plan,
        spaces: tuple[str, ...],
        node: str,
        generations: Mapping[str, int],
        members: Membership,
    ) -> bytes:
        """The node joins with its id in the configuration. It learns the ids of the other nodes with the data."""
        first = Configuration.from_json(self.system.configurations(plan, spaces)[node])
        identities = tuple(
            replace(
                member,
                id=0 if member.name == node else member.id,
                uuid=_uuid(plan, identity(member.name, generations.get(member.name, 0))),
            )
            for member in first.members
        )
        return replace(first, members=identities, joins=True).to_json()

    async def remove(self, owner: str, number: int, cluster: Cluster) -> str | None:
        request = Delete(1 + cluster.now_ns(), CLUSTER, (number,))
        reply = await cluster.call(OPERATOR_PROCESS, owner, request, PROMOTE_TIMEOUT_NS)
        match reply:
            case Replied(Answer()):
                return None
            case Replied(refusal):
                return why_refused(refusal)
            case _:
                return reply.reason


class QsyncSettings(BoxCfg):
    def configured(self, configuration: bytes, options: Mapping[str, Value]) -> bytes:
        return _with_options(Configuration.from_json(configuration), options).to_json()


REPORTS, SETTINGS, VARIETY = QsyncReports(), QsyncSettings(), QsyncVariety()


def _is_cleared(plan: Plan) -> bool:
    """2.6 has no elections: an operator from outside takes the queue over, with `clear_synchro_queue`."""
    return plan.expectations.configuration == "B"


def _with_options(configuration: Configuration, options: Mapping[str, Value]) -> Configuration:
    fields: dict[str, Any] = {}
    for name, value in options.items():
        field_name, convert = _FIELDS[name]
        fields[field_name] = convert(value)
    return replace(configuration, **fields)


def _as_ns(seconds: Any) -> int:
    return int(float(seconds) * SECOND_NS)


def _as_it_is(value: Any) -> Any:
    return value


_FIELDS: Mapping[str, tuple[str, Callable[[Any], object]]] = {
    MODE: ("election_mode", _as_it_is),
    FENCING: ("election_fencing", _as_it_is),
    ELECTION_TIMEOUT: ("election_timeout_ns", _as_ns),
    SYNCHRO_TIMEOUT: ("synchro_timeout_ns", _as_ns),
    BEAT: ("replication_timeout_ns", _as_ns),
    QUORUM: ("quorum", _as_it_is),
    QUEUE_SIZE: ("synchro_queue_max_size", _as_it_is),
    TIMEOUT_BEHAVIOUR: ("rollback_on_timeout", lambda value: value == ROLLS_BACK),
    CHECKPOINTS: ("checkpoint_interval_ns", _as_ns),
    MVCC: ("memtx_use_mvcc_engine", _as_it_is),
    SYNCHRONOUS_PROMOTE: ("synchronous_promote", _as_it_is),
    CLEANUP_DELAY: ("wal_cleanup_delay_ns", _as_ns),
    LOG_QUEUE: ("wal_queue_max_size", _as_it_is),
}
"""Option → the field of a node's configuration, and what makes its value."""


def _definitions(names: tuple[str, ...]) -> tuple[SpaceDefinition, ...]:
    """The workload's spaces, which are synchronous, and one that is not."""
    return tuple(
        SpaceDefinition(id=number, name=name, is_sync=name != NOTES)
        for number, name in enumerate((*names, NOTES), start=FIRST_SPACE_ID)
    )


def _quorum(plan: Plan) -> int | str:
    """A formula if one was asked for, or if members change and no number was asked for: it follows the members."""
    if isinstance(plan.quorum, str):
        return plan.quorum
    follows = plan.changes_members or _others_join(plan)
    return FORMULA if follows and plan.quorum is None else plan.quorum_size


def identity(name: str, generation: int) -> str:
    """The name that a UUID is made of: of the first member at an address, and of each that came after it."""
    return name if not generation else f"{name}/{generation}"


def _uuid(plan: Plan, name: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, f"{plan.seed}/{name}"))


def _others_join(plan: Plan) -> bool:
    """One node begins with a stored log, and the rest with nothing."""
    start = started_from(plan)
    return start is not None and start.others_join


def _before_joins(members: tuple[Identity, ...], alone: str) -> tuple[Identity, ...]:
    """The first member; its log names it replica 1. The remaining ids are learnt."""
    return tuple(replace(member, id=int(member.name == alone)) for member in members)


def _switches(plan: Plan) -> tuple[str, ...]:
    """The seeded bugs of the plan, and those that its configuration has as a property."""
    named = settings_of(plan).named
    switches = (
        *plan.bugs,
        *((ACK_WITHOUT_TERM,) if plan.has_elections and not named.terms_in_acks else ()),
    )
    return tuple(dict.fromkeys(switches))


def _of(words: Sequence[T], word: str) -> T:
    """One of the words that a node's configuration knows."""
    return words[words.index(word)]


def _is_in_place(status: Mapping[str, object] | None, nodes: int) -> bool:
    """The node knows the owner, follows all nodes and is followed by all."""
    return status is not None and status["owner"] != 0 and _is_connected(status, nodes)


def _are_rivals(statuses: Sequence[Mapping[str, object]]) -> bool:
    """By hand two nodes can be made writable, until the operator has looked again."""
    by_hand = [status for status in statuses if "upstreams" in status]
    return sum(status["role"] == "owner" for status in by_hand) > 1


def _is_connected(status: Mapping[str, object] | None, nodes: int) -> bool:
    if status is None:
        return False
    following, followers = status["following"], status["followers"]
    assert isinstance(following, list | tuple)
    assert isinstance(followers, list | tuple)
    return len(following) == len(followers) == nodes - 1
