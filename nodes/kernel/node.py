"""The one interface between a node and its host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from nodes.kernel.effects import Effect
from nodes.kernel.events import Event, Instant


class Node(Protocol):
    """A state machine: events in, effects out."""

    def step(self, event: Event, now: Instant) -> Sequence[Effect]:
        """Take one event at one instant. An exception means that the node is broken: the host ends it.

        Two are no defect: StartRefused (its files, disk or peers) and StartAgain (`nodes.kernel.errors`).
        """
        ...

    def status(self) -> Mapping[str, object]:
        """A report for an operator, as JSON values: role, owner, term, vclock, queue length, counters."""
        ...


RARE_TURN = "rare turn"
"""The message of a host's log line for the first time of a rare turn in a life; the field `row` names it."""


@runtime_checkable
class CountsRareTurns(Protocol):
    """A node that counts its rare turns."""

    @property
    def sometimes(self) -> Mapping[str, int]:
        """Row → how often it occurred in this life."""
        ...
