"""Our search for a linearization beside the small histories of Knossos's and Porcupine's own tests.

Sources: `test/knossos/*_test.clj` and the smallest files of `data` of https://github.com/jepsen-io/knossos at 9b2c79e9;
`porcupine_test.go` of https://github.com/anishathalye/porcupine at 55508eb2. The histories are written anew, event by
event: `4w2` process 4 asks to write 2, `4!` its answer is ok, `4!3` the answer is 3, `4x` it failed, `4?` it got no
answer; `r` reads, `a` adds to a set. docs/checkers-beside-others.md has the table, and what the large files give.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from checkers import by_model, linearizable
from checkers.history import History
from tests.checkers.beside import pages
from tests.checkers.brute.histories import Line, history_of

NAMES = {"w": "write", "r": "read", "a": "add"}
TYPES = {"!": "ok", "x": "fail", "?": "info"}


def told(text: str, model: str) -> History:
    asked: dict[int, Line] = {}
    lines = []
    for process, sign, shown in re.findall(r"(\d+)([wra!x?])([\d,]*)", text):
        number = int(process)
        numbers: Any = [int(each) for each in shown.split(",") if each]
        if sign in NAMES:
            value = numbers[0] if numbers else None
            asked[number] = Line("invoke", number, NAMES[sign], value, key="x")
            lines.append(asked[number])
            continue
        begun = asked.pop(number)
        answer = numbers if model == "set" else numbers[0] if numbers else None
        value = answer if begun.f == "read" and sign == "!" else begun.value
        lines.append(Line(TYPES[sign], number, begun.f, value, key="x"))
    return history_of(lines)


KNOSSOS: dict[str, tuple[str, str, int | None]] = {
    # name: (events, verdict, start value)
    "bad-analysis.edn": (
        "4w2 4! 6r 1w4 1! 14r 14!4 9w0 9! 19r 20w1 19!0 22r 21r 21!2 22!3",
        "invalid",
        0,
    ),
    "immediate-failure.edn": ("1r 101w3 101x 1!3", "invalid", 0),
    "rethink-fail-minimal.edn": ("0w0 0! 1r 2w4 1!3 2! 3r 3!4", "invalid", None),
    "cas-register-bug.edn": ("4w2 4! 6r 1w4 1! 14r 14!4 9w0 9! 19r 19!0", "valid", 0),
    "crash-test": ("0w1 0?", "valid", 0),
    "sequential-test": ("0r 0!0", "valid", 0),
    "preserves-indices-test": ("0w1 0! 0r 0!2", "invalid", 0),
    "read-wrong-initial-value-test": ("0r 0!1", "invalid", 0),
}
PORCUPINE: dict[str, tuple[str, str, int | None]] = {
    "register, linearizable": ("0w100 1r 2r 2!0 1!100 0!", "valid", 0),
    "register, not linearizable": ("0w200 1r 1!200 2r 2!0 0!", "invalid", 0),
    "no duration, linearizable": ("0w100 1r 2r 3r 2!0 3!0 1!100 0!", "valid", 0),
    "no duration, not linearizable": ("0w200 1r 2r 1!200 2!200 3r 3!0 0!", "invalid", 0),
}
SETS = {
    "one of two elements": ("0a100 1a0 2r 2!100 1! 0!", "valid"),
    "both elements": ("0a100 1a110 2r 2!100,110 1! 0!", "valid"),
    "unknown elements": ("0a100 1a110 2r 2? 1! 0!", "valid"),
    "an element twice": ("0a100 1a110 2r 2!100,100,110 1! 0!", "invalid"),
}
DIFFERENT = {"crash-test": "unknown", "unknown elements": "unknown"}
"""Nothing was observed, so we say neither yes nor no."""


@pytest.mark.parametrize("name", [*KNOSSOS, *PORCUPINE])
def test_what_they_say_of_registers(name: str) -> None:
    """We would contradict Knossos or Porcupine."""
    text, expected, initial = (KNOSSOS | PORCUPINE)[name]
    history = told(text, "register")
    found = linearizable.check(history, model="register", initial=initial)
    assert found.result == DIFFERENT.get(name, expected)


@pytest.mark.parametrize("name", SETS)
def test_what_porcupine_says_of_sets(name: str) -> None:
    """We would contradict Porcupine. That an element stands twice in a read is a breach of `set-full`."""
    text, expected = SETS[name]
    history = told(text, "set")
    assert by_model.judge(history, "set").result == DIFFERENT.get(name, expected)


def test_the_table_in_the_docs() -> None:
    """The docs would have other figures than these tests."""
    for row, cases in (("Knossos's", KNOSSOS), ("Porcupine's", PORCUPINE | SETS)):
        agreed = cases.keys() - DIFFERENT.keys()
        assert pages.row(f"histories in {row} tests") == [str(len(cases)), str(len(agreed))]
