"""Every conversation in `tests/conversations` goes as it is written: one rule of qsync a file.

`QSYNC_REWRITE=1 ./qsync test tests/nodes/qsync/test_conversations.py` writes down what the node says now.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.nodes.qsync.conversation import Conversation

FOLDER = Path(__file__).parents[2] / "conversations"
FILES = sorted(FOLDER.glob("*.txt"))
ERRORS = {7, 116, 214, 215, 216, 217, 222, 223, 224, 227, 228, 242, 244, 245, 246, 278, 289, 295}
"""Those of synchronous replication and elections in Tarantool."""


def played(script: str) -> str:
    """The script with the effects that really come out."""
    conversation = Conversation()
    lines: list[str] = []
    for line in script.splitlines():
        if line.startswith("> "):
            lines.append(line)
            lines.extend(f"  {effect}" for effect in conversation.happen(line.removeprefix("> ").strip()))
        elif not line.startswith("  "):
            lines.append(line)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_conversation(file: Path) -> None:
    """Broken, a node answers, writes or sends something else than the rule at the top of the file says."""
    script = file.read_text(encoding="utf-8")
    told = played(script)
    if os.environ.get("QSYNC_REWRITE") == "1":
        file.write_text(told, encoding="utf-8")
    else:
        assert told == script


def test_every_conversation_says_its_rule() -> None:
    """Broken, the folder was not found and nothing was tested, or a file does not say what it is for."""
    assert len(FILES) >= 100
    assert all(file.read_text(encoding="utf-8").startswith("# ") for file in FILES)


CHECKLIST = (FOLDER / "README.md").read_text(encoding="utf-8")
POINTS = re.findall(r"^\| (.+) \| ([\w.-]+) \| `(.+)` \|$", CHECKLIST, flags=re.MULTILINE)


def test_every_point_of_the_checklist_is_seen_in_its_conversation() -> None:
    """Broken, the page names a rule that no conversation holds any more."""
    rows = [line for line in CHECKLIST.splitlines() if re.match(r"\| (?!rule |code |---)", line)]
    assert len(POINTS) == len(rows), "a row of the page is not read"
    unseen = [
        f"{name}: {seen}"
        for _, name, seen in POINTS
        if not any(
            seen in line
            for line in (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()
            if line.startswith("  ")
        )
    ]
    assert unseen == []


def test_every_conversation_is_on_the_page() -> None:
    """Broken, a rule is held by a conversation and nobody who reads the checklist finds it."""
    assert {file.stem for file in FILES} == {name for _, name, _ in POINTS}


def test_every_error_of_the_protocol_is_seen() -> None:
    """Broken, an error that Tarantool's protocol knows is raised nowhere, and the page does not say so."""
    section = CHECKLIST.split("## Errors")[1]
    told = {int(code) for code in re.findall(r"^\| (\d+)", section, flags=re.MULTILINE)}
    left_out = {int(code) for code in re.findall(r"\b(\d{3})\b", section.split("\n\n")[-1].split("[")[0])}
    assert told | left_out == ERRORS
    assert not told & left_out


def test_the_decisions_name_conversations_that_there_are() -> None:
    """Broken, a page of decisions says that a behaviour is seen where it is not."""
    page = next((FOLDER.parents[1] / "docs" / "decisions").glob("0014-*.md")).read_text(encoding="utf-8")
    rows = [line.split("|")[-2].strip() for line in page.splitlines() if line.startswith("| ")][1:]
    named = {name.strip() for row in rows for name in row.split(",")}
    assert len(rows) >= 15
    assert named <= {file.stem for file in FILES}
