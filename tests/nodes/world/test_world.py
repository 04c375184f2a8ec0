"""The same seed is the same world; typed messages and bytes come to the same end."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.nodes.qsync.virtual_cluster import NAMES, VirtualCluster, Wire, memory

ROOT = Path(__file__).parents[3]


def scenario(cluster: VirtualCluster) -> None:
    """Writes, a cut of the owner long enough for a rollback, a kill, a power loss."""
    cluster.promote()
    world = cluster.world
    for number in range(30):
        statement = ("replace", "register" if number % 3 else "notes", (f"k{number % 4}", number))
        cluster.client.ask("n1", "qsync.transaction", [statement])
        cluster.run(7)
    cut = [("n1", "n2"), ("n2", "n1"), ("n1", "n3"), ("n3", "n1")]
    world.network.cut(cut)
    cluster.client.ask("n1", "qsync.transaction", [("replace", "register", ("k0", 99))])
    cluster.run(400)
    world.network.heal(cut, world.streams["heal"])
    world.machines["n2"].kill()
    world.machines["n3"].lose_power()
    cluster.run(100)
    world.machines["n2"].start()
    world.machines["n3"].start()
    cluster.run(300)
    cluster.client.ask(
        "n1", "qsync.transaction", [("cas", "register", "k1", 29, 100), ("delete", "notes", "k3")]
    )
    cluster.run(500)


def digest(seed: int) -> str:
    cluster = VirtualCluster(seed, record_trace=True, codec=Wire() if seed % 2 else None)
    scenario(cluster)
    held = hashlib.sha256(repr([memory(cluster.node(name)) for name in NAMES]).encode()).hexdigest()
    return f"{cluster.world.trace_digest()} {held} {len(cluster.world.trace)}"


def test_typed_messages_and_bytes_come_to_the_same_end() -> None:
    """Broken, nine seeds in ten try something else than the real nodes do."""
    ends = []
    for codec in (None, Wire()):
        cluster = VirtualCluster(5, codec=codec)
        scenario(cluster)
        assert cluster.crashes == []
        spaces = [memory(cluster.node(name))[0] for name in NAMES]
        assert spaces[0] == spaces[1] == spaces[2]
        ends.append(spaces[0])
    assert ends[0] == ends[1]


@pytest.mark.parametrize("seed", [3, pytest.param(4, marks=pytest.mark.long)])
def test_one_seed_is_one_trace_whatever_the_order_of_hashes(seed: int) -> None:
    """Broken, the line that repeats a run repeats something else."""
    program = f"from tests.nodes.world.test_world import digest; print(digest({seed}))"
    found = {digest(seed)}
    for hash_seed in ("1", "77"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        found.add(done.stdout.strip())
    assert len(found) == 1, found


def test_another_seed_is_another_trace() -> None:
    """Broken, the seed decides nothing and many runs are one."""
    assert digest(3) != digest(5)
