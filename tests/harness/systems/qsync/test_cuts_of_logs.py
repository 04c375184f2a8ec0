"""The logs of a running set at one instant are a consistent cut: a rule that says otherwise is wrong."""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import accumulate

import pytest

from checkers.history import jsonl
from checkers.logs.log_cuts import LogCuts, spread
from checkers.logs.wal.effects import Begun, Durable, Effect
from checkers.logs.wal.replay import transactions
from harness.run.assemble import header, parts_of, simulated
from harness.run.conductor import Conductor
from tests.harness.runs import small
from tests.suites import mostly_long

INSTANTS = 40


def _ran(configuration: str, seed: int) -> tuple[LogCuts, Sequence[Effect]]:
    plan = small(configuration=configuration, seed=seed, time_limit_s=4.0)
    parts = parts_of(plan)
    cluster = simulated(parts, None)
    record = jsonl.Writer(io.BytesIO(), header(parts))
    cluster.run(Conductor(parts.plan, cluster, parts.system, parts.workload, record).run())
    rules, logs = parts.system.logs.rules(parts.plan), parts.system.logs.of(cluster.files())
    assert rules is not None and logs is not None
    return LogCuts(logs, rules), cluster.effects()


def _places(cuts: LogCuts, effects: Sequence[Effect], time_ns: int) -> dict[str, int]:
    """How much of each log was on its disk."""
    places = {}
    for node, walk in cuts.walks.items():
        durable = sum(
            len(each.rows)
            for each in effects
            if isinstance(each, Durable) and each.node == node and each.time_ns <= time_ns
        )
        rows = accumulate(len(part) for part in transactions(walk.log))
        places[node] = sum(count <= durable for count in rows)
    return places


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(each, marks=pytest.mark.nightly) for each in range(1, 12))]
)
@pytest.mark.parametrize("configuration", mostly_long("ADFHI", quick="AI"))
def test_no_instant_of_a_run_is_an_inconsistent_cut(configuration: str, seed: int) -> None:
    """A false alarm: whatever is on the disks at one moment was really there."""
    cuts, effects = _ran(configuration, seed)
    assert not any(isinstance(each, Begun) and each.vclock for each in effects), "no log begins at a snapshot"
    durable = [each for each in effects if isinstance(each, Durable)]
    decided = [each for each in durable if any(row.kind in ("confirm", "promote") for row in each.rows)]
    promoted = [each for each in durable if any(row.kind == "promote" for row in each.rows)]
    moments = {each.time_ns for each in (*decided[:: len(decided) // INSTANTS + 1], *promoted)}
    assert len(moments) > INSTANTS // 2
    for time_ns in sorted(moments):
        verdict = cuts.check(_places(cuts, effects, time_ns))
        assert verdict.result == "valid", f"at {time_ns}: {verdict.summary}"


def test_at_each_decision_a_marker_would_have_held_and_a_late_replica_would_not() -> None:
    """Broken, the verb would call cuts of a right run wrong, or find nothing where confirmed data is lost."""
    cuts, _ = _ran("H", 0)
    rows = cuts.decisions()
    for row in spread(rows, 30):
        assert cuts.check(cuts.at(row) or {}).result == "valid"
    last = {node: walk.end for node, walk in cuts.walks.items()}
    owner = next(
        node for node, log in cuts.walks.items() if log.log.members[rows[-1].origin] == log.log.instance
    )
    others = {node: 0 for node in last if node != owner}
    assert cuts.check({**last, **others}).result == "invalid"
