"""The options of real Tarantool: those of qsync, and the mode of its log."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from harness.plan.plan import Plan
from harness.systems.qsync.configurations import DEFAULT
from harness.systems.qsync.options import QsyncOptions

NO_CONFIGURATION = (
    "Tarantool has no configuration {}; try: --configuration B, or A for a master that stays, in 2.6; E, F or G with "
    "the elections of newer versions"
)


class TarantoolOptions(QsyncOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    has_markers: ClassVar[bool] = False
    wal_mode: Annotated[
        Literal["write", "fsync"] | None, Meta(description="write (as shipped) or fsync.")
    ] = None
    """Whether a write of its log waits for fsync(2); None: as shipped, it does not."""

    def check(self, plan: Plan) -> None:
        if self.exact_elections:
            raise ValueError("--exact-elections is for --system qsync: Tarantool's own elections are exact")
        super().check(plan)

    def idle(self, plan: Plan, said: Collection[str]) -> str:
        if "configuration" in said and self.configuration == DEFAULT:  # unsaid, it means B or F
            return NO_CONFIGURATION.format(DEFAULT)
        return super().idle(plan, said)
