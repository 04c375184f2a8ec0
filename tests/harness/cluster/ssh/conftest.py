"""An sshd of this machine, for each test a new one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.cluster.ssh.sshd import Sshd, sshd


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Sshd]:
    with sshd(tmp_path) as running:
        yield running
