"""The options of qsync: what a plan says of them, and what they come to."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from harness.errors import WrongUse
from harness.faults.membership import quorum_of
from harness.faults.node_options import Decisive, Value
from harness.plan.expectations import MIXED, MOSTLY_CONFIRMED, Expectations
from harness.plan.plan import SECOND_NS, Options, Plan, Seconds
from harness.systems.qsync import starts
from harness.systems.qsync.configurations import (
    DEFAULT,
    FENCING_MODES,
    PROTOCOLS,
    NamedConfiguration,
    configuration,
    letter_of,
    modes_of,
    sizes_of,
    with_protocol,
)
from harness.systems.qsync.node_options import (
    AT_START,
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
from nodes.kernel import quorum as quorums
from nodes.qsync.configuration import Protocol

Formula = Annotated[str, Meta(min_length=1, max_length=200)]
LEAST_S = 0.001
NEVER_S = 3600
"""The default seconds between two snapshots: hardly any node lives so long here."""
LONG_RUN_S = 600
"""From so many seconds of load on, a node takes a snapshot when its log has grown by `LOG_BYTES`, and drops the logs
behind it: the rows of its log are most of its memory. Bytes are counted over restarts, seconds are not."""
LOG_BYTES = 2 * 1024 * 1024
UNBOUNDED = 10**18
"""Bytes of a log after which the node's own default takes a snapshot: never."""
LOG_QUEUE_BYTES = 16 * 1024 * 1024
"""Bytes that may be on their way to a node's disk by default."""
CLEANUP_DELAY_S = 4 * 3600
"""How long a node keeps logs for members that have not connected to it since its start."""
CUT_EVERY_S, CUTS_MOST = 1.0, 60
"""By default a run takes a cut every second, and at most so many: each is compared with whole logs."""
OPERATIONS_MOST = 300_000
"""By default a run with more operations takes no cuts: logs are replayed in memory."""
TAKES_CUTS = "--configuration H --faults all"
"""Options of a run with cuts."""
USUAL_READS, VARIED_READS = "usual", "varied"
"""Words for the mode of reads that a configuration has, and for that mode most of the time."""
VARIATIONS = {"linearizable": MIXED, "read-confirmed": MOSTLY_CONFIRMED}
"""Usual mode → the word for that mode and some others that the configuration serves."""
OF_ELECTIONS = ("election_fencing", "exact_elections", "synchronous_promote")
"""Options without a meaning if there are no elections."""


class QsyncOptions(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """None: as the configuration has it. Times are in seconds."""

    decides_operations: ClassVar[tuple[str, ...]] = ("read", "commit_wait")
    if_absent: ClassVar[Mapping[str, Any]] = {"cut_every_s": 0.0, "read": USUAL_READS}
    has_markers: ClassVar[bool] = True
    """The nodes write markers of cuts (`nodes.qsync.markers`)."""

    commit_wait: Annotated[
        Literal["complete", "submit", "none", "mixed"],
        Meta(description="When writes are answered: confirmed (complete), or already when they are queued."),
    ] = "complete"
    read: Annotated[
        str,
        Meta(
            description="Read mode: linearizable, read-confirmed, dirty or mixed; usual: the configuration's own; "
            "varied: mostly that, and some of the others."
        ),
    ] = VARIED_READS
    start: Annotated[
        str | None,
        Meta(description="Stored logs that nodes begin with: NAME, NAME@CUT or NAME+join (list starts)."),
    ] = None
    """None: empty disks (`harness.systems.qsync.starts`)."""

    quorum: Annotated[
        Annotated[int, Meta(ge=1, le=31)] | Formula | None,
        Meta(
            description="Nodes that must have a write, the leader included: a number, or a formula of N: "
            "math.max(2*N/3, 1)."
        ),
    ] = None
    synchro_timeout_s: Annotated[Seconds, Meta(description="Seconds until a rollback.")] = 0.6
    replication_timeout_s: Annotated[Seconds, Meta(description="Seconds of a heartbeat.")] = 0.25
    configuration: Annotated[
        str, Meta(description="A to I, or its name: what is set, and what is promised for it.")
    ] = DEFAULT
    protocol: Annotated[
        str | None,
        Meta(description="The version of Tarantool whose log and protocol the nodes use: 3.2 or 2.6."),
    ] = None
    """2.6 knows no terms and no elections."""
    election_mode: Annotated[
        str | None,
        Meta(description="off, voter, manual or candidate; or one for each node: candidate,voter,…."),
    ] = None
    election_fencing: Annotated[
        str, Meta(description="off, soft or strict: when a leader without followers resigns.")
    ] = "soft"
    election_timeout_s: Annotated[Seconds, Meta(description="Seconds of an election.")] = 0.5
    exact_elections: Annotated[
        bool,
        Meta(description="Elections keep Tarantool's own timers and states to the moment (decision 27)."),
    ] = False
    rollback_on_timeout: Annotated[
        bool | None, Meta(description="Whether waiting too long rolls back (default: as the configuration).")
    ] = None
    """For other elections than those of the configuration None means: only where there are none."""
    synchronous_promote: Annotated[
        bool | None, Meta(description="Whether a PROMOTE waits for a quorum (default: as the configuration).")
    ] = None
    """False: a PROMOTE takes effect when it is written, as shipped."""
    queue_max_size: Annotated[
        str | None,
        Meta(description="Bytes in the queue until writes must wait; or one for each node: 900,300,…."),
    ] = None
    checkpoint_interval_s: Annotated[Seconds | None, Meta(description="Seconds between snapshots.")] = None
    """None: by the growth of the log in a run of ten minutes or more, else the node's own, an hour."""
    mvcc: Annotated[
        bool,
        Meta(description="Whether reads ignore rows that are prepared but not committed (default: yes)."),
    ] = True
    """False: nodes have no manager of versions, and every read sees what is prepared."""
    cut_every_s: Annotated[
        Annotated[float, Meta(ge=0, le=3600)] | None,
        Meta(
            description="Seconds between two consistent cuts; 0: none (default: 1 and more, where they can be judged)."
        ),
    ] = None
    """None: as `Settings.cut_every_s` has it."""
    node_options: Annotated[
        tuple[str, ...],
        Meta(
            description="An option for one node alone: n2:election_timeout=0.8 (may be repeated).",
            extra={"option": "--node-option", "metavar": "NODE:OPTION=VALUE"},
        ),
    ] = ()
    """Options of single nodes that differ from the rest (`harness.faults.node_options`)."""

    def check(self, plan: Plan) -> None:
        if isinstance(self.quorum, str):
            _check_formula(self.quorum)
        said = Settings(plan, self)
        if said.quorum_size > plan.nodes:
            raise ValueError(f"a quorum of {self.quorum} cannot be had with {plan.nodes} nodes")
        if self.protocol not in (None, *PROTOCOLS):
            raise ValueError(f"unknown protocol {self.protocol!r}; try one of: {', '.join(PROTOCOLS)}")
        if self.election_fencing not in FENCING_MODES:
            raise ValueError(
                f"unknown fencing mode {self.election_fencing!r}; try one of: {', '.join(FENCING_MODES)}"
            )
        if self.cut_every_s and self.has_markers and (why := said.why_no_cuts):
            raise ValueError(f"no consistent cuts here: {why}; leave --cut-every out, or try: {TAKES_CUTS}")
        modes_of(self.election_mode or said.named.election_mode, plan.nodes)
        if said.named.protocol == "2.6" and said.has_elections:
            raise ValueError(f"protocol 2.6 has no elections, got --election-mode {self.election_mode}")
        _ = said.queue_sizes
        voting = plan.nodes - len(said.without_a_vote)
        if said.has_elections and voting < said.quorum_size:
            raise ValueError(f"{voting} nodes have a vote, and {said.quorum_size} are needed to lead")
        for node, options in parsed(self.node_options, plan.node_names).items():
            quorum = options.get(QUORUM, said.quorum_size)
            if not isinstance(quorum, int) or not said.quorum_size <= quorum <= plan.nodes:
                raise ValueError(
                    f"{node}'s quorum: expected {said.quorum_size}, as the others have, to {plan.nodes}, got {quorum}"
                )
            if said.named.protocol == "2.6":
                raise ValueError(
                    f"protocol 2.6 has the same options on all nodes, got --node-option for {node}"
                )

    def expectations(self, plan: Plan) -> Expectations:
        said = Settings(plan, self)
        return Expectations(
            configuration=said.letter,
            quorum=self.quorum,
            heartbeat_ns=int(self.replication_timeout_s * SECOND_NS),
            slowest_heartbeat_ns=int(max(said.all_of(BEAT)) * SECOND_NS),
            rolls_back_after_s=self.synchro_timeout_s,
            election_timeout_s=self.election_timeout_s,
            slowest_election_timeout_s=max(said.all_of(ELECTION_TIMEOUT)),
            fencing=self.election_fencing
            if said.has_elections and "off" not in said.all_of(FENCING)
            else "off",
            has_elections=said.has_elections,
            fails_over=said.fails_over,
            needs_operator=said.needs_operator,
            voters=said.in_mode("voter") | said.without_a_vote,
            without_a_vote=said.without_a_vote,
            candidates=said.candidates,
            read_mode=said.read_mode,
            commit_wait=self.commit_wait,
            keeps_versions=said.keeps_versions,
            settings={node: said.options_of(node) for node in plan.node_names},
            decisive=Decisive(elections=MODE, quorum=QUORUM),
        )

    def idle(self, plan: Plan, said: Collection[str]) -> str:
        for name in OF_ELECTIONS:
            if name in said and not plan.has_elections:
                return (
                    f"--{name.replace('_', '-')} has no effect without elections, in configuration "
                    f"{plan.expectations.configuration}; leave it out, or try: --election-mode candidate"
                )
        return ""


def _check_formula(formula: str) -> None:
    try:
        quorums.check(formula)
    except quorums.BadQuorum as error:
        raise ValueError(f"--quorum {formula!r}: {error}") from error


def said_of(plan: Plan) -> QsyncOptions:
    """The options of a plan for qsync or Tarantool."""
    assert isinstance(plan.options, QsyncOptions), plan.system
    return plan.options


def must_be_times(plan: Plan) -> None:
    """WrongUse if a node is to count time below a millisecond: then it does nothing but that."""
    settings = settings_of(plan)
    for option in (SYNCHRO_TIMEOUT, BEAT, ELECTION_TIMEOUT, CHECKPOINTS):
        least_s = min(settings.all_of(option))
        if least_s < LEAST_S:
            raise WrongUse(f"{option}: expected at least {LEAST_S} seconds, got {least_s:g}")


def settings_of(plan: Plan) -> Settings:
    return Settings(plan, said_of(plan))


def started_from(plan: Plan) -> starts.Start | None:
    """The stored logs that its nodes begin with."""
    start = said_of(plan).start
    return None if start is None else starts.start_of(start)


def is_2_6(plan: Plan) -> bool:
    """2.6 has no promotion: the one node that is not read-only owns the queue by writing to it."""
    return plan.expectations.configuration in ("A", "B")


def changeable(plan: Plan) -> tuple[str, ...]:
    """The options that may change in the middle of the run."""
    return (SYNCHRO_TIMEOUT, BEAT) if settings_of(plan).named.protocol == "2.6" else AT_START


def protocol_of(plan: Plan) -> Protocol:
    return "2.6" if is_2_6(plan) else "3.2"


def quorum_follows(plan: Plan) -> bool:
    """The quorum may be a formula of the number of members."""
    is_apart = any(
        QUORUM in options for options in parsed(said_of(plan).node_options, plan.node_names).values()
    )
    return not isinstance(plan.quorum, int) and not is_apart


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings that result from the options of a plan, with its nodes and its faults."""

    plan: Plan
    said: QsyncOptions

    def options_of(self, node: str) -> dict[str, Value]:
        """The options of the node when the run begins, by the names of `box.cfg`."""
        said, number = self.said, self.plan.node_names.index(node)
        return {
            MODE: self.election_modes[number],
            FENCING: said.election_fencing,
            ELECTION_TIMEOUT: said.election_timeout_s,
            SYNCHRO_TIMEOUT: said.synchro_timeout_s,
            BEAT: said.replication_timeout_s,
            QUORUM: self.quorum_size,
            QUEUE_SIZE: self.queue_sizes[number],
            TIMEOUT_BEHAVIOUR: ROLLS_BACK if self.rolls_back else GOES_ON,
            CHECKPOINTS: said.checkpoint_interval_s or NEVER_S,
            MVCC: said.mvcc,
            SYNCHRONOUS_PROMOTE: self.promote_waits,
            LOG_QUEUE: LOG_QUEUE_BYTES,
            CLEANUP_DELAY: CLEANUP_DELAY_S,
            **parsed(said.node_options, self.plan.node_names).get(node, {}),
        }

    def all_of(self, option: str) -> list[Any]:
        """Its value on every node when the run begins."""
        return [self.options_of(node)[option] for node in self.plan.node_names]

    @property
    def checkpoint_wal_threshold(self) -> int:
        """Bytes of log after which a node takes a snapshot."""
        is_long = self.plan.time_limit_s >= LONG_RUN_S and self.said.checkpoint_interval_s is None
        return LOG_BYTES if is_long else UNBOUNDED

    @property
    def cut_every_s(self) -> float:
        """Seconds between two cuts; 0: none are taken."""
        if self.said.cut_every_s is not None:
            return self.said.cut_every_s
        return 0.0 if self.why_none_is_taken else max(CUT_EVERY_S, self.plan.time_limit_s / CUTS_MOST)

    @property
    def why_none_is_taken(self) -> str:
        """Why the run takes no cuts by default; empty if it takes cuts, or if the user asked for none."""
        if self.said.cut_every_s is not None:
            return ""
        is_long = self.plan.rate * self.plan.time_limit_s > OPERATIONS_MOST
        too_long = f"more than {OPERATIONS_MOST:,} operations are asked for (--cut-every 60 takes some)"
        return self.why_no_cuts or (too_long if is_long else "")

    @property
    def why_no_cuts(self) -> str:
        """Why no cut of these nodes can be judged, in words; empty if cuts can."""
        if not self.said.has_markers:
            return f"nodes of {self.plan.system} write no markers"
        if self.needs_operator or self.letter == "B":
            return "an operator fails over, and no quorum decides which rows are before a cut"
        if self.plan.changes_members:
            return "members leave and join, and a cut is a place of each"
        return ""

    @property
    def keeps_versions(self) -> bool:
        """Every node has MVCC from its start on: one without it refuses linearizable reads."""
        return all(self.all_of(MVCC))

    @property
    def queue_sizes(self) -> tuple[int, ...]:
        """Each node's maximum size of the queue in bytes, in the order of their names; 0: no limit."""
        return sizes_of(self.said.queue_max_size or "0", self.plan.nodes)

    @property
    def quorum_size(self) -> int:
        return quorum_of(self.said.quorum, self.plan.nodes)

    @property
    def is_majority(self) -> bool:
        """Any two quorums have a node in common."""
        return 2 * self.quorum_size > self.plan.nodes

    @property
    def named(self) -> NamedConfiguration:
        return with_protocol(configuration(self.said.configuration), self.said.protocol)

    @property
    def election_modes(self) -> tuple[str, ...]:
        """Each node's, in the order of their names."""
        return modes_of(self.said.election_mode or self.named.election_mode, self.plan.nodes)

    @property
    def has_elections(self) -> bool:
        return any(mode != "off" for mode in self.election_modes)

    @property
    def without_a_vote(self) -> frozenset[str]:
        """Nodes that take no part in elections: their PROMOTE would ask for no votes."""
        return self.in_mode("off") if self.has_elections else frozenset()

    @property
    def candidates(self) -> frozenset[str]:
        """The nodes that stand for election by themselves."""
        return self.in_mode("candidate")

    def in_mode(self, wanted: str) -> frozenset[str]:
        modes = zip(self.plan.node_names, self.election_modes, strict=True)
        return frozenset(node for node, mode in modes if mode == wanted)

    @property
    def needs_operator(self) -> bool:
        if self.plan.leader is not None:
            return False
        may_all_leave = self.plan.changes_members and "manual" in self.election_modes
        return self.fails_over and (not self.candidates or may_all_leave)

    @property
    def fails_over(self) -> bool:
        """The owner may change in the middle of the run, or there is none."""
        plan = self.plan
        if plan.leader is not None:
            return plan.leader != "fixed"
        if self.has_elections or "failover" in plan.faults:
            return True
        if plan.drawn is not None and any(fault.does == "failover" for fault in plan.drawn.faults):
            return True
        return self.named.election_mode == "off" and self.named.fails_over

    @property
    def rolls_back(self) -> bool:
        if self.said.rollback_on_timeout is not None:
            return self.said.rollback_on_timeout
        same_kind = (self.named.election_mode == "off") != self.has_elections
        return self.named.rollback_on_timeout if same_kind else not self.has_elections

    @property
    def promote_waits(self) -> bool:
        """PROMOTE is itself an entry."""
        if not self.has_elections:
            return False
        if self.said.synchronous_promote is not None:
            return self.said.synchronous_promote
        return self.named.synchronous_promote or self.named.election_mode == "off"

    @property
    def letter(self) -> str:
        """The row of promises that the plan comes under, whatever its configuration is called."""
        return letter_of(
            protocol=self.named.protocol,
            has_elections=self.has_elections,
            fails_over=self.fails_over,
            terms_in_acks=self.named.terms_in_acks,
            synchronous_promote=self.promote_waits,
            rollback_on_timeout=self.rolls_back,
        )

    @property
    def read_mode(self) -> str:
        """The mode of reads, or a word for several (`harness.plan.expectations.READ_MIXES`)."""
        if self.said.read == USUAL_READS:
            return self.usual_read_mode
        if self.said.read == VARIED_READS:
            return VARIATIONS.get(self.usual_read_mode, self.usual_read_mode)
        return self.said.read

    @property
    def usual_read_mode(self) -> str:
        if not self.keeps_versions:
            return "dirty"
        if self.named.election_mode == "off" and self.has_elections:
            return "linearizable"
        if self.named.election_mode != "off" and not self.has_elections:
            return "read-confirmed"
        return self.named.read
