"""Ends of nodes that no fault asked for: which of them a fault may have caused, and whether that is allowed."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.history.history import Header, History
from checkers.history.operation import Event
from checkers.replicas import crash
from checkers.verdict import Verdict

SECOND_NS = 1_000_000_000


def judged(
    how: str = "exit 1",
    *,
    at_s: float = 3.2,
    does: str = "disk-error",
    nodes: tuple[str, ...] = ("n2",),
    error: str = "ENOSPC",
    took_effect: bool = True,
    **given: Any,
) -> Verdict:
    """A fault from 2 s to 4 s; n2 ended at `at_s`, which the monitor noted at 5 s."""
    fault = {"id": 7, "name": "full-disk", "does": does, "nodes": nodes, "error": error}
    lines: list[dict[str, Any]] = [
        *(
            {"process": "monitor", "f": "state", "node": n, "value": {"up": True}, "at_s": 1}
            for n in ("n1", "n2")
        ),
        {"process": "nemesis", "f": "full-disk", "type": "invoke", "value": fault, "at_s": 2},
        {
            "process": "nemesis",
            "f": "full-disk",
            "value": {"id": 7, "took_effect": took_effect, "healed": True},
            "at_s": 4,
        },
        {
            "process": "monitor",
            "f": "crash",
            "node": "n2",
            "value": {"how": how, "at_ns": int(at_s * SECOND_NS)},
            "at_s": 5,
        },
    ]
    events = [
        Event(index=index, time_ns=line.pop("at_s") * SECOND_NS, **{"type": "info", **line})
        for index, line in enumerate(lines)
    ]
    return crash.check(History.of(Header(nodes=("n1", "n2")), events), **given)


def test_the_fault_that_made_a_node_end_is_named() -> None:
    """If it failed, a store that stops on a disk that we filled would have ended "although no fault ended it"."""
    verdict = judged(promised="a log")
    assert verdict.result == "invalid"
    assert verdict.summary == (
        "n2 ended 1.2 s after fault 7 (full-disk) filled its disk: exit 1; the promise of a log does not allow that"
    )
    (witness,) = verdict.witnesses
    assert witness.events == (2, 4)


def test_a_promise_may_allow_a_node_to_end_under_a_fault() -> None:
    """If it failed, a store that rather stops than goes on without its disk could never be found sound."""
    verdict = judged(promised="a log", may_end_under=("disk-error",))
    assert verdict.result == "valid"
    (finding,) = verdict.details["findings"]
    assert finding == (
        "n2 ended 1.2 s after fault 7 (full-disk) filled its disk: exit 1; the promise of a log allows that"
    )


@pytest.mark.parametrize(
    "given",
    [
        {"at_s": 4.5},  # the fault was over
        {"at_s": 1.5},
        {"nodes": ("n1",)},
        {"does": "pause"},
        {"how": "signal 11"},
        {"took_effect": False},
        {"may_end_under": ("memory-limit",)},
    ],
)
def test_what_is_allowed_excuses_nothing_else(given: dict[str, Any]) -> None:
    """If it failed, one fault would excuse crashes of other nodes, at other times, or of any kind."""
    verdict = judged(**{"may_end_under": ("disk-error",), **given})
    assert verdict.result == "invalid"
    assert not verdict.details.get("findings")


def test_an_end_that_no_fault_can_have_caused_is_told_as_before() -> None:
    """If it failed, a crash would be laid at the door of a fault that had nothing to do with it."""
    assert judged(nodes=("n1",)).summary == "n2 ended although no fault ended it: exit 1"
    assert "made its disk fail" in judged(error="EIO").summary
