"""Definitions of spaces that are prepared and then rolled back: nothing of them is left, in memory or in a snapshot."""

from __future__ import annotations

import pytest

from tests.nodes.qsync.conversation import Conversation

CHANGES = (
    "c2 alter notes is_sync true",
    'c2 call box.schema.space.create "fresh"',
    "c2 call box.space.near:drop",
)


def pending(change: str) -> Conversation:
    """An owner with a synchronous transaction that waits, and a change of the schema behind it."""
    conversation = Conversation()
    for line in ("owner n1", "c1 replace register r1 1", change, "written all"):
        conversation.happen(line)
    return conversation


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_is_rolled_back_leaves_nothing(change: str) -> None:
    """Broken, a later snapshot, or the next CREATE, sees a space that there is not, or one that is another."""
    before = Conversation()
    before.happen("owner n1")
    conversation = pending(change)
    schema = conversation.node.schema
    assert schema.stored() != before.node.schema.stored(), "it was prepared"
    conversation.happen("wait 1000ms")
    conversation.happen("written all")
    assert schema.stored() == before.node.schema.stored()
    assert sorted(schema.by_id) == sorted(before.node.schema.by_id)
    assert [space.definition for space in schema.user_spaces()] == [
        space.definition for space in before.node.schema.user_spaces()
    ]


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_is_confirmed_stays(change: str) -> None:
    """Broken, the test above could not fail: nothing would ever be changed."""
    before = pending(change).node.schema.stored()
    conversation = pending(change)
    for line in ("n2 acks 99", "written all", "restart"):
        conversation.happen(line)
    assert conversation.node.schema.stored() == before


@pytest.mark.parametrize("change", CHANGES)
def test_a_snapshot_behind_a_rollback_has_the_old_definitions(change: str) -> None:
    """Broken, a node that starts from its snapshot has other spaces than before."""
    conversation = pending(change)
    for line in ("c3 snapshot", "wait 1000ms", "written all", "restart"):
        conversation.happen(line)
    fresh = Conversation()
    fresh.happen("owner n1")
    assert [space.definition for space in conversation.node.schema.user_spaces()] == [
        space.definition for space in fresh.node.schema.user_spaces()
    ]
