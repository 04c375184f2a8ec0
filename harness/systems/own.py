"""A store of one's own under test: a Python file that says how a node of it is started.

    ./qsync run --system ./mystore.py

The file has a name `SYSTEM`, most simply an `OwnStore`. Its nodes answer the calls of `harness.clients.transaction`
over IPROTO, and `qsync.status` with a map in which `role` is "owner" on the node that takes writes; when a node is
ready it prints one line, `{"ready": true, "port": N}`. `docs/mystore.py` is an example.

A package that is installed in .venv may name such a `SYSTEM` as an entry point of the group `qsync.systems`:

    [project.entry-points."qsync.systems"]
    mystore = "mypackage.store:SYSTEM"

Then it is `--system mystore`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import metadata
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import msgspec

from checkers.wal.record import LogRules
from harness.check import Check
from harness.cluster.place import Command
from harness.errors import ClusterError, WrongUse
from harness.faults.abilities import Ability
from harness.plan import SECOND_NS, Plan
from harness.protocols import Cluster
from harness.systems.promises import PROMISES, Promise
from harness.systems.system import System
from nodes.kernel.node import Node
from nodes.kernel.outbox import Durability

SET_UP_TIMEOUT_NS = 10 * SECOND_NS
POLL_NS = SECOND_NS // 50
CONFIGURATION = "C"
NAME = "SYSTEM"
GROUP = "qsync.systems"

Statuses = Mapping[str, Mapping[str, object] | None]


@dataclass(frozen=True, slots=True)
class OwnStore:
    """Implements `harness.systems.System` for a store with one owner that stays the same for the run.

    `start` gives the command of a node at a `Place`; `promised` are fields of `harness.systems.promises.Promise` in
    which the store promises something else than configuration C ("" for nothing).
    """

    summary: str
    start: Command
    promised: Mapping[str, str] = field(default_factory=dict)
    able: tuple[Ability, ...] = ()
    """What its nodes do that faults may count on (`harness.faults.abilities`): ("clock",) if they tell their wall clock
    and take another."""
    may_end_under: tuple[str, ...] = ()
    """Faults under which a node may end by itself, as `harness.systems.promises.Promise` has them: ("disk-error",)."""

    def completed(self, plan: Plan) -> Plan:
        return msgspec.structs.replace(plan, configuration=CONFIGURATION)

    def validate(self, plan: Plan) -> None:
        if plan.cluster == "sim":
            raise WrongUse("a store of one's own cannot run in the simulator; try: --cluster local")
        if plan.wal_mode is not None:
            raise WrongUse("--wal-mode is real Tarantool's; a store of one's own is started as its file says")
        if isinstance(plan.quorum, str):
            raise WrongUse(f"--quorum: a store of one's own is told a number, got {plan.quorum!r}")
        if plan.bugs:
            raise WrongUse(f"a store of one's own has no seeded bugs, got {plan.bugs[0]!r}")

    def command(self, plan: Plan) -> Command:
        return self.start

    @property
    def abilities(self) -> frozenset[Ability]:
        return frozenset(self.able)

    @property
    def are_dialed_unready(self) -> bool:
        return False

    def configurations(self, plan: Plan, spaces: tuple[str, ...]) -> dict[str, bytes]:
        """What a node finds at `Place.config`."""
        told = {
            "nodes": plan.node_names,
            "owner": self.owner(plan),
            "quorum": plan.quorum_size,
            "spaces": spaces,
        }
        return {name: msgspec.json.encode({"name": name, **told}) for name in plan.node_names}

    def node_makers(self, plan: Plan, spaces: tuple[str, ...]) -> dict[str, Callable[[], Node]]:
        raise WrongUse("a store of one's own cannot run in the simulator; try: --cluster local")

    def durability(self, plan: Plan) -> Durability:
        return "synced"

    def owner(self, plan: Plan) -> str:
        return plan.node_names[0]

    def can_lead(self, plan: Plan) -> tuple[str, ...]:
        return (self.owner(plan),)

    async def promote(self, node: str, cluster: Cluster) -> str | None:
        return "a store of one's own keeps its owner"

    def owner_now(self, statuses: Statuses) -> str | None:
        owners = [node for node, status in statuses.items() if status and status.get("role") == "owner"]
        return owners[0] if owners else None

    async def set_up(self, plan: Plan, cluster: Cluster) -> None:
        """All nodes answer, and one of them is the owner."""
        deadline_ns = cluster.now_ns() + SET_UP_TIMEOUT_NS
        while not self.is_settled({node: await cluster.status(node) for node in plan.node_names}):
            if cluster.now_ns() > deadline_ns:
                raise ClusterError(
                    "the nodes of the store did not all answer with one owner among them in 10 s"
                )
            await cluster.sleep_until(cluster.now_ns() + POLL_NS)

    def is_settled(self, statuses: Statuses) -> bool:
        known = [status for status in statuses.values() if status is not None]
        vclocks = [status.get("vclock") for status in known]
        same = all(vclock == vclocks[0] for vclock in vclocks)
        return len(known) == len(statuses) and same and self.owner_now(statuses) is not None

    def promise(self, plan: Plan) -> Promise:
        """As configuration C, but for what is only known of nodes of ours: that an owner rolls back."""
        told = {"configuration": f"{self.summary}, one owner", **self.promised}
        promise = replace(
            PROMISES[CONFIGURATION], isolated_owner_rolls_back=False, may_end_under=self.may_end_under
        )
        return replace(promise, **told)  # type: ignore[arg-type]  # fields that are texts

    def log_rules(self, plan: Plan) -> LogRules | None:
        return None

    def checks(self, plan: Plan) -> tuple[Check, ...]:
        return ()

    def bugs(self) -> Mapping[str, str]:
        return {}


def load(path: str) -> System:
    """The `SYSTEM` of a Python file; WrongUse if there is none."""
    file = Path(path)
    if not file.is_file():
        raise WrongUse(f"there is no file {path}; expected a Python file with a {NAME}, as docs/mystore.py")
    spec = importlib.util.spec_from_file_location(f"own_store_{file.stem}", file)
    assert spec is not None and spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise WrongUse(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error
    return _a_system(getattr(module, NAME, None), f"{path} has no {NAME}")


def entry_points() -> dict[str, EntryPoint]:
    """Those of packages that are installed here, by name."""
    return {point.name: point for point in metadata.entry_points(group=GROUP)}


def load_entry_point(name: str) -> System:
    """Raises WrongUse; KeyError if no package has one of that name."""
    point = entry_points()[name]
    try:
        found = point.load()
    except Exception as error:
        raise WrongUse(
            f"the entry point {name} ({point.value}) cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    return _a_system(found, f"the entry point {name} ({point.value}) is no system")


def _a_system(found: Any, otherwise: str) -> System:
    if not hasattr(found, "configurations"):
        raise WrongUse(f"{otherwise}; expected harness.systems.own.OwnStore or another System")
    system: System = found  # what it lacks is told by name when it is asked
    return system
