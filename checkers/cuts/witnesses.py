"""Witnesses for a person: what contradicts a cut, named and in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from checkers.cuts.acknowledged import Misplaced
from checkers.cuts.closure import Gap, Inversion
from checkers.cuts.logs import FINISH, START, Logs
from checkers.cuts.messages import Crossing
from checkers.cuts.trace import Trace, described, name_of
from checkers.cuts.transactions import Side
from checkers.verdict import Witness


def of_crossing(trace: Trace, cut: str, crossing: Crossing) -> Witness:
    """A message from outside to inside, with both points of the frontier."""
    nodes = {trace.lives[trace.life_of(end)].node for end in (crossing.path[0], crossing.receive)}
    changes: dict[str, str] = {}
    for row, code in zip(trace.mark_row.tolist(), trace.mark_cut.tolist(), strict=True):
        node = trace.lives[trace.life_of(row)].node
        if trace.cuts[code] == cut and node in nodes:
            changes.setdefault(node, f"{described(trace, row)}: the colour change of {cut}")
    receiver = trace.lives[trace.life_of(crossing.receive)].node
    sender = trace.lives[trace.life_of(crossing.send)].node
    message = described(trace, crossing.send).partition(": sends ")[2]
    return Witness(
        rule="message-from-outside",
        summary=f"{receiver} took a message before {cut} that {sender} sent behind it: {message}",
        events=(),
        node=receiver,
        explanation=(*(described(trace, row) for row in crossing.path), *changes.values()),
        how=_how_crossed(trace, crossing),
    )


def _how_crossed(trace: Trace, crossing: Crossing) -> str:
    """The kind of message: a finish carries a decision, and has a marker of its own."""
    word = int(trace.what[crossing.send]) if len(trace.what) else -1
    is_finish = word >= 0 and "finish" in trace.words[word]
    return "by the finish" if is_finish else "before the finish"


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


def of_inversion(cut: str, inversion: Inversion) -> Witness:
    """Two transactions in the order of their clients."""
    earlier, later = name_of(inversion.earlier.xid), name_of(inversion.later.xid)
    how = "a client read what it wrote" if inversion.earlier.is_read else "was acknowledged"
    return Witness(
        rule=inversion.rule,
        summary=f"{later} is before {cut}; {earlier} is not, and {how} before {later} was invoked",
        events=(),
        start_ns=inversion.earlier.at_ns,
        end_ns=inversion.later.invoked_ns,
    )


def of_torn(logs: Logs, cut: str, xid: int, sides: Sequence[Side]) -> Witness:
    """A transaction with participants on both sides."""
    name = logs.xids[xid]
    has = next(side for side in sides if side.is_before)
    lacks = next(side for side in sides if not side.is_before)
    is_torn = lacks.word == "after"
    return Witness(
        rule="torn-transaction" if is_torn else "missing-transaction",
        summary=f"transaction {name} is before {cut} on {has.node}, and {'after it' if is_torn else lacks.word} on "
        f"{lacks.node}",
        events=(),
        node=lacks.node,
        explanation=tuple(
            f"{side.node}: {side.word}" + (f", by {logs.described(side.record)}" if side.record >= 0 else "")
            for side in sides
        ),
        how=f"{_how_placed(logs, cut, xid, has)}, and {_how_placed(logs, cut, xid, lacks)}; {_sets_of(logs)}"
        f"{_how_signed(logs, sides)}",
    )


def _how_signed(logs: Logs, sides: Sequence[Side]) -> str:
    """Whether the nodes committed it with one sign. Recovery has none."""
    records = [side.record for side in sides if side.record >= 0 and not logs.recovered[side.record]]
    signs = [code for code in logs.sign[records].tolist() if code >= 0]
    if len(signs) < 2:
        return ""
    return f"; its records are signed {'alike' if len(set(signs)) == 1 else 'differently'}"


def _sets_of(logs: Logs) -> str:
    """Which sets the FINISH records of the run fill."""
    filled = [name for name, pairs in (("include", logs.included), ("exclude", logs.excluded)) if len(pairs)]
    return f"FINISH records {' and '.join(filled) or 'name no'} transactions"


def _how_placed(logs: Logs, cut: str, xid: int, side: Side) -> str:
    """The place of one side's record relative to START and FINISH, and the set of FINISH that names the transaction."""
    if side.record < 0:
        return f"{side.word} without a record"
    start = next(iter(logs.of_cut(START, cut).get(side.node, ())), -1)
    finish = next(iter(logs.of_cut(FINISH, cut).get(side.node, ())), -1)
    place = (
        "before START" if side.record < start else "behind FINISH" if side.record > finish else "in between"
    )
    sets = [
        name
        for name, pairs in (("included", logs.included), ("excluded", logs.excluded))
        if ((pairs[:, 0] == finish) & (pairs[:, 1] == xid)).any()
    ]
    by = ", by recovery" if bool(logs.recovered[side.record]) else ""
    return f"{'before' if side.is_before else 'after'} with its record {place}{by}, {' and '.join(sets) or 'in no set'}"


def of_bounds(cut: str, misplaced: Misplaced) -> Witness:
    """A transaction on the side of a cut where its client's times do not allow it."""
    operation = misplaced.operation
    why = {
        "acknowledged-not-included": "was acknowledged before the cut was asked for, and is not in it",
        "acknowledged-in-no-log": "was acknowledged before the cut was asked for, and no log has it",
        "invoked-later-included": "was invoked after the end of the cut, and is in it",
    }[misplaced.rule]
    return Witness(
        rule=misplaced.rule,
        summary=f"{name_of(operation.xid)} {why} ({cut})",
        events=(),
        start_ns=operation.invoked_ns,
        end_ns=operation.completed_ns if operation.completed_ns >= 0 else None,
    )
