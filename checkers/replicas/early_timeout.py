"""Early timeouts: no client gets a quorum timeout before that time has passed.

A store that waits for a quorum for `timeout_ns` may refuse with a timeout (Tarantool's errors 216 and 295) only when
the client has waited for at least that long. Clocks drift, so a tenth is tolerated; a clock that jumps is not an
excuse: timers have a clock of their own. Rule: early-timeout. Cost: linear.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from checkers.history.history import History
from checkers.history.line_kernels import ABSENT, PLAIN
from checkers.history.operation import Operation
from checkers.history.values import many
from checkers.verdict import WITNESSES_MAX, Verdict, Witness, concluded

NAME = "early-timeout"
MODEL = "a timeout is reported when it has passed"
TIMED_OUT = ("(216)", "(295)")
"""Rolled back, or detached and going on to wait."""
DRIFT_SHARE = 0.1


def check(history: History, *, timeout_ns: int | None = None) -> Verdict:
    """Whether each timeout had passed. Without `timeout_ns`, the header's `synchro_timeout_ns`; without it unknown."""
    wanted_ns = history.header.extra.get("synchro_timeout_ns") if timeout_ns is None else timeout_ns
    if not isinstance(wanted_ns, int):
        summary = "it is not known how long the store waits for a quorum"
        return Verdict(checker=NAME, result="unknown", summary=summary, model=MODEL)
    least_ns = int(wanted_ns * (1 - DRIFT_SHARE))
    timeouts, early = _timeouts(history, least_ns)
    witnesses = tuple(_witness(operation, wanted_ns) for operation in early[:WITNESSES_MAX])
    details = {"timeouts": timeouts, "early": len(early), "vacuous": not timeouts}
    summary = (
        f"no timeout was reported before its time ({many(timeouts, 'timeout')})"
        if timeouts
        else "nothing to judge: no timeout was reported"
    )
    return concluded(NAME, witnesses, summary, model=MODEL, details=details, violations=len(early))


def _timeouts(history: History, least_ns: int) -> tuple[int, Sequence[Operation]]:
    """How many timeouts were reported, and the operations that got theirs too early.

    An operation that waits for another client's entry may get its timeout sooner: a compare, or a deletion of nothing.
    """
    columns = history.columns
    are_timeouts = numpy.array([(word or "").endswith(TIMED_OUT) for word in columns.words])
    is_timeout = (columns.f == columns.code("write")) & are_timeouts[columns.error]
    is_timeout &= (columns.kind != PLAIN) | (columns.new != ABSENT)
    is_early = is_timeout & (columns.complete_ns - columns.invoke_ns < least_ns)
    return int(is_timeout.sum()), history.at(numpy.flatnonzero(is_early))


def _witness(operation: Operation, wanted_ns: int) -> Witness:
    end_ns = operation.complete_ns or operation.invoke_ns
    waited_ms = (end_ns - operation.invoke_ns) / 1e6
    return Witness(
        rule="early-timeout",
        summary=f"process {operation.process} got the answer after {waited_ms:.1f} ms that no quorum came in time "
        f"for its write of key {operation.key} at {operation.node}; the timeout is {wanted_ns / 1e6:g} ms",
        events=operation.events,
        key=operation.key,
        node=operation.node,
        start_ns=operation.invoke_ns,
        end_ns=end_ns,
    )
