"""Which action of an operator a fault is."""

from __future__ import annotations

from harness.faults.fault import Fault
from harness.faults.hands import AtWork
from harness.run.administration.additions import Introduction
from harness.run.administration.deployed import Deployed
from harness.run.administration.members import Addition, Removal, Replacement
from harness.run.administration.options import ChangedOptions
from harness.run.administration.restarts import Restarts
from harness.run.administration.upgrades import VersionStep


def action_of(fault: Fault, deployed: Deployed) -> AtWork:
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
