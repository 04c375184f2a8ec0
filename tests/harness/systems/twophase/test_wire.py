"""The words by which faults wait for messages of the two-phase store."""

from __future__ import annotations

import pytest

from harness.systems.twophase.wire import MARKED, NEWS_OF_CUT, NEWS_OF_MEMBERS, OF_TRANSACTION, WIRE
from nodes.kernel.trace import Envelope

CUT, JOIN, OTHER = ["cut", "c1"], ["join", "s2", 1, "server"], ["noop"]


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (["append", 1, 2, 3, 4, [(1, CUT), (1, OTHER)], 5], {"append", NEWS_OF_CUT}),
        (["append", 1, 2, 3, 4, [(1, JOIN)], 5], {"append", NEWS_OF_MEMBERS}),
        (["learn", 1, 2, [CUT, JOIN]], {"learn", NEWS_OF_CUT, NEWS_OF_MEMBERS}),
        (["learn", 1, 2, [OTHER]], {"learn"}),
        (["prepare", 1, None, "x1", {}], {"prepare", OF_TRANSACTION}),
        (["prepare", 1, "c1", "x1", {}], {"prepare", OF_TRANSACTION, MARKED}),
        (["vote", 1, 2], {"vote"}),
    ],
)
def test_a_message_comes_under_the_words_that_faults_wait_for(message: list[object], words: set[str]) -> None:
    """If it failed, a fault that begins with the news of a cut, or of members, would never begin."""
    assert {*WIRE.kinds_of(message)} == words
    assert {*WIRE.kinds_of(Envelope("n1", 1, 1, message))} == words
