"""The words at the top of the page: the verdict, the run, and the facts that a reader needs to trust them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from checkers.history.values import many, often
from checkers.logs.wal import early
from harness.judge.causes import SETTLED
from harness.pages.fault_bands import FaultBand
from harness.pages.json_door import Json, as_list, as_mapping, as_mappings, as_text, as_texts, as_whole
from harness.pages.material import Material
from harness.pages.run_columns import FAIL, INFO, OK, OUTCOMES
from harness.pages.svg import duration
from harness.pages.tables_page import OUTCOMES as VERDICTS

_FOLLOWED = re.compile(r"(?<=[.…]) (?=Since then|Also: |Violated as well: )")
"""Between the sentences of `harness.judge.causes.headline`."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One labelled value of the strip below the verdict; `extra` is smaller print."""

    label: str
    value: str
    extra: str = ""


@dataclass(frozen=True, slots=True)
class FirstScreen:
    """`reasons` says why a verdict is not a clear valid: undecided checks, or missing evidence."""

    outcome: str
    badge: str
    sentence: str
    followed: tuple[str, ...]
    """The further sentences of the verdict: effects, and other violated checks."""
    facts: tuple[Fact, ...]
    reasons: tuple[str, ...]
    reasons_title: str
    notes: tuple[str, ...]


def first_screen(material: Material, bands: Sequence[FaultBand]) -> FirstScreen:
    said = as_text(material.verdict.get("outcome"))
    outcome = said if said in VERDICTS else "no-verdict"
    title, reasons = _reasons(material, outcome)
    without = f"This run has no verdict; {len(material.load) or 'no'} operations were recorded."
    sentence, *followed = _FOLLOWED.split(as_text(material.verdict.get("sentence"), 1_200) or without)
    return FirstScreen(
        outcome=outcome,
        badge=outcome.replace("-", " ").upper(),
        sentence=sentence,
        followed=tuple(followed),
        facts=tuple(_facts(material, bands)),
        reasons=reasons,
        reasons_title=title,
        notes=(*material.notes, *_stalls(material)),
    )


def run_value(material: Material, name: str) -> str:
    """A value from the verdict, else from the history's header, else from the plan; "" if none has it."""
    header = getattr(material.header, name, None)
    candidates = (as_mapping(material.verdict.get("run")).get(name), header, material.plan.get(name))
    return next((as_text(value, 60) for value in candidates if value not in (None, "")), "")


def _facts(material: Material, bands: Sequence[FaultBand]) -> list[Fact]:
    evidence = as_mapping(material.verdict.get("evidence"))
    counts = [_count(evidence.get(OUTCOMES[code]), material.load.count(code)) for code in (OK, FAIL, INFO)]
    submitted = as_whole(evidence.get("submitted"))
    under_fault = as_whole(evidence.get("ok_under_fault"))
    rollbacks = as_whole(evidence.get("rollbacks"))
    remarks = "" if submitted is None else f", {submitted:,} of them only submitted"
    if skipped := as_whole(evidence.get("skipped")):
        remarks += f" · {skipped:,} skipped because the load was late"
    facts = [
        Fact("system", run_value(material, "system") or "?", _on_cluster(material)),
        Fact(
            "workload", run_value(material, "workload") or "?", f"seed {run_value(material, 'seed') or '?'}"
        ),
        Fact("nodes", _first(material.nodes, 9) or "?", _quorum(material)),
        Fact("duration", *_duration(material)),
        Fact("operations", f"{counts[0]:,} ok", f"{counts[1]:,} fail · {counts[2]:,} info{remarks}"),
        Fact("faults that took effect", *_in_effect(material, bands)),
    ]
    if not_begun := as_mappings(evidence.get("skipped_faults")):
        facts.append(Fact("faults skipped", f"{len(not_begun):,}", _skipped(not_begun)))
    if without := _without_effect(as_mappings(evidence.get("attempts"))):
        facts.append(without)
    if never := as_texts(evidence.get("not_observed")):
        facts.append(Fact("asked for, without effect", f"{len(never):,}", _first(never, 12)))
    for lack in as_mappings(evidence.get("not_here")):
        names = as_texts(lack.get("faults"))
        facts.append(Fact("left out on this machine", ", ".join(names), as_text(lack.get("why"), 300)))
    facts += _cuts(as_mapping(evidence.get("cuts")))
    strongest = as_text(material.verdict.get("strongest"), 90)
    if strongest:
        facts.append(Fact("strongest model that held", strongest, "over all reads but dirty ones"))
    if under_fault is not None:
        extra = "" if rollbacks is None else many(rollbacks, "rollback")
        facts.append(Fact("under a fault", f"{under_fault:,} ok", extra))
    return facts


def _cuts(cuts: Json) -> list[Fact]:
    """How many consistent cuts were judged, or why none was taken."""
    if why := as_text(cuts.get("why"), 200):
        return [Fact("consistent cuts judged", "none", why)]
    asked, judged = as_whole(cuts.get("asked")), as_whole(cuts.get("judged"))
    if asked is None or judged is None:
        return []
    rest = "the others did not come about" if judged < asked else ""
    return [Fact("consistent cuts judged", f"{judged:,} of {asked:,}", rest)]


def _duration(material: Material) -> tuple[str, str]:
    lines = f"{material.lines:,} history lines"
    if not material.has_times:
        return "no times", f"{lines}; their order stands for it"
    return duration(material.end_ns), lines


def _count(value: object, counted: int) -> int:
    number = as_whole(value)
    return counted if number is None else number


def _on_cluster(material: Material) -> str:
    cluster = run_value(material, "cluster")
    return f"on {cluster}" if cluster else ""


def _quorum(material: Material) -> str:
    parts = [("quorum", run_value(material, "quorum")), ("owner", run_value(material, "owner"))]
    return " · ".join(f"{word} {value}" for word, value in parts if value)


def _skipped(faults: Sequence[Json]) -> str:
    """By name, the most often skipped first."""
    names = Counter(as_text(fault.get("name"), 60) for fault in faults)
    return _first([f"{name} ×{count}" for name, count in names.most_common()], 8)


def _without_effect(kinds: Sequence[Json]) -> Fact | None:
    """Attempts that took no effect, by kind, with their reasons."""
    reasons = {as_text(kind.get("name"), 60): as_mapping(kind.get("without_effect")) for kind in kinds}
    counts = {
        name: {why: as_whole(n) or 0 for why, n in by_reason.items()}
        for name, by_reason in reasons.items()
        if by_reason
    }
    if not counts:
        return None
    words = (f"{name} ×{n} ({why})" for name, by_reason in counts.items() for why, n in by_reason.items())
    return Fact(
        "took no effect",
        f"{sum(sum(by_reason.values()) for by_reason in counts.values()):,}",
        ", ".join(words),
    )


def _in_effect(material: Material, bands: Sequence[FaultBand]) -> tuple[str, str]:
    """("5 of 6", "isolate-owner ×2, kill, pause"): from the history, or from the verdict if there is none."""
    faults = [(band.name, band.took_effect) for band in bands] or [
        (as_text(fault.get("name"), 60), fault.get("took_effect"))
        for fault in as_mappings(as_mapping(material.verdict.get("evidence")).get("faults"))
    ]
    if not faults:
        return "none", "no fault was injected"
    names = Counter(name for name, took_effect in faults if took_effect is True)
    words = _first([name if count == 1 else f"{name} ×{count}" for name, count in names.most_common()], 8)
    if unknown := sum(took_effect is None for _, took_effect in faults):
        words += f"{' · ' if words else ''}not known of {unknown:,}"
    return f"{names.total()} of {len(faults)}", words


def _first(words: Sequence[str], most: int) -> str:
    """As many of them, and how many more there are."""
    more = f" and {len(words) - most:,} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more


def _reasons(material: Material, outcome: str) -> tuple[str, tuple[str, ...]]:
    verdict = material.verdict
    missing = as_texts(as_mapping(verdict.get("evidence")).get("missing"))[:12]
    unknown = tuple(
        f"{as_text(check.get('checker'), 60)}: {as_text(check.get('summary'))}"
        for check in as_mappings(verdict.get("checks"))
        if check.get("result") == "unknown" and as_mapping(check.get("details")).get("asked") != 0
    )[:12]
    match outcome:
        case "inconclusive":
            return "Why this run proves nothing", missing
        case "unknown":
            return "What could not be decided", unknown + missing
        case _:
            return "Also", missing + unknown


def _stalls(material: Material) -> list[str]:
    stalls = [
        as_whole(as_mapping(event.value).get("stalled_ms")) or 0
        for event in material.harness
        if event.f == "stall"
    ]
    if not stalls:
        return []
    longest = f"stalled {often(len(stalls))}, {max(stalls):,} ms at most"
    return [f"The harness itself {longest}: latencies near it are not the system's."]


def repeat_line(material: Material) -> tuple[str, str]:
    """(command, sentence on what it repeats); both empty if the verdict names no command."""
    repeat = as_mapping(material.verdict.get("repeat"))
    command = as_text(repeat.get("command"), 2_000)
    match repeat.get("repeats"):
        case "outcome":
            return command, "It repeats the outcome: the same operations, faults and answers, byte for byte."
        case "schedule":
            return (
                command,
                "It repeats the schedule of operations and faults; real clocks may answer differently.",
            )
        case _:
            return command, ""


def promises(material: Material) -> tuple[tuple[str, str], ...]:
    promise = as_mapping(material.verdict.get("promise"))
    return tuple(
        (as_text(checker, 60), as_text(model, 1_200)) for checker, model in list(promise.items())[:40]
    )


def promised(material: Material, checker: str, rule: str) -> str:
    """The promise behind a rule in words, else that of its check; "" if the check was promised nothing."""
    name = checker.removesuffix(SETTLED)
    promise = as_text(as_mapping(material.verdict.get("promise")).get(name), 400)
    return early.RULES.get(rule, promise) if promise and name == early.NAME else promise


def rests_on(material: Material) -> str:
    """The source of the promise and its reservations; a reader of a violation needs both."""
    return as_text(as_mapping(material.verdict.get("promise")).get("why"), 1_200)


def documented(material: Material, checker: str) -> str:
    """The sentence of the store's documentation on the subject of this check; "" without one."""
    return as_text(as_mapping(material.verdict.get("documented")).get(checker), 1_200)


def finding_summaries(material: Material) -> dict[str, tuple[str, ...]]:
    """The findings by checker: allowed behaviour that may surprise a reader."""
    summaries: dict[str, tuple[str, ...]] = {}
    for finding in as_mappings(as_list(material.verdict.get("findings"))):
        checker = as_text(finding.get("checker"), 60)
        summaries[checker] = (*summaries.get(checker, ()), as_text(finding.get("summary"), 1_200))
    return summaries
