"""Every rule has logs that it must refuse, and the same logs without the breach that it must let pass."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from checkers.history import HistoryError
from checkers.logs.wal import RULES, LogRules, NodeLog, Record, Snapshot, check
from tests.checkers.logs.wal.logs import confirm, data, log, nop, promote, rollback, vote, write

RULED = LogRules(promotes="at once", has_votes=True, quorum=2, members=3)
COMMON = (promote(1, 1, over=0, until=0, term=1), write(1, 2), write(1, 3))

DATA = (COMMON[0], data(2, "a"), data(3, "b"))


def joiner(tuples: dict[tuple[int, object], tuple[object, ...]], left_out: tuple[int, ...] = ()) -> NodeLog:
    """A node whose log begins behind a snapshot of all that is confirmed."""
    held = Snapshot(place="a.snap", vclock={1: 4}, tuples=tuples, left_out=frozenset(left_out))
    return replace(log("n3", begins={1: 4}), snapshots=(held,))


def snapshot_at(
    lsn: int, *, place: str = "a.snap", vote: int = 1, confirmed: dict[int, int] | None = None, **tuples: int
) -> Snapshot:
    """Of a node that has written one vote and the rows of replica 1 up to `lsn`."""
    held = {(512, key): (key, value) for key, value in {"a": 2, "b": 3, **tuples}.items()}
    known = {1: 3} if confirmed is None else confirmed
    return Snapshot(
        place=place,
        vclock={0: 1, 1: lsn},
        tuples=held,
        term=1,
        vote=vote,
        owner=1,
        queue_term=1,
        confirmed=known,
    )


BREACHES: dict[str, tuple[NodeLog, ...]] = {
    "confirmed-and-rolled-back": (
        log("n1", *COMMON, confirm(1, 4, until=3)),
        log("n2", *COMMON, rollback(1, 5, start=3)),
        log("n3", *COMMON),
    ),
    "confirmed-and-void": (
        log("n1", *COMMON, confirm(1, 4, until=3)),
        log("n2", *COMMON[:2], nop(1, 3), confirm(1, 4, until=3)),
        log("n3", *COMMON),
    ),
    "kept-and-void": (
        log("n1", COMMON[0], write(1, 2, waits=False)),
        log("n2", COMMON[0], nop(1, 2)),
        log("n3", COMMON[0], write(1, 2, waits=False)),
    ),
    "same-lsn-other-content": (
        log("n1", *COMMON),
        log("n2", *COMMON[:2], write(1, 3, value="another")),
        log("n3", *COMMON),
    ),
    "confirmed-order": (
        log("n1", *COMMON, confirm(1, 4, until=3)),
        log("n2", COMMON[0], write(1, 3), confirm(1, 4, until=3)),
        log("n3", *COMMON, confirm(1, 4, until=3)),
    ),
    "claimed-but-missing": (
        log("n1", *COMMON, confirm(1, 4, until=3)),
        log("n2", *COMMON, confirm(1, 4, until=3)),
        log("n3", write(1, 3), confirm(1, 4, until=3), begins={1: 1}),
    ),
    "snapshot-differs": (
        log("n1", *DATA, confirm(1, 4, until=3)),
        log("n2", *DATA, confirm(1, 4, until=3)),
        joiner({(512, "a"): ("a", 2)}),
    ),
    "snapshot-forgets": (
        replace(
            log("n1", vote(1, 1, 1), *DATA, confirm(1, 4, until=3)),
            snapshots=(snapshot_at(3, confirmed={1: 2}), snapshot_at(4, place="b.snap", vote=0)),
        ),
        log("n2", *DATA, confirm(1, 4, until=3)),
        log("n3", vote(1, 1, 1), *DATA),
    ),
    "decision-without-entry": tuple(
        log(node, *COMMON, rollback(1, 4, start=2), confirm(1, 5, until=3)) for node in ("n1", "n2", "n3")
    ),
    "confirm-not-increasing": tuple(
        log(node, *COMMON, confirm(1, 4, until=3), confirm(1, 5, until=3)) for node in ("n1", "n2", "n3")
    ),
    "two-owners-of-a-term": tuple(
        log(node, *COMMON, confirm(1, 4, until=3), promote(2, 1, over=1, until=3, term=1))
        for node in ("n1", "n2", "n3")
    ),
    "term-not-increasing": tuple(
        log(node, promote(1, 1, over=0, until=0, term=3), promote(1, 2, over=1, until=0, term=2))
        for node in ("n1", "n2", "n3")
    ),
    "two-votes-in-a-term": (
        log("n1", vote(1, 4, 1), vote(2, 4, 2), *COMMON),
        log("n2", *COMMON),
        log("n3", *COMMON),
    ),
    "promoted-without-votes": (
        log("n1", vote(1, 1, 1), *COMMON),
        log("n2", *COMMON),
        log("n3", vote(1, 1, 3), *COMMON),
    ),
    "confirmed-without-quorum": (
        log("n1", *COMMON, confirm(1, 4, until=3)),
        log("n2", *COMMON[:2]),
        log("n3", *COMMON[:2]),
    ),
}
SOUND = tuple(
    log(node, vote(1, 1, 1), *COMMON, confirm(1, 4, until=3), write(1, 5)) for node in ("n1", "n2", "n3")
)


def breaches(logs: tuple[NodeLog, ...]) -> set[str]:
    verdict = check(logs, RULED)
    return set(verdict.details["breaches"])


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_refuses_the_logs_that_break_it(rule: str) -> None:
    """Breaks if a rule could not fail."""
    assert rule in breaches(BREACHES[rule])


def test_sound_logs_break_no_rule() -> None:
    """Breaks if a rule were an alarm about logs that agree."""
    verdict = check(SOUND, RULED)
    assert verdict.result == "valid", verdict.witnesses


def test_a_log_that_contradicts_itself_is_refused() -> None:
    """Breaks if ROLLBACK from lsn 451 directly followed by CONFIRM of 453, in every log, passed as valid."""
    rows = (promote(1, 449, over=0, until=0, term=1), *(write(1, lsn) for lsn in range(451, 454)))
    logs = tuple(
        log(node, *rows, rollback(1, 454, start=451), confirm(1, 455, until=453), begins={1: 448})
        for node in ("n1", "n2", "n3")
    )
    verdict = check(logs, RULED)
    assert verdict.details["breaches"] == {"decision-without-entry": 1}
    assert "break the rules once: " in verdict.summary
    assert "rolled back" in verdict.witnesses[0].explanation[1]


@pytest.mark.parametrize(
    "rows",
    [
        (rollback(1, 4, start=2), write(1, 5), confirm(1, 6, until=5)),
        (confirm(1, 4, until=2), rollback(1, 5, start=3)),
        (confirm(1, 4, until=3), promote(2, 1, over=1, until=3, term=2), confirm(1, 5, until=2)),
    ],
    ids=["an entry behind the rollback", "what no CONFIRM covers", "confirmed already"],
)
def test_decisions_that_fit_the_queue_pass(rows: tuple[Record, ...]) -> None:
    """Breaks if CONFIRM 7 after ROLLBACK 5 were refused although entry 7 was written behind the ROLLBACK."""
    assert "decision-without-entry" not in breaches((log("n1", *COMMON, *rows),))


@pytest.mark.parametrize(("before", "is_refused"), [((nop(1, 1),), False), (COMMON[:1], True)])
def test_what_a_queue_without_an_owner_confirmed_a_snapshot_need_not_say(
    before: tuple[Record, ...], is_refused: bool
) -> None:
    """Breaks if the logs of real 2.6, whose CONFIRMs later versions do not count, were an alarm."""
    rows = (data(2, "a"), data(3, "b"), confirm(1, 4, until=3), promote(1, 5, over=0, until=0, term=1))
    node = replace(
        log("n1", vote(1, 1, 1), *before, *rows),
        snapshots=(snapshot_at(5, confirmed={}),),
    )
    assert ("snapshot-forgets" in breaches((node,))) is is_refused


@pytest.mark.parametrize(
    ("voted", "kept", "is_refused"), [(1, 1, False), (0, 2, False), (1, 0, True), (1, 2, True)]
)
def test_a_snapshot_with_another_vote_in_the_term_is_refused(voted: int, kept: int, is_refused: bool) -> None:
    """Broken, a node could vote for a second candidate after a restart: its snapshot says that it voted for that."""
    node = log("n1", vote(1, 1, voted), *DATA, confirm(1, 4, until=3))
    assert (
        "snapshot-forgets" in breaches((replace(node, snapshots=(snapshot_at(4, vote=kept),)),))
    ) is is_refused


HELD: dict[tuple[int, object], tuple[object, ...]] = {(512, "a"): ("a", 2), (512, "b"): ("b", 3)}


def test_a_joiner_that_holds_what_its_vclock_claims_passes() -> None:
    """Breaks if a node that joined as it should were an alarm, or spaces that rows do not tell of were compared."""
    whole = BREACHES["snapshot-differs"][:2]
    assert breaches((*whole, joiner(HELD))) == set()
    assert breaches((*whole, joiner({(512, "a"): ("a", 2)}, left_out=(512,)))) == set()


@pytest.mark.parametrize(
    ("tuples", "why"),
    [
        ({**HELD, (512, "c"): ("c", 9)}, "a row that nobody wrote"),
        ({**HELD, (512, "b"): ("b", 1)}, "an old value"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_snapshot_with_other_data_is_refused(
    tuples: dict[tuple[int, object], tuple[object, ...]], why: str
) -> None:
    """Breaks if what a joiner got were compared by its count of rows, or by its keys."""
    assert "snapshot-differs" in breaches((*BREACHES["snapshot-differs"][:2], joiner(tuples))), why


def test_a_snapshot_is_compared_with_the_log_of_its_own_node() -> None:
    """Breaks if what a snapshot kept of a transaction that was rolled back behind it were seen by a restart alone."""
    rows = (vote(1, 1, 1), *DATA, data(4, "a"), rollback(1, 5, start=4), confirm(1, 6, until=3))
    sound = replace(log("n1", *rows), snapshots=(snapshot_at(4),))
    assert breaches((sound,)) == set()
    kept = replace(sound, snapshots=(snapshot_at(4, a=4), snapshot_at(6, place="b.snap")))
    assert breaches((kept,)) == {"snapshot-differs"}


def test_what_is_pending_or_told_by_operations_is_compared_with_nothing() -> None:
    """Breaks if a key were judged whose value the other log does not tell: undecided there, or an UPDATE."""
    pending = log("n1", *DATA, write(1, 4))
    updated = log("n2", *DATA[:2], structs.replace(DATA[2], is_whole=False, tuple=()), confirm(1, 4, until=3))
    old = {(512, "a"): ("a", 2), (512, "b"): ("b", 0)}
    assert breaches((updated, joiner(old))) == set()
    assert breaches((pending, joiner({}))) == set()


def test_a_nop_may_stand_where_another_log_has_nothing() -> None:
    """Breaks if a row of one node alone, which others have as a NOP, were missed in its own log."""
    assert "claimed-but-missing" not in breaches(
        (log("n1", COMMON[0], write(1, 3)), log("n2", COMMON[0], nop(1, 2), write(1, 3)))
    )


def test_what_waits_in_the_part_that_a_snapshot_replaced_is_named_rightly() -> None:
    """Breaks if a joiner, whose snapshot holds the entry, were blamed for the CONFIRM that came behind it."""
    joiner = log("n1", confirm(1, 4, until=3), write(1, 5), begins={1: 3})
    assert breaches((joiner,)) == set()


def test_a_log_that_is_behind_agrees() -> None:
    """Breaks if a replica that has not heard the last CONFIRM yet were an anomaly."""
    behind = (SOUND[0], SOUND[1], log("n3", vote(1, 1, 1), *COMMON))
    assert breaches(behind) == set()


def test_a_log_that_begins_at_a_snapshot_is_compared_where_both_have_it() -> None:
    """Breaks if collected logs were compared from the front, or no more at all."""
    later = (write(1, 4), confirm(1, 5, until=4))
    whole = log("n1", *COMMON[1:], *later)
    begun = log("n2", *later, begins={1: 3})
    assert breaches((whole, begun)) == set()
    other = log("n2", write(1, 3), write(1, 6), confirm(1, 7, until=6), begins={1: 2})
    assert "confirmed-order" in breaches((whole, other))


@pytest.mark.parametrize(
    "lost",
    [log("n3", *COMMON[:2], damage="cut off"), log("n3", begins={1: 2}), None],
    ids=["torn", "begun", "missing"],
)
def test_with_a_log_lost_nothing_is_counted(lost: NodeLog | None) -> None:
    """Breaks if a missing log were taken for proof that its node never had a row or gave its vote."""
    logs = tuple(one for one in (*BREACHES["confirmed-without-quorum"][:2], lost) if one is not None)
    assert breaches(logs) == set()


def test_without_votes_two_nodes_may_promote_themselves_in_a_term() -> None:
    """Breaks if the rules of elections were applied where there are none."""
    verdict = check(BREACHES["two-owners-of-a-term"], replace(RULED, has_votes=False))
    assert "two-owners-of-a-term" not in verdict.details["breaches"]


def test_nothing_to_audit_is_not_a_pass() -> None:
    """Breaks if empty logs were a green light."""
    assert check((log("n1"),), RULED).result == "unknown"
    assert check((), RULED).result == "unknown"


def test_a_flood_of_one_rule_does_not_hide_another() -> None:
    """Breaks if the bound on witnesses left out the only one of a second rule."""
    many = tuple(write(1, lsn) for lsn in range(4, 40))
    logs = (
        log("n1", *COMMON, *many, confirm(1, 40, until=39), vote(1, 1, 1), vote(2, 1, 2)),
        log("n2", *COMMON, *many, rollback(1, 41, start=2)),
    )
    verdict = check(logs, RULED)
    assert {"confirmed-and-rolled-back", "two-votes-in-a-term"} <= {
        witness.rule for witness in verdict.witnesses
    }


def test_a_row_is_void_where_its_transaction_took_effect() -> None:
    """Broken, a log that lacks one row of a transaction, or an asynchronous one, agrees with those that have it."""
    first = structs.replace(write(1, 2), first=2, ends=False)
    whole = (COMMON[0], first, structs.replace(write(1, 3), first=2), confirm(1, 4, until=3))
    void = structs.replace(nop(1, 2), first=2, ends=False)
    assert "kept-and-void" in breaches((log("n1", *whole), log("n2", whole[0], void, *whole[2:])))
    pending, dropped = whole[:3], (whole[0], void, structs.replace(nop(1, 3), first=2))
    assert "kept-and-void" not in breaches((log("n1", *pending), log("n2", *dropped)))
    rolled_back = (*pending, rollback(1, 4, start=3))
    assert "kept-and-void" not in breaches((log("n1", *rolled_back), log("n2", *dropped)))


LATER = (*COMMON, rollback(1, 4, start=2), write(1, 5), confirm(1, 6, until=5), write(1, 7), confirm(1, 8, 7))


@pytest.mark.parametrize("begin", range(len(LATER)))
@pytest.mark.parametrize("count", [1, 2, 3])
def test_rows_that_are_missing_from_the_middle_of_a_log_accuse_nobody(begin: int, count: int) -> None:
    """Broken, a CONFIRM behind a damaged block confirms what a ROLLBACK in that block had discarded: a false alarm."""
    holed = log("n2", *LATER[:begin], *LATER[begin + count :], damage="a block is damaged")
    verdict = check((log("n1", *LATER), holed, log("n3", *LATER)), replace(RULED, has_votes=False))
    assert (verdict.result, verdict.witnesses) == ("unknown", ())


def test_a_damaged_log_speaks_where_a_decision_names_the_transaction() -> None:
    """Broken, damage would hide two logs of which one confirms what the other rolls back."""
    confirmed, discarded = (*COMMON, confirm(1, 4, until=3)), (*COMMON, rollback(1, 4, start=3))
    for one, other in ((confirmed, discarded), (discarded, confirmed)):
        damaged = log("n1", *one, damage="its end is damaged")
        assert "confirmed-and-rolled-back" in breaches((damaged, log("n2", *other)))


PASSING: dict[str, tuple[tuple[Record, ...], LogRules]] = {
    "a writer confirms entries of two owners": (
        (promote(2, 1, over=1, until=0, term=1), confirm(2, 2, 9, owner=1), confirm(2, 3, 1)),
        RULED,
    ),
    "two writers confirm one entry": ((confirm(1, 4, until=3), confirm(2, 1, 3, owner=1)), RULED),
    "a node votes for one candidate after it had voted for none": ((vote(1, 4, 0), vote(2, 4, 2)), RULED),
    "the terms of two replicas come in another order": (
        (promote(2, 1, over=0, until=0, term=3), promote(3, 1, over=0, until=0, term=2)),
        RULED,
    ),
    "a PROMOTE is older than the run": (COMMON[:1], replace(RULED, started={1: 1})),
}


@pytest.mark.parametrize("name", PASSING)
def test_what_looks_like_a_breach_and_is_none(name: str) -> None:
    """Broken, a store that does this would be accused."""
    rows, rules = PASSING[name]
    ruled = ("confirm-not-increasing", "two-votes-in-a-term", "term-not-increasing")
    if rules.started:
        ruled = (*ruled, "promoted-without-votes")
    verdict = check(tuple(log(node, *rows) for node in ("n1", "n2", "n3")), rules)
    assert not set(verdict.details["breaches"]) & set(ruled)


def test_a_confirm_and_a_rollback_of_one_body_are_different_rows() -> None:
    """Broken, two nodes with opposite decisions at one lsn would have the same row there."""
    rows = (structs.replace(row, body=b"1, 3") for row in (confirm(1, 4, until=3), rollback(1, 4, start=3)))
    one, other = (log(f"n{lsn}", *COMMON, row) for lsn, row in enumerate(rows, start=1))
    assert "same-lsn-other-content" in breaches((one, other))


def test_a_breach_that_several_logs_show_is_counted_once() -> None:
    """Broken, a summary would say that rules are broken as often as there are logs that show it."""
    kept = check(BREACHES["kept-and-void"], RULED).details["breaches"]
    assert kept["kept-and-void"] == 1
    owners = (promote(origin, 1, over=0, until=0, term=1) for origin in (1, 2, 3))
    promoted = check((log("n1", *owners),), RULED).details["breaches"]
    assert promoted["two-owners-of-a-term"] == 1


@pytest.mark.parametrize(
    "strange",
    [
        log("n1", write(1, 1 << 63)),
        log("n1", write(1, 2), begins={1: 1 << 63}),
        replace(
            log("n1", write(1, 2)), snapshots=(Snapshot(place="a.snap", vclock={1: 1 << 63}, tuples={}),)
        ),
    ],
)
def test_a_number_beyond_64_bits_is_refused(strange: NodeLog) -> None:
    """If it failed, the log of another decoder would end the audit in an OverflowError."""
    with pytest.raises(HistoryError, match="at most 64 bits as lsn"):
        check([strange], RULED)
