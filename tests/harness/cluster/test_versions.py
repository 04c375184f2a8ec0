"""Versions of nodes that people give: what cannot be read is refused in one line."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from harness.cluster import versions
from harness.errors import WrongUse

ENTRY = "nodes/host/__main__.py"


def spoilt(path: Path) -> None:
    """The packed bytes are not those that were packed."""
    data = path.read_bytes()
    place = data.index(ENTRY.encode()) + len(ENTRY)
    path.write_bytes(data[:place] + b"\xff\xff" + data[place + 2 :])


def encrypted(path: Path) -> None:
    """The wheel says that it needs a password."""
    data = bytearray(path.read_bytes())
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-30])


def misnamed(path: Path) -> None:
    """A name that says it is UTF-8, and is not."""
    data = bytearray(path.read_bytes())
    place = data.index(b"PK\x01\x02")
    data[place + 9] |= 8
    data[data.index(ENTRY.encode(), place)] = 0xFF
    path.write_bytes(data)


def spoilt_lzma(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as packed:
        packed.writestr(ENTRY, "print()\n" * 100)
    data = bytearray(path.read_bytes())
    place = data.index(ENTRY.encode()) + len(ENTRY) + 4
    data[place : place + 12] = b"\xff" * 12
    path.write_bytes(data)


@pytest.mark.parametrize("how", [spoilt, encrypted, cut, misnamed, spoilt_lzma])
def test_a_wheel_that_cannot_be_unpacked_is_refused(tmp_path: Path, how: object) -> None:
    """If it failed, a download that broke off would end in a traceback."""
    path = tmp_path / "nodes.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(ENTRY, "print()\n" * 100)
    assert callable(how)
    how(path)
    with pytest.raises(WrongUse, match=r"cannot be read as a wheel: .*; try: a wheel, a checkout"):
        versions.package(str(path))


def test_a_folder_may_have_a_file_with_a_name_that_is_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, one odd file in a checkout would end in a traceback."""
    monkeypatch.setattr(versions, "FOLDER", tmp_path / "kept")
    (tmp_path / ENTRY).parent.mkdir(parents=True)
    (tmp_path / ENTRY).touch()
    odd = os.fsdecode(b"nodes/\xff")
    (tmp_path / odd).touch()
    root = versions.package(str(tmp_path)).root
    assert root is not None and (root / odd).exists()


def test_a_binary_of_this_folder_is_not_looked_for_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, `--node-to ./tarantool` would bring the nodes to the installed version instead."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "installed"))
    for folder in (tmp_path, tmp_path / "installed"):
        folder.mkdir(exist_ok=True)
        (folder / "store").touch(0o755)
    assert versions.binary("./store").program == tmp_path / "store"
    assert versions.binary("store").program == tmp_path / "installed" / "store"
    (tmp_path / "store").unlink()
    with pytest.raises(WrongUse, match=r"there is no program \./store"):
        versions.binary("./store")


def test_a_name_that_no_file_can_have_is_refused() -> None:
    """If it failed, a text that was pasted by mistake would end in a traceback."""
    with pytest.raises(WrongUse, match="xxx: File name too long; try: another path"):
        versions.package("x" * 300)
