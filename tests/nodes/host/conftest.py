"""The fixture that starts hosts and sees to it that none outlives its test."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.nodes.host.hosts import ROOT, Process, StartHost, command_line


@pytest.fixture
def start_host(tmp_path: Path) -> Iterator[StartHost]:
    """Start a host, gone when the test ends. `options` go to its command line;
    `through` is a command that runs it."""
    started: list[Process] = []

    def start(
        *options: str,
        name: str = "n1",
        config: str | None = None,
        system: str = "toy",
        listen: str = "127.0.0.1:0",
        through: Sequence[str] = (),
    ) -> Process:
        config_path, data, log = tmp_path / f"{name}.json", tmp_path / name, tmp_path / f"{name}.jsonl"
        config_path.write_text(json.dumps({"name": name}) if config is None else config)
        command = [*through, *command_line(system, config_path, data, log, listen, options)]
        popen = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process = Process(popen, {}, data, log)
        started.append(process)
        assert popen.stdout is not None
        process.said = json.loads(popen.stdout.readline() or b"{}")
        return process

    yield start
    for process in started:
        for client in process.clients:
            client.socket.close()
        with process.popen as popen:  # on leaving it waits and closes the pipes
            popen.kill()
