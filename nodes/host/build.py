"""The code that this process runs: the release's number, and a digest of the package's sources.

Two checkouts of the same number differ by the digest, so they cannot be confused (PEP 440: "0.1.0+3f2a…").
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import nodes
from nodes.version import VERSION

DIGITS = 12


def version() -> str:
    """The version of the package on this disk."""
    return f"{VERSION}+{digest(Path(nodes.__path__[0]))}"


def digest(package: Path) -> str:
    """The digest of all Python files below a folder, their names included."""
    sha = hashlib.sha256()
    for path in sorted(package.rglob("*.py"), key=lambda path: path.relative_to(package).as_posix()):
        sha.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return sha.hexdigest()[:DIGITS]
