"""The options of the TxLog: its rounds, its splits, what its reads show.

A fault of a drawn schedule lasts 1.3 to 2.3 s. By default masters split after 0.6 s and execute 0.2 s later, so that a
run shows what parts of the cluster do, and clients are served in the course of most faults.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, cast

from msgspec import Meta

from harness.plan.expectations import Expectations
from harness.plan.plan import SECOND_NS, Options, Plan
from harness.systems.txlog.promises import configuration_of
from nodes.txlog.configuration import MILLISECOND, Strategy

ROUND_MS = 150.0


class TxLogOptions(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    decides_operations: ClassVar[tuple[str, ...]] = ("read",)

    strategy: Annotated[
        Strategy, Meta(description="What follows when a split is over: none, simple or smart.")
    ] = "smart"
    split_timeout: Annotated[
        float,
        Meta(
            ge=0, le=3600, description="Seconds without progress until silent masters are left out; 0: never."
        ),
    ] = 0.6
    max_peer_lag: Annotated[
        float, Meta(ge=0, le=3600, description="Seconds for which a split cluster executes nothing.")
    ] = 0.2
    late: Annotated[
        int, Meta(ge=0, le=6, description="So many of the last masters are added by the fault add-node.")
    ] = 0
    busy_ms: Annotated[
        float, Meta(ge=0.01, le=60_000, description="Time between rounds while transactions wait.")
    ] = 5.0
    idle_ms: Annotated[float, Meta(ge=0.01, le=60_000, description="The same while none does.")] = 100.0
    workers_per_master: Annotated[
        int, Meta(ge=1, le=16, description="Workers of each master; all execute every transaction.")
    ] = 2
    worker_loss: Annotated[
        int, Meta(ge=0, description="One in so many transactions is the last one of a worker; 0: none.")
    ] = 0
    backup_ms: Annotated[
        float, Meta(ge=0, le=60_000, description="Time to back up, restore or start workers.")
    ] = 20.0
    spurious: Annotated[
        int, Meta(ge=0, description="One in so many transactions fails on one master alone; 0: none.")
    ] = 0
    execute_ms: Annotated[float, Meta(ge=0, le=1000, description="Time that a transaction takes.")] = 0.5
    read: Annotated[
        Literal["linearizable", "read-confirmed", "mixed"],
        Meta(
            description="linearizable: through the log; read-confirmed: of the master that is asked; mixed."
        ),
    ] = "mixed"

    def check(self, plan: Plan) -> None:
        if 0 < self.split_timeout * 1000 <= 2 * self.idle_ms:
            raise ValueError(
                f"expected a split time-out above two idle rounds ({2 * self.idle_ms:g} ms), or 0, "
                f"got {self.split_timeout:g} s"
            )
        if self.late and self.can_split:
            raise ValueError(
                "expected --split-timeout 0 with --late: a split that begins while a master is added has no outcome "
                f"on which all masters agree, got {self.split_timeout:g} s"
            )
        if plan.nodes - self.late < 1:
            raise ValueError(f"expected fewer late masters than nodes ({plan.nodes}), got {self.late}")

    def expectations(self, plan: Plan) -> Expectations:
        return Expectations(
            configuration=self.configuration,
            late=self.late,
            needs_every_node=True,
            heartbeat_ns=int(self.idle_ms * MILLISECOND),
            election_timeout_s=ROUND_MS / 1000,
            fails_over=True,
            read_mode=self.read,
        )

    @property
    def configuration(self) -> str:
        return configuration_of(
            self.strategy, can_split=self.can_split, is_deterministic=self.is_deterministic
        )

    @property
    def is_deterministic(self) -> bool:
        """A transaction comes to the same on all masters."""
        return not self.spurious

    @property
    def can_split(self) -> bool:
        return self.split_timeout > 0

    @property
    def split_ns(self) -> int:
        return int(self.split_timeout * SECOND_NS)


def said_of(plan: Plan) -> TxLogOptions:
    """The options of a plan of this system."""
    return cast(TxLogOptions, plan.options)
