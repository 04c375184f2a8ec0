"""Early timeouts: told before their time or after it, by either error, and where nobody can tell."""

from __future__ import annotations

import pytest

from checkers.history.history import Header, History
from checkers.history.operation import Event
from checkers.replicas import early_timeout

MILLISECOND_NS = 1_000_000


def history(waited_ms: int, error: str, f: str = "write", value: int | None = 7) -> History:
    end_ns = (100 + waited_ms) * MILLISECOND_NS
    events = [
        Event(
            index=0,
            time_ns=100 * MILLISECOND_NS,
            type="invoke",
            process=1,
            f=f,
            key="r1",
            value=value,
            node="n1",
        ),
        Event(
            index=1,
            time_ns=end_ns,
            type="info",
            process=1,
            f=f,
            key="r1",
            value=value,
            node="n1",
            error=error,
        ),
    ]
    return History.of(Header(nodes=("n1", "n2", "n3"), extra={"synchro_timeout_ns": 600_000_000}), events)


@pytest.mark.parametrize("error", ["no quorum in time (216)", "no quorum in time, detached (295)"])
def test_a_timeout_that_has_not_passed_is_told(error: str) -> None:
    """If it failed, a store that times by a clock which jumps would look healthy."""
    verdict = early_timeout.check(history(100, error))
    assert verdict.result == "invalid"
    assert verdict.witnesses[0].events == (0, 1)
    assert early_timeout.check(history(600, error)).result == "valid"
    assert early_timeout.check(history(545, error)).result == "valid", "clocks may drift by a twentieth"


def test_other_errors_and_answers_that_waited_for_others_may_come_sooner() -> None:
    """If it failed, a rollback behind somebody else's timeout would be an alarm."""
    assert early_timeout.check(history(100, "rolled back (217)")).details["vacuous"]
    assert early_timeout.check(history(100, "no quorum in time (216)", f="cas")).result == "valid"
    deletion = history(100, "no quorum in time (216)", value=None)
    assert early_timeout.check(deletion).result == "valid", "of nothing: it waits for what it looked at"


def test_without_the_timeout_nothing_is_known() -> None:
    """If it failed, a foreign history would be judged by a number that nobody gave."""
    told = history(100, "no quorum in time (216)")
    plain = History.of(Header(nodes=("n1",)), told.events)
    assert early_timeout.check(plain).result == "unknown"
    assert early_timeout.check(plain, timeout_ns=600_000_000).result == "invalid"
