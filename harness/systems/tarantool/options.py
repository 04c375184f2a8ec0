"""The options of real Tarantool: those of qsync, and the mode of its log."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from harness.plan.plan import Plan
from harness.systems.qsync.options import QsyncOptions


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
