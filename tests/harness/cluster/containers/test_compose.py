"""docker-compose.yml: the five nodes to look around in, and the same five as machines to log in to."""

from __future__ import annotations

import asyncio
import io
import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.cli.docker_compose_configs import FOLDER, configurations
from harness.cli.main import main
from harness.clients.reply import NotSent, Replied
from harness.cluster.connections import Admin, Connections
from harness.cluster.containers.control import control_image
from harness.cluster.containers.image import node_image
from harness.systems.iproto_wire import IPROTO
from nodes.iproto.messages import Answer, Call
from nodes.qsync.configuration import Configuration
from tests import needs
from tests.harness.processes import PATIENCE_S

ROOT = Path(__file__).parents[4]
NODES = ("n1", "n2", "n3", "n4", "n5")
PORT = 3301
SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class Project:
    """A compose project of this test alone, on addresses of its own."""

    name: str
    subnet: str
    files: tuple[str, ...]
    environment: Mapping[str, str]

    def compose(self, *words: str) -> str:
        program = ["docker-compose"] if shutil.which("docker-compose") else ["docker", "compose"]
        files = (word for file in self.files for word in ("-f", str(ROOT / file)))
        done = subprocess.run(
            [*program, "-p", self.name, *files, *words],
            cwd=ROOT,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0 or "run" in words, done.stderr
        return done.stdout

    def address(self, node: str) -> str:
        return f"{self.subnet}.1{node[1:]}"


@pytest.fixture
def client() -> Iterator[Any]:
    needs.compose()
    found = needs.docker()
    yield found
    found.close()


def left(client: Any, name: str) -> list[str]:
    """What there is of a project."""
    chosen = {"label": f"com.docker.compose.project={name}"}
    found = (client.containers.list(all=True, filters=chosen), client.networks.list(filters=chosen))
    volumes = client.volumes.list(filters=chosen)
    return [each.name for each in (*found[0], *found[1], *volumes)]


@pytest.fixture
def project(client: Any, request: pytest.FixtureRequest) -> Iterator[Project]:
    name = f"qsync-test-{secrets.token_hex(3)}"
    subnet = f"10.214.{secrets.randbelow(200) + 10}"
    environment = {"QSYNC_NODE_IMAGE": node_image(client), "QSYNC_SUBNET": subnet}
    made = Project(name, subnet, getattr(request, "param", ("docker-compose.yml",)), environment)
    try:
        yield made
    finally:
        made.compose("down", "--volumes")
        assert left(client, name) == []


def mounted_from(client: Any, folder: Path) -> list[str]:
    """Containers that have something of this folder."""
    return [
        container.name
        for container in client.containers.list(all=True, ignore_removed=True)
        if any(str(mount.get("Source", "")).startswith(str(folder)) for mount in container.attrs["Mounts"])
    ]


async def owner_of(project: Project) -> str:
    """Wait until the nodes have elected one."""
    admin = Admin(IPROTO, lambda node: PORT, project.address)
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for node in NODES:
                    status = await admin.status(node, SECOND_NS // 2)
                    if status is not None and status["role"] == "owner":
                        return node
                await asyncio.sleep(0.05)
    finally:
        admin.close()


async def call(project: Project, node: str, function: str, *arguments: Any) -> Any:
    """What the node answers; None if it does not listen yet."""
    connections = Connections(IPROTO, lambda node: PORT, project.address)
    try:
        reply = await connections.call(1, node, Call(1, function, arguments), PATIENCE_S * SECOND_NS)
        if isinstance(reply, NotSent):
            return None
        assert isinstance(reply, Replied) and isinstance(reply.response, Answer), reply
        return reply.response.data[0]
    finally:
        connections.close()


async def has_written(project: Project, node: str) -> bool:
    dump = await call(project, node, "qsync.dump")
    return dump is not None and dump["spaces"]["register"] == [["a", 7]]


def test_the_nodes_are_told_what_a_run_would_tell_them() -> None:
    """If it failed, what people look at by hand would not be what is tested.

    `python -m harness.cli.docker_compose_configs` mends it.
    """
    for name, told in configurations().items():
        assert Configuration.from_json((FOLDER / name).read_bytes()) == Configuration.from_json(told), name


@pytest.mark.docker
def test_five_nodes_come_up_take_a_write_and_leave_nothing(client: Any, project: Project) -> None:
    """If it failed, `docker-compose up` would bring up something that is no cluster, or `down` would leave parts."""

    async def scene() -> None:
        owner = await owner_of(project)
        assert (
            await call(project, owner, "qsync.transaction", [["replace", "register", ["a", 7]]]) is not None
        )
        for node in NODES:
            async with asyncio.timeout(PATIENCE_S):
                while not await has_written(project, node):
                    await asyncio.sleep(0.02)

    project.compose("up", "-d")
    asyncio.run(scene())
    (network,) = client.networks.list(names=[f"{project.name}_replication"])
    assert network.attrs["Internal"]
    assert network.attrs["Labels"]["qsync-harness.compose"] == "network"
    line = project.compose("logs", "--no-color", "--tail", "1", "n1").splitlines()[-1]
    assert json.loads(line.partition("|")[2])["node"] == "n1"


@pytest.mark.docker
def test_the_harness_runs_in_the_control_container(client: Any, project: Project, tmp_path: Path) -> None:
    """If it failed, a machine with Docker and no Python could look at five nodes, and test nothing."""
    environment = {**project.environment, "QSYNC_CONTROL_IMAGE": control_image(client), "PWD": str(tmp_path)}
    here = Project(project.name, project.subnet, project.files, environment)
    options = ("--cluster", "docker", "--time-limit", "12", "--rate", "50", "--seed", "3", "--json")
    said = here.compose("run", "--rm", "control", "./qsync", "run", *options)
    verdict = json.loads(said[said.index("{") : said.rindex("}") + 1])
    evidence = verdict["evidence"]
    assert evidence["ok"] > 0 and verdict["violations"] == [], verdict["sentence"]
    assert evidence["not_here"] == [], "default faults are left out in the container"
    assert evidence["kinds_in_effect"]
    reasons = [why for kind in evidence["attempts"] for why in kind["without_effect"]]
    assert not [why for why in reasons if "Errno" in why], reasons
    folder = Path(verdict["folder"])
    assert folder.is_relative_to(tmp_path / "results"), "the results must outlive the container"
    assert all(list(folder.glob(f"nodes/{node}/*.xlog")) for node in ("n1", "n2", "n3"))
    assert mounted_from(client, folder) == [], "a node outlived its run"


@pytest.mark.docker
@needs.ssh
@pytest.mark.parametrize("project", [("docker-compose.yml", "docker-compose.ssh.yml")], indirect=True)
def test_the_machines_let_the_throwaway_key_in_and_nobody_else(
    client: Any, project: Project, tmp_path: Path
) -> None:
    """If it failed, `--cluster ssh` would find no machines to try itself on, or anybody could log in to them."""
    folder = tmp_path / "compose"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("ssh"))
    subprocess.run(["sh", folder / "make-key.sh"], env={**os.environ, **project.environment}, check=True)
    override = tmp_path / "here.yml"
    services = {node: {"volumes": [f"{folder}:/compose:ro"]} for node in NODES}
    override.write_text(json.dumps({"version": "3.8", "services": services}))
    here = Project(project.name, project.subnet, (*project.files, str(override)), project.environment)
    here.compose("up", "-d")
    assert log_in(folder, "n3", "echo $((6 * 7))") == "42\n"
    said = io.StringIO()
    with redirect_stdout(said):
        words = ["run", "--cluster", "ssh", "--inventory", str(folder / "ssh/inventory.toml"), "--nodes", "5"]
        main(
            [
                *words,
                "--faults",
                "none",
                "--time-limit",
                "3",
                "--json",
                "--results",
                str(tmp_path / "results"),
            ]
        )
    verdict = json.loads(said.getvalue())
    assert verdict["evidence"]["ok"] > 0 and verdict["violations"] == [], verdict["sentence"]
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "other"], check=True)
    shutil.copy2(tmp_path / "other", folder / "ssh/key")
    assert "Permission denied" in log_in(folder, "n3", "true")


def log_in(folder: Path, node: str, command: str) -> str:
    """What it says, or why it does not; sshd may still be starting."""
    words = ["ssh", "-F", folder / "ssh/config", "-o", "BatchMode=yes", "-o", "ConnectionAttempts=10", node]
    done = subprocess.run([*words, command], capture_output=True, text=True, timeout=30, check=False)
    return done.stdout if done.returncode == 0 else done.stderr
