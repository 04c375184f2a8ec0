"""The containers of one run: made, killed, paused, watched, removed.

Has the methods of `harness.faults.hands.Processes`, so kill and pause are the same code on every cluster.
The Docker client blocks; every call of it is made in a thread.

The daemon is asked again and again which containers ended. If it does not answer, it is asked anew, because it may be
slow; but its silence is not a sign of life. So `ended` reports a silence that is too long, and before a run is over all
nodes must have been observed once more (`look`): otherwise the run is inconclusive.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from harness.cluster.limits import kernel_log
from harness.cluster.limits.group import Group, Share, group_of
from harness.cluster.node_book import Asked, NodeBook, all_over
from harness.cluster.ownership import NODE_LABEL, RunId, remove_container, remove_run
from harness.cluster.protocol import Ended
from harness.errors import ClusterError

T = TypeVar("T")

PORT: Final = 3301
DATA: Final = "/data"
OUTPUT: Final = "output.txt"
"""The output of a node's containers, in its folder."""
SIGNAL_ALL: Final = {"TINI_KILL_PROCESS_GROUP": "1"}
"""Docker's init hands a signal on to the group of its child, not to the child alone, which may be a wrapper."""
WATCH_EVERY_S: Final = 0.25
SILENT_AT_MOST_S: Final = 120.0
"""For how long the daemon may not answer which nodes run, while a run goes on."""
LOOKS_WITHIN_S: Final = 90.0
"""How long a look at all nodes may take that a run cannot end without: longer than one call of the daemon waits."""
_LAST_LINES: Final = 40
_KILLED: Final = 128 + 9
_SUBNETS: Final = "10.213.0.0/16"
"""Where networks of runs are taken from, /24 each."""
_TOO_LATE: Final = "the nodes are not started: the cluster is being stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one container."""

    memory_mib: int = 512
    cpus: float = 2.0
    processes: int = 4_096
    """With their threads: a store on a JVM has hundreds."""

    @classmethod
    def of(cls, share: Share) -> Limits:
        """The usual ones, but for what a plan says."""
        return cls(**{name: value for name, value in asdict(share).items() if value is not None})


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSpec:
    """The settings of one container. `folder` on the host is the node's data folder."""

    node: str
    address: str
    command: tuple[str, ...]
    folder: str
    image: str
    programs: Mapping[str, str] = field(default_factory=dict)
    """Files of this machine that are mounted, read-only: path here → path there."""


class ContainerNodes(NodeBook):
    def __init__(self, client: Any, run: RunId, now_ns: Callable[[], int], limits: Limits) -> None:
        super().__init__()
        self._client = client
        self._run = run
        self._now_ns = now_ns
        self._limits = limits
        self._network: Any = None
        self._containers: dict[str, Any] = {}
        self._folders: dict[str, Path] = {}
        self._down: set[str] = set()
        """Nodes that are not running, whether the harness ended them or not."""
        self._asked_to_end: set[str] = set()
        self._lives: Counter[str] = Counter()
        """How often a node was started again: an older list of running nodes says nothing about its new life."""
        self._began_ns: dict[str, int] = {}
        """When a node was started, on the monotonic clock."""
        self._ready: set[str] = set()
        self._watch: asyncio.Task[None] | None = None
        self._looked_s = 0.0
        """When the last successful look at all nodes began, on the monotonic clock."""
        self._why_unseen = "it did not answer"
        """Why the last look that failed did."""
        self._looks = asyncio.Lock()
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Commands about one node reach the daemon in the order in which they were given."""
        self.on_started: Callable[[str], Awaitable[None]] | None = None
        """Called with each node that was started again."""

    # ---- making

    def make_network(self, nodes: Sequence[str]) -> tuple[str, dict[str, str]]:
        """A private network; the host's address in it, and one for each node. It blocks."""
        import docker  # type: ignore[import-untyped]  # it has no types

        why = ""
        for subnet in ipaddress.ip_network(_SUBNETS).subnets(new_prefix=24):
            gateway, *hosts = map(str, subnet.hosts())
            pool = docker.types.IPAMPool(subnet=str(subnet), gateway=gateway)
            try:
                network = self._client.networks.create(
                    f"qsync-{self._run.text}",
                    driver="bridge",
                    internal=True,
                    labels=self._run.labels,
                    ipam=docker.types.IPAMConfig(pool_configs=[pool]),
                )
            except docker.errors.APIError as error:  # most often another network has these addresses already
                why = str(error)
                continue
            if self._is_stopping:
                network.remove()
                raise ClusterError(_TOO_LATE)
            self._network = network
            return gateway, {node: hosts[9 + place] for place, node in enumerate(nodes)}
        raise ClusterError(f"no network can be made in {_SUBNETS}: {why}; try: ./qsync doctor --clean")

    async def start(self, specs: Sequence[ContainerSpec]) -> None:
        """Make and start all containers, side by side. Raises ClusterError when each has been tried."""
        await all_over(asyncio.to_thread(self._start_new, spec) for spec in specs)
        self._looked_s = time.monotonic()
        self._watch = asyncio.get_running_loop().create_task(self._watch_all())

    def exchange(self, spec: ContainerSpec) -> None:
        """Another container in the place of one that does not run; `start_again` starts it. It blocks.

        Raises ClusterError.
        """
        self._keep_output(spec.node)
        try:
            self._containers[spec.node].remove(force=True, v=True)
        except Exception as error:  # the daemon's own, and those of its transport
            why = _in_a_line(error)
            raise ClusterError(f"the container of {spec.node} cannot be removed: {why}") from error
        self._make(spec)

    def _start_new(self, spec: ContainerSpec) -> None:
        import docker

        container = self._make(spec)
        try:
            container.start()
        except (OSError, docker.errors.DockerException) as error:
            raise ClusterError(f"the container of {spec.node} cannot be started: {error}") from error

    def _make(self, spec: ContainerSpec) -> Any:
        import docker

        limits, api = self._limits, self._client.api
        self._began_ns[spec.node] = time.monotonic_ns()
        endpoint = api.create_endpoint_config(ipv4_address=spec.address)
        try:
            created = api.create_container(
                spec.image,
                entrypoint=list(spec.command),
                user="0:0",
                name=f"qsync-{self._run.text}-{spec.node}",
                hostname=spec.node,
                labels={**self._run.labels, NODE_LABEL: spec.node},
                stdin_open=True,  # the nodes end when their stdin does
                environment=SIGNAL_ALL,
                networking_config=api.create_networking_config({self._network.name: endpoint}),
                host_config=api.create_host_config(
                    binds={
                        spec.folder: {"bind": DATA, "mode": "rw"},
                        **{path: {"bind": there, "mode": "ro"} for path, there in spec.programs.items()},
                    },
                    mem_limit=f"{limits.memory_mib}m",
                    nano_cpus=int(limits.cpus * 1e9),
                    pids_limit=limits.processes,
                    init=True,
                    network_mode=self._network.name,
                ),
            )
            container = self._containers[spec.node] = self._client.containers.get(created["Id"])
        except (OSError, docker.errors.DockerException) as error:
            raise ClusterError(f"the container of {spec.node} cannot be made: {error}") from error
        if self._is_stopping:
            remove_container(container)
            raise ClusterError(_TOO_LATE)
        self._folders[spec.node] = Path(spec.folder)
        return container

    def ready(self, node: str) -> None:
        """The node has answered."""
        self._ready.add(node)

    # ---- what faults need

    async def kill(self, node: str) -> None:
        """Kill -9; returns when the container has stopped."""
        async with self._turns[node]:
            self._kills[node] += 1
            if not self.is_alive(node):
                return
            self._asked_to_end.add(node)  # before the kill: a look meanwhile reports no unexpected end
            container = self._containers[node]
            with suppress(Exception):  # a paused one cannot be killed
                await asyncio.to_thread(container.unpause)
            with suppress(Exception):  # it may have ended by itself
                await asyncio.to_thread(container.kill, "KILL")
            await self._answer(node, "end", lambda: container.wait(timeout=10))
            await self._note_if_crashed(node, "kill")

    async def revive(self, node: str) -> bool:
        """Undo a `kill`; False if another fault keeps the node dead. Raises ClusterError."""
        async with self._turns[node]:
            self._kills[node] -= 1
            if self._kills[node]:
                return False
            if not self.is_alive(node):
                await self._start(node)
            return True

    async def start_again(self, node: str) -> None:
        """Raises ClusterError."""
        async with self._turns[node]:
            await self._start(node)

    async def _start(self, node: str) -> None:
        self._began_ns[node] = time.monotonic_ns()
        try:
            await asyncio.to_thread(self._containers[node].start)
        except Exception as error:
            raise ClusterError(f"{node} cannot be started again: {_in_a_line(error)}") from error
        self._lives[node] += 1
        self._down.discard(node)
        self._asked_to_end.discard(node)
        if self.on_started is not None:
            await self.on_started(node)

    async def terminate(self, node: str) -> bool:
        """SIGTERM, as an operator stops a node: not an unexpected end. False if it had to be killed."""
        async with self._turns[node]:
            self._kills[node] += 1
            if not self.is_alive(node):
                return True  # its exit code is that of the fault that killed it
            self._asked_to_end.add(node)
            await self._answer(node, "end", lambda: self._containers[node].stop(timeout=10))
            await self._note_if_crashed(node, "terminate")
            state = await self._answer(node, "end", lambda: self._state(node))
            return int(state.get("ExitCode", 0)) != _KILLED

    async def _answer(self, node: str, do: str, ask: Callable[[], T]) -> T:
        """The daemon's answer. ClusterError if it gives none: then the state of the node is unknown."""
        try:
            return await asyncio.to_thread(ask)
        except Exception as error:  # the daemon's own, and those of its transport
            raise ClusterError(f"{node} was not seen to {do}: {_in_a_line(error)}") from error

    async def _note_if_crashed(self, node: str, asked: Asked) -> None:
        if node not in self._down:
            self._down.add(node)
            self._note(await self._answer(node, "end", lambda: self._how_it_ended(node)), asked)

    async def pause(self, node: str) -> bool:
        """Freeze all processes: the daemon freezes the whole group of the container. True if they are frozen."""
        async with self._turns[node]:
            self._pauses[node] += 1
            if self._pauses[node] == 1:
                with suppress(Exception):  # it may be dead
                    await asyncio.to_thread(self._containers[node].pause)
            return await self.is_stopped(node)

    async def resume(self, node: str) -> bool:
        """Undo a `pause`; False if another fault keeps the node frozen."""
        async with self._turns[node]:
            self._pauses[node] -= 1
            if self._pauses[node]:
                return False
            with suppress(Exception):  # it may be dead
                await asyncio.to_thread(self._containers[node].unpause)
            return True

    def life(self, node: str) -> int:
        return self._lives[node]

    def pid(self, node: str) -> int:
        """The number on this machine of the container's first process; 0 if it does not run. It may block.

        Raises ClusterError if the daemon cannot tell.
        """
        try:
            return int(self._state(node).get("Pid", 0))
        except Exception as error:  # the daemon's own, and those of its transport
            raise ClusterError(f"{node} was not seen to run: {_in_a_line(error)}") from error

    async def group(self, node: str) -> Group:
        """The group of processes that the container is, as it runs now. ValueError if it does not run."""
        pid = await asyncio.to_thread(self.pid, node)
        if not pid:
            raise ValueError(f"{node} does not run")
        return group_of(pid)

    def is_alive(self, node: str) -> bool:
        return node in self._containers and node not in self._down

    async def is_stopped(self, node: str) -> bool:
        return bool((await self._answer(node, "stop", lambda: self._state(node))).get("Paused"))

    async def left(self, node: str) -> str:
        """Nothing: the container has ended, and its processes and its network with it."""
        return ""

    def may_answer(self, node: str) -> bool:
        return self.is_alive(node) and not self._pauses[node] and node in self._ready

    def _state(self, node: str) -> Mapping[str, Any]:
        return dict(self._client.api.inspect_container(self._containers[node].id)["State"])

    # ---- watching and ending

    def ended(self) -> tuple[Ended, ...]:
        """The nodes that ended unexpectedly since the last call. ClusterError if the daemon was silent for too long."""
        ended = super().ended()
        silent_s = time.monotonic() - self._looked_s
        if not ended and self._watch is not None and silent_s > SILENT_AT_MOST_S:
            self._looked_s = time.monotonic()  # it is reported once
            raise ClusterError(self._unknown_ends(f"for {silent_s:.0f} s"))
        return ended

    def first_ended(self) -> Ended | None:
        """The first node that ended unexpectedly, and that `ended` has not reported yet."""
        return next(iter(self._ended), None)

    async def look(self) -> None:
        """Look at all nodes once more: then `ended` reports every earlier end. ClusterError if the daemon is silent."""
        try:
            async with asyncio.timeout(LOOKS_WITHIN_S):
                while not await self._look():
                    await asyncio.sleep(WATCH_EVERY_S)
        except TimeoutError:
            raise ClusterError(self._unknown_ends("at the end")) from None

    def _unknown_ends(self, when: str) -> str:
        return (
            f"it is unknown whether a node crashed: {when} the Docker daemon has not reported which nodes run "
            f"and how the missing ones ended ({self._why_unseen})"
        )

    async def _watch_all(self) -> None:
        while True:
            await asyncio.sleep(WATCH_EVERY_S)
            await self._look()

    async def _look(self) -> bool:
        """Ask which nodes run, and how the missing ones ended; False if the daemon did not answer all of it."""
        async with self._looks:
            began_s = time.monotonic()
            expected = {node: self._lives[node] for node in self._containers if self._should_run(node)}
            try:
                running = await asyncio.to_thread(self._running)
            except Exception as error:  # the daemon's own, and those of its transport: it is asked again
                self._why_unseen = _in_a_line(error)
                return False
            gone = [(node, life) for node, life in expected.items() if node not in running]
            seen = [await self._see_end(node, life) for node, life in gone]
            if all(seen):
                self._looked_s = began_s
            return all(seen)

    async def _see_end(self, node: str, life: int) -> bool:
        """Note how a node that no longer runs ended; False if the daemon does not say."""
        if self._lives[node] != life or not self._should_run(node):
            return True  # the harness ended it meanwhile, and has seen how
        try:
            ended = await asyncio.to_thread(self._how_it_ended, node)
        except Exception as error:  # as above
            self._why_unseen = _in_a_line(error)
            return False
        if node not in self._down and self._lives[node] == life:
            self._down.add(node)
            self._note(ended)
        return True

    def _should_run(self, node: str) -> bool:
        return node not in self._down and node not in self._asked_to_end

    def _running(self) -> set[str]:
        listed = self._client.api.containers(filters=self._run.filter)
        return {container["Labels"][NODE_LABEL] for container in listed}

    def _how_it_ended(self, node: str) -> Ended:
        state = self._state(node)
        code = int(state.get("ExitCode", 0))
        how = f"signal {code - 128}" if 128 < code <= 192 else f"exit {code}"
        starved = kernel_log.ended_in_group(self._containers[node].id, self._began_ns.get(node, 0))
        if not starved and state.get("OOMKilled"):
            starved = "OOMKilled, the Docker daemon says"
        lines = self._containers[node].logs(tail=_LAST_LINES).decode(errors="replace").splitlines()
        words = tuple(line[:300] for line in lines if line.strip())
        return Ended(node, self._now_ns(), how, words, starved if code == _KILLED else "")

    async def stop(self) -> None:
        """Remove everything of this run, also what a thread makes meanwhile."""
        self._is_stopping = True
        if self._watch is not None:
            self._watch.cancel()
        # Before the containers go: the daemon keeps the output of none that was removed.
        await asyncio.gather(*(asyncio.to_thread(self._keep_output, node) for node in self._containers))
        await asyncio.to_thread(remove_run, self._client, self._run)

    def _keep_output(self, node: str) -> None:
        """Append what the node's container has printed to its file; without it the run is judged all the same."""
        with suppress(Exception), (self._folders[node] / OUTPUT).open("ab") as file:
            for part in self._containers[node].logs(stream=True, follow=False):
                file.write(part)


def _in_a_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200]
