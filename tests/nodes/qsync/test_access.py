"""Named functions have the rights of their caller, as requests have."""

from __future__ import annotations

import pytest

from nodes.iproto.messages import Call
from nodes.kernel.events import Received
from nodes.qsync.access import GUEST
from nodes.qsync.configuration import User
from tests.nodes.qsync.conversation import Conversation, configuration

CALLS = (
    ("box.schema.space.create", ("b",), "Write", "space '_space'"),
    ("box.space.notes:alter", ({"is_sync": True},), "Write", "space 'notes'"),
    ("box.space.notes:drop", (), "Write", "space 'notes'"),
    ("box.space.notes:truncate", (), "Write", "space 'notes'"),
    ("qsync.dump", (), "Read", "universe ''"),
)


def answers_to(guest: User, name: str, arguments: tuple[object, ...]) -> list[str]:
    """The effects of a call to a node with a row in `notes`."""
    conversation = Conversation()
    conversation.begin(configuration("n1", nodes=1, quorum=1))
    conversation.write("all")
    conversation.happen("c1 promote")
    conversation.happen("written all")
    conversation.happen("c1 replace notes a 1")
    conversation.happen("written all")
    conversation.conf = configuration("n1", nodes=1, quorum=1, more={"users": (guest,)})
    conversation.start()
    conversation.write("all")
    conversation.lines.clear()
    conversation.step(Received(conversation._link("c2"), Call(0, name, arguments)))
    return conversation.lines


@pytest.mark.parametrize(("name", "arguments", "privilege", "what"), CALLS)
def test_a_user_that_may_only_execute_neither_writes_nor_reads(
    name: str, arguments: tuple[object, ...], privilege: str, what: str
) -> None:
    """If it failed, a user that may not delete one tuple could truncate or drop the space."""
    refusal = f"send c2: error 42 {privilege} access to {what} is denied for user 'guest'"
    assert answers_to(User(name="guest", may=("execute",)), name, arguments) == [refusal]


@pytest.mark.parametrize(("name", "arguments"), [call[:2] for call in CALLS])
def test_a_user_with_all_rights_is_served(name: str, arguments: tuple[object, ...]) -> None:
    """If it failed, the test before would pass where nobody is served."""
    first, *_ = answers_to(GUEST, name, arguments)
    assert first.startswith(("persist", "send c2: ok"))
