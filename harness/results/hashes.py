"""A run's own list of hashes, `hashes.json`, which is written with its verdict.

    {"format": "qsync-hashes", "version": 2, "files": {"history.jsonl": {"bytes": 812, "sha256": "9f86…"}, …}}

| file | in the list as |
|---|---|
| plan.json, history.jsonl, history/; logs, snapshots, messages below nodes/ | the record: hashed before it is judged |
| history.parquet, verdict.json | the results of the judgement |

A file that could not be read then is listed as null, and its content is not compared. The page is not listed, because
no verb reads it. A run without the list comes from an earlier version, or was never judged; it is read as it is. A list
of version 1 lacks the logs of the two-phase store and the records of messages, lists of an earlier day those of the
TxLog. They are not compared then.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

import msgspec

from checkers.history import segments
from checkers.history.errors import NOT_JSON
from harness.errors import StoreError

HASHES = "hashes.json"
FORMAT = "qsync-hashes"
VERSION = 2
SINCE_2 = (
    *("nodes/*/wal-*.log", "nodes/*/cuts.index", "nodes/*/trace/*.jsonl"),
    *("nodes/*/removed/*.xlog", "nodes/*/removed/*.snap"),
)
UNLISTED_ONCE = ("nodes/*/txlog.log",)
RECORD = (
    *("plan.json", "history.jsonl", "nodes/effects.jsonl"),
    *segments.PATTERNS,
    *("nodes/*/log.jsonl", "nodes/*/*.xlog", "nodes/*/*.snap"),
    *SINCE_2,
    *UNLISTED_ONCE,
)
"""Patterns of the files that are judged. Snapshots: before Tarantool 2.10 they say which spaces are synchronous, and
those of the two-phase store are the base of a restore."""


class Hashed(msgspec.Struct, frozen=True):
    """A file's length and the SHA-256 of its content, in hexadecimal digits."""

    bytes: int
    sha256: str


class _Document(msgspec.Struct, kw_only=True):
    format: str = FORMAT
    version: int = VERSION
    files: dict[str, Hashed | None]


CHANGED = f"it differs from its {HASHES}"
"""The beginning of the reason why a changed run is left out."""

Files = Mapping[str, Hashed | None]
"""Names within the run's folder → hashes; None of a file that cannot be read."""


def of_file(path: Path) -> Hashed:
    """Raises OSError."""
    return _of(path.open("rb"))


def of_history(path: Path) -> Hashed:
    """The hash of all bytes of a record, with those in segments. Raises as `segments.record`."""
    return _of(segments.stream(path))


def _of(content: io.BufferedReader) -> Hashed:
    with content as file:
        digest = hashlib.file_digest(file, "sha256")
        return Hashed(file.tell(), digest.hexdigest())


def of_record(folder: Path) -> Files:
    """The present hashes of the judged files."""
    return {name: _of_readable(folder / name) for name in _names(folder, RECORD)}


def _names(folder: Path, patterns: Sequence[str]) -> list[str]:
    return sorted(str(path.relative_to(folder)) for pattern in patterns for path in folder.glob(pattern))


def document(files: Files) -> bytes:
    """The content of hashes.json."""
    return msgspec.json.format(msgspec.json.encode(_Document(files=dict(files))), indent=1) + b"\n"


def listed(folder: Path) -> Files | None:
    """The hashes in the list of a run; None if it has no list. StoreError if the list cannot be read."""
    try:
        stored = msgspec.json.decode((folder / HASHES).read_bytes(), type=_Document)
    except FileNotFoundError:
        return None
    except (OSError, *NOT_JSON) as error:
        raise StoreError(f"{folder / HASHES} cannot be read: {error}") from error
    if stored.format != FORMAT or stored.version not in (1, VERSION):
        raise StoreError(
            f"{folder / HASHES}: expected {FORMAT} {VERSION}, got {stored.format} {stored.version}; "
            "try: the qsync that wrote it"
        )
    unlisted = UNLISTED_ONCE if stored.version == VERSION else (*SINCE_2, *UNLISTED_ONCE)
    return {**dict.fromkeys(_names(folder, unlisted)), **stored.files}


def changed(folder: Path, is_wanted: Callable[[str], bool] = lambda name: True) -> list[str]:
    """The files of a run that differ from its list, in words; none if the run has no list.

    `is_wanted`: which files a partial copy of the run must have. Raises StoreError as `listed`.
    """
    was = listed(folder)
    if was is None:
        return []
    there = {name for name in was if is_wanted(name) or (folder / name).exists()}
    return list(_different({name: was[name] for name in was if name in there}, folder, of_record(folder)))


def must_be_as_judged(folder: Path, record: Files) -> None:
    """Raises StoreError, which names the files, if a run was judged and its record has changed since."""
    was = listed(folder)
    if was is None:
        return
    of_the_record = {name: was[name] for name in was if name in record or is_of_record(name)}
    different = list(_different(of_the_record, folder, record))
    if different:
        raise StoreError(
            f"{folder}: the record has changed since the run was judged: {'; '.join(different)}; its verdict is "
            f"kept; try: the file as it was, or remove {HASHES} to judge the record as it is now"
        )


def _different(was: Files, folder: Path, record: Files) -> Iterator[str]:
    """`record`: the present hashes of the record's files; hashes of the remaining files are computed."""
    for name in sorted({*was, *record}):
        if name not in was:
            yield f"{name} was added"
        elif not (folder / name).exists():
            yield f"{name} is missing"
        elif was[name] not in (None, record[name] if name in record else _of_readable(folder / name)):
            yield f"{name} has another content"


def is_of_record(name: str) -> bool:
    """Whether a file of this name in a run's folder is among those that are judged."""
    return any(PurePosixPath(f"/{name}").match(f"/{pattern}") for pattern in RECORD)


def _of_readable(path: Path) -> Hashed | None:
    try:
        return of_file(path)
    except OSError:
        return None
