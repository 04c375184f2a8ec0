"""Disks of real nodes of ours that are slow, full, damaged or without power: felt, survived or refused, and mended."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from harness.clients.reply import Replied
from harness.cluster.local.cluster import LocalCluster
from harness.faults.fault import Evidence, Fault
from harness.run.assemble import local, parts_of
from harness.systems.plans import planned
from nodes.iproto.messages import Answer, Call
from tests.harness.processes import PATIENCE_S

SECOND_NS = 1_000_000_000
KEYS = 8
TIMES = 20
"""Of power losses; one is enough unless the node that syncs too late did so just before it."""
PATIENCE_NS = PATIENCE_S * SECOND_NS
pytestmark = pytest.mark.usefixtures("patient")


def play(folder: Path, story: Callable[[LocalCluster, Any], Awaitable[None]], **fields: Any) -> None:
    """A fixed owner, n1, with nodes that are really there."""
    parts = parts_of(
        planned(
            cluster="local",
            configuration="C",
            faults=("power-owner",),
            synchro_timeout_s=PATIENCE_S,
            **fields,
        )
    )

    async def played() -> None:
        cluster = local(parts, folder)
        try:
            await cluster.start()
            await parts.system.set_up(parts.plan, cluster)
            await story(cluster, parts)
        finally:
            await cluster.stop()

    asyncio.run(played())


def fault(number: int, does: Any, **fields: Any) -> Fault:
    return Fault(
        **{"id": number, "name": "a-fault", "does": does, "at_ns": 0, "until_ns": 0, "seed": 3, **fields}
    )


async def write(cluster: LocalCluster, number: int) -> bool:
    """Whether the owner confirmed it."""
    statement: list[object] = ["replace", "register", [f"k{number % KEYS}", number]]
    reply = await cluster.call(
        number, "n1", Call(number, "qsync.transaction", ([statement], {})), PATIENCE_NS
    )
    return isinstance(reply, Replied) and isinstance(reply.response, Answer)


async def endure(cluster: LocalCluster, fault: Fault, numbers: range) -> tuple[list[bool], Evidence]:
    """Writes while the fault is at work; which of them were confirmed, and what it did."""
    await cluster.inject(fault)
    done = [await write(cluster, number) for number in numbers]
    return done, await cluster.heal(fault)


async def stored(cluster: LocalCluster) -> dict[str, int]:
    """All that the owner has confirmed, as soon as it says so."""
    async with asyncio.timeout(PATIENCE_S):
        for number in itertools.count(1_000_000):
            scan = Call(number, "qsync.transaction", ([["scan", "register", None, None]], {}))
            reply = await cluster.call(number, "n1", scan, PATIENCE_NS)
            if isinstance(reply, Replied) and isinstance(reply.response, Answer):
                found: Any = reply.response.data[0]
                return dict(found["results"][0])
            await asyncio.sleep(0.05)
    raise AssertionError("the owner reads no more")


async def until_served(cluster: LocalCluster, first: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        for number in itertools.count(first):
            if await write(cluster, number):
                return
            await asyncio.sleep(0.05)


@pytest.mark.long
def test_a_disk_that_is_slow_full_or_damaged_takes_effect_and_mended(tmp_path: Path) -> None:
    """If it failed, a fault of disks would be believed to have happened; or a node that refuses a damaged disk, and is
    right, would be a crash."""

    async def story(cluster: LocalCluster, parts: Any) -> None:
        slow = fault(0, "slow-fsync", nodes=("n1",), delay_ns=SECOND_NS // 50)
        done, evidence = await endure(cluster, slow, range(4))
        assert all(done)
        assert (evidence.took_effect, evidence.healed) == (True, True)
        assert evidence.counters["calls_delayed"] >= len(done)
        full = fault(1, "disk-error", nodes=("n1",), error="ENOSPC")
        done, evidence = await endure(cluster, full, range(10, 13))
        assert not any(done)
        assert (evidence.took_effect, evidence.healed) == (True, True)
        assert evidence.counters["calls_failed"] >= 1
        await until_served(cluster, 20)
        unused = fault(2, "slow-fsync", nodes=("n1",), delay_ns=SECOND_NS // 50)
        assert not (await endure(cluster, unused, range(0)))[1].took_effect, "nobody wrote"
        flipped = fault(3, "damage", nodes=("n2",), damage="bit-flip")
        evidence = (await endure(cluster, flipped, range(0)))[1]
        assert (evidence.took_effect, evidence.healed) == (True, True)
        assert evidence.counters["refused_to_start"] == 1
        assert "does not have the checksum" in evidence.detail
        torn = fault(4, "damage", nodes=("n1",), damage="torn-tail")
        evidence = (await endure(cluster, torn, range(0)))[1]
        assert (evidence.took_effect, evidence.healed, evidence.counters["refused_to_start"]) == (
            True,
            True,
            0,
        )
        await until_served(cluster, 200)
        assert cluster.ended() == ()

    play(tmp_path, story, nodes=2)


@pytest.mark.long
@pytest.mark.parametrize("bugs", [(), ("ack-before-fsync",)])
def test_a_power_loss_takes_what_was_acknowledged_too_early(tmp_path: Path, bugs: tuple[str, ...]) -> None:
    """If it failed, `ack-before-fsync` would be a bug that nobody can see on real nodes; or a right node loses data."""

    async def story(cluster: LocalCluster, parts: Any) -> None:
        lost = False
        for times in range(1, TIMES):
            numbers = range(10 * times, 10 * times + 10)
            assert all([await write(cluster, number) for number in numbers])
            evidence = (await endure(cluster, fault(times, "power", nodes=("n1", "n2")), range(0)))[1]
            assert (evidence.took_effect, evidence.healed) == (True, True)
            # The end of a log that nobody waited for, a last CONFIRM, may be lost by a right node too.
            lost = await stored(cluster) != {f"k{number % KEYS}": number for number in numbers}
            if lost or not bugs:
                break
        assert lost == bool(bugs)
        assert evidence.counters["bytes_lost"] or not bugs
        assert cluster.ended() == ()

    play(tmp_path, story, nodes=2, bugs=bugs)
