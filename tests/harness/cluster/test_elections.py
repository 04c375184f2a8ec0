"""Elections in the simulator: owners die and others take over, and linearizable reads stay linearizable."""

from __future__ import annotations

import io

import pytest

from checkers.history import jsonl
from checkers.history.history import History
from harness.judge import judge
from harness.run.assemble import header, parts_of, simulated
from harness.run.conductor import Conductor
from harness.run.plan import Plan
from harness.systems.plans import planned


def run(plan: Plan) -> tuple[History, dict[str, object], str]:
    """A simulated run: its history, its verdict, the digest of its trace."""
    parts = parts_of(plan)
    cluster = simulated(parts, None, record_trace=True)
    record = io.BytesIO()
    writer = jsonl.Writer(record, header(parts))  # type: ignore[arg-type]  # bytes are bytes
    cluster.run(Conductor(plan, cluster, parts.system, parts.workload, writer).run())
    history = jsonl.parse(record.getvalue())
    return history, judge(plan, parts.system.promise(plan), history), cluster.world.trace_digest()


@pytest.mark.parametrize("seed", [1, 9, 105])
def test_owners_change_and_nothing_acknowledged_is_lost(seed: int) -> None:
    """Broken, a failover loses an acknowledged write, or there is none to test."""
    history, verdict, _ = run(planned(cluster="sim", seed=seed, election_mode="candidate"))
    assert verdict["outcome"] == "valid", verdict["sentence"]
    owners = {state.node for state in history.states if state.status.get("role") == "owner"}
    assert len(owners) > 1
    judged = verdict["promise"]
    assert isinstance(judged, dict)
    assert judged["configuration"].startswith("H")


def test_five_nodes() -> None:
    """Broken, a quorum of three of five is counted as one of two of three."""
    plan = planned(cluster="sim", seed=3, nodes=5, time_limit_s=10, election_mode="candidate")
    assert run(plan)[1]["outcome"] == "valid"


def test_the_same_seed_gives_the_same_trace() -> None:
    """Broken, an election cannot be repeated."""
    plan = planned(cluster="sim", seed=4, time_limit_s=6, election_mode="candidate")
    assert run(plan)[2] == run(plan)[2]
