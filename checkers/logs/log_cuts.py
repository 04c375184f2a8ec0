"""Cuts over the logs of a stopped replica set: where each node stands in its own log, judged by `quorum_logs`.

    cuts = LogCuts(logs, rules)
    cuts.check({"n1": cuts["n1"].behind(1, 17), "n2": cuts["n2"].end})
    for row in cuts.decisions():
        cuts.check(cuts.at(row))

A *place* in a log is a number: how many transactions, decisions and votes of the log are before the cut. A cut never
divides a transaction. The cut *at* a row has each node right behind that row, and a node without it at the end of its
log: where a marker in the stream of rows would stop each of them. Such a cut holds while one node writes. If two write
at once, acknowledgements for one may pass a row of the other.

A `Walk` replays a log up to a place. Walks go forward; a place before the last one costs a new replay.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from checkers.cuts.quorum_logs import Decision, Id, NodeCut, SetCut, Status, check, counted
from checkers.logs.wal.record import LogRules, NodeLog, Promotes, Record
from checkers.logs.wal.replay import Fate, Limbo, Replayed, transactions
from checkers.verdict import Verdict

DECISIONS = frozenset({"confirm", "rollback", "promote", "demote"})
STATUSES: Mapping[Fate, Status] = {
    "confirmed": "confirmed",
    "rolled back": "rolled back",
    "nop": "rolled back",
    "pending": "pending",
}
"""Of synchronous transactions. A NOP stands where a node wrote a row without its content: it discarded that row.

A node discards a CONFIRM in the same way. So a NOP counts only where a log has the transaction itself.
"""
Places = Mapping[str, int]


class NoSuchPlace(ValueError):
    """A log has no such place; the message says which ones it has."""


class Walk:
    """One node's log, replayed up to a place."""

    def __init__(
        self, log: NodeLog, promotes: Promotes, replica: int, synchronous: Set[Id] = frozenset()
    ) -> None:
        """`replica`: the node's own, 0 if unknown. `synchronous`: the transactions of all logs that wait."""
        self.log = log
        self._promotes: Promotes = promotes
        self._replica = replica
        self._synchronous = synchronous | synchronous_in(log)
        self._parts = list(transactions(log))
        self._behind: dict[Id, int] = {}
        self._came: dict[int, tuple[list[int], list[int]]] = {}
        """By replica the places behind its rows, and the lsn that the log had reached there."""
        for place, rows in enumerate(self._parts, start=1):
            for row in rows:
                if row.kind != "vote":
                    self._behind.setdefault((row.origin, row.lsn), place)
                if row.origin:
                    places, lsns = self._came.setdefault(row.origin, ([], []))
                    places.append(place)
                    lsns.append(row.lsn)
        self._begin()

    def _begin(self) -> None:
        self._limbo = Limbo(Replayed(self.log), self._promotes)
        self._at = 0
        self._last: NodeCut | None = None
        self._vclock = counted(self.log.begins)
        self._term = 0
        self._votes: dict[int, int] = {}
        self._confirms: dict[int, Decision] = {}
        """The greatest of each owner: CONFIRMs are cumulative, so what this one shows, it shows of all."""
        self._promotes_read: list[Record] = []

    @property
    def end(self) -> int:
        return len(self._parts)

    def find(self, origin: int, lsn: int) -> int | None:
        """The place right behind a row; None if the log has no such row."""
        return self._behind.get((origin, lsn))

    def behind(self, origin: int, lsn: int) -> int:
        """As `find`; NoSuchPlace if the log lacks the row, or the row is inside a transaction."""
        place = self.find(origin, lsn)
        if place is None:
            raise NoSuchPlace(f"has no row {origin}/{lsn}; {self._extent()}")
        last = self._parts[place - 1][-1]
        if (last.origin, last.lsn) != (origin, lsn):
            raise NoSuchPlace(
                f"has row {origin}/{lsn} inside a transaction; try the last row of it: {last.origin}/{last.lsn}"
            )
        return place

    def of_lsn(self, lsn: int) -> int:
        """The place right behind the row with this lsn, of whichever replica."""
        origins = sorted(origin for origin, row_lsn in self._behind if row_lsn == lsn)
        if len(origins) > 1:
            tries = " or ".join(f"{origin}/{lsn}" for origin in origins)
            raise NoSuchPlace(f"has row {lsn} of {len(origins)} replicas; try: {tries}")
        if not origins:
            raise NoSuchPlace(f"has no row {lsn}; {self._extent()}")
        return self.behind(origins[0], lsn)

    def of_vclock(self, vclock: Mapping[int, int]) -> int | None:
        """The last place at which the log has reached exactly this vclock; None if there is none."""
        wanted = counted(vclock)
        place = max((self._behind.get(row_id, 0) for row_id in wanted.items()), default=0)
        at, until = counted(self.log.begins), self.end
        for origin, (places, lsns) in self._came.items():
            number = bisect_right(places, place)
            if number:
                at[origin] = lsns[number - 1]
            if number < len(places):
                until = min(until, places[number] - 1)
        return until if at == wanted else None

    def at_time(self, time_ns: int) -> int:
        """The place before the first row that was written later, by the clock of the node that made the row."""
        return next(
            (
                place
                for place, rows in enumerate(self._parts)
                if any(row.time_ns > time_ns for row in rows if row.kind != "vote")
            ),
            self.end,
        )

    def last(self, place: int) -> Record | None:
        """The last row before the place that is not a vote."""
        rows = (rows[-1] for rows in reversed(self._parts[:place]) if rows[-1].kind != "vote")
        return next(rows, None)

    def decisions(self) -> list[Record]:
        """In the order of the log."""
        return [rows[-1] for rows in self._parts if rows[-1].kind in DECISIONS]

    def cut(self, place: int) -> NodeCut:
        """The state of the node at the cut."""
        assert 0 <= place <= self.end, place
        if self._last is not None and place == self._at:
            return self._last
        if place < self._at:
            self._begin()
        for rows in self._parts[self._at : place]:
            self._read(rows)
        self._at = place
        replayed = self._limbo.replayed
        statuses = {
            name: STATUSES[fate]
            for name, fate in replayed.fates.items()
            if fate in STATUSES
            and name in self._synchronous
            and (self.log.damage is None or fate == "nop" or replayed.is_named(name))
        }
        self._last = NodeCut(
            node=self.log.node,
            replica=self._replica,
            vclock=dict(self._vclock),
            statuses=statuses,
            order=tuple(replayed.order),
            decisions=(*self._confirms.values(), *map(self._promotion, self._promotes_read)),
            term=self._term,
            votes=dict(self._votes),
            terms={row.origin: row.term for row in self._limbo.in_effect.values()},
            confirmed=dict(self._limbo.confirmed_of),
            begins=counted(self.log.begins),
        )
        return self._last

    def _read(self, rows: tuple[Record, ...]) -> None:
        self._limbo.read(rows)
        for row in rows:
            if row.origin:
                self._vclock[row.origin] = max(row.lsn, self._vclock.get(row.origin, 0))
        row = rows[-1]
        self._term = max(self._term, row.term)
        if row.kind == "vote" and row.vote:
            self._votes[row.term] = row.vote
        elif row.kind == "confirm":
            known = self._confirms.get(row.owner)
            if known is None or known.until <= row.until:
                self._confirms[row.owner] = Decision(
                    kind="confirm", origin=row.origin, lsn=row.lsn, owner=row.owner, until=row.until
                )
        elif row.kind in ("promote", "demote"):
            self._promotes_read.append(row)

    def _promotion(self, row: Record) -> Decision:
        """The row as a decision. It confirms nothing while it waits for a quorum, or if a later PROMOTE overtook it."""
        is_in_effect = row.id in self._limbo.in_effect
        return Decision(
            kind="demote" if row.kind == "demote" else "promote",
            origin=row.origin,
            lsn=row.lsn,
            owner=row.owner if is_in_effect else 0,
            until=row.until if is_in_effect else 0,
            term=row.term,
        )

    def _extent(self) -> str:
        first, last = (
            next((rows[-1] for rows in parts if rows[-1].kind != "vote"), None)
            for parts in (self._parts, reversed(self._parts))
        )
        if first is None or last is None:
            return "it has no rows"
        return f"it goes from {first.origin}/{first.lsn} to {last.origin}/{last.lsn}"


def synchronous_in(log: NodeLog) -> frozenset[Id]:
    """The transactions of a log that wait for a quorum."""
    return frozenset(row.id for row in log.records if row.kind == "write" and row.is_synchronous)


class LogCuts:
    """The logs of a replica set, by node. ValueError if it is not known how many nodes make a quorum."""

    def __init__(self, logs: Sequence[NodeLog], rules: LogRules) -> None:
        if rules.quorum is None:
            raise ValueError("expected a quorum: rules of a cut count nodes")
        self.rules = rules
        self._quorum = rules.quorum
        known = {uuid: replica for log in logs for replica, uuid in log.members.items()}
        waiting = frozenset(name for log in logs for name in synchronous_in(log))
        self.walks = {
            log.node: Walk(log, rules.promotes, known.get(log.instance, 0), waiting) for log in logs
        }
        registered = {uuid for log in logs for uuid in log.members.values()}
        self.members = max(len(logs), rules.members or len(registered))
        terms = [
            row.term
            for log in logs
            for row in log.records
            if row.kind == "promote" and row.lsn <= rules.started.get(row.origin, 0)
        ]
        self._voted_since = max(terms, default=0)
        self._damage = [f"rows are missing: {log.node}: {log.damage}" for log in logs if log.damage]
        self._nameless = [
            f"which replica {log.node} is, its files do not say"
            for log in logs
            if not known.get(log.instance)
        ]

    def __getitem__(self, node: str) -> Walk:
        return self.walks[node]

    def decisions(self) -> list[Record]:
        """Each CONFIRM, ROLLBACK, PROMOTE and DEMOTE once, by the first log that has it."""
        by_id: dict[Id, Record] = {}
        for walk in self.walks.values():
            for row in walk.decisions():
                by_id.setdefault((row.origin, row.lsn), row)
        return list(by_id.values())

    def at(self, row: Record) -> Places | None:
        """The place of each node behind the row. None if a node's log begins later: its place then is unknown."""
        places: dict[str, int] = {}
        for node, walk in self.walks.items():
            place = walk.find(row.origin, row.lsn)
            if place is None and walk.log.begins.get(row.origin, 0) >= row.lsn:
                return None
            places[node] = walk.end if place is None else place
        return places

    def check(self, places: Places, marker: Mapping[int, int] | None = None) -> Verdict:
        """Whether this cut can be restored. Unknown with a damaged log, unless the rest of it contradicts itself."""
        verdict = check(
            SetCut(
                nodes=[self.walks[node].cut(place) for node, place in places.items()],
                members=self.members,
                quorum=self._quorum,
                has_votes=self.rules.has_votes and not self.rules.first_by_hand,
                voted_since=self._voted_since,
                marker=marker,
            )
        )
        if self._damage:
            # Missing rows break any other rule.
            witnesses = tuple(each for each in verdict.witnesses if each.rule == "confirmed-and-rolled-back")
            if not witnesses:
                return replace(verdict, result="unknown", summary=self._damage[0], witnesses=())
            return replace(verdict, summary=witnesses[0].summary, witnesses=witnesses)
        if verdict.result == "valid" and self._nameless:
            return replace(verdict, result="unknown", summary=self._nameless[0])
        return verdict


def spread(rows: Sequence[Record], most: int) -> list[Record]:
    """At most `most` of these rows, at even distances, the first and the last among them; of one, it is the last."""
    if len(rows) <= most:
        return list(rows)
    if most == 1:
        return [rows[-1]]
    return [rows[place * (len(rows) - 1) // (most - 1)] for place in range(most)]
