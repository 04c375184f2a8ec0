"""Verifies a certificate with its bundle alone, and the public key of its signer.

| part | is |
|---|---|
| every byte | compared with the seal; each member with the manifest |
| the signature | verified with the given key, which never comes from the bundle |
| every run | judged again by its plan and this code; its plan must be that of its cell of the matrix |
| every stored proof | checked by the independent verifier, against what this code asks of the plan |
| `shown`, the page | worked out again, and compared |
| `given` | as its maker says: no bundle can show when it was made, or what was measured |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from harness.campaigns import plan as campaign_plan
from harness.campaigns.bars import TRIAL, Bar
from harness.campaigns.certification import lacks, page
from harness.campaigns.certification.document import CERTIFICATE, PAGE, Certificate, read, shown
from harness.campaigns.certification.facts import JudgedRun, row_of
from harness.campaigns.certification.lacks import INCONCLUSIVE, Lack
from harness.campaigns.certification.making import RUNS
from harness.campaigns.certification.sensitivity import simulated
from harness.campaigns.plan import Campaign
from harness.errors import HarnessError, StoreError, WrongUse
from harness.results import RunFolder, bundle
from harness.results.bundle import Unpacked
from harness.results.seal import PublicKey
from harness.systems import system_of

MAY_CHANGE = ("not_tested", "states")
"""Parts of `shown` that a later version of the code may say differently of the same runs."""


@dataclass(slots=True)
class Verified:
    """A certificate. `refused`: why it is refused, empty if it is accepted; `notes`: its limits, a sentence each."""

    certificate: Certificate
    refused: list[Lack] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def refuse(self, text: str) -> None:
        self.refused.append(Lack(INCONCLUSIVE, text))


def opened(path: Path, folder: Path) -> tuple[Unpacked, Certificate]:
    """Unpack a certificate's bundle to an empty folder. StoreError for a damaged bundle, WrongUse for one of a run."""
    if not path.is_file():
        raise WrongUse(
            f"expected the bundle of a certificate, and {path} is no file; try: qsync certify PLAN"
        )
    unpacked = bundle.unpack(path, folder)
    if unpacked.manifest.kind != "certificate":
        raise WrongUse(f"{path} is a bundle of a {unpacked.manifest.kind}; try: qsync check {path}")
    return unpacked, read(folder / CERTIFICATE, path)


def verify(path: Path, folder: Path, key: PublicKey | None, code: str, today: date) -> Verified:
    """`folder`: an empty folder to unpack to; `code`: the digest of this code. HarnessError for a damaged bundle."""
    unpacked, certificate = opened(path, folder)
    verified = Verified(certificate)
    _signature(verified, unpacked, key)
    name = f"{certificate.name}.toml"
    for needed in (name, PAGE):
        if needed not in unpacked.manifest.files:
            raise StoreError(f"{path} is refused: it lacks {needed}")
    try:
        campaign = campaign_plan.read(folder / name, runs_here=False)
    except WrongUse as error:
        raise StoreError(f"{path} is refused: {error.message.replace(f'{folder}/', '')}") from error
    runs = sorted(
        plan_file.parent.relative_to(folder / RUNS).as_posix()
        for plan_file in folder.glob(f"{RUNS}/*/*/plan.json")
    )
    _members(verified, unpacked, name, runs)
    rows = list(_rows(verified, folder, runs))
    given = certificate.given
    is_same = given.code.sha256 == code
    bar = _bar(verified, campaign, is_same=is_same)
    verified.refused += lacks.of_matrix(campaign, rows, given.code.commit, bar)
    verified.refused += lacks.of_measure(given.measured, bar)
    if given.about is not None:
        _validity(verified, given.about.valid_until, today)
    _document(verified, folder, campaign, rows, is_same=is_same)
    verified.refused.sort()
    return verified


def _validity(verified: Verified, valid_until: str, today: date) -> None:
    try:
        is_over = date.fromisoformat(valid_until) < today
    except ValueError:
        verified.refuse(f"it is valid until {valid_until!r}, and that is no date")
        return
    if is_over:
        verified.refuse(f"it was valid until {valid_until}")


def _bar(verified: Verified, campaign: Campaign, *, is_same: bool) -> Bar:
    """The bar that the certificate names. It must be a known bar, or one of the plan."""
    bar = verified.certificate.given.bar
    if bar is None:
        verified.notes.append("it was made before there were bars: nothing was required of its evidence")
        return campaign.certificate.asks(TRIAL)
    try:
        known = campaign.certificate.asks(bar.name)
    except KeyError:
        verified.refuse(f"its bar {bar.name} is neither known nor of its plan")
        return bar
    if known != bar:
        differs = f"its bar is {bar.sentence}; of this code {known.sentence}"
        if is_same:
            verified.refuse(differs)
        else:
            verified.notes.append(differs)
    return bar


def _signature(verified: Verified, unpacked: Unpacked, key: PublicKey | None) -> None:
    name, signature = verified.certificate.given.signed_by, unpacked.seal.signature
    if (name is None) != (signature is None):
        verified.refuse(
            f"the certificate says that it is signed by {name or 'nobody'}, and the bundle does not fit that"
        )
    if key is None:
        verified.notes.append(
            "not signed: anybody can write such a certificate"
            if signature is None
            else f"the signature was not verified, which needs --key and the public key {name}"
        )
    elif signature is None:
        verified.refuse("it is not signed, and --key asks for a signature")
    elif not key.has_signed(unpacked.seal):
        verified.refuse(f"its signature is not of the key {key.name}, or not of these bytes")
    elif name != key.name:
        verified.refuse(f"it says that it is signed by {name}, and the key is {key.name}")
    else:
        verified.notes.append(f"signed by the key {key.name}")


def _members(verified: Verified, unpacked: Unpacked, plan: str, runs: Sequence[str]) -> None:
    """Refuse members that belong neither to the certificate nor to a run."""
    known = tuple(f"{RUNS}/{run}/" for run in runs)
    for name in (*unpacked.manifest.files, *unpacked.manifest.folders):
        if name not in (CERTIFICATE, PAGE, plan) and not name.startswith(known):
            verified.refuse(f"the member {name} belongs to no run")


def _rows(verified: Verified, folder: Path, runs: Sequence[str]) -> Iterator[JudgedRun]:
    listed = verified.certificate.shown.get("runs")
    listed = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    said = {str(entry.get("run")): str(entry.get("cell")) for entry in listed}
    for run in runs:
        if run not in said:
            verified.refuse(f"the run {run} is not in the certificate")
            continue
        try:
            yield row_of(RunFolder(folder / RUNS / run), run, said[run])
        except HarnessError as error:
            verified.refuse(f"{run}: {error.message.replace(f'{folder}/', '')}")


def _document(
    verified: Verified, folder: Path, campaign: Campaign, rows: Sequence[JudgedRun], *, is_same: bool
) -> None:
    """Refuse parts of the certificate and a page that do not follow from the runs."""
    certificate = verified.certificate
    again = shown(campaign, (folder / f"{certificate.name}.toml").read_bytes(), rows)
    differ = [
        name
        for name in dict.fromkeys((*again, *certificate.shown))
        if certificate.shown.get(name) != again.get(name)
    ]
    if not is_same:
        verified.notes.append(
            f"judged by other code than it was made by: {certificate.given.code.version}, commit "
            f"{certificate.given.code.commit or 'unknown'}; its page was not compared"
        )
        verified.notes += [f"this code says differently: {name}" for name in differ if name in MAY_CHANGE]
        differ = [name for name in differ if name not in MAY_CHANGE]
    for name in differ:
        verified.refuse(f"its part {name!r} does not follow from its runs")
    if is_same and not differ and (folder / PAGE).read_bytes() != page.html(certificate).encode():
        verified.refuse(f"its {PAGE} is not the page of this certificate")
    if is_same:
        _measure(verified, campaign)
    verified.notes.append(
        "the sensitivity, the images, the machine and the dates are as its maker says: no bundle can show them"
    )


def _measure(verified: Verified, campaign: Campaign) -> None:
    """Refuse a sensitivity that leaves out a seeded bug."""
    plans, _ = simulated(campaign)
    bugs = {bug for plan in plans for bug in system_of(plan.system).bugs()}
    if {bug.name for bug in verified.certificate.given.measured.bugs} != bugs:
        verified.refuse("its sensitivity is not about all seeded bugs of these systems")
