"""The state of a node against its own log: its term, its queue, and its quorum.

The evidence is the record of a simulator of disks and nodes (`checkers.logs.wal.effects.Rested`). A node rests when all
that it handed to its disk is durable and the node knows that. Then its state must be what the durable log says, at a
restart as in the middle of a run. Clients may never observe a difference: a queue that is one entry too short confirms
nothing that a quorum lacks until a fault comes in between.

| rule | says |
|---|---|
| state-term | the term and the vote are those that were written last |
| state-owner | the owner of the queue and its term are those of the last PROMOTE that took effect |
| state-queue | in the queue waits what the log has not decided yet |
| state-pending | the PROMOTEs that wait for a quorum are those of the log |
| state-confirmed | the owner's entries are confirmed up to the lsn of the log |
| state-members | the members are the committed ones of the log |
| state-quorum | the quorum follows the members, and elections and reads follow the quorum |
| state-counted | acknowledgements of members count, and no others |
| state-deciding | no CONFIRM or ROLLBACK is on its way to the disk |
| took-of-past-owner | a synchronous transaction of another node than the owner, by its own log, comes to nothing |
| took-contradiction | an asynchronous transaction or a decision of such a node stops the applier |
| promote-names | a PROMOTE names the PROMOTE that waits in its own log, else the last entry that waits there |
| promote-term | it is written in the term that its node wrote last |
| promote-without-quorum | by hand: what it keeps is on the disks of a quorum |
| member-without-quorum | members change by synchronous rows as soon as the queue has an owner |
| member-of-old-rows | a member that comes gets a replica id of which there are no rows |

Queue, owner and PROMOTEs are not compared where a PROMOTE does not say when it takes effect, or the log is of 2.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from checkers.history.history import History
from checkers.history.members import least_quorum
from checkers.history.values import many
from checkers.logs.wal.breaches import one_of_each_first
from checkers.logs.wal.disk import FIRST_TERM, Disk
from checkers.logs.wal.effects import Begun, Durable, Effect, Rested
from checkers.logs.wal.record import Promotes, Record
from checkers.verdict import Verdict, Witness, concluded

NAME = "node-state"
MODEL = "a node is in the state that its log says"


def check(
    history: History,
    *,
    effects: Sequence[Effect] = (),
    promotes: Promotes = "synchronous",
    has_votes: bool = True,
) -> Verdict:
    """Whether every node that rested was in the state of its durable log, and wrote the rows that follow from it.

    `effects` are those of the run, oldest first. Unknown if none of them is `Rested`. `has_votes` False: nodes are
    promoted by hand. `details["states"]`: how many states were compared.
    """
    disks: dict[str, Disk] = {}
    own: dict[str, int] = {}
    witnesses: list[Witness] = []
    reported: set[tuple[str, str]] = set()
    states = 0
    for effect in effects:
        if not isinstance(effect, Durable | Begun | Rested):
            continue
        disk = disks.get(effect.node)
        if disk is None:
            disk = disks[effect.node] = Disk(effect.node, promotes)
        breaches: Iterable[tuple[str, str]] = ()
        match effect:
            case Durable():
                rows = [row.record() for row in effect.rows]
                # First: with its own row on the disk, a node that makes itself a member would break member-of-old-rows.
                before = Before.of(disk)
                disk.take(rows)
                breaches = _breaches(rows, before, disk, own.get(effect.node, 0))
                if not has_votes:
                    breaches = (*breaches, *_without_quorum(history, effect, rows, disks, own))
            case Begun():
                if effect.is_empty:
                    own.pop(effect.node, None)  # it may get another replica id
                disk.begin(effect)
            case Rested():
                states += 1
                own[effect.node] = effect.replica
                breaches = _differences(disk, effect)
        for rule, summary in breaches:
            if (effect.node, rule) not in reported:
                reported.add((effect.node, rule))
                witnesses.append(_witness(rule, summary, effect, _how(rule, disk, effect)))
    if not states:
        return Verdict(
            checker=NAME, model=MODEL, result="unknown", summary="there is no record of the states of nodes"
        )
    witnesses = one_of_each_first(witnesses)
    summary = f"the states of nodes were those of their logs ({many(states, 'state')})"
    details = {"states": states, "violations": len(witnesses)}
    return concluded(NAME, witnesses, summary, model=MODEL, details=details)


@dataclass(frozen=True, slots=True)
class Before:
    """The content of a disk before some rows came."""

    vote_term: int
    owner: int
    queue_term: int
    pending: tuple[Record, ...]
    """PROMOTEs that wait for a quorum."""
    vclock: Mapping[int, int]

    @classmethod
    def of(cls, disk: Disk) -> Before:
        limbo = disk.limbo
        return cls(disk.vote[0], limbo.owner, limbo.term, tuple(limbo.pending), dict(disk.vclock))

    def broken_by(self, row: Record, waits: bool) -> str:
        """The rule that a row breaks if its replica does not own the queue; "" if none.

        `waits`: its transaction is synchronous.
        """
        owner = row.origin if row.kind == "write" else row.owner
        if not self.owner or row.kind not in ("write", "confirm", "rollback") or owner == self.owner:
            return ""
        if row.kind == "write" and waits:
            return "took-of-past-owner"
        takes_over = any(
            owner == promotion.origin and promotion.lsn <= row.until for promotion in self.pending
        )
        return "" if row.kind == "confirm" and takes_over else "took-contradiction"


def _breaches(rows: Sequence[Record], before: Before, disk: Disk, own: int) -> Iterator[tuple[str, str]]:
    """The breaches of new rows, by the disk before them; `own`: the node's replica id, 0 where it is not known."""
    is_one = len({row.id for row in rows}) == 1
    waits = any(row.is_synchronous for row in rows)
    for row in rows:
        is_foreign = is_one and own and row.origin not in (0, own) and not disk.is_unmarked
        if is_foreign and (rule := before.broken_by(row, waits)):
            words = "transaction" if row.kind == "write" else row.kind.upper()
            since = f"and replica {before.owner} has owned the queue since term {before.queue_term}"
            yield rule, f"took in the {words} {row.origin}:{row.lsn} of replica {row.origin}, {since}"
        if row.kind == "promote" and row.origin == own:
            term = max(before.vote_term, FIRST_TERM)
            if row.term != term:
                yield "promote-term", f"wrote a PROMOTE of term {row.term} in term {term}"
            if not disk.is_unmarked and (row.owner, row.until) != disk.limbo.named:
                named, lsn = disk.limbo.named
                wrote = f"wrote a PROMOTE over replica {row.owner} at lsn {row.until}"
                yield "promote-names", f"{wrote}, and its log was at lsn {lsn} of replica {named}"
        if row.member > 0 and before.vclock.get(row.member, 0):
            yield (
                "member-of-old-rows",
                f"made a node replica {row.member}, of which it has {before.vclock[row.member]} rows",
            )
        if row.member and before.owner and not row.is_synchronous:
            yield (
                "member-without-quorum",
                f"wrote the row {row.origin}:{row.lsn} about member {abs(row.member)}, which waits for no quorum",
            )


def _without_quorum(
    history: History,
    durable: Durable,
    rows: Sequence[Record],
    disks: Mapping[str, Disk],
    own: Mapping[str, int],
) -> Iterator[tuple[str, str]]:
    """Breaches by a PROMOTE by hand: an operator's node counts acknowledgements before it writes one."""
    for row in rows:
        if row.kind != "promote" or row.origin != own.get(durable.node) or not row.until:
            continue
        needed = least_quorum(history, (durable.written_ns, durable.time_ns))
        holders = [node for node, disk in disks.items() if disk.vclock.get(row.owner, 0) >= row.until]
        if needed is not None and len(holders) < needed:
            had = ", ".join(sorted(holders)) or "no node"
            kept = f"wrote a PROMOTE that keeps lsn {row.until} of replica {row.owner}"
            yield "promote-without-quorum", f"{kept}, which only {had} had; {needed} are needed"


def _differences(disk: Disk, state: Rested) -> Iterator[tuple[str, str]]:
    """The broken rules, each with the state of the node and that of its log."""
    term, vote = disk.vote
    if not max(term, FIRST_TERM) <= state.term <= disk.term:
        yield "state-term", f"is in term {state.term}, and its log in {disk.term}"
    elif term == state.term and vote != state.vote:
        yield "state-term", f"has the vote {state.vote} in term {term}, and its log {vote}"
    if not disk.is_unmarked:
        yield from _of_the_queue(disk, state)
    members = disk.members
    if members and members != state.members:
        yield "state-members", f"has the members {_ids(state.members)}, and its log {_ids(members)}"
    if state.is_deciding:
        yield "state-deciding", "takes a CONFIRM or ROLLBACK to be on its way to the disk, and none is"
    yield from _of_counting(state)


def _of_the_queue(disk: Disk, state: Rested) -> Iterator[tuple[str, str]]:
    limbo = disk.limbo
    of_log = limbo.owner, max(limbo.term, FIRST_TERM)
    if (state.owner, state.queue_term) != of_log:
        yield (
            "state-owner",
            f"has the owner {state.owner} in term {state.queue_term}, and its log {of_log[0]} in term {of_log[1]}",
        )
    if state.waiting != len(limbo.queue):
        yield (
            "state-queue",
            f"has {state.waiting} transactions in its queue, and by its own log {len(limbo.queue)} wait",
        )
    if state.pending != len(limbo.pending):
        yield (
            "state-pending",
            f"has {state.pending} PROMOTEs that wait for a quorum, and its log {len(limbo.pending)}",
        )
    confirmed = limbo.confirmed_of.get(limbo.owner, 0)
    if limbo.owner and state.confirmed != confirmed:
        yield (
            "state-confirmed",
            f"has confirmed up to lsn {state.confirmed}, and its own log says up to {confirmed}",
        )


def _of_counting(state: Rested) -> Iterator[tuple[str, str]]:
    members = len(state.members)
    if state.is_majority and state.quorum != members // 2 + 1:
        yield "state-quorum", f"has a quorum of {state.quorum} with {members} members"
    if state.election_quorum != min(state.quorum, max(members, 1)):
        yield "state-quorum", f"elects with {state.election_quorum} votes, and its quorum is {state.quorum}"
    others = members - state.quorum + (state.replica == 0)
    if state.asked >= 0 and state.asked != max(others, 0):
        yield (
            "state-quorum",
            f"asks {state.asked} others for a linearizable read, with {members} members and a quorum of {state.quorum}",
        )
    strangers = set(state.counted) - {*state.members, state.replica}
    if strangers:
        yield (
            "state-counted",
            f"counts acknowledgements of {_ids(sorted(strangers))}, which are not members",
        )


def _ids(replicas: Sequence[int]) -> str:
    return ", ".join(map(str, replicas)) or "none"


def _how(rule: str, disk: Disk, state: Durable | Begun | Rested) -> str:
    """Of a queue: whether it is longer or shorter, where it is, and whether the node confirms more than its log."""
    if rule != "state-queue" or not isinstance(state, Rested):
        return ""
    side = "more" if state.waiting > len(disk.limbo.queue) else "fewer"
    where = "at the owner" if state.owner == state.replica else "in a follower"
    term = ", of an older term" if state.queue_term < state.term else ""
    ahead = state.confirmed > disk.limbo.confirmed_of.get(disk.limbo.owner, 0)
    return f"{side} than its log, {where}{term}{', which confirms less' if ahead else ''}"


def _witness(rule: str, summary: str, state: Durable | Begun | Rested, how: str) -> Witness:
    return Witness(
        rule=rule,
        summary=f"{state.node} {summary}",
        events=(),
        node=state.node,
        start_ns=state.time_ns,
        end_ns=state.time_ns,
        how=how,
    )
