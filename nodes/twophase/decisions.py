"""The decisions of a node, one method or value each, with the right answer.

The parts of a node ask here where one wrong answer makes a known bug. A seeded bug (`nodes.twophase.bugs`) is a
subclass with one different answer; no other part mentions it. The arguments of a decision are all that it depends on.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

Sign = object
"""The name of the cut after which a transaction commits, as a message carries it; None: no cut runs."""


class Decisions:
    """The decisions of one node in one life of its process."""

    # ---- messages

    def is_marked(self, word: str) -> bool:
        """Whether messages of this kind carry the marker of the running cut: all messages of transactions do."""
        return True

    marker_comes_first = True
    """The marker of a message is handled before its payload."""

    def sign_in_finish(self, signed: Sign, running: Sign) -> Sign:
        """The sign in a finish message: `signed`, taken when the transaction committed."""
        return signed

    # ---- commits

    def sign_of_commit(self, received: Sign, running: Sign) -> Sign:
        """The sign of a transaction that a different node committed first: the received one."""
        return received

    def sign_of_one_phase(self, running: Sign) -> Sign:
        """The sign of a one-phase commit, at the backup, which commits first, or at a primary without one."""
        return running

    # ---- the cut at one node

    def takes_part(self, is_idle: bool) -> bool:
        """Whether a node that learns of a cut by discovery begins it."""
        return True

    tracks_committing = True
    """A cut also covers transactions that are being committed and are not active any more."""

    def awaited(self, collected: Collection[str]) -> Collection[str]:
        """The collected transactions that must finish before FINISH is written."""
        return collected

    def sets_of_finish(
        self, included: Sequence[str], excluded: Sequence[str]
    ) -> tuple[Sequence[str], Sequence[str]]:
        """The two sets that FINISH records."""
        return included, excluded

    def spoils(self, is_recovered_commit: bool) -> bool:
        """Whether a collected transaction makes the cut fail: if recovery committed it, its side is unknown."""
        return is_recovered_commit

    def is_known(self, is_seen: bool, is_running: bool) -> bool:
        """Whether a marker begins no cut: the node has learned of the cut, ended or not (`is_running`)."""
        return is_seen

    fails_with_servers = True
    """A server that joins or leaves makes the running cut fail."""

    # ---- restore

    def is_in(self, is_before_start: bool, is_included: bool, is_excluded: bool) -> bool:
        """Whether a transaction belongs to the cut."""
        return not is_excluded if is_before_start else is_included

    def is_restorable(
        self, finished: Collection[str], taken_back: Collection[str], baseline: Collection[str]
    ) -> bool:
        """Whether a cut with a FINISH on these nodes, which some of them have taken back, can be restored."""
        return set(finished) - set(taken_back) >= set(baseline)
