"""Unique ids: no identifier is given out twice.

| f | value |
|---|---|
| generate | ok: the identifier, any value |

Rule: duplicated. Cannot see: identifiers in answers that never reached their client. Cost: linear.
"""

from __future__ import annotations

from typing import Any

from checkers.domain.proof import shown, verdict
from checkers.history.history import History
from checkers.history.operation import Operation
from checkers.history.values import Value, identity
from checkers.verdict import Verdict, Witness, witness

NAME = "unique-ids"
MODEL = "no identifier twice"


def check(history: History) -> Verdict:
    """Whether all identifiers differ. `details`: generated, duplicated."""
    first: dict[Value, Operation] = {}
    witnesses: list[Witness] = []
    generated = history.select(f="generate", outcome="ok")
    for operation in generated:
        earlier = first.setdefault(identity(operation.value), operation)
        if earlier is not operation:
            summary = (
                f"{shown(operation.value)} was given to processes {earlier.process} and {operation.process}"
            )
            witnesses.append(witness("duplicated", summary, [earlier, operation]))
    details: dict[str, Any] = {"generated": len(generated), "duplicated": len(witnesses)}
    valid = f"{len(generated)} identifiers, all different"
    return verdict(NAME, MODEL, witnesses, details, judged=len(generated), valid=valid)
