"""The promises of the TxLog, with the words of its design ("Design of the TxLog sync protocol").

| | writes, and reads through the log | reads of one master | after healing |
|---|---|---|---|
| no split can happen | linearizable | a state of the log, never an older one | all masters the same |
| split, strategy `none` | nothing | nothing | nothing: queues stay different |
| updates that fail on one master alone | nothing | nothing | nothing: states stay different |
| split, strategy `simple` or `smart` | nothing: it may be undone | nothing | sets: all masters the same |

After a split, transactions are executed anew in a different order. A cas that a client knows to have succeeded may fail
then, and a write that was replaced may come last: of registers nothing is promised. The checks of the masters' logs
compare the masters' states.

A transaction that is submitted after another one was executed on any master sorts behind it: a master executes what
is synchronised up to T only after every counter has come to T.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import get_args

from checkers.logs.txlog.report import PREFIX
from harness.plan.promise import Promise, promised
from nodes.txlog.configuration import Strategy

WHY = (
    "all masters execute one log in one order, and an executed transaction sorts before every later one: rounds add up "
    "to the least counter of all masters"
)
WHY_SPLIT = "masters that are left out execute a log of their own"
WHY_SPURIOUS = "a transaction may fail on one master and succeed on the others"
_AGREED = (
    "“at any given time, for any given pair of peers, either their synchronised queues are identical, or the tail of "
    "one queue is the prefix of another.” (Synchronised queue)"
)
_GUARANTEED = (
    "“the nodes are still guaranteed to reach agreement under normal operation, as long as the timestamp counters are "
    "properly processed and maintained.” (Post/Collect timing and matching)"
)
_SPLIT = (
    "“Both databases are inconsistent for the time being – a client routed via the US-ClientAPI will see different "
    "results than a client routed via the UK-Client API.” (Split-brain use case)"
)
_NONE = (
    "“no workers will be restored from backup upon re-joining the cluster.” (Split recovery strategies, None)"
)
_SIMPLE = (
    "“transactions after the split will be re-synced across the cluster and re-executed.” (Split recovery strategies, "
    "Simple)"
)
_SPURIOUS = (
    "“Spurious failures (updates failing on one worker and succeeding on another) can cause the DC-s to go out of sync "
    "(workers within the same DC will still be in sync)” (Known issues)"
)
_RESTORED = (
    "“all workers will be restored to the last known good state before the split” (Split recovery strategies, "
    "Simple)"
)
_VOTE = "“All masters decide on the correct transaction log using majority vote.” (Split-brain recovery)"
_SAME = "sets are the same on all masters, of registers nothing is promised"
_BEFORE = {"before the split": f"all masters execute one log in one order: {_AGREED}"}
_APART = {
    "in the split": f"each part executes a log of its own, and what it executes may be undone: {_SPLIT}"
}
_BY_PHASE: Mapping[Strategy, Mapping[str, str]] = {
    "none": {
        **_BEFORE,
        "in the split": f"each part executes a log of its own, and nothing of it is undone: {_SPLIT}",
        "in the recovery": f"there is none, and no master goes back: {_NONE}",
        "after it": f"queues and states stay different: {_NONE}",
    },
    "simple": {
        **_BEFORE,
        **_APART,
        "in the recovery": f"nothing is executed, and all masters go back to the state before the split: {_RESTORED}",
        "after it": f"one log again, without a loss of what was accepted, executed anew; {_SAME}: {_SIMPLE}",
    },
    "smart": {
        **_BEFORE,
        **_APART,
        "in the recovery": f"nothing is executed, and all but the branch with most votes go back: {_VOTE}",
        "after it": f"one log again, the branches that lost behind the other one; {_SAME}: {_SIMPLE}",
    },
}
CHECKERS = ("linearizable", "prefix", "set-full", "convergence")
OF_LOGS = {
    "order": _AGREED,
    "once": "“The transaction ID-s are globally unique and are assigned to the transactions upon creation at the node "
    "of origin.” (Incoming queue)",
    "kept": "“The majority masters negotiate the minority updates and add them to their Sync Queues.” (Split-brain "
    "recovery)",
    "acquired": "“Any node should be able to execute a transaction that has already been merged into the synchronised "
    "queue. In order to guarantee this, nodes will only post transactions that they have been able to acquire” "
    "(Acquired transactions only)",
    "executed": _RESTORED,
    "state": "“This order has to be agreed upon, in order to guarantee the eventual consistency between separate data "
    "centers.” (Node state variables)",
    "counters": _GUARANTEED,
    "sessions": "“which contains only transactions with timestamps up to the least (i.e., earliest) of the collected "
    "timestamp counters.” (Normal operation)",
    "policy": "“updates will only continue execution after the MaxPeerLag interval expires or the cluster is "
    "re-joined” (Split recovery strategies, Simple)",
    "vote": _VOTE,
    "drained": _GUARANTEED,
}
"""By check of `checkers.logs.txlog`: it is promised in every configuration, with the prices that the check knows."""
MAY_END_UNDER = ("disk-error",)
"""A master whose disk takes nothing stops, and goes on from its log when it is started again."""


def configuration_of(strategy: Strategy, *, can_split: bool, is_deterministic: bool = True) -> str:
    parts = f"strategy {strategy}" if can_split else "no split"
    return parts if is_deterministic else f"{parts}, spurious failures"


def listed() -> Iterator[tuple[Promise, Mapping[str, str]]]:
    """Every promise, of sets, which come to the same in every order; and what is promised in each phase of a split."""
    for is_deterministic in (True, False):
        yield promise_of("smart", can_split=False, is_deterministic=is_deterministic), {}
        for strategy in get_args(Strategy):
            promise = promise_of(strategy, can_split=True, is_deterministic=is_deterministic)
            yield promise, _BY_PHASE[strategy] if is_deterministic else {}


def promise_of(
    strategy: Strategy, *, can_split: bool, is_deterministic: bool = True, is_order_free: bool = True
) -> Promise:
    if not is_deterministic:
        models = ("", "", "")
        source = _SPURIOUS
    elif not can_split:
        models = ("linearizable", "monotone-prefix", "converged")
        source = f"{_AGREED} {_GUARANTEED}"
    else:
        models = ("", "", "" if strategy == "none" or not is_order_free else "converged")
        source = f"{_SPLIT} {_NONE if strategy == 'none' else _SIMPLE}"
    writes, reads, final = models
    return promised(
        configuration_of(strategy, can_split=can_split, is_deterministic=is_deterministic),
        WHY_SPURIOUS if not is_deterministic else WHY_SPLIT if can_split else WHY,
        writes=writes,
        linearizable_reads=writes,
        owner_reads="",
        replica_reads=reads,
        dirty_reads="read-uncommitted" if reads else "",
        final_state=final,
        leaders="",
        logs="",
        quorum="",
    ).but(
        documented={
            **dict.fromkeys(CHECKERS, source),
            **{f"{PREFIX}{name}": text for name, text in OF_LOGS.items()},
        },
        has_leader=False,
        may_end_under=MAY_END_UNDER,
    )
