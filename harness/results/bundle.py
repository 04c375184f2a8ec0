"""A bundle: one file with all of a run, or of a certificate, for another machine.

It is a ZIP archive, as every system opens one. The same members give the same bytes: they are sorted, and have neither
owner nor time.

| part | what |
|---|---|
| the members | the files, by their names within the run's folder |
| manifest.json | format, version, kind, and for each member its length and SHA-256; the folders that are empty |
| the archive's comment | the seal (`harness.results.seal`) over all bytes before it |

A reader trusts no part of it. It checks the seal first; then every name, and the size that all members claim; then
every length and hash. It neither follows nor makes links, and writes nothing outside of its folder.
"""

from __future__ import annotations

import hashlib
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Literal, TypeVar

import msgspec

from checkers.history.errors import NOT_JSON
from harness.errors import StoreError
from harness.results import seal
from harness.results.hashes import Hashed
from harness.results.output_file import output_file
from harness.results.seal import Seal, Sign

MANIFEST = "manifest.json"
FORMAT = "qsync-bundle"
VERSION = 1
MEMBERS_MAX = 200_000
BYTES_MAX = 16 << 30
"""The most bytes of all members together."""
MANIFEST_BYTES_MAX = 64 << 20
_MODE = (stat.S_IFREG | 0o644) << 16
_LONG_AGO = (1980, 1, 1, 0, 0, 0)
_CHUNK_BYTES = 1 << 20
_UNREADABLE = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, EOFError, NotImplementedError),
    *(RuntimeError, ValueError, OverflowError, LookupError),
)
"""The exceptions of `zipfile` for an archive that contradicts itself."""

Kind = Literal["run", "certificate"]
T = TypeVar("T")


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """manifest.json. `folders`: the empty ones, such as that of a node without files."""

    kind: Kind
    files: dict[str, Hashed]
    folders: tuple[str, ...] = ()
    format: str = FORMAT
    version: int = VERSION


@dataclass(frozen=True, slots=True)
class Content:
    """The members of a bundle: names → files, or bytes; and the empty folders."""

    kind: Kind
    files: Mapping[str, Path | bytes]
    folders: tuple[str, ...] = ()


def content_of(folder: Path, below: str = "") -> tuple[dict[str, Path], list[str]]:
    """The files of a run's folder and its empty folders, by their names in a bundle.

    Unfinished files and whatever is neither a file nor a folder (links, sockets) stay behind.
    """
    files: dict[str, Path] = {}
    folders: list[str] = []
    for path in sorted(folder.rglob("*")):
        name = below + path.relative_to(folder).as_posix()
        if path.is_symlink() or path.name.endswith(".unfinished"):
            continue
        if path.is_file():
            files[name] = path
        elif path.is_dir() and not any(path.iterdir()):
            folders.append(name)
    return files, folders


def of_run(folder: Path) -> Content:
    files, folders = content_of(folder)
    return Content("run", files, tuple(folders))


def write(out: Path, content: Content, sign: Sign | None = None) -> Manifest:
    """Write the bundle, whole or not at all. Raises StoreError."""
    for name in (*content.files, *content.folders):
        if why := _why_not(name) or ("this name is taken" if name == MANIFEST else ""):
            raise StoreError(f"cannot bundle {name!r}: {why}")
    with output_file(out, "the bundle") as file:
        manifest = _written(file, content)
        seal.sealed(file, sign)
    return manifest


def _written(file: BinaryIO, content: Content) -> Manifest:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        files = {name: _add(archive, name, content.files[name]) for name in sorted(content.files)}
        manifest = Manifest(kind=content.kind, files=files, folders=tuple(sorted(content.folders)))
        _add(archive, MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")
        archive.comment = seal.EMPTY  # room for the seal, which hashes all bytes before it
    return manifest


def _add(archive: zipfile.ZipFile, name: str, given: Path | bytes) -> Hashed:
    info = zipfile.ZipInfo(name, _LONG_AGO)
    info.compress_type, info.create_system, info.external_attr = zipfile.ZIP_DEFLATED, 3, _MODE
    info.file_size = len(given) if isinstance(given, bytes) else given.stat().st_size
    digest, length = hashlib.sha256(), 0
    with archive.open(info, "w") as target:
        for chunk in [given] if isinstance(given, bytes) else _chunks(given):
            target.write(chunk)
            digest.update(chunk)
            length += len(chunk)
    return Hashed(length, digest.hexdigest())


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk


def is_bundle(path: Path) -> bool:
    """Whether a file begins or ends as a bundle, or is called so; it may be damaged."""
    try:
        if not path.is_file():  # what a pipe has can be read once
            return False
        with path.open("rb") as file:
            begins = file.read(4)
        return begins == b"PK\x03\x04" or path.suffix == ".zip" or seal.is_sealed(path)
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class Unpacked:
    """The manifest of a bundle that is intact, and its seal."""

    manifest: Manifest
    seal: Seal


def unpack(path: Path, to: Path, bytes_max: int = BYTES_MAX) -> Unpacked:
    """Write the members of a bundle below `to`, an empty folder. StoreError in one line if any byte is not as it was.

    `bytes_max`: the most that the members together may claim to be.
    """
    with _damaged(path):
        stored_seal = seal.intact(path)  # first: no changed byte reaches the parser of archives
        with zipfile.ZipFile(path) as archive:
            manifest = _manifest(path, archive, stored_seal, min(bytes_max, shutil.disk_usage(to).free))
            for name in manifest.folders:
                (to / name).mkdir(parents=True)
            for name, expected in manifest.files.items():
                _extract(path, archive, name, expected, to)
    return Unpacked(manifest, stored_seal)


@contextmanager
def _damaged(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise StoreError(f"cannot unpack {path}: {error.strerror or error}{where}") from error
    except _UNREADABLE as error:
        raise StoreError(f"{path} is damaged: {error}; try: copy it again") from error


def _manifest(path: Path, archive: zipfile.ZipFile, stored_seal: Seal, room: int) -> Manifest:
    """The manifest of an archive with exactly these members, of which each may be unpacked. `room`: in bytes."""
    infos = archive.infolist()
    names = [info.orig_filename for info in infos]
    claimed = sum(info.file_size for info in infos)
    longest = max((info.file_size for info in infos if info.orig_filename == MANIFEST), default=0)
    for is_wrong, why in (
        (archive.comment != stored_seal.encode(), "its seal is not its comment"),
        (len(infos) > MEMBERS_MAX, f"it has {len(infos):,} members, at most {MEMBERS_MAX:,} are expected"),
        (claimed > room, f"its members claim {claimed:,} bytes, and there is room for {room:,}"),
        (len({*names}) < len(names), "a member stands in it twice"),
        (MANIFEST not in names, f"it has no {MANIFEST}"),
        (longest > MANIFEST_BYTES_MAX, f"its {MANIFEST} claims {longest:,} bytes"),
    ):
        if is_wrong:
            raise StoreError(f"{path} is refused: {why}")
    for info in infos:  # by the name as it is stored: that in `filename` ends at the first NUL
        if why := _why_not(info.orig_filename) or _why_not_plain(info):
            raise StoreError(f"{path} is refused: its member {info.orig_filename!r}: {why}")
    try:
        manifest = decoded(archive.read(MANIFEST), Manifest, (FORMAT, VERSION), path)
    except NOT_JSON as error:
        raise StoreError(f"{path} is refused: its {MANIFEST}: {error}") from error
    listed, there = {*manifest.files}, {*names} - {MANIFEST}
    for surplus, why in (
        (there - listed, f"which its {MANIFEST} does not list"),
        (listed - there, f"which it lacks, although its {MANIFEST} lists it"),
    ):
        if surplus:
            raise StoreError(f"{path} is refused: {min(surplus)!r} is a member {why}")
    for name in manifest.folders:
        if why := _why_not(name):
            raise StoreError(f"{path} is refused: its folder {name!r}: {why}")
    return manifest


def decoded(data: bytes, type_: type[T], form: tuple[str, int], path: Path) -> T:
    """A document of this format and version. StoreError for another one; `NOT_JSON` for one of another shape."""
    head = msgspec.json.decode(data)
    said = (head.get("format"), head.get("version")) if isinstance(head, dict) else (None, None)
    if said != form:
        raise StoreError(
            f"{path}: expected {form[0]} {form[1]}, got {said[0]} {said[1]}; try: the qsync that wrote it"
        )
    return msgspec.convert(head, type_)


def _why_not(name: str) -> str:
    """Why a member must not have this name; "" if it may."""
    parts = name.split("/")
    if not name or any(part in ("", ".", "..") for part in parts) or PurePosixPath(name).is_absolute():
        return "it would be outside of the folder"
    if any(letter in "\\\0" or "\ud800" <= letter <= "\udfff" for letter in name):
        return "a letter of its name is not allowed in bundles"
    return ""


def _why_not_plain(info: zipfile.ZipInfo) -> str:
    if info.external_attr != _MODE or info.is_dir():
        return "it is not a plain file"
    if info.compress_type not in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED) or info.flag_bits & 1:
        return "it is packed in a way that bundles do not use"
    return ""


def _extract(path: Path, archive: zipfile.ZipFile, name: str, expected: Hashed, to: Path) -> None:
    target = to / name
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, length = hashlib.sha256(), 0
    with archive.open(name) as source, target.open("xb") as file:
        while chunk := source.read(_CHUNK_BYTES):
            length += len(chunk)
            digest.update(chunk)
            file.write(chunk)
    if Hashed(length, digest.hexdigest()) != expected:
        raise StoreError(f"{path} is refused: {name!r} differs from its {MANIFEST}")
