"""docs/seeds.md: every statement of the five documents has a test that there is, or a decision that there is."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "seeds.md").read_text(encoding="utf-8")
DIFFERENCES = next((ROOT / "docs" / "decisions").glob("0048-*.md"))
KINDS = ("holds", "differs", "does not apply")
TEST_OR_FILE = re.compile(r"`(tests/[^`]+)`")
DECISION = re.compile(r"\[decision (\d+)\]\(decisions/([^)]+)\)")


class Statement(NamedTuple):
    number: str
    text: str
    kind: str
    shown_in: str


def statements(page: str) -> list[Statement]:
    """Raises ValueError for a row with a number that has not four cells, or no known kind."""
    rows = []
    for line in page.splitlines():
        if re.match(r"\| \d+\.", line):
            number, text, here, shown_in = (cell.strip() for cell in line.strip("|").split(" | "))
            kind = here.split(":")[0]
            if kind not in KINDS or not text or (kind == "differs") != (":" in here):
                raise ValueError(f"expected one of {', '.join(KINDS)}, and how it differs, got {line!r}")
            rows.append(Statement(number, text, kind, shown_in))
    return rows


@cache
def names_of_tests(path: Path) -> frozenset[str]:
    """The names of the test functions of a file, read and not run."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return frozenset(
        each.name
        for each in body
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name.startswith("test_")
    )


def missing(text: str) -> list[str]:
    """The tests, files and decisions that the text names and that there are not."""
    gone = []
    for named in TEST_OR_FILE.findall(text):
        file, _, test = named.partition("::")
        path = ROOT / file
        is_there = path.is_file() and (test in names_of_tests(path) if path.suffix == ".py" else not test)
        gone += [] if is_there else [named]
    for number, file in DECISION.findall(text):
        is_there = file.startswith(f"{int(number):04}-") and (ROOT / "docs" / "decisions" / file).is_file()
        gone += [] if is_there else [file]
    return gone


def lacks(row: Statement) -> str:
    """What a row needs and has not; "": it is complete."""
    has_test, has_decision = TEST_OR_FILE.search(row.shown_in), DECISION.search(row.shown_in)
    if row.kind != "does not apply" and not has_test:
        return f"{row.number} {row.kind}, and names no test"
    if row.kind != "holds" and not has_decision:
        return f"{row.number} {row.kind}, and names no decision"
    return ""


ROWS = statements(PAGE)


def test_every_row_has_what_it_needs() -> None:
    """If it failed, a statement would be claimed and shown nowhere, or a difference would have no reason."""
    assert [lacks(row) for row in ROWS if lacks(row)] == []


def test_every_test_and_every_decision_exists() -> None:
    """If it failed, a reader would look for a test that was renamed, or that never was."""
    assert [gone for row in ROWS for gone in missing(row.shown_in)] == []
    assert missing(DIFFERENCES.read_text(encoding="utf-8")) == []


def test_every_reference_is_read() -> None:
    """If it failed, a mistyped reference would be taken for text, and nothing would look for it."""
    for row in ROWS:
        left = DECISION.sub("", TEST_OR_FILE.sub("", row.shown_in))
        assert not left.replace(",", "").strip(), row


def test_numbers_go_up_and_counts_are_right() -> None:
    """If it failed, the first line would praise a page that says something else."""
    by_seed: dict[str, list[Statement]] = {}
    for row in ROWS:
        by_seed.setdefault(row.number.split(".")[0], []).append(row)
    assert [*by_seed] == ["1", "2", "3", "4", "5"]
    for seed, rows in by_seed.items():
        assert [row.number for row in rows] == [f"{seed}.{place}" for place in range(1, len(rows) + 1)]
        cells = [len(rows), *(sum(row.kind == kind for row in rows) for kind in KINDS)]
        told = re.search(
            rf"^\| {seed} \| .+ \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", PAGE, flags=re.MULTILINE
        )
        assert told is not None and [int(number) for number in told.groups()] == cells
    count = Counter(row.kind for row in ROWS)
    assert (
        f"\n{len(ROWS)} statements: {count['holds']} hold, {count['differs']} differ, "
        f"{count['does not apply']} do not apply.\n"
    ) in PAGE


def test_no_statement_stands_twice() -> None:
    """If it failed, one statement could hold in one row and differ in another of the same section."""
    for section in PAGE.split("\n### ")[1:]:
        texts = [row.text for row in statements(section)]
        assert len(set(texts)) == len(texts), section.splitlines()[0]


def test_every_decision_names_the_seeds_page_as_its_own() -> None:
    """If it failed, the decision about the rest of the differences would have rows that the page does not have."""
    named = set(TEST_OR_FILE.findall(DIFFERENCES.read_text(encoding="utf-8")))
    of_page = {
        test for row in ROWS if "[decision 48]" in row.shown_in for test in TEST_OR_FILE.findall(row.shown_in)
    }
    assert named <= of_page


@pytest.mark.parametrize(
    ("shown_in", "gone"),
    [
        ("`tests/test_seeds_page.py::test_no_statement_stands_twice`", []),
        ("`tests/test_seeds_page.py::test_that_there_is_not`", ["tests/test_seeds_page.py::test_that_there_is_not"]),
        ("`tests/test_seeds_page.py::statements`", ["tests/test_seeds_page.py::statements"]),
        ("`tests/test_seeds_page.py`", ["tests/test_seeds_page.py"]),
        ("`tests/conversations/no-such.txt`", ["tests/conversations/no-such.txt"]),
        ("[decision 4](decisions/0004-one-queue-of-effects.md)", []),
        ("[decision 5](decisions/0004-one-queue-of-effects.md)", ["0004-one-queue-of-effects.md"]),
        ("[decision 4](decisions/0004-no-such.md)", ["0004-no-such.md"]),
    ],
)  # fmt: skip
def test_what_is_not_there_is_told(shown_in: str, gone: list[str]) -> None:
    """If it failed, the tests above would pass whatever the page names."""
    assert missing(shown_in) == gone


@pytest.mark.parametrize(
    ("kind", "shown_in", "is_complete"),
    [
        ("holds", "`tests/conversations/confirm-early.txt`", True),
        ("holds", "[decision 4](decisions/0004-one-queue-of-effects.md)", False),
        ("differs", "`tests/conversations/confirm-early.txt`", False),
        ("differs", "[decision 4](decisions/0004-one-queue-of-effects.md)", False),
        ("does not apply", "[decision 4](decisions/0004-one-queue-of-effects.md)", True),
        ("does not apply", "", False),
    ],
)
def test_an_incomplete_row_is_told(kind: str, shown_in: str, is_complete: bool) -> None:
    """If it failed, a row could claim what nothing shows."""
    assert (lacks(Statement("1.1", "a statement", kind, shown_in)) == "") == is_complete


@pytest.mark.parametrize("here", ["hold", "differs", "holds: almost", ""])
def test_a_row_of_no_known_kind_is_refused(here: str) -> None:
    """If it failed, a row would be counted nowhere."""
    with pytest.raises(ValueError, match="expected one of holds"):
        statements(f"| 1.1 | a statement | {here} | `tests/conversations/confirm-early.txt` |")
