"""A verdict on a level of cuts that does not say what its cuts show is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checkers.cuts import check, verify_levels
from checkers.verdict import Result, Verdict, Witness
from tests.checkers.cuts.right_cuts import given

RIGHT = given(trace={"n1": "+a>n2 *k1 +b>n2", "n2": "-a *k1 -b"})
WRONG = given(trace={"n1": "+a>n2 *k1 +b>n2 +c>d", "n2": "-a -b *k1", "d": "-c +e>n2"})


def _forged(verdict: Verdict, result: Result, claim: dict[str, str]) -> Verdict:
    (only,) = verdict.details["cuts"]
    witnesses = verdict.witnesses or (Witness(rule="made-up", summary="of nothing", events=()),)
    return replace(
        verdict,
        result=result,
        witnesses=witnesses if result == "invalid" else (),
        details={**verdict.details, "cuts": [{**only, **claim}]},
    )


@pytest.mark.parametrize("material", [RIGHT, WRONG], ids=["right", "wrong"])
def test_the_verdict_of_the_report_is_accepted(material: Any) -> None:
    """If it failed, `--verify` would take the word of a right verdict away."""
    report = check(material)
    verified = verify_levels.check(material, report, "messages", report.verdict("messages"))
    assert (verified.holds, verified.accepted, verified.refused) == (True, 1, ())


FORGED: dict[str, tuple[Any, Result, dict[str, str], str]] = {
    "valid over an unknown cut": (
        WRONG,
        "valid",
        {"result": "unknown", "standing": "lacks material"},
        "say unknown",
    ),
    "valid over a wrong cut": (WRONG, "valid", {}, "say invalid"),
    "a wrong cut with nothing to judge": (
        WRONG,
        "unknown",
        {"result": "unknown", "standing": "nothing to judge"},
        "something to judge",
    ),
    "a wrong cut that is right": (WRONG, "valid", {"result": "valid"}, "messages of k1"),
    "invalid over a right cut": (RIGHT, "invalid", {}, "say valid"),
    "a wrong cut that does not count": (WRONG, "valid", {"standing": "nothing to judge"}, "say invalid"),
    "another cut": (RIGHT, "valid", {"cut": "k9"}, "no such cut"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_verdict_is_refused(name: str) -> None:
    """If it failed, a verdict would stand that its own cuts, or the material, contradict."""
    material, result, claim, why = FORGED[name]
    report = check(material)
    forged = _forged(report.verdict("messages"), result, claim)
    verified = verify_levels.check(material, report, "messages", forged)
    assert not verified.holds
    assert any(why in refusal for refusal in verified.refused), verified.refused
