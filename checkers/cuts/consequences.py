"""Findings that follow from what a different level says of the same cut; they are not said again.

| a finding | follows from | level |
|---|---|---|
| a torn transaction | a message about this transaction, received inside the cut and sent outside | messages |
| a torn transaction | a breach of form that names this transaction | form |
| torn transactions of a cut | records that do not say where the cut is: a second START, say | form |
| a key with a wrong value in a restored state | a torn transaction that wrote this key | transactions |

Only the finding that follows is left out. A second torn transaction, or a wrong value under a key that no torn
transaction wrote, has a cause of its own, and is reported.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy

from checkers.cuts.form import Breach
from checkers.cuts.logs import Logs
from checkers.cuts.messages import Messages
from checkers.cuts.trace import Trace

PLACELESS = frozenset({"second-start", "second-finish", "finish-without-start", "id-mismatch"})
"""Rules of form: without it nothing has a side."""
NAMING = frozenset(
    {
        "in-both-sets",
        "named-but-not-committed",
        "included-before-start",
        "excluded-behind-start",
        "had-to-fail",
    }
)
"""Rules of form: the transaction that such a breach names has no sure side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Causes:
    """What messages and form say of one cut. `placeless`: why nothing has a side, "" if all have."""

    by_message: frozenset[str] = frozenset()
    by_form: frozenset[str] = frozenset()
    placeless: str = ""

    def of_torn(self, xid: str) -> str:
        """Why a torn transaction follows from a different finding; "" if it does not."""
        if self.placeless:
            return f"{self.placeless} (level form)"
        if xid in self.by_form:
            return f"{xid} is torn, and a record of the cut names it wrongly (level form)"
        if xid in self.by_message:
            return f"{xid} is torn by a message from outside (level messages)"
        return ""


def causes(
    cut: str,
    place: int,
    trace: Trace | None,
    messages: Messages | None,
    breaches: Iterable[Breach],
    logs: Logs,
) -> Causes:
    """`place`: of the cut in `messages`."""
    of_cut = [breach for breach in breaches if breach.cut == cut]
    crossed: frozenset[str] = frozenset()
    if trace is not None and messages is not None and not messages.broken:
        crossed = messages.crossed(trace, place)
    return Causes(
        by_message=crossed,
        by_form=frozenset(
            logs.xids[breach.xid] for breach in of_cut if breach.rule in NAMING and breach.xid >= 0
        ),
        placeless=next((breach.summary for breach in of_cut if breach.rule in PLACELESS), ""),
    )


def keys_of(logs: Logs, xids: Iterable[int]) -> frozenset[str]:
    """The names of the keys that these transactions wrote."""
    records = numpy.flatnonzero(numpy.isin(logs.xid, list(xids)))
    rows = logs.writes[numpy.isin(logs.writes[:, 0], records)]
    return frozenset(logs.keys[key] for key in numpy.unique(rows[:, 1]).tolist())
