"""Leftovers of dead harnesses' runs on hosts, and their removal.

A folder is a run's if it has our name and our mark in it, and belongs to the user of this harness. The mark names the
harness of the run. A harness of this machine is looked up here. Of a harness on another machine nothing can be known:
its supervisor ends by itself when the lease is over. A folder without supervisor that is older than its lease is free.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.cluster.ownership import lives, this_harness
from harness.cluster.ssh.inventory import Host
from harness.cluster.ssh.session import Session
from harness.errors import ClusterError


def remove_leftovers(hosts: Iterable[Host]) -> list[str]:
    """Remove what dead harnesses left on the hosts; in words what was removed, and of which hosts it is unknown.

    A host that does not answer keeps no other host from being cleaned. Raises WrongUse for a key that cannot be used.
    """
    removed: list[str] = []
    for host in hosts:
        try:
            removed += _remove_from(host)
        except ClusterError as error:
            removed.append(f"leftovers on {host.place}: no, the host was not cleaned ({error.message})")
    return removed


def _remove_from(host: Host) -> list[str]:
    session = Session.open(host)
    try:
        facts = answer_to(session, host, "look", host.folder)
        folders = clean(session, host, facts)
        groups = answer_to(session, host, "ungroup", "")["removed"]
    finally:
        session.close()
    return [
        *(f"{path} on {host.place}" for path in folders),
        *(f"group of processes {name} on {host.place}" for name in groups),
    ]


def clean(session: Session, host: Host, facts: Mapping[str, Any]) -> list[str]:
    """Remove the leftovers that a host reported; their folders."""
    folders = [run["folder"] for run in facts["runs"] if is_leftover(run)]
    return [folder for folder in folders if answer_to(session, host, "clean", folder)["removed"]]


def answer_to(session: Session, host: Host, word: str, argument: str, stdin: bytes = b"") -> dict[str, Any]:
    """The answer to a word of `remote/bootstrap.py`. Raises ClusterError."""
    output = session.run(word, argument, stdin)
    try:
        answer: dict[str, Any] = json.loads(output)
    except ValueError as error:
        raise ClusterError(f"{host.place} answers {output[:100]!r} to `{word}`") from error
    if "error" in answer:
        raise ClusterError(f"{host.place}: {answer['error']}")
    return answer


def owner() -> str:
    """This harness as hosts know it: which boot of which machine, which process."""
    return f"{_this_machine()} {this_harness()}"


def is_leftover(run: Mapping[str, Any]) -> bool:
    """The harness of that run is gone: known for this machine's, assumed after the lease for another machine's."""
    machine, _, process = str(run["owner"]).partition(" ")
    if machine == _this_machine():
        return not lives(process)
    return not run["is_supervised"] and run["age_s"] > run["lease_s"]


def _this_machine() -> str:
    boot = ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    namespace = ""
    with suppress(OSError):  # containers of one machine count their processes anew
        namespace = str(Path("/proc/self/ns/pid").readlink())
    return f"{os.uname().nodename}/{boot}/{namespace}"
