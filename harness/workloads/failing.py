"""Transactions that must fail: one of their statements cannot be done, so nothing of the whole may stay.

| failure | statement | the store's answer |
|---|---|---|
| compare | a compare-and-set whose old value no client wrote | a mismatch |
| duplicate | an insert of a key that the same transaction has inserted or found | error 3 |
| malformed | a sum of a word | error 1 |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.clients.completion import Completion
from harness.clients.transaction import Committed, Refused, Statement
from harness.generators import Context
from harness.generators.generator import Value
from harness.plan import Plan

NEVER_WRITTEN = "no client wrote this"
AS_IT_HAD_TO = "failed, as it had to"
_ANSWERS = ("illegal-parameters (1)", "duplicate-key (3)")
COMMITTED = "committed, although one of its statements had to fail"

FAILURES: Mapping[str, Callable[[str, object], Statement]] = {
    "compare": lambda space, key: ["cas", space, key, NEVER_WRITTEN, 0],
    "duplicate": lambda space, key: ["insert", space, [key, 0]],
    "malformed": lambda space, key: ["add", space, key, NEVER_WRITTEN],
}
"""(space, a key that the transaction has inserted before) → the statement."""


def failing(plan: Plan, context: Context) -> str:
    """How the next transaction is to fail; "" if it is not."""
    if not plan.failing or context.chance.random() >= plan.failing:
        return ""
    return context.chance.choice(tuple(FAILURES))


def failed(found: Committed | Refused | Completion, value: Value) -> Completion:
    """What the answer to such a transaction means.

    If the store says that it committed, that is taken as a failure: nobody may see its rows.
    """
    match found:
        case Refused(role=role):
            return Completion("fail", value, AS_IT_HAD_TO, role)
        case Completion(type="fail", error=error) if error in _ANSWERS:
            return Completion("fail", value, AS_IT_HAD_TO, found.role)
        case Completion():
            return found
        case Committed(_, role):
            return Completion("fail", value, COMMITTED, role)
