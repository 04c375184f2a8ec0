"""Tarantool's own cases: each does what the original asserts, or is declared as different, with the reason.

`QSYNC_REWRITE=1 ./qsync test tests/nodes/qsync/test_tarantool_cases.py` writes the tables of the page anew.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.nodes.qsync.raft_cases import RaftPlay
from tests.nodes.qsync.tarantool_cases import Play, Wrong

UNIT_TEST = "test/unit/"
FOLDER = Path(__file__).parents[2] / "conversations" / "tarantool"


@dataclass(frozen=True)
class Case:
    """One case of an original file; `differs` is empty if it holds."""

    file: str
    original: str
    name: str
    differs: str
    lines: tuple[str, ...]

    def play(self) -> None:
        """`Wrong` if it does not hold."""
        player = RaftPlay() if self.original.startswith(UNIT_TEST) else Play()
        player.play(self.lines)


def cases_of(file: Path) -> list[Case]:
    text = file.read_text(encoding="utf-8")
    original = re.search(r"^# original: (.+)$", text, flags=re.MULTILINE)
    assert original is not None, file
    blocks = re.split(r"^(?=before$|case )", text, flags=re.MULTILINE)[1:]
    before: tuple[str, ...] = ()
    found = []
    for block in blocks:
        head, *rest = block.splitlines()
        lines = tuple(line.strip() for line in rest if line.strip() and not line.strip().startswith("#"))
        if head == "before":
            before = lines
            continue
        parts = re.fullmatch(r"case (?P<name>.+?)( differs: (?P<differs>.+))?", head)
        assert parts is not None, head
        found.append(Case(file.stem, original[1], parts["name"], parts["differs"] or "", before + lines))
    return found


FILES = sorted(FOLDER.glob("*.txt"))
CASES = [case for file in FILES for case in cases_of(file)]


@pytest.mark.parametrize("case", CASES, ids=[f"{case.file}: {case.name}" for case in CASES])
def test_case(case: Case) -> None:
    """Broken, the node does something else than Tarantool's own suite asserts, and no page says so; or a difference is
    declared that there is not."""
    if case.differs:
        with pytest.raises(Wrong):
            case.play()
    else:
        case.play()


PAGE = FOLDER / "README.md"


def holding() -> list[Case]:
    return [case for case in CASES if not case.differs]


def differing() -> list[Case]:
    return [case for case in CASES if case.differs]


def page() -> str:
    """The page with the tables as the cases are."""
    share = 100 * len(holding()) / len(CASES)
    told = f"{len(CASES)} cases: {len(holding())} hold ({share:.1f} %), {len(differing())} differ."
    rows = ["| original | case | |", "|---|---|---|"]
    for case in CASES:
        what = f"differs: {case.differs}" if case.differs else "holds"
        rows.append(f"| {case.original.removeprefix('test/')} | {case.name} | {what} |")
    text = PAGE.read_text(encoding="utf-8")
    for name, block in (("count", told), ("cases", "\n".join(rows))):
        text = re.sub(
            rf"(<!-- {name} -->\n).*?(<!-- end -->)",
            lambda found, block=block: f"{found[1]}{block}\n{found[2]}",  # type: ignore[misc]
            text,
            flags=re.DOTALL,
        )
    return text


def test_the_page_lists_every_case() -> None:
    """Broken, somebody reads of cases that are not played, or of differences that are none."""
    if os.environ.get("QSYNC_REWRITE") == "1":
        PAGE.write_text(page(), encoding="utf-8")
    assert page() == PAGE.read_text(encoding="utf-8")


def test_enough_cases_hold() -> None:
    """Broken, the reference node is no more what Tarantool's own suite says it should be."""
    assert len(CASES) >= 150
    assert len(holding()) >= 0.97 * len(CASES)


def test_every_difference_has_a_reason_and_every_case_one_name() -> None:
    """Broken, a difference is declared and nobody can tell why; or a case is counted twice."""
    assert all(len(case.differs) > 40 for case in differing())
    names = [(case.file, case.name) for case in CASES]
    assert len(set(names)) == len(names)
    assert all(case.lines for case in CASES)
