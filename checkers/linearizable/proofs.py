"""The proofs that a verdict carries, so that it need not be trusted: the forms that `checkers.proofs.verify` reads.

Operations are named by the index of their invocation. A proof that would be longer than the caller wants to keep is
left out; so is one that the verifier would take too long over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from checkers.history.values import identity
from checkers.linearizable import monitors
from checkers.linearizable.models import Model
from checkers.linearizable.order import placed
from checkers.linearizable.search import Decision
from checkers.linearizable.shrinking import Proof, Subject

Keys = Sequence[str | None]
FEW = 200
"""Operations up to which a witness is listed; beyond, the verifier walks through the whole past."""
CONFIGURATIONS_MAX = 64
"""Configurations that may be possible at once where the verifier walks through the past."""
CALLS_MAX = 20_000
"""Calls of a past through which the verifier walks."""


def of_yes(keys: Keys, names: list[int]) -> dict[str, Any]:
    """The order: operations by the indexes of their invocations."""
    return {"kind": "order", "keys": list(keys), "operations": names}


def names_in_order(model: Model, subjects: Sequence[Subject], decision: Decision) -> list[int]:
    """The names for `of_yes`: the order that the search found, or the one that its log of placed calls gives."""
    order = decision.order
    if order is None:
        assert decision.log is not None
        order = placed(model, [subject.call for subject in subjects], decision.log, model.initial)
    return [subjects[place].operation.invoke_index for place in order]


def of_no(
    keys: Keys, subjects: Sequence[Subject], decision: Decision, proof: Proof | None
) -> dict[str, Any] | None:
    """Two zones, the calls of one element, the shrunk witness, or (if that is long) the possible configurations.

    None if these are many.
    """
    if decision.algorithm == "zones":
        assert decision.core is not None
        values = [subjects[place].operation.value for place in decision.core]
        asked = [subjects[place].operation.f for place in decision.core]
        seen = [value[0] if f == "cas" else value for value, f in zip(values, asked, strict=True)]
        different = {identity(value): value for value in seen}
        values_alone = {"kind": "zones", "keys": list(keys), "values": list(different.values())}
        return values_alone | _shown(subjects, decision, proof)
    assert decision.failing is not None
    if decision.algorithm == monitors.NAME and decision.core is not None:
        named = [subjects[place].operation.invoke_index for place in decision.core]
        return {
            "kind": "element",
            "keys": list(keys),
            "operations": named,
            **_shown(subjects, decision, proof),
        }
    if shown := _shown(subjects, decision, proof):
        return {"kind": "witness", "keys": list(keys), **shown}
    until = subjects[decision.failing].call.complete
    # A monitor has counted no configurations.
    are_few = decision.algorithm != monitors.NAME and decision.configurations <= CONFIGURATIONS_MAX
    if not are_few or len(subjects) > CALLS_MAX:
        return None
    return {"kind": "configurations", "keys": list(keys), "until": until}


def _shown(subjects: Sequence[Subject], decision: Decision, proof: Proof | None) -> dict[str, Any]:
    """The operations of a short proof, and from when until when they count; a picture of any proof needs them."""
    if proof is None or len(proof.subjects) > FEW:
        return {}
    assert decision.failing is not None
    return {
        "operations": [subject.operation.invoke_index for subject in proof.subjects],
        "until": subjects[decision.failing].call.complete,
        "after": None if proof.after is None else proof.after.operation.invoke_index,
    }
