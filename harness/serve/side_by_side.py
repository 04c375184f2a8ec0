"""Two runs, line by line: plan, outcome, evidence, checks, faults, witnesses. Rows that differ come with a mark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from checkers.history import HistoryError, segments
from harness.campaigns.judging import fingerprints_of
from harness.pages.json_door import Json, as_mapping, as_mappings, clipped
from harness.pages.tables_page import Cell, Section
from harness.results.run_folder import HISTORY, PLAN, RunFolder
from harness.serve.index import Run, decoded

READ_BYTES_MAX = 8 << 20
"""A page needs the record for fingerprints, and leaves them out for a larger record."""
TEXT_MAX = 300
COUNTS = ("asked", "ok", "fail", "info", "ok_under_fault", "skipped", "rollbacks", "stalls")

Rows = dict[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Stored:
    """A run and its documents, which are empty if they cannot be read."""

    run: Run
    plan: Json
    verdict: Json

    @classmethod
    def read(cls, run: Run) -> Stored:
        return cls(run, decoded(run.path / PLAN, dict) or {}, RunFolder(run.path).read_verdict() or {})


def sections(one: Stored, other: Stored) -> Iterator[Section]:
    """Tables with a column for each run."""
    yield _section("Outcome", "The verdict, and what it rests on.", _outcome(one), _outcome(other))
    yield _section("Checks", "The result of each check.", _checks(one), _checks(other))
    yield _section("Faults", "Kinds, with how many took effect.", _faults(one), _faults(other))
    yield _section("Rare turns", "Those that came about, and how often.", _turns(one), _turns(other))
    caption = "Broken rules, how often; and fingerprints, for records that are not too long."
    yield _section("Anomalies", caption, _anomalies(one), _anomalies(other))
    yield _section("Plan", "The settings; the same plan and seed repeat a run.", _plan(one), _plan(other))


def alone(of: Stored) -> Iterator[Section]:
    """Tables of one run."""
    for title, rows in (
        ("Checks", _checks(of)),
        ("Faults", _faults(of)),
        ("Rare turns", _turns(of)),
        ("Anomalies", _anomalies(of)),
        ("Plan", _plan(of)),
    ):
        cells = [(name, Cell(clipped(text, TEXT_MAX), "prose")) for name, text in rows.items()]
        yield Section(title, "", ("what", "says"), cells, empty="None.")


def _section(title: str, caption: str, one: Mapping[str, str], other: Mapping[str, str]) -> Section:
    """Rows that differ first."""
    names = list(dict.fromkeys((*one, *other)))
    rows: list[tuple[str | Cell, ...]] = [
        (
            Cell("differs", "word unknown") if one.get(name, "") != other.get(name, "") else "",
            name,
            Cell(clipped(one.get(name, "—"), TEXT_MAX), "prose"),
            Cell(clipped(other.get(name, "—"), TEXT_MAX), "prose"),
        )
        for name in names
    ]
    rows.sort(key=lambda row: not row[0])
    return Section(title, caption, ("", "what", "A", "B"), rows, empty="Neither run has any.")


def _outcome(of: Stored) -> dict[str, str]:
    rows = {"outcome": of.run.outcome, "sentence": of.run.sentence}
    strongest = of.verdict.get("strongest")
    if isinstance(strongest, str | Mapping):
        rows["strongest model that held, dirty reads aside"] = _text(strongest)
    evidence = as_mapping(of.verdict.get("evidence"))
    rows |= {
        f"operations: {word.replace('_', ' ')}": f"{evidence[word]:,}"
        for word in COUNTS
        if _is_number(evidence.get(word))
    }
    missing = evidence.get("missing")
    return rows | ({"lacks": "; ".join(map(_text, missing))} if isinstance(missing, list) and missing else {})


def _checks(of: Stored) -> dict[str, str]:
    return {
        _text(check.get("checker")): f"{_text(check.get('result'))}: {_text(check.get('summary'))}"
        for check in as_mappings(of.verdict.get("checks"))
    }


def _faults(of: Stored) -> dict[str, str]:
    asked: Counter[str] = Counter()
    effect: Counter[str] = Counter()
    for fault in as_mappings(as_mapping(of.verdict.get("evidence")).get("faults")):
        name = _text(fault.get("name"))
        asked[name] += 1
        effect[name] += fault.get("took_effect") is True
    return {name: f"{effect[name]} of {count} took effect" for name, count in sorted(asked.items())}


def _turns(of: Stored) -> dict[str, str]:
    counts = as_mapping(as_mapping(of.verdict.get("evidence")).get("rare_turns"))
    return {name: f"{times:,}" for name, times in counts.items() if _is_number(times) and times}


def _anomalies(of: Stored) -> dict[str, str]:
    rules: Counter[str] = Counter()
    for check in as_mappings(of.verdict.get("checks")):
        for witness in as_mappings(check.get("witnesses")):
            rules[f"{_text(check.get('checker'))}: {_text(witness.get('rule'))}"] += 1
    rows = {name: f"{count:,}" for name, count in rules.items()}
    return rows | {f"fingerprint {fingerprint}": shape for fingerprint, shape in _fingerprints(of)}


def _fingerprints(of: Stored) -> list[tuple[str, str]]:
    if of.run.outcome != "anomaly":
        return []
    try:
        if segments.size(of.run.path / HISTORY) > READ_BYTES_MAX:
            return []
        prints, shapes = fingerprints_of(of.verdict, of.run.path)
    except (OSError, HistoryError, KeyError, TypeError, ValueError):  # a verdict that is not ours
        return []
    return list(zip(prints, shapes, strict=True))


def _plan(of: Stored) -> dict[str, str]:
    left_out = ("drawn", "format", "version", "options")
    options = {f"option {name}": _text(value) for name, value in as_mapping(of.plan.get("options")).items()}
    return options | {name: _text(value) for name, value in of.plan.items() if name not in left_out}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
