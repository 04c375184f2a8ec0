"""One fault, fully drawn: its action, its time, its nodes and links.

A fault is a line of a plan's drawn-out form and of the history (its `invoke` line); its `Evidence` is the value
of the line that ends it. Times are nanoseconds since the run began.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

Does = Literal[
    "cut",
    "changing-cut",
    "slow",
    "jitter",
    "reorder",
    "bandwidth",
    "loss",
    "kill",
    "terminate",
    "pause",
    "power",
    "slow-fsync",
    "disk-error",
    "damage",
    "clock",
    "cpu-limit",
    "memory-limit",
    "oom",
    "failover",
    "hold",
    "slow-disk",
    "restart",
    "upgrade",
    "downgrade",
    "options",
    "remove",
    "add",
    "replace",
]
DIRECTED: frozenset[Does] = frozenset(("hold", "slow-disk"))
Damage = Literal["", "torn-tail", "truncated-tail", "bit-flip"]
Link = tuple[str, str]
Option = bool | int | float | str
NEEDS: Mapping[Does, tuple[str, ...]] = {
    "cut": ("links",),
    "changing-cut": ("links", "shapes"),
    "slow": ("links", "delay_ns"),
    "jitter": ("links", "jitter_ns"),
    "reorder": ("links", "delay_ns", "percent"),
    "bandwidth": ("links", "bytes_per_s"),
    "hold": ("links",),
    "loss": ("links", "percent"),
    "cpu-limit": ("nodes", "percent"),
    "slow-fsync": ("nodes", "delay_ns"),
    "disk-error": ("nodes", "error"),
    "damage": ("nodes", "damage"),
}
"""The fields without which it would do nothing; ("nodes",) if it is not here."""
DISK_ERRORS = ("ENOSPC", "EIO", "EDQUOT", "EROFS")
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
    """The directed links that are cut from `after_ns` after the fault's begin, until the next shape or the end."""

    after_ns: Count
    links: tuple[Link, ...]


class Fault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """`name` is the word in the table of faults ("isolate-owner"), `does` what the cluster carries out.

    - cut: the directed `links` (source, target) pass nothing, silently. On healing, connections with
      held bytes go on or are reset, drawn from `seed`.
    - changing-cut: one of the `shapes` after the other is cut; nothing is healed between. `links` is all that is cut
      at some time.
    - slow: the directed `links` delay what they carry by `delay_ns` ± `jitter_ns`; order is kept.
    - jitter: the same; takes effect only if the delays differ: by half of `jitter_ns` at least.
    - reorder: `percent` of what the directed `links` carry comes later by `delay_ns`, and what is behind overtakes it.
    - bandwidth: over each of the directed `links` pass `bytes_per_s` at most.
    - kill: the processes of `nodes` are killed (-9) and started again at the end.
    - pause: the processes of `nodes` are stopped and continued at the end.
    - terminate: the processes of `nodes` are asked to end (SIGTERM), and started again at the end.
    - power: as kill, but no peer sees a connection end, and unsynced bytes are lost.
    - slow-fsync: every sync of `nodes` takes `delay_ns` longer.
    - disk-error: writes, or where `at_sync` says so syncs, of `nodes` fail with `error` (ENOSPC, EIO).
    - damage: the processes of `nodes` are killed, one of their `logs` (patterns of names) gets the `damage`, and they
      are started again at the end; from undamaged files if they refuse the damaged ones.
    - loss: `percent` of the packets on the directed `links` are dropped.
    - cpu-limit: `nodes` get `percent` of one core.
    - memory-limit: the limit of `nodes` is little above the memory that they need, and a second process takes some too.
    - oom: there is no memory left for `nodes`, so that the kernel ends them; they are started again at the end.
    - failover: the one of `nodes` is asked to become the owner, again and again until it is.
    - hold: over the directed `links` nothing of `kinds` (nothing at all if none are named) arrives, nor what is behind
      it (simulator).
    - slow-disk: records of `kinds` of `nodes` (all if none are named) are not synced until the end (simulator).
    - restart: `nodes` are stopped (SIGTERM) and started again, one after the other, each as soon as the one before has
      all that there is; all of them `at_once` if it says so. With `options` they start with these, and are restarted in
      the same way without them at the end, unless that `stays`.
    - upgrade, downgrade: the one of `nodes` is stopped (SIGTERM) and started on its data in the newer version, or in
      the older one again.
    - options: `options`, by their names in box.cfg, are changed on `nodes` while they run, and changed back at the end,
      unless that `stays`: then nodes start with them from then on. `delay_ns` passes between one node and the next.
    - remove: the one of `nodes` is stopped and leaves the cluster for good; no node counts it any more.
    - add: the one of `nodes`, which had left, comes as a fresh node with an identity of its own.
    - replace: the one of `nodes` is killed and loses its disk; at the end a fresh node with another identity takes its
      place, and the old identity never returns.
    - clock: the wall clock of `nodes` jumps by `jump_ns`, their monotonic clock drifts by `drift_ppm`. With `delay_ns`
      it strobes: every `delay_ns` the wall clock jumps back to the right time, and away from it again.
    """

    id: Count
    name: str
    does: Does
    at_ns: Count
    until_ns: Count
    nodes: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    delay_ns: Count = 0
    jitter_ns: Count = 0
    jump_ns: int = 0
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
