"""`qsync certify`: a release matrix and its certificate; verifies one, and compares two."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from checkers.history.values import many
from harness.cli.exit_codes import ExitCode, gravest
from harness.cli.options import ROOT, refuse_options, results_option
from harness.cli.param_types import JOBS, InputPath, Number, OutputFile, Text, Whole
from harness.pages.terminal.colour import printable

if TYPE_CHECKING:
    from harness.campaigns.bars import Bar
    from harness.campaigns.certification.document import Certificate
    from harness.campaigns.certification.lacks import Lack
    from harness.campaigns.plan import Campaign

LACKS_SHOWN = 40
PLAN = "plans/certify.toml"
RUNS_PER_BUG = 8


@click.command()
@click.argument("plan_file", metavar="[PLAN]", required=False, type=InputPath())
@results_option()
@click.option("--key", type=InputPath(), help="PEM of an Ed25519 key: private to sign, public with --verify.")
@click.option(
    "--out",
    type=OutputFile(),
    help="The bundle to write. [default: certificate.zip in the campaign's folder]",
)
@click.option(
    "--bar",
    "bar_name",
    type=Text(),
    metavar="NAME",
    help="What the evidence must reach: release, unmeasured, trial, or the plan's own. "
    "[default: the plan's, or release]",
)
@click.option(
    "--seeds-per-bug",
    type=Whole(1),
    default=None,
    help=f"Runs in which a seeded bug may show. [default: what the bar requires, at least {RUNS_PER_BUG}]",
)
@click.option(
    "--bugs-time",
    "bugs_time_s",
    type=Number(0, is_open=True),
    default=3600.0,
    show_default=True,
    help="Seconds for all seeded bugs; a bug that comes later is not measured.",
)
@click.option("--jobs", type=JOBS, default=None, help="Processes that measure; default: all cores.")
@click.option("--anew", is_flag=True, help="Run the matrix again, even if one awaits its certificate.")
@click.option("--against", type=InputPath(), metavar="OLD", help="Show what changed since this certificate.")
@click.option(
    "--verify",
    "verified_file",
    type=InputPath(),
    metavar="FILE",
    help="Verify the certificate in this bundle.",
)
@click.option(
    "--compare",
    type=InputPath(),
    nargs=2,
    metavar="OLD NEW",
    help="Show what changed between two certificates.",
)
def command(
    plan_file: Path | None,
    key: Path | None,
    verified_file: Path | None,
    compare: tuple[Path, Path] | None,
    **given: Any,
) -> int:
    """Run the matrix in PLAN (as `qsync nightly` does) and write a certificate, or say in plain lines what lacks.

    The certificate says what was tested and promised, what happened, which seeded bugs this matrix finds, and what was
    not tested. certificate.json, certificate.html and the bundle certificate.zip are written to the campaign's folder.

    Without PLAN it runs plans/certify.toml. A certificate says what was required of its evidence; --bar names a lower
    bar than the default one. With --verify FILE the bundle alone is judged again, and nothing runs.
    """
    if sum(map(bool, (plan_file, verified_file, compare))) > 1:
        raise click.UsageError("expected one of: PLAN, --verify FILE, --compare OLD NEW; try: qsync certify")
    if compare:
        refuse_options("does not go with --compare, which runs and verifies nothing", but=("compare",))
        return _compare(*compare)
    if verified_file is not None:
        refuse_options("does not go with --verify, which runs nothing", but=("verified_file", "key"))
        return _verify(verified_file, key)
    return _certify(plan_file or ROOT / PLAN, key, **given)


def _certify(
    plan_file: Path,
    key: Path | None,
    results: Path,
    out: Path | None,
    bar_name: str | None,
    seeds_per_bug: int | None,
    bugs_time_s: float,
    jobs: int | None,
    anew: bool,
    against: Path | None,
) -> int:
    from harness.campaigns import plan
    from harness.campaigns.bars import RELEASE
    from harness.campaigns.certification.making import Asked, certify
    from harness.campaigns.certification.sensitivity import lines_of
    from harness.cli.options import code_version
    from harness.pages.terminal.working import working
    from harness.results import seal

    campaign = plan.read(plan_file)
    bar = _bar(campaign, bar_name)
    signer = None if key is None else seal.private_key(key)
    old = None if against is None else _certificate(against)
    with working(f"certificate of {campaign.name}") as shown:
        asked = Asked(
            campaign=campaign,
            plan_file=plan_file.read_bytes(),
            results=results.absolute(),
            root=ROOT,
            commit=code_version(),
            bar=bar,
            runs_per_bug=seeds_per_bug or max(RUNS_PER_BUG, bar.requires.runs_per_bug),
            jobs=jobs or os.cpu_count() or 1,
            time_limit_s=bugs_time_s,
            tell=lambda line: shown.say(f"qsync: {line}"),
            key=signer,
            out=out,
        )
        made = certify(asked, anew=anew)
    if made.certificate is None:
        _say("no certificate", made.lacks)
        if made.folder is not None:
            click.echo(f"folder  {made.folder}")
        code = _code(made.lacks)
        return ExitCode.INTERRUPTED if made.is_interrupted and code != ExitCode.ANOMALY else code
    assert made.folder is not None
    runs, done = (
        made.certificate.shown[part][word] for part, word in (("tested", "runs"), ("operations", "ok"))
    )
    lower = f" by the bar {bar.name}, which is lower than {RELEASE}" if bar.lower else ""
    click.echo(
        f"CERTIFIED{lower}  {made.certificate.name}: {many(runs, 'run')}, all valid; "
        f"{done:,} operations succeeded"
    )
    click.echo(f"required     {bar.sentence}")
    for line in lines_of(made.certificate.given.measured):
        click.echo(printable(line))
    click.echo(f"signed by    {made.certificate.given.signed_by or 'nobody (--key signs)'}")
    if old is not None:
        _say_changes(old, made.certificate)
    click.echo(f"page    {made.folder / 'certificate.html'}")
    click.echo(f"bundle  {made.bundle}")
    return ExitCode.VALID


def _bar(campaign: Campaign, name: str | None) -> Bar:
    from harness.campaigns.bars import BARS

    try:
        return campaign.certificate.asks(name)
    except KeyError as error:
        names = ", ".join(dict.fromkeys((*BARS, campaign.certificate.bar)))
        raise click.UsageError(f"--bar: expected one of {names}, got {name!r}") from error


def _verify(path: Path, key: Path | None) -> int:
    from harness.campaigns.certification.document import digest_of_code
    from harness.campaigns.certification.verifying import verify
    from harness.cluster.scratch import scratch
    from harness.pages.terminal.working import working
    from harness.results import seal

    public = None if key is None else seal.public_key(key)
    with scratch("certificate") as folder, working("verifying"):
        verified = verify(path, folder, public, digest_of_code(ROOT), datetime.now(UTC).date())
    if verified.refused:
        _say("refused", verified.refused)
    else:
        shown = verified.certificate.shown
        runs, proofs = len(shown["runs"]), shown["verdicts"]["proofs accepted"]
        name = printable(verified.certificate.name)
        click.echo(
            f"VERIFIED  {name}: {many(runs, 'run')}, all valid, judged again by this code; {proofs:,} proofs accepted"
        )
    for note in verified.notes:
        click.echo(f"  {printable(note)}")
    return _code(verified.refused) if verified.refused else ExitCode.VALID


def _compare(old: Path, new: Path) -> int:
    _say_changes(_certificate(old), _certificate(new))
    click.echo("neither was verified; try: qsync certify --verify FILE")
    return ExitCode.VALID


def _certificate(path: Path) -> Certificate:
    """The certificate in a bundle that is intact."""
    from harness.campaigns.certification.verifying import opened
    from harness.cluster.scratch import scratch

    with scratch("certificate") as folder:
        return opened(path, folder)[1]


def _say_changes(old: Certificate, new: Certificate) -> None:
    from harness.campaigns.certification.compare import changes
    from harness.errors import StoreError

    try:
        lines = changes(old, new)
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise StoreError(
            "a certificate has parts of another form; try: qsync certify --verify FILE"
        ) from error
    click.echo(f"changes since {printable(old.name)} of {printable(old.given.made)}: {len(lines) or 'none'}")
    for line in lines:
        click.echo(f"  {printable(line)}")


def _say(word: str, lacks: Sequence[Lack]) -> None:
    click.echo(f"{word.upper()}: {many(len(lacks), 'reason')}")
    for lack in lacks[:LACKS_SHOWN]:
        click.echo(f"  {printable(lack.text)}")
    if len(lacks) > LACKS_SHOWN:
        click.echo(f"  … and {len(lacks) - LACKS_SHOWN} more")


def _code(lacks: Sequence[Lack]) -> ExitCode:
    return gravest(ExitCode(lack.exit_code) for lack in lacks)
