"""An applier: the state it drops when its link ends, and the rows of a peer that it refuses."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from nodes.iproto.messages import Row, Rows
from nodes.kernel.effects import Disconnect, Log, Persist
from nodes.kernel.events import Instant, Received
from nodes.qsync.applier import Applier
from tests.nodes.qsync.conversation import Conversation


def test_the_id_of_a_peer_is_forgotten_with_its_link() -> None:
    """If it failed, a peer that left would be taken for the member that has its id by now, and that one for none."""
    applier = Applier("n4", 4, answered_id=4, state="following", link=7)
    applier.turn_off()
    assert (applier.answered_id, applier.state, applier.link) == (0, "off", -1)


@pytest.mark.parametrize(
    ("kind", "body", "why"),
    [
        (99, {}, "Unknown request type 99"),
        (1, {0x10: 513}, "Unknown request type 1"),
        (20, {0x10: "x"}, "Unknown request type 20"),
        (2, {0x10: 999, 0x21: ("a",)}, "Space '999' does not exist"),
        (2, {0x10: 513, 0x21: ()}, "Tuple field 1 required by space format is missing"),
        (3, {0x10: 513, 0x21: ([1],)}, "Tuple field 1 type does not match one required by operation"),
        (5, {0x10: 513, 0x20: (1, 2)}, "Invalid key part count in an exact match"),
        (9, {0x10: 513, 0x21: ("a", 1), 0x28: [5]}, "update operation must be an array"),
        (2, {0x10: 280, 0x21: (600, 1, "a", "memtx", 0, {}, [5])}, "expected a map with a name as a field"),
    ],
)
def test_rows_that_cannot_be_applied_stop_the_applier_and_leave_nothing(
    kind: int, body: Mapping[int, object], why: str
) -> None:
    """If it failed, one row of a peer, such as of a later version, would end every node that follows it."""
    conversation = Conversation()
    conversation.happen("replica n2")
    node, link = conversation.node, conversation.followed["n1"]
    lsn = node.journal.promised[1] + 1
    row = Row(kind, 1, lsn, 0.0, lsn, body=body)
    effects = node.step(Received(link, Rows((row,))), Instant(conversation.now_ns, conversation.now_ns))
    assert Disconnect(link) in effects
    assert any(
        type(effect) is Log and effect.level == "error" and why in effect.message for effect in effects
    )
    assert not any(type(effect) is Persist for effect in effects)
    assert node.appliers["n1"].state == "stopped"
    assert node.journal.promised[1] == lsn - 1


@pytest.mark.parametrize(
    ("kind", "lsn", "tsn", "why"),
    [
        (3, 1, 1, "lsn 2 of replica 1 stands behind lsn 2"),
        (3, 4, 1, "lsn 5 of replica 1 stands behind lsn 2"),
        (3, 2, 2, "has no end before row 2, which is not of it"),
        (40, 2, 1, "has no end before row 2, which is not of it"),
    ],
    ids=["twice", "a gap", "another transaction", "a decision"],
)
def test_what_is_no_transaction_is_not_written(kind: int, lsn: int, tsn: int, why: str) -> None:
    """If it failed, a node would end by rows of a peer, or acknowledge them and refuse to start on its own log."""
    conversation = Conversation()
    conversation.happen("replica n2")
    node, link = conversation.node, conversation.followed["n1"]
    ours = node.journal.promised[1]
    body = {0x10: 513, 0x21: ("a", 1)} if kind == 3 else {2: 1, 3: ours}
    first = Row(3, 1, ours + 1, 0.0, ours + 1, is_commit=False, body={0x10: 513, 0x21: ("a", 1)})
    last = Row(kind, 1, ours + lsn, 0.0, ours + tsn, body=body)
    now = Instant(conversation.now_ns, conversation.now_ns)
    effects = node.step(Received(link, Rows((first, last))), now)
    assert Disconnect(link) in effects and not any(type(effect) is Persist for effect in effects)
    assert any(type(effect) is Log and why in str(effect.fields.get("reason")) for effect in effects)
    assert node.journal.promised[1] == ours
