"""Groups of our own: one for each node, below the group in which the harness itself is.

The nodes keep to all limits of their harness. No group that is not ours is changed: with version 2 of control
groups, where a group with processes in it passes no controllers on, ours lie below the nearest group above that does.

A group's name says which harness made it: `qsync-<run>-<process of the harness>@<its start>-<node>`. Groups of dead
harnesses are leftovers; no other name is looked at twice. A process that still runs in a leftover is a node of a dead
run. A group with a process of a container is no leftover: there the harness has a different number. A supervisor of the
cluster ssh identifies itself by a different clock, so its groups have names of another kind:
`qsync-ssh-<run>-<process>@<ticks at its start>-<node>`.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from harness.cluster.family import is_in_our_pid_namespace
from harness.cluster.limits.group import CONTROLLERS, Group, _mounts, group_of

NAME: Final = re.compile(r"^qsync-[0-9a-f]+-(\d+@\d+\.\d+)-[A-Za-z0-9_.]+$")
FAR_NAME: Final = re.compile(r"^qsync-ssh-[0-9a-z]+-(\d+@\d+)-[A-Za-z0-9_.]+$")
_GONE_WITHIN_S: Final = 3.0
_LOOK_AGAIN_S: Final = 0.01


def parent() -> Group:
    """The group below which ours can be made. ValueError says why none can, in one line."""
    own = group_of("self")
    if own.version == 2:
        own = _delegated(own)
    for folder in own.folders:
        if not os.access(folder, os.W_OK):
            raise ValueError(f"no groups of processes can be made in {folder} by this user")
    _try_out(own)
    return own


def why_not() -> str:
    """Why nodes cannot be limited on this machine; "" if they can."""
    try:
        parent()
    except ValueError as error:
        return str(error)
    return ""


def _delegated(own: Group) -> Group:
    for folder in (own.cpu, *own.cpu.parents):
        passed_on = folder / "cgroup.subtree_control"
        if not passed_on.exists():
            break
        if {*CONTROLLERS} <= {*passed_on.read_text().split()}:
            return Group(2, folder, folder)
    raise ValueError("no group of processes above this one passes on the controllers cpu and memory")


def _try_out(parent: Group) -> None:
    """Permissions alone prove nothing: a file system may be read only, or a limit on groups be reached."""
    tried = _within(parent, f"qsync-0-{os.getpid()}@0.0-try")
    try:
        _make(tried)
        if not (tried.cpu / "cpu.stat").exists() or len(tried.limits()) < 2:
            raise ValueError("the kernel has no limits for cores and memory in groups of processes")
    except OSError as error:
        raise ValueError(f"no groups of processes can be made here: {error.strerror or error}") from error
    finally:
        for folder in tried.folders:
            _clear(folder)


@dataclass(slots=True)
class Enclosure:
    """The groups of one run. `run` is its id, `owner` this harness by a name that no other has."""

    run: str
    owner: str
    prefix: str = "qsync"
    groups: dict[str, Group] = field(default_factory=dict)

    def make(self, nodes: Iterable[str], limits: Callable[[Group], None] = lambda group: None) -> None:
        """A group for each node. ValueError says why not."""
        above = parent()
        for node in nodes:
            group = _within(above, f"{self.prefix}-{self.run}-{self.owner}-{node}")
            assert NAME.match(group.cpu.name) or FAR_NAME.match(group.cpu.name), group.cpu.name
            self.groups[node] = group
            try:
                _make(group)
                limits(group)
            except OSError as error:
                raise ValueError(f"no group can be made for {node}: {error}") from error

    def remove(self) -> None:
        """Remove all groups, and kill the processes that are still in them."""
        for group in self.groups.values():
            for folder in group.folders:
                _clear(folder)
        self.groups.clear()


def launcher(group: Group | None, command: tuple[str, ...]) -> tuple[str, ...]:
    """The command, which first enters the group, so that the group counts all that it uses."""
    if group is None:
        return command
    enter = " && ".join(f"echo $$ > '{folder}/cgroup.procs'" for folder in group.folders)
    return ("/bin/sh", "-c", f'{enter} && exec "$@"', "sh", *command)


def leftovers(
    lives: Callable[[str], bool], proc: Path = Path("/proc"), kind: re.Pattern[str] = NAME
) -> Iterator[Path]:
    """The groups of dead harnesses, in all mounted hierarchies."""
    mounted = {where for _, where in _mounts(proc).values()}
    for where in sorted(mounted):
        for folder, names, _ in os.walk(where):
            for name in sorted(names):
                match = kind.match(name)
                group = Path(folder) / name
                if match and not lives(match[1]) and _is_of_our_pid_namespace(group, proc):
                    yield group


def _is_of_our_pid_namespace(group: Path, proc: Path) -> bool:
    """All its processes are. In doubt it is not: also where one ends at this moment."""
    with suppress(OSError):
        pids = (group / "cgroup.procs").read_text().split()
        return all(is_in_our_pid_namespace(int(pid), proc) for pid in pids)
    return False


def supervisor_lives(owner: str) -> bool:
    """The process of that number began at that tick of this machine's clock."""
    number, _, began = owner.partition("@")
    with suppress(OSError, ValueError, IndexError):
        return began_at(int(number)) == int(began)
    return False


def began_at(pid: int) -> int:
    """When a process began, in ticks since the machine did. Raises OSError if it is no more."""
    return int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[19])


def remove_leftovers(lives: Callable[[str], bool] | None) -> list[str]:
    """Remove leftovers, and return their names. `lives`: whether a harness still runs; None: only the leftovers of
    supervisors are removed.
    """
    removed: dict[str, None] = {}
    ours = [] if lives is None else list(leftovers(lives))
    for folder in (*ours, *leftovers(supervisor_lives, kind=FAR_NAME)):
        if _clear(folder):
            removed[f"group of processes {folder.name}"] = None
    return list(removed)


def _within(parent: Group, name: str) -> Group:
    return Group(parent.version, parent.cpu / name, parent.memory / name)


def _make(group: Group) -> None:
    for folder in group.folders:
        folder.mkdir()


def _clear(folder: Path) -> bool:
    """Kill what is in a group of ours, and remove it; False if it is still there."""
    deadline = time.monotonic() + _GONE_WITHIN_S
    while folder.exists():
        with suppress(OSError, ValueError):
            for pid in (folder / "cgroup.procs").read_text().split():
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(int(pid), signal.SIGKILL)
        with suppress(OSError):
            folder.rmdir()
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_AGAIN_S)
    return True
