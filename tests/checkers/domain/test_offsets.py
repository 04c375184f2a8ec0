"""Logs with offsets: what is right, and a history for each rule that it breaks."""

from __future__ import annotations

from typing import Any

import pytest

from checkers import by_model
from checkers.domain import offsets
from checkers.history import Event, Header, History
from checkers.history.errors import ModelError

Step = tuple[Any, ...]
TYPES = {"unsure": "info"}
"""An operation of unknown outcome that shows its offsets."""


def sent(offset: int | None, value: int, key: str = "k") -> list[Any]:
    return ["send", key, [offset, value]]


def polled(*pairs: tuple[int, int], key: str = "k") -> list[Any]:
    return ["poll", {key: [list(pair) for pair in pairs]}]


def history(*steps: Step) -> History:
    """One operation after the other: process, f, micro-operations (or keys), and the outcome if it is not "ok"."""
    events: list[Event] = []
    for process, f, value, *outcome in steps:
        for kind in ("invoke", outcome[0] if outcome else "ok"):
            place = len(events)
            shown = (
                value if _is_shown(kind, value) or f in offsets.MOVES else [_asked(micro) for micro in value]
            )
            type_: Any = TYPES.get(kind, kind)
            events.append(Event(index=place, time_ns=place, type=type_, process=process, f=f, value=shown))
    return History.of(Header(), events)


def _is_shown(kind: str, value: Any) -> bool:
    return kind in ("ok", "unsure") or (kind == "info" and value[0][0] == "poll")


def _asked(micro: list[Any]) -> list[Any]:
    return ["poll"] if micro[0] == "poll" else [*micro[:2], micro[2][1]]


SENT = [(0, "send", [sent(place, place + 1)]) for place in range(4)]
ALL = polled((0, 1), (1, 2), (2, 3), (3, 4))
BROKEN: list[tuple[str, list[Step]]] = [
    ("inconsistent-offsets", [(0, "send", [sent(0, 1)]), (1, "send", [sent(0, 2)]), (2, "poll", [polled((0, 1))])]),
    ("lost-write", [*SENT, (1, "poll", [polled((0, 1), (3, 4))])]),
    ("duplicate", [*SENT, (1, "poll", [ALL, polled((4, 2))])]),
    ("aborted-read", [(0, "send", [sent(0, 1)], "fail"), (1, "poll", [polled((0, 1))])]),
    ("never-sent", [(1, "poll", [polled((0, 1))])]),
    ("precommitted-read", [(0, "txn", [sent(0, 1), polled((0, 1))])]),
    ("precommitted-read", [(0, "txn", [sent(0, 1), sent(1, 1), polled((0, 1))])]),
    ("precommitted-read", [(1, "send", [sent(0, 1)], "fail"), (0, "txn", [sent(1, 1), polled((1, 1))])]),
    ("precommitted-read", [(1, "send", [sent(5, 1)], "unsure"), (0, "txn", [sent(1, 1), polled((1, 1))])]),
    # A poll of a failed or unsure operation shows that a send of unknown outcome took effect.
    ("lost-write", [(0, "send", [sent(0, 1), sent(2, 2)], "unsure"), (1, "poll", [polled((2, 2))], "info")]),
    ("duplicate", [(0, "send", [sent(0, 3)], "unsure"), (1, "poll", [polled((1, 3))], "info")]),
    ("aborted-read", [(0, "send", [sent(0, 1)], "fail"), (1, "poll", [polled((0, 1))], "info")]),
    ("nonmonotonic-send", [(0, "send", [sent(1, 1)]), (0, "send", [sent(0, 2)]), (1, "poll", [polled((0, 2))])]),
    ("nonmonotonic-send", [(0, "send", [sent(1, 1)]), (0, "send", [sent(0, 2)], "info"), (1, "poll", [ALL])]),
    ("int-nonmonotonic-send", [(0, "send", [sent(1, 1), sent(0, 2)]), (1, "poll", [polled((0, 2), (1, 1))])]),
    ("int-nonmonotonic-poll", [*SENT, (1, "poll", [polled((1, 2)), ALL])]),
    ("int-poll-skip", [*SENT, (1, "poll", [ALL]), (2, "poll", [polled((0, 1), (2, 3))])]),
    ("nonmonotonic-poll", [*SENT, (1, "poll", [ALL]), (1, "poll", [polled((3, 4))])]),
    ("poll-skip", [*SENT, (2, "poll", [ALL]), (1, "poll", [polled((0, 1))]), (1, "poll", [polled((2, 3), (3, 4))])]),
]  # fmt: skip


def rules(*steps: Step) -> set[str]:
    return {witness.rule for witness in offsets.check(history(*steps)).witnesses}


@pytest.mark.parametrize(("rule", "steps"), BROKEN)
def test_each_rule_has_a_history_that_breaks_it(rule: str, steps: list[Step]) -> None:
    """If it failed, a log that loses, doubles or reorders would pass."""
    assert rule in rules(*steps)
    assert by_model.judge(history(*steps), "log").result == "invalid"


@pytest.mark.parametrize(
    "steps",
    [
        [*SENT, (1, "poll", [ALL])],
        # No client has come so far yet.
        [*SENT, (1, "poll", [polled((0, 1))])],
        # Marks of transactions take offsets.
        [(0, "send", [sent(0, 1)]), (0, "txn", [sent(3, 2)]), (1, "poll", [polled((0, 1), (3, 2))])],
        # An offset that its client never learnt, and a send without an answer.
        [(0, "send", [sent(None, 1)]), (0, "send", [sent(1, 2)], "info"), (1, "poll", [polled((0, 1), (1, 2))])],
        # A client that polls other keys begins anew.
        [*SENT, (1, "poll", [ALL]), (1, "assign", ["other"]), (1, "assign", ["k"]), (1, "poll", [ALL])],
        # Two clients, each with its own place.
        [*SENT, (1, "poll", [ALL]), (2, "poll", [ALL])],
        # What a poll of unknown outcome showed is not lost, and it moves nobody.
        [*SENT, (1, "poll", [polled((0, 1))], "info"), (2, "poll", [polled((1, 2), (2, 3), (3, 4))])],
        [*SENT, (1, "poll", [polled((0, 1), (1, 2))]), (1, "poll", [polled((2, 3))], "info"), (2, "poll", [ALL])],
        # An entry of unknown outcome is appended later than the next one of its client.
        [(0, "send", [sent(1, 1)], "info"), (0, "send", [sent(0, 2)]), (1, "poll", [polled((0, 2), (1, 1))])],
    ],
)  # fmt: skip
def test_what_is_right_is_valid(steps: list[Step]) -> None:
    """If it failed, a right log would be accused."""
    verdict = offsets.check(history(*steps))
    assert (verdict.result, verdict.summary) == ("valid", verdict.summary)


@pytest.mark.parametrize("rule", offsets.IF_ASSIGNED)
def test_where_clients_subscribe_going_back_is_a_finding(rule: str) -> None:
    """If it failed, every rebalance of a right store would be an anomaly."""
    (steps,) = (steps for name, steps in BROKEN if name == rule)
    verdict = offsets.check(history((1, "subscribe", ["k"]), *steps))
    assert verdict.result == "valid" and "once a client went back" in verdict.details["findings"][0]


@pytest.mark.parametrize("offset", [0.0, True])
def test_an_offset_that_is_no_whole_number_is_refused(offset: Any) -> None:
    """If the refusal failed, offset and value would be taken for the value, and the value for one that nobody sent."""
    with pytest.raises(ModelError, match="the offset a whole number or null"):
        offsets.check(history((0, "send", [["send", "k", [offset, 7]]]), (1, "poll", [polled((0, 7))])))


def test_what_an_unsure_transaction_polls_of_its_own_is_no_acknowledgement() -> None:
    """If own polls counted, a transaction that was perhaps aborted would be committed, and its values lost."""
    own = (0, "txn", [sent(0, 1), sent(9, 8), polled((9, 8))], "unsure")
    assert "lost-write" not in rules(own, (2, "send", [sent(1, 2)]), (1, "poll", [polled((1, 2))]))


def test_only_a_subscribe_that_took_effect_excuses_going_back() -> None:
    """If it failed, a client that asked in vain for other keys would hide that a store goes back."""
    (steps,) = (steps for name, steps in BROKEN if name == "nonmonotonic-poll")
    assert offsets.check(history((1, "subscribe", ["k"], "fail"), *steps)).result == "invalid"


@pytest.mark.parametrize(
    "value",
    [
        [["send", "k"]],
        [["poll", [[0, 1]]]],
        [["poll", {"k": [7]}]],
        [["poll", {"k": 7}]],
        [["dance", 1]],
        5,
    ],
)
def test_what_is_no_send_or_poll_is_refused(value: Any) -> None:
    """If it failed, a history of something else would be judged, or end with a traceback."""
    events = [
        Event(index=place, time_ns=place, type=kind, process=0, f="txn", value=value)  # type: ignore[arg-type]
        for place, kind in enumerate(("invoke", "ok"))
    ]
    with pytest.raises(ModelError, match="expected"):
        offsets.check(History.of(Header(), events))


def test_keys_that_are_no_list_are_refused() -> None:
    """If it failed, the checker would break on a number."""
    with pytest.raises(ModelError, match="expected"):
        offsets.check(history((1, "assign", 5), *SENT))


def test_without_polls_there_is_nothing_to_judge() -> None:
    """If it failed, a test that never polled would be a green light."""
    assert offsets.check(history(*SENT)).result == "unknown"
