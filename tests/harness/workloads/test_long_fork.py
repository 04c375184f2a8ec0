"""Long forks: a run that has not looked at enough says what to change."""

from __future__ import annotations

from typing import Any

from checkers.history.history import Header, History
from checkers.history.operation import Event
from harness.campaigns.hunt import try_seed
from harness.systems.plans import planned
from harness.workloads.long_fork import LONG_FORK


def test_one_worker_alone_has_no_group_to_read() -> None:
    """If it failed, a run with one worker would only ever end with "0 of 0", and no word on what to try."""
    tried = try_seed(
        planned(cluster="sim", workload="long-fork", workers=1, time_limit_s=4, faults=("none",), least_ok=1)
    )
    assert tried.outcome == "inconclusive"
    assert "try --workers 3" in tried.sentence


def test_a_key_that_no_final_read_shows_is_named() -> None:
    """If it failed, a run in which nothing looked for lost writes would be valid where nodes may differ in the end."""

    def history(*final: str) -> History:
        parts: list[tuple[str, str, Any]] = [
            ("load", "ok", [("w", "g0-0", 1)]),
            ("load", "ok", [("w", "g0-1", 2)]),
            ("load", "ok", [("r", "g0-0", 1), ("r", "g0-1", None)]),
            ("final", "ok", [("r", key, 1) for key in final]),
        ]
        events = [
            Event(
                index=2 * process + place,
                time_ns=2 * process + place,
                type=("invoke", type_)[place],  # type: ignore[arg-type]
                process=process,
                f="txn",
                value=value,
                phase=phase,  # type: ignore[arg-type]
                node="n1",
            )
            for process, (phase, type_, value) in enumerate(parts)
            for place in (0, 1)
        ]
        return History.of(Header(nodes=("n1",), quorum=1), events)

    assert list(LONG_FORK.missing(history("g0-0", "g0-1"))) == []
    (said,) = LONG_FORK.missing(history("g0-0"))
    assert said == "1 key had no final read that had to be fresh, g0-1 among them"
