"""Options change while nodes run. An operator does that (`harness.run.administration.options`); which ones, and to
what, the system draws (`harness.systems.parts.Settings`)."""

from __future__ import annotations

from harness.faults.action import Action, Kind, by_the_system
from harness.faults.node_options import RECONFIGURING
from harness.faults.where import EVERYWHERE, REAL, SIM, by_name, no

QUORUM, TIMEOUTS = "quorum", "timeouts"
RECONFIGURE, RECONFIGURE_AT, OTHERWISE = RECONFIGURING
STARTED_ANEW = by_name(SIM) | no(
    REAL, "there nodes start with the options that they had; try the faults timeouts and quorum"
)


class Options(Action):
    """`options`, by their names in box.cfg, are changed on `nodes` while they run, and changed back at the end, unless
    that `stays`: then nodes start with them from then on. `delay_ns` passes between one node and the next."""

    does = "options"
    kinds = (
        Kind(
            name=TIMEOUTS,
            group="configuration",
            summary="a timeout (synchro, election, replication) is changed on all nodes for a while",
            draw=by_the_system,
            where=by_name(EVERYWHERE),
        ),
        Kind(
            name=QUORUM,
            group="configuration",
            summary="the quorum is greater on all nodes for a while; no linearizable reads are promised then",
            draw=by_the_system,
            where=by_name(EVERYWHERE),
            nodes_min=3,
        ),
        Kind(
            name=RECONFIGURE,
            group="configuration",
            summary="an option is changed for a while, on one node or on all in turn "
            "(election mode, fencing, timeouts, …)",
            draw=by_the_system,
            where=STARTED_ANEW,
        ),
        Kind(
            name=RECONFIGURE_AT,
            group="configuration",
            summary="the same on one node in the middle of an election, a promotion, a join or a read",
            draw=by_the_system,
            where=STARTED_ANEW,
        ),
    )
    ability = "options"
    is_administered = True
    hinders_owner = False
