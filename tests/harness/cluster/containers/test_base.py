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


def test_an_image_has_the_users_and_the_awk_that_installing_would_make(tmp_path: Path) -> None:
    """If it failed, scripts of a store's packages would end for want of them: rsync gives its daemon to `nobody`."""
    package, root = tmp_path / "package", tmp_path / "root"
    for name, text in {
        "DEBIAN/control": "Package: a\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b>\nDescription: a\n",
        "usr/share/base-passwd/passwd.master": (
            "root:*:0:0:root:/root:/bin/bash\nnobody:*:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
        ),
        "usr/share/base-passwd/group.master": "root:*:0:\nmail:*:8:\nnogroup:*:65534:\n",
        "usr/bin/mawk": "",
    }.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    subprocess.run(["dpkg-deb", "--build", package, tmp_path / "a.deb"], check=True, capture_output=True)
    base._unpack([tmp_path / "a.deb"], root)
    users = [line.split(":") for line in (root / "etc/passwd").read_text().splitlines()]
    assert [(user[0], user[-1]) for user in users] == [
        ("root", "/bin/sh"),  # not every image has bash
        ("sshd", "/usr/sbin/nologin"),
        ("nobody", "/usr/sbin/nologin"),
    ]
    groups = [line.partition(":")[0] for line in (root / "etc/group").read_text().splitlines()]
    assert groups == ["root", "nogroup", "mail"]
    assert (root / "usr/bin/awk").readlink() == Path("mawk")


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


def test_packages_that_are_asked_for_are_had_or_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a store would start in an image without the package that it names, and end there."""
    asked: list[list[str]] = []

    def run(command: list[str], folder: Path) -> str:
        asked.append(command)
        if command[1] == "depends":
            return "dash\n  Depends: dpkg\ndpkg\nperl\n"  # it leaves out what it does not know
        return "".join(f"{name}:\n  Installed: (none)\n  Candidate: 1\n" for name in command[2:])

    monkeypatch.setattr(base, "_run", run)
    base._download(tmp_path, ["dash"], ["perl"])
    assert asked[-1] == ["apt-get", "download", "-q", "dash", "perl"]
    with pytest.raises(ClusterError, match="no Debian package perll here"):
        base._download(tmp_path, ["dash"], ["perl", "perll"])
