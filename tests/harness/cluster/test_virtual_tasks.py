"""Coroutines in virtual time."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import pytest

from harness.cluster.sim.virtual_tasks import Cancelled, Pending, VirtualTask


def started(coroutine: Coroutine[Any, Any, Any]) -> VirtualTask[Any]:
    task = VirtualTask(coroutine)
    task.start()
    return task


async def wait(pending: Pending[Any], said: list[object]) -> object:
    said.append("waits")
    value = await pending
    said.append(value)
    return value


def test_whoever_resolves_runs_the_coroutine_on_at_once() -> None:
    """If it failed, things of one moment would happen in another order than they are caused."""
    pending: Pending[int] = Pending()
    said: list[object] = []
    task = started(wait(pending, said))
    assert not task.done()
    pending.resolve(3)
    assert (said, task.done(), task.result()) == (["waits", 3], True, 3)


def test_only_the_first_value_counts() -> None:
    """If it failed, a timeout could replace an answer that had already come."""
    pending: Pending[str] = Pending()
    pending.resolve("answer")
    pending.resolve("timeout")
    assert started(wait(pending, [])).result() == "answer"


def test_all_who_wait_for_one_value_go_on() -> None:
    """If it failed, of two callers that wait for one connection one would wait for ever, and the run never end."""
    said: list[object] = []
    pending: Pending[str] = Pending()
    tasks = [VirtualTask(wait(pending, said)) for _ in range(2)]
    for task in tasks:
        task.start()
    pending.resolve("up")
    assert [task.result() for task in tasks] == ["up", "up"]


def test_an_error_is_raised_where_the_task_is_awaited() -> None:
    """If it failed, a bug in a worker of a simulated run would be lost."""
    pending: Pending[None] = Pending()

    async def broken() -> None:
        await pending
        raise ZeroDivisionError

    inner = started(broken())

    async def outer() -> None:
        await inner

    task = started(outer())
    pending.resolve(None)
    for one in (inner, task):
        with pytest.raises(ZeroDivisionError):
            one.result()


def test_cancelling_ends_what_waits_and_lets_it_clean_up() -> None:
    """If it failed, a cancelled nemesis would leave its fault in place."""
    said: list[object] = []

    async def tidy() -> None:
        try:
            await wait(Pending(), said)
        finally:
            said.append("tidied")

    task = started(tidy())
    task.cancel()
    task.cancel()
    assert said == ["waits", "tidied"]
    assert task.done()
    with pytest.raises(Cancelled):
        task.result()


def test_a_task_that_was_cancelled_before_it_began_never_begins() -> None:
    """If it failed, a worker could do its first operation after the load is over."""
    said: list[object] = []
    task = VirtualTask(wait(Pending(), said))
    task.cancel()
    task.start()
    assert said == []
    assert task.done()


def test_what_a_cancelled_task_waited_for_before_wakes_it_no_more() -> None:
    """If it failed, a cancelled nemesis that heals would be woken by its old timer and take a healing for done that
    is not."""
    first: Pending[str] = Pending()
    second: Pending[str] = Pending()
    said: list[object] = []

    async def heals_when_cancelled() -> None:
        try:
            await first
        finally:
            said.append(await second)

    task = started(heals_when_cancelled())
    task.cancel()
    assert not task.done()
    first.resolve("old")
    assert said == []
    second.resolve("healed")
    assert said == ["healed"]
    assert task.done()


def test_a_conductor_may_await_nothing_but_the_cluster() -> None:
    """If it failed, a coroutine that awaits an asyncio primitive would hang for ever in the simulator."""

    class Foreign:
        def __await__(self) -> Any:
            yield "something of another loop"

    async def foreign() -> None:
        await Foreign()

    with pytest.raises(AssertionError, match="nothing but the cluster"):
        started(foreign())
