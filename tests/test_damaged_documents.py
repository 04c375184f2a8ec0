"""Bytes that are no JSON, whatever is wrong with them, have one line or count as absent in every reader of ours."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from checkers.cuts import jsonl as cuts
from checkers.history import HistoryError
from checkers.logs.wal import effects
from harness.campaigns import journal, runs
from harness.campaigns.certification import document
from harness.errors import StoreError
from harness.pages import node_logs
from harness.pipeline.remote_tables import _decoded as manifest_at_an_address
from harness.pipeline.tables import STATE, Tables
from harness.results import bundle, hashes
from harness.results.objects import Address
from harness.results.run_folder import VERDICT, RunFolder

NO_JSON = {"torn": b'{"a": 1', "bytes": b'{"format": "\xff"}', "deep": b"[" * 200_000, "another": b"7"}


def opened(folder: Path) -> None:
    with Tables(folder).opened():
        pass


def manifest_of(path: Path, data: bytes) -> None:
    file, seal = io.BytesIO(), SimpleNamespace(encode=bytes)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(bundle.MANIFEST, data)
    with zipfile.ZipFile(file) as archive:
        bundle._manifest(path, archive, cast(bundle.Seal, seal), room=1 << 30)


REFUSED: dict[str, tuple[str, Callable[[Path, bytes], object], type[Exception]]] = {
    "effects": ("effects.jsonl", lambda path, data: effects.of_lines(data + b"\n"), HistoryError),
    "hashes": (hashes.HASHES, lambda path, data: hashes.listed(path.parent), StoreError),
    "bundle": (bundle.MANIFEST, manifest_of, StoreError),
    "certificate": ("certificate.json", lambda path, data: document.read(path, path), StoreError),
    "tables": (STATE, lambda path, data: opened(path.parent), StoreError),
    "manifest": (
        "manifest",
        lambda path, data: manifest_at_an_address(Address("s3", "bucket/tables"), data),
        StoreError,
    ),
}
ABSENT: dict[str, tuple[str, Callable[[Path, bytes], object], Any]] = {
    "verdict": (VERDICT, lambda path, data: RunFolder(path.parent).read_verdict(), None),
    "campaign": (journal.HEAD, lambda path, data: journal.load(path.parent), None),
    "row of a cut": ("trace.jsonl", lambda path, data: cuts._row(data), None),
    "ended run": ("out", lambda path, data: runs._decoded(data), None),
    "line of a log": ("log.jsonl", lambda path, data: node_logs._fields(data)["level"], "raw"),
}


@pytest.mark.parametrize("wrong", NO_JSON)
@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_in_one_line(tmp_path: Path, name: str, wrong: str) -> None:
    """If it failed, a file with one bad byte would end in a traceback and the exit code of a broken harness."""
    file, read, error = REFUSED[name]
    (tmp_path / file).write_bytes(NO_JSON[wrong])
    with pytest.raises(error):
        read(tmp_path / file, NO_JSON[wrong])


@pytest.mark.parametrize("wrong", NO_JSON)
@pytest.mark.parametrize("name", ABSENT)
def test_it_counts_as_absent(tmp_path: Path, name: str, wrong: str) -> None:
    """If it failed, one bad byte in one file would keep a command from all the others."""
    file, read, absent = ABSENT[name]
    (tmp_path / file).write_bytes(NO_JSON[wrong])
    assert read(tmp_path / file, NO_JSON[wrong]) == absent
