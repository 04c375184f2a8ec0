"""Verdicts on parts of a history, by keys, made into the verdict on all of it.

A key's operations have an order or not whatever other keys do (linearizability is local), so the whole is as its parts
are. Parts that are fine are only counted; keys that are not are handed to `check` together, so that witnesses come in
the order of what went wrong first, and are the same as if nothing had been split.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from checkers.linearizable.checker import NAME, PROOF_OPERATIONS, conclusion_without_witness
from checkers.verdict import Result, Verdict

SUMS = ("keys", "operations", "observations")


def merged(fine: Sequence[Verdict], rest: Verdict | None) -> Verdict:
    """`fine`: verdicts on parts in which no key is invalid or undecided; `rest`: on all other keys (None: none)."""
    parts = [verdict for verdict in (*fine, rest) if verdict is not None]
    left_over = [name for each in fine for name in ("keys_invalid", "keys_undecided") if each.details[name]]
    assert parts and not left_over, "a part that is not fine"
    details = _details([verdict.details for verdict in parts], rest)
    result, summary = _conclusion(details, rest)
    return Verdict(
        checker=NAME,
        result=result,
        summary=summary,
        model=NAME,
        witnesses=() if rest is None else rest.witnesses,
        details=details,
        seconds=sum(verdict.seconds for verdict in parts),
    )


def of_segments(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict on one key from those on its segments (see `segments`), all of them fine.

    The write that a later segment begins with is not counted as an operation. No proof is kept: proofs of segments
    prove nothing about the whole unless the verifier knows how it was cut.
    """
    details = _details([{**verdict.details, "proofs": []} for verdict in verdicts], None)
    details |= {
        "keys": 1,
        "operations": details["operations"] - (len(verdicts) - 1),
        "decided_by": {"segments": 1},
        "decided_without_proof": 1,
    }
    result, summary = _conclusion(details, None)
    return Verdict(checker=NAME, result=result, summary=summary, model=NAME, details=details)


def _details(parts: Sequence[Mapping[str, Any]], rest: Verdict | None) -> dict[str, Any]:
    details: dict[str, Any] = {name: sum(part[name] for part in parts) for name in SUMS}
    details["vacuous"] = not details["observations"]
    details["keys_invalid"] = [] if rest is None else rest.details["keys_invalid"]
    details["keys_undecided"] = {} if rest is None else rest.details["keys_undecided"]
    details["configurations_max"] = max(part["configurations_max"] for part in parts)
    for name in ("decided_by", "reads_not_judged"):
        details[name] = dict(sorted(_added(part[name] for part in parts).items()))
    details["failed_cas_observes"] = parts[0]["failed_cas_observes"]
    details["model"] = parts[0]["model"]
    proofs = _within(parts if rest is None else [rest.details, *parts[:-1]])
    decided = details["keys"] - len(details["keys_undecided"])
    details |= {"proofs": proofs, "decided_without_proof": decided - len(proofs)}
    if rest is not None and "longest_prefix" in rest.details:
        details["longest_prefix"] = rest.details["longest_prefix"]
    return details


def _added(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    whole: Counter[str] = Counter()
    for part in counts:
        whole.update(part)
    return whole


def _within(parts: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Proofs for as long as they name no more operations together than those of one check do."""
    kept: list[dict[str, Any]] = []
    left = PROOF_OPERATIONS
    for proof in (proof for part in parts for proof in part["proofs"]):
        named = len(proof.get("operations", ()))
        if named <= left or proof.get("result") == "no":
            kept.append(proof)
            left -= named
    return kept


def _conclusion(details: Mapping[str, Any], rest: Verdict | None) -> tuple[Result, str]:
    if rest is not None and rest.result == "invalid":
        return "invalid", rest.summary
    undecided = [*details["keys_undecided"].values()]
    return conclusion_without_witness(details["keys"], undecided, details["observations"])
