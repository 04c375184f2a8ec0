"""The tables of states are what nodes do: no change is missing, and none is invented."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodes.qsync.states import MACHINES, Machine, page
from tests.nodes.qsync.conversation import Conversation
from tests.nodes.qsync.state_watch import Seen, watching
from tests.nodes.qsync.test_conversations import FILES
from tests.nodes.qsync.test_random_runs import Chaos

PAGE = Path(__file__).parents[3] / "docs" / "states.md"


@pytest.fixture(scope="module")
def seen() -> Iterator[Seen]:
    """Every change of state in all conversations of nodes without a seeded bug."""
    with watching() as watch:
        for file in FILES:
            watch.place = file.stem
            conversation = Conversation()
            script = file.read_text(encoding="utf-8")
            for line in script.splitlines() if " bug=" not in script else ():
                if line.startswith("> "):
                    conversation.happen(line.removeprefix("> ").strip())
        yield watch.seen


def table() -> set[tuple[str, str, str, str]]:
    return {
        (machine.name, each.before, each.by, each.after) for machine in MACHINES for each in machine.changes
    }


def test_what_nodes_do_is_in_the_tables(seen: Seen) -> None:
    """Broken, a node goes from one state to another where the picture has no arrow."""
    assert {change: place for change, place in seen.items() if change not in table()} == {}


def test_what_is_in_the_tables_is_done(seen: Seen) -> None:
    """Broken, the picture has an arrow that no conversation goes along: nobody knows whether a node can."""
    assert sorted(table() - seen.keys()) == []


def test_a_random_run_does_what_is_in_the_tables() -> None:
    """Broken, faults lead a node along a way that nobody thought of."""
    with watching() as watch:
        watch.place = "random run"
        chaos = Chaos(1)
        for _ in range(20):
            chaos.step()
    assert watch.seen
    assert {change for change in watch.seen if change not in table()} == set()


@pytest.mark.parametrize("machine", MACHINES, ids=[machine.name for machine in MACHINES])
def test_every_state_is_reached_and_named(machine: Machine) -> None:
    """Broken, the picture has a state without an arrow, or an arrow to a state that it does not explain."""
    on_arrows = {state for each in machine.changes for state in (each.before, each.after)}
    assert on_arrows == set(machine.states)


def test_the_page_is_drawn_from_the_tables() -> None:
    """Broken, docs/states.md shows other tables than those that the tests hold to the code."""
    if os.environ.get("QSYNC_REWRITE") == "1":
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page()
