"""An sshd of one's own on loopback, with throwaway keys: what the tests of the cluster `ssh` log in to."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.harness.processes import PATIENCE_S
from tests.needs import SSHD
from tests.reserved_ports import reserved


@dataclass(frozen=True, slots=True)
class Sshd:
    """`folder` holds the client's key `key`, and `known_hosts` with the host's."""

    port: int
    folder: Path

    def inventory(self, *, hosts: int = 1, **fields: object) -> Path:
        """An inventory of this host, under several names if more than one is wanted."""
        told = {"user": "root", "key": "key", "known_hosts": "known_hosts", "lease_s": 4, **fields}
        told = {"port": self.port, "folder": str(self.folder / "remote"), **told}
        (self.folder / "remote").mkdir(exist_ok=True)
        lines = [f"{name} = {_toml(value)}" for name, value in told.items() if value is not None]
        for number in range(1, hosts + 1):
            lines += ["[[hosts]]", f'host = "127.0.0.{number}"']
        path = self.folder / "inventory.toml"
        path.write_text("\n".join(lines) + "\n")
        return path

    @property
    def left(self) -> list[Path]:
        """What runs left on the host."""
        return sorted((self.folder / "remote").glob("*"))


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool | int | float) else f'"{value}"'


@contextmanager
def sshd(folder: Path) -> Iterator[Sshd]:
    """Runs until the block is left."""
    for name in ("key", "host_key"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "throwaway", "-f", folder / name],
            check=True,
        )
    port = reserved(1)
    (folder / "authorized_keys").write_text((folder / "key.pub").read_text())
    settings = (
        f"Port {port}",
        "ListenAddress 0.0.0.0",
        f"HostKey {folder}/host_key",
        f"AuthorizedKeysFile {folder}/authorized_keys",
        "PidFile none",
        "UsePAM no",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "StrictModes no",
        "PermitRootLogin yes",
        "MaxStartups 100",
    )
    (folder / "sshd_config").write_text("\n".join(settings) + "\n")
    public = (folder / "host_key.pub").read_text().split()[:2]
    names = ",".join(f"[127.0.0.{number}]:{port}" for number in range(1, 6))
    (folder / "known_hosts").write_text(f"{names} {' '.join(public)}\n")
    Path("/run/sshd").mkdir(exist_ok=True)
    with (folder / "sshd.txt").open("wb") as said:
        process = subprocess.Popen(
            [os.path.realpath(SSHD), "-D", "-e", "-f", folder / "sshd_config"], stdout=said, stderr=said
        )
    try:
        _until_it_listens(port, process)
        yield Sshd(port, folder)
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def _until_it_listens(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as attempt:
            if attempt.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise AssertionError("sshd does not listen")
