"""Our rules for logs beside the tests of `jepsen.tests.kafka`: the errors that its analysis finds in small histories.

Source: `jepsen/test/jepsen/tests/kafka_test.clj` of https://github.com/jepsen-io/jepsen at c4c7473d. The histories are
written anew: "0 send x1@0 x2" is process 0, which sent 1 to x at offset 0, and 2 at one that it did not learn; "2 poll
x2@1 | y3@0" two polls; `?` behind the process: the outcome is unknown, `!` it failed. docs/checkers-beside-others.md
has the table.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import pytest

from checkers.domain import offsets
from checkers.history import Event, Header, History
from checkers.transactional import log_cycles
from tests.checkers.beside import pages

TYPES = {"": "ok", "?": "info", "!": "fail"}
SEND_5 = "0 send x10@0 x11@1 x12@2 x13@3 x14@4 x15@5"
SKIPS = (
    "0 poll x1@1 x2@2 ; 1 poll x3@3 ; {} 0 poll x4@4 ; {} 2 send x6@6 ; 0 poll x7@7 ; 3? send x1 x2 x3 x4 x7"
)
BACK = "0 send x1 x2 x3 x4 ; 0 poll x1@1 x2@2 x3@3 ; {} 0 poll x2@2 x3@3 x4@4"
SENDS = "0 send x3@3 x4@4 ; {} 0 send x1@1 x2@2 ; 1 poll x4@4"

CASES: dict[str, tuple[str, str, bool]] = {
    # history, a rule, and whether it is broken
    "an unsure send conflicts": (
        "0? send x1@0 y1 ; 1 send x2@0 ; 2 poll z9@1 ; 3 send z9@1",
        "inconsistent-offsets",
        False,
    ),
    "an unsure send that was seen conflicts": (
        "0? send x1@0 y1 ; 1 send x2@0 ; 2 poll y1@5",
        "inconsistent-offsets",
        True,
    ),
    "G1a": ("0! send x2 y3 ; 1 poll x2@0", "aborted-read", True),
    "lost": ("0 send x1@0 ; 0 send x2@1 x4@3 ; 1? send x3 ; 0 poll x3@2", "lost-write", True),
    "lost beside inconsistent offsets": (
        "0 send x1@0 ; 0 send x2@0 x3@2 ; 0 poll x2@0 x3@2",
        "lost-write",
        True,
    ),
    "an unsure send is not lost": ("0? send x1 y2@0 ; 1? send y3 ; 3 poll y3@1", "lost-write", False),
    "an unsure send that was seen is lost": (
        "0? send x1 y2@0 ; 1? send y3 ; 2 poll x1@0 ; 3 poll y3@1",
        "lost-write",
        True,
    ),
    "poll skip": (SKIPS.format("", ""), "poll-skip", True),
    "poll skip, other keys between": (
        SKIPS.format("0 assign y ;", "0? assign y ;"),
        "poll-skip",
        False,
    ),
    "poll skip, more keys between": (SKIPS.format("0 assign x y ;", "0 assign x y ;"), "poll-skip", True),
    "aborts begin again": (
        "0 send x10@0 x11@1 x12@2 ; 1 poll x10@0 ; 1! poll x11@1 x12@2 ; 1? poll x11@1 x12@2 ; 2 poll x10@0",
        "",
        False,
    ),
    "an abort does not begin again": (
        f"{SEND_5} ; 1 poll x10@0 ; 1! poll x11@1 x12@2 ; 1! poll x13@3 x14@4 ; 1 poll x15@5",
        "poll-skip",
        True,
    ),
    "an unsure poll skips": (
        f"{SEND_5} ; 1 poll x10@0 ; 1! poll x11@1 x12@2 ; 1? poll x13@3 x14@4",
        "poll-skip",
        True,
    ),
    "nonmonotonic poll": (BACK.format(""), "nonmonotonic-poll", True),
    "nonmonotonic poll, other keys between": (BACK.format("0 assign y ;"), "nonmonotonic-poll", False),
    "nonmonotonic poll, more keys between": (BACK.format("0 assign x y ;"), "nonmonotonic-poll", True),
    "nonmonotonic send": (SENDS.format(""), "nonmonotonic-send", True),
    "nonmonotonic send, other keys between": (SENDS.format("0 assign y ;"), "nonmonotonic-send", False),
    "nonmonotonic send, more keys between": (SENDS.format("0 assign x y ;"), "nonmonotonic-send", True),
    "skip within a poll": ("1? send x1 x2 x4 ; 0 poll x1@1 x4@4 ; 2 poll x2@2", "int-poll-skip", True),
    "skip between polls": ("1? send x1 x2 x4 ; 0 poll x1@1 | x4@4 ; 2 poll x2@2", "int-poll-skip", True),
    "back within a poll": ("0? send x1 x2 x3 ; 1 poll x3@3 x1@1", "int-nonmonotonic-poll", True),
    "the same again": ("0? send x1 x2 x3 ; 1 poll x2@2 x3@3 | x3@3", "int-nonmonotonic-poll", True),
    "sends out of order": ("0 send x3@3 x1@1 ; 1 poll x3@3", "int-nonmonotonic-send", True),
    "sends out of order, by a poll": (
        "0? send y4 y2 ; 1? send y3 ; 2 poll y2@2 y3@3 y4@4",
        "int-nonmonotonic-send",
        True,
    ),
    "an entry between two sends": (
        "0 send x1@1 x3 ; 1? send x2 ; 2 poll x2@2 x3@3",
        "int-send-skip",
        False,  # Jepsen finds it and allows it
    ),
    "duplicate": ("0 send x1@1 ; 1? send x2 ; 2 poll x2@2 x1@3", "duplicate", True),
    "duplicate in an aborted poll": (
        "0 send x10@1 ; 0! send x11@2 ; 1! poll x10@11 x11@12",
        "duplicate",
        True,
    ),
    "precommitted": ("0 txn send x1@0 poll x1@0", "precommitted-read", True),
    "G0": ("0+1 send x1@0 y1@1 / send x2@1 y2@0 ; 2 poll x1@0 x2@1 | y2@0 y1@1", "G0", False),
    "G1c": ("0+1 txn send x1@0 poll y2@0 / txn send y2@0 poll x1@0", "G1c", True),
    "G1c with ww": ("0+1 txn send x1@0 send y3@2 / txn poll x1@0 send y2@1 ; 2 poll y2@1 y3@2", "G1c", False),
}
FINDINGS = ("G0", "G1c with ww")
"""Jepsen finds these if it is asked for ww, and then allows them."""
OTHERWISE = ("an entry between two sends",)


def told(text: str) -> History:
    events: list[Event] = []

    def add(kind: str, process: int, f: str, value: Any) -> None:
        events.append(
            Event(index=len(events), time_ns=len(events), type=kind, process=process, f=f, value=value)
        )  # type: ignore[arg-type]

    for step in text.split(" ; "):
        who, rest = step.strip().split(" ", 1)
        processes, outcome = re.fullmatch(r"([\d+]+)([?!]?)", who).groups()  # type: ignore[union-attr]
        doings = [
            (int(process), *done(words))
            for process, words in zip(processes.split("+"), rest.split(" / "), strict=True)
        ]
        for process, f, value in doings:
            add("invoke", process, f, value if f in offsets.MOVES else asked(value))
        for process, f, value in doings:
            add(TYPES[outcome], process, f, value)
    return History.of(Header(), _with_fresh_processes(events))


def _with_fresh_processes(events: list[Event]) -> list[Event]:
    """A process whose operation is unsure is another one from then on."""
    renamed: dict[Any, int] = {}
    made = []
    for event in events:
        process = renamed.get(event.process, event.process)
        made.append(
            Event(**{**{name: getattr(event, name) for name in event.__struct_fields__}, "process": process})
        )
        if event.type == "info":
            renamed[event.process] = int(process) + 100  # type: ignore[call-overload]
    return made


def done(words: str) -> tuple[str, Any]:
    f, *rest = words.split()
    if f in offsets.MOVES:
        return f, rest
    micros: list[Any] = []
    word = f
    for each in rest:
        if each in ("send", "poll", "|"):
            word = "poll" if each == "|" else each
            micros += [["poll", defaultdict(list)]] if word == "poll" else []
            continue
        key, value, offset = re.fullmatch(r"([a-z])(\d+)(?:@(\d+))?", each).groups()  # type: ignore[union-attr]
        if word == "send":
            micros.append(["send", key, int(value) if offset is None else [int(offset), int(value)]])
            continue
        if not micros or micros[-1][0] != "poll":
            micros.append(["poll", defaultdict(list)])
        micros[-1][1][key].append([int(offset), int(value)])
    return f, [[*micro[:1], dict(micro[1])] if micro[0] == "poll" else micro for micro in micros]


def asked(micros: list[Any]) -> list[Any]:
    return [
        ["poll"]
        if micro[0] == "poll"
        else [*micro[:2], micro[2][1] if isinstance(micro[2], list) else micro[2]]
        for micro in micros
    ]


def found(name: str) -> set[str]:
    """The rules that our two checkers say are broken."""
    history = told(CASES[name][0])
    return {
        witness.rule
        for verdict in (offsets.check(history), log_cycles.check(history))
        for witness in verdict.witnesses
    }


@pytest.mark.parametrize("name", CASES)
def test_what_jepsen_finds(name: str) -> None:
    """We would miss what Jepsen finds in a log, or accuse a log of something that it allows."""
    _, rule, is_broken = CASES[name]
    assert (rule in found(name)) is is_broken
    if not rule:
        assert found(name) == set()


@pytest.mark.parametrize("name", FINDINGS)
def test_what_jepsen_finds_and_allows_is_a_finding(name: str) -> None:
    """The order of entries would not be looked at, or every Kafka be accused."""
    details = log_cycles.check(told(CASES[name][0])).details
    assert [finding.split(":")[0] for finding in details["findings"]] == [CASES[name][1]]


def test_the_table_in_the_docs() -> None:
    """The docs would have another figure than these tests."""
    assert pages.row("histories of the tests of kafka") == [str(len(CASES)), str(len(CASES) - len(OTHERWISE))]
