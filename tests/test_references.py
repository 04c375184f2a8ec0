"""Names in backticks: a module, or a file, that a docstring or a page sends its reader to is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("checkers", "harness", "nodes")
DOTTED = re.compile(rf"`((?:{'|'.join(ROOMS)})(?:\.\w+)+)")
FILE = re.compile(rf"`((?:{'|'.join(ROOMS)})/[\w./-]*(?:\.py|\.md|/))`")
NAME = re.compile(r"`([\w/]+\.py)`")


def texts() -> Iterator[tuple[str, str]]:
    paths = [path for room in ROOMS for path in (ROOT / room).rglob("*.*")]
    for path in (*paths, *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")):
        if path.suffix in (".py", ".md"):
            yield str(path.relative_to(ROOT)), path.read_text()


def is_there(name: str) -> bool:
    """Whether the dotted name is a package, a module, or a name that its module writes."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        base = ROOT.joinpath(*parts[:end])
        for file in (base.with_suffix(".py"), base / "__init__.py"):
            if file.exists():
                return end == len(parts) or re.search(rf"\b{parts[end]}\b", file.read_text()) is not None
        if base.is_dir() and end == len(parts):
            return True
    return False


def test_what_a_text_names_is_there() -> None:
    """If it failed, a reader would be sent to a file that was moved long ago."""
    files = [f"/{path.relative_to(ROOT)}" for path in ROOT.rglob("*.py") if ".venv" not in path.parts]
    every = [(place, DOTTED.findall(text), FILE.findall(text)) for place, text in texts()]
    ends = [(place, f"/{name}") for place, text in texts() for name in NAME.findall(text)]
    assert [(place, end) for place, end in ends if not any(file.endswith(end) for file in files)] == []
    assert [(place, name) for place, names, _ in every for name in names if not is_there(name)] == []
    assert [(place, name) for place, _, names in every for name in names if not (ROOT / name).exists()] == []
