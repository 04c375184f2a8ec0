"""The table of errors: a wrong line here makes false verdicts, in either direction."""

from __future__ import annotations

import pytest

from harness.clients.operations import Completion, Read, Transaction, Write
from harness.clients.reply import Lost, NotSent, Replied, Reply
from harness.systems.qsync.calls import outcome_of, why_refused
from harness.systems.qsync.errors import FAIL, INFO, meaning_of
from nodes.iproto.codes import Code
from nodes.iproto.messages import Refusal

SURELY_NOT_DONE = {
    7: "read-only: at the statement, or aborting when the node became read-only",
    116: "loading: before the bootstrap",
    214: "at submission to the limbo, before the journal",
    227: "at submission to the limbo, before the journal",
    228: "at submission to the limbo, before the journal",
    289: "queue full: before the journal",
    40: "the journal's write failed, and no fault of ours damages disks under this table",
    134: "the same in cascade",
    97: "aborted before commit",
    154: "aborted before commit",
    231: "aborted before commit",
    3: "duplicate key",
    36: "rejected before execution",
    42: "rejected before execution",
    109: "rejected before execution",
}
NOBODY_KNOWS = {
    215: "an applier's, never a client's",
    216: "quorum timeout: raised after ROLLBACK is written, which guarantees nothing",
    217: "rollback: four causes with one code, two of them after the write",
    222: "promote: the term may be bumped",
    223: "promote",
    224: "promote",
    226: "promote",
    242: "promote",
    244: "split-brain: promote",
    245: "promote",
    246: "promote",
    278: "promote",
    295: "detached: still pending",
    32: "any Lua error, a cancelled fiber included",
    115: "a system error, the timeout of a linearizable wait included",
}


def outcome(reply: Reply, *, is_read: bool) -> Completion:
    asked = Transaction((Read("register", "a") if is_read else Write("register", "a", 1),))
    found = outcome_of(asked, reply)
    assert isinstance(found, Completion)
    return found


@pytest.mark.parametrize("code", SURELY_NOT_DONE)
def test_what_surely_did_nothing_is_fail(code: int) -> None:
    """If it failed, every such refusal would make an operation that may take effect for ever: anomalies hide there."""
    assert meaning_of(code)[0] == "fail"


@pytest.mark.parametrize("code", NOBODY_KNOWS)
def test_what_nobody_knows_is_info(code: int) -> None:
    """If it failed, a write that did take effect would be called undone: a false alarm."""
    assert meaning_of(code)[0] == "info"


@pytest.mark.parametrize("code", [0, 2, 999, 100_000, -1])
def test_an_unknown_code_is_info(code: int) -> None:
    """If it failed, a store with a new error would be judged by a guess."""
    assert meaning_of(code) == ("info", f"error-{code}")


def test_no_code_has_two_meanings() -> None:
    """If it failed, the order of two tables would decide a verdict."""
    assert not set(FAIL) & set(INFO)


def test_names_are_of_this_store() -> None:
    """If it failed, a number in the table would be another error than its name says, or a typing mistake."""
    assert {*FAIL, *INFO} <= {int(code) for code in Code} | {5}


@pytest.mark.parametrize("code", [*SURELY_NOT_DONE, *NOBODY_KNOWS, 999])
def test_a_read_with_any_error_is_fail(code: int) -> None:
    """If it failed, a read that had no effect would use up a process and slow the checker down."""
    done = outcome(Replied(Refusal(1, code, "no")), is_read=True)
    assert (done.type, done.value) == ("fail", None)
    assert str(code) in (done.error or "")


def test_an_error_says_what_it_was() -> None:
    """If it failed, a person could not tell from the history why an operation failed."""
    assert outcome(Replied(Refusal(1, 216, "timed out")), is_read=False).error == "quorum-timeout (216)"
    assert outcome(Replied(Refusal(1, 222, "?")), is_read=False).error == "error-222 (222)"


@pytest.mark.parametrize("is_read", [True, False])
def test_what_was_never_sent_is_fail(is_read: bool) -> None:
    """If it failed, a refused connection would leave operations open for ever."""
    done = outcome(NotSent("connection refused"), is_read=is_read)
    assert (done.type, done.error) == ("fail", "connection refused")


@pytest.mark.parametrize(("is_read", "type_"), [(True, "fail"), (False, "info")])
def test_what_was_lost_is_open_unless_it_had_no_effect(is_read: bool, type_: str) -> None:
    """If it failed, a write whose answer was lost would be called undone: a false alarm."""
    done = outcome(Lost("reset"), is_read=is_read)
    assert (done.type, done.error) == (type_, "reset")


def test_a_refusal_is_told_in_the_words_of_the_store() -> None:
    """If it failed, screens and pages would show Python's text of an object."""
    refusal = Refusal(7, 246, "Interfering elections started")
    assert why_refused(refusal) == "Interfering elections started (error 246)"
