"""A plan: everything that decides a run, as one frozen value with JSON in and out.

A plan has one named random stream per worker, fault and link (`streams`), so that one more draw in one place shifts
no other. Its drawn-out form (`harness.run.draw`) holds every fault and every operation as a line of its own: that is
what a shrinker edits and what a regression test stores.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from harness.errors import WrongUse
from harness.faults.fault import Count, Does, Fault
from harness.faults.lanes import MEMBERSHIP
from harness.faults.membership import quorum_of
from harness.run.configurations import (
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
from harness.run.node_options import (
    BEAT,
    CHECKPOINTS,
    ELECTION_TIMEOUT,
    FENCING,
    GOES_ON,
    LOG_QUEUE,
    MODE,
    MVCC,
    QUEUE_SIZE,
    QUORUM,
    RECONFIGURING,
    ROLLS_BACK,
    SYNCHRO_TIMEOUT,
    SYNCHRONOUS_PROMOTE,
    TIMEOUT_BEHAVIOUR,
    Value,
    parsed,
)
from harness.wrong_values import in_words
from nodes.kernel import quorum as quorums
from nodes.kernel.chance import Streams

Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]
Formula = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]

SECOND_NS = 1_000_000_000
WORKERS_MAX = 10_000
CONNECTION_NAME = "client"
"""The clients' end in the names of links."""
SUBMITTING = ("submit", "none")
"""The commit wait modes in which an answer is no acknowledgement."""
POWER_FAULTS = ("lose-unsynced", "power-owner", "power-one", "power-all")
DISK_FAULTS = (*POWER_FAULTS, "slow-disk", "full-disk", "io-error")
DISK_ITSELF: frozenset[Does] = frozenset(("power", "slow-fsync", "disk-error"))
"""Faults of the disk under a node, rather than of its files."""
ASYNCHRONOUS_WORKLOADS = ("mixed-spaces",)
"""Workloads that write to a space with transactions that no quorum confirms."""
LOG_QUEUE_BYTES = 16 * 1024 * 1024
"""What may be on its way to a node's disk if nothing is said."""
NEVER_S = 3600
"""How often a node takes a snapshot if nothing is said: longer than any run."""
SEEN = "@seen"
"""In a value: what the worker last saw under the key."""


class Operation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One operation of the load: what a worker does, not before `at_ns`, at `node`.

    `value` is any JSON value; what it means is the workload's. In that of a compare-and-set `"@seen"` stands for what
    this worker last saw under the key.
    """

    at_ns: Count
    worker: Count
    f: str
    key: str | None = None
    value: Any = None  # JSON's door; see `harness.generators.generator.Value`
    node: str = ""
    mode: str | None = None
    wait: str | None = None
    """A commit wait mode: complete, submit or none; None: the store's own."""

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "value", _frozen(self.value))


def _check_formula(formula: str) -> None:
    try:
        quorums.check(formula)
    except quorums.BadQuorum as error:
        raise ValueError(f"--quorum {formula!r}: {error}") from error


def _frozen(value: Any) -> Any:
    """JSON with tuples for lists, however deep."""
    match value:
        case list() | tuple():
            return tuple(_frozen(each) for each in value)
        case dict():
            return {str(key): _frozen(each) for key, each in value.items()}
        case _:
            return value


class Drawn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The drawn-out form: nothing is left to chance but the world itself."""

    faults: tuple[Fault, ...]
    operations: tuple[Operation, ...]


Leadership = Literal["fixed", "elected", "none"]
CommitWait = Literal["complete", "submit", "none", "mixed"]


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run. Times are in seconds here because people write them; everything inside counts nanoseconds."""

    format: Literal["qsync-plan"] = "qsync-plan"
    version: Literal[1] = 1
    name: Name = "run"
    system: str = "qsync"
    cluster: str = "local"
    workload: str = "register"
    faults: tuple[str, ...] = ("all",)
    nodes: Annotated[int, msgspec.Meta(ge=1, le=31)] = 3
    seed: Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)] = 0
    time_limit_s: Seconds = 20.0
    rate: Annotated[float, msgspec.Meta(gt=0, le=1_000_000)] = 300.0
    """Operations per second of all workers together."""
    workers: Annotated[int, msgspec.Meta(ge=1, le=WORKERS_MAX)] = 10
    quorum: Annotated[int, msgspec.Meta(ge=1, le=31)] | Formula | None = None
    """A number, or a formula of N, the number of members (`nodes.kernel.quorum`); None: N/2 + 1."""
    synchro_timeout_s: Seconds = 0.6
    replication_timeout_s: Seconds = 0.25
    request_timeout_s: Seconds = 2.0
    settle_timeout_s: Seconds = 20.0
    configuration: str = DEFAULT
    """A letter or a name of `harness.run.configurations`: what the options below are where they are None."""
    protocol: str | None = None
    """As which Tarantool the nodes write and speak; None: as the configuration. 2.6 knows no terms and no elections."""
    election_mode: str | None = None
    """off, voter, manual or candidate; or one for each node, separated by commas."""
    election_fencing: str = "soft"
    election_timeout_s: Seconds = 0.5
    rollback_on_timeout: bool | None = None
    """None: as the configuration; for other elections than its own, only where there are none."""
    synchronous_promote: bool | None = None
    """None: as the configuration. False: a PROMOTE takes effect when it is written, as shipped."""
    queue_max_size: str | None = None
    """Bytes of waiting transactions after which the owner lets new ones wait (None: no limit); or one for each node,
    separated by commas."""
    commit_wait: CommitWait = "complete"
    """When writes are answered: complete, submit and none are modes of the store; mixed: half of them complete,
    half at once. An answer that comes at once acknowledges nothing."""
    checkpoint_interval_s: Seconds | None = None
    """How often each node takes a snapshot; None: the node's own, longer than any run."""
    wal_mode: Literal["write", "fsync"] | None = None
    """Of real Tarantool: whether a write of its log waits for fsync(2); None: as shipped, it does not."""
    disk: Literal["node", "mounted"] = "node"
    """What lies under the nodes: their machine's disk, or one that is mounted under each of them
    (`harness.cluster.mounted_disk`)."""
    start: str | None = None
    """Stored logs that the nodes begin with (`harness.systems.qsync.starts`); None: empty disks."""
    node_options: tuple[str, ...] = ()
    """Options of single nodes that differ from the rest: `n2:election_timeout=0.8` (`harness.run.node_options`)."""
    mvcc: bool = True
    """False: nodes have no manager of versions, and every read sees what is prepared."""
    read: str | None = None
    """None: as the configuration; "mixed" is mostly that, and a few of every mode."""
    replica_reads: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.1
    """The share of reads that go to nodes which are not the owner."""
    overlap: Annotated[int, msgspec.Meta(ge=1, le=8)] = 1
    """How many faults may be at work at once."""
    calm_s: Annotated[float, msgspec.Meta(ge=0.1, le=60)] = 1.0
    """How long nothing is wrong between two faults, and between two scenes of holds, on average and in proportion."""
    least_ok: Count = 0
    """So many operations must succeed, else the run is no evidence, whatever share of the load they are."""
    node_cpus: Annotated[float, msgspec.Meta(ge=0.01, le=1024)] | None = None
    """How much of the machine's cores each node may use in the whole run (0.5: half of one); None: the cluster's usual.
    On docker and local."""
    node_memory_mib: Annotated[int, msgspec.Meta(ge=8, le=1 << 20)] | None = None
    """How much memory each node may use in the whole run; the kernel ends one that needs more."""
    stray_writes: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    """The share of writes that go to nodes which are not the owner: a correct store refuses them."""
    roaming: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    """The share of clients that read at one node after the other, for half a second each."""
    failing: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    """The share of writing transactions with a statement that must fail, in workloads that have several statements."""
    write_once: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    """The share of writes to a key that nothing else writes, in workloads that overwrite keys: no later write
    can hide that such a row was lost."""
    bugs: tuple[str, ...] = ()
    promise: str | None = None
    """A stricter model to judge by than what the system promises."""
    base_port: Annotated[int, msgspec.Meta(ge=0, le=65_000)] = 0
    """The first port to use; 0: any that are free."""
    inventory: str | None = None
    """For the cluster ssh: the file that names its hosts (`harness.cluster.ssh.inventory`)."""
    accept_new_host_keys: bool = False
    """Unknown hosts are trusted, and their keys written down."""
    node_from: str | None = None
    """The version that nodes start in (`harness.cluster.versions`); None: the one of this checkout."""
    node_to: str | None = None
    """The version that a rolling upgrade brings them to; None: the one of this checkout."""
    leader: Leadership | None = None
    """Whether one node leads for the whole run, an elected one, or none; None: as the configuration says."""
    code: str = ""
    """The version of the harness that made the plan."""
    drawn: Drawn | None = None

    def __post_init__(self) -> None:
        if isinstance(self.quorum, str):
            _check_formula(self.quorum)
        if self.quorum_size > self.nodes:
            raise ValueError(f"a quorum of {self.quorum} cannot be had with {self.nodes} nodes")
        if self.name == "latest":
            raise ValueError("the name 'latest' is taken: results/latest points to the newest run")
        if self.protocol not in (None, *PROTOCOLS):
            raise ValueError(f"unknown protocol {self.protocol!r}; try one of: {', '.join(PROTOCOLS)}")
        if self.election_fencing not in FENCING_MODES:
            raise ValueError(
                f"unknown fencing mode {self.election_fencing!r}; try one of: {', '.join(FENCING_MODES)}"
            )
        modes_of(self.election_mode or self.named_configuration.election_mode, self.nodes)
        if self.named_configuration.protocol == "2.6" and self.has_elections:
            raise ValueError(f"protocol 2.6 has no elections, got --election-mode {self.election_mode}")
        _ = self.queue_sizes
        voting = self.nodes - len(self.without_a_vote)
        if self.has_elections and voting < self.quorum_size:
            raise ValueError(f"{voting} nodes have a vote, and {self.quorum_size} are needed to lead")
        for node, options in parsed(self.node_options, self.node_names).items():
            quorum = options.get(QUORUM, self.quorum_size)
            if not isinstance(quorum, int) or not self.quorum_size <= quorum <= self.nodes:
                raise ValueError(
                    f"{node}'s quorum: expected {self.quorum_size}, as the others have, to {self.nodes}, got {quorum}"
                )
            if self.named_configuration.protocol == "2.6":
                raise ValueError(
                    f"protocol 2.6 has the same options on all nodes, got --node-option for {node}"
                )

    def options_of(self, node: str) -> dict[str, Value]:
        """What the node is set to when the run begins, by the names of `box.cfg`."""
        number = self.node_names.index(node)
        return {
            MODE: self.election_modes[number],
            FENCING: self.election_fencing,
            ELECTION_TIMEOUT: self.election_timeout_s,
            SYNCHRO_TIMEOUT: self.synchro_timeout_s,
            BEAT: self.replication_timeout_s,
            QUORUM: self.quorum_size,
            QUEUE_SIZE: self.queue_sizes[number],
            TIMEOUT_BEHAVIOUR: ROLLS_BACK if self.rolls_back else GOES_ON,
            CHECKPOINTS: self.checkpoint_interval_s or NEVER_S,
            MVCC: self.mvcc,
            SYNCHRONOUS_PROMOTE: self.promote_waits,
            LOG_QUEUE: LOG_QUEUE_BYTES,
            **parsed(self.node_options, self.node_names).get(node, {}),
        }

    @property
    def keeps_versions(self) -> bool:
        """Every node has MVCC from its start on: one without it refuses linearizable reads."""
        return all(self.options_of(node)[MVCC] for node in self.node_names)

    @property
    def queue_sizes(self) -> tuple[int, ...]:
        """Each node's maximum size of the queue in bytes, in the order of their names; 0: no limit."""
        return sizes_of(self.queue_max_size or "0", self.nodes)

    @property
    def submits(self) -> bool:
        """Some writes are answered before they are confirmed."""
        drawn = () if self.drawn is None else self.drawn.operations
        return self.commit_wait != "complete" or any(each.wait in SUBMITTING for each in drawn)

    @property
    def node_names(self) -> tuple[str, ...]:
        return tuple(f"n{number}" for number in range(1, self.nodes + 1))

    @property
    def quorum_size(self) -> int:
        return quorum_of(self.quorum, self.nodes)

    @property
    def is_majority(self) -> bool:
        """Any two quorums have a node in common."""
        return 2 * self.quorum_size > self.nodes

    @property
    def time_limit_ns(self) -> int:
        return int(self.time_limit_s * SECOND_NS)

    @property
    def named_configuration(self) -> NamedConfiguration:
        return with_protocol(configuration(self.configuration), self.protocol)

    @property
    def election_modes(self) -> tuple[str, ...]:
        """Each node's, in the order of their names."""
        return modes_of(self.election_mode or self.named_configuration.election_mode, self.nodes)

    @property
    def has_elections(self) -> bool:
        return any(mode != "off" for mode in self.election_modes)

    @property
    def voters(self) -> frozenset[str]:
        """The nodes that never lead: where there are elections, those without a part in them too."""
        return self._in_mode("voter") | self.without_a_vote

    @property
    def without_a_vote(self) -> frozenset[str]:
        """Nodes that take no part in elections: their PROMOTE would ask for no votes."""
        return self._in_mode("off") if self.has_elections else frozenset()

    @property
    def candidates(self) -> frozenset[str]:
        """The nodes that stand for election by themselves."""
        return self._in_mode("candidate")

    def _in_mode(self, wanted: str) -> frozenset[str]:
        modes = zip(self.node_names, self.election_modes, strict=True)
        return frozenset(node for node, mode in modes if mode == wanted)

    @property
    def needs_operator(self) -> bool:
        """No node leads unless it is asked to, at least while the candidates are not members: the harness asks."""
        if self.leader is not None:
            return False
        may_all_leave = self.changes_members and "manual" in self.election_modes
        return self.fails_over and (not self.candidates or may_all_leave)

    @property
    def fails_over(self) -> bool:
        """The owner may change in the middle of the run, or there is none."""
        if self.leader is not None:
            return self.leader != "fixed"
        if self.has_elections or "failover" in self.faults:
            return True
        if self.drawn is not None and any(fault.does == "failover" for fault in self.drawn.faults):
            return True
        return self.named_configuration.election_mode == "off" and self.named_configuration.fails_over

    @property
    def changes_members(self) -> bool:
        """Nodes may leave and join in the middle of the run."""
        return self._does(MEMBERSHIP, ("membership", "remove-node", "add-node", "replace-node"))

    @property
    def changes_quorum(self) -> bool:
        """The quorum may be another in the middle of the run, at other moments on each node."""
        named = {"quorum", *RECONFIGURING} & {*self.faults}
        return (
            bool(named) if self.drawn is None else any(QUORUM in each.options for each in self.drawn.faults)
        )

    @property
    def changes_options(self) -> bool:
        """Any option may be another in the middle of the run."""
        if self.drawn is not None:
            return any(fault.options for fault in self.drawn.faults)
        return bool({"quorum", "timeouts", *RECONFIGURING} & {*self.faults})

    @property
    def writes_asynchronously(self) -> bool:
        """Clients write to an asynchronous space, too."""
        return self.workload in ASYNCHRONOUS_WORKLOADS

    @property
    def fails_disks(self) -> bool:
        """A disk may be without power, slow, full or broken in the middle of the run."""
        return self._does(DISK_ITSELF, DISK_FAULTS)

    @property
    def loses_power(self) -> bool:
        """Nodes may lose what they have not synced."""
        return self._does(frozenset[Does](("power",)), POWER_FAULTS)

    def _does(self, does: frozenset[Does], names: tuple[str, ...]) -> bool:
        if self.drawn is not None:
            return any(fault.does in does for fault in self.drawn.faults)
        return any(name in names for name in self.faults)

    @property
    def rolls_back(self) -> bool:
        if self.rollback_on_timeout is not None:
            return self.rollback_on_timeout
        named = self.named_configuration
        same_kind = (named.election_mode == "off") != self.has_elections
        return named.rollback_on_timeout if same_kind else not self.has_elections

    @property
    def promote_waits(self) -> bool:
        """PROMOTE is itself an entry."""
        if not self.has_elections:
            return False
        if self.synchronous_promote is not None:
            return self.synchronous_promote
        named = self.named_configuration
        return named.synchronous_promote or named.election_mode == "off"

    @property
    def letter(self) -> str:
        """The row of promises that the plan comes under, whatever its configuration is called."""
        return letter_of(
            protocol=self.named_configuration.protocol,
            has_elections=self.has_elections,
            fails_over=self.fails_over,
            terms_in_acks=self.named_configuration.terms_in_acks,
            synchronous_promote=self.promote_waits,
            rollback_on_timeout=self.rolls_back,
        )

    @property
    def read_mode(self) -> str:
        if self.read is not None:
            return self.read
        if not self.keeps_versions:
            return "dirty"
        if self.named_configuration.election_mode == "off" and self.has_elections:
            return "linearizable"
        if self.named_configuration.election_mode != "off" and not self.has_elections:
            return "read-confirmed"
        return self.named_configuration.read

    @property
    def heartbeat_ns(self) -> int:
        return int(self.replication_timeout_s * SECOND_NS)

    def streams(self) -> Streams:
        return Streams(self.seed)


def fault_names(given: Any) -> Any:
    """The names that a person wrote, separated by commas or as a list. ValueError for no name, or "none" among more.

    What is neither is given back, for the form of a plan to refuse.
    """
    if isinstance(given, str):
        given = [name.strip() for name in given.split(",") if name.strip()]
        if not given:
            raise ValueError(
                "expected names, separated by commas, and got no name; a run without faults has: none"
            )
    if isinstance(given, list | tuple) and "none" in given and len(set(map(str, given))) > 1:
        raise ValueError(f"none is for no fault at all, and stands alone, got {', '.join(map(str, given))}")
    return given


def to_json(plan: Plan) -> bytes:
    """One field a line, and in the drawn-out form one fault or operation a line."""
    fields = msgspec.to_builtins(plan)
    drawn = fields.pop("drawn")
    lines = [f" {_text(key)}: {_text(value)}" for key, value in fields.items()]
    if drawn is not None:
        parts = [f'  "{part}": [\n{_rows(drawn[part])}\n  ]' for part in ("faults", "operations")]
        lines.append(' "drawn": {\n' + ",\n".join(parts) + "\n }")
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _rows(rows: list[object]) -> str:
    return ",\n".join(f"   {_text(row)}" for row in rows)


def from_json(data: bytes, source: str) -> Plan:
    """Read a plan; WrongUse says what is wrong with it, in one line that names `source`."""
    document: Any = None
    try:
        document = msgspec.json.decode(data)
        return msgspec.json.decode(data, type=Plan)
    except (ValueError, RecursionError) as error:  # every error of msgspec is a ValueError
        told = in_words(error, document, Plan)
        raise WrongUse(
            f"{source}: not a plan: {told}; try: qsync run --write-plan FILE writes one"
        ) from error


def read(path: Path) -> Plan:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise WrongUse(
            f"cannot read the plan {path}: {error.strerror}; try: qsync run --write-plan {path}"
        ) from error
    return from_json(data, str(path))
