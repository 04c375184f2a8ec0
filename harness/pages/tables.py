"""The tables below the drawings, as rows of plain text for the template."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

from checkers.history import Operation
from harness.pages.fault_bands import FaultBand, evidence_words
from harness.pages.first_screen import documented, finding_summaries
from harness.pages.json_door import Json, as_list, as_mappings, as_text, as_time_ns, clipped
from harness.pages.material import Load, Material
from harness.pages.node_states import story_of
from harness.pages.operation_words import began, operation_value
from harness.pages.run_columns import FAIL, INFO, OK
from harness.pages.svg import duration, moment

ROWS = 300
FINDINGS = 20
CHECK_ORDER = ("violation", "finding", "unknown", "valid")


@dataclass(frozen=True, slots=True)
class CheckRow:
    """`standing` is violation, finding, unknown or valid, which is also the order."""

    checker: str
    model: str
    standing: str
    summary: str
    findings: tuple[str, ...]
    """Findings that do not repeat the summary."""
    documented: str
    seconds: str
    details: str


def check_rows(material: Material) -> tuple[CheckRow, ...]:
    violated = {as_text(name, 60) for name in as_list(material.verdict.get("violations"))}
    findings = finding_summaries(material)
    rows = [
        _check_row(check, violated, findings, documented(material, as_text(check.get("checker"), 60)))
        for check in as_mappings(material.verdict.get("checks"))
    ]
    known = {row.checker for row in rows}
    rows += [_row_of_the_judge(name, texts) for name, texts in findings.items() if name not in known]
    return tuple(sorted(rows, key=lambda row: CHECK_ORDER.index(row.standing))[:ROWS])


def _row_of_the_judge(name: str, findings: Sequence[str]) -> CheckRow:
    """Findings of the judge itself: skipped faults, nodes that refused damaged files."""
    return CheckRow(
        checker=name,
        model="",
        standing="finding",
        summary=findings[0],
        findings=tuple(findings[1:FINDINGS]),
        documented="",
        seconds="",
        details="",
    )


def _check_row(
    check: Json, violated: set[str], findings: Mapping[str, tuple[str, ...]], sentence: str
) -> CheckRow:
    checker, result = as_text(check.get("checker"), 60), check.get("result")
    standing = "violation" if checker in violated else "finding" if checker in findings else "unknown"
    if standing == "unknown" and result in ("valid", "invalid"):
        standing = "valid" if result == "valid" else "finding"
    summary = as_text(check.get("summary"), 600)
    seconds = check.get("seconds")
    details = check.get("details")
    return CheckRow(
        checker=checker,
        model=as_text(check.get("model"), 120),
        standing=standing,
        summary=summary,
        findings=tuple(text for text in findings.get(checker, ()) if not summary or summary not in text)[
            :FINDINGS
        ],
        documented="" if standing == "valid" else sentence,
        seconds=f"{seconds:.2f} s" if isinstance(seconds, (int, float)) and abs(seconds) < 1e9 else "",
        details=clipped(json.dumps(details, indent=1, ensure_ascii=False, default=str), 4_000)
        if details
        else "",
    )


@dataclass(frozen=True, slots=True)
class FaultRow:
    id: int
    name: str
    does: str
    targets: str
    start: str
    lasted: str
    took_effect: str
    evidence: str


def fault_rows(bands: Sequence[FaultBand]) -> tuple[FaultRow, ...]:
    return tuple(
        FaultRow(
            id=band.id,
            name=band.name,
            does=band.does,
            targets=clipped(band.targets, 1000),
            start=band.since,
            lasted=_lasted(band),
            took_effect={True: "yes", False: "no", None: "unknown"}[band.took_effect],
            evidence=evidence_words(band),
        )
        for band in bands[:ROWS]
    )


def _lasted(band: FaultBand) -> str:
    if not band.ended:
        return "until the end of the record"
    return duration(band.end_ns - band.start_ns) if band.has_times else f"until {band.until}"


@dataclass(frozen=True, slots=True)
class NodeRow:
    """How one node served: the longest gap is the longest time in which it completed no operation as ok."""

    node: str
    ok: int
    fail: int
    info: int
    longest_gap: str
    gap_at: str
    down: str
    paused: str
    cut: str


def node_rows(material: Material, bands: Sequence[FaultBand]) -> tuple[NodeRow, ...]:
    return tuple(_node_row(node, material, bands) for node in material.nodes[:60])


def _node_row(node: str, material: Material, bands: Sequence[FaultBand]) -> NodeRow:
    load = material.load
    is_timed = len(load) > 0 and material.has_times
    is_here = (
        load.node == load.nodes.index(node) if node in load.nodes else numpy.zeros(len(load), dtype=bool)
    )
    counts = [int((load.outcome[is_here] == code).sum()) for code in (OK, FAIL, INFO)]
    gap_ns, gap_start_ns = _longest_gap(load, load.end_ns[is_here & (load.outcome == OK)])
    stretches = story_of(material, node, bands).stretches(0, max(material.end_ns, 1))
    spent: dict[str, int] = {}
    for stretch in stretches:
        for state in (stretch.kind, "cut" if stretch.cut else ""):
            spent[state] = spent.get(state, 0) + stretch.end_ns - stretch.start_ns
    down_ns = spent.get("down", 0) + spent.get("silent", 0)
    return NodeRow(
        node=node,
        ok=counts[0],
        fail=counts[1],
        info=counts[2],
        longest_gap=duration(gap_ns) if is_timed else "–",
        gap_at=moment(gap_start_ns) if is_timed else "",
        down=_time_or_dash(down_ns),
        paused=_time_or_dash(spent.get("paused", 0)),
        cut=_time_or_dash(spent.get("cut", 0)),
    )


@dataclass(frozen=True, slots=True)
class VersionRow:
    """The interval in which a node reported a version."""

    node: str
    version: str
    first: str
    last: str


def version_rows(material: Material) -> tuple[VersionRow, ...]:
    """Empty if all nodes reported the same version all the time."""
    rows = as_mappings(material.verdict.get("versions"))[:ROWS]
    return tuple(
        VersionRow(
            node=as_text(row.get("node"), 60),
            version=as_text(row.get("version"), 60),
            first=moment(as_time_ns(row.get("from_ns")) or 0),
            last=moment(as_time_ns(row.get("until_ns")) or 0),
        )
        for row in rows
    )


def _longest_gap(load: Load, served_ns: NDArray[numpy.int64]) -> tuple[int, int]:
    """(length, start) in ns, between the first invocation of the load and its last completion."""
    if not len(load):
        return 0, 0
    last_ns = max(int(load.end_ns.max()), int(load.start_ns.max()))
    edges = numpy.concatenate(([load.start_ns.min()], numpy.sort(served_ns), [last_ns]))
    gaps_ns = numpy.diff(edges)
    longest_ns = gaps_ns.max()
    return int(longest_ns), int(edges[:-1][gaps_ns == longest_ns].max())


def _time_or_dash(span_ns: int) -> str:
    return duration(span_ns) if span_ns else "–"


@dataclass(frozen=True, slots=True)
class OperationRow:
    anchors: tuple[int, ...]
    """The events whose links lead to this row; no other row of the page has them."""
    index: str
    invoked_at: int
    """The event of the invocation, which links name."""
    process: str
    f: str
    key: str
    value: str
    outcome: str
    error: str
    invoked: str
    took: str
    node: str
    mode: str


def operation_row(operation: Operation, anchored: set[int]) -> OperationRow:
    """`anchored`: the events that already have a row on this page; those of this operation are added."""
    anchors = tuple(index for index in operation.events if index not in anchored)
    anchored.update(anchors)
    took_ns = None if operation.complete_ns is None else operation.complete_ns - operation.invoke_ns
    return OperationRow(
        anchors=anchors,
        index="–".join(map(str, operation.events)),
        invoked_at=operation.invoke_index,
        process=str(operation.process),
        f=clipped(operation.f, 40),
        key=as_text(operation.key, 40),
        value=operation_value(operation, 160),
        outcome=operation.type,
        error=as_text(operation.error, 160),
        invoked=began(operation),
        took=duration(took_ns) if took_ns is not None and operation.has_times else "–",
        node=f"{operation.node or ''} ({operation.role})" if operation.role else operation.node or "",
        mode=as_text(operation.mode, 40),
    )
