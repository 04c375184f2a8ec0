"""certificate.html: the certificate for people, on two printed sheets of A4, without a script.

Long lists are cut, and say so; certificate.json beside the page has all of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec

from checkers.history.values import many
from harness.campaigns.bars import RELEASE
from harness.campaigns.certification.document import CERTIFICATE, Certificate
from harness.campaigns.certification.sensitivity import Measured
from harness.pages.tables_page import Cell, Page, Section
from harness.pages.tables_page import html as page_html

LISTED = 36
"""Names in a list, at most."""
ROWS = 4
"""Runs, configurations, findings and reasons that are shown, at most."""
TEXT_MAX = 160
_STYLE = """
.scroll td.prose { max-width: none; }
@media print {
  @page { size: A4; margin: 11mm 12mm; }
  body { font-size: 8.5px; line-height: 1.28; } main { width: auto; }
  h1 { font-size: 12px; } h2 { font-size: 10px; margin: 0; } .caption { margin: 0 0 2px; font-size: 8px; }
  .crumbs, .caption, td, th, dt, dd, small { font-size: 8px !important; }
  .verdict { padding: 5px 8px; margin: 3px 0; } .facts { margin: 3px 0; gap: 4px 12px; }
  section { padding: 4px 8px; margin: 4px 0; break-inside: auto; }
  .heading { break-after: avoid; } td, th { padding: 1px 6px; overflow-wrap: anywhere; }
  .scroll { margin: 0; padding: 0; } td.code { font-size: 7.5px !important; }
}
"""


def html(certificate: Certificate) -> str:
    """The whole page as one file; the same bytes for the same certificate."""
    shown, given = certificate.shown, certificate.given
    operations, tested = shown["operations"], shown["tested"]
    in_effect = sum(fault["took_effect"] for fault in shown["faults"])
    lower = _lower(certificate)
    return page_html(
        Page(
            title=f"Certificate: {certificate.name}",
            crumbs=("certificate", certificate.name, given.made),
            tone="inconclusive" if lower else "valid",
            badge=f"CERTIFIED: {given.bar.name}" if lower and given.bar else "CERTIFIED",
            sentence=(
                f"{lower}{_product(certificate)}: in {many(tested['runs'], 'run')} all that clients saw was "
                f"allowed by what {', '.join(tested['systems'])} promises."
            ),
            facts=(
                ("runs", f"{tested['runs']:,}", many(tested["cells"], "cell")),
                ("operations", f"{operations['ok']:,}", f"ok of {operations['asked']:,} asked"),
                ("under a fault", f"{operations['ok_under_fault']:,}", "ok"),
                ("faults", f"{in_effect:,}", "took effect"),
                ("proofs", f"{shown['verdicts']['proofs accepted']:,}", "accepted"),
                ("seeded bugs", _bugs_found(given.measured), "found by this matrix"),
            ),
            sections=(
                _what(certificate),
                _promised(shown["promised"]),
                _happened(shown),
                _sensitivity(given.measured, {state["state"] for state in shown["states"]["reached"]}),
                _left_out(shown["not_tested"]),
                _runs(shown["runs"]),
            ),
            style=_STYLE,
        )
    )


def _lower(certificate: Certificate) -> str:
    """The first words of a certificate that requires less than the default."""
    bar = certificate.given.bar
    if bar is None:
        return "Nothing was required of its evidence. "
    return f"By the bar “{bar.name}”, which is lower than “{RELEASE}”: {bar.lower}. " if bar.lower else ""


def _product(certificate: Certificate) -> str:
    about = certificate.given.about
    return certificate.name if about is None else " ".join(filter(None, (about.product, about.version)))


def _bugs_found(measured: Measured) -> str:
    if not measured.bugs:
        return "not measured"
    return f"{len(measured.named('found'))} of {len(measured.bugs)}"


def _table(title: str, caption: str, rows: Iterable[tuple[str, str]]) -> Section:
    return Section(title, caption, ("", " "), [(name, Cell(text, "prose")) for name, text in rows])


def _what(certificate: Certificate) -> Section:
    given, tested = certificate.given, certificate.shown["tested"]
    signed = given.signed_by or "nobody: anyone can write such a certificate"
    about = given.about
    rows = [
        *(
            ()
            if about is None
            else (
                (
                    "product",
                    f"{about.product}, version {about.version or 'not said'}; maker: {about.maker or 'not named'}",
                ),
                ("valid", f"from {given.made} to the end of {about.valid_until}"),
            )
        ),
        ("required", given.bar.sentence if given.bar else "nothing"),
        ("signed by", f"the key {signed}" if given.signed_by else signed),
        (
            "to verify it",
            f"./qsync certify --verify certificate.zip{' --key public.pem' if given.signed_by else ''}",
        ),
        (
            "made",
            f"{given.made} by qsync-harness {given.code.version}, commit {given.code.commit or 'unknown'}",
        ),
        ("code, plan", f"sha256 {given.code.sha256}, {certificate.shown['plan']['sha256']}"),
        ("machine", ", ".join(given.environment.values()) or "not said"),
        ("images", "; ".join(f"{name} {digest}" for name, digest in given.images.items()) or "no container"),
        *((name, _words(value)) for name, value in tested.items()),
    ]
    return _table(
        "What was tested", "The product, what was required of its evidence, the code, and the matrix.", rows
    )


def _words(value: object) -> str:
    return _list([str(item) for item in value], 12) if isinstance(value, list) else f"{value:,}"


def _promised(promised: Sequence[Mapping[str, Any]]) -> Section:
    rows = []
    for promise in promised[:ROWS]:
        by_model: dict[str, list[str]] = {}
        for check, model in promise["models"].items():
            by_model.setdefault(model, []).append(check)
        models = "; ".join(f"{model} ({', '.join(checks)})" for model, checks in by_model.items())
        sources = "; ".join(f"{check}: {_cut(text)}" for check, text in promise["sources"].items())
        rows.append(
            (
                Cell(f"{promise['system']} {promise['configuration']}", "prose"),
                str(promise["runs"]),
                Cell(models, "prose"),
                Cell(sources or promise["why"], "prose"),
            )
        )
    more = f" The first {ROWS} of {len(promised)}; {CERTIFICATE} has all." if len(promised) > ROWS else ""
    return Section(
        "What was promised",
        f"Each promise, the checks that judge it, and its source or what it rests on.{more}",
        ("configuration", "runs", "promise (checks)", "source"),
        rows,
        frozenset({"runs"}),
    )


def _happened(shown: Mapping[str, Any]) -> Section:
    operations, verdicts = shown["operations"], shown["verdicts"]
    counts = ", ".join(f"{count:,} {word.replace('_', ' ')}" for word, count in operations.items())
    rows = [("operations", counts)]
    for cluster, faults in groupby(shown["faults"], key=lambda fault: fault["cluster"]):
        effects = [f"{entry['fault']} {entry['took_effect']} of {entry['begun']}" for entry in faults]
        rows.append((f"faults in effect, {cluster}", _list(effects)))
    states = shown["states"]
    reached = [f"{entry['state']} {entry['times']:,}" for entry in states["reached"]]
    rows.append(("states covered", _list(reached) or "none"))
    rows.append(("never came about", _list(states["never"], LISTED // 2) or "none"))
    checks = [
        f"{entry['check']} {entry['valid']}" + (f" (nothing to judge in {idle})" if idle else "")
        for entry in verdicts["checks"]
        if (idle := entry["nothing to judge"]) is not None
    ]
    rows.append(("checks: runs with valid", _list(checks)))
    proofs, without = verdicts["proofs accepted"], verdicts["runs with a part decided without proof"]
    proved = f"{proofs:,} accepted by the independent verifier; in {without} runs a part was decided without a proof"
    rows.append(("proofs", f"{proved}; the remaining checks are judged again"))
    findings = [f"{entry['finding']} (in {entry['runs']})" for entry in verdicts["findings"]]
    rows.append(("findings", _list(findings, ROWS) if findings else "none"))
    return _table(
        "What happened", "Findings are allowed by the promise, and weaker than a reader may think.", rows
    )


def _sensitivity(measured: Measured, reached: Collection[str]) -> Section:
    """`reached`: the states that the runs of the matrix covered."""
    rows = [("seeded bugs", measured.sentence), *(("note", note) for note in measured.notes)]
    if bugs_found := measured.named("found"):
        rows.append(("found", _list([f"{bug.name} ({bug.runs})" for bug in bugs_found])))
    if missed := measured.named("missed"):
        rows.append(("missed", _list([bug.name for bug in missed])))
    by_reason: dict[str, list[str]] = {}
    for bug in measured.named("not measured"):
        by_reason.setdefault(bug.why, []).append(bug.name)
    reasons = list(by_reason.items())
    for why, bugs in reasons[:ROWS]:
        rows.append(("not measured", f"{_list(bugs)}: {_cut(why)}"))
    if others := [name for _, bugs in reasons[ROWS:] for name in bugs]:
        rows.append(("not measured", f"for other reasons: {_list(others)}"))
    clean = measured.clean
    rows.append(("without a bug", clean.sentence))
    if clean.runs:
        there = [name for name, (times, _) in clean.sometimes.items() if times and name not in reached]
        rows.append(("states covered there alone", _list(there, LISTED // 2) or "none"))
    return _table(
        "What this matrix is known to find",
        f"Its own runs in the simulator with a seeded bug, at most {measured.runs_per_bug} of "
        f"{measured.runs_of_matrix} a bug; in brackets the runs until it was found. Not measured is not missed. States "
        "covered there alone are of the runs without a bug.",
        rows,
    )


def _left_out(not_tested: Mapping[str, Sequence[str]]) -> Section:
    rows = [(name, _list(names) or "none") for name, names in not_tested.items()]
    return _table(
        "What was not tested", "What this code could do with these systems, and this matrix does not.", rows
    )


def _runs(runs: Sequence[Mapping[str, Any]]) -> Section:
    listed = hashlib.sha256(msgspec.json.encode(runs)).hexdigest()
    rows = [
        (
            Cell(f"{run['cell']}, seed {run['seed']}", "prose"),
            Cell(run["outcome"], run["outcome"]),
            str(run["proofs"]),
            Cell(run["history"]["sha256"], "code"),
        )
        for run in runs[:ROWS]
    ]
    more = f"The first {ROWS} of {len(runs)}; " if len(runs) > ROWS else ""
    return Section(
        "Histories",
        f"{more}{CERTIFICATE} has all, and the SHA-256 of that list is {listed}.",
        ("run", "outcome", "proofs", "SHA-256 of its history"),
        rows,
        frozenset({"proofs"}),
    )


def _list(names: Sequence[str], most: int = LISTED) -> str:
    more = f", … ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(_cut(name) for name in names[:most]) + more


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_MAX else text[: TEXT_MAX - 1] + "…"
