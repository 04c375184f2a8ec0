"""What some tests need of the machine. Where a need is absent, the test is skipped, and the reason names it.

`.ci/run` installs the programs and starts the daemon. In CI a test without one of those fails: a skip would hide it.
What only a kernel or its administrator can give may be absent in CI as well.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.cluster.containers.image import DOCKER_HOST, connect
from harness.cluster.limits import enclosure
from harness.cluster.mounted_disk import mounts
from harness.errors import ClusterError
from harness.systems.tarantool.system import FAKETIME_LIBRARY

IS_CI = "CI" in os.environ
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SSHD = shutil.which("sshd") or "/usr/sbin/sshd"


def _installed(is_there: object, what: str, package: str) -> pytest.MarkDecorator:
    reason = f"needs {what}; .ci/run installs the package {package}"
    return pytest.mark.skipif(not is_there and not IS_CI, reason=reason)


def _offered(why_not: str, what: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(bool(why_not), reason=f"needs {what}: {why_not}")


tarantool = _installed(shutil.which("tarantool"), "tarantool: none on PATH", "tarantool")
tarantoolctl = _installed(shutil.which("tarantoolctl"), "tarantoolctl: none on PATH", "tarantool")
faketime = _installed(
    any(Path("/usr/lib").glob(FAKETIME_LIBRARY)), f"/usr/lib/{FAKETIME_LIBRARY}", "libfaketime"
)
chromium = _installed(CHROMIUM, "chromium: none on PATH", "chromium")
sshd = _installed(Path(SSHD).exists(), f"sshd: none on PATH, nor {SSHD}", "openssh-server")
ssh = _installed(
    shutil.which("ssh") and shutil.which("ssh-keygen"), "ssh and ssh-keygen: not on PATH", "openssh-server"
)
linux = _offered("" if sys.platform == "linux" else f"this is {sys.platform}", "Linux")
root = _offered("" if os.geteuid() == 0 else "this user is not root; try: sudo ./qsync test …", "root")
limits = _offered(enclosure.why_not(), "groups of processes with limits of cores and memory")
mounted_disks = _offered(mounts.why_not(), "disks that the harness mounts")


def docker() -> Any:
    """A client of the Docker daemon."""
    try:
        return connect()
    except ClusterError:
        if IS_CI:
            raise
        host = os.environ.get("DOCKER_HOST", DOCKER_HOST)
        pytest.skip(f"needs dockerd: none answers at {host}; .ci/run starts one")


def compose() -> None:
    """`docker-compose`, or the plugin of that name."""
    plugin = ("docker", "compose", "version")
    if IS_CI or shutil.which("docker-compose"):
        return
    if subprocess.run(plugin, capture_output=True, check=False).returncode:
        pytest.skip("needs docker-compose, or the plugin: neither answers; .ci/run installs docker-compose")
