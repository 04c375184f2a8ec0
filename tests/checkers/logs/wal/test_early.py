"""Answers and acknowledgements that came too early: records of disks and links written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from checkers import CHECKERS, Verdict
from checkers.history.history import Header, History
from checkers.history.operation import Event
from checkers.logs.wal import LogRules, Logs, Marks, Record
from checkers.logs.wal.early import LATE_NS, MODEL, NAME, check, check_by_clocks
from checkers.logs.wal.effects import Answered, Begun, Claimed, Durable, Effect, RowLine, of_lines, to_lines
from tests.checkers.logs.wal.logs import confirm, log, promote, rollback, vote, write
from tests.checkers.logs.wal.over_objects import replay

HEADER = Header(nodes=("n1", "n2", "n3"), quorum=2)
OPENED = promote(1, 1, over=0, until=0, term=1)


def history(wait: str | None = None, outcome: str = "ok") -> History:
    """One write of process 7 at n1, from 10 to 90."""
    asked = Event(
        index=0, time_ns=10, type="invoke", process=7, f="write", key="x", value=2, node="n1", wait=wait
    )
    told = replace_event(asked, outcome)
    return History.of(HEADER, (asked, told))


def replace_event(asked: Event, outcome: str) -> Event:
    return Event(
        index=1,
        time_ns=90,
        type=outcome,
        process=7,
        f="write",
        key="x",
        value=2,
        node="n1",
        wait=asked.wait,  # type: ignore[arg-type]
    )


def line(row: Record) -> RowLine:
    decision = (row.owner, row.until, row.term, row.vote)
    told = (row.origin, row.lsn, row.first, row.ends, row.is_synchronous)
    return RowLine(row.kind, *told, *decision, waits=row.waits)


def durable(time_ns: int, node: str, *rows: Record, process: int | None = None) -> Durable:
    return Durable(time_ns, node, tuple(map(line, rows)), process, 20)


WRITE, CONFIRM = write(1, 2), confirm(1, 3, until=2)
SOUND: tuple[Effect, ...] = (
    *(durable(1, node, OPENED) for node in HEADER.nodes),
    durable(30, "n1", WRITE, process=7),
    durable(40, "n2", WRITE),
    Claimed(41, "n2", "acknowledgement", ((1, 2),), 1, 0),
    durable(60, "n1", CONFIRM),
    Answered(70, "n1", 7),
)


def judged(effects: Sequence[Effect], run: History | None = None) -> Verdict:
    return check(run or history(), effects=effects, promotes="at once")


def without(place: int) -> tuple[Effect, ...]:
    return SOUND[:place] + SOUND[place + 1 :]


WRITTEN = (*SOUND[:3], durable(4, "n1", WRITE), durable(5, "n2", WRITE))
"""By a process that is not the reader."""
READS: dict[str, tuple[Effect, ...]] = {
    "shown-before-confirm": (*WRITTEN, Answered(50, "n1", 7), SOUND[6]),
    "read-behind": (*WRITTEN, durable(8, "n1", CONFIRM), Answered(50, "n2", 7)),
}
"""One read of process 7, from 10 to 90."""


BREACHES: dict[str, tuple[Effect, ...]] = {
    "answered-before-confirm": (*without(6)[:-1], Answered(50, "n1", 7), SOUND[6]),
    "answered-before-quorum": (*SOUND[:4], SOUND[6], SOUND[7], SOUND[4]),
    "claimed-before-durable": (*SOUND[:4], SOUND[5], SOUND[4], *SOUND[6:]),
    "term-not-durable": (*SOUND, Claimed(80, "n3", "election", (), 2, 0)),
    "term-lost": (*SOUND[:7], durable(65, "n3", vote(1, 2, 0)), Begun(66, "n3", ((1, 3),), 1), SOUND[7]),
    "rows-lost": (
        *SOUND[:7],
        durable(61, "n3", WRITE),
        Begun(66, "n3", ((1, 1), (2, 9)), 1),
        Claimed(67, "n3", "acknowledgement", ((1, 1), (2, 9)), 1, 0),
        SOUND[7],
    ),
    "vote-not-durable": (*SOUND, durable(80, "n3", vote(1, 2, 0)), Claimed(81, "n3", "election", (), 2, 1)),
}


@pytest.mark.parametrize("rule", BREACHES)
def test_every_rule_refuses_the_record_that_breaks_it(rule: str) -> None:
    """Breaks if an answer, an acknowledgement or a vote that came too early passed unseen."""
    verdict = judged(BREACHES[rule])
    assert verdict.result == "invalid"
    assert set(verdict.details["breaches"]) == {rule}, verdict.witnesses


def read(mode: str = "linearizable") -> History:
    """One read of the value 2 by process 7 at n1, from 10 to 90."""
    asked = Event(index=0, time_ns=10, type="invoke", process=7, f="read", key="x", node="n1", mode=mode)
    told = Event(index=1, time_ns=90, type="ok", process=7, f="read", key="x", value=2, node="n1", mode=mode)
    return History.of(HEADER, (asked, told))


@pytest.mark.parametrize("rule", READS)
def test_a_read_that_shows_too_much_or_too_little_is_refused(rule: str) -> None:
    """Breaks if a read of a value that still waits, or behind what was confirmed before, passed unseen."""
    verdict = check(
        read(),
        effects=READS[rule],
        promotes="at once",
        shown={0: [WRITE.id]} if rule == "shown-before-confirm" else {},
        linearizable_reads=True,
    )
    assert set(verdict.details["breaches"]) == {rule}, verdict.witnesses


@pytest.mark.parametrize(
    ("owner", "newer", "said"),
    [
        (2, 1, "the owner"),
        (2, 2, "the owner, and another has a newer one"),
        (1, 1, "a follower"),
    ],
)
def test_a_read_that_is_behind_tells_what_its_node_took_itself_for(owner: int, newer: int, said: str) -> None:
    """Breaks if a deposed owner that answers by itself, an owner that was elected without all that is confirmed, and a
    wrong answer of those that were asked were one cause."""
    status = {"up": True, "id": 2, "wall_ns": 95}
    seen = Event(index=2, time_ns=95, type="info", process="monitor", f="state", node="n2", value=status)
    mine = durable(3, "n2", promote(owner, 1, over=0, until=0, term=1))
    its = durable(3, "n3", promote(3, 1, over=0, until=0, term=newer))
    verdict = check(
        History.of(HEADER, (*read().events, seen)),
        effects=(mine, its, *READS["read-behind"]),
        promotes="at once",
        linearizable_reads=True,
    )
    assert [each.how for each in verdict.witnesses] == [f"its own log has it as {said}"]


def test_a_read_of_what_is_confirmed_or_not_recorded_is_right() -> None:
    """Breaks if a store that keeps its order were blamed for every read, or for a row that the record lacks."""
    confirmed = (*WRITTEN, durable(8, "n1", CONFIRM), Answered(50, "n1", 7))
    for name in (WRITE.id, (1, 99)):
        verdict = check(read(), effects=confirmed, promotes="at once", shown={0: [name]})
        assert verdict.result == "valid", verdict.witnesses


def test_reads_are_held_to_their_promise_alone() -> None:
    """Breaks if a store that promises no linearizable reads were blamed for a read at a node that lags."""
    effects = READS["read-behind"]
    assert check(read(), effects=effects, promotes="at once").result == "valid"
    stale = check(read("read-confirmed"), effects=effects, promotes="at once", linearizable_reads=True)
    assert stale.result == "valid"
    late = (*effects[:-1], durable(40, "n2", CONFIRM), effects[-1])
    assert check(read(), effects=late, promotes="at once", linearizable_reads=True).result == "valid"


def test_a_confirm_of_a_promote_is_about_what_that_promote_keeps() -> None:
    """Breaks if a node that lacks the CONFIRM of a PROMOTE, and nothing that clients wrote, were behind."""
    again = promote(1, 4, over=1, until=2, term=2)
    confirmed = (durable(6, "n1", CONFIRM), durable(6, "n2", CONFIRM))
    effects = (*WRITTEN, *confirmed, durable(7, "n1", again, confirm(1, 5, until=4)))
    verdict = check(
        read(), effects=(*effects, Answered(50, "n2", 7)), promotes="synchronous", linearizable_reads=True
    )
    assert verdict.result == "valid", verdict.witnesses


def test_a_vote_on_the_disk_may_be_sent_and_another_is_one_breach() -> None:
    """Broken, every vote would be an alarm, or one that is not on the disk as many as there are messages with it."""
    voted = (*SOUND, durable(80, "n3", vote(1, 2, 1)), Claimed(81, "n3", "election", (), 2, 1))
    assert judged(voted).result == "valid"
    other = [Claimed(time_ns, "n3", "election", (), 2, 2) for time_ns in (82, 83)]
    assert judged((*voted, *other)).details["breaches"] == {"vote-not-durable": 1}


def test_an_emptied_disk_holds_no_term_and_no_vote() -> None:
    """Broken, a node that lost its disk could vote twice in a term, or send a term that it has not."""
    voted = (*SOUND, durable(80, "n3", vote(1, 2, 1)))
    said = Claimed(82, "n3", "election", (), 2, 1)
    for term, rule in ((1, "term-not-durable"), (2, "vote-not-durable")):
        verdict = judged((*voted, Begun(81, "n3", (), term, is_empty=True), said))
        assert verdict.details["breaches"] == {rule: 1}


def test_a_snapshot_of_rows_that_are_here_is_no_join() -> None:
    """Broken, a node that writes a snapshot would be blamed for the term that it had before."""
    voted = (*SOUND, durable(80, "n1", vote(1, 2, 1)))
    assert judged((*voted, Begun(81, "n1", ((1, 3),), 1))).result == "valid"


def test_a_quorum_that_a_node_may_have_counted_by_is_enough() -> None:
    """Broken, a write would be condemned by a quorum that came while it ran, or by one that is not known."""
    asked, told = history().events
    value = {"nodes": list(HEADER.nodes), "quorum": 3, "settled": True}
    change = Event(index=1, time_ns=50, type="info", process="harness", f="members", value=value)
    run = History.of(HEADER, (asked, change, structs.replace(told, index=2)))
    assert judged(SOUND, run).result == "valid"
    unknown = History.of(Header(nodes=HEADER.nodes), history().events)
    assert judged(BREACHES["answered-before-quorum"], unknown).result == "valid"


def test_a_read_is_not_behind_a_confirm_of_its_own_moment_nor_behind_its_snapshot() -> None:
    """Broken, a node would be blamed for a CONFIRM that came with the question, or for what it got as data."""
    at_once = (*WRITTEN, durable(10, "n1", CONFIRM), Answered(50, "n2", 7))
    assert check(read(), effects=at_once, promotes="at once", linearizable_reads=True).result == "valid"
    joined = (Begun(7, "n3", ((1, 3),), 1), durable(8, "n1", CONFIRM), Answered(50, "n3", 7))
    assert (
        check(read(), effects=(*WRITTEN, *joined), promotes="at once", linearizable_reads=True).result
        == "valid"
    )


def test_what_any_log_had_confirmed_counts_and_what_it_discarded_does_not() -> None:
    """Broken, a log that confirms less hides one that confirms more, or a ROLLBACK is a CONFIRM."""
    more, whole = write(1, 3), (confirm(1, 4, until=2), confirm(1, 5, until=3))
    logs = [durable(7, node, WRITE, more) for node in HEADER.nodes]
    less = (durable(8, "n1", *whole), durable(9, "n2", whole[0]), Answered(50, "n2", 7))
    verdict = check(read(), effects=(*logs, *less), promotes="at once", linearizable_reads=True)
    assert set(verdict.details["breaches"]) == {"read-behind"}
    discarded = (*logs, durable(8, "n1", rollback(1, 4, 3)), Answered(50, "n2", 7))
    assert check(read(), effects=discarded, promotes="at once", linearizable_reads=True).result == "valid"


def test_promotes_that_name_each_other_come_to_an_end() -> None:
    """Broken, the judge would hang over a node that writes a PROMOTE of its own lsn."""
    rows = (promote(1, 2, over=2, until=1, term=2), promote(2, 1, over=1, until=2, term=3), confirm(1, 3, 2))
    assert judged((*SOUND[:3], durable(30, "n1", *rows))).details["claims"] == 0


def test_a_sound_record_breaks_none() -> None:
    """Breaks if the check were an alarm about a store that keeps its order."""
    verdict = judged(SOUND)
    assert (verdict.result, verdict.model) == ("valid", MODEL)
    assert (verdict.details["writes"], verdict.details["claims"]) == (1, 1)


def test_without_a_record_nothing_is_said() -> None:
    """Breaks if a run that nobody watched counted as one in which all was in order."""
    assert CHECKERS[NAME](history()).result == "unknown"


@pytest.mark.parametrize(
    "run",
    [
        history(wait="submit"),
        history(wait="none"),
        history(outcome="info"),
        History.of(HEADER, history().events[:1]),
    ],
    ids=["submit", "none", "info", "never over"],
)
def test_what_promises_no_confirmation_is_not_judged(run: History) -> None:
    """Breaks if a write that was only to be submitted were condemned for being answered at once."""
    verdict = judged(BREACHES["answered-before-confirm"], run)
    assert verdict.result == "valid"
    assert verdict.details["vacuous"]


def test_an_asynchronous_write_needs_its_own_disk_alone() -> None:
    """Breaks if a quorum were asked of what no quorum is promised for; or its disk were not."""
    alone = write(1, 2, waits=False)
    on_disk = (*SOUND[:3], durable(30, "n1", alone, process=7))
    assert judged((*on_disk, Answered(40, "n1", 7))).result == "valid"
    early = (*SOUND[:3], Answered(25, "n1", 7), durable(30, "n1", alone, process=7))
    assert set(judged(early).details["breaches"]) == {"answered-before-confirm"}


def test_a_transaction_of_several_rows_is_one() -> None:
    """Broken, a transaction would be judged by one row: as asynchronous, or as safe where the last row is missing."""
    for waits in (True, False):
        first = structs.replace(write(1, 2, waits=waits), first=2, ends=False)
        rows = (first, structs.replace(write(1, 3, waits=not waits), first=2))
        written = (*SOUND[:3], durable(30, "n1", *rows, process=7), durable(60, "n1", confirm(1, 4, until=3)))
        alone = judged((*written, SOUND[7]))
        assert (set(alone.details["breaches"]), alone.details["writes"]) == ({"answered-before-quorum"}, 1)
        both = judged((*written[:4], durable(40, "n2", *rows), *written[4:], SOUND[7]))
        assert (both.result, both.details["writes"]) == ("valid", 1)


def test_what_a_snapshot_holds_is_held() -> None:
    """Breaks if a node that joined were blamed for rows that it got as data."""
    joined = (
        Begun(45, "n3", ((1, 3),), 1),
        Claimed(46, "n3", "acknowledgement", ((1, 3),), 1, 0),
        Begun(47, "n2", (), 0, is_empty=True),
    )
    assert judged((*SOUND[:5], *joined, *SOUND[6:])).result == "valid"
    emptied = (joined[2], Claimed(48, "n2", "subscription", ((1, 2),), 0, 0))
    assert set(judged((*SOUND, *emptied)).details["breaches"]) == {"claimed-before-durable"}


def test_a_node_that_joins_anew_and_keeps_all_is_left_in_peace() -> None:
    """Breaks if the log behind the snapshot, which brings back what the snapshot lacks, were not counted."""
    anew = (
        durable(61, "n3", WRITE, vote(1, 2, 0)),
        Begun(66, "n3", ((1, 1), (2, 9)), 2),
        durable(67, "n3", WRITE),
        Claimed(68, "n3", "acknowledgement", ((1, 2), (2, 9)), 2, 0),
        Claimed(69, "n3", "election", (), 2, 0),
    )
    assert judged((*SOUND[:7], *anew, SOUND[7])).result == "valid"


def test_a_write_is_joined_by_what_it_alone_wrote_where_no_request_tells() -> None:
    """Breaks if a node that writes a row in a later step than its request were never judged."""
    untold = tuple(
        Durable(each.time_ns, each.node, each.rows) if isinstance(each, Durable) else each
        for each in BREACHES["answered-before-quorum"]
    )
    assert judged(untold).details["not_joined"] == 1
    assert judged(untold, history(outcome="info")).details["not_joined"] == 0
    verdict = check(history(), effects=untold, promotes="at once", joined={0: [(1, 2)]})
    assert set(verdict.details["breaches"]) == {"answered-before-quorum"}


def test_the_record_survives_its_file() -> None:
    """Breaks if a stored run were judged by another record than the run was."""
    effects = tuple(effect for each in BREACHES.values() for effect in each)
    assert of_lines(to_lines(effects)) == effects
    assert of_lines(to_lines(effects) + b'["d",1') == effects


AHEAD_NS = 1_700_000_000_000_000_000


def by_clocks(
    confirmed_ns: int | None, *, clock_fault: bool = False, asked: History | None = None
) -> Verdict:
    """The write of `history`, answered at 90, with a CONFIRM that its origin's clock dates so long after that.

    None: the row has no time.
    """
    states = [
        Event(index=index, time_ns=time_ns, type="info", process="monitor", f="state", node="n1", value=value)
        for index, (time_ns, value) in enumerate(
            [
                (95, {"up": True, "id": 1, "wall_ns": AHEAD_NS + 80}),
                (99, {"up": True, "id": 1, "wall_ns": AHEAD_NS + 99}),
                (LATE_NS, {"up": True, "id": 1, "wall_ns": AHEAD_NS + 100}),  # a report that came late
            ],
            start=2,
        )
    ]
    fault = {"id": 1, "name": "clock", "does": "clock", "nodes": ["n1"]}
    faults = [Event(index=5, time_ns=LATE_NS, type="invoke", process="nemesis", f="clock", value=fault)]
    run = asked or history()
    run = History.of(HEADER, (*run.events, *states, *(faults if clock_fault else [])))
    dated_ns = 0 if confirmed_ns is None else AHEAD_NS + 90 + confirmed_ns
    decided = structs.replace(CONFIRM, time_ns=dated_ns)
    logs = Logs.of([log("n1", OPENED, WRITE, decided)], LogRules(promotes="at once"))
    return check_by_clocks(run, logs, Marks.of(run, logs))


def test_by_clocks_an_answer_long_before_its_confirm_is_refused() -> None:
    """Breaks if a real store that answers a second before it has a quorum were never found."""
    verdict = by_clocks(LATE_NS + 1)
    assert [witness.rule for witness in verdict.witnesses] == ["answered-before-confirm"]
    assert verdict.witnesses[0].events == (0, 1)


@pytest.mark.parametrize("confirmed_ns", [LATE_NS, 0, -50])
def test_by_clocks_what_lies_within_the_bound_passes(confirmed_ns: int) -> None:
    """Breaks if the time that a monitor's question takes were an alarm."""
    verdict = by_clocks(confirmed_ns)
    assert (verdict.result, verdict.details["writes"]) == ("valid", 1)


def test_with_a_clock_fault_nothing_is_judged_by_clocks() -> None:
    """Breaks if a clock that a fault has set were believed."""
    verdict = by_clocks(LATE_NS + 1, clock_fault=True)
    assert (verdict.result, verdict.details["vacuous"]) == ("valid", True)


def test_rows_without_times_are_not_judged_by_clocks() -> None:
    """Breaks if logs that say no times were a green light: each row would be older than its answer."""
    verdict = by_clocks(None)
    assert (verdict.result, verdict.details["vacuous"]) == ("valid", True)


@pytest.mark.parametrize(
    "asked",
    [history(wait="submit"), history(wait="none"), history(outcome="info"), history(outcome="fail")],
    ids=["submit", "none", "info", "fail"],
)
def test_by_clocks_only_what_was_answered_as_confirmed_is_judged(asked: History) -> None:
    """Broken, a write that was only to be submitted would be condemned for its quick answer."""
    verdict = by_clocks(LATE_NS + 1, asked=asked)
    assert (verdict.result, verdict.details["vacuous"]) == ("valid", True)


@st.composite
def owned_logs(draw: st.DrawFn) -> list[Record]:
    """What one owner may write."""
    records = [OPENED]
    for lsn in range(2, 2 + draw(st.integers(1, 12))):
        kind = draw(st.sampled_from([write, write, confirm, rollback]))
        until = draw(st.integers(1, lsn))
        records.append(write(1, lsn) if kind is write else kind(1, lsn, until))  # type: ignore[operator]
    return records


@given(owned_logs(), st.data())
def test_the_check_and_its_twin_say_the_same(records: list[Record], data: st.DataObject) -> None:
    """Breaks if judging while reading differed from replaying each prefix of the disks from their beginning."""
    writes = [row for row in records if row.kind == "write"]
    if not writes:
        return
    asked = data.draw(st.sampled_from(writes))
    reached = {node: data.draw(st.integers(0, len(records))) for node in HEADER.nodes}
    before = [durable(30, node, *records[:count], process=None) for node, count in reached.items()]
    after = [durable(80, node, *records[count:]) for node, count in reached.items()]
    verdict = check(
        history(),
        effects=(*before, Answered(50, "n1", 7), *after),
        promotes="at once",
        joined={0: [asked.id]},
    )
    said = replay(log("n1", *records[: reached["n1"]]), "at once").fates.get(asked.id)
    holders = sum(asked in records[:count] for count in reached.values())
    expected = set()
    if said not in ("confirmed", "committed"):
        expected.add("answered-before-confirm")
    if holders < 2:
        expected.add("answered-before-quorum")
    assert set(verdict.details["breaches"]) == expected
    assert replace(verdict, seconds=0).result == ("invalid" if expected else "valid")
