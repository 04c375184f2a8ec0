"""The result of the run in at most fifteen lines: the verdict first, the line that repeats it last.

ANOMALY  Key r3 lost an acknowledged write: …

2,412 ok  12 fail  33 info   611 ok under a fault   3 rollbacks
faults that took effect (5 of 6): kill ×2, isolate-owner, pause, slow-links
strongest model that held, dirty reads aside: coherence
  violation  linearizable: 1 of 6 keys has no such order
  finding    replica-reads: …

report  results/default/20250101T090000Z-7/report.html
again   ./qsync run --seed 7 …   (repeats the outcome)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.pages.terminal.colour import printable
from harness.pages.terminal.screen import cut, entry, headline

LINES = 15


def last_screen(verdict: Mapping[str, Any], run_folder: Path, *, colour: bool = False) -> str:
    """The text, without a newline at its end. `verdict` is what verdict.json holds; `run_folder` may be a bundle.

    Lines are cut to a hundred columns, except paths and commands, which users copy.
    """
    sentence = verdict.get("sentence", "")
    head = [*headline(verdict.get("outcome"), sentence, colour=colour, lines_max=2), ""]
    counts = [
        _counts(verdict),
        _faults(verdict),
        *_not_here(verdict),
        *_cuts(verdict),
        *_versions(verdict),
        *_strongest(verdict),
    ]
    of_bundle = f"bundle  {_shown(run_folder)}   (--html FILE writes its page)"
    report = of_bundle if run_folder.is_file() else f"report  {_shown(run_folder / 'report.html')}"
    asked = " ".join(str(option) for option in verdict.get("asked", ()))
    foot = ["", f"nothing was written, because of {asked}" if asked else report, *_again(verdict)]
    room = LINES - len(head) - len(counts) - len(foot)
    return "\n".join([*head, *counts, *_check_lines(verdict, room, colour), *foot])


def _counts(verdict: Mapping[str, Any]) -> str:
    evidence = verdict.get("evidence", {})
    counts = "  ".join(f"{evidence.get(word, 0):,} {word}" for word in ("ok", "fail", "info"))
    if (submitted := evidence.get("submitted")) is not None:
        counts += f", {submitted:,} of them submitted"
    if skipped := evidence.get("skipped"):
        counts += f"  {skipped:,} skipped"
    under_fault = f"{evidence.get('ok_under_fault', 0):,} ok under a fault"
    rollbacks = evidence.get("rollbacks")
    rolled_back = "" if rollbacks is None else f"{rollbacks:,} rollback{'' if rollbacks == 1 else 's'}"
    return "   ".join(part for part in (counts, under_fault, rolled_back) if part)


def _strongest(verdict: Mapping[str, Any]) -> list[str]:
    model = printable(str(verdict.get("strongest") or ""))
    return [cut(f"strongest model that held, dirty reads aside: {model}")] if model else []


def _versions(verdict: Mapping[str, Any]) -> list[str]:
    """The first version, and each later one with its nodes and times."""
    rows = list(verdict.get("versions") or ())
    if not rows:
        return []
    first, at_start = str(rows[0].get("version")), dict.fromkeys(row.get("node") for row in rows)
    came: dict[str, list[str]] = {}
    for row in rows:
        if row.get("node") in at_start and str(row.get("version")) == first:
            del at_start[row.get("node")]  # it began with that
            continue
        at = f"{row.get('node')} at {row.get('from_ns', 0) / 1e9:.1f} s"
        came.setdefault(str(row.get("version")), []).append(at)
    changes = " → ".join((first, *(f"{version}: {', '.join(nodes)}" for version, nodes in came.items())))
    return [cut(printable(f"versions  {changes}"))]


def _faults(verdict: Mapping[str, Any]) -> str:
    faults = verdict.get("evidence", {}).get("faults", [])
    in_effect = Counter(str(fault.get("name")) for fault in faults if fault.get("took_effect"))
    if not faults:
        return "no fault was injected"
    names = ", ".join(name if many == 1 else f"{name} ×{many}" for name, many in in_effect.most_common())
    never = ", ".join(map(str, verdict.get("evidence", {}).get("not_observed") or ()))
    suffix = f"; never: {never}" if never else ""
    return cut(
        printable(
            f"faults that took effect ({in_effect.total()} of {len(faults)}): {names or 'none'}{suffix}"
        )
    )


def _not_here(verdict: Mapping[str, Any]) -> list[str]:
    """The faults that "all" left out on this machine, and why. No option named one of them."""
    lacks = verdict.get("evidence", {}).get("not_here") or ()
    reasons = "; ".join(f"{', '.join(lack.get('faults', ()))} ({lack.get('why')})" for lack in lacks)
    return [cut(printable(f"left out here: {reasons}"))] if reasons else []


def _cuts(verdict: Mapping[str, Any]) -> list[str]:
    """How many consistent cuts were judged, or why none was taken."""
    cuts = verdict.get("evidence", {}).get("cuts") or {}
    if why := cuts.get("why"):
        return [cut(printable(f"no consistent cut was judged: {why}"))]
    asked = cuts.get("asked")
    return [f"consistent cuts judged: {cuts.get('judged', 0):,} of {asked:,}"] if asked is not None else []


def _check_lines(verdict: Mapping[str, Any], room: int, colour: bool) -> list[str]:
    """Violations, missing evidence, unknown checks, findings: in two lines each, or in one, or as many as fit."""
    rows = _standings(verdict)
    for lines_each in (2, 1):
        entries = [entry(standing, text, colour=colour, lines_max=lines_each) for standing, text in rows]
        if sum(map(len, entries)) <= room:
            return [line for entry in entries for line in entry]
    shown = [line for entry in entries[: room - 1] for line in entry]
    return [*shown, f"  … and {len(rows) - len(shown)} more in the report"]


def _standings(verdict: Mapping[str, Any]) -> list[tuple[str, str]]:
    violated = set(verdict.get("violations", []))
    summaries = {check.get("checker"): check.get("summary", "") for check in verdict.get("checks", [])}
    documented = verdict.get("documented", {})

    def quoting(standing: str, name: str, summary: str) -> list[tuple[str, str]]:
        quoted = [("by", documented[name])] if name in documented else []
        return [(standing, f"{name}: {summary}"), *quoted]

    rows = [
        line
        for name in verdict.get("violations", [])
        for line in quoting("violation", name, summaries.get(name, ""))
    ]
    rows += [("missing", str(sentence)) for sentence in verdict.get("evidence", {}).get("missing", [])]
    rows += [
        ("unknown", f"{check.get('checker')}: {check.get('summary', '')}")
        for check in verdict.get("checks", [])
        if check.get("result") == "unknown" and check.get("checker") not in violated and _was_asked(check)
    ]
    findings = verdict.get("findings", [])
    return rows + [
        line
        for finding in findings
        for line in quoting("finding", str(finding.get("checker")), str(finding.get("summary", "")))
    ]


def _again(verdict: Mapping[str, Any]) -> list[str]:
    repeat = verdict.get("repeat") or {}
    command = printable(str(repeat.get("command") or ""))
    if not command:
        return []
    repeats = {"outcome": "   (repeats the outcome)", "schedule": "   (repeats the schedule)"}
    return [f"again   {command}{repeats.get(str(repeat.get('repeats')), '')}"]


def _shown(path: Path) -> str:
    """Relative to the current folder if it lies below, because that is shorter and can be copied as well."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _was_asked(check: Mapping[str, Any]) -> bool:
    """False for a check of a class of reads that no client issued."""
    details = check.get("details")
    return not isinstance(details, Mapping) or details.get("asked") != 0
