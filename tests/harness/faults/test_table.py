"""The table of actions, and what checkers conclude from them."""

from __future__ import annotations

from checkers.history import faults
from harness.faults.table import ACTIONS, which


def test_checkers_conclude_what_actions_do() -> None:
    """A fault that stops nodes, cuts links or sets clocks would be taken for one that does not."""
    known = faults.STOPS_PROCESSES | faults.RESTARTS_PROCESSES
    assert which(lambda action: action.stops_processes) == known - {"oom"}, "oom ends what it limits"
    assert which(lambda action: action.limits_nodes) == faults.SLOWS_PROCESSES | {"oom"}
    assert which(lambda action: action.sets_clocks) == faults.SETS_CLOCKS
    assert {does for does in ACTIONS if "cut" in does} == faults.CUTS
    assert which(lambda action: not action.hinders_owner) >= faults.HOLDS_UP_NOBODY


def test_each_action_can_be_done_somewhere() -> None:
    """A name would be listed that no cluster carries out."""
    for action in ACTIONS.values():
        assert action.__doc__
        for kind in action.kinds:
            assert kind.where.clusters, kind.name
