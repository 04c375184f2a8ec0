"""The tables of docs/checkers-beside-others.md, which the tests hold to what they count."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "checkers-beside-others.md"


def text() -> str:
    """The page in one line."""
    return " ".join(PAGE.read_text().split())


def row(name: str) -> list[str]:
    """The two cells behind the name, in the only row that begins with it: in most, how many there are and agree."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| {name} |")]
    (cells,) = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return cells[1:3]
