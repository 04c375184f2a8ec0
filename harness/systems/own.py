"""A store of one's own under test: a Python file that says how a node of it is started.

    ./qsync run --system ./mystore.py

The file has a name `SYSTEM`, most simply an `OwnStore`. Its nodes answer the calls of `harness.systems.qsync.calls`
over IPROTO, or it brings a client of its own (`harness.clients.client`). `qsync.status` answers a map in which `role`
is "owner" on the node that takes writes; when a node is ready it prints one line, `{"ready": true, "port": N}`.
`docs/mystore.py` is an example; `stores/http_store.py` is one with a client library
(docs/put-your-store-under-test.md). A store that is asked by a library prints nothing: it is ready when it says its
state.

A package that is installed in .venv may name such a `SYSTEM` as an entry point of the group `qsync.systems`:

    [project.entry-points."qsync.systems"]
    mystore = "mypackage.store:SYSTEM"

Then it is `--system mystore`.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import metadata
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec

from checkers.check import Check
from checkers.history.faults import MAY_END_NODES
from harness.clients.client import Client, LibraryClient
from harness.clients.operations import MEMBER_CHANGES, AddMember, Done, Dump, MemberChange, RemoveMember
from harness.clients.wire import ClientWire
from harness.cluster.performing import performing
from harness.cluster.place import Command, Place, node_host
from harness.cluster.protocol import READY_WITHIN_S, Cluster, HasAddresses
from harness.errors import ClusterError, WrongUse
from harness.faults.abilities import ALL_ABILITIES, Ability
from harness.faults.membership import Membership
from harness.plan.expectations import MIXED, READ_MIXES, Expectations
from harness.plan.plan import SECOND_NS, Leadership, Options, Plan
from harness.plan.promise import CLAUSES, FINAL_STATE, Promise, must_be_promises
from harness.systems.iproto_wire import IPROTO
from harness.systems.parts import Members, Reports
from harness.systems.qsync.calls import CALLS
from harness.systems.qsync.promises import PROMISES
from harness.systems.status import Statuses
from harness.systems.system import System
from nodes.host.systems import Hosted, NoSystem
from nodes.host.systems import system_of as hosted_by
from nodes.kernel.node import Node
from nodes.kernel.outbox import Durability

READY_WITHIN_S_MAX = 3_600
SET_UP_TIMEOUT_NS = 10 * SECOND_NS
MEMBERS_TIMEOUT_NS = 3 * SECOND_NS
OPERATOR_PROCESS = -2
POLL_NS = SECOND_NS // 50
CONFIGURATION = "C"
NAME = "SYSTEM"
LED: Mapping[Leadership, str] = {"fixed": "one owner", "elected": "an elected leader", "none": "no leader"}
GROUP = "qsync.systems"
WHY = (
    "each answer but a replica's has its place in one order of all, and shows what was acknowledged before it"
)
IN_A_PROCESS = "a store of one's own that brings no node cannot run in the simulator; try: --cluster local"

RELAYED = ("local", "ssh")
"""Clusters on which a node is dialed at other addresses by each of its peers."""


class OwnOptions(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings that a node of the store gets."""

    quorum: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=31)] | None,
        msgspec.Meta(description="Nodes that must have a write, the leader included."),
    ] = None
    """None: a majority."""
    read: Annotated[
        str | None, msgspec.Meta(description="Read mode: linearizable, read-confirmed, dirty or mixed.")
    ] = None
    """None: linearizable where another node may lead by now, else read-confirmed."""

    def check(self, plan: Plan) -> None:
        if self.quorum is not None and self.quorum > plan.nodes:
            raise ValueError(f"a quorum of {self.quorum} cannot be had with {plan.nodes} nodes")
        # In another mode an owner's reads are promised nothing, and would not be judged.
        if self.read not in (None, *(known := (*READ_MIXES[MIXED][0], *READ_MIXES))):
            raise ValueError(f"unknown read mode {self.read!r}; try one of: {', '.join(known)}")

    def expectations(self, plan: Plan) -> Expectations:
        # super() would be that of the class before msgspec made it anew.
        expected = Options.expectations(self, plan)
        return replace(
            expected, quorum=self.quorum, read_mode=expected.read_mode if self.read is None else self.read
        )


class OwnReports(Reports):
    def untold(self, statuses: Statuses) -> tuple[str, ...]:
        """Nodes without a position. One that is alone follows no other node."""
        silent = [node for node, status in statuses.items() if status and status.get("vclock") is None]
        return tuple(silent) if len(statuses) > 1 else ()


@dataclass(frozen=True, slots=True)
class OwnStore(System):
    """Implements `harness.systems.System` for a store of which nothing is known but how to start and to ask it.

    `start` gives the command of a node at a `Place`; `promised` are fields of `harness.plan.promise.Promise` in
    which the store promises something else than configuration C ("" for nothing), by the words of `CHOICES` there.
    """

    reports: ClassVar = OwnReports()

    summary: str
    start: Command | None = None
    hosted: str = ""
    """Instead of `start`, for nodes that are written for `nodes.host`: "module:function" or "file.py:function",
    from the bytes of a configuration to a `nodes.host.systems.Hosted`. They run in the simulator, too, if the wire can
    be simulated."""
    promised: Mapping[str, str] = field(default_factory=dict)
    able: tuple[Ability, ...] = ()
    """The abilities of its nodes that faults need (`harness.faults.abilities`): ("clock",) if they report their wall
    clock and can be given another."""
    leader: Leadership = "fixed"
    """One for the whole run, an "elected" one, or "none": then every node takes writes. The status of a leader has
    `role` "owner"."""
    options: type[Options] = OwnOptions
    client: Client = CALLS
    """How its operations are said; by `qsync.transaction` (`harness.systems.qsync.calls`) if nothing else is given."""
    wire: ClientWire | None = IPROTO
    """A client that is a library has none."""
    packages: tuple[str, ...] = ()
    """Debian packages that its nodes need in containers: ("etcd-server",)."""
    image: str = ""
    """The Docker image that its nodes in containers run in, in place of one with `packages`: "mystore:dev". The command
    of `start` takes the place of its entrypoint, as root."""
    files: tuple[str, ...] = ()
    """Files and folders of this machine that its nodes need in containers, by absolute paths: (__file__,)."""
    ready_within_s: float = READY_WITHIN_S
    """How long a node may take until its status gets an answer: at its start, and behind each fault."""
    needs_one_address_list: bool = False
    """Every node must know all nodes by the same addresses, as members of etcd do."""
    cannot_join_says: tuple[str, ...] = ()
    """Words in the last line of a new node that ends, with exit 1, because no member could take it in."""
    syncs: bool = True
    """False: its nodes acknowledge a write before their disks have it. Then a run in which nodes lose power promises
    neither acknowledged writes nor equal data, and a node may refuse to start on what is left of its data."""
    may_end_under: tuple[str, ...] = ()
    """Faults under which a node may end by itself, as `harness.plan.promise.Promise` has them: ("disk-error",)."""

    def __post_init__(self) -> None:
        must_be_promises(self.promised)
        for name in ("able", "packages", "files", "cannot_join_says", "may_end_under"):
            texts = getattr(self, name)
            # Each letter of a text would count: any last words would have one of those that say "cannot join".
            if not isinstance(texts, tuple | list) or not all(isinstance(text, str) for text in texts):
                hint = f"; try: ({texts!r},)" if isinstance(texts, str) else ""
                raise WrongUse(f"{name} is a tuple of texts; got {texts!r}{hint}")
        image: object = self.image
        if not isinstance(image, str):
            raise WrongUse(f"image is the name of a Docker image; got {image!r}")
        if image and self.packages:
            raise WrongUse(f"an image is taken as it is; got image {image!r} and packages; try: one of them")
        for name, choices in (("able", ALL_ABILITIES), ("may_end_under", MAY_END_NODES)):
            if unknown := [word for word in getattr(self, name) if word not in choices]:
                raise WrongUse(f"{name} is of {', '.join(sorted(choices))}; got {unknown[0]!r}")
        within_s: object = self.ready_within_s
        if type(within_s) not in (int, float) or not 0 < self.ready_within_s <= READY_WITHIN_S_MAX:
            raise WrongUse(
                f"ready_within_s is a number of seconds above 0, up to {READY_WITHIN_S_MAX}; got {within_s!r}"
            )
        if type(self.syncs) is not bool:
            raise WrongUse(f"syncs is True or False; got {self.syncs!r}")
        if not isinstance(self.hosted, str):
            raise WrongUse(f"hosted is a text, as 'module:function'; got {self.hosted!r}")
        if self.leader not in LED:
            raise WrongUse(f"leader is one of {', '.join(map(repr, LED))}; got {self.leader!r}")
        client: Any = self.client
        if not (isinstance(client, Client) and isinstance(client.speaks, Set)):
            raise WrongUse(f"client has connect or converse, and speaks a set of operations; got {client!r}")
        options: Any = self.options
        if not (isinstance(options, type) and issubclass(options, Options)):
            raise WrongUse(f"options is a class, as harness.systems.own.OwnOptions; got {options!r}")
        if common := {*options.__struct_fields__} & {*Plan.__struct_fields__}:
            raise WrongUse(f"options has a field {min(common)!r}, as every plan has; try: another name")
        if isinstance(self.client, LibraryClient):
            object.__setattr__(self, "wire", None)
        elif self.wire is None:
            raise WrongUse("a client of messages needs a wire; got None")

    def completed(self, plan: Plan) -> Plan:
        return msgspec.structs.replace(plan, leader=self.leader)

    def validate(self, plan: Plan) -> None:
        if self.start is None and not self.hosted:
            raise WrongUse("expected an OwnStore with start or hosted, which make its nodes; got neither")
        if plan.cluster == "sim" and not self.hosted:
            raise WrongUse(IN_A_PROCESS)
        if self.needs_one_address_list and plan.cluster in RELAYED and plan.nodes > 1:
            raise WrongUse(
                f"the nodes of this store need one list of addresses, and on --cluster {plan.cluster} each dials a "
                "relay of its own; try: --cluster docker"
            )
        if plan.bugs:
            raise WrongUse(f"a store of one's own has no seeded bugs, got {plan.bugs[0]!r}")

    def command(self, plan: Plan) -> Command:
        if self.start is None:
            return node_host(self.hosted, self.durability(plan))
        return partial(_started_by, self.start)

    @property
    def abilities(self) -> frozenset[Ability]:
        """Members can change if the client speaks of that; the leader is asked to change them."""
        is_asked = self.leader != "none" and self.client.speaks >= MEMBER_CHANGES
        return frozenset((*self.able, *(("members", "newcomers") if is_asked else ())))

    @property
    def are_dialed_unready(self) -> bool:
        """A store with a library client is asked whether it is ready; it need not print its port."""
        return self.wire is None

    def configurations(self, plan: Plan, spaces: tuple[str, ...]) -> dict[str, bytes]:
        """The content of the file at `Place.config`."""
        return {name: self.configuration_of(plan, spaces, name) for name in plan.node_names}

    def configuration_of(
        self, plan: Plan, spaces: tuple[str, ...], node: str, joined: Membership | None = None
    ) -> bytes:
        return msgspec.json.encode(
            {
                "name": node,
                "nodes": plan.node_names if joined is None else joined.present,
                "owner": self.owner(plan),
                "quorum": plan.quorum_size if joined is None else joined.quorum,
                "spaces": spaces,
                **({"joins": True} if joined is not None else {}),
            }
        )

    def node_makers(self, plan: Plan, spaces: tuple[str, ...]) -> dict[str, Callable[[], Node]]:
        if not self.hosted:
            raise WrongUse(IN_A_PROCESS)
        return {name: self.maker(data) for name, data in self.configurations(plan, spaces).items()}

    def maker(self, configuration: bytes) -> Callable[[], Node]:
        try:
            make = hosted_by(self.hosted, {})
        except NoSystem as error:
            raise WrongUse(str(error)) from error
        return partial(_made_by, make, configuration)

    def durability(self, plan: Plan) -> Durability:
        return "synced" if self.syncs else "written"

    def owner(self, plan: Plan) -> str:
        return "" if self.leader == "none" else plan.node_names[0]

    def can_lead(self, plan: Plan) -> tuple[str, ...]:
        return plan.node_names if self.leader == "elected" else (plan.node_names[0],)

    async def promote(self, node: str, cluster: Cluster) -> str | None:
        return "a store of one's own keeps its owner"

    def owner_now(self, statuses: Statuses) -> str | None:
        owners = [node for node, status in statuses.items() if status and status.get("role") == "owner"]
        return owners[0] if len(owners) == 1 or (owners and self.leader == "fixed") else None

    async def set_up(self, plan: Plan, cluster: Cluster) -> None:
        """All nodes answer, one of them is the owner, and the positions that they report are equal."""
        deadline_ns = cluster.now_ns() + SET_UP_TIMEOUT_NS
        while not self.is_settled(statuses := {node: await cluster.status(node) for node in plan.node_names}):
            if cluster.now_ns() > deadline_ns:
                led = "" if self.leader == "none" else " with one owner among them"
                told = any(status and status.get("vclock") is not None for status in statuses.values())
                equal = " and equal positions (vclock)" if told else ""
                raise ClusterError(f"the nodes of the store did not all answer{led}{equal} in 10 s")
            await cluster.sleep_until(cluster.now_ns() + POLL_NS)

    def is_settled(self, statuses: Statuses) -> bool:
        """All answer, one of them leads, and the positions that they report are equal."""
        known = [status for status in statuses.values() if status is not None]
        vclocks = [status["vclock"] for status in known if status.get("vclock") is not None]
        same = all(vclock == vclocks[0] for vclock in vclocks)
        is_led = self.leader == "none" or self.owner_now(statuses) is not None
        return len(known) == len(statuses) and same and is_led

    @property
    def members(self) -> OwnMembers:
        return OwnMembers(self)

    def promise(self, plan: Plan) -> Promise:
        """As configuration C, without the rollback of an isolated owner, which is known of our nodes only.

        Where the leader may change, a read that a node answers alone is promised nothing: the client gives it the role
        "replica".
        """
        has_dumps = Dump in self.client.speaks
        others = (f"; {CLAUSES[name].name}: {word or 'no promise'}" for name, word in self.promised.items())
        promise = PROMISES[CONFIGURATION].but(
            configuration=f"{self.summary}, {LED[self.leader]}",
            why="".join((WHY, *others)),
            isolated_owner_rolls_back=False,
            may_end_under=self.may_end_under,
            has_leader=self.leader != "none",
            has_dumps=has_dumps,
            final_state=PROMISES[CONFIGURATION].model(FINAL_STATE) if has_dumps else "",
        )
        if self.leader != "fixed":
            promise = promise.but(leaders="", logs="", replica_reads="")
        promise = promise.but(**self.promised)  # type: ignore[arg-type]  # models of `CHOICES`: texts
        return promise if self.syncs or not plan.loses_power else promise.without_power("syncs=False")

    def checks(self, plan: Plan) -> tuple[Check, ...]:
        return ()

    def bugs(self) -> Mapping[str, str]:
        return {}


def _made_by(make: Callable[[bytes], Hosted], configuration: bytes) -> Node:
    """A simulated node. WrongUse if the store's function makes none."""
    try:
        hosted: Any = make(configuration)
    except (Exception, SystemExit) as error:
        raise WrongUse(f"hosted of the store raised {type(error).__name__}: {error}") from error
    if not isinstance(hosted, Hosted):
        raise WrongUse(f"hosted gives a nodes.host.systems.Hosted; got {hosted!r}")
    return hosted.node


def _started_by(start: Command, place: Place) -> tuple[str, ...]:
    """The command of a node. WrongUse if the store's file gives none."""
    try:
        words: Any = start(place)
    except (Exception, SystemExit) as error:
        raise WrongUse(f"start of the store raised {type(error).__name__}: {error}") from error
    match words:
        case [_, *_] if all(isinstance(word, str) and "\0" not in word for word in words):
            return tuple(words)
    raise WrongUse(f'start gives the command of a node, ("program", "argument", …); got {words!r}')


@dataclass(frozen=True, slots=True)
class OwnMembers(Members):
    store: OwnStore
    are_admitted_first: bool = True

    def newcomer(
        self,
        plan: Plan,
        spaces: tuple[str, ...],
        node: str,
        generations: Mapping[str, int],
        members: Membership,
    ) -> bytes:
        return self.store.configuration_of(plan, spaces, node, members)

    async def admit(self, owner: str, node: str, cluster: Cluster) -> str | None:
        address = cluster.address(node) if isinstance(cluster, HasAddresses) else ""
        return await self._change(AddMember(node, address), owner, cluster)

    async def remove(self, owner: str, number: int, cluster: Cluster) -> str | None:
        return await self._change(RemoveMember(number), owner, cluster)

    async def _change(self, change: MemberChange, owner: str, cluster: Cluster) -> str | None:
        client = performing(self.store.client, cluster)
        outcome = await client.perform(OPERATOR_PROCESS, owner, change, MEMBERS_TIMEOUT_NS)
        return None if isinstance(outcome, Done) else outcome.error

    def cannot_join(self, how: str, last_words: Sequence[str]) -> str:
        last = next((line for line in reversed(last_words) if line.strip()), "")
        return last if how == "exit 1" and any(words in last for words in self.store.cannot_join_says) else ""


def load(path: str) -> System:
    """The `SYSTEM` of a Python file; WrongUse if there is none."""
    if not os.path.isfile(path):  # noqa: PTH113  # of a name that is too long, `is_file` raises OSError
        raise WrongUse(
            f"there is no file {path}; expected a Python file with a {NAME}, as stores/http_store.py"
        )
    spec = importlib.util.spec_from_file_location(f"own_store_{Path(path).stem}", path)
    assert spec is not None and spec.loader is not None, path
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    with _said(path):
        spec.loader.exec_module(module)
    return _a_system(getattr(module, NAME, None), f"{path} has no {NAME}")


def entry_points() -> dict[str, EntryPoint]:
    """Those of packages that are installed here, by name."""
    return {point.name: point for point in metadata.entry_points(group=GROUP)}


def load_entry_point(name: str) -> System:
    """Raises WrongUse; KeyError if no package has one of that name."""
    point = entry_points()[name]
    where = f"the entry point {name} ({point.value})"
    with _said(where):
        system = point.load()
    return _a_system(system, f"{where} is no system")


@contextmanager
def _said(where: str) -> Iterator[None]:
    """WrongUse for whatever ends the code that is not ours: a program of its own ends by SystemExit."""
    try:
        yield
    except WrongUse as error:
        raise WrongUse(f"{where}: {error.message}") from error
    except (Exception, SystemExit) as error:
        raise WrongUse(f"{where} cannot be loaded: {type(error).__name__}: {error}") from error


def _a_system(system: Any, otherwise: str) -> System:
    if not isinstance(system, System):
        raise WrongUse(f"{otherwise}; expected harness.systems.own.OwnStore or another System")
    return system
