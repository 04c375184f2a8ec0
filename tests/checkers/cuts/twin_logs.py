"""L2, L3, L4 and the bounds from their definitions: each BEFORE is a Python set, each cut is judged by itself."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from checkers.cuts.logs import Cut, NodeLog, Operation, Record


@dataclass(frozen=True)
class Said:
    """Of one cut."""

    torn: frozenset[str]
    gaps: int
    inversions: frozenset[tuple[str, str]]
    """The transactions that clients knew of, and those that rest on them: BEFORE lacks the first and has the second."""
    out_of_bounds: bool


def before(log: NodeLog, cut: str) -> set[str]:
    """What a restore of the cut brings back from a log that has it whole."""
    start = next(place for place, each in enumerate(log.records) if each.kind == "start" and each.cut == cut)
    finish = next(each for each in log.records if each.kind == "finish" and each.cut == cut)
    found = {xid for xid, place in commits(log).items() if place < start and xid not in finish.excluded}
    return found | {xid for xid, place in commits(log).items() if place > start and xid in finish.included}


def commits(log: NodeLog) -> dict[str, int]:
    """By transaction where the log committed it first."""
    found: dict[str, int] = {}
    for place, each in enumerate(log.records):
        if each.kind == "committed":
            found.setdefault(each.xid, place)
    return found


def judged(logs: Sequence[NodeLog], cuts: Sequence[Cut], operations: Sequence[Operation]) -> list[Said]:
    """Each cut by itself."""
    return [_of_cut(logs, cut, operations) for cut in cuts]


def _of_cut(logs: Sequence[NodeLog], cut: Cut, operations: Sequence[Operation]) -> Said:
    has = {log.node: before(log, cut.id) for log in logs}
    takes: dict[str, set[str]] = {xid: set() for log in logs for xid in commits(log)}
    for log in logs:
        for xid in commits(log):
            takes[xid].add(log.node)
        for each in log.records:
            if each.xid in takes:
                takes[each.xid] |= set(each.participants) & has.keys()
    everywhere = {node: has[node] | _copied(logs, node, cut.id, takes) for node in has}
    torn = {xid for xid, nodes in takes.items() if len({xid in everywhere[node] for node in nodes}) > 1}
    inside = {xid for xid, nodes in takes.items() if all(xid in everywhere[node] for node in nodes)}
    outside = takes.keys() - torn - inside
    return Said(
        torn=frozenset(torn),
        gaps=sum(_gaps(log, has[log.node], torn) for log in logs),
        inversions=frozenset(
            (one, other.xid)
            for one, other in known_before(operations)
            if one in outside and other.xid in inside
        ),
        out_of_bounds=any(
            (
                each.ok
                and each.completed_ns < cut.asked_ns
                and (each.xid in outside or (each.xid not in takes and each.wrote))
            )
            or (each.invoked_ns > cut.ended_ns and each.xid in inside)
            for each in operations
        ),
    )


def known_before(operations: Sequence[Operation]) -> list[tuple[str, Operation]]:
    """Whatever a client may have known when it invoked an operation, by steps of clients and words between them.

    A client knows its own answers, and the transactions that they show. At any time each client tells all other ones
    what it knows. So does a client whose operation has no answer of its own: it has heard of others, until it invoked
    it and since.
    """
    times = sorted(
        {each.invoked_ns for each in operations}
        | {each.completed_ns for each in operations if each.completed_ns >= 0}
    )
    clients = {each.process for each in operations}
    knows: dict[object, list[str]] = {client: [] for client in clients}
    found = []
    for now_ns in times:
        for each in operations:  # at one moment, what is invoked comes before what is answered
            if each.invoked_ns == now_ns:
                found += [(one, each) for one in knows[each.process]]
        for each in operations:
            if each.completed_ns == now_ns:
                knows[each.process] += [*each.saw, *([each.xid] if each.ok else [])]
        for _ in clients:  # as often as the longest way round from client to client
            for teller, hearer in itertools.permutations(clients, 2):
                knows[hearer] += [one for one in knows[teller] if one not in knows[hearer]]
    return found


def _copied(logs: Sequence[NodeLog], node: str, cut: str, takes: dict[str, set[str]]) -> set[str]:
    """What a node got as a copy, before a base snapshot that precedes the cut."""
    log = next(each for each in logs if each.node == node)
    lacks, found = not log.is_whole, set[str]()
    for each in log.records:
        if each.kind == "start" and each.cut == cut:
            break
        lacks = lacks or each.kind == "rebalanced"
        if each.kind == "base" and lacks:
            lacks = False
            for other in logs:
                at = [place for place, one in enumerate(other.records) if _is_base(one, each)]
                found |= {xid for xid, place in commits(other).items() if at and place < at[-1]}
    return {xid for xid in found - commits(log).keys() if node in takes[xid]}


def _is_base(one: Record, other: Record) -> bool:
    return one.kind == "base" and one.cut == other.cut


def _gaps(log: NodeLog, has: set[str], torn: set[str]) -> int:
    """Neighbours among the versions of a key of which BEFORE has the later one alone; neither is torn."""
    versions: dict[str, list[tuple[int, str]]] = {}
    for place, each in enumerate(log.records):
        if each.kind == "committed" and commits(log)[each.xid] == place:
            for key, version in each.writes:
                assert isinstance(version, int)
                versions.setdefault(key, []).append((version, each.xid))
    found = 0
    for writers in versions.values():
        ordered = sorted(writers)
        found += sum(
            one not in has and other in has and not torn & {one, other}
            for (_, one), (_, other) in itertools.pairwise(ordered)
        )
    return found
