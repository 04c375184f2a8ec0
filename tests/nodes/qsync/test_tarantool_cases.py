"""Tarantool's own cases: each does what the original asserts, or is declared as different, with the reason.

`QSYNC_REWRITE=1 ./qsync test tests/nodes/qsync/test_tarantool_cases.py` writes the tables of the page anew.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.nodes.qsync.raft_cases import RaftPlay
from tests.nodes.qsync.tarantool_cases import Play, Wrong

OF_RAFT = ("test/unit/", "src/lib/raft/")
FOLDER = Path(__file__).parents[2] / "conversations" / "tarantool"
OF_THE_SOURCE = FOLDER.with_name("tarantool-source")
"""What the original's source does and no case of its suite asserts."""


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
        player = RaftPlay() if self.original.startswith(OF_RAFT) else Play()
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
READ = [case for file in sorted(OF_THE_SOURCE.glob("*.txt")) for case in cases_of(file)]


@pytest.mark.parametrize("case", READ, ids=[f"{case.file}: {case.name}" for case in READ])
def test_the_source(case: Case) -> None:
    """Broken, the node does something else than the original's source, at a moment that its suite does not look at."""
    case.play()


RECORDED = cases_of(Path(__file__).with_name("recorded_raft.txt"))


@pytest.mark.parametrize("case", RECORDED, ids=[case.name for case in RECORDED])
def test_recorded(case: Case) -> None:
    """Broken, an exact election has another state or timer than the original's code had after the same events."""
    case.play()


DECISION = (
    Path(__file__).parents[3] / "docs" / "decisions" / "0027-elections-differ-in-time-not-in-outcome.md"
)
OTHERWISE_BY_DEFAULT = {
    "raft_test_vote_skip: a vote of a higher term": "a candidate hears a higher term",
    "raft_test_vote_during_wal_write": "a candidate hears a higher term",
    "raft_test_vote_during_wal_write: a vote for itself": "own candidacy",
    "raft_test_leader_resign": "a leader resigns",
    "raft_test_leader_resign: a leader that is a candidate no more": "own candidacy",
    "raft_test_election_timeout": "the death timeout",
    "raft_test_enable_disable": "the death timeout",
    "raft_test_too_long_wal_write": "a term or vote is being written",
    "raft_test_too_long_wal_write: another time-out while a vote is written": "a term or vote is being written",
    "raft_test_split_vote: the leader is known": "a candidate hears a higher term",
    "raft_test_pre_vote": "the last peer loses the leader",
}
"""Cases of the unit test that do not hold by default: the row of decision 27 that says why."""
OF_THE_UNIT_TEST = [case for case in CASES if case.original == "test/unit/raft.c"]


@pytest.mark.parametrize("case", OF_THE_UNIT_TEST, ids=[case.name for case in OF_THE_UNIT_TEST])
def test_by_default(case: Case) -> None:
    """Broken, elections differ from the original's by default in a moment that no decision names."""
    usual = replace(case, lines=tuple(line.replace(" elections=exact", "") for line in case.lines))
    assert usual.lines != case.lines
    moment = OTHERWISE_BY_DEFAULT.get(case.name)
    if moment is None:
        usual.play()
    else:
        assert f"| {moment} |" in DECISION.read_text(encoding="utf-8")
        with pytest.raises(Wrong):
            usual.play()


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
