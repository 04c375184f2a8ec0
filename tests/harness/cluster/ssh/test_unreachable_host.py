"""Leftovers on hosts of which one does not answer."""

from __future__ import annotations

import json

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
