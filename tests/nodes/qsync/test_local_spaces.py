"""What is local stays local, also when somebody new asks for everything."""

from __future__ import annotations

from nodes.iproto.messages import Call, Join, Rows
from nodes.kernel.effects import Persist, Send
from nodes.kernel.events import Instant, Persisted, Received, Started
from nodes.qsync.replica import Replica
from tests.nodes.qsync.conversation import UUID, configuration

NOW = Instant(0, 0)


class Alone:
    """A cluster of one whose disk is done at once."""

    def __init__(self) -> None:
        self.node = Replica(configuration("n1", nodes=1, quorum=1))
        self.files: dict[str, bytes] = {}
        self.sent: list[object] = []
        self.do(Started({}))
        self.call("box.ctl.promote")

    def do(self, event: Started | Received | Persisted) -> None:
        for effect in self.node.step(event, NOW):
            if isinstance(effect, Send):
                self.sent.append(effect.message)
            elif isinstance(effect, Persist):
                self.do(Persisted(effect.token))

    def call(self, name: str, *arguments: object) -> None:
        self.do(Received(1, Call(0, name, arguments)))


def test_a_join_leaves_local_data_out() -> None:
    """Broken, a new node begins with rows that are another's own business, and dumps differ for good."""
    alone = Alone()
    for space in ("notes", "near", "brief"):
        alone.call("qsync.transaction", [["replace", space, [space, 1]]])
    alone.do(Received(2, Join(0, UUID.format(7))))
    given = [row.body for message in alone.sent if isinstance(message, Rows) for row in message.rows]
    values = [body[0x21] for body in given if int(str(body.get(0x10, 0))) > 511]
    assert values == [("notes", 1)]
