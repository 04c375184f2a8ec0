"""`qsync audit`: rules over the nodes' own logs, of a run or of any folder of xlogs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.exit_codes import ExitCode
from harness.cli.logs_given import LogsGiven, log_options, read_given
from harness.cli.param_types import InputPath
from harness.cli.printing import has_colour, print_json
from harness.plan.promise import LOGS

if TYPE_CHECKING:
    from checkers.verdict import Verdict
    from harness.judge.audit import Audit

WITNESSES_SHOWN = 8


@click.command()
@click.argument("path", type=InputPath())
@log_options
@click.option("--json", "as_json", is_flag=True, help="Print the audit as JSON, and nothing else.")
def command(
    path: Path, promotes: str | None, has_votes: bool | None, quorum: int | None, as_json: bool
) -> int:
    """Audit the logs of nodes.

    PATH is a run's folder, or any folder with a folder of *.xlog files for each node, ours or real Tarantool's.

    The plan of a run decides how its logs are read. The logs then settle its operations of unknown outcome.
    """
    from harness.pages.terminal.working import working

    with working("auditing", is_quiet=as_json):
        audited = _audit(read_given("audit", path, promotes, has_votes, quorum))
    document = _to_json(audited)
    if as_json:
        print_json(document)
    else:
        click.echo(_screen(audited, document, _again(path, promotes, has_votes, quorum)))
    return ExitCode(document["exit_code"])


@dataclass(frozen=True, slots=True)
class Audited:
    """An audit, and the promise about the logs ("": none, so a broken rule is not a violation)."""

    audit: Audit
    promised: str
    answers: str = ""
    """The promise about the moments of answers."""

    @property
    def judged(self) -> list[tuple[str, Verdict]]:
        """(model, verdict) of the verdicts that count."""
        return self.audit.judged(self.promised, self.answers)


def _audit(given: LogsGiven) -> Audited:
    """A run is judged as `run` and `check` judge it."""
    from checkers.logs.wal import MODEL
    from harness.judge.audit import audit

    if given.run is None:
        return Audited(audit(given.logs, given.rules), MODEL)
    case = given.run.case
    result = audit(given.logs, given.rules, case.history, case.checks, case.left.effects)
    return Audited(result, case.promise.model(LOGS), case.promise.answers)


def _to_json(audited: Audited) -> dict[str, Any]:
    from harness.judge import EXIT_CODES, outcome_of

    judged = audited.judged
    # Where nothing is promised of the logs, a rule that they break is a finding; rows that are missing are not.
    promised = [judgement for model, judgement in judged if model or judgement.result == "unknown"]
    outcome = outcome_of(judgement.result for judgement in promised) if promised else "valid"
    return {
        "format": "qsync-audit",
        "version": 1,
        "outcome": outcome,
        "exit_code": EXIT_CODES[outcome],
        "sentence": _sentence(audited),
        "violations": [judgement.checker for judgement in promised if judgement.result == "invalid"],
        "checks": [verdict.to_json() for verdict in audited.audit.verdicts],
        "settled": audited.audit.settled_json(),
    }


def _sentence(audited: Audited) -> str:
    from harness.judge.checks import NOT_PROMISED

    judged = audited.judged
    violated = [verdict for model, verdict in judged if model and verdict.result == "invalid"]
    if violated:
        text = violated[0].witnesses[0].summary
    else:
        logs = audited.audit.logs
        text = f"{NOT_PROMISED if logs.result == 'invalid' else ''}{logs.summary}"
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _again(path: Path, promotes: str | None, has_votes: bool | None, quorum: int | None) -> str:
    """The command line that audits by the same rules."""
    rules = [] if promotes is None else [f"--promotes {promotes}"]
    rules += [] if has_votes is None else ["--votes" if has_votes else "--no-votes"]
    rules += [] if quorum is None else [f"--quorum {quorum}"]
    return " ".join(("./qsync audit", shlex.quote(str(path)), *rules))


def _screen(audited: Audited, document: dict[str, Any], again: str) -> str:
    from harness.pages.terminal.colour import printable
    from harness.pages.terminal.screen import headline

    lines = (*_node_lines(audited.audit), *_settled_lines(audited.audit), *_witness_lines(audited))
    head = headline(document["outcome"], document["sentence"], colour=has_colour())
    return "\n".join([*head, "", *lines, "", f"again   {printable(again)}"])


def _node_lines(audit: Audit) -> Iterator[str]:
    from harness.pages.terminal.screen import entry

    for node, counts in audit.logs.details.get("nodes", {}).items():
        words = "  ".join(f"{count:,} {word.replace('_', ' ')}" for word, count in counts.items())
        yield from entry(node, words)
    for text in audit.logs.details.get("findings", ()):
        yield from entry("finding", text)
    for text in audit.logs.details.get("notes", ()):
        yield from entry("note", text)


def _settled_lines(audit: Audit) -> Iterator[str]:
    from harness.pages.terminal.screen import entry

    if audit.settling is None:
        return
    happened, did_not, still = map(
        len, (audit.settling.happened, audit.settling.did_not, audit.settling.open)
    )
    yield from entry(
        "settled",
        f"{happened + did_not + still} writes without an outcome: {happened} happened, {did_not} did not, "
        f"{still} stay open",
    )
    for _, verdict in audit.settled:
        yield from entry("", f"with that {verdict.checker} is {verdict.result}")


def _witness_lines(audited: Audited) -> Iterator[str]:
    from harness.pages.terminal.screen import entry

    witnesses = [(model, witness) for model, verdict in audited.judged for witness in verdict.witnesses]
    for model, witness in witnesses[:WITNESSES_SHOWN]:
        yield from entry("violation" if model else "finding", f"{witness.rule}: {witness.summary}")
        for text in witness.explanation:
            yield from entry("", text)
    if len(witnesses) > WITNESSES_SHOWN:
        yield f"  … and {len(witnesses) - WITNESSES_SHOWN} more (--json shows all)"
