"""Hosts that do not answer, or not to the end."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path

import pytest

from harness.cluster.ssh.inventory import Host
from harness.cluster.ssh.leftovers import remove_leftovers
from harness.cluster.ssh.session import Session
from harness.errors import ClusterError


class Answers:
    """A host with one free folder."""

    def run(self, word: str, argument: str, stdin: bytes = b"") -> bytes:
        free = {
            "folder": "/tmp/qsync-a",
            "owner": "far 1@1.00",
            "is_supervised": False,
            "age_s": 9,
            "lease_s": 1,
        }
        removed = {"look": {"runs": [free]}, "clean": {"removed": True}, "ungroup": {"removed": []}}
        return json.dumps(removed[word]).encode()

    def close(self) -> None:
        pass


def test_a_host_that_is_down_keeps_no_other_from_being_cleaned(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, leftovers would stay on good hosts, and what was removed from others would not be reported."""

    def opened(host: Host) -> Answers:
        if host.host == "down":
            raise ClusterError("down:22: no answer")
        return Answers()

    monkeypatch.setattr(Session, "open", opened)
    hosts = [Host(host=name) for name in ("first", "down", "last")]
    first, down, last = remove_leftovers(hosts)
    assert first.startswith("/tmp/qsync-a on first") and last.startswith("/tmp/qsync-a on last")
    assert down.endswith(": no, the host was not cleaned (down:22: no answer)")


def test_a_host_that_closes_the_connection_early_gets_one_line(tmp_path: Path) -> None:
    """If it failed, a host that hangs up behind its greeting would end the run with a traceback."""
    with socket.create_server(("127.0.0.1", 0)) as door:

        def hang_up() -> None:
            connection, _ = door.accept()
            with connection, connection.makefile("rb") as sent:
                connection.sendall(b"SSH-2.0-early\r\n")
                sent.readline()
                connection.shutdown(socket.SHUT_WR)
                sent.read()

        threading.Thread(target=hang_up, daemon=True).start()
        host = Host(
            host="127.0.0.1",
            port=door.getsockname()[1],
            user="qsync",
            known_hosts=str(tmp_path / "known_hosts"),
            accept_new_host_keys=True,
        )
        with pytest.raises(ClusterError, match=r"no SSH with 127\.0\.0\.1:\d+: it closed the connection"):
            Session.open(host)
