"""Named streams and vector clocks."""

from __future__ import annotations

from nodes.kernel.chance import Streams
from nodes.kernel.vclock import covers, signature, text


def test_a_draw_in_one_stream_shifts_no_other() -> None:
    """Broken, one more fault in a plan changes all that clients do, and nothing can be shrunk."""
    one, other = Streams(7), Streams(7)
    one["faults"].random()
    assert one["clients"].random() == other["clients"].random()
    assert one["faults"].random() != other["faults"].random()
    assert Streams(8)["clients"].random() != Streams(7)["clients"].random()


def test_a_component_that_is_absent_is_zero() -> None:
    """Broken, a node that has never heard of an origin counts as having its rows, or is refused for nothing."""
    assert covers({1: 2}, {1: 2, 3: 0}) and covers({1: 2, 2: 1}, {1: 1})
    assert not covers({1: 2}, {1: 2, 2: 1})
    assert signature({1: 2, 3: 5}) == 7
    assert text({3: 5, 1: 2}) == "{1: 2, 3: 5}"
