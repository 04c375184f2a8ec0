"""What a host writes of the messages between nodes, by a host of the simulator; `tests/nodes/host` has the real one."""

from __future__ import annotations

import pytest

from nodes.framed import FramedCodec
from nodes.kernel.trace import Row
from nodes.world.network import MILLISECOND
from nodes.world.world import World
from tests.nodes.kernel.traced_pings import PINGS, Pings, described
from tests.nodes.world.ears import run


def ran(*, is_patient: bool, as_bytes: bool = False, seed: int = 1) -> World:
    makers = {"a": lambda: Pings(["b"], is_patient), "b": lambda: Pings(["a"], is_patient)}
    world = World(seed, makers, codec=FramedCodec() if as_bytes else None, described=described)
    for machine in world.machines.values():
        machine.start()
    run(world.agenda, 300)
    world.machines["b"].kill()
    run(world.agenda, 10)
    world.machines["b"].start()
    run(world.agenda, 300)
    return world


def rows_of(world: World, word: str) -> list[tuple[str, int, Row]]:
    return [
        (node, life, row)
        for node, lives in world.messages.items()
        for life, rows in enumerate(lives, 1)
        for row in rows
        if row[0] == word
    ]


@pytest.mark.parametrize("as_bytes", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_each_message_that_was_taken_was_sent(seed: int, as_bytes: bool) -> None:
    """Broken, a checker meets messages from nowhere, or takes two for one."""
    world = ran(is_patient=True, as_bytes=as_bytes, seed=seed)
    sent = [(node, life, row[1]) for node, life, row in rows_of(world, "send")]
    taken = [tuple(row[1:4]) for _, _, row in rows_of(world, "receive")]
    assert len(sent) == len(set(sent))
    assert len(taken) == len(set(taken)) >= 4 * PINGS
    assert set(taken) <= set(sent)
    assert [len(lives) for lives in world.messages.values()] == [1, 2]
    assert all(
        rows[0][:3] == ["life", node, life]
        for node, lives in world.messages.items()
        for life, rows in enumerate(lives, 1)
    )


@pytest.mark.parametrize("is_patient", [True, False])
def test_a_message_is_taken_at_the_step_that_does_not_ask_for_it_again(is_patient: bool) -> None:
    """Broken, a node that handles what came with a message first looks like one that handles it too late."""
    world = ran(is_patient=is_patient)
    for first, *_ in world.messages.values():
        words = [str(row[0]) for row in first]
        assert (words.index("mark") < words.index("receive")) is is_patient, words
    node = world.machines["a"].node
    assert isinstance(node, Pings)
    assert all(isinstance(message, list) for message in node.taken), "a node sees an envelope"


def test_rows_say_what_was_sent_to_whom_and_when() -> None:
    """Broken, a picture has messages without names."""
    world = ran(is_patient=True)
    rows = [row for node, life, row in rows_of(world, "send") if node == "a" and row[3] == "ping"]
    assert [row[2:5] for row in rows[:PINGS]] == [["b", "ping", f"b-{number}"] for number in range(PINGS)]
    times = [row[-1] for row in world.messages["a"][0]]
    assert times == sorted(times, key=lambda each: int(str(each))) and int(str(times[-1])) > 300 * MILLISECOND


def test_a_world_that_records_nothing_has_no_rows() -> None:
    """Broken, every store pays for it."""
    world = World(1, {"a": lambda: Pings(["b"]), "b": lambda: Pings(["a"])})
    for machine in world.machines.values():
        machine.start()
    run(world.agenda, 300)
    assert world.messages == {"a": [], "b": []}
    node = world.machines["b"].node
    assert isinstance(node, Pings) and len(node.taken) == PINGS
