"""Bundles: what goes in comes out, and nothing that anybody has changed is taken."""

from __future__ import annotations

import hashlib
import io
import os
import random
import stat
import struct
import zipfile
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from harness.errors import StoreError, WrongUse
from harness.results import bundle, seal
from harness.results.bundle import Content, Manifest
from harness.results.hashes import Hashed, of_file
from harness.results.seal import PrivateKey, PublicKey

FILES = {"plan.json": b"{}", "nodes/n1/log.jsonl": b"line\n" * 50, "nodes/n2/0.xlog": bytes(range(256))}


def run_folder(path: Path) -> Path:
    for name, data in FILES.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    (path / "nodes" / "n3").mkdir()
    (path / ".plan.json.unfinished").write_bytes(b"half")
    (path / "link").symlink_to("/etc/passwd")
    return path


@pytest.fixture
def bundled(tmp_path: Path) -> Path:
    """The bundle of a folder."""
    out = tmp_path / "made.zip"
    bundle.write(out, bundle.of_run(run_folder(tmp_path / "run")))
    return out


def unpacked(path: Path, **given: int) -> Path:
    to = path.parent / "unpacked"
    to.mkdir()
    bundle.unpack(path, to, **given)
    return to


def refused(path: Path, **given: int) -> str:
    with pytest.raises(StoreError) as raised:
        unpacked(path, **given)
    assert "\n" not in raised.value.message
    return raised.value.message


def forged(
    path: Path, names: list[tuple[str | zipfile.ZipInfo, bytes]], manifest: bytes | None = None
) -> Path:
    """An archive of these members that anybody can write, its seal included."""
    listed = {
        (each if isinstance(each, str) else each.filename): Hashed(len(data), _sha256(data))
        for each, data in names
    }
    made = msgspec.json.encode(Manifest(kind="run", files=listed)) if manifest is None else manifest
    with path.open("w+b") as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for each, data in [*names, (bundle.MANIFEST, made)]:
                info = zipfile.ZipInfo(each) if isinstance(each, str) else each
                if isinstance(each, str):
                    info.external_attr = (stat.S_IFREG | 0o644) << 16
                archive.writestr(info, data, zipfile.ZIP_DEFLATED)
            archive.comment = seal.EMPTY
        seal.sealed(file, None)
    return path


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_what_goes_in_comes_out(bundled: Path) -> None:
    """If it failed, another machine would judge another run: without a node, or with half a file."""
    to = unpacked(bundled)
    found = {path.relative_to(to).as_posix(): path.read_bytes() for path in to.rglob("*") if path.is_file()}
    assert found == FILES
    assert (to / "nodes" / "n3").is_dir()
    assert not (to / "link").exists()


def test_the_same_files_give_the_same_bytes(bundled: Path, tmp_path: Path) -> None:
    """If it failed, a bundle would tell its maker, place and time, and two of them could not be compared."""
    other = tmp_path / "elsewhere"
    other.mkdir()
    bundle.write(other / "made.zip", bundle.of_run(run_folder(other / "run")))
    assert of_file(other / "made.zip") == of_file(bundled)
    assert str(tmp_path).encode() not in bundled.read_bytes()


def test_a_pipe_gets_the_same_bytes_and_a_link_stays_one(bundled: Path, tmp_path: Path) -> None:
    """If it failed, `--out` would replace a device or a link by a file, and what it stands for would get nothing."""
    content = bundle.of_run(tmp_path / "run")
    pipe, link, behind = (tmp_path / name for name in ("pipe", "link.zip", "behind.zip"))
    os.mkfifo(pipe)
    link.symlink_to(behind.name)
    number = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        bundle.write(pipe, content)
        assert pipe.is_fifo() and os.read(number, 1 << 16) == bundled.read_bytes()
    finally:
        os.close(number)
    bundle.write(link, content)
    assert link.is_symlink() and behind.read_bytes() == bundled.read_bytes()


def test_a_pipe_is_asked_for_nothing(tmp_path: Path) -> None:
    """If it failed, `qsync check PIPE` would take the first bytes, and then wait for a writer that has gone."""
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(tmp_path / "pipe", os.O_WRONLY)
    os.write(writer, b"PK\x03\x04 and more")
    try:
        assert not bundle.is_bundle(tmp_path / "pipe")
        assert os.read(reader, 4) == b"PK\x03\x04"
    finally:
        os.close(reader)
        os.close(writer)


def test_any_program_opens_it(bundled: Path) -> None:
    """If it failed, a reader without this project could not look into a bundle."""
    with zipfile.ZipFile(bundled) as archive:
        assert archive.testzip() is None
        assert {*archive.namelist()} == {*FILES, bundle.MANIFEST}


def test_any_changed_byte_is_refused(bundled: Path) -> None:
    """If it failed, a bundle could be changed unnoticed."""
    data = bundled.read_bytes()
    chance = random.Random(1)
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= chance.randrange(1, 256)
        bundled.write_bytes(changed)
        with pytest.raises(StoreError):
            seal.intact(bundled)
    for shorter in (data[:-1], data[: len(data) // 2], b"", data + b"\n"):
        bundled.write_bytes(shorter)
        with pytest.raises(StoreError):
            seal.intact(bundled)


@pytest.mark.parametrize("name", ["../out", "/tmp/out", "nodes/../../out", "a//b", "./a", "", "a\\b", "a/"])
def test_no_member_leaves_the_folder(name: str, tmp_path: Path) -> None:
    """If it failed, checking a foreign bundle would overwrite files of the reader."""
    assert "member" in refused(forged(tmp_path / "bad.zip", [(name, b"x")]))
    assert not (tmp_path / "out").exists()


def test_no_link_is_made(tmp_path: Path) -> None:
    """If it failed, the next member could be written through the link."""
    link = zipfile.ZipInfo("plan.json")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    assert "not a plain file" in refused(forged(tmp_path / "bad.zip", [(link, b"/etc/passwd")]))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_no_member_stands_twice(tmp_path: Path) -> None:
    """If it failed, one program would read one content, and another program the other."""
    assert "twice" in refused(forged(tmp_path / "bad.zip", [("plan.json", b"1"), ("plan.json", b"2")]))


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({}, "does not list"),
        ({"a": b"other"}, "differs from its manifest"),
        ({"a": b"x", "b": b"y"}, "lacks"),
    ],
)
def test_the_manifest_and_the_members_agree(files: dict[str, bytes], why: str, tmp_path: Path) -> None:
    """If it failed, a file could be slipped in, taken away or exchanged."""
    listed = {name: Hashed(len(data), _sha256(data)) for name, data in files.items()}
    manifest = msgspec.json.encode(Manifest(kind="run", files=listed))
    assert why in refused(forged(tmp_path / "bad.zip", [("a", b"x")], manifest))


@pytest.mark.parametrize(
    "manifest", [b"", b"[]", b"{}", b'{"format":"qsync-bundle","version":2}', b"[" * 100_000]
)
def test_a_manifest_of_another_form_is_one_line(manifest: bytes, tmp_path: Path) -> None:
    """If it failed, a bundle of a later version would end in a traceback."""
    assert refused(forged(tmp_path / "bad.zip", [("a", b"x")], manifest))


def test_a_bundle_that_claims_too_much_is_not_unpacked(tmp_path: Path) -> None:
    """If it failed, a small file could fill the disk."""
    bad = forged(tmp_path / "bad.zip", [("zeros", bytes(1_000_000))])
    assert bad.stat().st_size < 3000
    assert "room" in refused(bad, bytes_max=500_000)
    assert not any((tmp_path / "unpacked").iterdir())


def test_a_member_that_lies_about_its_size_is_refused(tmp_path: Path) -> None:
    """If it failed, a member could expand to more than it claims."""
    path = forged(tmp_path / "bad.zip", [("zeros", bytes(100_000))])
    data = bytearray(path.read_bytes())
    for header, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = data.find(header) + place
        data[at : at + 4] = struct.pack("<I", 10)
    file = io.BytesIO(bytes(data[: -len(seal.EMPTY)]) + seal.EMPTY)
    seal.sealed(file, None)
    path.write_bytes(file.getvalue())
    assert refused(path)


def test_a_folder_of_the_manifest_stays_inside(tmp_path: Path) -> None:
    """If it failed, an empty folder could be made anywhere."""
    manifest = msgspec.json.encode(Manifest(kind="run", files={}, folders=("../out",)))
    assert "folder" in refused(forged(tmp_path / "bad.zip", [], manifest))
    assert not (tmp_path / "out").exists()


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_bytes_of_any_kind_are_one_line(bundled: Path) -> None:
    """If it failed, a damaged archive whose seal was written again would end in a traceback, or be taken with other
    content."""
    data, chance = bundled.read_bytes()[: -len(seal.EMPTY)], random.Random(2)
    for number in range(300):
        changed = bytearray(data)
        for _ in range(chance.randrange(1, 4)):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        file = io.BytesIO(bytes(changed) + seal.EMPTY)
        seal.sealed(file, None)
        bundled.write_bytes(file.getvalue())
        to = bundled.parent / f"to-{number}"
        to.mkdir()
        try:
            bundle.unpack(bundled, to)
        except StoreError as error:
            assert "\n" not in error.message  # noqa: PT017  # one that is raised is one line; none is fine as well
        else:
            found = {
                path.relative_to(to).as_posix(): path.read_bytes() for path in to.rglob("*") if path.is_file()
            }
            assert found == FILES


def test_a_signature_is_of_one_key_and_of_these_bytes(tmp_path: Path) -> None:
    """If it failed, a bundle could be signed by anybody, or its signature moved to another bundle."""
    ours, theirs = (PrivateKey(Ed25519PrivateKey.generate()) for _ in range(2))
    first, second = tmp_path / "first.zip", tmp_path / "second.zip"
    bundle.write(first, Content("run", {"a": b"1"}), ours.sign)
    bundle.write(second, Content("run", {"a": b"2"}), ours.sign)
    public = PublicKey(ours.key.public_key())
    assert public.has_signed(seal.intact(first))
    assert not PublicKey(theirs.key.public_key()).has_signed(seal.intact(first))
    moved = seal.Seal(seal.intact(second).digest, seal.intact(first).signature)
    assert not public.has_signed(moved)
    assert not public.has_signed(seal.Seal(seal.intact(first).digest))


def test_keys_are_read_from_pem(tmp_path: Path) -> None:
    """If it failed, a wrong file as key would end in a traceback, or its content be shown."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )

    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "private.pem").write_bytes(pem)
    (tmp_path / "public.pem").write_bytes(
        key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    other = ec.generate_private_key(ec.SECP256R1())
    (tmp_path / "other.pem").write_bytes(
        other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    private, public = seal.private_key(tmp_path / "private.pem"), seal.public_key(tmp_path / "public.pem")
    assert private.name == public.name
    for name in ("missing.pem", "other.pem", "public.pem"):
        with pytest.raises(WrongUse) as raised:
            seal.private_key(tmp_path / name)
        assert "BEGIN" not in raised.value.message
    with pytest.raises(WrongUse):
        seal.public_key(tmp_path / "private.pem")
