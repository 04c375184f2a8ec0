"""kill -9 of any master of a TxLog at any time, on real processes: where each kill came, and what the checkers say.

    .venv/bin/python -m bench.txlog_kills [--runs 8] [--seconds 60] [--seed 0] [--results FOLDER]

Every run has two sequences of kills, so that two masters may be dead at once; runs with splits have cuts beside them. A
master's log shows the last record before each start, the record of its messages the last message that it had asked to
send (`nodes.kernel.trace`). The program ends with 1 if a verdict is not valid: an accepted transaction that is lost is
a violation of txlog-kept.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from bench.table import print_table
from harness.cli.main import main as qsync
from harness.cluster.place import Command, node_host
from harness.faults.cut import between
from harness.faults.fault import Fault
from harness.plan.plan import SECOND_NS, Drawn, Plan, to_json
from harness.run.assemble import parts_of
from harness.run.draw import draw
from harness.systems.plans import planned
from harness.systems.txlog.logs import logs_in
from harness.systems.txlog.system import TxLogSystem
from nodes.txlog.journal import FILE

FIRST_S, LAST_S = 1.0, 2.0
"""How long the first fault waits, and how long before the end of the load the last one is over."""
SPLITS: Mapping[str, Any] = {"split_timeout": 0.6, "max_peer_lag": 0.2, "idle_ms": 100.0}
KINDS: Mapping[str, Mapping[str, Any]] = {
    "none, no split": {"strategy": "none", "split_timeout": 0.0, "idle_ms": 100.0},
    "smart": {"strategy": "smart", **SPLITS},
    "simple": {"strategy": "simple", **SPLITS},
    "none, split": {"strategy": "none", **SPLITS},
}


class TracedTxLog(TxLogSystem):
    """The system whose hosts record the messages between masters."""

    def command(self, plan: Plan) -> Command:
        return node_host("txlog", self.durability(plan), is_traced=True)


SYSTEM = TracedTxLog()


@dataclass(frozen=True, slots=True)
class Run:
    kind: str
    kills: int
    ok: int
    outcome: str
    folder: Path
    records: Counter[str]
    messages: Counter[str]


# ---- plans


def plan_of(kind: str, seconds: float, seed: int) -> Plan:
    chance = random.Random(f"kills {kind} {seed}")
    plan = planned(
        system=str(Path(__file__).resolve()),
        nodes=chance.choice((3, 4)),
        workload=chance.choice(("set", "register")),
        rate=chance.choice((8.0, 40.0)),
        workers=30,
        request_timeout_s=4.0,
        time_limit_s=seconds,
        backup_ms=chance.choice((20.0, 300.0)),
        worker_loss=chance.choice((0, 20)),
        faults=("kill",),
        overlap=3,
        seed=seed,
        **KINDS[kind],
    )
    parts = parts_of(plan)
    drawn = draw(parts.plan, parts.system, parts.workload).drawn
    assert drawn is not None
    names = plan.node_names
    faults = [*_kills(names[:2], seconds, chance), *_kills(names[2:], seconds, chance)]
    if kind != "none, no split":
        faults += _cuts(names, seconds, chance)
    faults.sort(key=lambda fault: fault.at_ns)
    numbered = tuple(msgspec.structs.replace(fault, id=number) for number, fault in enumerate(faults))
    return plan.changed(drawn=Drawn(faults=numbered, operations=drawn.operations))


def _kills(names: tuple[str, ...], seconds: float, chance: random.Random) -> Iterator[Fault]:
    at_s = FIRST_S + chance.random()
    while at_s < seconds - LAST_S - 2:
        lasts_s = chance.choice(
            (chance.uniform(0.01, 0.3), chance.uniform(0.01, 0.3), chance.uniform(0.7, 1.5))
        )
        yield _fault("kill", at_s, lasts_s, nodes=(chance.choice(names),))
        at_s += lasts_s + chance.uniform(0.7, 1.5)


def _cuts(names: tuple[str, ...], seconds: float, chance: random.Random) -> Iterator[Fault]:
    at_s = FIRST_S + 2 * chance.random()
    while at_s < seconds - LAST_S - 4:
        lasts_s = chance.uniform(0.8, 3.0)
        mixed = chance.sample(names, len(names))
        size = chance.randrange(1, len(names))
        yield _fault("cut", at_s, lasts_s, links=between(mixed[:size], mixed[size:]))
        at_s += lasts_s + chance.uniform(1.0, 3.0)


def _fault(does: str, at_s: float, lasts_s: float, **fields: Any) -> Fault:
    at_ns = int(at_s * SECOND_NS)
    until_ns = at_ns + int(lasts_s * SECOND_NS)
    return msgspec.convert(
        {"id": 0, "name": does, "does": does, "at_ns": at_ns, "until_ns": until_ns, **fields}, Fault
    )


# ---- runs


def run_of(kind: str, seconds: float, seed: int, results: Path) -> Run:
    asked = results / f"plan-{seed}.json"
    asked.write_bytes(to_json(plan_of(kind, seconds, seed)))
    printed = io.StringIO()
    with redirect_stdout(printed):
        qsync(["run", "--plan", str(asked), "--json", "--results", str(results)])
    verdict = json.loads(printed.getvalue())
    folder = Path(verdict["folder"])
    names = verdict["evidence"]["faults"]
    print(f"{kind}, seed {seed}: {verdict['sentence']} {folder}", file=sys.stderr)
    return Run(
        kind=kind,
        kills=sum(each["name"] == "kill" and each["took_effect"] for each in names),
        ok=verdict["evidence"]["ok"],
        outcome=verdict["outcome"],
        folder=folder,
        records=Counter(_last_records(folder)),
        messages=Counter(_last_messages(folder)),
    )


def _last_records(folder: Path) -> Iterator[str]:
    """The kind of the last record of each life that did not end with the run."""
    files = {path.name: {FILE: (path / FILE).read_bytes()} for path in sorted((folder / "nodes").iterdir())}
    for log in logs_in(files, tuple(files)).values():
        assert not log.damage, log.damage
        kinds = [record.kind for record in log.records]
        yield from (kinds[place - 1] for place, kind in enumerate(kinds) if kind == "life" and place)


def _last_messages(folder: Path) -> Iterator[str]:
    """The word of the last message of each such life; "none" if it had sent none."""
    for node in sorted((folder / "nodes").iterdir()):
        for path in sorted((node / "trace").glob("*.jsonl"))[:-1]:
            rows = map(json.loads, path.read_text().splitlines())
            yield next((row[3] for row in reversed([*rows]) if row[0] == "send"), "none")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, default=Path("results/txlog-kills"))
    given = parser.parse_args()
    given.results.mkdir(parents=True, exist_ok=True)
    seeds = range(given.seed, given.seed + given.runs)
    runs = [run_of([*KINDS][seed % len(KINDS)], given.seconds, seed, given.results) for seed in seeds]
    print_table(
        ["strategy", "kills", "operations", "verdict"],
        [[run.kind, str(run.kills), str(run.ok), run.outcome] for run in runs],
    )
    for what, counts in (
        ("record", [run.records for run in runs]),
        ("message", [run.messages for run in runs]),
    ):
        total: Counter[str] = sum(counts, Counter())
        print_table([f"last {what}", "kills"], [[name, str(count)] for name, count in total.most_common()])
    print(f"{sum(run.kills for run in runs)} kills")
    return 0 if all(run.outcome == "valid" for run in runs) else 1


if __name__ == "__main__":
    sys.exit(main())
