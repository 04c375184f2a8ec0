"""Logs of random servers: transactions, cuts and base snapshots in any order, or with sets that fit."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from checkers.cuts.logs import NodeLog, Operation, Record

NODES = ("a", "b", "c")
CUTS = ("k1", "k2", "k3")
XIDS = ("t0", "t1", "t2", "t3", "t4")
Step = tuple[int, int, int, int]
"""Node, what it writes, and two choices."""


def steps() -> st.SearchStrategy[list[Step]]:
    """The records, in the order in which they are written anywhere."""
    few = st.integers(0, 31)
    return st.lists(st.tuples(st.integers(0, 2), st.integers(0, 11), few, few), max_size=45)


def operations() -> st.SearchStrategy[list[Operation]]:
    """What clients saw of them; t5 is in no log."""
    one = st.builds(
        lambda xid, process, invoked, lasts, ok, wrote, saw: Operation(
            xid=f"t{xid}",
            process=process,
            invoked_ns=invoked,
            completed_ns=invoked + lasts if ok or lasts > 2 else -1,
            ok=ok,
            wrote=wrote,
            saw=[f"t{other}" for other in saw],
        ),
        st.integers(0, 5),
        st.integers(0, 2),
        st.integers(0, 30),
        st.integers(0, 6),
        st.booleans(),
        st.booleans(),
        st.lists(st.integers(0, 5), max_size=2),
    )
    return st.lists(one, max_size=6, unique_by=lambda each: each.xid)


def at_random(chance: random.Random, most: int) -> list[Step]:
    """Steps without Hypothesis, which takes longer to draw than the checkers to judge."""
    return [
        (chance.randrange(3), chance.randrange(12), chance.randrange(32), chance.randrange(32))
        for _ in range(chance.randrange(most // 2, most))
    ]


def operations_at_random(chance: random.Random) -> list[Operation]:
    """The same of operations."""
    found = []
    for xid in chance.sample(range(6), chance.randrange(6)):
        invoked, lasts, ok = chance.randrange(31), chance.randrange(7), chance.random() < 0.6
        found.append(
            Operation(
                xid=f"t{xid}",
                process=chance.randrange(3),
                invoked_ns=invoked,
                completed_ns=invoked + lasts if ok or lasts > 2 else -1,
                ok=ok,
                wrote=chance.random() < 0.5,
                saw=[f"t{chance.randrange(6)}" for _ in range(chance.choice((0, 0, 1, 2)))],
            )
        )
    return found


def written(drawn: Sequence[Step], *, nodes: int, honest: bool) -> list[NodeLog]:
    """The logs. `honest`: FINISH names what makes t0 belong to all cuts, t1 and t2 from k2 on, and the others to none.

    Every log has each cut whole, in the order of the series.
    """
    records: list[list[Record]] = [[] for _ in range(nodes)]
    late = [False] * nodes
    for which, action, one, other in drawn:
        node = which % nodes
        _write(records[node], action, one, other, nodes, honest)
        late[node] = late[node] or (action == 11 and other == 0)
    for log in records:
        for _ in range(2 * len(CUTS)):
            _mark(log, 0, 0)
    if honest:
        records = [_fitting(log) for log in records]
    return [
        NodeLog(node=NODES[node], records=tuple(log), is_whole=not late[node])
        for node, log in enumerate(records)
    ]


def _write(log: list[Record], action: int, one: int, other: int, nodes: int, honest: bool) -> None:
    xid = XIDS[one % len(XIDS)]
    takers = [name for place, name in enumerate(NODES[:nodes]) if other & (1 << place)]
    if action <= 4:
        if not honest or not any(each.kind == "committed" and each.xid == xid for each in log):
            version = XIDS.index(xid) if honest or other < 28 else other
            writes = ((f"x{one % 2}", version), ("y", version)) if one & 4 else (("y", version),)
            log.append(Record(kind="committed", xid=xid, participants=takers, writes=writes))
    elif action == 5:
        log.append(Record(kind="prepared", xid=xid, participants=takers))
    elif action == 6:
        log.append(Record(kind="rolled-back", xid=xid))
    elif action <= 9:
        _mark(log, one, other)
    elif action == 10:
        log.append(Record(kind="rebalanced"))
    else:
        bases = sum(each.kind == "base" for each in log)
        log.append(Record(kind="base", cut=f"base{bases}"))


def _mark(log: list[Record], included: int, excluded: int) -> None:
    """The next START or FINISH of the series, if there is one."""
    marks = [each for each in log if each.kind in ("start", "finish")]
    if len(marks) == 2 * len(CUTS):
        return
    cut = CUTS[len(marks) // 2]
    if len(marks) % 2 == 0:
        log.append(Record(kind="start", cut=cut))
        return
    sets = [[xid for place, xid in enumerate(XIDS) if mask & (1 << place)] for mask in (included, excluded)]
    log.append(Record(kind="finish", cut=cut, included=sets[0], excluded=sets[1]))


def _fitting(log: Sequence[Record]) -> list[Record]:
    belongs = {"t0": 0, "t1": 1, "t2": 1}
    commits = {each.xid: place for place, each in reversed(list(enumerate(log))) if each.kind == "committed"}
    fitting = []
    for each in log:
        if each.kind != "finish":
            fitting.append(each)
            continue
        start = next(place for place, one in enumerate(log) if one.kind == "start" and one.cut == each.cut)
        inside = {xid for xid in commits if belongs.get(xid, len(CUTS)) <= CUTS.index(each.cut)}
        included = [xid for xid in commits if commits[xid] > start and xid in inside]
        excluded = [xid for xid in commits if commits[xid] < start and xid not in inside]
        fitting.append(replace(each, included=included, excluded=excluded))
    return fitting
