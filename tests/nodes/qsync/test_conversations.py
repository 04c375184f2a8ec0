"""Every conversation in `tests/conversations` goes as it is written: one rule of qsync a file.

`QSYNC_REWRITE=1 ./qsync test tests/nodes/qsync/test_conversations.py` writes down what the node says now.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.nodes.qsync.conversation import Conversation

FOLDER = Path(__file__).parents[2] / "conversations"
FILES = sorted(FOLDER.glob("*.txt"))


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


def test_there_is_a_conversation_for_every_rule() -> None:
    """Broken, the folder was not found and nothing was tested."""
    assert len(FILES) >= 20
    assert all(file.read_text(encoding="utf-8").startswith("# ") for file in FILES)
