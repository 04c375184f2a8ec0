"""The order promise, against a list that does it the slow and obvious way."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from nodes.kernel.effects import Connect, Disconnect, Persist, Send
from nodes.kernel.outbox import Outbox, Queued

ACTIONS = st.lists(
    st.one_of(
        st.just(("persist", 0)),
        st.tuples(st.just("send"), st.integers(0, 5)),
        st.just(("connect", 0)),
        st.just(("disconnect", 0)),
        st.just(("durable", 0)),
        st.just(("fail", 0)),
        st.just(("take", 0)),
        st.just(("write", 0)),
    ),
    max_size=60,
)


@dataclass
class Plain:
    """All effects ever put, in order; each one looks at everything before it."""

    effects: list[Queued] = field(default_factory=list)
    durable: set[int] = field(default_factory=set)
    lost: set[int] = field(default_factory=set)
    left: int = 0

    def tokens(self) -> list[int]:
        return [e.token for e in self.effects if isinstance(e, Persist)]

    def known(self) -> list[int]:
        """Tokens that a node may still name: it has been told which were lost."""
        return [token for token in self.tokens() if token not in self.lost]

    def outstanding(self) -> list[int]:
        return [token for token in self.tokens() if token not in self.durable | self.lost]

    def take(self) -> list[Queued]:
        """What may leave: not yet left, nothing undecided before it, hanging on nothing that was lost."""
        free: list[Queued] = []
        while self.left < len(self.effects):
            effect = self.effects[self.left]
            if isinstance(effect, Persist) and effect.token not in self.durable | self.lost:
                break
            self.left += 1
            is_dropped = isinstance(effect, Send) and effect.after in self.lost
            if not isinstance(effect, Persist) and not is_dropped:
                free.append(effect)
        return free


@given(actions=ACTIONS)
def test_effects_leave_in_order_and_never_before_the_record_in_front_of_them(
    actions: list[tuple[str, int]],
) -> None:
    """Broken, an answer passes the record that it stands behind: an acknowledged write is on no disk."""
    outbox, plain, handed_over = Outbox(), Plain(), list[int]()
    for number, (action, back) in enumerate(actions):
        effect = _effect(action, number, plain.known(), back)
        if effect is not None:
            outbox.put([effect])
            plain.effects.append(effect)
        elif action == "durable" and (outstanding := plain.outstanding()):
            outbox.persisted(outstanding[0])
            plain.durable.add(outstanding[0])
        elif action == "fail":
            assert list(outbox.failed()) == plain.outstanding()
            plain.lost.update(plain.outstanding())
        elif action == "write":
            handed_over += [record.token for record in outbox.take_records()]
        elif action == "take":
            assert outbox.take_released() == plain.take()
    assert outbox.take_released() == plain.take()
    handed_over += [record.token for record in outbox.take_records()]
    assert handed_over == sorted(set(handed_over)), "each record goes to the disk once, in order"
    assert set(plain.outstanding()) <= set(handed_over)


def _effect(action: str, number: int, tokens: list[int], back: int) -> Queued | None:
    match action:
        case "persist":
            return Persist(number, "log", b"", "row")
        case "send":
            return Send(1, number, tokens[-back] if 0 < back <= len(tokens) else None)
        case "connect":
            return Connect(f"n{number}")
        case "disconnect":
            return Disconnect(number)
        case _:
            return None


def test_a_failure_drops_exactly_what_hangs_on_it() -> None:
    """Broken, a failed write takes innocent answers with it, or lets copies of what is on no disk out."""
    outbox = Outbox()
    kept: list[Queued] = [Send(1, "first", after=1), Send(1, "read"), Disconnect(3)]
    outbox.put([Persist(1, "log", b"", "row"), kept[0], Persist(2, "log", b"", "row")])
    outbox.put(
        [Send(2, "copy", after=2), kept[1], Persist(3, "log", b"", "row"), Send(2, "copy", after=3), kept[2]]
    )
    outbox.persisted(1)
    assert outbox.failed() == (2, 3)
    assert outbox.take_released() == kept
    assert len(outbox) == 0 and outbox.take_records() == []
