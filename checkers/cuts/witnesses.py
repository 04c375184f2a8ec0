"""Witnesses for a person: what contradicts a cut, named and in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from checkers.cuts.closure import Gap, Inversion
from checkers.cuts.finish import Wrong
from checkers.cuts.logs import Logs
from checkers.cuts.messages import Crossing
from checkers.cuts.trace import Trace, name_of, told
from checkers.cuts.transactions import Side
from checkers.verdict import Witness


def of_crossing(trace: Trace, cut: str, crossing: Crossing) -> Witness:
    """A message from outside to inside, with both points of the frontier."""
    nodes = {trace.lives[trace.life_of(end)].node for end in (crossing.path[0], crossing.receive)}
    changes: dict[str, str] = {}
    for row, code in zip(trace.mark_row.tolist(), trace.mark_cut.tolist(), strict=True):
        node = trace.lives[trace.life_of(row)].node
        if trace.cuts[code] == cut and node in nodes:
            changes.setdefault(node, f"{told(trace, row)}: the colour change of {cut}")
    receiver = trace.lives[trace.life_of(crossing.receive)].node
    sender = trace.lives[trace.life_of(crossing.send)].node
    message = told(trace, crossing.send).partition(": sends ")[2]
    return Witness(
        rule="message-from-outside",
        summary=f"{receiver} took a message before {cut} that {sender} sent behind it: {message}",
        events=(),
        node=receiver,
        explanation=(*(told(trace, row) for row in crossing.path), *changes.values()),
    )


def of_gap(logs: Logs, cut: str, gap: Gap) -> Witness:
    """A BEFORE that is no prefix of a key's versions."""
    node, key = logs.nodes[gap.node], logs.keys[gap.key]
    earlier, later = logs.xids[gap.earlier], logs.xids[gap.later]
    return Witness(
        rule="version-gap",
        summary=f"on {node} {later} is before {cut}, and {earlier}, which wrote key {key} earlier, is not",
        events=(),
        key=key,
        node=node,
    )


def of_inversion(cut: str, found: Inversion) -> Witness:
    """Two transactions in the order of their clients."""
    earlier, later = name_of(found.earlier.xid), name_of(found.later.xid)
    how = "a client read what it wrote" if found.earlier.is_read else "was acknowledged"
    return Witness(
        rule=found.rule,
        summary=f"{later} is before {cut}; {earlier} is not, and {how} before {later} was invoked",
        events=(),
        start_ns=found.earlier.at_ns,
        end_ns=found.later.invoked_ns,
    )


def of_torn(logs: Logs, cut: str, xid: int, said: Sequence[Side]) -> Witness:
    """A transaction with participants on both sides."""
    name = logs.xids[xid]
    has = next(each for each in said if each.is_before)
    lacks = next(each for each in said if not each.is_before)
    is_torn = lacks.word == "after"
    return Witness(
        rule="torn-transaction" if is_torn else "missing-transaction",
        summary=f"transaction {name} is before {cut} on {has.node}, and {'after it' if is_torn else lacks.word} on "
        f"{lacks.node}",
        events=(),
        node=lacks.node,
        explanation=tuple(
            f"{each.node}: {each.word}" + (f", by {logs.told(each.record)}" if each.record >= 0 else "")
            for each in said
        ),
    )


def of_bounds(cut: str, found: Wrong) -> Witness:
    """A transaction on the side of a cut where its client's times do not allow it."""
    each = found.operation
    why = {
        "acknowledged-not-included": "was acknowledged before the cut was asked for, and is not in it",
        "acknowledged-in-no-log": "was acknowledged before the cut was asked for, and no log has it",
        "invoked-later-included": "was invoked after the end of the cut, and is in it",
    }[found.rule]
    return Witness(
        rule=found.rule,
        summary=f"{name_of(each.xid)} {why} ({cut})",
        events=(),
        start_ns=each.invoked_ns,
        end_ns=each.completed_ns if each.completed_ns >= 0 else None,
    )
