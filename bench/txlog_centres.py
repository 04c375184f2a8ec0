"""A TxLog of two data centres, two masters each: the link between them is cut for longer than a split takes.

    .venv/bin/python -m bench.txlog_centres [--cluster docker] [--results FOLDER]

One run with each strategy, and one with `smart` over a link that is slow all the time. The page of each run shows its
section *The queues*. The program ends with 1 if a verdict is not valid, or if no split was recorded.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import msgspec

from bench.table import print_table
from harness.cli.main import main as qsync
from harness.faults.cut import between
from harness.faults.fault import Fault
from harness.plan.plan import SECOND_NS, Drawn, Plan, to_json
from harness.run.assemble import parts_of
from harness.run.draw import draw
from harness.systems.plans import planned
from harness.systems.txlog.logs import logs_in
from nodes.txlog.journal import FILE

CENTRES = ("n1", "n2"), ("n3", "n4")
CUT_S = 3.0, 6.0
SLOW_S = 1.0, 9.0
SLOW: Mapping[str, Any] = {"delay_ns": 60_000_000, "jitter_ns": 10_000_000}
"""One way, between the centres."""
RUNS = ("none", False), ("simple", False), ("smart", False), ("smart", True)
"""Strategy; whether the link is slow."""
SHOWN = ("split", "rejoined", "recovering", "recovered", "restored")


def plan_of(cluster: str, strategy: str, *, is_slow: bool) -> Plan:
    plan = planned(
        name="slow-link" if is_slow else strategy,
        system="txlog",
        cluster=cluster,
        nodes=4,
        strategy=strategy,
        max_peer_lag=0.5,
        workload="register",
        rate=60.0,
        workers=16,
        time_limit_s=12.0,
        faults=("halves",),
        overlap=2,
        seed=1,
    )
    parts = parts_of(plan)
    drawn = draw(parts.plan, parts.system, parts.workload).drawn
    assert drawn is not None
    links = between(*CENTRES)
    faults = [_fault(0, "cut", *CUT_S, links=links)]
    if is_slow:
        faults.append(_fault(1, "slow", *SLOW_S, links=links, **SLOW))
    return plan.changed(drawn=Drawn(faults=tuple(faults), operations=drawn.operations))


def _fault(number: int, does: str, at_s: float, until_s: float, **fields: Any) -> Fault:
    times = {"at_ns": int(at_s * SECOND_NS), "until_ns": int(until_s * SECOND_NS)}
    return msgspec.convert({"id": number, "name": does, "does": does, **times, **fields}, Fault)


def run_of(plan: Plan, results: Path) -> Sequence[str]:
    """A row of the table: name, operations, those under the cut, records of splits, verdict."""
    asked = results / f"{plan.name}.json"
    asked.write_bytes(to_json(plan))
    printed = io.StringIO()
    with redirect_stdout(printed):
        qsync(["run", "--plan", str(asked), "--json", "--results", str(results)])
    verdict = json.loads(printed.getvalue())
    folder, evidence = Path(verdict["folder"]), verdict["evidence"]
    print(f"{plan.name}: {verdict['sentence']} {folder / 'report.html'}", file=sys.stderr)
    found = Counter(_records(folder))
    told = ", ".join(f"{found[kind]} {kind}" for kind in SHOWN if found[kind])
    return plan.name, str(evidence["ok"]), str(evidence["ok_under_fault"]), told, verdict["outcome"]


def _records(folder: Path) -> Iterator[str]:
    files = {path.name: {FILE: (path / FILE).read_bytes()} for path in sorted((folder / "nodes").iterdir())}
    for log in logs_in(files, tuple(files)).values():
        yield from (record.kind for record in log.records)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cluster", default="docker")
    parser.add_argument("--results", type=Path, default=Path("results/txlog-centres"))
    given = parser.parse_args()
    given.results.mkdir(parents=True, exist_ok=True)
    plans = [plan_of(given.cluster, strategy, is_slow=is_slow) for strategy, is_slow in RUNS]
    rows = [run_of(plan, given.results) for plan in plans]
    print_table(["run", "operations", "under the faults", "records of all masters", "verdict"], rows)
    return 0 if all(row[-1] == "valid" and "split" in row[3] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
