"""Which action of an operator a fault is."""

from __future__ import annotations

from typing import Protocol

from harness.faults.fault import Evidence, Fault
from harness.run.administration.additions import Introduction
from harness.run.administration.deployed import Deployed
from harness.run.administration.members import Addition, Removal, Replacement
from harness.run.administration.options import ChangedOptions
from harness.run.administration.restarts import Restarts
from harness.run.administration.upgrades import VersionStep


class Action(Protocol):
    """One fault that an operator's action is, from its beginning to its verified end."""

    async def begin(self) -> None: ...

    async def end(self) -> Evidence: ...


def action_of(fault: Fault, deployed: Deployed) -> Action:
    match fault.does:
        case "restart":
            return Restarts(fault, deployed)
        case "upgrade" | "downgrade":
            return VersionStep(fault, deployed)
        case "options":
            return ChangedOptions(fault, deployed)
        case "remove":
            return Removal(fault, deployed)
        case "add" if deployed.system.members.are_added_running:
            return Introduction(fault, deployed)
        case "add":
            return Addition(fault, deployed)
        case "replace":
            return Replacement(fault, deployed)
    raise AssertionError(f"{fault.does} is no administration")
