"""From a campaign to its certificate: the matrix first, then the sensitivity, and the page and the bundle last.

A certificate that was interrupted goes on: the campaign where it was, and the measure with the rows that are there. A
finished campaign of the same plan and the same code is not run again, until it was certified or refused. Code that is
no commit is never taken for the same.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from checkers.history.errors import NOT_JSON
from harness.campaigns import journal
from harness.campaigns.bars import Bar
from harness.campaigns.certification import lacks, page, sensitivity
from harness.campaigns.certification.document import (
    CERTIFICATE,
    PAGE,
    About,
    Certificate,
    Code,
    Given,
    digest_of_code,
    shown,
)
from harness.campaigns.certification.facts import JudgedRun, row_of
from harness.campaigns.certification.lacks import Lack
from harness.campaigns.journal import Journal
from harness.campaigns.known import KnownList
from harness.campaigns.nightly import Nightly
from harness.campaigns.plan import Campaign
from harness.campaigns.summary import CODES
from harness.errors import HarnessError
from harness.results import RunFolder, bundle
from harness.results.bundle import Content, content_of
from harness.results.run_folder import COLUMNS, REPORT
from harness.results.seal import PrivateKey
from harness.systems import system_of
from nodes.version import VERSION

BUNDLE = "certificate.zip"
RUNS = "runs"
DECIDED = "certified.json"
"""In a campaign's folder: whether it is certified, and the gaps if not."""
LEFT_OUT = (REPORT, COLUMNS)
"""Files of a run that follow from the rest and are not verified."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Input of a certification. `root`: the checkout; `commit`: of the checkout."""

    campaign: Campaign
    plan_file: bytes
    results: Path
    root: Path
    commit: str
    bar: Bar
    runs_per_bug: int
    jobs: int
    time_limit_s: float
    tell: Callable[[str], None]
    key: PrivateKey | None = None
    out: Path | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """The result: a certificate with its bundle, or why there is none."""

    folder: Path | None
    lacks: Sequence[Lack]
    certificate: Certificate | None = None
    bundle: Path | None = None
    is_interrupted: bool = False


def certify(asked: Asked, *, anew: bool = False) -> Made:
    """Run the matrix, judge it again, measure what it finds, and write the certificate. Raises HarnessError.

    A plan that cannot reach the bar is not run.
    """
    if short := list(lacks.of_plan(asked.campaign, asked.bar, asked.runs_per_bug)):
        return Made(None, short)
    book = None if anew else _undecided(asked)
    if book is None:
        nothing_is_known = KnownList((), datetime.now(UTC).date())
        work = Nightly(asked.campaign, asked.results, nothing_is_known, asked.tell)
        summary, folder = work.run(anew=anew or not _names_a_version(asked.commit))
        if work.is_interrupted:
            gravity = lacks.ANOMALY if summary.exit_code == lacks.ANOMALY else lacks.INCONCLUSIVE
            return Made(folder, [Lack(gravity, f"interrupted: {summary.sentence}")], is_interrupted=True)
        book = journal.load(folder)
        assert book is not None  # it was written just now
    rows, broken = _rows(asked, book)
    missing = sorted([*broken, *lacks.of_matrix(asked.campaign, rows, asked.commit, asked.bar)])
    if missing:
        return _decided(Made(book.folder, missing), book, asked.bar)
    code = Code(version=VERSION, commit=asked.commit, sha256=digest_of_code(asked.root))
    measured = sensitivity.measure(
        asked.campaign,
        asked.runs_per_bug,
        asked.jobs,
        asked.time_limit_s,
        kept_in=asked.results / sensitivity.FOLDER,
        code=code.sha256,
        tell=asked.tell,
    )
    if missing := list(lacks.of_measure(measured, asked.bar)):
        return _decided(Made(book.folder, missing), book, asked.bar)
    today = datetime.now(UTC)
    words = asked.campaign.certificate
    certificate = Certificate(
        name=asked.campaign.name,
        given=Given(
            made=today.isoformat(timespec="seconds"),
            code=code,
            images=_images(asked.campaign),
            signed_by=None if asked.key is None else asked.key.name,
            measured=measured,
            about=About(
                product=words.product or ", ".join(sorted({row.plan.system for row in rows})),
                version=words.version or ", ".join(sorted({named for row in rows for named in row.versions})),
                maker=words.maker or "",
                valid_until=(today.date() + timedelta(days=words.valid_days)).isoformat(),
            ),
            bar=asked.bar,
            environment=_environment(),
        ),
        shown=shown(asked.campaign, asked.plan_file, rows),
    )
    return _decided(_written(asked, book, rows, certificate), book, asked.bar)


def _undecided(asked: Asked) -> Journal | None:
    """The newest campaign of this plan, if it is over, was run by this code, and awaits its certificate."""
    newest = journal.folders(asked.results, asked.campaign.name)[-1:]
    book = journal.load(newest[0]) if newest else None
    if book is None or book.head.digest != asked.campaign.digest:
        return None
    if not (book.folder / journal.SUMMARY).exists() or _is_decided(book, asked.bar):
        return None
    if not all(_is_of(RunFolder(asked.results / run.run), asked.commit) for run in book.ended):
        return None  # a run without a folder does not say of which code it was
    asked.tell(f"the matrix of {book.head.begun} is done: going on with its certificate")
    return book


def _is_decided(book: Journal, bar: Bar) -> bool:
    """Whether the campaign was certified or refused by this bar already."""
    try:
        return bool(msgspec.json.decode((book.folder / DECIDED).read_bytes())["bar"] == bar.name)
    except (OSError, *NOT_JSON, KeyError, TypeError):
        return False


def _is_of(run: RunFolder, commit: str) -> bool:
    try:
        code = msgspec.json.decode(run.plan_file.read_bytes()).get("code")
    except (OSError, *NOT_JSON, AttributeError):
        return False
    return bool(code == commit and _names_a_version(commit))


def _names_a_version(commit: str) -> bool:
    """Equal names of other commits ("+": with changes on top) may stand for different code."""
    return bool(commit) and not commit.endswith("+")


def _rows(asked: Asked, book: Journal) -> tuple[list[JudgedRun], list[Lack]]:
    """The runs of the campaign, judged again; and a gap for each run that cannot be judged or did not end as judged."""
    rows: list[JudgedRun] = []
    broken: list[Lack] = []
    asked.tell(f"judging {len(book.ended)} runs again, and verifying their proofs")
    for run in book.ended:
        where, code = f"{run.cell}, seed {run.seed}", CODES.get(run.outcome, CODES["broken"])
        if not run.run:
            broken.append(Lack(code or lacks.INCONCLUSIVE, f"{where}: {run.sentence}"))
            continue
        try:
            rows.append(row_of(RunFolder(asked.results / run.run), run.run, run.cell))
        except HarnessError as error:
            broken.append(Lack(code or error.exit_code, f"{where}: {error.message}"))
            continue
        if code != rows[-1].exit_code:
            broken.append(Lack(code or lacks.INCONCLUSIVE, f"{where}: its run ended as {run.outcome}"))
    return rows, broken


def _images(campaign: Campaign) -> dict[str, str]:
    """The images of the nodes of cells in containers, with their digests."""
    plans = [cell.plan for cell in campaign.cells if cell.plan.cluster == "docker"]
    if not plans:
        return {}
    from harness.cluster.containers.image import connect, id_of, usual_image

    client = connect()
    systems = [system_of(name) for name in sorted({plan.system for plan in plans})]
    names = {usual_image(client, system.packages, system.image) for system in systems}
    return {name: id_of(client, name) for name in sorted(names)}


def _environment() -> dict[str, str]:
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "machine": f"{os.cpu_count()} cores, {gib:.0f} GiB of memory",
        "operating system": platform.platform(),
        "Python": f"Python {platform.python_version()}",
    }


def _written(asked: Asked, book: Journal, rows: Sequence[JudgedRun], certificate: Certificate) -> Made:
    shown_apart = {CERTIFICATE: certificate.encode(), PAGE: page.html(certificate).encode()}
    files: dict[str, Path | bytes] = {**shown_apart, f"{certificate.name}.toml": asked.plan_file}
    folders: list[str] = []
    for row in rows:
        run_files, empty = content_of(asked.results / row.run, f"{RUNS}/{row.run}/")
        surplus = {f"{RUNS}/{row.run}/{name}" for name in LEFT_OUT}
        files |= {name: path for name, path in run_files.items() if name not in surplus}
        folders += empty
    out = asked.out or book.folder / BUNDLE
    sign = None if asked.key is None else asked.key.sign
    bundle.write(out, Content("certificate", files, tuple(folders)), sign)
    for name, data in shown_apart.items():
        book.write(name, data)
    return Made(book.folder, (), certificate, out)


def _decided(made: Made, book: Journal, bar: Bar) -> Made:
    """Note the decision in the campaign's folder."""
    if made.certificate is None:
        for name in (CERTIFICATE, PAGE, BUNDLE):
            with suppress(OSError):
                (book.folder / name).unlink(missing_ok=True)
    decision = {
        "bar": bar.name,
        "certified": made.certificate is not None,
        "lacks": [lack.text for lack in made.lacks],
    }
    book.write(DECIDED, msgspec.json.encode(decision))
    return made
