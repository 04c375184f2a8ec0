"""Options of nodes, for code that does not know their names: the system has these, and says what they decide."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

Value = bool | int | float | str

OPTION = "option"
"""A line of the history: a node has a new value of an option from then on. How it got the value:"""
RUNNING, RESTARTED = "while it ran", "by a restart"
RECONFIGURING = ("reconfigure", "reconfigure-at-a-moment", "restart-otherwise")
"""Faults that change any option that can change."""
CHANGE_OPTIONS = (*RECONFIGURING, "timeouts", "quorum")


@dataclass(frozen=True, slots=True)
class Decisive:
    """The options of a system that matter to more than one node; "" if it has none."""

    elections: str = ""
    """Which part the node takes in elections."""
    quorum: str = ""
    """How many nodes must have a write."""

    def as_set(self, options: Mapping[str, Value]) -> dict[str, Value]:
        """The options of a fault as nodes get them: a quorum is a whole number. ValueError if it is none."""
        quorum = options.get(self.quorum)
        if isinstance(quorum, bool) or (isinstance(quorum, float) and not quorum.is_integer()):
            raise ValueError(f"expected a whole number of nodes, got {quorum}")
        return {name: int(value) if name == self.quorum else value for name, value in options.items()}

    def who_leads(self, options: Collection[str]) -> bool:
        """While these options change, no node may be the owner."""
        return self.about_elections(options) or self.about_quorum(options)

    def about_elections(self, options: Collection[str]) -> bool:
        return bool(self.elections) and self.elections in options

    def about_quorum(self, options: Collection[str]) -> bool:
        return bool(self.quorum) and self.quorum in options
