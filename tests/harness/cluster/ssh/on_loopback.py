"""Helpers of the tests of runs on an sshd of this machine."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]  # it has no types

from harness.cli.main import main
from harness.cluster.ssh.remote.bootstrap import PREFIX
from tests.harness.cluster.ssh.sshd import Sshd

ROOT = Path(__file__).parents[4]


def words(host: Sshd, *more: str, hosts: int = 3, lease_s: float = 4) -> list[str]:
    path = host.inventory(hosts=hosts, lease_s=lease_s)
    told = ["--cluster", "ssh", "--inventory", str(path)]
    drawn = [] if "--plan" in more else ["--seed", "5", "--rate", "100"]
    return ["run", *told, *drawn, "--results", str(host.folder / "results"), *more]


def run(host: Sshd, *more: str, hosts: int = 3) -> dict[str, Any]:
    printed = io.StringIO()
    with redirect_stdout(printed):
        main([*words(host, *more, hosts=hosts), "--json"])
    verdict: dict[str, Any] = json.loads(printed.getvalue())
    return verdict


def refused(host: Sshd, *more: str) -> tuple[int, str]:
    """Exit code and the line of a run that cannot be."""
    said = io.StringIO()
    with redirect_stderr(said), redirect_stdout(io.StringIO()):
        code = main([*words(host, hosts=1), "--faults", "none", "--time-limit", "1", *more])
    lines = [line for line in said.getvalue().splitlines() if line.startswith("qsync: ")]
    assert len(lines) == 1, said.getvalue()
    return code, lines[0]


def background(host: Sshd, *more: str, lease_s: float = 4) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "harness.cli", *words(host, *more, lease_s=lease_s)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def processes_in(host: Sshd) -> list[psutil.Process]:
    """Supervisors and nodes: whoever was started for a folder of a run."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            if any(str(host.folder / "remote" / PREFIX) in word for word in process.cmdline()):
                found.append(process)
        except psutil.Error:  # it ended meanwhile
            continue
    return found


def loaded(host: Sshd) -> bool:
    return any("ok" in path.read_text() for path in host.folder.glob("results/*/*/history.jsonl"))
