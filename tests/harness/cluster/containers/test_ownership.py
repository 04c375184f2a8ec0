"""What is said of containers that dead harnesses left."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from harness.cluster.containers import ownership


class Container:
    """One that the daemon removes, or never does."""

    name = "qsync-n1"

    def __init__(self, failures: int) -> None:
        self.labels: dict[str, str] = {}
        self.failures = failures

    def unpause(self) -> None:
        raise RuntimeError("it is not paused")

    def remove(self, *, force: bool, v: bool) -> None:
        self.failures -= 1
        if self.failures >= 0:
            raise RuntimeError("the daemon is slow")


@pytest.mark.parametrize(
    ("failures", "said"),
    [
        (0, "container qsync-n1"),
        (3, "container qsync-n1"),
        (99, "container qsync-n1: no, it is still there (RuntimeError: the daemon is slow)"),
    ],
)
def test_what_is_still_there_is_not_said_to_be_gone(
    failures: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If this fails, a clean-up that cleaned nothing says that it did, and why it could not is lost."""
    monkeypatch.setattr(ownership, "_TRY_AGAIN_S", 0)
    monkeypatch.setattr(ownership, "remove_tables", lambda keep: [])
    containers = SimpleNamespace(list=lambda **_: [Container(failures)])
    client = SimpleNamespace(containers=containers, networks=SimpleNamespace(list=lambda **_: []))
    assert ownership.remove_leftovers(client) == [said]
