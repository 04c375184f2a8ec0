"""Transactions that must fail: one of their steps cannot be done, so nothing of the whole may stay.

| failure | step | the answer |
|---|---|---|
| compare | a compare-and-set with an old value that no client wrote | a mismatch |
| duplicate | an insert of a key that the same transaction has inserted or found | duplicate-key |
| malformed | a sum of a word | illegal-parameters |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.clients.operations import Add, Cas, Completion, Done, Insert, Mismatch, Outcome, Step
from harness.clients.operations.outcome import IMPOSSIBLE
from harness.plan.plan import Plan
from harness.workloads.generators import Context
from harness.workloads.generators.generator import Value

NEVER_WRITTEN = "no client wrote this"
AS_IT_HAD_TO = "failed, as it had to"
COMMITTED = "committed, although one of its statements had to fail"

FAILURES: Mapping[str, Callable[[str, str | int], Step]] = {
    "compare": lambda space, key: Cas(space, key, NEVER_WRITTEN, 0),
    "duplicate": lambda space, key: Insert(space, key, 0),
    "malformed": lambda space, key: Add(space, key, NEVER_WRITTEN),
}
"""(space, a key that the transaction has inserted before) → the step."""

MADE_OF: frozenset[type] = frozenset({Cas, Insert, Add})


def failing(plan: Plan, context: Context) -> str:
    """How the next transaction is to fail; "" if it is not."""
    if not plan.failing or context.chance.random() >= plan.failing:
        return ""
    return context.chance.choice(tuple(FAILURES))


def failed(found: Outcome, value: Value) -> Completion:
    """The outcome of such a transaction, from its answer.

    If the store answers that it committed, it is recorded as a failure: no read may show its rows.
    """
    match found:
        case Mismatch(role=role):
            return Completion("fail", value, AS_IT_HAD_TO, role)
        case Completion(type="fail", error=error) if (error or "").startswith(IMPOSSIBLE):
            return Completion("fail", value, AS_IT_HAD_TO, found.role)
        case Completion():
            return found
        case Done(role=role):
            return Completion("fail", value, COMMITTED, role)
