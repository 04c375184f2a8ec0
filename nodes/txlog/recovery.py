"""The outcome of a recovery, from the digests of all masters: every master computes the same.

A digest leaves out the entries that are the same everywhere, so a recovery costs what was done since the backups.

*Vote.* A master supports every branch of which its synchronised queue is a prefix. The branch with the most
supporters wins; of several the longer one; of equals the one of the smallest master id.

*Simple.* All go back to the last entry that all have in common. Everything behind it is in the incoming queues again,
with its timestamp and id.

*Smart.* The winning branch stays. Everything else is submitted anew: with the same id, and with fresh timestamps
above all that any master knows, dealt out in the order (ts, id).
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
    """`common`: so many first entries of the own queue stay; `refs` follow them. `votes`: master → its supporters."""

    common: int
    winner: str
    votes: Mapping[str, int]
    refs: Sequence[Ref]
    queue: Sequence[Ref]
    counter: int
    is_tie: bool
    """Different branches had as many supporters as the winner."""


def votes_of(synced: Mapping[str, Sequence[Ref]]) -> dict[str, int]:
    """Master → how many masters support its branch."""
    return {
        master: sum(common_length(other, branch) == len(other) for other in synced.values())
        for master, branch in sorted(synced.items())
    }


def winner_of(synced: Mapping[str, Sequence[Ref]]) -> str:
    votes = votes_of(synced)
    return min(votes, key=lambda master: (-votes[master], -len(synced[master]), master))


def branches(digests: Mapping[str, Digest], entries: Sequence[Ref]) -> tuple[int, dict[str, tuple[Ref, ...]]]:
    """The first place where a digest starts, and master → its entries behind that place.

    What comes before the start of a digest is the same on every master, so it is in `entries`.
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
    common = min(common_length(branch, other) for other in synced.values())
    if strategy == "smart":
        kept, stays = branch, common_length(synced[own], branch)
    else:
        kept, stays = branch[:common], common
    there = {ref.id for ref in kept}
    of_winner = {ref.id for ref in branch}
    behind = [ref for each in synced.values() for ref in each[common:] if ref.id not in there]
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
        rest = [ref._replace(ts=counter + number) for number, ref in enumerate(rest, 1)]
        counter += len(rest)
    votes = votes_of(synced)
    rivals = {branch for master, branch in synced.items() if votes[master] == votes[winner]}
    return Outcome(start + stays, winner, votes, kept[stays:], rest, counter, len(rivals) > 1)
