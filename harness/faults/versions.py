"""Steps of a rolling upgrade, and of the way back (`rollout` has the order of nodes). An operator does that
(`harness.run.administration.upgrades`)."""

from __future__ import annotations

from harness.faults.action import Action, Kind, by_the_schedule
from harness.faults.rollout import DOWNGRADE, UPGRADE
from harness.faults.where import REAL, SIM, by_name, no

ONE_CODE = no(SIM, "the simulator runs the nodes of this checkout, in one process")


class VersionAction(Action):
    """A step of one node to another version."""

    is_of_one = True
    ability = "versions"
    stops_processes = True
    is_step = True
    is_administered = True


class Upgrade(VersionAction):
    """The one of `nodes` is stopped (SIGTERM) and started on its data in the newer version."""

    does = "upgrade"
    kinds = (
        Kind(
            name=UPGRADE,
            group="rolling",
            summary="SIGTERM, and the newer version on the same data: one node after the other, "
            "other faults between",
            draw=by_the_schedule,
            where=by_name(REAL) | ONE_CODE,
            nodes_min=2,
        ),
    )


class Downgrade(VersionAction):
    """The same, back to the older version."""

    does = "downgrade"
    kinds = (
        Kind(
            name=DOWNGRADE,
            group="rolling",
            summary="after a rolling upgrade the way back to the older version",
            draw=by_the_schedule,
            where=by_name(REAL) | ONE_CODE,
            nodes_min=2,
        ),
    )
