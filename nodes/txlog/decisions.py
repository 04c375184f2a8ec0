"""The decisions of a master, one method or value each, with the right answer.

The parts of a master ask here where one wrong answer makes a known bug. A seeded bug (`nodes.txlog.bugs`) is a subclass
with one different answer; no other part mentions it. The arguments of a decision are all that it depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from nodes.txlog.refs import Ref


class Decisions:
    """The decisions of one master in one life of its process."""

    # ---- counters

    def timestamp(self, before: int, after: int) -> int:
        """The timestamp of a new transaction, which raises the counter from `before` to `after`."""
        return after

    def counter_on_receipt(self, own: int, theirs: int) -> int:
        """The own counter after a POST with the counter `theirs`."""
        return max(own, theirs)

    def counter_after_restart(self, counter: int) -> int:
        return counter

    def bound(self, collected: Collection[int], last_of_missing: Collection[int]) -> int:
        """The greatest timestamp that a round may add. `collected`: the own counter and those of the posters."""
        return min((*collected, *last_of_missing))

    # ---- queues

    def sort_key(self, ref: Ref) -> tuple[object, ...]:
        return ref.ts, ref.id

    def own_part(self, queue: Sequence[Ref], is_acquired: Callable[[Ref], bool]) -> list[Ref]:
        """The part of the own queue that a round may add: up to the first one without its updates."""
        end = next((place for place, ref in enumerate(queue) if not is_acquired(ref)), len(queue))
        return list(queue[:end])

    def is_merged(self, is_same_base: bool) -> bool:
        """Whether unknown transactions of a POST are put into the own queue: they are, whatever its base."""
        return True

    def queue_after_restart(self, queue: list[Ref]) -> list[Ref]:
        return queue

    def queue_after_add(self, queue: Sequence[Ref], added: Collection[str]) -> list[Ref]:
        return [ref for ref in queue if ref.id not in added]

    def may_append(self, is_prefix: bool) -> bool:
        """Whether a forerunner's entries are taken: only if the own synchronised queue is a prefix of its queue."""
        return is_prefix

    # ---- splits

    def may_execute(self, is_split: bool, is_lag_over: bool) -> bool:
        return not is_split or is_lag_over

    def may_vote(self, digests: int, masters: int) -> bool:
        """Whether to vote, with this number of digests of that number of configured masters."""
        return digests == masters

    def in_common(self, shared: Collection[int], lengths: Collection[int]) -> int:
        """How many first entries all branches have: the winner shares so many with each; the lengths of all."""
        return min(shared)

    def to_queue_at_rejoin(self, rest: Iterable[Ref]) -> list[Ref]:
        """The transactions that the branches hold beside the agreed queue, each once."""
        return list({ref.id: ref for ref in rest}.values())

    def kept_of_losers(self, refs: list[Ref]) -> list[Ref]:
        """Transactions of losing branches that are submitted anew."""
        return refs

    def executed_after_restore(self, executed: int, restored: int) -> int:
        """The executed index when the state is that of the index `restored`."""
        return restored

    # ---- execution

    def value_of(self, value: object, master: str) -> object:
        """The value that an update stores: the same on all masters."""
        return value
