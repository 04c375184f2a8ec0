"""The base image of Debian packages: its name, and one line where packages cannot be had. No daemon is asked."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.cluster.containers import base
from harness.errors import ClusterError

TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


def test_any_package_gives_a_name_that_docker_takes() -> None:
    """If it failed, a node that needs libstdc++6 would have no image."""
    for packages in (["libstdc++6"], ["a" * 90, "b+c"], ["gcc-12-base", "g++"]):
        assert TAG.fullmatch(base.name_of(packages).partition(":")[2])
    assert base.name_of(["b+c"]) != base.name_of(["b_c"])


def test_a_package_that_is_none_is_one_line(tmp_path: Path) -> None:
    """If it failed, a damaged download would end in a traceback, or in an image without the package."""
    junk = tmp_path / "junk.deb"
    junk.write_bytes(b"no archive")
    with pytest.raises(ClusterError, match="dpkg-deb"):
        base._unpack([junk], tmp_path / "root")


def test_a_command_that_takes_too_long_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a package index that hangs would end in a traceback."""

    def hangs(command: list[str], **_: Any) -> None:
        raise subprocess.TimeoutExpired(command, 300)

    monkeypatch.setattr(subprocess, "run", hangs)
    with pytest.raises(ClusterError, match="apt-cache depends took more than 300 s"):
        base._download(tmp_path, ["tarantool"])


def test_packages_without_a_candidate_are_left_out() -> None:
    """If it failed, a virtual package would end the download of all."""
    listing = (
        "dash:\n  Installed: 0.5.12-2\n  Candidate: 0.5.12-2\n  Version table:\n *** 0.5.12-2 500\n"
        "mail-transport-agent:\n  Installed: (none)\n  Candidate: (none)\n  Version table:\n"
    )
    assert dict(base._CANDIDATE.findall(listing)) == {"dash": "0.5.12-2", "mail-transport-agent": "(none)"}
