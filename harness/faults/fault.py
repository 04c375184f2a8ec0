"""One fault, fully drawn: its action, its time, its nodes and links.

A fault is a line of a plan's drawn-out form and of the history (its `invoke` line); its `Evidence` is the value
of the line that ends it. Times are nanoseconds since the run began.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Does = str
"""The word of a fault's action (`harness.faults.table.ACTIONS`)."""
DIRECTED: frozenset[Does] = frozenset(("hold", "slow-disk"))
Damage = Literal["", "torn-tail", "truncated-tail", "bit-flip"]
Link = tuple[str, str]
Option = bool | int | float | str
DISK_ERRORS = ("ENOSPC", "EIO", "EDQUOT", "EROFS")
LOSSES = (10, 30, 60)
"""How many packets of a hundred can be lost."""
Count = Annotated[int, msgspec.Meta(ge=0)]


class Moment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A trigger, something that a node does: the `nth` time from the fault's `at_ns` on, and `after_ns` later.

    - writes, wrote: a record of kind `what` (row, confirm, rollback, promote, raft) is handed to the disk, is synced.
      At `wrote` no message about it has left yet: a node that dies then dies between fsync and send.
    - sends, gets: a message of kind `what` (`kinds_of` of the wire) leaves, has arrived.

    `node` "" is any.
    """

    does: Literal["writes", "wrote", "sends", "gets"]
    what: str
    node: str = ""
    nth: Annotated[int, msgspec.Meta(ge=1)] = 1
    after_ns: Count = 0


class Shape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The directed links that are cut from `after_ns` after the fault's begin, until the next shape or the end.

    The first shape is cut from the begin, whatever its `after_ns`: those before it may have lost all their nodes.
    """

    after_ns: Count
    links: tuple[Link, ...]


class Fault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """`name` is the word in the table of faults ("isolate-owner"), `does` what the cluster carries out. Its action, a
    class of `harness.faults.table.ACTIONS`, says which other fields it has and what they mean."""

    id: Count
    name: str
    does: Does
    at_ns: Count
    until_ns: Count
    nodes: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    delay_ns: Count = 0
    jitter_ns: Count = 0
    jump_ns: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] = 0
    drift_ppm: Annotated[int, msgspec.Meta(gt=-1_000_000, le=1_000_000)] = 0
    error: str = ""
    at_sync: bool = False
    damage: Damage = ""
    logs: tuple[str, ...] = ("*.xlog",)
    percent: Annotated[int, msgspec.Meta(ge=0, le=100)] = 0
    bytes_per_s: Count = 0
    seed: Count = 0
    kinds: tuple[str, ...] = ()
    options: dict[str, Option] = {}
    stays: bool = False
    at_once: bool = False
    shapes: tuple[Shape, ...] = ()
    on: Moment | None = None
    """Begin at this moment, not before `at_ns`, and last for as long as from `at_ns` to `until_ns` (simulator)."""

    @property
    def is_directed(self) -> bool:
        """It goes on beside other faults, may never begin, and need not take effect; its names may be placeholders:

        "@it" (the node that fired the trigger), "@owner", "@old" (the owner before), "*" (all); "@others", "@next" and
        "@after" in the ring of nodes (than it, where it is named, else than the owner).
        """
        return is_directed(self.does, self.on)


class ShapeSeen(msgspec.Struct, frozen=True, kw_only=True):
    """One shape of a changing partition as it was: all of it surely cut from `in_effect_ns` to `until_ns`."""

    links: tuple[Link, ...]
    asked_ns: int
    in_effect_ns: int | None
    until_ns: int | None
    took_effect: bool


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster's observations of a fault that has ended.

    `took_effect`: bytes withheld or connections left hanging for longer than a heartbeat, a process seen dead or
    stopped, a node's own clock seen to differ, bytes delayed. `healed`: fresh traffic passed (or the process answered)
    afterwards; None if that could not be tried.
    """

    took_effect: bool
    asked_ns: int
    first_effect_ns: int | None
    all_in_effect_ns: int | None
    heal_asked_ns: int | None
    last_effect_ns: int | None
    healed: bool | None = None
    counters: dict[str, int] = {}
    detail: str = ""
    shapes: tuple[ShapeSeen, ...] = ()


def is_directed(does: str, on: object) -> bool:
    """A step of a directed schedule, by what it does and the trigger that it waits for."""
    return on is not None or does in DIRECTED
