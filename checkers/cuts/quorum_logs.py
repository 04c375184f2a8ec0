"""A cut of a replica set with a quorum, given by the state of each node's log: vclocks, decisions, terms, statuses.

    check(SetCut(nodes=[NodeCut(node="a", replica=1, vclock={1: 7}, …), …], members=3, quorum=2))

No colours are needed: vclocks count the rows of each replica. Yet they do not suffice. Acknowledgements and votes are
messages too, and no row shows them: {owner behind CONFIRM(n), replicas before row n} has fine vclocks, and a restore of
it has lost confirmed data. So the rules ask for the rows, terms and votes that a decision needs when it is written.

| rule | a cut that can be restored |
|---|---|
| row-before-its-origin | has no row of a replica that the replica itself has not: vclock_j[i] ≤ vclock_i[i] |
| decision-without-its-row | has, on each node with a CONFIRM, PROMOTE or DEMOTE, the rows that it confirms |
| confirmed-without-quorum | has, if one of these covers row n, row n on at least a quorum of nodes |
| promoted-without-terms | has, with elections, if a PROMOTE has term t, a term of at least t on a quorum of nodes |
| promoted-without-votes | has, with elections, votes for its writer in that term on a quorum of nodes |
| confirmed-and-rolled-back | has no transaction confirmed on one node and rolled back on another |
| confirmed-not-a-chain | has confirmed sets of which, of any two, one contains the other, in one order |
| marker-differs, status-differs | of a marker: has every node at the marker's vclock, and with equal statuses |

Replicas lag: a transaction may be pending on one node and decided on another. Equal statuses are promised only by a cut
whose marker carries a full vclock. Statuses are compared, not bytes. Where the log of a member is missing, or begins
late, rules that count nodes say nothing unless the nodes that are there suffice.

The caller gives statuses as a replay of each log finds them (`checkers.logs.wal.replay`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

from checkers.history.values import many, often
from checkers.verdict import WITNESSES_MAX, Verdict, Witness

NAME = "cuts-quorum"
MODEL = "a cut of the logs that keeps what a quorum decided"
Id = tuple[int, int]
"""Of a transaction: its replica, and its lsn there."""
Status = Literal["confirmed", "rolled back", "pending"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A CONFIRM, ROLLBACK, PROMOTE or DEMOTE: row (origin, lsn), about entries of `owner` up to lsn `until`.

    A ROLLBACK is about those from `until` on. `term` 0: the row has none.
    """

    kind: Literal["confirm", "rollback", "promote", "demote"]
    origin: int
    lsn: int
    owner: int
    until: int
    term: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCut:
    """One node at the cut.

    replica    its number; 0: not known
    vclock     by replica the last lsn in its log (component 0, of rows that stay on a node, does not count)
    statuses   of synchronous transactions
    order      the confirmed ones as they took effect
    term       the term that it has on disk; `votes`: by term the replica that it voted for, on disk
    terms      by replica the term of its last PROMOTE; `confirmed`: by replica up to where it is confirmed
    begins     the vclock of what came before its log, which shows no statuses or votes of that time
    """

    node: str
    replica: int
    vclock: Mapping[int, int]
    statuses: Mapping[Id, Status] = field(default_factory=dict)
    order: Sequence[Id] = ()
    decisions: Sequence[Decision] = ()
    term: int = 0
    votes: Mapping[int, int] = field(default_factory=dict)
    terms: Mapping[int, int] = field(default_factory=dict)
    confirmed: Mapping[int, int] = field(default_factory=dict)
    begins: Mapping[int, int] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Its log reaches back to its beginning."""
        return not any(self.begins.values())

    def has(self, replica: int, lsn: int) -> bool:
        """Whether its log has come to this row."""
        return self.vclock.get(replica, 0) >= lsn


@dataclass(frozen=True, slots=True, kw_only=True)
class SetCut:
    """All nodes of a replica set at a cut. `members`: how many it has, those without a log included.

    `has_votes`: PROMOTEs of terms behind `voted_since` were elected. `marker`: the full vclock of a cut's marker.
    """

    nodes: Sequence[NodeCut]
    members: int
    quorum: int
    has_votes: bool = False
    voted_since: int = 0
    marker: Mapping[int, int] | None = None


def check(cut: SetCut) -> Verdict:
    """Whether the cut can be restored without losing or contradicting a decision. Raises ValueError for no quorum."""
    names = [node.node for node in cut.nodes]
    if not 0 < cut.quorum <= cut.members or len(names) > cut.members or len(set(names)) < len(names):
        raise ValueError(f"expected different nodes and a quorum of {cut.members} members, got {cut.quorum}")
    open_ones: list[str] = []
    witnesses = [
        *_origins(cut),
        *_decisions(cut, open_ones),
        *_contradictions(cut),
        *_chains(cut),
        *(_marker(cut) if cut.marker is not None else ()),
    ]
    decided = sum(len(node.decisions) for node in cut.nodes)
    details = {
        "nodes": len(cut.nodes),
        "members": cut.members,
        "quorum": cut.quorum,
        "decisions": decided,
        "open": open_ones,
    }
    missing = cut.members - len(cut.nodes)
    if not cut.nodes:
        details["vacuous"] = True
    if witnesses:
        summary = f"the rules are broken {often(len(witnesses))}; {witnesses[0].summary}"
        result: Literal["valid", "invalid", "unknown"] = "invalid"
    elif missing or open_ones:
        result = "unknown"
        summary = (
            open_ones[0]
            if open_ones
            else f"the logs of {missing} of {many(cut.members, 'member')} are missing"
        )
    else:
        result = "valid"
        summary = f"{many(len(cut.nodes), 'node')}, {many(decided, 'decision')}, a quorum of {cut.quorum} behind each"
    return Verdict(
        checker=NAME,
        result=result,
        summary=summary,
        model=MODEL,
        witnesses=tuple(witnesses[:WITNESSES_MAX]),
        details=details,
    )


def _origins(cut: SetCut) -> Iterator[Witness]:
    for origin in (node for node in cut.nodes if node.replica):
        done = origin.vclock.get(origin.replica, 0)
        for other in cut.nodes:
            reached = other.vclock.get(origin.replica, 0)
            if reached > done:
                yield _witness(
                    "row-before-its-origin",
                    f"{other.node} has row {reached} of {origin.node}, which has come to {done} itself",
                    other,
                )


def _decisions(cut: SetCut, open_ones: list[str]) -> Iterator[Witness]:
    judged: set[Decision] = set()  # whole: logs that differ may have two under one lsn
    for node in cut.nodes:
        for entry in node.decisions:
            if entry.kind in ("confirm", "promote", "demote") and not node.has(entry.owner, entry.until):
                yield _witness(
                    "decision-without-its-row",
                    f"{node.node} has {_phrase(entry)}, and has come to row {node.vclock.get(entry.owner, 0)} of it",
                    node,
                )
            if entry in judged or entry.kind == "rollback":
                continue
            judged.add(entry)
            yield from _of_quorum(cut, node, entry, open_ones)


def _of_quorum(cut: SetCut, node: NodeCut, decision: Decision, open_ones: list[str]) -> Iterator[Witness]:
    needs: list[tuple[str, str, list[NodeCut], list[NodeCut]]] = [
        (
            "confirmed-without-quorum",
            f"row {decision.until} of replica {decision.owner}",
            [other for other in cut.nodes if other.has(decision.owner, decision.until)],
            [],
        )
    ]
    # Without elections a node takes a new term by itself, and the other nodes may learn it from the PROMOTE.
    if decision.kind == "promote" and cut.has_votes and decision.term > cut.voted_since:
        has_term = [other for other in cut.nodes if other.term >= decision.term]
        late = [other for other in cut.nodes if not other.is_whole and other.term < decision.term]
        needs.append(("promoted-without-terms", f"a term of {decision.term} or more", has_term, late))
        voters = [other for other in cut.nodes if other.votes.get(decision.term) == decision.origin]
        silent = [other for other in cut.nodes if not other.is_whole and decision.term not in other.votes]
        needs.append(
            (
                "promoted-without-votes",
                f"a vote for replica {decision.origin} in term {decision.term}",
                voters,
                silent,
            )
        )
    for rule, need, has, unknown in needs:
        holders = ", ".join(other.node for other in has) or "no node"
        sentence = f"{_phrase(decision)} stands in the log of {node.node}, and {holders} has {need}"
        if len(has) >= cut.quorum:
            continue
        # Logs that are not here, or begin late, may have it: no breach while they could make a quorum.
        if len(has) + len(unknown) + cut.members - len(cut.nodes) >= cut.quorum:
            open_ones.append(f"{sentence}; whether a quorum has it, the logs that are here do not say")
        else:
            yield _witness(rule, f"{sentence}: a quorum is {cut.quorum}", node)


def _contradictions(cut: SetCut) -> Iterator[Witness]:
    for one, other in combinations(cut.nodes, 2):
        if one.statuses == other.statuses:
            continue  # most pairs are equal, and a comparison costs least
        for id_ in sorted(one.statuses.keys() & other.statuses.keys()):
            by_status = {one.statuses[id_]: one, other.statuses[id_]: other}
            if by_status.keys() >= {"confirmed", "rolled back"}:
                confirms, rolls_back = by_status["confirmed"], by_status["rolled back"]
                yield _witness(
                    "confirmed-and-rolled-back",
                    f"{_name(id_)} is confirmed on {confirms.node} and rolled back on {rolls_back.node}",
                    rolls_back,
                )


def _chains(cut: SetCut) -> Iterator[Witness]:
    for one, other in combinations(cut.nodes, 2):
        left, right = _shown(one, other), _shown(other, one)
        if left == right:
            continue
        in_left, in_right = frozenset(left), frozenset(right)
        only_left = [id_ for id_ in left if id_ not in in_right]
        only_right = [id_ for id_ in right if id_ not in in_left]
        if only_left and only_right:
            yield _witness(
                "confirmed-not-a-chain",
                f"{_name(only_left[0])} is confirmed on {one.node} and not on {other.node}, and "
                f"{_name(only_right[0])} the other way round",
                other,
            )
        elif [transaction for transaction in left if transaction in in_right] != [
            transaction for transaction in right if transaction in in_left
        ]:
            yield _witness(
                "confirmed-not-a-chain",
                f"{one.node} and {other.node} confirmed the same transactions in two orders",
                other,
            )


def _shown(one: NodeCut, other: NodeCut) -> list[Id]:
    """The confirmed transactions of one log, of those that neither log has left behind."""
    if one.is_whole and other.is_whole:
        return list(one.order)
    return [
        (replica, lsn)
        for replica, lsn in one.order
        if lsn > max(one.begins.get(replica, 0), other.begins.get(replica, 0))
    ]


def _marker(cut: SetCut) -> Iterator[Witness]:
    assert cut.marker is not None
    for node in cut.nodes:
        if counted(node.vclock) != counted(cut.marker):
            summary = f"{node.node} is at {counted(node.vclock)}, and the marker at {counted(cut.marker)}"
            yield _witness("marker-differs", summary, node)
    for one, other in combinations(cut.nodes, 2):
        if one.statuses == other.statuses:
            continue
        for id_ in sorted(one.statuses.keys() | other.statuses.keys()):
            replica, lsn = id_
            if lsn <= max(one.begins.get(replica, 0), other.begins.get(replica, 0)):
                continue
            left, right = (side.statuses.get(id_, "unknown") for side in (one, other))
            if left != right:
                summary = f"{_name(id_)} is {left} on {one.node} and {right} on {other.node} at one marker"
                yield _witness("status-differs", summary, other)


def counted(vclock: Mapping[int, int]) -> dict[int, int]:
    """The part of a vclock that all nodes share: without rows that stay on a node."""
    return {replica: lsn for replica, lsn in sorted(vclock.items()) if replica and lsn}


def _name(id_: Id) -> str:
    return f"transaction {id_[1]} of replica {id_[0]}"


def _phrase(decision: Decision) -> str:
    term = f" in term {decision.term}" if decision.term else ""
    return f"{decision.kind.upper()} of replica {decision.owner} up to {decision.until}{term}"


def _witness(rule: str, summary: str, node: NodeCut) -> Witness:
    return Witness(rule=rule, summary=summary, events=(), node=node.node)
