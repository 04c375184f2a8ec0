"""Which end of a node is a crash, and when a node that faults had down comes back."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from harness.cluster.node_book import Asked, ProcessBook
from harness.cluster.protocol import Ended
from harness.errors import NodeEnded


class Book(ProcessBook[Any]):
    def __init__(self) -> None:
        super().__init__({"n1": SimpleNamespace(node="n1")}, lambda: 7)
        self.alive: set[str] = set()
        self.starts = 0

    async def start_again(self, node: str) -> None:
        self.starts += 1
        self.alive.add(node)

    def is_alive(self, node: str) -> bool:
        return node in self.alive


def ended(how: str, *, out_of_memory: str = "") -> Ended:
    return Ended("n1", 0, how, ("a line", "the last one"), out_of_memory)


@pytest.mark.parametrize(
    ("how", "asked", "is_crash"),
    [
        ("exit 0", None, True),
        ("signal 9", "kill", False),
        ("exit 0", "kill", False),
        ("exit 1", "kill", True),
        ("exit 1", "terminate", False),
        ("signal 11", "terminate", True),
        ("exit 70", "terminate", True),
    ],
)
def test_an_end_that_was_asked_for_is_no_crash_unless_it_looks_like_one(
    how: str, asked: Asked | None, is_crash: bool
) -> None:
    """If it failed, each fault would be an anomaly of the store, or a crash hide behind one."""
    book = Book()
    book._note(ended(how), asked)
    assert len(book.ended()) == is_crash


def test_a_node_may_refuse_to_start_while_that_is_allowed() -> None:
    """If it failed, a store that says that it lost its data would have crashed, or one that crashes have refused."""
    book = Book()
    with book.may_refuse("n1") as last_words:
        book._note(ended("exit 1"))
        assert last_words == ["the last one"]
        book._note(ended("signal 6"))
    book._note(ended("exit 1"))
    assert [each.how for each in book.ended()] == ["signal 6", "exit 1"]


def test_want_of_memory_excuses_a_node_that_a_fault_starves_alone() -> None:
    """If it failed, a store that eats all memory would go free, or the fault oom be an anomaly."""
    book = Book()
    book._note(ended("signal 9", out_of_memory="Killed process"))
    assert len(book.ended()) == 1
    book.starve("n1")
    book._note(ended("signal 9", out_of_memory="Killed process"))
    assert asyncio.run(book.feed("n1"))
    book._note(ended("signal 9", out_of_memory="Killed process"))
    assert len(book.ended()) == 1, "the fault was over"


def test_a_node_comes_back_when_the_last_fault_that_killed_it_is_healed() -> None:
    """If it failed, a node would come up in the middle of a fault, or twice."""
    book = Book()
    book._kills["n1"] = 2
    assert not asyncio.run(book.revive("n1")) and book.starts == 0
    assert asyncio.run(book.revive("n1")) and book.starts == 1
    book._kills["n1"] = 1
    assert asyncio.run(book.revive("n1")) and book.starts == 1, "it runs"


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_no_node_is_still_starting_when_the_start_is_over(is_cancelled: bool) -> None:
    """If it failed, a process would begin behind the stop of its cluster, and outlive the run."""
    under_way: set[str] = set()

    class Slow(Book):
        async def start_again(self, node: str) -> None:
            if node == "n1" and not is_cancelled:
                raise NodeEnded("n1 ended")
            under_way.add(node)
            try:
                await asyncio.sleep(60)
            finally:
                for _ in node:  # n3 cleans up for longer than n2
                    await asyncio.sleep(0)
                under_way.discard(node)

    async def story() -> None:
        book = Slow()
        for node in ("n2", "and n3"):
            book.start_with(SimpleNamespace(node=node))
        start = asyncio.ensure_future(book.start())
        await asyncio.sleep(0.01)
        start.cancel()
        with pytest.raises(asyncio.CancelledError if is_cancelled else NodeEnded):
            await start
        assert not under_way

    asyncio.run(story())
