"""Findings that follow from what a different level reports of a cut; they are left out.

| a finding | follows from | level |
|---|---|---|
| a torn transaction | a message about this transaction, received inside the cut and sent outside | messages |
| a torn transaction | a breach of form that names this transaction | form |
| a key with a wrong value in a restored state | a torn transaction that wrote this key | transactions |
| anything but form, of a cut | records of the cut that do not say where it is: a second START, say | form |
| anything but form, of a cut | an older cut that began anew on a node while this cut was the newest there | form |

Only the finding that follows is left out. A second torn transaction, or a wrong value under a key that no torn
transaction wrote, has a cause of its own, and is reported. A cut without a place has none of its other levels judged;
the breach of form is reported for it, or for the cut that began anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy

from checkers.cuts.form import Breach
from checkers.cuts.logs import Logs
from checkers.cuts.messages import Messages
from checkers.cuts.trace import Trace

PLACELESS = frozenset({"second-start", "second-finish", "finish-without-start", "id-mismatch"})
"""Rules of form: what breaks one leaves open where its cut is."""
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


def placeless(
    cuts: Sequence[str], breaches: Iterable[Breach], trace: Trace | None, messages: Messages | None
) -> dict[str, str]:
    """By cut without a place: why its place is unknown."""
    reasons: dict[str, str] = {}
    for breach in breaches:
        if breach.rule in PLACELESS:
            reasons.setdefault(breach.cut, f"{breach.summary} (level form)")
    if trace is None or messages is None:
        return reasons
    firsts = _first_changes(trace)
    for cut, doubled in zip(cuts, messages.doubled, strict=True):
        for node, row in doubled:
            newest = [other for at, other in firsts.get(node, ()) if at < row]
            if newest and newest[-1] != cut:
                why = f"{node} began {cut} anew while {newest[-1]} was its newest cut (level form)"
                reasons.setdefault(newest[-1], why)
    return reasons


def _first_changes(trace: Trace) -> dict[str, list[tuple[int, str]]]:
    """By node its first colour change of each cut, in their order."""
    firsts: dict[str, dict[str, int]] = {}
    for row, code in zip(trace.mark_row.tolist(), trace.mark_cut.tolist(), strict=True):
        node = trace.lives[trace.life_of(row)].node
        firsts.setdefault(node, {}).setdefault(trace.cuts[code], row)
    return {node: sorted((row, cut) for cut, row in rows.items()) for node, rows in firsts.items()}


def of_torn(xid: str, crossed: Iterable[str], named: Iterable[str]) -> str:
    """Why a torn transaction follows from a different finding; "" if it does not.

    `crossed`: transactions of messages that violate the cut; `named`: those that a breach of form names.
    """
    if xid in named:
        return f"{xid} is torn, and a record of the cut names it wrongly (level form)"
    if xid in crossed:
        return f"{xid} is torn by a message from outside (level messages)"
    return ""


def named_by(cut: str, breaches: Iterable[Breach], logs: Logs) -> frozenset[str]:
    """The transactions that the cut's breaches of form name."""
    return frozenset(
        logs.xids[breach.xid]
        for breach in breaches
        if breach.cut == cut and breach.rule in NAMING and breach.xid >= 0
    )


def keys_of(logs: Logs, xids: Iterable[int]) -> frozenset[str]:
    """The names of the keys that these transactions wrote."""
    records = numpy.flatnonzero(numpy.isin(logs.xid, list(xids)))
    rows = logs.writes[numpy.isin(logs.writes[:, 0], records)]
    return frozenset(logs.keys[key] for key in numpy.unique(rows[:, 1]).tolist())
