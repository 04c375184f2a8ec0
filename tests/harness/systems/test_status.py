"""The words of a node's status that the harness reads, whatever a store makes of them."""

from __future__ import annotations

from harness.systems.status import covers, furthest


def test_a_node_that_numbers_the_origins_has_what_it_has() -> None:
    """If it failed, a store whose vclock has numbers as keys would never be back after a restart."""
    status = {"vclock": {1: 7, 2: 3}}
    assert covers(status, furthest({"n1": status}))
    assert not covers({"vclock": {1: 6, 2: 3}}, furthest({"n1": status}))
    assert not covers(None, {"1": 1}) and covers(None, {}) and not covers({}, {"1": 1})
