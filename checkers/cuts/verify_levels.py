"""Accepts or refuses the proofs of one level over all cuts of a run: `verify` and `verify_logs` have the rules."""

from __future__ import annotations

from checkers.cuts import verify, verify_logs
from checkers.cuts.checker import Given, sideless
from checkers.cuts.logs import Cut
from checkers.cuts.report import NOTHING, Judgement, Level, Report
from checkers.verdict import RefusedError, Verdict, Verified, merged

PROVED: frozenset[Level] = frozenset({"messages", "transactions", "closure", "external-causality"})
"""The levels whose judgements have proofs."""


def check(given: Given, report: Report, level: Level, verdict: Verdict) -> Verified:
    """Check what the verdict says of each cut, by the proof that the report of the same material has for it.

    `accepted` counts proofs, one a cut. The verdict must follow from its cuts, which are those of the report. A cut may
    be claimed unknown without proof; then the verdict must not be valid. KeyError if the details lack a field.
    """
    cuts = {cut.id: cut for cut in given.cuts}
    judgements = {judgement.cut: judgement for judgement in report.judgements[level]}
    claims = verdict.details["cuts"]
    omitted = judgements.keys() - {claim["cut"] for claim in claims}
    accepted, refused, unproved = 0, [f"{level} of {name}: it is left out" for name in sorted(omitted)], []
    for claim in claims:
        name, judgement = claim["cut"], judgements.get(claim["cut"])
        if judgement is None:
            refused.append(f"{level} of {name}: there is no such cut")
        elif claim["result"] == "unknown":
            # Such a cut does not count, so it needs the report's word.
            if claim["standing"] == NOTHING and judgement.standing != NOTHING:
                refused.append(f"{level} of {name}: there is something to judge")
        elif judgement.proof is None:
            unproved.append(f"{level} of {name}")
        else:
            try:
                _check(given, level, cuts[name], claim["result"], judgement)
                accepted += 1
            except RefusedError as error:
                refused.append(f"{level} of {name}: {error}")
    # A result that is claimed counts, whatever standing is claimed beside it.
    follows = merged(
        claim["result"] for claim in claims if claim["result"] != "unknown" or claim["standing"] != NOTHING
    )
    if verdict.result != follows:
        refused.append(f"{level}: it says {verdict.result}, and its cuts say {follows}")
    return Verified(accepted, tuple(refused), tuple(unproved), not refused and not unproved)


def _check(given: Given, level: Level, cut: Cut, result: str, judgement: Judgement) -> None:
    proof = judgement.proof
    assert proof is not None, judgement
    if level == "messages":
        assert given.trace is not None, level
        without_side = sideless(given, cut, given.trace)
        times = {"asked_ns": cut.asked_ns, "ended_ns": cut.ended_ns}
        verify.check(given.trace, cut.id, result, proof, **times, sideless=without_side)
    else:
        assert given.logs is not None, level
        operations = given.operations or ()
        verify_logs.check(given.logs, given.baseline, cut.id, level, result, proof, operations)
