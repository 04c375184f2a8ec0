"""The words that faults hold and count messages by."""

from __future__ import annotations

import pytest

from harness.systems.framed_wire import FRAMED
from nodes.kernel.trace import Envelope


@pytest.mark.parametrize("message", [[], {}, "post", None])
def test_a_message_without_a_word_has_no_kind(message: object) -> None:
    """If it failed, an empty list from a node under test would end the simulator, and no verdict would name it."""
    assert FRAMED.kinds_of(message) == FRAMED.kinds_of(Envelope("n1", 1, 1, message)) == ()
    assert FRAMED.kinds_of(["post", 0]) == FRAMED.kinds_of(Envelope("n1", 1, 1, ["post", 0])) == ("post",)
