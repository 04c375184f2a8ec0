"""Who is said to have ended untold: without any daemon, on a client that answers when it is told to."""

from __future__ import annotations

import asyncio
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from harness.cluster import ownership
from harness.cluster.containers import nodes as container_nodes
from harness.cluster.containers.nodes import ContainerNodes, Limits
from harness.cluster.ownership import NODE_LABEL, RunId
from harness.errors import ClusterError
from tests.harness.processes import PATIENCE_S


class Container:
    id = "c1"

    def kill(self, how: str) -> None:
        pass

    def unpause(self) -> None:
        pass

    def wait(self, timeout: float) -> None:
        pass

    def start(self) -> None:
        pass

    def stop(self, timeout: float) -> None:
        pass

    def logs(self, tail: int) -> bytes:
        return b"last words"


class Api:
    """Lists the running containers as they were when it was asked, and answers late."""

    def __init__(self) -> None:
        self.running = ["n1"]
        self.exit_code = 139
        self.asked = threading.Event()
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.does_not_say_of: set[str] = set()
        """Containers of which it does not say how they ended; "all": nor who runs."""

    def containers(self, filters: Any) -> list[dict[str, Any]]:
        listed = [{"Labels": {NODE_LABEL: node}} for node in self.running]
        self.asked.set()
        self.may_answer.wait(PATIENCE_S)
        if "all" in self.does_not_say_of:
            raise TimeoutError("read timed out")
        return listed

    def inspect_container(self, which: str) -> dict[str, Any]:
        if which in self.does_not_say_of:
            raise TimeoutError("read timed out")
        return {"State": {"ExitCode": self.exit_code}}


def nodes_of_one(api: Api, monkeypatch: pytest.MonkeyPatch) -> ContainerNodes:
    monkeypatch.setattr(container_nodes, "WATCH_EVERY_S", 0.001)
    nodes = ContainerNodes(SimpleNamespace(api=api), RunId.new(), lambda: 7, Limits())
    nodes._containers["n1"] = Container()
    return nodes


async def watched(nodes: ContainerNodes, api: Api) -> None:
    """Let the watch see at least one whole list that was asked for from now on."""
    for _ in range(2):
        api.asked.clear()
        await asyncio.to_thread(api.asked.wait, PATIENCE_S)


def test_a_list_from_before_a_restart_accuses_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a node that a fault killed and started again would now and then be reported as crashed."""

    async def scene() -> None:
        api = Api()
        nodes = nodes_of_one(api, monkeypatch)
        api.exit_code = 137
        await nodes.kill("n1")
        api.running = []
        api.may_answer.clear()
        watch = asyncio.create_task(nodes._watch_all())
        await asyncio.to_thread(api.asked.wait, PATIENCE_S)  # the daemon has looked: n1 is not there
        await nodes.start_again("n1")
        api.running = ["n1"]
        api.may_answer.set()
        await watched(nodes, api)
        watch.cancel()
        assert nodes.ended() == ()
        assert nodes.is_alive("n1")

    asyncio.run(scene())


def test_a_node_that_ended_untold_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a store whose servers crash in containers would pass."""

    async def scene() -> None:
        api = Api()
        nodes = nodes_of_one(api, monkeypatch)
        watch = asyncio.create_task(nodes._watch_all())
        await watched(nodes, api)
        assert nodes.ended() == ()
        api.running = []
        await watched(nodes, api)
        await watched(nodes, api)
        watch.cancel()
        (ended,) = nodes.ended()
        assert (ended.node, ended.how, ended.last_words) == ("n1", "signal 11", ("last words",))
        assert not nodes.is_alive("n1")

    asyncio.run(scene())


def test_a_pause_that_ends_does_not_undo_one_that_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a node could answer all through a pause that the history calls in effect."""

    class Slow(Container):
        def __init__(self) -> None:
            self.state = "running"
            self.paused_again = threading.Event()

        def pause(self) -> None:
            self.state = "paused"
            self.paused_again.set()

        def unpause(self) -> None:
            self.paused_again.clear()
            self.paused_again.wait(0.2)
            self.state = "running"

    async def scene() -> None:
        nodes = nodes_of_one(Api(), monkeypatch)
        container = nodes._containers["n1"] = Slow()
        await nodes.pause("n1")
        await asyncio.gather(nodes.resume("n1"), nodes.pause("n1"))
        assert container.state == "paused"

    asyncio.run(scene())


@pytest.mark.parametrize("way", ["kill", "terminate"])
@pytest.mark.parametrize(
    ("exit_code", "how"), [(137, []), (0, []), (143, []), (139, ["signal 11"]), (70, ["exit 70"])]
)
def test_who_breaks_when_it_is_told_to_end_has_crashed(
    monkeypatch: pytest.MonkeyPatch, way: str, exit_code: int, how: list[str]
) -> None:
    """If it failed, a fault would hide the crash of the node that it was about."""

    async def scene() -> None:
        api = Api()
        nodes = nodes_of_one(api, monkeypatch)
        api.exit_code = exit_code
        await getattr(nodes, way)("n1")
        assert [ended.how for ended in nodes.ended()] == how
        assert not nodes.is_alive("n1")

    asyncio.run(scene())


@pytest.mark.parametrize(("way", "how"), [("kill", ["exit 1"]), ("terminate", [])])
def test_who_had_given_up_just_before_it_was_killed_has_crashed(
    monkeypatch: pytest.MonkeyPatch, way: str, how: list[str]
) -> None:
    """If it failed, a server that panics would go untold whenever a kill came before the next look; told to end in
    order it may say exit 1."""

    async def scene() -> None:
        api = Api()
        nodes = nodes_of_one(api, monkeypatch)
        api.exit_code = 1
        await getattr(nodes, way)("n1")
        assert [ended.how for ended in nodes.ended()] == how

    asyncio.run(scene())


@pytest.mark.parametrize(("exit_code", "how"), [(139, "signal 11"), (1, "exit 1"), (127, "exit 127")])
def test_a_node_that_ends_before_it_is_ready_is_found_by_the_start(
    monkeypatch: pytest.MonkeyPatch, exit_code: int, how: str
) -> None:
    """If it failed, the start would wait for a dead node until its time is over, and give no reason."""

    async def scene() -> None:
        api = Api()
        nodes = nodes_of_one(api, monkeypatch)
        assert nodes.first_ended() is None
        api.running, api.exit_code = [], exit_code
        await nodes._look()
        first = nodes.first_ended()
        assert first is not None
        assert first.failed_start.startswith(f"n1 ended before it was ready ({how}): ")

    asyncio.run(scene())


def limits(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(container_nodes, "SILENT_AT_MOST_S", seconds)
    monkeypatch.setattr(container_nodes, "LOOKS_WITHIN_S", seconds)


@pytest.mark.parametrize("of", ["c1", "all"])
def test_a_run_does_not_end_without_having_seen_who_crashed(monkeypatch: pytest.MonkeyPatch, of: str) -> None:
    """If it failed, a daemon that does not answer would keep a crash untold, and the run would be green."""
    limits(monkeypatch, 0.05)

    async def scene() -> None:
        api = Api()
        nodes = nodes_of_one(api, monkeypatch)
        api.running = []
        api.does_not_say_of = {of}
        assert not await nodes._look()
        with pytest.raises(
            ClusterError, match=r"it is unknown whether a node crashed: at the end .* timed out"
        ):
            await nodes.look()
        assert nodes.ended() == ()
        limits(monkeypatch, 60)
        api.does_not_say_of = set()
        await nodes.look()
        assert [ended.how for ended in nodes.ended()] == ["signal 11"]

    asyncio.run(scene())


def test_a_look_that_never_comes_back_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a run would hang, or pass, when the daemon hangs."""
    limits(monkeypatch, 0.05)

    async def scene() -> None:
        api = Api()
        nodes = nodes_of_one(api, monkeypatch)
        api.may_answer.clear()
        watch = asyncio.create_task(nodes._watch_all())
        await asyncio.to_thread(api.asked.wait, PATIENCE_S)
        with pytest.raises(ClusterError, match="it is unknown whether a node crashed"):
            await nodes.look()
        api.may_answer.set()
        watch.cancel()

    asyncio.run(scene())


def test_a_silence_that_is_too_long_ends_the_run_and_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a run of hours would go on that nobody watches, or what was seen before would be lost."""
    limits(monkeypatch, 0.0)

    async def scene() -> None:
        api = Api()
        nodes = nodes_of_one(api, monkeypatch)
        nodes._watch = asyncio.create_task(asyncio.sleep(0))
        api.running = []
        await nodes._look()
        api.does_not_say_of = {"all"}
        assert [ended.how for ended in nodes.ended()] == ["signal 11"]
        with pytest.raises(ClusterError, match=r"it is unknown whether a node crashed: for \d+ s"):
            nodes.ended()
        limits(monkeypatch, 60)
        assert nodes.ended() == ()

    asyncio.run(scene())


def test_a_daemon_that_never_says_how_one_ended_is_silent_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a run would go on for hours with a node that is gone, and nobody knows why."""
    limits(monkeypatch, 0.0)

    async def scene() -> None:
        api = Api()
        nodes = nodes_of_one(api, monkeypatch)
        nodes._watch = asyncio.create_task(asyncio.sleep(0))
        began_s = nodes._looked_s = time.monotonic()
        await nodes._look()
        assert nodes._looked_s >= began_s
        seen_s = nodes._looked_s
        api.running = []
        api.does_not_say_of = {"c1"}
        await nodes._look()
        assert nodes._looked_s == seen_s
        with pytest.raises(ClusterError, match="it is unknown whether a node crashed"):
            nodes.ended()

    asyncio.run(scene())


def test_one_node_of_which_the_daemon_says_nothing_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, the crash of a node would go untold because of another whose container is gone."""

    async def scene() -> None:
        api = Api()
        nodes = nodes_of_one(api, monkeypatch)
        nodes._containers["n2"] = Container()
        nodes._containers["n2"].id = "c2"
        api.running = []
        api.does_not_say_of = {"c1"}
        assert not await nodes._look()
        assert [ended.node for ended in nodes.ended()] == ["n2"]

    asyncio.run(scene())


@pytest.mark.parametrize("way", ["kill", "terminate"])
def test_a_node_that_was_not_seen_to_end_is_no_bug_of_ours(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """If it failed, a daemon that does not answer would end the run with a traceback instead of a sentence."""

    async def scene() -> None:
        api = Api()
        nodes = nodes_of_one(api, monkeypatch)
        api.does_not_say_of = {"c1"}
        with pytest.raises(ClusterError, match="n1 was not seen to end: TimeoutError: read timed out"):
            await getattr(nodes, way)("n1")

    asyncio.run(scene())


class Stubborn:
    """The daemon gives up on it twice."""

    def __init__(self) -> None:
        self.asked = 0

    def unpause(self) -> None:
        raise RuntimeError("it is not paused")

    def remove(self, *, force: bool, v: bool) -> None:
        self.asked += 1
        if self.asked < 3:
            raise RuntimeError("tried to kill container, but did not receive an exit event")


def test_a_container_that_the_daemon_gave_up_on_is_removed_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If it failed, runs on a busy machine would leave containers behind."""
    monkeypatch.setattr(ownership, "_TRY_AGAIN_S", 0.001)
    stubborn = Stubborn()
    ownership._remove_container(stubborn)
    assert stubborn.asked == 3
