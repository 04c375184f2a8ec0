"""One small certificate for all tests: two runs of the reference node, and two of its bugs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from harness.campaigns import plan as campaign_plan
from harness.campaigns.certification.document import Certificate, digest_of_code
from harness.campaigns.certification.making import Asked, Made, certify
from harness.campaigns.certification.verifying import Verified, verify
from harness.cli.options import ROOT, code_version
from harness.results import bundle
from harness.results.bundle import Content, content_of
from harness.results.hashes import Hashed, of_file
from harness.results.seal import PrivateKey, PublicKey
from harness.systems.qsync.system import Qsync

PLAN = """
name = "small"
seeds = 1
first_seed = 8
concurrency = 2
[plan]
cluster = "sim"
time_limit_s = 8
rate = 30
faults = "isolate-owner"
[matrix]
configuration = ["C", "H"]
[certificate]
product = "The Small Store"
maker = "its authors"
bar = "trial"
"""
BUGS = ("confirm-early", "duplicate-confirm")
TODAY = datetime.now(UTC).date()
KEY = PrivateKey(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
PUBLIC = PublicKey(KEY.key.public_key())


EVERY = Qsync().bugs()


def _few(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Qsync, "bugs", lambda self: {name: EVERY[name] for name in BUGS})


@pytest.fixture(autouse=True)
def few_bugs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every bug takes a run or more."""
    _few(monkeypatch)


def asked(folder: Path, text: str = PLAN, tell: Callable[[str], None] = lambda line: None) -> Asked:
    file = folder / "small.toml"
    file.write_text(text)
    campaign = campaign_plan.read(file)
    return Asked(
        campaign=campaign,
        bar=campaign.certificate.asks(),
        plan_file=file.read_bytes(),
        results=folder / "results",
        root=ROOT,
        commit=code_version(),
        runs_per_bug=2,
        jobs=1,
        time_limit_s=600.0,
        tell=tell,
        key=KEY,
    )


@dataclass(frozen=True)
class Sample:
    """A certificate, its bundle, and the folder that it was made in."""

    made: Made
    certificate: Certificate
    path: Path
    folder: Path
    code: str


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    folder = tmp_path_factory.mktemp("certified")
    with pytest.MonkeyPatch.context() as patch:
        _few(patch)
        made = certify(asked(folder))
    assert made.certificate is not None, made.lacks
    assert made.bundle is not None
    return Sample(made, made.certificate, made.bundle, folder, digest_of_code(ROOT))


def verified(path: Path, sample: Sample, folder: Path, key: PublicKey | None = None) -> Verified:
    folder.mkdir()
    return verify(path, folder, key, sample.code, TODAY)


Edit = Callable[[Path], None]


def forged(sample: Sample, folder: Path, edit: Edit, key: PrivateKey | None = None) -> Path:
    """The bundle with files edited and all hashes written again, as a forger without our key can."""
    to = folder / "edited"
    to.mkdir()
    bundle.unpack(sample.path, to)
    edit(to)
    for listed in to.glob("runs/*/*/hashes.json"):
        document = msgspec.json.decode(listed.read_bytes())
        for name in document["files"]:
            if (listed.parent / name).exists():
                found: Hashed = of_file(listed.parent / name)
                document["files"][name] = {"bytes": found.bytes, "sha256": found.sha256}
        listed.write_bytes(msgspec.json.encode(document))
    files, empty = content_of(to)
    out = folder / "forged.zip"
    bundle.write(out, Content("certificate", dict(files), tuple(empty)), None if key is None else key.sign)
    return out


def rewritten(path: Path, change: Callable[[dict[str, object]], None]) -> None:
    """Edit a JSON file."""
    document = msgspec.json.decode(path.read_bytes())
    change(document)
    path.write_bytes(msgspec.json.encode(document))
