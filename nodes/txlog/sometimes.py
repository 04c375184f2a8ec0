"""Events that must happen sometimes: rare turns of a master, counted, so that a hunt without any reports that."""

from __future__ import annotations

from typing import get_args

from nodes.txlog.configuration import Strategy


def recovered_by(strategy: str) -> str:
    return f"recovery with the strategy {strategy}"


EMPTY_ROUND = "time-out round that added nothing"
TIME_OUT_ROUND = "time-out round that added"
HEAD_UNACQUIRED = "round stopped at a transaction without its updates"
FROM_ANOTHER = "updates acquired from another master than the origin"
CAUGHT_UP = "lagging master caught up"
RELAYED = "POST that came over another master"
SPLIT = "masters left out"
SPLIT_GREW = "more masters left out in a split"
LATE = "late transaction of a missing master"
REJOINED = "masters took part again without a recovery"
APART = "masters left out again because their queues differ"
RECOVERED = tuple(recovered_by(strategy) for strategy in get_args(Strategy) if strategy != "none")
TIE = "tie of the vote"
OTHER_ORDER = "executed transactions to be executed anew in a different order"
RESTORED = "backup restored"
RESTORED_IN_SPLIT = "backup restored during the next split"
HELD = "submission waited for a recovery"
RESUMED = "restart in a recovery"
THAWED = "recovery waited for a master that was away"
AGAIN = "transaction since the freeze made again"
DIGEST_KEPT = "digest sent by a master that had finished"
WORKER_LOST = "dead worker found by an update"

ROWS: tuple[str, ...] = tuple(
    row
    for name, value in tuple(globals().items())
    if name.isupper()
    for row in ((value,) if isinstance(value, str) else value)
)
"""The rare turns, in the order of the table that shows them."""
