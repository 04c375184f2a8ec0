"""Which rows of logs that are columns break a rule of `agreement`, and the witnesses, for which alone objects are made.

Each rule is first a question of arrays. Where the answer is bad, the rows concerned are looked for, and the rule over
objects runs on logs of these rows alone, with the fates that the columns found. So it finds the same witnesses as in
whole logs, which need not fit into memory. Of the breaches of one rule MOST are looked at, and all are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy

from checkers import wal
from checkers.verdict import WITNESSES_MAX, Witness
from checkers.wal import agreement
from checkers.wal.columns import CONFIRM, DEMOTE, NOP, ORIGINS_MAX, PROMOTE, VOTE, WRITE
from checkers.wal.node_columns import FATES, Node, held, of_snapshots
from checkers.wal.record import Id, LogRules, Record
from checkers.wal.replay import Replayed
from checkers.wal.replay_kernels import ABSENT, COMMITTED, CONFIRMED, ROLLED_BACK
from checkers.wal.replay_kernels import NOP as VOID

Array = Any  # numpy's
MOST: Final = 5 * WITNESSES_MAX
"""Breaches of one rule that are looked at."""
CONTROL: Final = (PROMOTE, DEMOTE, VOTE)
"""Kinds of few rows, which are in every log that objects judge."""
_ON_CONTROL: Final = (
    agreement.two_owners_of_a_term,
    agreement.term_not_increasing,
    agreement.two_votes_in_a_term,
    agreement.promoted_without_votes,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """`counts`: by rule how often it is broken, where that is known; `logs`: the rows concerned, as objects."""

    witnesses: Sequence[Witness] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    logs: Sequence[Replayed] = ()


def broken(nodes: Sequence[Node], rules: LogRules) -> Broken:
    """All breaches of the rules of `agreement`."""
    return _Search(nodes, rules).found()


class _Search:
    def __init__(self, nodes: Sequence[Node], rules: LogRules) -> None:
        self._nodes = nodes
        self._rules = rules
        self._rows = rows = nodes[0].rows
        self._places = numpy.zeros(rows.places, dtype=bool)
        """Those of rows that break a rule, or that a witness names."""
        self._transactions = numpy.zeros(rows.transactions, dtype=bool)
        """The same of whole transactions."""
        self._named: set[tuple[int, int]] = set()
        """Rows that a witness names, by origin and lsn, whether a log has them or not."""
        self._counts: dict[str, int] = {}

    def found(self) -> Broken:
        rows = self._rows
        at = numpy.flatnonzero(held(self._nodes) & (rows.kind != NOP) & (rows.kind != VOTE))
        self._look_at_fates()
        self._look_at_contents(at)
        self._look_for_gaps(at)
        self._look_at_confirms()
        self._look_at_contradictions()
        self._look_at_control()
        orders = list(self._other_orders())
        direct = of_snapshots(self._nodes)
        for witness in (each for found in direct.values() for each in found[:WITNESSES_MAX]):
            self._named.update(witness.records)
        self._mark_named()
        if not (self._places.any() or self._transactions.any() or any(direct.values())):
            return Broken(counts=self._counts)
        self._close()
        logs = [self._thinned(node) for node in self._nodes]
        direct["confirmed-order"] = [
            agreement.other_order(
                logs[longest], logs[other], self._rows.id_of(name), self._rows.id_of(expected)
            )
            for longest, other, name, expected in orders
        ]
        cluster = wal.cluster_of(logs, self._rules)
        witnesses = [
            witness
            for name, rule in agreement.RULES.items()
            for witness in (direct[name] if name in direct else rule(cluster))
        ]
        return Broken(witnesses=witnesses, counts=self._counts, logs=logs)

    # ---- the rules

    def _look_at_fates(self) -> None:
        rows, nodes = self._rows, self._nodes
        is_confirmed, is_back, is_void = (numpy.zeros(rows.transactions, dtype=bool) for _ in range(3))
        holders = numpy.zeros(rows.transactions, dtype=numpy.int16)
        for node in nodes:
            is_confirmed[node.order] = True
            is_back |= node.fates == ROLLED_BACK
            is_void |= node.fates == VOID
            holders += (node.fates != ABSENT) & (node.fates != VOID)
        self._take("confirmed-and-rolled-back", is_confirmed & is_back)
        self._take("confirmed-and-void", is_confirmed & is_void)
        self._take("kept-and-void", self._kept_and_void() & ~(is_confirmed & is_void))
        quorum = self._rules.quorum
        if quorum and self._rules.is_complete([node.log for node in nodes]):
            self._take("confirmed-without-quorum", is_confirmed & (holders < quorum))

    def _kept_and_void(self) -> Array:
        """As `agreement.kept_and_void`: the transactions with such a row."""
        rows = self._rows
        is_void = numpy.zeros(rows.places, dtype=bool)
        for node in self._nodes:
            is_void[rows.place[node.at[rows.kind[node.at] == NOP]]] = True
        found = numpy.zeros(rows.transactions, dtype=bool)
        if is_void.any():
            for node in self._nodes:
                own = node.at[(rows.kind[node.at] == WRITE) & is_void[rows.place[node.at]]]
                transactions = rows.transaction[own]
                has_effect = numpy.isin(node.fates[transactions], (CONFIRMED, COMMITTED))
                found[transactions[has_effect]] = True
        return found

    def _look_at_contents(self, at: Array) -> None:
        """As `agreement.same_lsn_other_content`."""
        rows = self._rows
        first = numpy.full(rows.places, -1, dtype=numpy.int32)
        first[rows.place[at]] = at
        if not self._is_other(first, at).any():
            return
        logs = [node.at[(rows.kind[node.at] != NOP) & (rows.kind[node.at] != VOTE)] for node in self._nodes]
        for own in reversed(logs):
            first[rows.place[own[::-1]]] = own[::-1]
        others = numpy.concatenate([own[self._is_other(first, own)] for own in logs])
        self._counts["same-lsn-other-content"] = len(others)
        self._places[rows.place[others[:MOST]]] = True

    def _is_other(self, first: Array, at: Array) -> Array:
        rows, same = self._rows, first[self._rows.place[at]]
        return (rows.kind[same] != rows.kind[at]) | (rows.body[same] != rows.body[at])

    def _look_for_gaps(self, at: Array) -> None:
        """As `agreement.claimed_but_missing`, which tells the first row that a log lacks."""
        rows = self._rows
        for other in self._nodes:
            if other.log.damage is not None:
                continue
            has = numpy.zeros(rows.places, dtype=bool)
            has[rows.place[other.at]] = True
            begins, end = (numpy.zeros(ORIGINS_MAX, dtype=numpy.int64) for _ in range(2))
            for limits, known in ((begins, other.log.begins), (end, other.end)):
                for origin, lsn in known.items():
                    limits[origin] = lsn
            lsns, origins = rows.lsn[at], rows.origin[at]
            lacks = at[(begins[origins] < lsns) & (lsns <= end[origins]) & ~has[rows.place[at]]]
            if not len(lacks):
                continue
            is_lacked = numpy.zeros(len(rows.kind), dtype=bool)
            is_lacked[lacks] = True
            row = next(
                int(node.at[found[0]])
                for node in self._nodes
                if len(found := numpy.flatnonzero(is_lacked[node.at]))
            )
            self._places[rows.place[row]] = True
            origin = int(rows.origin[row])
            self._named.add((origin, other.end[origin]))

    def _look_at_confirms(self) -> None:
        """As `agreement.confirm_not_increasing`."""
        rows = self._rows
        again: list[Array] = []
        for node in self._nodes:
            kinds = rows.kind[node.at]
            places = numpy.flatnonzero(kinds == CONFIRM)
            at = node.at[places]
            writer = rows.origin[at].astype(numpy.int64) * ORIGINS_MAX + rows.owner[at]
            for each in numpy.unique(writer).tolist():
                own = writer == each
                promotes = numpy.flatnonzero(
                    (kinds == PROMOTE) & (rows.origin[node.at] == each // ORIGINS_MAX)
                )
                terms = numpy.concatenate(([0], rows.term[node.at[promotes]]))
                term = terms[numpy.searchsorted(promotes, places[own])]
                by_term = numpy.argsort(term, kind="stable")
                its, term = at[own][by_term], term[by_term]
                bad = numpy.flatnonzero(
                    (rows.until[its[1:]] <= rows.until[its[:-1]]) & (term[1:] == term[:-1])
                )
                again.append(rows.place[its[bad + 1]])
                self._places[rows.place[its[bad[:MOST]]]] = True
                self._places[rows.place[its[bad[:MOST] + 1]]] = True
        count = len(numpy.unique(numpy.concatenate(again))) if again else 0
        self._counts["confirm-not-increasing"] = count

    def _look_at_contradictions(self) -> None:
        """As `agreement.decision_without_entry`."""
        rows = self._rows
        decisions: dict[int, int] = {}
        for node in self._nodes:
            if node.log.damage is None:
                for row in node.at[node.contradictions].tolist():
                    decisions.setdefault(int(rows.place[row]), row)
        self._counts["decision-without-entry"] = len(decisions)
        for place, row in list(decisions.items())[:MOST]:
            self._places[place] = True
            self._named.add((int(rows.owner[row]), int(rows.until[row])))

    def _look_at_control(self) -> None:
        cluster = wal.cluster_of([node.control for node in self._nodes], self._rules)
        for rule in _ON_CONTROL:
            for witness in rule(cluster):
                self._named.update(witness.records)

    def _other_orders(self) -> Iterator[tuple[int, int, int, int]]:
        """As `agreement.confirmed_order`: the longest log, the other one, its transaction, and the one expected."""
        nodes = self._nodes
        number = max(range(len(nodes)), key=lambda each: len(nodes[each].order))
        longest = nodes[number]
        for other, node in enumerate(nodes):
            if node is longest or not len(node.order):
                continue
            shift = 0
            if any(longest.log.begins.values()) or any(node.log.begins.values()):
                there = numpy.flatnonzero(longest.order == node.order[0])
                here = numpy.flatnonzero(node.order == longest.order[0])
                if not len(there) and not len(here):
                    continue
                shift = int(there[0]) if len(there) else -int(here[0])
            begin, end = max(0, -shift), min(len(node.order), len(longest.order) - shift)
            own, expected = node.order[begin:end], longest.order[begin + shift : end + shift]
            bad = numpy.flatnonzero(own != expected)
            if len(bad):
                name, instead = int(own[bad[0]]), int(expected[bad[0]])
                self._transactions[[name, instead]] = True
                yield number, other, name, instead

    # ---- the rows concerned

    def _take(self, rule: str, is_broken: Array) -> None:
        found = numpy.flatnonzero(is_broken)
        self._counts[rule] = len(found)
        self._transactions[found[:MOST]] = True

    def _mark_named(self) -> None:
        rows = self._rows
        if self._named:
            wanted = numpy.array([(origin << 32) | lsn for origin, lsn in self._named], dtype=numpy.int64)
            there = numpy.isin((rows.origin.astype(numpy.int64) << 32) | rows.lsn, wanted)
            self._places[rows.place[there]] = True

    def _close(self) -> None:
        """Add what belongs to a transaction: all its rows, and what decided about it. And what stands elsewhere in the
        place of a PROMOTE, DEMOTE or vote."""
        rows = self._rows
        is_control = numpy.isin(rows.kind, CONTROL)
        is_known = numpy.zeros(rows.places, dtype=bool)
        is_known[rows.place[is_control]] = True
        self._places[rows.place[~is_control & is_known[rows.place]]] = True
        is_data = (rows.kind == WRITE) | (rows.kind == NOP)
        before = -1
        while before < (before := int(self._places.sum())):
            self._transactions[rows.transaction[is_data & self._places[rows.place]]] = True
            self._places[rows.place[is_data & self._transactions[rows.transaction]]] = True
            for node in self._nodes:
                decisions = node.decided[self._transactions]
                self._places[rows.place[decisions[decisions >= 0]]] = True

    def _thinned(self, node: Node) -> Replayed:
        """The log with the rows concerned, and with its PROMOTEs, DEMOTEs and votes."""
        rows, at = node.rows, node.at
        is_chosen = self._places[rows.place[at]]
        chosen = numpy.flatnonzero(is_chosen).tolist()
        records = dict(zip(chosen, node.some(chosen), strict=True))
        for place in numpy.flatnonzero(~is_chosen & numpy.isin(rows.kind[at], CONTROL)).tolist():
            records[place] = rows.record(int(at[place]))
        places = sorted(records)
        thin = Replayed(replace(node.log, records=tuple(records[place] for place in places)))
        by_row: dict[int, Record] = {}
        for place in places:
            by_row.setdefault(int(at[place]), records[place])
        open_rows: list[Record] = []
        names: dict[int, Id] = {}
        for place in places:
            row, record = int(at[place]), records[place]
            if record.kind not in ("write", "nop"):
                continue
            open_rows.append(record)
            if record.ends:
                name, number = open_rows[0].id, int(rows.transaction[row])
                names[number] = name
                fate = FATES[node.fates[number]]
                assert fate is not None
                thin.fates[name] = fate
                thin.transactions[name] = tuple(open_rows)
                decision = int(node.decided[number])
                if decision >= 0:
                    thin.decided_by[name] = by_row[decision]
                open_rows = []
        thin.order += [names[number] for number in node.order[self._transactions[node.order]].tolist()]
        thin.contradictions += [records[place] for place in node.contradictions if place in records]
        return thin
