"""Accepts or refuses the proofs of one level over all cuts of a run: `verify` and `verify_logs` have the rules."""

from __future__ import annotations

from checkers.cuts import verify, verify_logs
from checkers.cuts.checker import Given, sideless
from checkers.cuts.logs import Cut
from checkers.cuts.report import Judgement, Level, Report
from checkers.cuts.verify import RefusedError
from checkers.verdict import Verdict, Verified

PROVED: frozenset[Level] = frozenset({"messages", "transactions", "closure", "external-causality"})
"""The levels whose judgements have proofs."""


def check(given: Given, report: Report, level: Level, verdict: Verdict) -> Verified:
    """Check what the verdict says of each cut, by the proof that the report of the same material has for it."""
    cuts = {cut.id: cut for cut in given.cuts}
    judgements = {each.cut: each for each in report.judgements[level]}
    left_out = judgements.keys() - {told["cut"] for told in verdict.details["cuts"]}
    accepted, refused, without = 0, [f"{level} of {name}: it is left out" for name in sorted(left_out)], []
    for told in verdict.details["cuts"]:
        name = told["cut"]
        if told["result"] == "unknown":
            continue
        if name not in judgements:
            refused.append(f"{level} of {name}: there is no such cut")
        elif judgements[name].proof is None:
            without.append(f"{level} of {name}")
        else:
            try:
                _check(given, level, cuts[name], told["result"], judgements[name])
                accepted += 1
            except RefusedError as error:
                refused.append(f"{level} of {name}: {error}")
    results = {told["result"] for told in verdict.details["cuts"] if told["standing"] == "judged"}
    follows = verdict.result == ("invalid" if "invalid" in results else "valid")
    return Verified(accepted, tuple(refused), tuple(without), follows and not refused and not without)


def _check(given: Given, level: Level, cut: Cut, result: str, judgement: Judgement) -> None:
    proof = judgement.proof
    assert proof is not None, judgement
    if level == "messages":
        assert given.trace is not None, level
        apart = sideless(given, cut, given.trace)
        times = {"asked_ns": cut.asked_ns, "ended_ns": cut.ended_ns}
        verify.check(given.trace, cut.id, result, proof, **times, sideless=apart)
    else:
        assert given.logs is not None, level
        operations = given.operations or ()
        verify_logs.check(given.logs, given.baseline, cut.id, level, result, proof, operations)
