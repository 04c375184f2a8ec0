"""Versions of nodes that people give: what cannot be read is refused in one line."""

from __future__ import annotations

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


@pytest.mark.parametrize("how", [spoilt, encrypted, cut])
def test_a_wheel_that_cannot_be_unpacked_is_refused(tmp_path: Path, how: object) -> None:
    """If it failed, a download that broke off would end in a traceback."""
    path = tmp_path / "nodes.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(ENTRY, "print()\n" * 100)
    assert callable(how)
    how(path)
    with pytest.raises(WrongUse, match=r"cannot be read as a wheel: .*; try: a wheel, a checkout"):
        versions.package(str(path))
