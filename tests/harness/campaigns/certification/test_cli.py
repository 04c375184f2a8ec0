"""`qsync certify` on the command line: one line for each reason, and the exit code of the table."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.harness.campaigns.certification.conftest import KEY, PLAN, Sample
from tests.harness.cli.verbs.conftest import Qsync, qsync, results

__all__ = ["qsync", "results"]


def pem(path: Path, key: Ed25519PublicKey) -> Path:
    path.write_bytes(key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return path


def test_a_certificate_is_verified(qsync: Qsync, sample: Sample, tmp_path: Path) -> None:
    """If it failed, a release could not be checked by its file, or a wrong key would pass."""
    ours = pem(tmp_path / "ours.pem", KEY.key.public_key())
    theirs = pem(tmp_path / "theirs.pem", Ed25519PrivateKey.generate().public_key())
    good = qsync("certify", "--verify", sample.path, "--key", ours)
    assert good.code == 0, good
    assert good.out.startswith("VERIFIED  small: 2 runs, all valid")
    bad = qsync("certify", "--verify", sample.path, "--key", theirs)
    assert bad.code == 3
    assert bad.out.startswith("REFUSED: 1 reason\n  its signature is not of the key")


def test_a_damaged_certificate_is_one_line(qsync: Qsync, sample: Sample, tmp_path: Path) -> None:
    """If it failed, damage would end in a traceback, or pass."""
    bad = tmp_path / "bad.zip"
    data = bytearray(sample.path.read_bytes())
    data[1000] ^= 1
    bad.write_bytes(data)
    done = qsync("certify", "--verify", bad)
    assert done.code == 3
    assert "damaged" in done.line
    assert qsync("certify", "--compare", bad, sample.path).code == 3


def test_two_are_compared(qsync: Qsync, sample: Sample) -> None:
    """If it failed, a release manager could not see what changed since the last release."""
    done = qsync("certify", "--compare", sample.path, sample.path)
    assert done.code == 0
    assert done.out.splitlines()[0].endswith("none")


def test_a_certificate_is_not_a_run(qsync: Qsync, sample: Sample) -> None:
    """If it failed, `check` would judge a folder without a run."""
    done = qsync("check", sample.path)
    assert done.code == 64
    assert "certify --verify" in done.line


@pytest.mark.parametrize(
    "words",
    [
        ("PLAN", "--bar", "none"),
        ("PLAN", "--verify", "FILE"),
        ("--verify", "no-such.zip"),
        ("--compare", "no-such.zip", "no-such.zip"),
        ("no-such.toml",),
        ("PLAN", "--key", "no-such.pem"),
        ("PLAN", "--seeds-per-bug", "0"),
    ],
)
def test_wrong_use_is_one_line(words: tuple[str, ...], qsync: Qsync, tmp_path: Path) -> None:
    """If it failed, a slip would end in a traceback, or begin a matrix."""
    (tmp_path / "small.toml").write_text(PLAN)
    given = [str(tmp_path / "small.toml") if word == "PLAN" else word for word in words]
    done = qsync("certify", *given)
    assert done.code == 64
    assert done.line
