"""`qsync cut`: whether a cut through the logs of a stopped replica set is consistent, by `checkers.logs.log_cuts`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from checkers.history.values import many
from harness.cli.exit_codes import ExitCode
from harness.cli.logs_given import log_options, read_given
from harness.cli.options import refuse_options
from harness.cli.param_types import InputPath, Text, Whole
from harness.cli.printing import has_colour, print_json

if TYPE_CHECKING:
    from checkers.logs.log_cuts import LogCuts, Places, Walk
    from checkers.logs.wal import Record
    from checkers.verdict import Verdict

CUTS = 100
WITNESSES = 4
FORMAT, VERSION = "qsync-cuts", 1


@click.command()
@click.argument("path", type=InputPath())
@click.option(
    "--at",
    "places",
    type=Text(),
    multiple=True,
    metavar="NODE=ROW|TIME",
    help="Where to cut (may be repeated): n1=2/17 is behind row 17 of replica 2, n1=17 behind the only row of that "
    "number; n1=start, n1=end; a node without a place stands at its end. Or one time for all, in UTC unless it has "
    "an offset: 2026-01-31T12:00:00.5, 2026-01-31T15:00+03:00.",
)
@click.option(
    "--most", type=Whole(1, 100_000), default=CUTS, help=f"At most so many cuts without --at ({CUTS})."
)
@log_options
@click.option("--json", "as_json", is_flag=True, help="Print the verdicts as JSON, and nothing else.")
def command(
    path: Path,
    places: tuple[str, ...],
    most: int,
    promotes: str | None,
    has_votes: bool | None,
    quorum: int | None,
    as_json: bool,
) -> int:
    """Judge cuts through the logs of stopped nodes.

    PATH is a run's folder, or any folder with a folder of *.xlog files for each node, ours or real Tarantool's.
    A cut is consistent if a cluster restored from it has lost and contradicted nothing that a quorum decided.

    Without --at the cuts are those at each CONFIRM, ROLLBACK, PROMOTE and DEMOTE: every node stands right behind that
    row, and a node without the row at the end of its log. Exit code 1 if a cut is not consistent.
    """
    from harness.errors import WrongUse
    from harness.pages.terminal.working import working

    if places:
        refuse_options("is for the cuts at decisions, without --at", "most")
    with working("reading the logs", is_quiet=as_json):
        given = read_given("cut", path, promotes, has_votes, quorum)
    if given.rules.quorum is None:
        raise WrongUse(
            f"{path}: expected to know how many nodes make a quorum, which rules of a cut count; "
            f"try: ./qsync cut {given.run.folder.nodes if given.run else path} --quorum {len(given.logs) // 2 + 1}"
        )
    from checkers.logs.log_cuts import LogCuts

    with working("replaying the logs", is_quiet=as_json):
        cuts = LogCuts(given.logs, given.rules)
    if given.rules.quorum > cuts.members:
        raise WrongUse(
            f"a quorum of {given.rules.quorum}: expected at most {cuts.members}, as many as there are nodes"
        )
    with working("judging the cuts", is_quiet=as_json):
        verdicts = _judged(cuts, [_asked(cuts, places)]) if places else _series(cuts, most)
    if as_json:
        print_json(_to_json(verdicts))
    else:
        click.echo(_screen(cuts, verdicts))
    return int(verdicts.exit_code)


@dataclass(frozen=True, slots=True)
class JudgedCut:
    name: str
    places: Places
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class CutVerdicts:
    """`decisions`: how many rows a cut could be at; `unplaced`: how many chosen ones have no known place."""

    cuts: Sequence[JudgedCut]
    decisions: int = 0
    unplaced: int = 0

    def of(self, result: str) -> list[JudgedCut]:
        return [cut for cut in self.cuts if cut.verdict.result == result]

    @property
    def exit_code(self) -> ExitCode:
        if not self.cuts:
            return ExitCode.INCONCLUSIVE
        if self.of("invalid"):
            return ExitCode.ANOMALY
        return ExitCode.UNKNOWN if self.of("unknown") else ExitCode.VALID


def _series(cuts: LogCuts, most: int) -> CutVerdicts:
    from checkers.logs.log_cuts import spread

    rows = cuts.decisions()
    placed = [(row, cuts.at(row)) for row in spread(rows, most)]
    known = [(_row(row), places) for row, places in placed if places is not None]
    judged = _judged(cuts, known)
    return CutVerdicts(judged.cuts, len(rows), len(placed) - len(known))


def _judged(cuts: LogCuts, named: Sequence[tuple[str, Places]]) -> CutVerdicts:
    return CutVerdicts([JudgedCut(name, places, cuts.check(places)) for name, places in named])


def _row(row: Record) -> str:
    return f"{row.kind.upper()} {row.origin}/{row.lsn}"


# ---- places


def _asked(cuts: LogCuts, words: Sequence[str]) -> tuple[str, Places]:
    """The cut that --at asks for: its name, and its places. Raises WrongUse."""
    from checkers.logs.log_cuts import NoSuchPlace
    from harness.errors import WrongUse

    if len(words) == 1 and "=" not in words[0]:
        time = _time(words[0])
        time_ns = round(time.timestamp() * 1e9)
        return f"at {time.isoformat()}", {node: walk.at_time(time_ns) for node, walk in cuts.walks.items()}
    places: dict[str, int] = {}
    for word in words:
        node, equals, place = word.partition("=")
        if not equals:
            raise WrongUse(f"--at {word}: expected NODE=ROW, or one time alone; {_TRY}")
        if node not in cuts.walks:
            raise WrongUse(f"--at {word}: no log is of {node!r}; there are: {', '.join(cuts.walks)}")
        if node in places:
            raise WrongUse(f"--at {word}: expected one place of {node}, got a second one")
        try:
            places[node] = _place(cuts[node], place)
        except NoSuchPlace as error:
            raise WrongUse(f"--at {word}: {node} {error}") from error
        except ValueError:
            raise WrongUse(
                f"--at {word}: expected REPLICA/LSN, LSN, start or end, got {place!r}; {_TRY}"
            ) from None
    return "as asked", {node: places.get(node, walk.end) for node, walk in cuts.walks.items()}


_TRY = "try: --at n1=1/17 --at n2=end, or --at 2026-01-31T12:00:00"


def _place(walk: Walk, word: str) -> int:
    if word == "start":
        return 0
    if word == "end":
        return walk.end
    replica, slash, lsn = word.rpartition("/")
    return walk.behind(int(replica), int(lsn)) if slash else walk.of_lsn(int(lsn))


def _time(word: str) -> datetime:
    """In UTC; so is a time without an offset."""
    from harness.errors import WrongUse

    try:
        time = datetime.fromisoformat(word)
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError):  # the second: in UTC it is before the year 1, or after 9999
        raise WrongUse(f"--at {word}: expected a time or NODE=ROW; {_TRY}") from None


# ---- output


def _sentence(verdicts: CutVerdicts, quorum: int | None) -> str:
    wrong, count = verdicts.of("invalid"), len(verdicts.cuts)
    if not count and verdicts.decisions:
        return f"None of {verdicts.decisions:,} decisions has a place in the logs to cut at."
    if not count:
        return "The logs have no CONFIRM, ROLLBACK, PROMOTE or DEMOTE to cut at."
    if not verdicts.decisions:
        verdict = verdicts.cuts[0].verdict
        words = {"valid": "is consistent", "invalid": "is not consistent", "unknown": "could not be judged"}
        why = verdict.witnesses[0].summary if wrong else verdict.summary
        return f"The cut {words[verdict.result]}: {why}."
    of_all = f"{many(count, 'cut')} of {many(verdicts.decisions, 'decision')}"
    if wrong:
        why = wrong[0].verdict.witnesses[0].summary
        verb = "is" if len(wrong) == 1 else "are"
        return f"{len(wrong)} of {of_all} {verb} not consistent; the first is at {wrong[0].name}: {why}."
    unknown = verdicts.of("unknown")
    if unknown:
        return f"{len(unknown)} of {of_all} could not be judged: {unknown[0].verdict.summary}."
    return f"{count} of {of_all} {'is' if count == 1 else 'are'} consistent; a quorum is {quorum}."


def _to_json(verdicts: CutVerdicts) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "exit_code": int(verdicts.exit_code),
        "decisions": verdicts.decisions,
        "unplaced": verdicts.unplaced,
        "cuts": [
            {"cut": cut.name, "places": dict(cut.places), "verdict": cut.verdict.to_json()}
            for cut in verdicts.cuts
        ],
    }


def _screen(cuts: LogCuts, verdicts: CutVerdicts) -> str:
    from harness.pages.terminal.screen import headline

    outcome = verdicts.exit_code.name.lower()
    head = headline(outcome, _sentence(verdicts, cuts.rules.quorum), colour=has_colour())
    return "\n".join([*head, "", *_lines(cuts, verdicts)])


def _lines(cuts: LogCuts, verdicts: CutVerdicts) -> Iterator[str]:
    """The first inconsistent cut, else the first unknown one, else the last: places, violations, what stays open."""
    from harness.pages.terminal.screen import entry

    if verdicts.unplaced:
        yield from entry(
            "note",
            f"no place in a log for {verdicts.unplaced} of the decisions, which are before its first row",
        )
    gravest = [*verdicts.of("invalid"), *verdicts.of("unknown"), *verdicts.cuts[-1:]]
    if not gravest:
        return
    shown = gravest[0]
    yield from entry("cut", shown.name)
    for node, place in shown.places.items():
        walk = cuts[node]
        row = walk.last(place)
        rows = f"{place:,} of {walk.end:,}"
        at = f"behind {_row(row)}, {row.place}" if row is not None else "before its first row"
        yield from entry(node, f"{at} ({rows})")
    for witness in shown.verdict.witnesses[:WITNESSES]:
        yield from entry("violation", f"{witness.rule}: {witness.summary}")
    for text in shown.verdict.details.get("open", ())[:WITNESSES]:
        yield from entry("open", text)
