"""The rules on which the logs of all nodes must agree; every rule yields a witness for each breach.

| rule | says |
|---|---|
| confirmed-and-rolled-back | a synchronous transaction that one log confirms is not rolled back by another |
| confirmed-and-void | nor does any log hold it as a NOP |
| kept-and-void | a row that took effect by one log stands in no other log as a NOP |
| same-lsn-other-content | the same (origin, lsn) is the same bytes everywhere, or a NOP |
| claimed-but-missing | a log that has passed an lsn holds its row, if another log does |
| snapshot-differs | a snapshot holds what the log of its node, or of another, had come to at the same vclock |
| snapshot-forgets | a snapshot has the last vote before it, and says up to where what it holds is confirmed |
| confirmed-order | of the confirmed synchronous transactions every log holds a run of the same sequence |
| decision-without-entry | a CONFIRM or ROLLBACK names an entry that waits in the queue of its own log |
| confirm-not-increasing | the CONFIRMs of one writer in one term grow: a second one for the same lsn is one too many |
| two-owners-of-a-term | with votes, one replica alone writes PROMOTE in a term |
| term-not-increasing | the terms of a replica's PROMOTEs grow, and a node's votes never go back |
| two-votes-in-a-term | a node votes for one candidate in a term |
| promoted-without-votes | with votes, a replica that writes PROMOTE has the recorded votes of a quorum |
| confirmed-without-quorum | a confirmed transaction stands in the logs of a quorum |

The last two need every log whole, because the content of a lost log is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

import numpy

from checkers.logs.wal.breaches import (
    Breach,
    Breaches,
    Part,
    about_few_rows,
    name_of,
    parted,
    rows_of,
    story,
    story_of,
    text,
    witness,
)
from checkers.logs.wal.columns import CONFIRM, NOP, PROMOTE, VOTE, WRITE
from checkers.logs.wal.nodes import Logs, Node, by_origin
from checkers.logs.wal.record import Record
from checkers.logs.wal.replay_kernels import ABSENT, COMMITTED, CONFIRMED, ROLLED_BACK
from checkers.logs.wal.replay_kernels import NOP as VOID
from checkers.logs.wal.snapshots import snapshot_differs, snapshot_forgets
from checkers.verdict import WITNESSES_MAX, Witness

Array = Any  # numpy's
Rule = Callable[[Logs], Breaches]


# ---- what became of a transaction


def confirmed_and_rolled_back(logs: Logs) -> Breaches:
    said = "is confirmed in the log of {here} and rolled back in that of {there}"
    breach = partial(_conflict, logs, "confirmed-and-rolled-back", said)
    return Breaches.of(_conflicting(logs, ROLLED_BACK), breach)


def confirmed_and_void(logs: Logs) -> Breaches:
    said = "is confirmed in the log of {here}, and {there} wrote it without content"

    def breach(name: int, here: int, there: int) -> Breach:
        how = _how_void(logs, name, here, there)
        return _conflict(logs, "confirmed-and-void", said, name, here, there, how)

    return Breaches.of(_conflicting(logs, VOID), breach)


def _conflicting(logs: Logs, bad: int) -> list[tuple[int, int, int]]:
    """Synchronous transactions that one log confirms, the first such log, and the last log with the fate `bad`."""
    there: dict[int, int] = {}
    for number, node in enumerate(logs.nodes):
        for name in _in_order(node, (node.fates == bad) & logs.is_confirmed):
            there[name] = number
    here = numpy.full(logs.rows.transactions, -1, dtype=numpy.int64)
    for number in reversed(range(len(logs.nodes))):
        here[logs.nodes[number].order] = number
    return [(name, int(here[name]), number) for name, number in there.items()]


def _in_order(node: Node, chosen: Array) -> list[int]:
    """The chosen transactions (an array of truths) as the log has them."""
    if not chosen.any():
        return []
    names = node.rows.transaction[node.at[node.is_data]]
    return list(dict.fromkeys(names[chosen[names]].tolist()))


def _conflict(logs: Logs, rule: str, said: str, name: int, here: int, there: int, how: str = "") -> Breach:
    one, other = logs.nodes[here], logs.nodes[there]

    def words(confirmed: list[Record], denied: list[Record]) -> Witness:
        return witness(
            rule,
            f"{name_of(logs.rows.id_of(name))} {said.format(here=one.log.node, there=other.log.node)}",
            other.log.node,
            story(one, name, confirmed),
            story(other, name, denied),
            rows=(*_rows_and_decision(confirmed), *_rows_and_decision(denied)),
            how=how,
        )

    return Breach((story_of(logs, here, name), story_of(logs, there, name)), words)


def _rows_and_decision(records: list[Record]) -> Iterable[Record]:
    """The rows of a transaction, followed by the decision about it."""
    rows, decisions = parted(records)
    return (*rows, *decisions)


def _how_void(logs: Logs, name: int, here: int, there: int) -> str:
    """Whether the log with the void transaction has a PROMOTE in front of it that the confirming log lacks."""
    has_more = _promotes(logs.nodes[there], name) - _promotes(logs.nodes[here], name)
    return f"void {'with' if has_more else 'without'} a PROMOTE in front"


def _promotes(node: Node, name: int) -> set[tuple[int, int]]:
    """The PROMOTEs in front of a transaction in a log."""
    last = int(numpy.flatnonzero(node.rows.transaction[node.at] == name)[-1])
    return {
        (record.origin, record.lsn)
        for place, record in node.control
        if record.kind == "promote" and place < last
    }


def kept_and_void(logs: Logs) -> Breaches:
    """The rows that `confirmed_and_void` leaves: of asynchronous transactions, and of those that are void in part."""
    rows = logs.rows
    void = numpy.full(rows.places, -1, dtype=numpy.int64)  # the last log that has it as a NOP
    for number, node in enumerate(logs.nodes):
        void[rows.place[node.at[node.kinds == NOP]]] = number
    if (void < 0).all():
        return Breaches()
    is_judged = logs.is_confirmed & logs.have(VOID)
    kept: list[tuple[int, int, int]] = []
    for number, node in enumerate(logs.nodes):
        places = numpy.flatnonzero((node.kinds == WRITE) & (void[rows.place[node.at]] >= 0))
        names = rows.transaction[node.at[places]]
        has_effect = numpy.isin(node.fates[names], (CONFIRMED, COMMITTED)) & ~is_judged[names]
        places, names = places[has_effect], names[has_effect]
        is_judged[names] = True
        _, firsts = numpy.unique(names, return_index=True)
        kept += [
            (number, place, int(void[rows.place[node.at[place]]]))
            for place in sorted(places[firsts].tolist())
        ]
    return Breaches.of(kept, partial(_kept, logs))


def _kept(logs: Logs, number: int, place: int, void_in: int) -> Breach:
    node, other = logs.nodes[number], logs.nodes[void_in].log.node
    name = int(logs.rows.transaction[node.at[place]])

    def words(row: list[Record], records: list[Record]) -> Witness:
        return witness(
            "kept-and-void",
            f"lsn {row[0].lsn} of replica {row[0].origin} took effect by the log of {node.log.node}, and "
            f"{other} wrote it without content",
            other,
            story(node, name, records),
            rows=row,
        )

    return Breach((Part(number, (place,)), story_of(logs, number, name)), words)


def confirmed_without_quorum(logs: Logs) -> Breaches:
    quorum = logs.rules.quorum
    if not (quorum and logs.is_complete):
        return Breaches()
    holders = numpy.zeros(logs.rows.transactions, dtype=numpy.int64)
    for node in logs.nodes:
        holders += (node.fates != ABSENT) & (node.fates != VOID)
    few = holders < quorum
    alone: dict[int, int] = {}
    for number, node in enumerate(logs.nodes):
        for name in node.order[few[node.order]].tolist():
            alone.setdefault(name, number)

    def breach(name: int, number: int) -> Breach:
        def words(records: list[Record]) -> Witness:
            return witness(
                "confirmed-without-quorum",
                f"{name_of(logs.rows.id_of(name))} is confirmed and stands in {holders[name]} logs, {quorum} are "
                "needed",
                logs.nodes[number].log.node,
                story(logs.nodes[number], name, records),
                rows=_rows_and_decision(records),
            )

        return Breach((story_of(logs, number, name),), words)

    return Breaches.of(list(alone.items()), breach)


def confirmed_order(logs: Logs) -> Breaches:
    nodes = logs.nodes
    # Rows that are missing from a damaged log shift those behind them.
    compared = [number for number, node in enumerate(nodes) if len(node.order) and node.log.damage is None]
    longest = max(compared, key=lambda number: len(nodes[number].order), default=0)
    others: list[tuple[int, int, int]] = []
    for other in compared:
        node, shift = nodes[other], _shift(nodes[longest], nodes[other])
        if shift is None:
            continue
        begin, end = max(0, -shift), min(len(node.order), len(nodes[longest].order) - shift)
        own, expected = node.order[begin:end], nodes[longest].order[begin + shift : end + shift]
        bad = numpy.flatnonzero(own != expected)
        if len(bad):
            others.append((other, int(own[bad[0]]), int(expected[bad[0]])))
    return Breaches.of(others, partial(_other_order, logs, longest))


def _shift(longest: Node, node: Node) -> int | None:
    """How much later in `longest` the transactions of `node` stand; None if unknown, because one log begins after the
    end of the other."""
    if not any(longest.log.begins.values()) and not any(node.log.begins.values()):
        return 0
    there = numpy.flatnonzero(longest.order == node.order[0])
    here = numpy.flatnonzero(node.order == longest.order[0])
    if len(there):
        return int(there[0])
    return -int(here[0]) if len(here) else None


def _other_order(logs: Logs, longest: int, other: int, name: int, expected: int) -> Breach:
    node, there = logs.nodes[other], logs.nodes[longest]

    def words(own: list[Record], its: list[Record]) -> Witness:
        return witness(
            "confirmed-order",
            f"{node.log.node} confirmed {name_of(logs.rows.id_of(name))} where in the log of {there.log.node} "
            f"{name_of(logs.rows.id_of(expected))} stands",
            node.log.node,
            story(node, name, own),
            story(there, expected, its),
            rows=(*_rows_and_decision(own), *_rows_and_decision(its)),
        )

    return Breach((story_of(logs, other, name), story_of(logs, longest, expected)), words)


# ---- which rows there are


def same_lsn_other_content(logs: Logs) -> Breaches:
    rows = logs.rows
    at = numpy.flatnonzero(logs.held & (rows.kind != NOP) & (rows.kind != VOTE))
    first = numpy.full(rows.places, -1, dtype=numpy.int64)
    first[rows.place[at]] = at
    if not _is_other(logs, first, at).any():
        return Breaches()
    places = [numpy.flatnonzero((node.kinds != NOP) & (node.kinds != VOTE)) for node in logs.nodes]
    for node, own in zip(reversed(logs.nodes), reversed(places), strict=True):
        first[rows.place[node.at[own[::-1]]]] = node.at[own[::-1]]
    others = [own[_is_other(logs, first, node.at[own])] for node, own in zip(logs.nodes, places, strict=True)]
    differing = ((number, place) for number, own in enumerate(others) for place in own.tolist())
    breaches = (_other_content(logs, first, *row) for row in islice(differing, WITNESSES_MAX))
    return Breaches(sum(map(len, others)), tuple(breaches))


def _is_other(logs: Logs, first: Array, at: Array) -> Array:
    """Which rows are not those that stand first at their places."""
    rows, same = logs.rows, first[logs.rows.place[at]]
    return (rows.kind[same] != rows.kind[at]) | (rows.body[same] != rows.body[at])


def _other_content(logs: Logs, first: Array, number: int, place: int) -> Breach:
    node = logs.nodes[number]
    before = _first_with(logs, int(first[logs.rows.place[node.at[place]]]))

    def words(one: list[Record], other: list[Record]) -> Witness:
        here = logs.nodes[before.log].log.node
        return witness(
            "same-lsn-other-content",
            f"lsn {other[0].lsn} of replica {other[0].origin} is not the same on {here} and {node.log.node}",
            node.log.node,
            f"{here}: {text(one[0])}",
            f"{node.log.node}: {text(other[0])}",
            rows=(*one, *other),
        )

    return Breach((before, Part(number, (place,))), words)


def _first_with(logs: Logs, row: int) -> Part:
    """The first log that has a row, and its place there."""
    return next(
        Part(number, (int(places[0]),))
        for number, node in enumerate(logs.nodes)
        if len(places := numpy.flatnonzero(node.at == row))
    )


def claimed_but_missing(logs: Logs) -> Breaches:
    """A NOP counts as the row, and a row that only one node has counts as a NOP elsewhere.

    A breach names the first row that a log lacks.
    """
    rows = logs.rows
    at = numpy.flatnonzero(logs.held & (rows.kind != NOP) & (rows.kind != VOTE))
    lsns, origins = rows.lsn[at], rows.origin[at]
    gaps: list[tuple[int, int, int]] = []
    for number, other in enumerate(logs.nodes):
        has = numpy.zeros(rows.places, dtype=bool)
        has[rows.place[other.at]] = True
        begins, end = by_origin(rows, other.log.begins), by_origin(rows, other.end)
        is_lacked = numpy.zeros(len(rows.kind), dtype=bool)
        is_lacked[at[(begins[origins] < lsns) & (lsns <= end[origins]) & ~has[rows.place[at]]]] = True
        if other.log.damage is None and is_lacked.any():
            holder, place = next(
                (each, int(places[0]))
                for each, node in enumerate(logs.nodes)
                if len(places := numpy.flatnonzero(is_lacked[node.at]))
            )
            gaps.append((holder, place, number))
    return Breaches.of(sorted(gaps), partial(_missing, logs))


def _missing(logs: Logs, holder: int, place: int, number: int) -> Breach:
    other, node = logs.nodes[number], logs.nodes[holder].log.node

    def words(row: list[Record]) -> Witness:
        (record,) = row
        return witness(
            "claimed-but-missing",
            f"the log of {other.log.node} has come to lsn {other.end[record.origin]} of replica {record.origin} "
            f"and lacks lsn {record.lsn}, which {node} holds",
            other.log.node,
            f"{node}: {text(record)}",
            rows=row,
        )

    return Breach((Part(holder, (place,)),), words)


# ---- decisions


def decision_without_entry(logs: Logs) -> Breaches:
    rows = logs.rows
    decisions: dict[int, tuple[int, int]] = {}
    for number, node in enumerate(logs.nodes):
        # Else it may stand in what is damaged.
        for place in node.contradictions if node.log.damage is None else ():
            decisions.setdefault(int(rows.place[node.at[place]]), (number, place))
    return Breaches.of(list(decisions.values()), partial(_without_entry, logs))


def _without_entry(logs: Logs, number: int, place: int) -> Breach:
    rows, node = logs.rows, logs.nodes[number]
    row = node.at[place]
    is_named = (
        node.is_data & (rows.origin[node.at] == rows.owner[row]) & (rows.lsn[node.at] == rows.until[row])
    )
    named = [
        name
        for name in dict.fromkeys(rows.transaction[node.at[is_named]].tolist())
        if is_named[rows_of(node, name)[-1]]
    ]

    def words(records: list[Record], entry: list[Record] | None = None) -> Witness:
        (record,) = records
        return witness(
            "decision-without-entry",
            f"the log of {node.log.node} has a {record.kind.upper()} of lsn {record.until} of replica {record.owner}, "
            "and no such entry waits there",
            node.log.node,
            text(record),
            "the log has no such transaction" if entry is None else story(node, named[0], entry),
            rows=records,
        )

    entry = (story_of(logs, number, named[0]),) if named else ()
    return Breach((Part(number, (place,)), *entry), words)


def confirm_not_increasing(logs: Logs) -> Breaches:
    rows = logs.rows
    repeated: dict[int, tuple[int, int, int]] = {}
    for number, node in enumerate(logs.nodes):
        places = numpy.flatnonzero(node.kinds == CONFIRM)
        at = node.at[places]
        term = numpy.zeros(len(at), dtype=numpy.int64)
        for writer in numpy.unique(rows.origin[at]).tolist():
            promotes = numpy.flatnonzero((node.kinds == PROMOTE) & (rows.origin[node.at] == writer))
            terms = numpy.concatenate(([0], rows.term[node.at[promotes]]))
            own = rows.origin[at] == writer
            term[own] = terms[numpy.searchsorted(promotes, places[own])]
        # By writer, owner and term, in the order of the log: neighbours of one group suffice.
        order = numpy.lexsort((places, term, rows.owner[at], rows.origin[at]))
        its, before = at[order[1:]], at[order[:-1]]
        bad = (rows.until[its] <= rows.until[before]) & (term[order[1:]] == term[order[:-1]])
        bad &= (rows.owner[its] == rows.owner[before]) & (rows.origin[its] == rows.origin[before])
        again = numpy.flatnonzero(bad)
        for here, last in sorted(
            zip(places[order[again + 1]].tolist(), places[order[again]].tolist(), strict=True)
        ):
            repeated.setdefault(int(rows.place[node.at[here]]), (number, last, here))
    return Breaches.of(list(repeated.values()), partial(_confirmed_again, logs))


def _confirmed_again(logs: Logs, number: int, last: int, here: int) -> Breach:
    rows, at = logs.rows, logs.nodes[number].at
    confirmed, before = int(rows.until[at[here]]), int(rows.until[at[last]])
    summary = f"replica {rows.origin[at[here]]} confirmed lsn {confirmed} after it had confirmed {before}"
    return _two(logs, "confirm-not-increasing", summary, (number, last), (number, here))


# ---- votes and terms: rules about few rows


@about_few_rows
def two_owners_of_a_term(logs: Logs) -> Iterator[Breach]:
    if not logs.rules.has_votes:
        return
    owners: dict[int, tuple[int, int, Record]] = {}
    reported: set[int] = set()
    for number, place, row in _control(logs, "promote"):
        first_number, first_place, first = owners.setdefault(row.term, (number, place, row))
        if first.origin != row.origin and row.term not in reported:
            reported.add(row.term)
            summary = f"replicas {first.origin} and {row.origin} both wrote PROMOTE in term {row.term}"
            before = first_number, first_place
            yield _two(logs, "two-owners-of-a-term", summary, before, (number, place), are_named=True)


@about_few_rows
def term_not_increasing(logs: Logs) -> Iterator[Breach]:
    for number, node in enumerate(logs.nodes):
        last: dict[tuple[str, int], tuple[int, Record]] = {}
        for place, row in node.control:
            key = ("vote", 0) if row.kind == "vote" else ("promote", row.origin)
            before_place, before = last.get(key, (place, None))
            last[key] = place, row
            if before is not None and (
                row.term < before.term or (row.kind != "vote" and row.term == before.term)
            ):
                summary = f"in the log of {node.log.node} term {row.term} comes after term {before.term}"
                yield _two(logs, "term-not-increasing", summary, (number, before_place), (number, place))


@about_few_rows
def two_votes_in_a_term(logs: Logs) -> Iterator[Breach]:
    votes: dict[tuple[int, int], tuple[int, Record]] = {}
    for number, place, row in _control(logs, "vote"):
        if not row.vote:
            continue
        before_place, before = votes.setdefault((number, row.term), (place, row))
        if before.vote != row.vote:
            node = logs.nodes[number].log.node
            summary = f"{node} voted for replicas {before.vote} and {row.vote} in term {row.term}"
            yield _two(logs, "two-votes-in-a-term", summary, (number, before_place), (number, place))


@about_few_rows
def promoted_without_votes(logs: Logs) -> Iterator[Breach]:
    quorum = logs.rules.quorum
    if not (logs.rules.has_votes and quorum and logs.is_complete):
        return
    voters: dict[tuple[int, int], set[str]] = {}
    for number, _, row in _control(logs, "vote"):
        voters.setdefault((row.term, row.vote), set()).add(logs.nodes[number].log.node)
    reported: set[tuple[int, int]] = set()
    for number, place, row in _control(logs, "promote"):
        was_by_hand = logs.rules.first_by_hand and row.waits is not True
        key = (row.term, row.origin)
        if was_by_hand or row.lsn <= logs.rules.started.get(row.origin, 0) or key in reported:
            continue
        votes = voters.get(key, set())
        if len(votes) < quorum:
            reported.add(key)
            node = logs.nodes[number].log.node
            summary = (
                f"replica {row.origin} wrote PROMOTE in term {row.term} with the votes of {len(votes)} nodes, "
                f"{quorum} are needed"
            )
            by = f"votes are recorded by: {', '.join(sorted(votes)) or 'no node'}"
            yield _alone("promoted-without-votes", summary, node, by, Part(number, (place,)))


def _alone(rule: str, summary: str, node: str, by: str, part: Part) -> Breach:
    """A breach by one row."""
    return Breach((part,), lambda rows: witness(rule, summary, node, text(rows[0]), by, rows=rows))


def _control(logs: Logs, kind: str) -> Iterator[tuple[int, int, Record]]:
    """The number of the log, the place there, and the row."""
    for number, node in enumerate(logs.nodes):
        for place, row in node.control:
            if row.kind == kind:
                yield number, place, row


def _two(
    logs: Logs,
    rule: str,
    summary: str,
    one: tuple[int, int],
    other: tuple[int, int],
    *,
    are_named: bool = False,
) -> Breach:
    """A breach by two rows, each the number of a log and a place there; the second one's log is at fault.

    `are_named`: the logs are named with the rows."""
    names = [logs.nodes[number].log.node for number, _ in (one, other)]

    def words(*records: list[Record]) -> Witness:
        rows = [row for records_of_log in records for row in records_of_log]
        shown = [
            f"{name}: {text(row)}" if are_named else text(row) for name, row in zip(names, rows, strict=True)
        ]
        return witness(rule, summary, names[1], *shown, rows=rows)

    return Breach(tuple(Part(number, (place,)) for number, place in (one, other)), words)


RULES: Mapping[str, Rule] = {
    "confirmed-and-rolled-back": confirmed_and_rolled_back,
    "confirmed-and-void": confirmed_and_void,
    "kept-and-void": kept_and_void,
    "same-lsn-other-content": same_lsn_other_content,
    "claimed-but-missing": claimed_but_missing,
    "snapshot-differs": snapshot_differs,
    "snapshot-forgets": snapshot_forgets,
    "confirmed-order": confirmed_order,
    "decision-without-entry": decision_without_entry,
    "confirm-not-increasing": confirm_not_increasing,
    "two-owners-of-a-term": two_owners_of_a_term,
    "term-not-increasing": term_not_increasing,
    "two-votes-in-a-term": two_votes_in_a_term,
    "promoted-without-votes": promoted_without_votes,
    "confirmed-without-quorum": confirmed_without_quorum,
}
