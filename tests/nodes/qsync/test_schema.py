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
    changed = schema.version
    assert changed > before.node.schema.version, "a connector reads the spaces again"
    conversation.happen("wait 1000ms")
    conversation.happen("written all")
    assert schema.version > changed
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


def tuples_of(conversation: Conversation, name: str) -> list[object]:
    return list(conversation.node.schema.lookup[name].scan(dirty=True))


FRESH = (
    "owner n1",
    'c2 call box.schema.space.create "fresh"',
    "written all",
    'c2 call qsync.transaction [["insert", "fresh", [1, 5]]]',
    "written all",
)
"""A space with the highest number, and a tuple in it."""


def test_a_new_space_holds_nothing_of_a_dropped_one() -> None:
    """Broken, the next space with the number of a dropped one begins with its tuples, which fit it or not."""
    conversation = Conversation()
    for line in (*FRESH, "c2 call box.space.fresh:drop", "written all"):
        conversation.happen(line)
    number = conversation.node.schema.free_id()
    for name in ("near again", "another"):
        conversation.happen(f'c2 call box.schema.space.create "{name}"')
        conversation.happen("written all")
    assert conversation.node.schema.lookup["near again"].definition.id == number
    assert tuples_of(conversation, "near again") == []
    assert not conversation.node.schema._dropped, "nothing can bring it back"


def test_a_dropped_space_comes_back_with_its_tuples() -> None:
    """Broken, a drop that is rolled back empties the space, although another one has had its number meanwhile."""
    conversation = Conversation()
    for line in (*FRESH, "c1 replace register r1 1"):
        conversation.happen(line)
    number = conversation.node.schema.lookup["fresh"].definition.id
    for line in ("c2 call box.space.fresh:drop", 'c2 call box.schema.space.create "again"'):
        conversation.happen(line)
    assert conversation.node.schema.lookup["again"].definition.id == number
    assert tuples_of(conversation, "again") == []
    for line in ("written all", "wait 1000ms", "written all"):
        conversation.happen(line)
    assert tuples_of(conversation, "fresh") == [(1, 5)]
    assert "again" not in conversation.node.schema.lookup
