"""One group of processes of Linux: its limits, and what the kernel counts of it.

Control groups have two versions, with other files for the same things:

| | version 1 | version 2 |
|---|---|---|
| share of the cores | cpu.cfs_quota_us of cpu.cfs_period_us | cpu.max: both |
| made to wait | cpu.stat: nr_throttled, throttled_time (ns) | cpu.stat: nr_throttled, throttled_usec |
| memory at most | memory.limit_in_bytes, with swap memory.memsw.limit_in_bytes | memory.max, memory.swap.max |
| memory used | memory.usage_in_bytes | memory.current |
| came to the limit | memory.failcnt, memory.memsw.failcnt | memory.events: max |
| taken and come back | memory.stat: workingset_refault… | the same |
| ended for want of memory | memory.oom_control: oom_kill | memory.events: oom_kill |

With version 1 a group is a folder in each controller's hierarchy; with version 2 there is one. Nothing is imported here
that is not in Python itself: this runs on other hosts, too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

CONTROLLERS: Final = ("cpu", "memory")
PERIOD_US: Final = 100_000
_MICROSECOND_NS: Final = 1_000
_MORE_BYTES: Final = 1 << 20
_TRIES: Final = 64
_V1_CPU: Final = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
_V2_CPU: Final = ("cpu.max",)
_V1_MEMORY: Final = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
_V2_MEMORY: Final = ("memory.max", "memory.swap.max")


@dataclass(frozen=True, slots=True)
class Group:
    """The folders of one group; the same one twice with version 2. All methods raise OSError if the group is gone."""

    version: Literal[1, 2]
    cpu: Path
    memory: Path

    @property
    def folders(self) -> tuple[Path, ...]:
        return tuple(dict.fromkeys((self.cpu, self.memory)))

    def counts(self) -> dict[str, int]:
        """Since the group was made: `throttled`, the periods of 100 ms in which it had to wait; `throttled_ns`;
        `limit_hits`, how often it wanted more memory than it may have (version 1 of some kernels never counts that);
        `refaults`, the pages that were taken from it and came back; `oom_kills`.
        """
        cpu, stat = _table(self.cpu / "cpu.stat"), _table(self.memory / "memory.stat")
        waited_ns = cpu.get("throttled_time", cpu.get("throttled_usec", 0) * _MICROSECOND_NS)
        if self.version == 1:
            hits = sum(_number(self.memory / name) for name in ("memory.failcnt", "memory.memsw.failcnt"))
            kills = _table(self.memory / "memory.oom_control").get("oom_kill", 0)
        else:
            events = _table(self.memory / "memory.events")
            hits, kills = events.get("max", 0), events.get("oom_kill", 0)
        return {
            "throttled": cpu.get("nr_throttled", 0),
            "throttled_ns": waited_ns,
            "limit_hits": hits,
            "refaults": sum(value for name, value in stat.items() if name.startswith("workingset_refault")),
            "oom_kills": kills,
        }

    def pids(self) -> tuple[int, ...]:
        return tuple(int(line) for line in (self.memory / "cgroup.procs").read_text().split())

    def needed_bytes(self) -> int:
        """The memory that the group needs: all but pages of files, which could be read again."""
        used = "memory.usage_in_bytes" if self.version == 1 else "memory.current"
        stat = _table(self.memory / "memory.stat")
        prefix = "total_" if self.version == 1 else ""  # of counters that include the groups within
        files = sum(stat.get(f"{prefix}{kind}_file", 0) for kind in ("active", "inactive"))
        return max(0, int((self.memory / used).read_text()) - files)

    # ---- limits

    def limits(self) -> dict[str, str]:
        """All limits, as the kernel writes them: for `restore`."""
        return {name: path.read_text().strip() for name, path in self._limit_files().items()}

    def restore(self, limits: Mapping[str, str]) -> bool:
        """Set the limits again; whether the kernel reports them. The greater limit of memory, with swap, goes first."""
        files = self._limit_files()
        for name in reversed(list(limits)):
            with suppress(OSError):
                files[name].write_text(limits[name])
        return self.limits() == dict(limits)

    def limit_cpu(self, percent: float) -> None:
        """Allow `percent` of one core (200: two), and no burst."""
        quota_us = int(PERIOD_US * percent / 100)
        if self.version == 1:
            (self.cpu / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (self.cpu / "cpu.cfs_quota_us").write_text(str(quota_us))
        else:
            (self.cpu / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")

    def limit_memory(self, wanted_bytes: int) -> int:
        """Limit memory, without swap; returns the limit that was set: more, where the kernel refuses `wanted_bytes`.

        OSError if the kernel refuses much more, too.
        """
        size = wanted_bytes
        for attempt in range(_TRIES):
            try:
                self._limit_memory(size)
            except OSError:
                if attempt == _TRIES - 1:
                    raise
                size += _MORE_BYTES
            else:
                break
        return size

    def _limit_memory(self, size: int) -> None:
        if self.version == 1:
            (self.memory / "memory.limit_in_bytes").write_text(str(size))
            with_swap = self.memory / "memory.memsw.limit_in_bytes"
            if with_swap.exists():
                with_swap.write_text(str(size))
        else:
            swap = self.memory / "memory.swap.max"
            if swap.exists():
                swap.write_text("0")
            (self.memory / "memory.max").write_text(str(size))

    def _limit_files(self) -> dict[str, Path]:
        cpu, memory = (_V1_CPU, _V1_MEMORY) if self.version == 1 else (_V2_CPU, _V2_MEMORY)
        paths = [*(self.cpu / name for name in cpu), *(self.memory / name for name in memory)]
        for folder in self.folders:
            folder.stat()  # raises OSError if the group is gone: only files for swap may be missing
        return {path.name: path for path in paths if path.exists()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The share of its machine that a node may use in a whole run: `cpus` cores (0.5: half of one) and `memory_mib` at
    most; None: no limit of this run's."""

    cpus: float | None = None
    memory_mib: int | None = None

    def limit(self, group: Group) -> None:
        """Raises OSError."""
        if self.cpus is not None:
            group.limit_cpu(100 * self.cpus)
        if self.memory_mib is not None:
            group.limit_memory(self.memory_mib << 20)


def group_of(pid: int | str, proc: Path = Path("/proc")) -> Group:
    """The group that a process is in; "self" is this one. ValueError says why none can be seen."""
    mounts = _mounts(proc)
    places = _places(proc / str(pid) / "cgroup")
    groups: dict[str, tuple[Literal[1, 2], Path]] = {}
    for controller in CONTROLLERS:
        if controller in places and controller in mounts:
            groups[controller] = (1, _below(mounts[controller], places[controller]))
        elif "" in places and "" in mounts:
            groups[controller] = (2, _below(mounts[""], places[""]))
    if len({version for version, _ in groups.values()}) != 1 or len(groups) != len(CONTROLLERS):
        raise ValueError("this kernel has no control groups for cores and memory that can be seen here")
    version, cpu = groups["cpu"]
    return Group(version, cpu, groups["memory"][1])


def why_not_of_others(proc: Path = Path("/proc")) -> str:
    """Why groups of other programs, such as those of containers, cannot be limited here; "" if they can."""
    try:
        version = group_of("self", proc).version
    except ValueError as error:
        return str(error)
    mounts = _mounts(proc)
    mounted = [mounts[name] for name in (CONTROLLERS if version == 1 else ("",))]
    is_apart = any("/.." in place for place in _places(proc / "1" / "cgroup").values())
    if is_apart or any(root != "/" for root, _ in mounted):
        return "the host's groups of processes cannot be seen in this container"
    if not all(os.access(where, os.W_OK) for _, where in mounted):
        return "groups of processes cannot be changed by this user"
    return ""


def _mounts(proc: Path) -> dict[str, tuple[str, Path]]:
    """Controller ("" for version 2) → the part of its hierarchy that is mounted, and where."""
    mounts: dict[str, tuple[str, Path]] = {}
    for line in _text(proc / "self" / "mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or not kind:
            continue
        names = kind[2].split(",") if kind[0] == "cgroup" else [""] if kind[0] == "cgroup2" else []
        for name in names:
            if name in (*CONTROLLERS, ""):
                mounts.setdefault(name, (fields[3], Path(fields[4])))
    return mounts


def _places(path: Path) -> dict[str, str]:
    """Controller ("" for version 2) → where in its hierarchy a process is."""
    places: dict[str, str] = {}
    for line in _text(path).splitlines():
        _, names, place = line.split(":", 2)
        places.update(dict.fromkeys(names.split(","), place))
    return places


def _below(mount: tuple[str, Path], place: str) -> Path:
    """The folder of a place. In a container only a part of the hierarchy may be mounted: paths begin at its root."""
    root, where = mount
    inside = (
        os.path.relpath(place, root) if place == root or place.startswith(f"{root.rstrip('/')}/") else place
    )
    return where / inside.lstrip("/")


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="surrogateescape")  # a mount may have any name
    except OSError:
        return ""


def _number(path: Path) -> int:
    """0 where this kernel does not count swap."""
    return int(path.read_text()) if path.exists() else 0


def _table(path: Path) -> dict[str, int]:
    """Lines of a name and a number."""
    pairs = [line.split() for line in path.read_text().splitlines()]
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}
