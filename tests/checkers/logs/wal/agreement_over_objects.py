"""The rules of `checkers.logs.wal.agreement` as searches through records: the slow, obvious twin.

Every rule yields a witness for each breach. `RULES` has them by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile

from checkers.history.values import value_words, vclock_words
from checkers.logs.wal.breaches import name_of, text, witness
from checkers.logs.wal.record import Id, NodeLog, Record, Snapshot
from checkers.logs.wal.replay import Fate, Replayed
from checkers.verdict import WITNESSES_MAX, Witness


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The logs, and the rules for judging them. `quorum` None: not known, rules that count nodes say nothing."""

    nodes: Sequence[Replayed]
    quorum: int | None
    has_votes: bool
    first_by_hand: bool = False
    """PROMOTEs that take effect at once were made without elections."""
    started: Mapping[int, int] = field(default_factory=dict)
    """Rows up to here were written before the run: of their votes nothing is known."""
    is_complete: bool
    """The log of every member is here, and whole."""


Place = tuple[int, object]
"""Space, and first part of the key."""
UNKNOWN: tuple[object, ...] = ("unknown",)
USER_SPACES = 512
Rule = Callable[[Cluster], Iterator[Witness]]


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
        yield witness(
            "confirmed-and-rolled-back",
            f"{name_of(name)} is confirmed in the log of {here.log.node} and rolled back in that of {there.log.node}",
            there.log.node,
            _story(name, here),
            _story(name, there),
            rows=(
                *_rows_of(name, here),
                *_rows_of(name, there),
            ),
        )


def confirmed_and_void(cluster: Cluster) -> Iterator[Witness]:
    for number, (name, (here, there)) in enumerate(conflicting(cluster, "nop").items()):
        is_shown = number < WITNESSES_MAX
        yield witness(
            "confirmed-and-void",
            f"{name_of(name)} is confirmed in the log of {here.log.node}, and {there.log.node} wrote it without "
            "content",
            there.log.node,
            _story(name, here),
            _story(name, there),
            rows=(
                *_rows_of(name, here),
                *_rows_of(name, there),
            ),
            how=_how_void(name, here, there) if is_shown else "",
        )


def _how_void(name: Id, here: Replayed, there: Replayed) -> str:
    """Whether the log that has it without content has a PROMOTE in front of it that the confirming log has not."""
    return (
        f"void {'with' if _promotes(name, there) - _promotes(name, here) else 'without'} a PROMOTE in front"
    )


def _promotes(name: Id, node: Replayed) -> set[tuple[int, int]]:
    """The PROMOTEs in front of a transaction in a log."""
    behind = dropwhile(lambda row: row.id != name, reversed(node.log.records))
    return {(row.origin, row.lsn) for row in behind if row.kind == "promote"}


def kept_and_void(cluster: Cluster) -> Iterator[Witness]:
    """The rows that `confirmed_and_void` leaves: of asynchronous transactions, and of those that are void in part."""
    void = {
        (row.origin, row.lsn): node for node in cluster.nodes for row in node.log.records if row.kind == "nop"
    }
    known = conflicting(cluster, "nop") if void else {}
    told: set[Id] = set()
    for node in cluster.nodes:
        for row in node.log.records:
            other = void.get((row.origin, row.lsn)) if row.kind == "write" else None
            if other is None or row.id in known or row.id in told or not has_effect(node, row):
                continue
            told.add(row.id)
            yield witness(
                "kept-and-void",
                f"lsn {row.lsn} of replica {row.origin} took effect by the log of {node.log.node}, and "
                f"{other.log.node} wrote it without content",
                other.log.node,
                _story(row.id, node),
                rows=(row,),
            )


def has_effect(node: Replayed, row: Record) -> bool:
    """By the node's log the row took effect."""
    return node.fates.get(row.id) in ("confirmed", "committed")


def same_lsn_other_content(cluster: Cluster) -> Iterator[Witness]:
    seen: dict[tuple[int, int], tuple[Replayed, Record]] = {}
    for node in cluster.nodes:
        for row in node.log.records:
            if row.kind in ("nop", "vote"):
                continue
            first_node, first = seen.setdefault((row.origin, row.lsn), (node, row))
            if (first.kind, first.body) != (row.kind, row.body):
                yield witness(
                    "same-lsn-other-content",
                    f"lsn {row.lsn} of replica {row.origin} is not the same on {first_node.log.node} and "
                    f"{node.log.node}",
                    node.log.node,
                    f"{first_node.log.node}: {text(first)}",
                    f"{node.log.node}: {text(row)}",
                    rows=(
                        first,
                        row,
                    ),
                )


def claimed_but_missing(cluster: Cluster) -> Iterator[Witness]:
    """A NOP takes the place of a row, and a row of one node alone that of a NOP elsewhere."""
    held = [(node, {(row.origin, row.lsn) for row in node.log.records}) for node in cluster.nodes]
    ends = [_end(node) for node in cluster.nodes]
    told: set[str] = set()
    for node in cluster.nodes:
        for row in node.log.records:
            if row.kind in ("nop", "vote"):
                continue
            for (other, rows), end in zip(held, ends, strict=True):
                is_passed = other.log.begins.get(row.origin, 0) < row.lsn <= end.get(row.origin, 0)
                is_missing = is_passed and (row.origin, row.lsn) not in rows
                if is_missing and other.log.damage is None and other.log.node not in told:
                    told.add(other.log.node)
                    yield witness(
                        "claimed-but-missing",
                        f"the log of {other.log.node} has come to lsn {end[row.origin]} of replica {row.origin} "
                        f"and lacks lsn {row.lsn}, which {node.log.node} holds",
                        other.log.node,
                        f"{node.log.node}: {text(row)}",
                        rows=(row,),
                    )


def _end(node: Replayed) -> dict[int, int]:
    end = dict(node.log.begins)
    for row in node.log.records:
        end[row.origin] = max(row.lsn, end.get(row.origin, 0))
    return end


def snapshot_differs(cluster: Cluster) -> Iterator[Witness]:
    """Each snapshot is compared with the node's own log, the newest one and one that came by a join with all logs."""
    nodes = [_Followed(node) for node in cluster.nodes]
    for node in nodes:
        differing = {
            snapshot.place: difference(node.log, snapshot, node.log, there.state)
            for snapshot, there in node.on_the_way()
        }
        for snapshot in node.log.snapshots:
            witness = differing.get(snapshot.place)
            is_alone = snapshot.place not in differing or snapshot is node.log.snapshots[-1]
            if witness is None and is_alone:
                others = (_compared(node.log, snapshot, other) for other in nodes if other is not node)
                witness = next(filter(None, others), None)
            if witness is not None:
                yield witness


def snapshot_forgets(cluster: Cluster) -> Iterator[Witness]:
    """The log before a snapshot may be removed, so what the snapshot does not say is forgotten by a restart."""
    for node in map(_Followed, cluster.nodes):
        for snapshot, there in node.on_the_way():
            yield from forgotten(node.log, snapshot, there.vote, there.confirmed)


def forgotten(
    log: NodeLog, snapshot: Snapshot, vote: Record | None, confirmed_of: Mapping[int, int]
) -> Iterator[Witness]:
    """A snapshot lacks the last vote of the log before it, or up to where the entries of its owner are confirmed."""
    owner = snapshot.owner
    is_older = vote is not None and snapshot.term < vote.term
    is_other = vote is not None and snapshot.term == vote.term and vote.vote not in (0, snapshot.vote)
    if vote is not None and (is_older or is_other):
        yield witness(
            "snapshot-forgets",
            f"the snapshot of {log.node} has the vote {snapshot.vote} in term {snapshot.term}, and its log has "
            f"{vote.vote} in term {vote.term} before it",
            log.node,
            f"{log.node}: {snapshot.place}",
            text(vote),
            rows=(vote,),
        )
    confirmed = confirmed_of.get(owner, 0)
    if owner and snapshot.confirmed.get(owner, 0) < confirmed:
        yield witness(
            "snapshot-forgets",
            f"the snapshot of {log.node} says that the entries of replica {owner} are confirmed up to lsn "
            f"{snapshot.confirmed.get(owner, 0)}, and it holds confirmed ones up to {confirmed}",
            log.node,
            f"{log.node}: {snapshot.place}",
        )


@dataclass(slots=True)
class _There:
    """The result of a node's own log at the place of a snapshot."""

    state: dict[Place, tuple[object, ...]]
    vote: Record | None
    confirmed: dict[int, int]
    """By origin: the last synchronous transaction that is confirmed, in a queue with an owner."""
    is_owned: bool
    """The queue has had an owner. In logs of 2.6 it has none, and later versions take no notice of their CONFIRMs."""


def first_snapshot(log: NodeLog) -> Snapshot | None:
    """The one that the log begins at."""
    return next((each for each in log.snapshots if dict(each.vclock) == dict(log.begins)), None)


def can_be_followed(log: NodeLog, first: Snapshot | None) -> bool:
    return log.damage is None and (first is not None or not any(log.begins.values()))


def reached(log: NodeLog, end: Mapping[int, int]) -> Iterator[Snapshot]:
    """The snapshots that the log, which comes to `end`, has all rows of, oldest first."""
    for snapshot in sorted(log.snapshots, key=lambda each: sum(each.vclock.values())):
        has_local = log.begins.get(0, 0) <= snapshot.vclock.get(0, 0)
        if has_local and reaches(log, end, snapshot.vclock):
            yield snapshot


def reaches(log: NodeLog, end: Mapping[int, int], vclock: Mapping[int, int]) -> bool:
    """Whether a log that comes to `end` has all rows up to `vclock`, behind where it begins."""
    covers = all(lsn <= vclock.get(origin, 0) for origin, lsn in log.begins.items() if origin)
    return covers and all(lsn <= end.get(origin, 0) for origin, lsn in vclock.items() if origin)


@dataclass(frozen=True, slots=True)
class _Followed:
    """A log, and what it comes to."""

    node: Replayed

    @property
    def log(self) -> NodeLog:
        return self.node.log

    def on_the_way(self) -> Iterator[tuple[Snapshot, _There]]:
        """Each snapshot that the log has all rows of, and what these came to, which changes from one to the next."""
        log, first = self.log, first_snapshot(self.log)
        if not can_be_followed(log, first):
            return
        state, is_owned = ({}, False) if first is None else (dict(first.tuples), bool(first.owner))
        there = _There(state, None, {}, is_owned)
        position, records = 0, log.records
        for snapshot in reached(log, _end(self.node)):
            vclock = snapshot.vclock
            while position < len(records) and records[position].lsn <= vclock.get(
                records[position].origin, 0
            ):
                self._apply(records[position], there, state)
                position += 1
            yield snapshot, there

    def _apply(self, row: Record, there: _There, state: dict[Place, tuple[object, ...]]) -> None:
        if row.kind == "vote":
            there.vote = row
        elif row.kind == "promote":
            there.is_owned = True
        elif row.kind == "write":
            fate = self.node.fates.get(row.id)
            if fate == "confirmed" and row.is_synchronous and there.is_owned:
                there.confirmed[row.origin] = max(row.lsn, there.confirmed.get(row.origin, 0))
            if row.space >= USER_SPACES:
                _put(state, row, fate)

    def state_at(self, vclock: Mapping[int, int]) -> Mapping[Place, tuple[object, ...]] | None:
        """The state after all rows of the node's log up to `vclock`: tuples, () where one was deleted, or UNKNOWN.

        None if the log does not reach from the beginning of all data, or from a snapshot, up to there.
        """
        log, first = self.log, first_snapshot(self.log)
        if not can_be_followed(log, first) or not reaches(log, _end(self.node), vclock):
            return None
        state = {} if first is None else dict(first.tuples)
        for row in log.records:
            if row.kind != "write" or row.space < USER_SPACES or row.lsn > vclock.get(row.origin, 0):
                continue
            _put(state, row, self.node.fates.get(row.id))
        return state


def _put(state: dict[Place, tuple[object, ...]], row: Record, fate: Fate | None) -> None:
    place = row.space, row.key
    if fate == "pending":
        state[place] = UNKNOWN  # it is not known yet whether it took effect
    elif fate in ("confirmed", "committed"):
        state[place] = row.tuple if row.is_whole else UNKNOWN


def _compared(log: NodeLog, snapshot: Snapshot, other: _Followed) -> Witness | None:
    """With what the log of `other` comes to at its vclock, if that log reaches so far."""
    found = other.state_at(snapshot.vclock)
    return None if found is None else difference(log, snapshot, other.log, found)


def difference(
    log: NodeLog, snapshot: Snapshot, other: NodeLog, found: Mapping[Place, tuple[object, ...]]
) -> Witness | None:
    """A snapshot of `log` has something else in place than the rows of `other` came to."""
    differing = [
        place
        for place in {**found, **snapshot.tuples}
        if place[0] not in snapshot.left_out
        and (there := found.get(place, ())) is not UNKNOWN
        and list(there) != list(snapshot.tuples.get(place, ()))
    ]
    if not differing:
        return None
    place = min(differing, key=repr)
    there, here = found.get(place, ()), snapshot.tuples.get(place, ())
    return witness(
        "snapshot-differs",
        f"the snapshot of {log.node} at vclock {vclock_words(snapshot.vclock)} has {value_words(here or None)} "
        f"under key {place[1]} of space {place[0]}, and the log of {other.node} came to "
        f"{value_words(there or None)}",
        log.node,
        f"{log.node}: {snapshot.place}",
        at=((origin, lsn) for origin, lsn in snapshot.vclock.items() if origin),
        how="by its own log" if log is other else "by the log of another node",
    )


def confirmed_order(cluster: Cluster) -> Iterator[Witness]:
    whole = [node for node in cluster.nodes if node.log.damage is None]
    longest = max(whole, key=lambda node: len(node.order), default=None)
    for node in whole:
        if longest is None or node is longest or not node.order:
            continue
        shift = _shift(longest, node)
        if shift is None:
            continue  # nothing that both hold: one begins after the end of the other
        for step in range(max(0, -shift), min(len(node.order), len(longest.order) - shift)):
            if node.order[step] != longest.order[step + shift]:
                yield other_order(longest, node, node.order[step], longest.order[step + shift])
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


def other_order(longest: Replayed, node: Replayed, name: Id, expected: Id) -> Witness:
    """`node` has confirmed `name` where the longest log has `expected`."""
    return witness(
        "confirmed-order",
        f"{node.log.node} confirmed {name_of(name)} where in the log of {longest.log.node} {name_of(expected)} stands",
        node.log.node,
        _story(name, node),
        _story(expected, longest),
        rows=(
            *_rows_of(name, node),
            *_rows_of(expected, longest),
        ),
    )


def decision_without_entry(cluster: Cluster) -> Iterator[Witness]:
    told: set[tuple[int, int]] = set()
    for node in cluster.nodes:
        if node.log.damage is not None:
            continue  # the entry may stand in what could not be read
        for row in node.contradictions:
            if (row.origin, row.lsn) in told:
                continue
            told.add((row.origin, row.lsn))
            named = next((rows for rows in node.transactions.values() if _is_named(rows, row)), None)
            yield witness(
                "decision-without-entry",
                f"the log of {node.log.node} has a {row.kind.upper()} of lsn {row.until} of replica {row.owner}, "
                f"and no such entry waits there",
                node.log.node,
                text(row),
                "the log has no such transaction" if named is None else _story(named[0].id, node),
                rows=(row,),
            )


def _is_named(rows: Sequence[Record], decision: Record) -> bool:
    return (rows[-1].origin, rows[-1].lsn) == (decision.owner, decision.until)


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
                yield witness(
                    "confirm-not-increasing",
                    f"replica {row.origin} confirmed lsn {row.until} after it had confirmed {before.until}",
                    node.log.node,
                    text(before),
                    text(row),
                    rows=(
                        before,
                        row,
                    ),
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
            yield witness(
                "two-owners-of-a-term",
                f"replicas {first.origin} and {row.origin} both wrote PROMOTE in term {row.term}",
                node.log.node,
                f"{first_node.log.node}: {text(first)}",
                f"{node.log.node}: {text(row)}",
                rows=(
                    first,
                    row,
                ),
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
                yield witness(
                    "term-not-increasing",
                    f"in the log of {node.log.node} term {row.term} comes after term {before.term}",
                    node.log.node,
                    text(before),
                    text(row),
                    rows=(
                        before,
                        row,
                    ),
                )


def two_votes_in_a_term(cluster: Cluster) -> Iterator[Witness]:
    for node in cluster.nodes:
        votes: dict[int, Record] = {}
        for row in node.log.records:
            if row.kind != "vote" or not row.vote:
                continue
            before = votes.setdefault(row.term, row)
            if before.vote != row.vote:
                yield witness(
                    "two-votes-in-a-term",
                    f"{node.log.node} voted for replicas {before.vote} and {row.vote} in term {row.term}",
                    node.log.node,
                    text(before),
                    text(row),
                    rows=(
                        before,
                        row,
                    ),
                )


def promoted_without_votes(cluster: Cluster) -> Iterator[Witness]:
    if not (cluster.has_votes and cluster.is_complete and cluster.quorum):
        return
    voters: dict[tuple[int, int], set[str]] = {}
    for node, row in _rows(cluster, "vote"):
        voters.setdefault((row.term, row.vote), set()).add(node.log.node)
    told: set[tuple[int, int]] = set()
    for node, row in _rows(cluster, "promote"):
        was_by_hand = cluster.first_by_hand and row.waits is not True
        if was_by_hand or row.lsn <= cluster.started.get(row.origin, 0):
            continue
        key = (row.term, row.origin)
        found = voters.get(key, set())
        if len(found) < cluster.quorum and key not in told:
            told.add(key)
            yield witness(
                "promoted-without-votes",
                f"replica {row.origin} wrote PROMOTE in term {row.term} with the votes of {len(found)} nodes, "
                f"{cluster.quorum} are needed",
                node.log.node,
                text(row),
                f"votes are recorded by: {', '.join(sorted(found)) or 'no node'}",
                rows=(row,),
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
                yield witness(
                    "confirmed-without-quorum",
                    f"{name_of(name)} is confirmed and stands in {holders[name]} logs, {cluster.quorum} are needed",
                    node.log.node,
                    _story(name, node),
                    rows=(*_rows_of(name, node),),
                )


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


def _rows(cluster: Cluster, kind: str) -> Iterator[tuple[Replayed, Record]]:
    for node in cluster.nodes:
        for row in node.log.records:
            if row.kind == kind:
                yield node, row


def _story(name: Id, node: Replayed) -> str:
    """This log's record of a transaction: its rows, and what decided about it."""
    rows = "; ".join(text(row) for row in node.transactions[name])
    decision = node.decided_by.get(name)
    by = f", by {text(decision)}" if decision is not None else ""
    return f"{node.log.node}: {rows} is {node.fates[name]}{by}"


def _rows_of(name: Id, node: Replayed) -> tuple[Record, ...]:
    """The rows of a transaction in a log, and the one that decided about it."""
    decision = node.decided_by.get(name)
    rows = tuple(node.transactions[name])
    return rows if decision is None else (*rows, decision)
