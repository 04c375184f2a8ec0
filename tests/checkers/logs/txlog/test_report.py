"""A verdict keeps each place of the breaches that a strategy documents."""

from __future__ import annotations

from checkers.logs.txlog.report import PRICES_MAX, Breach, Report, verdict
from checkers.verdict import WITNESSES_MAX


def test_every_price_has_its_place_in_a_verdict() -> None:
    """If it failed, a later split would be shown without the price that the strategy had in it."""
    priced = [
        Breach(rule="diverged", summary="", records=[("n1", place)], price="documented")
        for place in (1, 1, *range(2, PRICES_MAX + 8))
    ]
    few = verdict("order", Report(breaches=priced[: WITNESSES_MAX + 9]), "").details
    assert [each["records"] for each in few["documented"]] == [[["n1", place]] for place in range(1, 29)]
    assert few["documented_left_out"] == 0
    many = verdict("order", Report(breaches=priced), "").details
    assert (len(many["documented"]), many["documented_left_out"]) == (PRICES_MAX, 7)
