"""Three real masters, of which one is given a different strategy: no fault, and no split."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.clients.reply import Replied
from harness.cluster.local.cluster import LocalCluster, LocalSettings
from harness.cluster.place import node_host
from harness.faults.fault import Fault
from harness.plan.plan import SECOND_NS
from harness.systems.framed_wire import FRAMED
from nodes.txlog.configuration import MILLISECOND, Configuration

MASTERS = ("n1", "n2", "n3")
SPLIT_S = 0.6
KILL = Fault(id=1, name="kill", does="kill", at_ns=0, until_ns=0, nodes=("n1",))


def cluster_in(folder: Path) -> LocalCluster:
    configurations = {
        name: Configuration(
            name=name,
            masters=MASTERS,
            strategy="smart",
            split_ns=int(SPLIT_S * SECOND_NS),
            idle_ns=100 * MILLISECOND,
            max_peer_lag_ns=200 * MILLISECOND,
        ).to_json()
        for name in MASTERS
    }
    return LocalCluster(
        LocalSettings(
            command=node_host("txlog", "synced"),
            talk=FRAMED,
            configs=configurations,
            folder=folder,
            heartbeat_ns=100_000_000,
            epoch_ns=time.monotonic_ns(),
        )
    )


async def asked(cluster: LocalCluster, node: str, *words: object) -> Any:
    word, *rest = words
    match await cluster.call(0, node, [word, 0, *rest], 2 * SECOND_NS):
        case Replied([_, _, told]):
            return told
    return None


async def accepting(cluster: LocalCluster) -> list[str]:
    steps = [["write", "register", 1, 1]]
    answers = {name: await asked(cluster, name, "submit", steps, "accepted") for name in MASTERS}
    return [name for name, told in answers.items() if told["type"] == "accepted"]


async def different(cluster: LocalCluster) -> None:
    async def are_ready() -> None:
        deadline_s = time.monotonic() + 30
        states: list[Mapping[str, Any]] = [{}]
        while not all(state.get("ready") and not state["refused"] for state in states):
            assert time.monotonic() < deadline_s, states
            await asyncio.sleep(0.05)
            states = [await cluster.status(name) or {} for name in MASTERS]

    await cluster.start()
    await are_ready()
    assert await accepting(cluster) == [*MASTERS]
    assert await asked(cluster, "n1", "strategy", "None") == {"type": "ok"}
    await asyncio.sleep(4 * SPLIT_S)
    states = {name: await cluster.status(name) or {} for name in MASTERS}
    assert [state["missing"] for state in states.values()] == [[], [], []]
    assert [state["refused"] for state in states.values()] == [["n2", "n3"], ["n1"], ["n1"]]
    assert await accepting(cluster) == []
    await cluster.inject(KILL)
    # It starts with its own configuration, in which the strategy is that of the others.
    await cluster.heal(KILL)
    await are_ready()
    assert await accepting(cluster) == [*MASTERS]


@pytest.mark.long
def test_a_different_strategy_on_one_of_three_processes_splits_nothing(tmp_path: Path) -> None:
    """If it failed, one request of an operator would split a healthy cluster for good."""

    async def run() -> None:
        cluster = cluster_in(tmp_path)
        try:
            await different(cluster)
        finally:
            await cluster.stop()

    asyncio.run(run())
    assert "refused a master with a different strategy" in (tmp_path / "nodes/n2/log.jsonl").read_text()
