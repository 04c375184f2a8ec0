"""Whether cuts are consistent, decided the slow and obvious way: over whole logs and whole traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nodes.twophase.wal import read_log

Record = Sequence[Any]


@dataclass
class Findings:
    """`torn`: (cut, xid); `forms`: sentences; `messages`: (cut, source, target, seq), received inside, sent outside."""

    torn: list[tuple[str, str]] = field(default_factory=list)
    forms: list[str] = field(default_factory=list)
    messages: list[tuple[str, str, str, int]] = field(default_factory=list)
    judged: int = 0

    def __bool__(self) -> bool:
        return bool(self.torn or self.forms or self.messages)


def logs_of(files: Mapping[str, Mapping[str, bytes]]) -> dict[str, list[Any]]:
    return {server: read_log(its_files)[0] for server, its_files in files.items()}


def before(log: Sequence[Record], cut: str) -> set[str]:
    """The transactions on the side BEFORE at one server, by START, FINISH and the records' places."""
    start = next(place for place, record in enumerate(log) if list(record[:2]) == ["start", cut])
    finish = next(place for place, record in enumerate(log) if list(record[:2]) == ["finish", cut])
    included, excluded = set(log[finish][2]), set(log[finish][3])
    commits = [(place, record[1]) for place, record in enumerate(log) if record[0] == "committed"]
    return {
        xid
        for place, xid in commits
        if (place < start and xid not in excluded) or (place > start and xid in included)
    }


def judge(
    logs: Mapping[str, Sequence[Record]],
    cuts: Sequence[str],
    traces: Mapping[str, Sequence[Sequence[Any]]] | None,
) -> Findings:
    """`cuts`: those that the cluster says are good, in their order. `traces`: the rows of each node's only life."""
    found = Findings()
    participants = {
        record[1]: {node for _, nodes in record[4] for node in nodes}
        for log in logs.values()
        for record in log
        if record[0] == "committed"
    }
    former: dict[str, set[str]] = {server: set() for server in logs}
    for cut in cuts:
        found.judged += 1
        if not all(_has_form(found, server, log, cut) for server, log in logs.items()):
            continue
        sides = {server: before(log, cut) for server, log in logs.items()}
        for xid in sorted(set().union(*sides.values())):
            if not all(xid in sides[node] for node in participants[xid]):
                found.torn.append((cut, xid))
        for server, its_side in sides.items():
            if not former[server] <= its_side:
                found.forms.append(f"{server}: the cut {cut} lacks {sorted(former[server] - its_side)}")
        former = sides
        if traces is not None:
            found.messages += crossing(traces, cut)
    return found


def _has_form(found: Findings, server: str, log: Sequence[Record], cut: str) -> bool:
    starts = [place for place, record in enumerate(log) if list(record[:2]) == ["start", cut]]
    finishes = [place for place, record in enumerate(log) if list(record[:2]) == ["finish", cut]]
    if len(starts) != 1 or len(finishes) != 1:
        found.forms.append(f"{server}: the cut {cut} has {len(starts)} START, {len(finishes)} FINISH")
        return False
    commits = {record[1]: place for place, record in enumerate(log) if record[0] == "committed"}
    _, _, included, excluded = log[finishes[0]]
    for xid in included:
        if not starts[0] < commits.get(xid, -1) < finishes[0]:
            found.forms.append(
                f"{server}: the cut {cut} includes {xid}, which is not between START and FINISH"
            )
    for xid in excluded:
        if not commits.get(xid, starts[0]) < starts[0]:
            found.forms.append(f"{server}: the cut {cut} excludes {xid}, which is not before START")
    return True


def crossing(traces: Mapping[str, Sequence[Sequence[Any]]], cut: str) -> list[tuple[str, str, str, int]]:
    """Messages that were received before their receiver changed its colour, and sent after their sender did."""
    colour = {
        node: next(
            (place for place, row in enumerate(rows) if row[:3] == ["mark", "cut", {"cut": cut}]), len(rows)
        )
        for node, rows in traces.items()
    }
    sent = {
        (node, row[1]): place
        for node, rows in traces.items()
        for place, row in enumerate(rows)
        if row[0] == "send"
    }
    return [
        (cut, row[1], node, row[3])
        for node, rows in traces.items()
        for row in rows[: colour[node]]
        if row[0] == "receive" and sent[row[1], row[3]] > colour[row[1]]
    ]
