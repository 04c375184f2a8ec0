"""Our transactional checker beside Elle's own tests (`elle_cases`), and both beside the definitions.

docs/checkers-beside-others.md has the table.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import NamedTuple

import pytest

from checkers import transactional
from checkers.history import ModelError
from checkers.transactional import anomalies
from checkers.verdict import Verdict
from tests.checkers.beside import elle_cases, pages
from tests.checkers.beside.elle_cases import BOUNDARIES, CASES, PREDICATES, Case
from tests.checkers.brute import isolation, transactions
from tests.checkers.transactional import definitions

ROWS = {
    "verdict": "verdicts by a model",
    "anomaly": "anomalies that Elle names",
    "absent": "anomalies that Elle was asked for and did not find",
    "ruled out": "weakest models that Elle rules out",
}
"""The kinds of claims, and their rows in the docs."""


class Claim(NamedTuple):
    """One thing that Elle says of a case."""

    kind: str
    case: str
    what: str


DIFFERENT = {
    Claim(
        "verdict", "rw-register: value written twice", "serializable"
    ): "inconclusive: no transaction reads",
    Claim(
        "verdict", "rw-register: a value from nowhere", "strict-serializable"
    ): "Elle's test calls this a bug",
    Claim(
        "anomaly", "rw-register: components out of order", "G1c-realtime"
    ): "the same circle is G1c-process",
}
"""Where we say something else; the table in the docs has the reasons."""


def model_of(name: str) -> str:
    """Our name; the weakest model that we judge stands for read uncommitted, which we refuse."""
    return "read-committed" if name == "read-uncommitted" else anomalies.model_of(name)


@cache
def judged(case: Case, model: str) -> Verdict | None:
    """None: refused."""
    try:
        return transactional.check(case.history(), workload=case.workload, model=model, **case.options)
    except ModelError:
        return None


def claims(case: Case) -> dict[Claim, bool]:
    """What Elle says of the case, and whether we say the same."""
    strictest = judged(case, "strict-serializable")
    found = set(strictest.details["anomalies"]) if strictest else set()
    out = set(strictest.details["ruled_out"]) if strictest else set()
    same: dict[tuple[str, str], bool] = {}
    for model, expected in case.says.items():
        verdict = judged(case, model)
        same["verdict", model] = (verdict.result if verdict else elle_cases.REFUSED) == expected
    for name in case.shows.split():
        same["anomaly", name] = elle_cases.ours(name) in found
    for name in case.absent.split():
        same["absent", name] = strictest is not None and elle_cases.ours(name) not in found
    for name in case.out.split():
        same["ruled out", name] = model_of(name) in out
    return {Claim(kind, _name(case), what): agreed for (kind, what), agreed in same.items()}


def _name(case: Case) -> str:
    return f"{case.workload}: {case.name}"


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_what_elle_says(case: Case) -> None:
    """We would contradict Elle on a history of its own tests, and the docs would not say so."""
    said = claims(case)
    assert said
    assert {claim for claim, agreed in said.items() if not agreed} == {
        claim for claim in DIFFERENT if claim.case == _name(case)
    }


def test_every_difference_is_of_a_case() -> None:
    """A difference that is gone, or misspelt, would stay in the table."""
    names = [_name(case) for case in CASES]
    assert len(names) == len(set(names))
    assert {claim.case for claim in DIFFERENT} <= set(names)


def test_the_table_in_the_docs() -> None:
    """The docs would have other figures than these tests."""
    said = [(claim.kind, agreed) for case in CASES for claim, agreed in claims(case).items()]
    total, agreed = Counter(kind for kind, _ in said), Counter(kind for kind, same in said if same)
    for kind, row in ROWS.items():
        assert pages.row(row) == [str(total[kind]), str(agreed[kind])]
    assert total.keys() == ROWS.keys()
    for claim in DIFFERENT:
        assert pages.row(claim.case.split(": ")[1]), claim


def test_the_figures_in_the_text_of_the_docs() -> None:
    """The docs would say more of the definitions, or of models that Elle does not rule out, than is true."""
    with_models = [case for case in CASES if case.out]
    more = sum(_rules_out_more(case) for case in with_models)
    text = pages.text()
    assert f"In {more} of the {len(with_models)} histories with models that Elle rules out" in text
    defined = sum(map(has_definition, CASES))
    assert f"For {defined} of the {len(CASES)} histories" in text
    assert f"decides all {len(anomalies.MODELS)} models" in text


def _rules_out_more(case: Case) -> bool:
    verdict = judged(case, "strict-serializable")
    assert verdict is not None
    weakest = {model_of(name) for name in case.out.split()}
    return any(
        model not in weakest and not weakest.intersection(anomalies.weaker(model))
        for model in verdict.details["ruled_out"]
    )


# ---- the definitions, which share no code with either


ORDERS = {"linearizable_keys": transactions.realtime, "sequential_keys": transactions.session}


def has_definition(case: Case) -> bool:
    """No definition in code knows start values, an order that the store names, or predicates beside options."""
    return judged(case, "strict-serializable") is not None and (
        not case.options if case in PREDICATES else case.options.keys() <= ORDERS.keys()
    )


def allowed(case: Case) -> set[str]:
    if case in PREDICATES:
        holds = definitions.Definitions(case.history(), case.workload).holds
        return {model for model in anomalies.MODELS if holds[model]}
    of_keys = next((ORDERS[name] for name in case.options), transactions.nothing)
    return {
        model
        for model in anomalies.MODELS
        if isolation.allows(model, case.history(), workload=case.workload, of_keys=of_keys)
    }


@pytest.mark.parametrize("case", [case for case in CASES if has_definition(case)], ids=_name)
def test_every_model_by_its_definition(case: Case) -> None:
    """A model that we rule out and Elle does not would be ruled out in error, or the other way round."""
    verdict = judged(case, "strict-serializable")
    assert verdict is not None
    assert allowed(case) == set(anomalies.MODELS) - set(verdict.details["ruled_out"])


# ---- what rules out what


@pytest.mark.parametrize("shown", BOUNDARIES)
def test_the_models_that_an_anomaly_rules_out(shown: str) -> None:
    """A model would count as left that Elle's table rules out."""
    out = anomalies.ruled_out(elle_cases.ours(name) for name in shown.split())
    assert {anomalies.model_of(name) for name in BOUNDARIES[shown].split()} <= set(out)


def test_the_models_that_we_rule_out_beyond_elle() -> None:
    """Our table would forbid more than the docs say."""
    internal = {"consistent-view", "forward-consistent-view", "repeatable-read", "update-serializable"}
    more: dict[str, set[str]] = {}
    for shown, named in BOUNDARIES.items():
        out = anomalies.ruled_out(elle_cases.ours(name) for name in shown.split())
        judged_too = {name for name in elle_cases.ALL.split() if anomalies.model_of(name) in out}
        more[shown] = judged_too - set(named.split())
    assert {shown: models for shown, models in more.items() if models} == {
        "internal": internal,
        "internal G2": internal,
        "G-single": {"parallel-snapshot-isolation"},
    }


def test_what_read_committed_forbids() -> None:
    """An anomaly of Elle's would be allowed by read committed."""
    assert anomalies.forbidden("read-committed") == {*elle_cases.READ_COMMITTED.split(), "garbage-read"}


def test_a_cycle_that_elle_does_not_find() -> None:
    """One G-single among many G2-item would be missed, or the search would give up."""
    history = elle_cases.needle_in_cycles(9, 5)
    verdict = transactional.check(history, workload="append", model="snapshot-isolation")
    assert verdict.result == "invalid" and not verdict.details["undecided"]
    assert "G-single" in verdict.details["anomalies"]
