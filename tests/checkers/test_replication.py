"""What the check of replication tells beside its verdict: who stopped receiving, and whether for good."""

from __future__ import annotations

from typing import Any

import pytest

from checkers import replication
from checkers.history import Event, Header, History

STOPPED = {"n1": {"status": "stopped", "message": "Failed to write to disk"}}
FOLLOWS = {"n1": {"status": "follow"}}


def findings(*upstreams: dict[str, Any]) -> list[str]:
    """Of a run in which n2 told these, one a second."""
    states = [
        Event(
            index=index,
            time_ns=index * 1_000_000_000,
            type="info",
            process="monitor",
            f="state",
            node="n2",
            value={"up": True, "vclock": {"1": 5}, "upstreams": told},
        )
        for index, told in enumerate(upstreams)
    ]
    told: list[str] = replication.check(History.of(Header(nodes=("n1", "n2")), states)).details["findings"]
    return told


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ((FOLLOWS, FOLLOWS), []),
        ((FOLLOWS, STOPPED, STOPPED), ["at the end, for good: Failed to write to disk"]),
        ((FOLLOWS, STOPPED, FOLLOWS, FOLLOWS), ["at 1.0 s, and not for good: Failed to write to disk"]),
        ((STOPPED, FOLLOWS, STOPPED, FOLLOWS), ["at 0.0 s, and not for good: Failed to write to disk"]),
    ],
)
def test_who_stopped_receiving_is_told_once(told: tuple[dict[str, Any], ...], words: list[str]) -> None:
    """If it failed, an operator who starts replication anew would hide that it had stopped."""
    assert findings(*told) == [f"n2 had stopped receiving from n1 {each}" for each in words]
