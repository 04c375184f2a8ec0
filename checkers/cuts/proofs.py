"""The proofs that judgements carry: JSON that names nodes, lives and positions, and nothing of the columns.

frontier   held: how many rows of each life are inside the cut
message    violated: rows of sends and receives in turn, from outside of the cut to its inside
sides      held: where START and FINISH of the cut stand on every server
torn       violated: a transaction, a participant that has it in BEFORE, and one that has not
gap        violated: a server, a key, the writers of two versions; BEFORE has the later one and lacks the earlier
inversion  a finding: two transactions by the times of their clients
"""

from __future__ import annotations

from typing import Any

from checkers.cuts.closure import Gap, Inversion
from checkers.cuts.logs import FINISH, START, Logs
from checkers.cuts.messages import Messages
from checkers.cuts.trace import Trace, name_of
from checkers.cuts.transactions import Side


def frontier(trace: Trace, judged: Messages, cut: int) -> dict[str, Any]:
    """Proof that no message violates a cut."""
    sizes = judged.frontiers[cut].tolist()
    inside = [[life.node, life.life, size] for life, size in zip(trace.lives, sizes, strict=True)]
    return {"kind": "frontier", "inside": inside}


def message(trace: Trace, judged: Messages, cut: int) -> dict[str, Any]:
    """Proof that a message violates a cut."""
    crossing = judged.crossings[cut]
    assert crossing is not None
    return {"kind": "message", "path": [trace.place(row) for row in crossing.path]}


def sides_held(logs: Logs, cut: str) -> dict[str, Any]:
    """Proof for a level that holds of a cut: where every log has its START and FINISH."""
    starts, finishes = logs.of_cut(START, cut), logs.of_cut(FINISH, cut)
    marks = {
        node: [logs.place(starts[node][0])["record"], logs.place(finishes[node][0])["record"]]
        for node in logs.nodes
        if node in starts and node in finishes
    }
    return {"kind": "sides", "marks": marks}


def torn(logs: Logs, xid: int, sides: list[Side]) -> dict[str, Any]:
    """Proof that a transaction has participants on both sides."""
    has = next(side for side in sides if side.is_before)
    lacks = next(side for side in sides if not side.is_before)
    return {"kind": "torn", "xid": logs.xids[xid], "has": has.node, "lacks": lacks.node}


def gap(logs: Logs, version_gap: Gap) -> dict[str, Any]:
    """Proof that a BEFORE is no prefix of a key's versions."""
    return {
        "kind": "gap",
        "node": logs.nodes[version_gap.node],
        "key": logs.keys[version_gap.key],
        "earlier": logs.xids[version_gap.earlier],
        "later": logs.xids[version_gap.later],
    }


def inversion(pair: Inversion) -> dict[str, Any]:
    """Proof of a finding: two transactions in the order of their clients."""
    return {
        "kind": "inversion",
        "earlier": name_of(pair.earlier.xid),
        "later": name_of(pair.later.xid),
    }
