"""Which administration a fault is."""

from __future__ import annotations

from typing import Protocol

from harness.administration.members import Addition, Removal, Replacement
from harness.administration.options import ChangedOptions
from harness.administration.restarts import Restarts
from harness.administration.site import Site
from harness.administration.upgrades import VersionStep
from harness.faults.fault import Evidence, Fault


class Work(Protocol):
    """One fault, from its beginning to its verified end."""

    async def begin(self) -> None: ...

    async def end(self) -> Evidence: ...


def work_of(fault: Fault, site: Site) -> Work:
    match fault.does:
        case "restart":
            return Restarts(fault, site)
        case "upgrade" | "downgrade":
            return VersionStep(fault, site)
        case "options":
            return ChangedOptions(fault, site)
        case "remove":
            return Removal(fault, site)
        case "add":
            return Addition(fault, site)
        case "replace":
            return Replacement(fault, site)
    raise AssertionError(f"{fault.does} is no administration")
