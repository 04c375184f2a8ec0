"""The state that all parts of a master share: its configuration, its decisions, the effects of this step."""

from __future__ import annotations

from collections import Counter

from nodes.kernel.continuations import Continuations
from nodes.txlog.configuration import Configuration
from nodes.txlog.decisions import Decisions


class Site(Continuations):
    """One master in one life."""

    def __init__(self, configuration: Configuration, decisions: Decisions) -> None:
        super().__init__(configuration.name)
        self.configuration = configuration
        self.decisions = decisions
        self.sometimes: Counter[str] = Counter()
        """Rare turns (`sometimes.py`)."""
