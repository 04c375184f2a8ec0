"""The states of nodes against their own logs: records of disks and states written by hand."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from checkers import CHECKERS, Verdict
from checkers.history.history import Header, History
from checkers.logs.wal import Record
from checkers.logs.wal.effects import Begun, Durable, Effect, Rested, of_lines, to_lines
from checkers.logs.wal.replay import Limbo, Replayed, transactions
from checkers.logs.wal.state import MODEL, NAME, check
from tests.checkers.logs.wal.logs import confirm, log, nop, promote, rollback, vote, write
from tests.checkers.logs.wal.over_objects import replay
from tests.checkers.logs.wal.test_early import durable, line

HEADER = Header(nodes=("n1", "n2", "n3"), quorum=2)
OPENED = replace(promote(1, 1, over=0, until=0, term=2), waits=False)
WRITE, CONFIRM = write(1, 2), confirm(1, 3, until=2)
VOTE = vote(1, 2, 1)
MEMBERS = (1, 2, 3)
BEGUN = Begun(1, "n1", (), 0, members=MEMBERS)
CANDIDATE = replace(promote(2, 1, over=1, until=2, term=3), waits=True)


def rested(time_ns: int, node: str = "n1", **fields: Any) -> Rested:
    """Replica 1 leads and owns the queue in term 2; all three nodes are members, and a majority is two."""
    state = Rested(
        time_ns,
        node,
        replica=1,
        term=2,
        vote=1,
        owner=1,
        queue_term=2,
        waiting=0,
        pending=0,
        confirmed=0,
        members=MEMBERS,
        counted=(1, 2),
        quorum=2,
        election_quorum=2,
        asked=1,
        is_majority=True,
        is_deciding=False,
    )
    return msgspec.structs.replace(state, **fields)


def on_disk(time_ns: int, *rows: Record) -> Durable:
    return durable(time_ns, "n1", *rows)


def registered(origin: int, lsn: int, member: int, *, waits: bool = True) -> Durable:
    row = line(write(origin, lsn, waits=waits))
    return Durable(30, "n1", (msgspec.structs.replace(row, member=member),))


SOUND: tuple[Effect, ...] = (
    BEGUN,
    on_disk(2, VOTE),
    on_disk(3, OPENED),
    rested(4),
    on_disk(5, WRITE),
    rested(6, waiting=1),
    on_disk(7, CONFIRM),
    rested(8, confirmed=2),
)


def judged(*effects: Effect, **options: Any) -> Verdict:
    return check(History.of(HEADER, ()), effects=effects, **options)


BREACHES: dict[str, tuple[tuple[Effect, ...], dict[str, Any]]] = {
    "state-term": ((*SOUND, rested(9, confirmed=2, vote=0)), {}),
    "state-owner": ((*SOUND, rested(9, confirmed=2, queue_term=1)), {}),
    "state-queue": ((*SOUND[:5], rested(9)), {}),
    "state-pending": ((*SOUND, on_disk(9, CANDIDATE), rested(10, confirmed=2)), {}),
    "state-confirmed": ((*SOUND[:7], rested(9, confirmed=1)), {}),
    "state-members": ((*SOUND, rested(9, confirmed=2, members=(1, 2), asked=0, counted=(1,))), {}),
    "state-quorum": ((*SOUND, rested(9, confirmed=2, quorum=3, election_quorum=3, asked=0)), {}),
    "state-counted": ((*SOUND, rested(9, confirmed=2, counted=(1, 4))), {}),
    "state-deciding": ((*SOUND, rested(9, confirmed=2, is_deciding=True)), {}),
    "promote-names": (
        (*SOUND[:5], on_disk(6, vote(2, 3, 1)), on_disk(7, promote(1, 4, over=1, until=1, term=3))),
        {},
    ),
    "promote-term": ((*SOUND, on_disk(9, replace(promote(1, 4, over=1, until=2, term=3), waits=False))), {}),
    "promote-without-quorum": (
        (*SOUND[:5], on_disk(6, vote(2, 3, 0)), on_disk(7, promote(1, 3, over=1, until=2, term=3))),
        {"has_votes": False},
    ),
    "member-without-quorum": ((*SOUND, registered(1, 4, 4, waits=False)), {}),
    "member-of-old-rows": ((BEGUN, on_disk(2, write(4, 1)), *SOUND[1:], registered(1, 4, 4)), {}),
    "took-of-past-owner": ((*SOUND, on_disk(9, write(2, 1))), {}),
    "took-contradiction": ((*SOUND, on_disk(9, write(2, 1, waits=False))), {}),
}


@pytest.mark.parametrize("rule", BREACHES)
def test_every_rule_refuses_the_record_that_breaks_it(rule: str) -> None:
    """Breaks if a node whose state differs from its log passed unseen."""
    effects, options = BREACHES[rule]
    marked = tuple(_waiting(each) for each in effects)
    assert {witness.rule for witness in judged(*marked, **options).witnesses} == {rule}


def _waiting(effect: Effect) -> Effect:
    """PROMOTEs that say nothing wait: the queue of a log with one that is silent is not compared."""
    if not isinstance(effect, Durable):
        return effect
    rows = tuple(
        msgspec.structs.replace(row, waits=True) if row.kind == "promote" and row.waits is None else row
        for row in effect.rows
    )
    return msgspec.structs.replace(effect, rows=rows)


TAKEN: dict[str, tuple[Effect, ...]] = {
    "a CONFIRM of a past owner": (*SOUND, on_disk(9, confirm(2, 1, until=9))),
    "a ROLLBACK of a past owner": (*SOUND, on_disk(9, rollback(2, 1, start=9))),
    "a CONFIRM behind that of the PROMOTE": (
        *SOUND,
        on_disk(9, CANDIDATE),
        on_disk(10, confirm(2, 2, until=1)),
        durable(11, "n1", confirm(3, 1, until=2, owner=1)),
    ),
}


@pytest.mark.parametrize("case", TAKEN)
def test_nothing_of_a_past_owner_takes_effect(case: str) -> None:
    """Breaks if a node could let a deposed owner write or decide, and only later losses would show it."""
    assert "took-contradiction" in {witness.rule for witness in judged(*TAKEN[case]).witnesses}


def test_a_transaction_of_two_rows_is_one() -> None:
    """Breaks if the first row of a synchronous transaction, which has no flag, were called asynchronous."""
    first, last = replace(write(2, 1, waits=False), ends=False), replace(write(2, 2), first=1)
    found = judged(*SOUND, on_disk(9, first, last)).witnesses
    assert [witness.rule for witness in found] == ["took-of-past-owner"]


NEIGHBOURS: dict[str, tuple[Effect, ...]] = {
    "sound": SOUND,
    "a vote for no node": (*SOUND, on_disk(9, vote(2, 3, 0)), rested(10, term=3, vote=0, confirmed=2)),
    "a PROMOTE that waits": (
        *SOUND,
        on_disk(9, CANDIDATE),
        rested(10, confirmed=2, pending=1, term=3, vote=0),
    ),
    "fewer members, by the log": (
        *SOUND,
        registered(1, 4, -3),
        rested(9, confirmed=2, waiting=1),
        on_disk(10, confirm(1, 5, until=4)),
        rested(11, confirmed=4, members=(1, 2), asked=0),
    ),
    "a member that came before the queue had an owner": (
        BEGUN,
        registered(1, 1, 4, waits=False),
        rested(40, term=1, vote=0, owner=0, queue_term=1, members=(1, 2, 3, 4), quorum=3, election_quorum=3),
    ),
    "a node that makes itself a member by its first row": (
        Begun(1, "n1", (), 0),
        registered(1, 1, 1, waits=False),
        rested(
            40,
            term=1,
            vote=0,
            owner=0,
            queue_term=1,
            members=(1,),
            counted=(1,),
            quorum=1,
            election_quorum=1,
            asked=0,
        ),
    ),
    "a quorum that is a number": (
        *SOUND,
        rested(9, confirmed=2, quorum=3, election_quorum=3, asked=0, is_majority=False),
    ),
    "an anonymous replica, which asks one more": (
        BEGUN,
        rested(2, replica=0, term=1, vote=0, owner=0, queue_term=1, counted=(), asked=2),
    ),
    "of a past owner only numbers": (*SOUND, on_disk(9, nop(2, 1)), rested(10, confirmed=2)),
    "a CONFIRM that lets a PROMOTE take effect": (
        *SOUND,
        on_disk(9, CANDIDATE),
        on_disk(10, confirm(2, 2, until=1)),
        on_disk(11, write(2, 3)),
        on_disk(12, confirm(2, 4, until=3)),
        rested(13, owner=2, queue_term=3, term=3, vote=0, confirmed=3),
    ),
    "anybody's asynchronous rows before the queue has an owner": (
        BEGUN,
        on_disk(2, VOTE),
        rested(3, owner=0, queue_term=1),
        on_disk(4, write(2, 1, waits=False)),
        rested(5, owner=0, queue_term=1),
    ),
    "the state of a snapshot": (
        Begun(1, "n1", ((1, 9),), 4, vote=2, owner=1, queue_term=4, confirmed=((1, 7),), members=MEMBERS),
        rested(2, term=4, vote=2, queue_term=4, confirmed=7),
    ),
}


@pytest.mark.parametrize("case", NEIGHBOURS)
def test_what_the_log_says_is_accepted(case: str) -> None:
    """Breaks if the check were an alarm about a node that follows its log."""
    verdict = judged(*NEIGHBOURS[case])
    assert (verdict.result, verdict.model) == ("valid", MODEL), verdict.witnesses


def test_a_promote_by_hand_may_keep_what_a_quorum_has() -> None:
    """Breaks if a promotion that counted acknowledgements were blamed."""
    kept = on_disk(7, replace(promote(1, 3, over=1, until=2, term=3), waits=False))
    effects = (*SOUND[:5], durable(6, "n2", WRITE), on_disk(6, vote(2, 3, 0)), kept)
    assert judged(*effects, has_votes=False).result == "valid"


def test_the_queue_is_not_compared_behind_a_promote_that_does_not_say_when_it_takes_effect() -> None:
    """Breaks if logs of older versions, whose PROMOTEs are read by what follows them, were an alarm."""
    silent = replace(OPENED, waits=None)
    assert (
        judged(BEGUN, on_disk(2, VOTE), on_disk(3, silent), rested(4, waiting=5, owner=3)).result == "valid"
    )


def test_the_queue_is_not_compared_behind_a_log_of_2_6() -> None:
    """Breaks if a CONFIRM of an owner whom no PROMOTE names, which later versions ignore, were an alarm."""
    assert judged(BEGUN, on_disk(2, WRITE, CONFIRM, VOTE), on_disk(3, OPENED), rested(4)).result == "valid"


def test_without_states_nothing_is_said() -> None:
    """Breaks if a run whose nodes were not observed counted as one in which all was in order."""
    assert CHECKERS[NAME](History.of(HEADER, ())).result == "unknown"
    assert judged(BEGUN, on_disk(2, VOTE)).result == "unknown"


def test_the_record_survives_its_file() -> None:
    """Breaks if a stored run were judged by other states than the run was."""
    effects = tuple(effect for each, _ in BREACHES.values() for effect in each)
    assert of_lines(to_lines(effects)) == effects


@st.composite
def owned_logs(draw: st.DrawFn) -> list[Record]:
    """What one owner may write."""
    records = [OPENED]
    for lsn in range(2, 2 + draw(st.integers(1, 12))):
        kind = draw(st.sampled_from([write, write, confirm, rollback]))
        until = draw(st.integers(1, lsn))
        records.append(write(1, lsn) if kind is write else kind(1, lsn, until))  # type: ignore[operator]
    return records


@st.composite
def logs_of_three(draw: st.DrawFn) -> list[Record]:
    """What three replicas may write, in any order: PROMOTEs that wait or not, and whatever follows."""
    records, last, term = [OPENED], Counter({1: 1}), 2
    for _ in range(draw(st.integers(1, 14))):
        origin = draw(st.sampled_from((1, 2, 3)))
        last[origin] += 1
        lsn, until = last[origin], draw(st.integers(1, last[origin]))
        match draw(st.sampled_from(("write", "async", "nop", "confirm", "confirm", "rollback", "promote"))):
            case "write":
                records.append(write(origin, lsn))
            case "async":
                records.append(write(origin, lsn, waits=False))
            case "nop":
                records.append(nop(origin, lsn))
            case "confirm":
                records.append(confirm(origin, lsn, until))
            case "rollback":
                records.append(rollback(origin, lsn, until))
            case _:
                term += 1
                row = promote(origin, lsn, over=draw(st.sampled_from((1, 2, 3))), until=until, term=term)
                records.append(replace(row, waits=draw(st.booleans())))
    return records


@given(logs_of_three())
def test_whose_rows_are_taken_is_judged_as_by_the_whole_log_before_each(records: list[Record]) -> None:
    """Breaks if a row were judged by any other owner than that of the last PROMOTE in effect before the row."""
    rows = [on_disk(place, row) for place, row in enumerate(records, 3)]
    found = judged(BEGUN, rested(2, term=1, vote=0, owner=0, queue_term=1), *rows).witnesses
    told = {(witness.rule, witness.start_ns) for witness in found if witness.rule.startswith("took-")}
    expected: dict[str, int] = {}
    for place, row in enumerate(records):
        before = Limbo(Replayed(log("n1", *records[:place])), "synchronous")
        for rows_of_one in transactions(before.replayed.log):
            before.read(rows_of_one)
        whose = row.origin if row.kind == "write" else row.owner
        is_taken = row.kind in ("write", "confirm", "rollback") and whose != before.owner
        decides = row.kind == "confirm" and any(
            one.origin == whose and one.lsn <= row.until for one in before.pending
        )
        if row.origin != 1 and before.owner and is_taken and not decides:
            rule = "took-of-past-owner" if row.is_synchronous else "took-contradiction"
            expected.setdefault(rule, place + 3)
    assert told == set(expected.items())


@given(owned_logs(), st.integers(0, 12), st.integers(0, 6))
def test_the_check_and_its_twin_say_the_same(records: list[Record], length: int, waiting: int) -> None:
    """Breaks if following a disk row by row differed from replaying the log that it has."""
    prefix = records[: 1 + length]
    fates = replay(log("n1", *prefix)).fates.values()
    limbo_confirmed = max((row.until for row in prefix if row.kind == "confirm"), default=0)
    rows = [on_disk(place, row) for place, row in enumerate(prefix, 3)]
    verdict = judged(BEGUN, on_disk(2, VOTE), *rows, rested(90, waiting=waiting, confirmed=limbo_confirmed))
    is_right = list(fates).count("pending") == waiting
    assert verdict.result == ("valid" if is_right else "invalid")
