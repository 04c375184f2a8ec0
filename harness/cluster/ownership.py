"""Which harness made a container, a network or a rule; and the removal of what a dead harness left behind.

Everything that a run makes has two labels: its id, and the harness that made it, as process number and the time at
which that process started (numbers are used again). A thing with our label and a dead harness is a leftover. A thing
without our label is never touched. A table of packet rules has no labels: both stand in its
name, so its harness can be known without any daemon, whichever daemon the run's containers are with. The harness of a
process stands in the mark that it inherits (`harness.cluster.family`).

In doubt a harness lives: what a dead one left can be removed later, what a living one lost cannot be given back.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import time
from collections.abc import Iterable, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import psutil  # type: ignore[import-untyped]  # it has no types

from harness.cluster.family import GONE_WITHIN_S, MARK, is_in_our_pid_namespace

RUN_LABEL = "qsync-harness.run"
OWNER_LABEL = "qsync-harness.owner"
NODE_LABEL = "qsync-harness.node"
TABLE_PREFIX = "qsync_"
_TRIES = 10
_TRY_AGAIN_S = 0.5
_TABLE = re.compile(rf"^table bridge ({TABLE_PREFIX}[0-9a-f]+(?:_\d+_\d+_\d+)?)$")
_OWNED = re.compile(rf"^{TABLE_PREFIX}[0-9a-f]+_(\d+)_(\d+)_(\d+)$")
_MARKED = re.compile(r"^(\d+@\d+\.\d+)/")
_HARNESS = re.compile(r"^harness\.|(^|/)qsync$")
"""A word in the command line of a process that conducts a run: a module, or the script that pip installs."""


@dataclass(frozen=True, slots=True)
class RunId:
    """The id of one run, and the labels of what it makes."""

    text: str

    @classmethod
    def new(cls) -> RunId:
        return cls(secrets.token_hex(4))

    @property
    def labels(self) -> dict[str, str]:
        return {RUN_LABEL: self.text, OWNER_LABEL: this_harness()}

    @property
    def filter(self) -> dict[str, str]:
        """By which the Docker daemon finds what the run made."""
        return {"label": f"{RUN_LABEL}={self.text}"}

    @property
    def table(self) -> str:
        """The name of its table of packet rules."""
        owner = this_harness().replace("@", "_").replace(".", "_")
        return f"{TABLE_PREFIX}{self.text}_{owner}"


def this_harness() -> str:
    """This process, by a name that no other will have; the same whatever happens to the wall clock meanwhile."""
    return _named(os.getpid())


@cache
def _named(pid: int) -> str:
    return f"{pid}@{psutil.Process(pid).create_time():.2f}"


def lives(owner: str) -> bool:
    """The harness of that name still runs on this machine, or may run.

    The start of a process is a time of the wall clock, which may have been set since. So if a process with that number
    is a harness, it is assumed to be that one. So is a process of another user that /proc does not show (hidepid).
    """
    if owner == this_harness():
        return True
    number, _, started = owner.partition("@")
    try:
        process = psutil.Process(int(number))
        if f"{process.create_time():.2f}" == started:
            return True
        return process.pid != os.getpid() and any(map(_HARNESS.search, process.cmdline()))
    except ValueError:
        return False
    except psutil.Error:  # also of a hidden process: that there is none
        return _is_of_another_user(int(number))


def _is_of_another_user(pid: int) -> bool:
    """There is a process with that number, and this user may send it no signal."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        pass
    return False


def remove_processes() -> list[str]:
    """Kill the processes of nodes that dead harnesses left; in words. Their relays were killed too, or had done it."""
    left: dict[psutil.Process, str] = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):  # it ends, or is another user's
            match = _MARKED.match(process.environ().get(MARK, ""))
            if match and is_in_our_pid_namespace(process.pid) and not lives(match[1]):
                left[process] = f"process {process.pid} ({' '.join(process.cmdline())[:80]})"
                process.kill()
    _, alive = psutil.wait_procs(list(left), GONE_WITHIN_S)
    return [words + ": no, it is still there" * (process in alive) for process, words in left.items()]


def remove_leftovers(client: Any) -> list[str]:
    """Remove what dead harnesses left; what was removed, in words, or why it could not be."""
    rules = tables()  # before the networks: a run that begins meanwhile makes its network first
    removed: list[str] = []
    for container in client.containers.list(all=True, filters={"label": RUN_LABEL}, ignore_removed=True):
        if not lives(container.labels.get(OWNER_LABEL, "")):
            failure = remove_container(container)
            still = f": no, it is still there ({failure})" if failure else ""
            removed.append(f"container {container.name}{still}")
    runs_alive: set[str] = set()
    for network in client.networks.list(filters={"label": RUN_LABEL}):
        labels = network.attrs.get("Labels") or {}
        if lives(labels.get(OWNER_LABEL, "")):
            runs_alive.add(labels[RUN_LABEL])
        else:
            removed += _remove_network(network)
    return removed + remove_tables(rules, keep=runs_alive)


def _remove_network(network: Any) -> list[str]:
    """Remove a network; returns that in words, or why it is still there, or [] if another process was faster."""
    import docker  # type: ignore[import-untyped]  # it has no types

    try:
        network.remove()
    except docker.errors.NotFound:
        return []
    except Exception as error:  # the daemon's own, and those of its transport
        return [f"network {network.name}: no, it is still there ({type(error).__name__}: {error})"]
    return [f"network {network.name}"]


def remove_run(client: Any, run: RunId) -> None:
    """Remove everything of one run, however far it got."""
    containers = client.containers.list(all=True, filters=run.filter, ignore_removed=True)
    with ThreadPoolExecutor(max_workers=8) as side_by_side:
        list(side_by_side.map(remove_container, containers))
    for network in client.networks.list(filters=run.filter):
        with suppress(Exception):
            network.remove()


def remove_container(container: Any) -> str:
    """Remove a container, in several tries: a busy daemon gives up waiting for the end of one that it has killed.

    Returns why it is still there after that, or "".
    """
    import docker

    with suppress(Exception):
        container.unpause()
    failure = ""
    for _ in range(_TRIES):
        try:
            container.remove(force=True, v=True)
        except docker.errors.NotFound:
            return ""
        except Exception as error:  # it is being removed by another process, or the daemon is slow
            failure = f"{type(error).__name__}: {error}"
            time.sleep(_TRY_AGAIN_S)
        else:
            return ""
    return failure


def remove_tables(names: Iterable[str] | None = None, keep: Set[str] | None = None) -> list[str]:
    """Remove those of our tables of packet rules (all, or these) that a dead harness made; in words.

    `keep`: the runs that have a network, for tables without a harness in their names; None: unknown.
    """
    removed: list[str] = []
    for name in tables() if names is None else names:
        if _is_dead(name, keep):
            with suppress(OSError):
                command = ["nft", "delete", "table", "bridge", name]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                still = f": no, they are still there ({done.stderr.strip()})" if done.returncode else ""
                removed.append(f"packet rules {name}{still}")
    return removed


def _is_dead(name: str, keep: Set[str] | None) -> bool:
    if owned := _OWNED.match(name):
        number, second, hundredths = owned.groups()
        return not lives(f"{number}@{second}.{hundredths}")
    return keep is not None and name.removeprefix(TABLE_PREFIX) not in keep


def tables() -> list[str]:
    """Our tables of packet rules on this machine."""
    try:
        listed = subprocess.run(["nft", "list", "tables"], capture_output=True, text=True, check=False)
    except OSError:
        return []
    return [match[1] for line in listed.stdout.splitlines() if (match := _TABLE.match(line.strip()))]
