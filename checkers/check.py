"""A check: a checker with the rule that it stands for and the model that it judges by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from checkers.history.history import History
from checkers.proofs.meaning import Terms
from checkers.verdict import Verdict, Verified, run_safely


@dataclass(frozen=True, slots=True)
class Check:
    """One checker: its rule in a few words, and the model that it judges against.

    `model` "": nothing is promised here; what the check finds is reported, and is not a violation. `judged`: what its
    proofs are about, for the verifiers; None for a check without proofs.
    """

    name: str
    summary: str
    model: str
    run: Callable[[History], Verdict]
    is_per_key: bool = False
    """The verdict on a whole history follows from those on its keys, each by itself."""
    judged: Terms | None = None
    verify: Callable[[History, Verdict], Verified] | None = None
    """How the proofs of a check of nodes are accepted or refused, by code that it shares nothing with."""
    is_of_nodes: bool = False
    """The check judges nodes, and does not need to know the effects of operations."""


RunCheck = Callable[[Check, History], Verdict]
"""How a check comes to its verdict on a history."""


def run_here(check: Check, history: History) -> Verdict:
    """Run the check in this process. A checker that raises gives unknown, unless it raises CheckerDefect."""
    return run_safely(check.run, history, name=check.name)
