"""The proofs that a verdict carries, so that it need not be trusted: the forms that `checkers.proofs.verify` reads.

Operations are named by the index of their invocation. A proof that would be longer than the caller wants to keep is
left out; so is one that the verifier would take too long over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from checkers.linearizable import monitors
from checkers.linearizable.models import Model
from checkers.linearizable.order import placed
from checkers.linearizable.search import Found
from checkers.linearizable.shrinking import Proof, Subject

Keys = Sequence[str | None]
FEW = 200  # operations up to which a witness is listed; beyond, the verifier walks through the whole past
CONFIGURATIONS_MAX = (
    64  # what may be possible at once where the verifier is to walk through a past of any length
)
CALLS_MAX = 20_000


def of_yes(keys: Keys, names: list[int]) -> dict[str, Any]:
    """The order: operations by the indexes of their invocations."""
    return {"kind": "order", "keys": list(keys), "operations": names}


def names_in_order(model: Model, subjects: Sequence[Subject], found: Found) -> list[int]:
    """What `of_yes` is given."""
    order = found.order
    if order is None:
        assert found.log is not None
        order = placed(model, [subject.call for subject in subjects], found.log, model.initial)
    return [subjects[each].operation.invoke_index for each in order]


def of_no(
    keys: Keys, subjects: Sequence[Subject], found: Found, proof: Proof | None
) -> dict[str, Any] | None:
    """Two zones, or the witness that was shown, or (if that is long) all that was possible; None if that is much."""
    if found.algorithm == "zones":
        assert found.core is not None
        values = [subjects[each].operation.value for each in found.core]
        asked = [subjects[each].operation.f for each in found.core]
        seen = [value[0] if f == "cas" else value for value, f in zip(values, asked, strict=True)]
        different = {msgspec.json.encode(value, order="sorted"): value for value in seen}
        values_alone = {"kind": "zones", "keys": list(keys), "values": list(different.values())}
        return values_alone | _shown(subjects, found, proof)
    assert found.failing is not None
    if shown := _shown(subjects, found, proof):
        return {"kind": "witness", "keys": list(keys), **shown}
    until = subjects[found.failing].call.complete
    walked = found.algorithm != monitors.NAME and found.configurations <= CONFIGURATIONS_MAX
    if not walked or len(subjects) > CALLS_MAX:
        return None
    return {"kind": "configurations", "keys": list(keys), "until": until}


def _shown(subjects: Sequence[Subject], found: Found, proof: Proof | None) -> dict[str, Any]:
    """The operations of a short proof, and from when until when they count; a picture of any proof needs them."""
    if proof is None or len(proof.subjects) > FEW:
        return {}
    assert found.failing is not None
    return {
        "operations": [subject.operation.invoke_index for subject in proof.subjects],
        "until": subjects[found.failing].call.complete,
        "after": None if proof.after is None else proof.after.operation.invoke_index,
    }
