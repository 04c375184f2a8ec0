"""Messages that no role of a node can take."""

from __future__ import annotations

import pytest

from nodes.kernel.effects import Log
from nodes.twophase.configuration import Configuration
from nodes.twophase.dispatch import LENGTHS, WORDS, described
from nodes.twophase.links import ATOMIC
from nodes.twophase.node import TwoPhase
from tests.nodes.twophase.virtual_cluster import SERVERS

KNOWN = sorted({word for word, _ in LENGTHS})


@pytest.mark.parametrize("word", [*KNOWN, "news"])
def test_a_message_of_another_length_is_told_and_dropped(word: str) -> None:
    """If it failed, a node of another version would end all nodes that it sends to."""
    node = TwoPhase(Configuration(name="n1", baseline=SERVERS))
    for count in range(9):
        if (word, count) in LENGTHS:
            continue
        node.site.out = []
        node.dispatch.take("n2", 1, word, [1] * count)
        node.dispatch.release()
        (log,) = node.site.out
        assert isinstance(log, Log) and log.message.startswith("unknown message")
        assert log.fields == {"word": word, "fields": count, "peer": "n2"}


def test_all_words_are_recorded_but_those_of_atomic_spaces() -> None:
    """If it failed, cuts would be judged by a part of the messages, or by some that carry no marker."""
    assert {word for word in (*KNOWN, "news") if described([word, 1, None, "n1-1-1"])} == WORDS
    assert {*KNOWN} - WORDS == ATOMIC
