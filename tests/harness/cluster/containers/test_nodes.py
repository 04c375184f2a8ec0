"""Who is said to have ended untold: without any daemon, on a client that answers when it is told to."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import docker  # type: ignore[import-untyped]  # it has no types
import pytest

from harness.cluster import ownership
from harness.cluster.containers import nodes as container_nodes
from harness.cluster.containers.cluster import ContainerCluster, ContainerSettings
from harness.cluster.containers.nodes import ContainerNodes, ContainerSpec, Limits
from harness.cluster.ownership import NODE_LABEL, RunId
from harness.errors import ClusterError
from harness.faults.fault import Fault
from harness.faults.pause import Pause
from harness.systems.iproto_wire import IPROTO
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

    def logs(self, tail: int = 0, stream: bool = False, follow: bool = True) -> Any:
        assert not (stream and follow), "a node that runs goes on printing"
        return iter([b"first words\n", b"last words\n"]) if stream else b"last words"

    def remove(self, *, force: bool, v: bool) -> None:
        pass


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


def test_the_daemon_is_asked_in_threads_alone() -> None:
    """If it failed, a slow daemon would stop the loop of the harness: clients, other faults, and what it measures."""

    class Threaded(Api):
        def inspect_container(self, which: str) -> dict[str, Any]:
            assert threading.current_thread() is not threading.main_thread()
            return {"State": {"Pid": 7, "Paused": True}}

    class Pausing(Container):
        def pause(self) -> None:
            assert threading.current_thread() is not threading.main_thread()

    async def scene() -> None:
        nodes = ContainerNodes(SimpleNamespace(api=Threaded()), RunId.new(), lambda: 7, Limits())
        nodes._containers["n1"] = Pausing()
        fault = Fault(id=0, name="pause", does="pause", at_ns=0, until_ns=1, nodes=("n1",))

        async def status(node: str) -> dict[str, object]:
            return {}

        hands: Any = SimpleNamespace(
            processes=nodes,
            now_ns=lambda: 7,
            spawn=asyncio.ensure_future,
            status=status,
            ready_within_ns=1,
        )
        pause = Pause().real(fault, hands)
        await pause.begin()
        evidence = await pause.end()
        assert evidence.took_effect

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


def test_a_node_that_another_fault_has_killed_ends_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a rolling restart beside a kill would be said to have needed SIGKILL."""

    async def scene() -> bool:
        api = Api()
        nodes = nodes_of_one(api, monkeypatch)
        api.exit_code = 137
        await nodes.kill("n1")
        return await nodes.terminate("n1")

    assert asyncio.run(scene())


@pytest.mark.parametrize("code", [1, 2, 255])
@pytest.mark.parametrize("way", ["kill", "terminate"])
def test_who_had_given_up_just_before_it_was_killed_has_crashed(
    monkeypatch: pytest.MonkeyPatch, way: str, code: int
) -> None:
    """If it failed, a server that panics (exit 2 in Go, 255 elsewhere) would go untold whenever a kill came before the
    next look; told to end in order it may say so."""

    async def scene() -> None:
        api = Api()
        nodes = nodes_of_one(api, monkeypatch)
        api.exit_code = code
        await getattr(nodes, way)("n1")
        assert [ended.how for ended in nodes.ended()] == ([f"exit {code}"] if way == "kill" else [])

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


def test_what_the_containers_of_a_node_printed_is_kept_before_they_go(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If it failed, the last lines of a message would be all that a user sees of a node that does not start."""

    async def scene() -> None:
        nodes = nodes_of_one(Api(), monkeypatch)
        nodes._folders["n1"] = tmp_path
        monkeypatch.setattr(nodes, "_make", lambda spec: None)
        monkeypatch.setattr(container_nodes, "remove_run", lambda client, run: nodes._containers.clear())
        spec = ContainerSpec(node="n1", address="", command=(), folder=str(tmp_path), image="")
        nodes.exchange(spec)
        nodes._containers["n2"] = Container()  # its folder is unknown: it was not made
        await nodes.stop()

    asyncio.run(scene())
    assert (tmp_path / "output.txt").read_text() == "first words\nlast words\n" * 2


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


@pytest.mark.parametrize(
    ("way", "does"),
    [("kill", "end"), ("terminate", "end"), ("pause", "stop"), ("is_stopped", "stop"), ("group", "run")],
)
def test_a_node_that_was_not_seen_to_end_is_no_bug_of_ours(
    monkeypatch: pytest.MonkeyPatch, way: str, does: str
) -> None:
    """If it failed, a daemon that does not answer would end the run with a traceback instead of a sentence."""

    async def scene() -> None:
        api = Api()
        nodes = nodes_of_one(api, monkeypatch)
        api.does_not_say_of = {"c1"}
        with pytest.raises(ClusterError, match=f"n1 was not seen to {does}: TimeoutError: read timed out"):
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
    ownership.remove_container(stubborn)
    assert stubborn.asked == 3


class Made(Container):
    def __init__(self, daemon: Daemon, name: str) -> None:
        self._daemon, self.id = daemon, name

    def remove(self, *, force: bool, v: bool) -> None:
        self._daemon.there.discard(self.id)


class Daemon:
    """Makes containers and networks; each waits until it may be made."""

    def __init__(self) -> None:
        self.there: set[str] = set()
        self.asked, self.may_be_made = threading.Event(), threading.Event()
        self.api = self.containers = self.networks = self

    def __getattr__(self, name: str) -> Any:
        assert name.endswith("_config")
        return lambda *words, **fields: None

    def create_container(self, image: str, *, name: str, **fields: Any) -> dict[str, str]:
        if image == "none":
            raise docker.errors.ImageNotFound("no such image")
        self._wait(name)
        self.entrypoint, self.user = fields["entrypoint"], fields["user"]
        return {"Id": name}

    def create(self, name: str, **fields: Any) -> Any:
        self._wait(name)
        return SimpleNamespace(name=name, remove=lambda: self.there.discard(name))

    def _wait(self, name: str) -> None:
        self.asked.set()
        assert self.may_be_made.wait(PATIENCE_S)
        self.there.add(name)

    def get(self, which: str) -> Made:
        return Made(self, which)

    def list(self, **fields: Any) -> list[Made]:
        return [Made(self, name) for name in self.there]


def nodes_of(daemon: Daemon) -> ContainerNodes:
    nodes = ContainerNodes(daemon, RunId("r"), lambda: 7, Limits())
    nodes._network = SimpleNamespace(name="net")
    return nodes


def spec(node: str, image: str = "image") -> ContainerSpec:
    return ContainerSpec(node=node, address="", command=("store", "--port"), folder="", image=image)


def test_the_command_of_a_node_is_the_whole_command_of_its_container() -> None:
    """If it failed, the image of a store would start in its own way, or as a user that may not write to the disk."""
    daemon = Daemon()
    daemon.may_be_made.set()
    nodes_of(daemon)._make(spec("n1"))
    assert (daemon.entrypoint, daemon.user) == (["store", "--port"], "0:0")


def test_a_daemon_that_does_not_answer_is_no_bug_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, an upgrade while the daemon is busy would end the run with a traceback instead of a sentence."""
    daemon = Daemon()

    def late(image: str, **fields: Any) -> None:
        raise TimeoutError("read timed out")

    monkeypatch.setattr(daemon, "create_container", late)
    nodes = nodes_of(daemon)
    nodes._containers["n1"] = Container()
    with pytest.raises(ClusterError, match="the container of n1 cannot be made: read timed out"):
        nodes.exchange(spec("n1"))


def test_a_container_that_cannot_be_exchanged_is_no_refusal_of_its_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a version would be said not to start on the files of another one because the daemon was busy."""
    nodes, failures = (
        nodes_of(Daemon()),
        [ClusterError("the container of n1 cannot be removed: read timed out")],
    )

    def exchange(spec: ContainerSpec) -> None:
        if failures:
            raise failures.pop()

    monkeypatch.setattr(nodes, "exchange", exchange)
    cluster = ContainerCluster(
        ContainerSettings(
            talk=IPROTO,
            configs={"n1": b""},
            folder=tmp_path,
            heartbeat_ns=1,
            epoch_ns=0,
            command=lambda _: (),
        )
    )
    cluster._started, cluster._addresses["n1"] = nodes, "10.0.0.2"
    with pytest.raises(ClusterError, match="the container of n1 cannot be removed"):
        asyncio.run(cluster.start_in("n1", "to", "from"))


def test_a_start_that_fails_is_over_when_it_says_so() -> None:
    """If it failed, a container that is made a moment later would be left behind: what a run left is removed only when
    its harness is dead."""
    daemon = Daemon()

    async def scene() -> None:
        starting = asyncio.create_task(nodes_of(daemon).start([spec("n1"), spec("n2", "none")]))
        await asyncio.to_thread(daemon.asked.wait, PATIENCE_S)
        asyncio.get_running_loop().call_later(0.05, daemon.may_be_made.set)
        with pytest.raises(ClusterError, match="the container of n2 cannot be made: no such image"):
            await starting
        assert daemon.there == {"qsync-r-n1"}

    asyncio.run(scene())


@pytest.mark.parametrize("what", ["container", "network"])
def test_what_is_made_while_a_run_is_stopped_is_removed(what: str) -> None:
    """If it failed, Ctrl-C while containers are made would leave one behind."""
    daemon = Daemon()

    async def scene() -> None:
        nodes = nodes_of(daemon)
        making = asyncio.create_task(
            nodes.start([spec("n1")])
            if what == "container"
            else asyncio.to_thread(nodes.make_network, ["n1"])
        )
        await asyncio.to_thread(daemon.asked.wait, PATIENCE_S)
        await nodes.stop()
        daemon.may_be_made.set()
        with pytest.raises(ClusterError, match="the cluster is being stopped"):
            await making
        assert not daemon.there

    asyncio.run(scene())


def test_why_no_network_can_be_made_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, people would look for networks in the way where the daemon may make none at all."""
    daemon = Daemon()

    def refuse(name: str, **fields: Any) -> None:
        raise docker.errors.APIError("iptables: Permission denied")

    monkeypatch.setattr(daemon, "create", refuse)
    with pytest.raises(
        ClusterError, match=r"no network can be made in 10\.213\..*: iptables: Permission denied"
    ):
        nodes_of(daemon).make_network(["n1"])


def test_a_node_that_runs_is_killed_whatever_else_may_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a kill of a node that has hardly any memory would be recorded, and not be done."""
    killed: list[str] = []

    async def scene() -> None:
        api = Api()
        nodes = nodes_of_one(api, monkeypatch)
        monkeypatch.setattr(nodes._containers["n1"], "kill", killed.append)
        api.exit_code = 137
        nodes.starve("n1")
        await nodes.kill("n1")
        await nodes.kill("n1")  # by a second fault: it is dead

    asyncio.run(scene())
    assert killed == ["KILL"]


def test_the_end_of_a_run_goes_on_where_something_fails(tmp_path: Path) -> None:
    """If it failed, packet rules and containers would be left behind because of a file that is missing."""
    ended: list[str] = []

    class Ends:
        def __init__(self, name: str) -> None:
            self.name = name

        async def stop(self) -> None:
            ended.append(self.name)
            raise ClusterError(self.name)

    async def scene() -> None:
        settings = ContainerSettings(
            talk=IPROTO, configs={}, folder=tmp_path, heartbeat_ns=1, epoch_ns=0, command=lambda place: ()
        )
        cluster = ContainerCluster(settings)
        for name in ("shaping", "filter", "limits", "started", "mounted"):
            setattr(cluster, f"_{name}", Ends(name))
        with pytest.raises(ClusterError):
            await cluster.stop()

    asyncio.run(scene())
    assert ended == ["shaping", "filter", "limits", "started", "mounted"]
