"""certificate.json: what its maker says, and what follows from the runs.

| part | what |
|---|---|
| `given` | what no run shows: when it was made, the code, the images, the signing key, the measured sensitivity |
| `shown` | what follows from the plan and the runs, and what a verifier works out again |

`shown` is a function of the plan's file and the runs of the matrix, so equal inputs give equal bytes.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from checkers.history.errors import NOT_JSON
from harness.campaigns.bars import Bar
from harness.campaigns.certification.facts import JudgedRun
from harness.campaigns.certification.sensitivity import Measured
from harness.campaigns.plan import Campaign
from harness.errors import StoreError
from harness.faults.table import FAULTS
from harness.judge.evidence.rare_turns import rows_of
from harness.plan.plan import Plan
from harness.results.bundle import decoded
from harness.run.assemble import CLUSTERS
from harness.systems import system_of
from harness.workloads import WORKLOADS
from harness.workloads.workload import Workload

FORMAT = "qsync-certificate"
VERSION = 1
CERTIFICATE, PAGE = "certificate.json", "certificate.html"
NO_MODEL = ("configuration", "why")
"""The entries of a verdict's promise that are not models of checks."""


class Code(msgspec.Struct, frozen=True, kw_only=True):
    """The code that ran: its version, its commit ("+": with changes on top), and a digest of all its files."""

    version: str
    commit: str
    sha256: str


class About(msgspec.Struct, frozen=True, kw_only=True):
    """The product, its maker, and the last day on which the certificate counts (ISO 8601)."""

    product: str
    version: str
    maker: str
    valid_until: str


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """The statements of the maker of a certificate. `signed_by`: the name of a public key; None: not signed.

    Certificates from before there were bars lack `about`, `bar` and `environment` (of the machine of the matrix).
    """

    made: str
    code: Code
    images: dict[str, str]
    signed_by: str | None
    measured: Measured
    about: About | None = None
    bar: Bar | None = None
    environment: dict[str, str] = {}


class Certificate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """certificate.json."""

    name: str
    given: Given
    shown: dict[str, Any]
    format: str = FORMAT
    version: int = VERSION

    def encode(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"


def read(path: Path, shown: Path) -> Certificate:
    """The certificate in a file; StoreError in one line. `shown`: the name of the file for messages."""
    try:
        return decoded(path.read_bytes(), Certificate, (FORMAT, VERSION), shown)
    except (OSError, *NOT_JSON) as error:
        raise StoreError(f"{shown}: its {CERTIFICATE} cannot be read: {error}") from error


def digest_of_code(root: Path) -> str:
    """SHA-256 of all that judges: the names and bytes of the files of harness, checkers and nodes."""
    digest = hashlib.sha256()
    for part in ("checkers", "harness", "nodes"):
        for path in sorted((root / part).rglob("*")):
            if path.is_file() and path.suffix not in (".pyc", ".nbi", ".nbc"):
                data = path.read_bytes()
                digest.update(f"{path.relative_to(root)} {len(data)}\n".encode() + data)
    return digest.hexdigest()


def shown(campaign: Campaign, plan_file: bytes, rows: Sequence[JudgedRun]) -> dict[str, Any]:
    """The part of a certificate that follows from the runs, in an order that does not depend on when they ran."""
    rows = sorted(rows, key=lambda row: (row.cell, row.seed, row.run))
    document = {
        "plan": {"sha256": hashlib.sha256(plan_file).hexdigest(), "text": plan_file.decode()},
        "tested": _tested(campaign, rows),
        "promised": _promised(rows),
        "operations": _operations(rows),
        "faults": _faults(rows),
        "states": _states(campaign, rows),
        "verdicts": _verdicts(rows),
        "not_tested": _not_tested(campaign, rows),
        "runs": [
            {
                "run": row.run,
                "cell": row.cell,
                "seed": row.seed,
                "outcome": row.outcome,
                "proofs": row.proofs,
                "history": {"bytes": row.history.bytes, "sha256": row.history.sha256},
            }
            for row in rows
        ],
    }
    content: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(document))
    return content


def _tested(campaign: Campaign, rows: Sequence[JudgedRun]) -> dict[str, Any]:
    plans = [cell.plan for cell in campaign.cells]
    return {
        "systems": _distinct(plan.system for plan in plans),
        "versions": _distinct(version for row in rows for version in row.versions),
        "commits": _distinct(row.plan.code for row in rows),
        "configurations": _distinct(row.promise["configuration"] for row in rows),
        "clusters": _distinct(plan.cluster for plan in plans),
        "workloads": _distinct(plan.workload for plan in plans),
        "nodes": sorted({plan.nodes for plan in plans}),
        "faults asked for": _distinct("+".join(plan.faults) for plan in plans),
        "cells": len(plans),
        "excluded": campaign.excluded,
        "runs": len(rows),
        "seconds of load": sum(row.plan.time_limit_s for row in rows),
        "longest run, seconds of load": max((row.plan.time_limit_s for row in rows), default=0.0),
    }


def _promised(rows: Sequence[JudgedRun]) -> list[dict[str, Any]]:
    """The promises of each configuration: the models by the names of their checks, the sources, the number of runs."""
    promises: dict[bytes, dict[str, Any]] = {}
    for row in rows:
        models = {name: model for name, model in row.promise.items() if name not in NO_MODEL}
        promise = {
            "system": row.plan.system,
            "configuration": row.promise["configuration"],
            "why": row.promise["why"],
            "models": models,
            "sources": row.sources,
        }
        entry = promises.setdefault(msgspec.json.encode(promise), {**promise, "runs": 0})
        entry["runs"] += 1
    return list(promises.values())


def _operations(rows: Sequence[JudgedRun]) -> dict[str, int]:
    words = ("asked", "ok", "fail", "info", "ok_under_fault", "skipped")
    return {word: sum(row.evidence[word] for row in rows) for word in words}


def _faults(rows: Sequence[JudgedRun]) -> list[dict[str, Any]]:
    """A row for each kind of fault on each cluster, in the order of the table of faults."""
    kinds = []
    for cluster in _distinct(row.plan.cluster for row in rows):
        there = [row for row in rows if row.plan.cluster == cluster]
        begun: Counter[str] = sum((row.begun for row in there), Counter())
        effective: Counter[str] = sum((row.in_effect for row in there), Counter())
        for name in sorted(begun, key=_place):
            runs = sum(row.in_effect[name] > 0 for row in there)
            kinds.append(
                {
                    "cluster": cluster,
                    "fault": name,
                    "begun": begun[name],
                    "took_effect": effective[name],
                    "runs": runs,
                }
            )
    return kinds


def _states(campaign: Campaign, rows: Sequence[JudgedRun]) -> dict[str, Any]:
    """The rare turns that the runs of the matrix reached, and those that none reached, in the order of the table."""
    systems = _distinct(cell.plan.system for cell in campaign.cells)
    possible = dict.fromkeys(row for name in systems for row in rows_of(system_of(name)))
    turns = [row.evidence["rare_turns"] for row in rows]
    runs = {turn: sum(counts.get(turn, 0) > 0 for counts in turns) for turn in possible}
    times = {turn: sum(counts.get(turn, 0) for counts in turns) for turn in possible}
    return {
        "reached": [
            {"state": turn, "times": times[turn], "runs": runs[turn]} for turn in possible if runs[turn]
        ],
        "never": [turn for turn in possible if not runs[turn]],
    }


def _place(fault: str) -> tuple[int, str]:
    names = list(FAULTS)
    return (names.index(fault) if fault in FAULTS else len(names), fault)


def _verdicts(rows: Sequence[JudgedRun]) -> dict[str, Any]:
    promised = {name for row in rows for name in row.promise if name not in NO_MODEL}
    return {
        "outcomes": dict(sorted(Counter(row.outcome for row in rows).items())),
        "checks": [
            {
                "check": name,
                "is promised": name in promised,
                **{
                    word: sum(row.checks.get(name) == word for row in rows)
                    for word in ("valid", "invalid", "unknown")
                },
                "nothing to judge": sum(name in row.idle for row in rows),
            }
            for name in _distinct(name for row in rows for name in (*row.checks, *row.idle))
        ],
        "proofs accepted": sum(row.proofs for row in rows),
        "runs with a part decided without proof": sum(bool(row.without) for row in rows),
        "findings": [
            {"finding": text, "runs": count}
            for text, count in sorted(Counter(text for row in rows for text in row.findings).items())
        ],
    }


def _not_tested(campaign: Campaign, rows: Sequence[JudgedRun]) -> dict[str, list[str]]:
    """The faults, workloads, … that this code can apply to these systems and that the matrix leaves out, by kind."""
    plans = [cell.plan for cell in campaign.cells]
    observed = {name for row in rows for name in row.in_effect}
    systems = {name: system_of(name) for name in _distinct(plan.system for plan in plans)}
    able = {
        name
        for name, kind in FAULTS.items()
        for system in systems.values()
        if any(kind.is_among_all(cluster, system.abilities) for cluster in CLUSTERS)
    }
    spoken = {
        name: workload
        for name, workload in WORKLOADS.items()
        if any(workload.uses <= system.client.speaks for system in systems.values())
    }
    letters = {
        letter
        for name, system in systems.items()
        for letter in system.configuration_names
        if letter not in {plan.expectations.configuration for plan in plans if plan.system == name}
    }
    judged = {name for row in rows for name in row.checks}
    return {
        "faults": sorted(able - observed, key=_place),
        "workloads": sorted({*spoken} - {plan.workload for plan in plans}),
        "clusters": [name for name in CLUSTERS if name not in {plan.cluster for plan in plans}],
        "configurations": sorted(letters),
        "checks": sorted(_checks_of(plans, spoken) - judged),
    }


def _checks_of(plans: Sequence[Plan], spoken: Mapping[str, Workload]) -> set[str]:
    """All checks that these systems could be judged by, over all workloads."""
    promises = [system_of(plan.system).promise(plan) for plan in plans]
    of_systems = {check.name for plan in plans for check in system_of(plan.system).checks(plan)}
    return of_systems | {
        check.name
        for promise in promises
        for workload in spoken.values()
        for check in workload.checks(promise, None)
    }


def _distinct(words: Iterable[str]) -> list[str]:
    return sorted(set(words))
