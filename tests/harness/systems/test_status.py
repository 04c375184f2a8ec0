"""The words of a node's status that the harness reads, whatever a store makes of them."""

from __future__ import annotations

from harness.systems.status import covers, furthest, rows_of


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
