"""Restarts in turn, or all at once. An operator does that (`harness.run.administration.restarts`)."""

from __future__ import annotations

from harness.faults.action import Action, Kind, by_the_system, in_turn
from harness.faults.options import OTHERWISE, STARTED_ANEW
from harness.faults.where import EVERYWHERE, by_name


class Restart(Action):
    """`nodes` are stopped (SIGTERM) and started again, one after the other, each as soon as the one before has caught
    up; `at_once`: all together. With `options` they start with these, and are restarted in the same way without them at
    the end, unless the change `stays`."""

    does = "restart"
    kinds = (
        Kind(
            name=OTHERWISE,
            group="rolling",
            summary="all nodes restarted with another option, in turn or at once, and later with the old one",
            draw=by_the_system,
            where=STARTED_ANEW,
            ability="options",
        ),
        Kind(
            name="rolling-restart",
            group="rolling",
            summary="SIGTERM and restart, one node after the other",
            draw=in_turn,
            where=by_name(EVERYWHERE),
        ),
    )
    stops_processes = True
    is_administered = True
