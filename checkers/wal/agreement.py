"""What the logs of all nodes must agree on, rule by rule; every rule yields a witness for each breach.

| rule | says |
|---|---|
| confirmed-and-rolled-back | a synchronous transaction that one log confirms is not rolled back by another |
| confirmed-and-void | nor is it written without its content anywhere |
| same-lsn-other-content | the same (origin, lsn) is the same bytes everywhere, or a NOP |
| confirmed-order | of the confirmed synchronous transactions every log holds a run of the same sequence |
| confirm-not-increasing | the CONFIRMs of one writer in one term grow: a second one for the same lsn is one too many |
| two-owners-of-a-term | with votes, one replica alone writes PROMOTE in a term |
| term-not-increasing | the terms of a replica's PROMOTEs grow, and a node's votes never go back |
| two-votes-in-a-term | a node votes for one candidate in a term |
| promoted-without-votes | with votes, whoever writes PROMOTE has the recorded votes of a quorum |
| confirmed-without-quorum | what is confirmed stands in the logs of a quorum |

The last two need every log whole: what a lost log held, nobody knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from checkers.verdict import Witness
from checkers.wal.record import Id, Record
from checkers.wal.replay import Fate, Replayed


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What the logs are judged by. `quorum` None: not known, rules that count nodes say nothing."""

    nodes: Sequence[Replayed]
    quorum: int | None
    has_votes: bool
    is_complete: bool
    """The log of every member is here, and whole."""


Rule = Callable[[Cluster], Iterator[Witness]]


def text(row: Record) -> str:
    """A record for a person: `CONFIRM of replica 1 up to lsn 7 (n2, 0…0.xlog, row 12)`."""
    what = {
        "confirm": f"CONFIRM of replica {row.owner}'s entries up to lsn {row.until}",
        "rollback": f"ROLLBACK of replica {row.owner}'s entries from lsn {row.until} on",
        "promote": f"PROMOTE of replica {row.origin} over {row.owner} at lsn {row.until} in term {row.term}",
        "demote": f"DEMOTE of replica {row.origin} in term {row.term}",
        "vote": f"vote for replica {row.vote} in term {row.term}",
    }.get(row.kind, f"{row.kind} {row.tuple!r:.80}")
    return f"{what} [{row.origin}:{row.lsn}, {row.place}]"


def conflicting(cluster: Cluster, bad: Fate) -> dict[Id, tuple[Replayed, Replayed]]:
    """Synchronous transactions that one log confirms and another gives the fate `bad`: (confirming, other)."""
    confirmed: dict[Id, Replayed] = {}
    for node in cluster.nodes:
        for name in node.order:
            confirmed.setdefault(name, node)
    return {
        name: (confirmed[name], node)
        for node in cluster.nodes
        for name, fate in node.fates.items()
        if fate == bad and name in confirmed
    }


def confirmed_and_rolled_back(cluster: Cluster) -> Iterator[Witness]:
    for name, (here, there) in conflicting(cluster, "rolled back").items():
        yield _witness(
            "confirmed-and-rolled-back",
            f"{_name(name)} is confirmed in the log of {here.log.node} and rolled back in that of {there.log.node}",
            there.log.node,
            _story(name, here),
            _story(name, there),
        )


def confirmed_and_void(cluster: Cluster) -> Iterator[Witness]:
    for name, (here, there) in conflicting(cluster, "nop").items():
        yield _witness(
            "confirmed-and-void",
            f"{_name(name)} is confirmed in the log of {here.log.node}, and {there.log.node} wrote it without content",
            there.log.node,
            _story(name, here),
            _story(name, there),
        )


def same_lsn_other_content(cluster: Cluster) -> Iterator[Witness]:
    seen: dict[tuple[int, int], tuple[Replayed, Record]] = {}
    for node in cluster.nodes:
        for row in node.log.records:
            if row.kind in ("nop", "vote"):
                continue
            first_node, first = seen.setdefault((row.origin, row.lsn), (node, row))
            if (first.kind, first.body) != (row.kind, row.body):
                yield _witness(
                    "same-lsn-other-content",
                    f"lsn {row.lsn} of replica {row.origin} is not the same on {first_node.log.node} and "
                    f"{node.log.node}",
                    node.log.node,
                    f"{first_node.log.node}: {text(first)}",
                    f"{node.log.node}: {text(row)}",
                )


def confirmed_order(cluster: Cluster) -> Iterator[Witness]:
    longest = max(cluster.nodes, key=lambda node: len(node.order), default=None)
    for node in cluster.nodes:
        if longest is None or node is longest or not node.order:
            continue
        shift = _shift(longest, node)
        if shift is None:
            continue  # nothing that both hold: one begins after the end of the other
        for step in range(max(0, -shift), min(len(node.order), len(longest.order) - shift)):
            if node.order[step] != longest.order[step + shift]:
                yield _other_order(longest, node, step, longest.order[step + shift])
                break


def _shift(longest: Replayed, node: Replayed) -> int | None:
    """How much later in `longest` the transactions of `node` stand; None if that cannot be known."""
    if not any(longest.log.begins.values()) and not any(node.log.begins.values()):
        return 0
    if node.order[0] in longest.order:
        return longest.order.index(node.order[0])
    if longest.order[0] in node.order:
        return -node.order.index(longest.order[0])
    return None


def _other_order(longest: Replayed, node: Replayed, step: int, expected: Id) -> Witness:
    name = node.order[step]
    return _witness(
        "confirmed-order",
        f"{node.log.node} confirmed {_name(name)} where in the log of {longest.log.node} {_name(expected)} stands",
        node.log.node,
        _story(name, node),
        _story(expected, longest),
    )


def confirm_not_increasing(cluster: Cluster) -> Iterator[Witness]:
    told: set[tuple[int, int]] = set()
    for node in cluster.nodes:
        term_of: dict[int, int] = {}
        last: dict[tuple[int, int, int], Record] = {}
        for row in node.log.records:
            if row.kind == "promote":
                term_of[row.origin] = row.term
            if row.kind != "confirm":
                continue
            key = (row.origin, row.owner, term_of.get(row.origin, 0))
            before = last.get(key)
            last[key] = row
            if before is not None and row.until <= before.until and (row.origin, row.lsn) not in told:
                told.add((row.origin, row.lsn))
                yield _witness(
                    "confirm-not-increasing",
                    f"replica {row.origin} confirmed lsn {row.until} after it had confirmed {before.until}",
                    node.log.node,
                    text(before),
                    text(row),
                )


def two_owners_of_a_term(cluster: Cluster) -> Iterator[Witness]:
    if not cluster.has_votes:
        return
    owners: dict[int, tuple[Replayed, Record]] = {}
    told: set[int] = set()
    for node, row in _rows(cluster, "promote"):
        first_node, first = owners.setdefault(row.term, (node, row))
        if first.origin != row.origin and row.term not in told:
            told.add(row.term)
            yield _witness(
                "two-owners-of-a-term",
                f"replicas {first.origin} and {row.origin} both wrote PROMOTE in term {row.term}",
                node.log.node,
                f"{first_node.log.node}: {text(first)}",
                f"{node.log.node}: {text(row)}",
            )


def term_not_increasing(cluster: Cluster) -> Iterator[Witness]:
    for node in cluster.nodes:
        last: dict[tuple[str, int], Record] = {}
        for row in node.log.records:
            if row.kind not in ("promote", "demote", "vote"):
                continue
            key = ("vote", 0) if row.kind == "vote" else ("promote", row.origin)
            before = last.get(key)
            last[key] = row
            too_low = before is not None and (
                row.term < before.term or (row.kind != "vote" and row.term == before.term)
            )
            if before is not None and too_low:
                yield _witness(
                    "term-not-increasing",
                    f"in the log of {node.log.node} term {row.term} comes after term {before.term}",
                    node.log.node,
                    text(before),
                    text(row),
                )


def two_votes_in_a_term(cluster: Cluster) -> Iterator[Witness]:
    for node in cluster.nodes:
        votes: dict[int, Record] = {}
        for row in node.log.records:
            if row.kind != "vote" or not row.vote:
                continue
            before = votes.setdefault(row.term, row)
            if before.vote != row.vote:
                yield _witness(
                    "two-votes-in-a-term",
                    f"{node.log.node} voted for replicas {before.vote} and {row.vote} in term {row.term}",
                    node.log.node,
                    text(before),
                    text(row),
                )


def promoted_without_votes(cluster: Cluster) -> Iterator[Witness]:
    if not (cluster.has_votes and cluster.is_complete and cluster.quorum):
        return
    voters: dict[tuple[int, int], set[str]] = {}
    for node, row in _rows(cluster, "vote"):
        voters.setdefault((row.term, row.vote), set()).add(node.log.node)
    told: set[tuple[int, int]] = set()
    for node, row in _rows(cluster, "promote"):
        key = (row.term, row.origin)
        found = voters.get(key, set())
        if len(found) < cluster.quorum and key not in told:
            told.add(key)
            yield _witness(
                "promoted-without-votes",
                f"replica {row.origin} wrote PROMOTE in term {row.term} with the votes of {len(found)} nodes, "
                f"{cluster.quorum} are needed",
                node.log.node,
                text(row),
                f"votes are recorded by: {', '.join(sorted(found)) or 'nobody'}",
            )


def confirmed_without_quorum(cluster: Cluster) -> Iterator[Witness]:
    if not (cluster.is_complete and cluster.quorum):
        return
    holders: dict[Id, int] = {}
    for node in cluster.nodes:
        for name, fate in node.fates.items():
            holders[name] = holders.get(name, 0) + (fate != "nop")
    told: set[Id] = set()
    for node in cluster.nodes:
        for name in node.order:
            if holders[name] < cluster.quorum and name not in told:
                told.add(name)
                yield _witness(
                    "confirmed-without-quorum",
                    f"{_name(name)} is confirmed and stands in {holders[name]} logs, {cluster.quorum} are needed",
                    node.log.node,
                    _story(name, node),
                )


RULES: Mapping[str, Rule] = {
    "confirmed-and-rolled-back": confirmed_and_rolled_back,
    "confirmed-and-void": confirmed_and_void,
    "same-lsn-other-content": same_lsn_other_content,
    "confirmed-order": confirmed_order,
    "confirm-not-increasing": confirm_not_increasing,
    "two-owners-of-a-term": two_owners_of_a_term,
    "term-not-increasing": term_not_increasing,
    "two-votes-in-a-term": two_votes_in_a_term,
    "promoted-without-votes": promoted_without_votes,
    "confirmed-without-quorum": confirmed_without_quorum,
}


def _rows(cluster: Cluster, kind: str) -> Iterator[tuple[Replayed, Record]]:
    for node in cluster.nodes:
        for row in node.log.records:
            if row.kind == kind:
                yield node, row


def _name(name: Id) -> str:
    return f"transaction {name[0]}:{name[1]}"


def _story(name: Id, node: Replayed) -> str:
    """What this log says of a transaction: its rows, and what decided about it."""
    rows = "; ".join(text(row) for row in node.transactions[name])
    decision = node.decided_by.get(name)
    by = f", by {text(decision)}" if decision is not None else ""
    return f"{node.log.node}: {rows} is {node.fates[name]}{by}"


def _witness(rule: str, summary: str, node: str, *explanation: str) -> Witness:
    return Witness(rule=rule, summary=summary, events=(), node=node, explanation=explanation)
