"""Lines of a growing file against `split`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from harness.serve.lines import LINE_BYTES_MAX, Kept, Lines

pieces = st.lists(st.text(alphabet="ab\n", max_size=30), min_size=1, max_size=5)


@given(pieces, st.integers(1, 9), st.integers(0, 40), st.integers(0, 12))
def test_every_line_is_found_while_the_file_grows(
    written: list[str], block: int, first: int, count: int
) -> None:
    """If it failed, a link to an operation would show a different one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.jsonl"
        path.write_text("")
        lines = Lines(path, block_bytes=block)
        for part in written:
            with path.open("a") as file:
                file.write(part)
            whole = path.read_text().split("\n")[:-1]
            assert lines.count() == len(whole)
            assert [line.decode() for line in lines.read(first, count)] == whole[first : first + count]


def test_a_file_that_became_another_is_read_anew(tmp_path: Path) -> None:
    """If it failed, lines of the old file would be counted in the new one."""
    path = tmp_path / "file"
    path.write_bytes(b"1\n2\n3\n")
    lines = Lines(path)
    assert lines.count() == 3
    path.write_bytes(b"a\n")
    assert (lines.count(), lines.read(0, 9)) == (1, [b"a"])
    other = tmp_path / "other"
    other.write_bytes(b"b\nc\nd\n")
    other.replace(path)
    assert lines.read(1, 9) == [b"c", b"d"]


def test_a_line_that_is_too_long_is_cut(tmp_path: Path) -> None:
    """If it failed, one value of a gigabyte would be read for a page of a hundred rows."""
    path = tmp_path / "file"
    path.write_bytes(b"a\n" + b"x" * (LINE_BYTES_MAX * 2) + b"\nb\n")
    found = Lines(path).read(0, 3)
    assert [len(line) for line in found] == [1, LINE_BYTES_MAX, 1] and found[2] == b"b"


def test_only_a_few_files_are_remembered() -> None:
    """If it failed, a server that runs for weeks would remember every record that it ever showed."""
    made: list[Path] = []

    def make(path: Path) -> Path:
        made.append(path)
        return path

    kept = Kept(make, most=2)
    for name in ("a", "b", "a", "c", "b"):
        assert kept.use(Path(name), str) == name
    assert [path.name for path in made] == ["a", "b", "c", "b"]
