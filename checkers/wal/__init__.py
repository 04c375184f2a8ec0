"""The nodes' own logs as evidence: what they must agree on, and what they know that no client learned.

    nodes = [replay(log, promotes="synchronous") for log in logs]
    verdict = check(logs, quorum=2, has_votes=True, promotes="synchronous", members=3)
    settled = settle(history, nodes, is_final=True)

`record` is the form that a log must be brought into, `replay` replays the queue of one log, `agreement` has the rules
over all of them, `settle` uses them for operations without an outcome. Nothing here reads a file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from checkers.verdict import WITNESSES_MAX, Verdict, Witness
from checkers.wal.agreement import RULES, Cluster
from checkers.wal.record import Id, Kind, NodeLog, Record
from checkers.wal.replay import Fate, Promotes, Replayed, replay
from checkers.wal.settle import Settled, settle

NAME = "audit"
MODEL = "logs that agree"


def check(
    logs: Sequence[NodeLog],
    *,
    promotes: Promotes = "synchronous",
    has_votes: bool = True,
    quorum: int | None = None,
    members: int | None = None,
) -> Verdict:
    """Whether the logs of a cluster agree on what was confirmed, by the rules of `agreement`.

    `members` is how many logs there should be; with fewer, or with a damaged one, the rules that count nodes say
    nothing, and the summary says so. Without any record the verdict is unknown.
    """
    return check_replayed(
        [replay(log, promotes) for log in logs], has_votes=has_votes, quorum=quorum, members=members
    )


def check_replayed(
    nodes: Sequence[Replayed], *, has_votes: bool, quorum: int | None, members: int | None
) -> Verdict:
    """The same over logs that were replayed already."""
    records = sum(len(node.log.records) for node in nodes)
    if records == 0:
        return Verdict(checker=NAME, model=MODEL, result="unknown", summary="there are no records to audit")
    is_complete = len(nodes) == members and all(node.log.is_whole for node in nodes)
    cluster = Cluster(nodes=nodes, quorum=quorum, has_votes=has_votes, is_complete=is_complete)
    witnesses = [witness for rule in RULES.values() for witness in rule(cluster)]
    notes = _notes(nodes, members)
    details = {
        "records": records,
        "nodes": {node.log.node: _counts(node) for node in nodes},
        "breaches": dict(Counter(witness.rule for witness in witnesses)),
        "findings": notes,
    }
    if witnesses:
        return Verdict(
            checker=NAME,
            model=MODEL,
            result="invalid",
            summary=f"{len(witnesses)} breaches of the rules in the logs of {len(nodes)} nodes",
            witnesses=tuple(_one_of_each_first(witnesses)[:WITNESSES_MAX]),
            details=details,
        )
    summary = f"the logs of {len(nodes)} nodes agree: {records:,} records, {_confirmed(nodes):,} transactions confirmed"
    return Verdict(checker=NAME, model=MODEL, result="valid", summary=summary, details=details)


def _one_of_each_first(witnesses: list[Witness]) -> list[Witness]:
    """A flood of one rule must not hide the only witness of another."""
    seen: Counter[str] = Counter()
    ranked = []
    for place, witness in enumerate(witnesses):
        ranked.append((seen[witness.rule], place, witness))
        seen[witness.rule] += 1
    return [witness for _, _, witness in sorted(ranked, key=lambda entry: entry[:2])]


def _notes(nodes: Sequence[Replayed], members: int | None) -> list[str]:
    notes = [f"{node.log.node}: {node.log.damage}" for node in nodes if node.log.damage]
    notes += [f"{node.log.node}: its log begins at a snapshot" for node in nodes if any(node.log.begins.values())]
    if members is not None and len(nodes) < members:
        notes.append(f"the logs of {members - len(nodes)} of {members} nodes are missing")
    if notes:
        notes.append("rules that count nodes were not applied, for logs are not whole")
    return notes


def _counts(node: Replayed) -> dict[str, int]:
    fates = Counter(node.fates.values())
    return {"records": len(node.log.records), **{fate.replace(" ", "_"): count for fate, count in sorted(fates.items())}}


def _confirmed(nodes: Sequence[Replayed]) -> int:
    return len({id for node in nodes for id in node.order})


__all__ = [
    "MODEL",
    "NAME",
    "RULES",
    "Fate",
    "Id",
    "Kind",
    "NodeLog",
    "Promotes",
    "Record",
    "Replayed",
    "Settled",
    "check",
    "check_replayed",
    "replay",
    "settle",
]
