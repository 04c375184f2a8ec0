"""The cluster `ssh` over three sshd in containers: other hosts, as far as a node can see."""

from __future__ import annotations

import io
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import main
from harness.cluster.containers.image import node_image
from harness.cluster.ssh import inventory
from harness.cluster.ssh.session import Session
from harness.errors import ClusterError
from tests import needs
from tests.harness.in_effect import until_in_effect
from tests.harness.processes import wait_until

pytestmark = pytest.mark.docker
ROOT = Path(__file__).parents[4]
HOSTS = 3
KEYS = "/keys"
LOOK = """
from contextlib import suppress
from pathlib import Path
for folder in Path("/root").glob("qsync-run-*"):
    print(folder)
for process in Path("/proc").glob("[0-9]*/cmdline"):
    with suppress(OSError):
        print(*(word for word in process.read_text().split("\\0") if word.startswith("/root/qsync-run-")))
"""


@dataclass(frozen=True, slots=True)
class Hosts:
    folder: Path
    containers: tuple[Any, ...]

    @property
    def inventory(self) -> Path:
        return self.folder / "inventory.toml"

    def left(self) -> list[str]:
        """On all hosts together: folders of runs, and processes that were started for one."""
        found = [
            container.exec_run(["python3", "-c", LOOK]).output.decode().split()
            for container in self.containers
        ]
        return [line for lines in found for line in lines]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    client = needs.docker()
    folder = tmp_path_factory.mktemp("hosts")
    name = f"sshd-of-a-test-{secrets.token_hex(4)}"
    network = client.networks.create(name, internal=True)
    started: list[Any] = []
    try:
        made = [_start(client, folder, name, number, started) for number in range(HOSTS)]
        _write_inventory(folder, made)
        for host in inventory.read(str(folder / "inventory.toml")):
            wait_until(lambda host=host: _lets_in(host))  # type: ignore[misc]  # the host of this turn
        yield Hosts(folder, tuple(made))
    finally:
        for container in started:
            with suppress(Exception):
                container.remove(force=True, v=True)
        network.remove()
        client.close()


def _start(client: Any, folder: Path, network: str, number: int, started: list[Any]) -> Any:
    keys = folder / f"keys{number}"
    keys.mkdir()
    if not number:
        _make_key(folder / "key")
    _make_key(keys / "host_key")
    (keys / "authorized_keys").write_text((folder / "key.pub").read_text())
    options = {
        "HostKey": f"{KEYS}/host_key",
        "AuthorizedKeysFile": f"{KEYS}/authorized_keys",
        "PermitRootLogin": "yes",
        "PasswordAuthentication": "no",
        "StrictModes": "no",
        "PidFile": "none",
    }
    settings = "".join(f"{option} {value}\n" for option, value in options.items())
    (keys / "sshd_config").write_text(settings)
    container = client.containers.create(
        node_image(client),
        ["/usr/sbin/sshd", "-D", "-e", "-f", f"{KEYS}/sshd_config"],
        name=f"{network}-{number}",
        network=network,
        volumes={str(keys): {"bind": KEYS, "mode": "ro"}},
        init=True,
    )
    started.append(container)
    container.start()
    container.reload()
    return container


def _make_key(path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "throwaway", "-f", path], check=True)


def _write_inventory(folder: Path, containers: list[Any]) -> None:
    lines = ['user = "root"', 'key = "key"', 'known_hosts = "known_hosts"', "lease_s = 60"]
    known: list[str] = []
    for number, container in enumerate(containers):
        (endpoint,) = container.attrs["NetworkSettings"]["Networks"].values()
        public = (folder / f"keys{number}" / "host_key.pub").read_text().split()[:2]
        known.append(f"{endpoint['IPAddress']} {' '.join(public)}")
        lines += ["[[hosts]]", f'host = "{endpoint["IPAddress"]}"']
    (folder / "known_hosts").write_text("\n".join(known) + "\n")
    (folder / "inventory.toml").write_text("\n".join(lines) + "\n")


def _lets_in(host: inventory.Host) -> bool:
    with suppress(ClusterError):
        Session.open(host).close()
        return True
    return False


def words(hosts: Hosts, results: Path, *more: str) -> list[str]:
    told = ["--cluster", "ssh", "--inventory", str(hosts.inventory), "--seed", "3", "--rate", "100"]
    return ["run", *told, "--results", str(results), *more]


def run(hosts: Hosts, results: Path, *more: str) -> dict[str, Any]:
    printed = io.StringIO()
    with redirect_stdout(printed):
        main([*words(hosts, results, *more), "--json"])
    verdict: dict[str, Any] = json.loads(printed.getvalue())
    return verdict


def test_the_same_workload_runs_on_three_hosts_under_faults(hosts: Hosts, tmp_path: Path) -> None:
    """If it failed, nodes could be tested on this machine only, where the network and the files are shared."""
    faults = ("--faults", "isolate-owner,one-way,kill,pause,clock", "--overlap", "2", "--time-limit", "14")
    for verdict in until_in_effect(lambda: run(hosts, tmp_path, *faults), "isolate-owner", "kill", "pause"):
        folder = Path(verdict["folder"])
        assert all(list(folder.glob(f"nodes/{node}/*.xlog")) for node in ("n1", "n2", "n3"))
    assert hosts.left() == []


def test_a_harness_killed_in_the_middle_is_cleaned_up_after_by_the_next(hosts: Hosts, tmp_path: Path) -> None:
    """If it failed, every killed harness would leave processes and files on other people's hosts."""
    harness = subprocess.Popen(
        [
            *(sys.executable, "-m", "harness.cli"),
            *words(hosts, tmp_path, "--faults", "isolate-owner", "--time-limit", "60"),
        ],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_until(lambda: any("nemesis" in path.read_text() for path in tmp_path.glob("*/*/history.jsonl")))
    time.sleep(0.5)  # into the fault
    os.kill(harness.pid, signal.SIGKILL)
    harness.wait()
    assert len({line.split("/")[2] for line in hosts.left()}) == HOSTS
    verdict = run(hosts, tmp_path, "--faults", "none", "--time-limit", "3")
    assert verdict["outcome"] in ("valid", "inconclusive"), verdict["sentence"]
    assert hosts.left() == []
    first = min(tmp_path.glob("*/2*/history.jsonl"))
    with redirect_stdout(io.StringIO()):
        assert main(["check", str(first.parent)]) in (0, 2, 3), (
            "what the killed run recorded cannot be checked"
        )
