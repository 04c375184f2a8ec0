"""The state on which all nodes agree: the result of applying the entries of the discovery log in their order.

An entry is a list. An entry that does not fit (a life that has left already, a second cut) has no effect:

| entry | |
|---|---|
| `["join", node, life, role]` | the node is a member; a server's former life has left by it |
| `["left", node, life]` | it is no member any more |
| `["rebalanced", node, life, source, its life, version, partitions]` | in sync, by copies asked for on this version |
| `["cut", id, node, time]` | a cut begins; the wall clock of the node that was asked, in nanoseconds |
| `["cut-done", id, node, life, ok, why]` | a member has failed in its part; that it has done it, it reports |
| `["cuts-done", id, [[node, life], …]]` | these members have done their part |
| `["snapshot", id]`, `["snapshot-ready", id, node]`, `["snapshot-done", id, node]` | a base snapshot |
| `["resolved", xid, commits]` | the fate of a transaction without its near node; the first one counts |
| `["sweep", version, number]` | the next sweep on this topology: outcomes two sweeps old are dropped (`kept.py`) |

An owner of a partition is *in sync* if it has every committed transaction of it. An owner that leaves is not in sync
any more, except for the last one: the partition then waits until that owner is back. `version` is the index of the
last entry that changed members or owners in sync. A transaction is mapped on one version, and a node prepares it only
if that is the newest one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any, Literal

from nodes.twophase.configuration import Configuration
from nodes.twophase.kept import Kept
from nodes.twophase.variants import VARIANTS, Named

Entry = list[Any]


def is_report(entry: Entry) -> bool:
    """A member has done its part of a cut: the coordinator waits for all of them."""
    return entry[0] == "cut-done" and entry[4] is True


TOPOLOGY_WORDS = frozenset({"join", "left", "rebalanced"})
"""Entries that raise the version."""

ENDED_KEPT = 100
"""How many ended cuts, refused cuts, ended base snapshots and refused base snapshots are kept for requests."""

NOT_YET = 0
"""The life of a server that has never joined."""


@dataclass(frozen=True, slots=True)
class Member:
    life: int
    role: str


@dataclass(slots=True)
class Cut:
    """A cut that was asked for. Numbers count those that have begun; a refused one has the number 0."""

    named: Named
    asked_by: str
    waiting: list[str]
    index: int
    """The index of its entry in the log."""
    state: Literal["runs", "ok", "failed", "refused"] = "runs"
    why: str = ""


@dataclass(slots=True)
class Snapshot:
    id: str
    not_ready: list[str]
    not_done: list[str]
    index: int
    state: Literal["runs", "ok", "failed", "refused"] = "runs"
    why: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """The consequences of an entry. `left` are (node, life)."""

    joined: tuple[str, int] | None = None
    left: tuple[tuple[str, int], ...] = ()
    role: str = ""
    is_topology: bool = False
    is_sweep: bool = False


@dataclass
class Agreed:
    configuration: Configuration
    fails_with_servers: bool = True
    version: int = 0
    members: dict[str, Member] = field(default_factory=dict)
    in_sync: list[list[str]] = field(default_factory=list)
    """Partition → its owners in sync, in the order of its owners."""
    cuts: dict[str, Cut] = field(default_factory=dict)
    running: Cut | None = None
    snapshots: dict[str, Snapshot] = field(default_factory=dict)
    barrier: Snapshot | None = None
    resolved: Kept[bool] = field(default_factory=Kept)
    begun: int = 0
    """Cuts that have begun."""
    cut_time_ns: int = 0
    """The timestamp of the newest cut: the next one has a greater one, whatever the clock of its node says."""
    swept_at: list[int] = field(default_factory=list)
    """The indices of the sweeps on this version of the topology."""

    def __post_init__(self) -> None:
        conf = self.configuration
        self.lives = dict.fromkeys(conf.baseline, NOT_YET)
        """The newest life of every node that was ever a member."""
        self.present = set(conf.baseline)
        """Servers that have not left. A server of life 0 has not joined yet."""
        self.in_sync = [self.owners(partition) for partition in range(conf.partitions)]
        self.since = [0] * conf.partitions
        """Partition → the version at which it got its present primary, or lost its primary."""

    # ---- as a whole

    def to_state(self) -> dict[str, Any]:
        """The whole state, as lists and maps."""
        return {
            "version": self.version,
            "members": {name: [member.life, member.role] for name, member in self.members.items()},
            "in_sync": [list(owners) for owners in self.in_sync],
            "since": list(self.since),
            "cuts": [
                [request, list(astuple(cut.named)), *astuple(cut)[1:]] for request, cut in self.cuts.items()
            ],
            "snapshots": [list(astuple(base)) for base in self.snapshots.values()],
            "resolved": self.resolved.to_state(),
            "begun": self.begun,
            "cut_time_ns": self.cut_time_ns,
            "swept_at": list(self.swept_at),
            "lives": dict(self.lives),
            "present": sorted(self.present),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Take over the result of `to_state`, of a different node or of an earlier life."""
        self.version = state["version"]
        self.members = {name: Member(life, role) for name, (life, role) in state["members"].items()}
        self.in_sync = [list(owners) for owners in state["in_sync"]]
        self.since = list(state["since"])
        self.cuts = {
            request: Cut(Named(*named), asked_by, list(waiting), *rest)
            for request, named, asked_by, waiting, *rest in state["cuts"]
        }
        self.running = next((cut for cut in self.cuts.values() if cut.state == "runs"), None)
        self.snapshots = {
            name: Snapshot(name, list(not_ready), list(not_done), *rest)
            for name, not_ready, not_done, *rest in state["snapshots"]
        }
        self.barrier = next((base for base in self.snapshots.values() if base.state == "runs"), None)
        self.resolved = Kept.from_state(state["resolved"])
        self.begun = state["begun"]
        self.cut_time_ns = state.get("cut_time_ns", 0)
        self.swept_at = list(state["swept_at"])
        self.lives = dict(state["lives"])
        self.present = set(state["present"])

    # ---- questions

    @property
    def sweeps(self) -> int:
        """The number of sweeps on this version of the topology."""
        return len(self.swept_at)

    @property
    def is_whole(self) -> bool:
        """All servers are members."""
        return all(server in self.members for server in self.configuration.baseline)

    def owners(self, partition: int) -> list[str]:
        baseline = self.configuration.baseline
        return [
            baseline[(partition + offset) % len(baseline)] for offset in range(self.configuration.backups + 1)
        ]

    def life_of(self, node: str) -> int:
        """The life of a member; 0 for any other node."""
        member = self.members.get(node)
        return 0 if member is None else member.life

    def is_member(self, node: str, life: int) -> bool:
        return life > 0 and self.life_of(node) == life

    def has_left(self, node: str, life: int) -> bool:
        newest = self.lives.get(node, 0)
        return life < newest or (life == newest and node not in self.members and newest > 0)

    def primary(self, partition: int) -> str | None:
        """The first owner in sync. None while any owner in sync is away: it may have commits that the others lack."""
        owners = self.in_sync[partition]
        return owners[0] if all(owner in self.members for owner in owners) else None

    def _primaries(self) -> list[str | None]:
        return [self.primary(partition) for partition in range(len(self.in_sync))]

    def is_primary_since(self, node: str, partition: int, version: int) -> bool:
        """The node was the primary on this version, and has been since."""
        return self.primary(partition) == node and self.since[partition] <= version

    def missing(self, node: str) -> list[int]:
        """The partitions that a node owns without being in sync."""
        return [
            partition
            for partition, in_sync in enumerate(self.in_sync)
            if node not in in_sync and node in self.owners(partition)
        ]

    # ---- entries

    def apply(self, index: int, entry: Entry) -> Change:
        primaries = self._primaries() if entry[0] in TOPOLOGY_WORDS else []
        match entry:
            case ["join", node, life, role]:
                change = self._join(node, life, role)
            case ["left", node, life]:
                change = self._leave(node, life)
            case ["rebalanced", node, life, source, source_life, version, partitions]:
                change = self._rebalanced(node, life, source, source_life, version, partitions)
            case ["cut", cut, node, *time_ns]:
                return self._begin_cut(index, cut, node, *time_ns)
            case ["cut-done", cut, node, life, ok, why]:
                return self._cut_done(cut, node, life, ok, why)
            case ["cuts-done", cut, members]:
                for node, life in members:
                    self._cut_done(cut, node, life, True, "")
                return Change()
            case ["snapshot", snapshot]:
                return self._begin_snapshot(index, snapshot)
            case ["snapshot-ready", snapshot, node]:
                return self._snapshot_step(snapshot, node, is_done=False)
            case ["snapshot-done", snapshot, node]:
                return self._snapshot_step(snapshot, node, is_done=True)
            case ["resolved", xid, commits]:
                self.resolved.note(xid, commits)
                return Change()
            case ["sweep", version, number] if version == self.version and number == self.sweeps + 1:
                return self._sweep(index)
            case _:
                return Change()
        if change.is_topology:
            self.version = index
            for partition, (before, now) in enumerate(zip(primaries, self._primaries(), strict=True)):
                if before != now:
                    self.since[partition] = index
            self.swept_at.clear()
            self.resolved.begin_anew()
        return change

    def _sweep(self, index: int) -> Change:
        """Drop old cuts and snapshots: only a member that had not delivered one could propose it once more."""
        self.swept_at.append(index)
        self.resolved.sweep(self.version, self.is_whole)
        known: Sequence[dict[str, Any]] = (self.cuts, self.snapshots)
        for by_id in known if self.sweeps > 2 else ():
            ended = [name for name, request in by_id.items() if request.state in ("ok", "failed")]
            refused = [name for name, request in by_id.items() if request.state == "refused"]
            for name in ended[:-ENDED_KEPT] + refused[:-ENDED_KEPT]:
                if by_id[name].index < self.swept_at[-3]:
                    del by_id[name]
        return Change(is_sweep=True)

    def _join(self, node: str, life: int, role: str) -> Change:
        if life <= self.lives.get(node, 0):
            return Change()
        before = self.members.get(node)
        left = ((node, before.life),) if before is not None else ()
        if before is not None:
            self._drop_from_in_sync(node)
        self.members[node] = Member(life, role)
        self.lives[node] = life
        if role == "server":
            self.present.add(node)
            self._server_changed(f"server {node} joined")
        elif self.running is not None and node not in self.running.waiting:
            # It changes its colour before the other nodes stop to mark messages.
            self.running.waiting.append(node)
        return Change((node, life), left, role, is_topology=True)

    def _leave(self, node: str, life: int) -> Change:
        member = self.members.get(node)
        if member is None:
            if life != NOT_YET or node not in self.present:
                return Change()
            self.present.discard(node)
            self._drop_from_in_sync(node)
            return Change(is_topology=True)
        if member.life != life:
            return Change()
        del self.members[node]
        self.present.discard(node)
        self._drop_from_in_sync(node)
        if member.role == "server":
            self._server_changed(f"server {node} left")
        elif self.running is not None and node in self.running.waiting:
            self.running.waiting.remove(node)
            self._end_cut_if_done()
        return Change(None, ((node, life),), member.role, is_topology=True)

    def _drop_from_in_sync(self, node: str) -> None:
        for owners in self.in_sync:
            if node in owners and len(owners) > 1:
                owners.remove(node)

    def _rebalanced(
        self, node: str, life: int, source: str, source_life: int, version: int, partitions: Sequence[int]
    ) -> Change:
        """Count a copy only if its source has been the primary since: a different primary commits without the copy."""
        if not self.is_member(node, life) or not self.is_member(source, source_life):
            return Change()
        missing = self.missing(node)
        fresh = [p for p in partitions if p in missing and self.is_primary_since(source, p, version)]
        for partition in fresh:
            together = {*self.in_sync[partition], node}
            self.in_sync[partition] = [owner for owner in self.owners(partition) if owner in together]
        return Change(is_topology=bool(fresh))

    # ---- cuts and snapshots

    def _begin_cut(self, index: int, cut: str, node: str, time_ns: int = 0) -> Change:
        if cut in self.cuts:
            return Change()
        busy = self._busy()
        if busy:
            self.cuts[cut] = Cut(Named(cut, 0), node, [], index, "refused", busy)
            return Change()
        self.begun += 1
        self.cut_time_ns = max(self.cut_time_ns + 1, time_ns)
        variant = VARIANTS[self.configuration.variant]
        named = variant.named(cut, self.begun, self.version, self.cut_time_ns)
        self.running = self.cuts[cut] = Cut(named, node, list(self.members), index)
        return Change()

    def _busy(self) -> str:
        if self.running is not None:
            return f"the cut {self.running.named.id} runs"
        if self.barrier is not None:
            return f"the snapshot {self.barrier.id} runs"
        away = [server for server in self.configuration.baseline if server not in self.members]
        return f"server {away[0]} is away" if away else ""

    def has_ended(self, cut: str) -> bool:
        """Whether a cut of this name in logs has ended, as far as it is remembered."""
        return any(known.named.id == cut and known.state != "runs" for known in self.cuts.values())

    def together(self, reports: Sequence[Entry]) -> Entry | None:
        """The entry that stands for the reports about the running cut; None until all members have reported."""
        running = self.running
        if running is None or not running.waiting:
            return None
        done = {
            node: life
            for _, cut, node, life, *_ in reports
            if cut == running.named.id and self.is_member(node, life)
        }
        if not all(node in done for node in running.waiting):
            return None
        return ["cuts-done", running.named.id, [[node, done[node]] for node in running.waiting]]

    def _cut_done(self, cut: str, node: str, life: int, ok: bool, why: str) -> Change:
        running = self.running
        if running is None or running.named.id != cut or node not in running.waiting:
            return Change()
        if not self.is_member(node, life):
            return Change()
        running.waiting.remove(node)
        if not ok:
            self._fail_cut(f"{node}: {why}")
        else:
            self._end_cut_if_done()
        return Change()

    def _end_cut_if_done(self) -> None:
        if self.running is not None and not self.running.waiting:
            self.running.state = "ok"
            self.running = None

    def _fail_cut(self, why: str) -> None:
        if self.running is not None:
            self.running.state, self.running.why = "failed", why
            self.running = None

    def _server_changed(self, why: str) -> None:
        if self.fails_with_servers:
            self._fail_cut(why)
        elif self.running is not None:
            self.running.waiting = [node for node in self.running.waiting if node in self.members]
            self._end_cut_if_done()
        if self.barrier is not None:
            self.barrier.state = "failed"
            self.barrier = None

    def _begin_snapshot(self, index: int, snapshot: str) -> Change:
        if snapshot in self.snapshots:
            return Change()
        servers = self.configuration.baseline
        begun = self.snapshots[snapshot] = Snapshot(snapshot, list(servers), list(servers), index)
        begun.why = self._busy()
        if not begun.why and any(map(self.missing, servers)):
            begun.why = "a server is not in sync"
        if begun.why:
            begun.state = "refused"
        else:
            self.barrier = begun
        return Change()

    def _snapshot_step(self, snapshot: str, node: str, *, is_done: bool) -> Change:
        running = self.barrier
        if running is not None and running.id == snapshot:
            waiting = running.not_done if is_done else running.not_ready
            if node in waiting:
                waiting.remove(node)
            if not running.not_done:
                running.state = "ok"
                self.barrier = None
        return Change()
