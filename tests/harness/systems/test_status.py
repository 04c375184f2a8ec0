"""The words of a node's status that the harness reads, whatever a store makes of them."""

from __future__ import annotations

import pytest

from harness.systems.status import covers, furthest, has_synced, rows_of


def test_a_node_that_numbers_the_origins_has_what_it_has() -> None:
    """If it failed, a store whose vclock has numbers as keys would never be back after a restart."""
    status = {"vclock": {1: 7, 2: 3}}
    assert covers(status, furthest({"n1": status}))
    assert not covers({"vclock": {1: 6, 2: 3}}, furthest({"n1": status}))
    assert not covers(None, {"1": 1}) and covers(None, {}) and not covers({}, {"1": 1})


def test_positions_that_are_no_numbers_are_left_out() -> None:
    """If it failed, a rolling restart of a store that reports places as PostgreSQL writes them would end the run."""
    status = {"vclock": {"n1": "0/16B3748", "n2": "7", "n3": None, "n4": float("inf")}}
    assert furthest({"n1": status, "n2": {"vclock": "0/16B3748"}, "n3": None}) == {"n2": 7}
    assert covers(status, {"n2": 7}) and not covers(status, {"n2": 8})
    assert (rows_of(status), rows_of(None), rows_of({"vclock": 3})) == (7, 0, 0)


@pytest.mark.parametrize(
    ("own", "other", "is_back"),
    [
        ({"role": "replica", "following": ["n2"]}, {}, True),
        ({"role": "replica", "following": []}, {}, False),
        ({"role": "loading", "following": ["n2"]}, {}, False),
        ({}, {}, True),
        (None, {}, False),
        ({}, None, False),
    ],
)
def test_a_node_is_back_when_it_serves_and_follows_the_others(
    own: dict[str, object] | None, other: dict[str, object] | None, is_back: bool
) -> None:
    """If it failed, the next node of a rolling restart would stop while this one still loads."""
    assert has_synced("n1", {"n1": own, "n2": other}) == is_back
