"""Transactions that are being committed are not looked at when a cut begins."""

from __future__ import annotations

from nodes.twophase.bugs import Bug
from nodes.twophase.decisions import Decisions


class CommittingUntracked(Decisions):
    tracks_committing = False


BUG = Bug(
    decides=CommittingUntracked,
    does="transactions that have left the active ones and are not in the log yet are not looked at",
    seen="a commit that is written behind START is in no set: it is BEFORE at other nodes only",
    checkers=("cuts-transactions",),
)
