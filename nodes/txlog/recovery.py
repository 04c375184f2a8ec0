"""The outcome of a recovery, from the digests of all masters: every master computes the same.

A digest leaves out the entries that are the same everywhere, so the cost of a recovery grows with the work since the
backups.

*Vote.* A master supports every branch of which its synchronised queue is a prefix. The branch with the most
supporters wins; of several the longer one; of equals the one of the smallest master id.

*Simple.* All masters go back to their last common entry. All later transactions return to the incoming queues, with
their timestamps and ids.

*Smart.* The winning branch stays. All other transactions are submitted anew: with the same ids, and with fresh
timestamps above all that any master knows, assigned in the order (ts, id).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nodes.txlog.decisions import Decisions
from nodes.txlog.journal import Digest
from nodes.txlog.refs import Ref, common_length

CORRECT = Decisions()


@dataclass(frozen=True, slots=True)
class Outcome:
    """`common`: the number of first entries of the own queue that stay; `refs` follow. `votes`: master → supporters."""

    common: int
    winner: str
    votes: Mapping[str, int]
    refs: Sequence[Ref]
    queue: Sequence[Ref]
    counter: int
    is_tie: bool
    """A different branch had as many supporters as the winner."""


def votes_of(synced: Mapping[str, Sequence[Ref]]) -> dict[str, int]:
    """Master → how many masters support its branch."""
    return {
        master: sum(common_length(queue, branch) == len(queue) for queue in synced.values())
        for master, branch in sorted(synced.items())
    }


def winner_of(synced: Mapping[str, Sequence[Ref]]) -> str:
    votes = votes_of(synced)
    # The name decides last: all masters have the same digests, and must find the same winner.
    return min(votes, key=lambda master: (-votes[master], -len(synced[master]), master))


def branches(digests: Mapping[str, Digest], entries: Sequence[Ref]) -> tuple[int, dict[str, tuple[Ref, ...]]]:
    """The smallest start of a digest, and master → its entries behind that place.

    The entries before the start of a digest are the same on every master, so `entries` has them.
    """
    start = min(digest.start for digest in digests.values())
    return start, {
        master: (*entries[start : digest.start], *digest.synced) for master, digest in sorted(digests.items())
    }


def outcome(
    digests: Mapping[str, Digest],
    own: str,
    entries: Sequence[Ref],
    strategy: str,
    decisions: Decisions = CORRECT,
) -> Outcome:
    """`entries`: the synchronised queue of the master `own`."""
    start, synced = branches(digests, entries)
    winner = winner_of(synced)
    branch = synced[winner]
    shared = [common_length(branch, queue) for queue in synced.values()]
    common = decisions.in_common(shared, [len(queue) for queue in synced.values()])
    if strategy == "smart":
        agreed, stays = branch, common_length(synced[own], branch)
    else:
        agreed, stays = branch[:common], common
    there = {ref.id for ref in agreed}
    of_winner = {ref.id for ref in branch}
    behind = [ref for log in synced.values() for ref in log[common:] if ref.id not in there]
    won = [ref for ref in behind if ref.id in of_winner]
    lost = decisions.kept_of_losers([ref for ref in behind if ref.id not in of_winner])
    queued = [ref for digest in digests.values() for ref in digest.queue if ref.id not in there]
    rest = sorted(decisions.to_queue_at_rejoin([*won, *lost, *queued]), key=lambda ref: (ref.ts, ref.id))
    counter = max(
        *(digest.counter for digest in digests.values()),
        *(ref.ts for digest in digests.values() for ref in (*digest.synced, *digest.queue)),
        0,
    )
    if strategy == "smart":
        # Above all that any master knows, so that they sort behind the branch that stays.
        rest = [ref._replace(ts=counter + number) for number, ref in enumerate(rest, 1)]
        counter += len(rest)
    votes = votes_of(synced)
    rivals = {branch for master, branch in synced.items() if votes[master] == votes[winner]}
    return Outcome(start + stays, winner, votes, agreed[stays:], rest, counter, len(rivals) > 1)
