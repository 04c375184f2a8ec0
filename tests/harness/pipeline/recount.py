"""Figures over stored runs, counted twice: from plan.json, verdict.json and history.jsonl, and from the tables.

`of_runs` imports nothing of the project, so that no mistake of the pipeline is repeated in it. It follows
docs/campaigns.md and the docstrings of the record's format. `of_tables` only looks up rows. Both return the same names.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

SECOND_NS = 10**9
Figures = dict[str, Mapping[Any, Any]]
Rows = list[dict[str, Any]]


def _runs(results: Path) -> Iterator[tuple[str, Path]]:
    for verdict in sorted(results.glob("[!_]*/*Z-*/verdict.json")):
        if verdict.parent.parent.name != "latest":
            yield f"{verdict.parent.parent.name}/{verdict.parent.name}", verdict.parent


def _operations(lines: Rows) -> Rows:
    """Each invocation of a client with what its process said next."""
    found, pending = [], {}
    for line in lines:
        if not isinstance(line["process"], int):
            continue
        before = pending.pop(line["process"], None)
        if line["type"] == "invoke":
            pending[line["process"]] = line
            operation = {**line, "asked_ns": line["time_ns"], "type": "info", "ended_ns": None}
            line["operation"] = operation
            found.append(operation)
        elif before is not None:
            operation = before["operation"]
            operation.update(type=line["type"], ended_ns=line["time_ns"])
            for name in ("node", "role"):
                operation[name] = line[name] if line.get(name) is not None else operation.get(name)
    return found


def _faults(lines: Rows) -> Rows:
    """Each line of the nemesis that begins a fault, with the evidence in the line that ends it."""
    told = [line for line in lines if line["process"] == "nemesis"]
    ends = {line["value"]["id"]: line["value"] for line in told if line["type"] != "invoke"}
    return [
        {**line["value"], "took_effect": False, **ends.get(line["value"]["id"], {})}
        for line in told
        if line["type"] == "invoke"
    ]


def _is_load(operation: Mapping[str, Any]) -> bool:
    return bool(operation.get("phase", "load") == "load")


def _in_effect(fault: Mapping[str, Any]) -> tuple[int, int] | None:
    start, end = fault.get("all_in_effect_ns"), fault.get("heal_asked_ns")
    return (
        (start, end)
        if fault["took_effect"] and start is not None and end is not None and start <= end
        else None
    )


def _rank(values: list[int], share: float) -> int | None:
    """The nearest rank: the least value that at least this share of all values does not exceed."""
    ordered = sorted(values)
    return next((value for place, value in enumerate(ordered, 1) if place >= share * len(ordered)), None)


def of_runs(results: Path) -> Figures:
    """The figures, from the files of the runs alone."""
    counts: defaultdict[str, Counter[Any]] = defaultdict(Counter)
    windows: defaultdict[Any, Rows] = defaultdict(list)
    gaps: dict[Any, float] = {}
    campaigns: defaultdict[str, Rows] = defaultdict(list)
    for run, folder in _runs(results):
        plan = json.loads((folder / "plan.json").read_bytes())
        verdict = json.loads((folder / "verdict.json").read_bytes())
        lines = [json.loads(line) for line in (folder / "history.jsonl").read_bytes().splitlines()[1:]]
        operations, faults = _operations(lines), _faults(lines)
        counts["outcomes"][plan["system"], verdict["outcome"]] += 1
        for check in verdict["checks"]:
            counts["checks"][run, check["checker"], check["result"]] += 1
            for witness in check["witnesses"]:
                kind = "anomalies" if check["checker"] in verdict["violations"] else "findings"
                counts[kind][run, check["checker"], witness["rule"]] += 1
            if check["checker"] == "availability":
                of_nodes = [*check["details"]["gaps"].items(), (None, check["details"]["cluster_gaps"])]
                for node, found in of_nodes:
                    unserved_s = sum(gap["to_s"] - gap["from_s"] for gap in found)
                    gaps |= {(run, node): round(unserved_s, 6)} if found else {}
        spans = [(fault["name"], span) for fault in faults if (span := _in_effect(fault))]
        for fault in faults:
            counts["faults"][
                plan["system"], fault["name"], fault["took_effect"], bool(fault.get("healed"))
            ] += 1
            span = _in_effect(fault)
            for operation in operations if span else ():
                at_ns = operation["ended_ns"]
                if span and _is_load(operation) and at_ns is not None and span[0] <= at_ns <= span[1]:
                    counts["load under faults"][run, fault["id"], operation["type"] == "ok"] += 1
        for operation in operations:
            counts["operations"][run, operation["f"], operation["type"]] += 1
            last_ns = operation["asked_ns"] if operation["ended_ns"] is None else operation["ended_ns"]
            on = sorted(
                {name for name, (start, end) in spans if start <= last_ns and end >= operation["asked_ns"]}
            )
            if _is_load(operation):
                place = (
                    run,
                    last_ns // SECOND_NS,
                    operation["f"],
                    operation.get("node"),
                    operation.get("role"),
                )
                windows[*place, "+".join(on) or "none"].append(operation)
        for log in folder.glob("nodes/*/log.jsonl"):
            counts["lines of logs"][run, log.parent.name] += log.read_bytes().count(b"\n")
        ended = {line["value"]["cut"]: line["value"]["state"] for line in lines if line["f"] == "cut-ended"}
        for line in lines:
            if line["f"] == "cut-asked":
                counts["cuts"][run, ended.get(line["value"]["cut"], "unknown")] += 1
        campaigns[run.partition("/")[0]].append({**verdict, "run": run})
    latency = {place: _window(found) for place, found in windows.items()}
    return {
        **counts,
        "gaps": gaps,
        "latency": latency,
        "trend": {campaign: _trend(verdicts, latency) for campaign, verdicts in campaigns.items()},
        "anomalous runs": {run for run, *_ in counts["anomalies"]},
        "runs with findings": {run for run, *_ in counts["findings"]},
        "slowest": sorted((found["max_ns"] for found in latency.values() if found["max_ns"]), reverse=True)[
            :50
        ],
    }  # type: ignore[dict-item]


def _window(operations: Rows) -> dict[str, int | None]:
    served = [each["ended_ns"] - each["asked_ns"] for each in operations if each["type"] == "ok"]
    types = Counter(each["type"] for each in operations)
    shares = {"p50_ns": 0.5, "p95_ns": 0.95, "p99_ns": 0.99, "max_ns": 1.0}
    return {
        **{word: types[word] for word in ("ok", "fail", "info")},
        **{name: _rank(served, share) for name, share in shares.items()},
    }


def _trend(verdicts: Rows, latency: Mapping[Any, Mapping[str, int | None]]) -> dict[str, Any]:
    worst: dict[str, int] = {}
    for (run, *_), found in latency.items():
        if found["p99_ns"] is not None:
            worst[run] = max(worst.get(run, 0), found["p99_ns"])
    of_these = [worst[each["run"]] for each in verdicts if each["run"] in worst]
    asked, ok = (sum(each["evidence"][name] or 0 for each in verdicts) for name in ("asked", "ok"))
    return {
        "runs": len(verdicts),
        **Counter(each["outcome"] for each in verdicts),
        "ok": ok,
        "ok_share": round(ok / asked, 4) if asked else None,
        "typical_worst_p99_ms": round(statistics.median_low(of_these) / 1e6, 3) if of_these else None,
    }


def of_tables(tables: Path) -> Figures:
    """The same figures, looked up in the tables."""
    rows: defaultdict[str, Rows] = defaultdict(list)
    rows |= {name.name: _rows(name) for name in tables.glob("[!_.]*") if name.is_dir()}

    def counted(table: str, *columns: str) -> Counter[Any]:
        return Counter(tuple(row[name] for name in columns) for row in rows[table])

    system = {row["run"]: row["system"] for row in rows["runs"]}
    gaps: defaultdict[Any, float] = defaultdict(float)
    for row in rows["availability"]:
        gaps[row["run"], row["node"]] += row["unserved_ms"] / 1e3
    measured = ("ok", "fail", "info", "p50_ns", "p95_ns", "p99_ns", "max_ns")
    outcomes = ("valid", "anomaly", "unknown", "inconclusive")
    load = Counter()
    for row in rows["faults"]:
        load[row["run"], row["fault_id"], True] += row["ok_meanwhile"]
        load[row["run"], row["fault_id"], False] += row["not_ok_meanwhile"]
    return {
        "outcomes": counted("runs", "system", "outcome"),
        "checks": counted("verdicts", "run", "checker", "result"),
        "anomalies": counted("anomalies", "run", "checker", "rule"),
        "findings": counted("findings", "run", "checker", "rule"),
        "faults": Counter(
            (system[row["run"]], row["name"], row["took_effect"], bool(row["healed"]))
            for row in rows["faults"]
        ),
        "load under faults": +load,
        "operations": counted("operations", "run", "f", "type"),
        "lines of logs": counted("node_log", "run", "node"),
        "cuts": counted("cuts", "run", "state"),
        "gaps": {place: round(seconds, 6) for place, seconds in gaps.items()},
        "latency": {
            tuple(row[name] for name in ("run", "window_s", "f", "node", "role", "fault")): {
                name: row[name] for name in measured
            }
            for row in rows["latency"]
        },
        "trend": {
            row["campaign"]: {
                **{name: row[name] for name in ("runs", "ok", "ok_share", "typical_worst_p99_ms")},
                **{name: row[name] for name in outcomes if row[name]},
            }
            for row in rows["trend"]
        },
        "anomalous runs": _sighted(rows, "anomalies", "recurrence"),
        "runs with findings": _sighted(rows, "findings", "recurring_findings"),
        "slowest": sorted((row["max_ns"] for row in rows["slowest"]), reverse=True),
    }  # type: ignore[dict-item]


def _sighted(rows: Mapping[str, Rows], table: str, recurring: str) -> set[str]:
    """The runs of a table, if the table of fingerprints counts the same runs and witnesses."""
    runs: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows[table]:
        runs[row["fingerprint"]].add(row["run"])
    witnesses = Counter(row["fingerprint"] for row in rows[table])
    told = {row["fingerprint"]: (row["runs"], row["witnesses"]) for row in rows[recurring]}
    same = {name: (len(found), witnesses[name]) for name, found in runs.items()}
    assert told == same and None not in told, (told, same)
    return {row["run"] for row in rows[table]}


def _rows(table: Path) -> Rows:
    import pyarrow.dataset

    found: Rows = pyarrow.dataset.dataset(table, partitioning="hive").to_table().to_pylist()
    return found
