"""The terminal's output for a judged file: the verdict first, the line that repeats it last.

ANOMALY  Process 1 read 3, but no client ever asked to write 3.

4 ok  0 fail  0 info   model register   strongest: none
  violation  linearizable: not linearizable: …
second opinion  valid (it said 'true')
  DISAGREEMENT  …

again   ./qsync check history.edn --model register
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.pages.terminal.colour import painted, printable
from harness.pages.terminal.screen import BADGES, entry, headline

LINES_MAX, PROOFS_MAX = 8, 3


def screen(verdict: Mapping[str, Any], *, colour: bool = False) -> str:
    """The text, without a newline at its end."""
    return "\n".join(
        [
            *headline(verdict["outcome"], verdict["sentence"], colour=colour, lines_max=3),
            "",
            _counts(verdict),
            *_standing_lines(verdict, colour),
            *asked_lines(verdict, colour=colour),
            "",
            f"again   {printable(str(verdict['repeat']['command']))}",
        ]
    )


def asked_lines(verdict: Mapping[str, Any], *, colour: bool = False) -> Iterator[str]:
    """Results of the options that ask for more than a verdict."""
    yield from verified_lines(verdict)
    if "jepsen" in verdict:
        yield f"results    Jepsen said {printable(jepsen_words(verdict))}"
    yield from second_opinion_lines(verdict, colour=colour)
    yield from graph_lines(verdict)


def graph_lines(verdict: Mapping[str, Any]) -> Iterator[str]:
    """The file with a circle of transactions, or why there is none."""
    made = verdict.get("graph")
    if made is None:
        return
    if "why" in made:
        yield f"graph  none: {made['why']}"
    else:
        circle = f"{made['anomaly']}, {made['transactions']} transactions, {made['edges']} edges"
        yield f"graph  {printable(made['file'])} ({circle})"


def second_opinion_lines(verdict: Mapping[str, Any], *, colour: bool = False) -> Iterator[str]:
    """The result of the other checker; a difference from ours is in capitals."""
    other = verdict.get("second_opinion")
    if not other:
        return
    yield f"second opinion  {other['result']} ({printable(str(other['how']))})"
    if other["disagrees"]:
        ours = f"we say {BADGES[str(verdict['outcome'])][0]}"
        if other.get("check"):
            ours = f"our check {other['check']} says {str(other['ours']).upper()}"
        shout = painted("DISAGREEMENT", "bold", "red", on=colour)
        yield f"  {shout}  {ours}, {printable(other['command'])} says {other['result'].upper()}: one is wrong"
        yield f"                the exit code {verdict['exit_code']} is ours alone"


def verified_lines(verdict: Mapping[str, Any]) -> Iterator[str]:
    """The result of checking the proofs, if they were checked."""
    proofs = verdict.get("verified")
    if proofs is None:
        return
    without = f", {len(proofs['without'])} decided without proof" if proofs["without"] else ""
    yield f"verified  {proofs['accepted']} proofs accepted{without}"
    refused = proofs["refused"]
    for reason in refused[:PROOFS_MAX]:
        yield f"  REFUSED  {printable(reason)}"
    if len(refused) > PROOFS_MAX:
        yield f"  … and {len(refused) - PROOFS_MAX} more (--json shows all)"


def _counts(verdict: Mapping[str, Any]) -> str:
    evidence = verdict["evidence"]
    counts = "  ".join(f"{evidence[word]:,} {word}" for word in ("ok", "fail", "info"))
    strongest = f"   strongest: {verdict['strongest']}" if verdict.get("strongest") else ""
    return f"{counts}   model {verdict['run']['workload']}{strongest}"


def _standing_lines(verdict: Mapping[str, Any], colour: bool) -> Iterator[str]:
    if beside := verdict["evidence"].get("left_out"):
        counts = ", ".join(f"{count:,} {name}" for name, count in beside.items())
        yield from entry("left out", f"{counts}: no transactions")
    standings = list(_standings(verdict))
    for standing, text in standings[:LINES_MAX]:
        yield from entry(standing, text, colour=colour, lines_max=1)
    if len(standings) > LINES_MAX:
        yield f"  … and {len(standings) - LINES_MAX} more (--json or --html shows all)"


def _standings(verdict: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    checks = {check["checker"]: check for check in verdict["checks"]}
    for name in verdict["violations"]:
        yield "violation", f"{name}: {checks[name]['summary']}"
    for sentence in verdict["evidence"]["missing"]:
        yield "missing", sentence
    for check in checks.values():
        if check["result"] == "unknown":
            yield "unknown", f"{check['checker']}: {check['summary']}"
    for finding in verdict["findings"]:
        yield "finding", f"{finding['checker']}: {finding['summary']}"


def jepsen_words(verdict: Mapping[str, Any]) -> str:
    """What Jepsen said, and which of its checkers."""
    named = ", ".join(verdict["jepsen_checkers"])
    return f"{verdict['jepsen']}, by its checker {named}" if named else str(verdict["jepsen"])
