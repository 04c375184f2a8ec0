"""A plan: everything that decides a run, as one frozen value with JSON in and out.

A plan has one named random stream per worker, fault and link (`streams`), so that one more draw in one place shifts
no other. Its drawn-out form (`harness.run.draw`) holds every fault and every operation as a line of its own: that is
what a shrinker edits and what a regression test stores.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from harness.faults.fault import Count, Does, Fault
from harness.faults.membership import Membership, quorum_of
from harness.faults.node_options import CHANGE_OPTIONS, RECONFIGURING, Value
from harness.faults.overlap import MEMBERSHIP
from harness.plan.expectations import COMPLETE, Expectations
from nodes.kernel.chance import Streams

Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]
LEAST = 1e-9
"""The least rate, and the least time in seconds: a nanosecond."""
SEEDS_END = 1 << 53
"""All seeds are below: programs that read JSON's numbers as floats keep them exact."""
Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")]

SECOND_NS = 1_000_000_000
USUAL_LASTING_S = 1.8
WORKERS_MAX = 10_000
CONNECTION_NAME = "client"
"""The clients' end in the names of links."""
SUBMITTING = ("submit", "none")
"""The commit wait modes in which an answer is no acknowledgement."""
POWER_FAULTS = ("lose-unsynced", "power-owner", "power-one", "power-all")
DISK_FAULTS = (*POWER_FAULTS, "slow-disk", "full-disk", "io-error")
DISK_ITSELF: frozenset[Does] = frozenset(("power", "slow-fsync", "disk-error"))
"""Faults of the disk under a node, rather than of its files."""
USUAL, ALL = "default", "all"
"""All faults that a correct store survives. "default" begins with a partition, a crash and a wrong clock, in any order
(`harness.plan.schedule`); a plan that names no faults has it."""
LEAVES_OUT = "-"
"""In front of the name of a fault: "default" and "all" are to be without it."""
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
    value: Any = None  # JSON's door; see `harness.workloads.generators.generator.Value`
    node: str = ""
    mode: str | None = None
    wait: str | None = None
    """A commit wait mode: complete, submit or none; None: the store's own."""

    def __post_init__(self) -> None:
        if isinstance(self.value, _COMPOUND):
            msgspec.structs.force_setattr(self, "value", _frozen(self.value))


_COMPOUND = (list, tuple, dict)


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


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of a plan that concern its system alone. A system with options of its own has a subclass.

    A field's `msgspec.Meta` is what the command line shows: `description` is its help text.
    """

    decides_operations: ClassVar[tuple[str, ...]] = ()
    """The fields that the operations of a drawn-out plan were drawn by."""

    if_absent: ClassVar[Mapping[str, Any]] = {}
    """The meaning of a field that a stored plan lacks, where it is older than the field and the default is another."""

    def check(self, plan: Plan) -> None:
        """ValueError if these options and the rest of the plan do not fit."""

    def expectations(self, plan: Plan) -> Expectations:
        """The meaning of these options, for code that does not know the system."""
        fails_over = plan.leader not in (None, "fixed")
        return Expectations(
            fails_over=fails_over, read_mode="linearizable" if fails_over else "read-confirmed"
        )

    def idle(self, plan: Plan, said: Collection[str]) -> str:
        """Why one of the fields that a person named says nothing in this plan; "" if all do."""
        return ""


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """One run. Times are in seconds here because people write them; everything inside counts nanoseconds."""

    format: Literal["qsync-plan"] = "qsync-plan"
    version: Literal[3] = 3
    name: Name = "run"
    system: str = "qsync"
    cluster: str = "local"
    workload: str = "register"
    faults: tuple[str, ...] = (USUAL,)
    nodes: Annotated[int, msgspec.Meta(ge=1, le=31)] = 3
    seed: Annotated[int, msgspec.Meta(ge=0, lt=SEEDS_END)] = 0
    time_limit_s: Seconds = 20.0
    rate: Annotated[float, msgspec.Meta(gt=0, le=1_000_000)] = 300.0
    """Operations per second of all workers together."""
    workers: Annotated[int, msgspec.Meta(ge=1, le=WORKERS_MAX)] = 10
    request_timeout_s: Seconds = 2.0
    settle_timeout_s: Seconds = 20.0
    disk: Literal["node", "mounted"] = "node"
    """The disk under the nodes: their machine's, or one that is mounted under each of them
    (`harness.cluster.mounted_disk`)."""
    replica_reads: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.1
    """The share of reads that go to nodes which are not the owner."""
    overlap: Annotated[int, msgspec.Meta(ge=1, le=8)] = 1
    """How many faults may be at work at once."""
    calm_s: Annotated[float, msgspec.Meta(ge=0.1, le=60)] = 1.0
    """How long nothing is wrong between two faults, and between two scenes of holds, on average and in proportion."""
    lasting_s: Annotated[float, msgspec.Meta(ge=0.1, le=600)] = USUAL_LASTING_S
    """How long a fault lasts, on average and in proportion; scenes of holds have their own times."""
    least_ok: Count = 0
    """So many operations must succeed, else the run is inconclusive, whatever share of the load they are."""
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
    deletes: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    """The share of writes to the other keys that are deletions, in workloads that know them
    (`harness.workloads.workload.Workload.shares`)."""
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
    options: Options = Options()
    """The system's own: an instance of its `options` (`harness.systems.plans` makes plans)."""
    drawn: Drawn | None = None

    def __post_init__(self) -> None:
        if self.name == "latest":
            raise ValueError("the name 'latest' is taken: results/latest points to the newest run")
        for name in ("time_limit_s", "rate", "request_timeout_s", "settle_timeout_s"):
            if getattr(self, name) < LEAST:
                raise ValueError(f"Expected `float` >= {LEAST} - at `$.{name}`")  # in the words of msgspec
        self.options.check(self)

    @cached_property
    def expectations(self) -> Expectations:
        """The facts that code without knowledge of the system needs about it."""
        return self.options.expectations(self)

    def options_of(self, node: str) -> Mapping[str, Value]:
        """The options of the node when the run begins; empty if the system does not say."""
        return self.expectations.settings.get(node, {})

    @property
    def submits(self) -> bool:
        """Some writes are answered before they are confirmed."""
        drawn = () if self.drawn is None else self.drawn.operations
        return self.commit_wait != COMPLETE or any(each.wait in SUBMITTING for each in drawn)

    @property
    def node_names(self) -> tuple[str, ...]:
        return tuple(f"n{number}" for number in range(1, self.nodes + 1))

    @property
    def quorum(self) -> int | str | None:
        """As the user wrote it: a number, a formula, or nothing."""
        return self.expectations.quorum

    @property
    def heartbeat_ns(self) -> int:
        return self.expectations.heartbeat_ns

    @property
    def has_elections(self) -> bool:
        return self.expectations.has_elections

    @property
    def fails_over(self) -> bool:
        return self.expectations.fails_over

    @property
    def needs_operator(self) -> bool:
        return self.expectations.needs_operator

    @property
    def voters(self) -> frozenset[str]:
        return self.expectations.voters

    @property
    def without_a_vote(self) -> frozenset[str]:
        return self.expectations.without_a_vote

    @property
    def candidates(self) -> frozenset[str]:
        return self.expectations.candidates

    @property
    def keeps_versions(self) -> bool:
        return self.expectations.keeps_versions

    @property
    def read_mode(self) -> str:
        return self.expectations.read_mode

    @property
    def commit_wait(self) -> str:
        return self.expectations.commit_wait

    @property
    def quorum_size(self) -> int:
        return quorum_of(self.expectations.quorum, self.nodes)

    @property
    def time_limit_ns(self) -> int:
        return int(self.time_limit_s * SECOND_NS)

    @property
    def members_at_first(self) -> Membership:
        first = Membership.at_first(self.node_names, self.quorum, self.voters, self.without_a_vote)
        late = self.expectations.late
        return first.without(*self.node_names[-late:]) if late else first

    @property
    def changes_members(self) -> bool:
        """Nodes may leave and join in the middle of the run."""
        return self._does(MEMBERSHIP, ("membership", "remove-node", "add-node", "replace-node"))

    @property
    def changes_quorum(self) -> bool:
        """The quorum may be another in the middle of the run, at other moments on each node."""
        if self.drawn is not None:
            return any(self.expectations.decisive.about_quorum(each.options) for each in self.drawn.faults)
        return bool({"quorum", *RECONFIGURING} & {*self.faults})

    @property
    def changes_options(self) -> bool:
        """Any option may be another in the middle of the run."""
        if self.drawn is not None:
            return any(fault.options for fault in self.drawn.faults)
        return bool({*CHANGE_OPTIONS} & {*self.faults})

    @property
    def asks_for_all(self) -> bool:
        """Faults that this machine cannot do may be left out, but for those that the plan names."""
        return bool({USUAL, ALL} & {*self.faults})

    @property
    def fails_disks(self) -> bool:
        """A fault that the plan names or drew takes power from disks, or slows or breaks them. "all" names none."""
        return self._does(DISK_ITSELF, DISK_FAULTS)

    @property
    def loses_power(self) -> bool:
        """A fault that the plan names or drew lets nodes lose what they have not synced. "all" names none."""
        return self._does(frozenset[Does](("power",)), POWER_FAULTS)

    def _does(self, does: frozenset[Does], names: tuple[str, ...]) -> bool:
        if self.drawn is not None:
            return any(fault.does in does for fault in self.drawn.faults)
        return any(name in names for name in self.faults)

    def changed(self, **fields: Any) -> Plan:
        """With these fields, which may be options of its system."""
        own = {name: fields.pop(name) for name in self.options.__struct_fields__ if name in fields}
        options = msgspec.structs.replace(self.options, **own) if own else self.options
        return msgspec.structs.replace(self, options=options, **fields)

    def streams(self) -> Streams:
        return Streams(self.seed)


def fault_names(given: Any) -> Any:
    """The names that a person wrote, separated by commas or as a list. ValueError for no name, or "none" among more.

    A value that is neither is returned unchanged, and the form of a plan refuses it.
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
