"""One host of a run, without the host."""

from __future__ import annotations

import asyncio
import io
import tarfile
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.cluster.ssh import machine
from harness.cluster.ssh.inventory import Host
from harness.cluster.ssh.machine import Machine
from harness.cluster.ssh.session import Session
from harness.errors import ClusterError, WrongUse

HOUR_NS = 3_600_000_000_000
SECOND_NS = 1_000_000_000


class Clockwork(Machine):
    """A host with clocks that are ahead."""

    ahead_ns = HOUR_NS
    asked = 0

    async def ask(self, command: str, /, **arguments: object) -> dict[str, Any]:
        assert command == "clock"
        self.asked += 1
        await asyncio.sleep(0)
        ahead_ns = self.ahead_ns
        return {"monotonic_ns": time.monotonic_ns() + ahead_ns, "wall_ns": time.time_ns() + 2 * ahead_ns}


def test_clocks_are_compared_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, evidence of a long run would be off by what clocks drift, and a wall clock that is set in the
    course of a run would pass for a fault's doing."""
    monkeypatch.setattr(machine, "_RENEW_EVERY_S", 0)

    async def story() -> list[tuple[int, int]]:
        host = Clockwork(Host(host="h"), "r", lambda *_: None)
        renewing = asyncio.get_running_loop().create_task(host._renew())
        seen = []
        for ahead_ns in (HOUR_NS, -HOUR_NS):
            host.ahead_ns, until = ahead_ns, host.asked + 20
            while host.asked < until:
                await asyncio.sleep(0)
            seen.append((host.clocks.monotonic_ns, host.clocks.wall_ns))
        renewing.cancel()
        return seen

    for (monotonic_ns, wall_ns), ahead_ns in zip(asyncio.run(story()), (HOUR_NS, -HOUR_NS), strict=True):
        assert abs(monotonic_ns - ahead_ns) < SECOND_NS
        assert abs(wall_ns - 2 * ahead_ns) < SECOND_NS


def test_the_fastest_round_trip_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, one answer that was held up would shift all times of a host."""
    times_ns = iter((0, 100, 1_000, 1_010, 2_000, 2_500))
    monkeypatch.setattr(time, "monotonic_ns", lambda: next(times_ns))
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    answers = iter(
        (
            {"monotonic_ns": 90, "wall_ns": 9},
            {"monotonic_ns": 1_006, "wall_ns": 8},
            {"monotonic_ns": 0, "wall_ns": 0},
        )
    )

    async def answered(self: Machine, command: str, /, **_: object) -> dict[str, Any]:
        return next(answers)

    async def story() -> machine.Clocks:
        host = Machine(Host(host="h"), "r", lambda *_: None)
        for _ in range(3):
            await host._compare_clocks()
        return host.clocks

    monkeypatch.setattr(Machine, "ask", answered)
    assert asyncio.run(story()) == machine.Clocks(monotonic_ns=1, wall_ns=3)


def test_a_second_name_of_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    """If it failed, an odd archive of a host would end a run with a traceback."""
    link = tarfile.TarInfo("nodes/n1/log")
    link.type, link.linkname = tarfile.LNKTYPE, "nodes/n1/none"
    with io.BytesIO() as whole:
        with tarfile.open(fileobj=whole, mode="w") as archive:
            archive.addfile(link)
        with pytest.raises(ClusterError, match="the logs of h:22 cannot be brought home"):
            machine._unpack(whole.getvalue(), tmp_path, Host(host="h"))


def test_logs_that_find_no_place_here_are_one_line(tmp_path: Path) -> None:
    """If it failed, a full disk, or a host that packs a file over a folder, would end a run with a traceback."""
    with io.BytesIO() as whole:
        with tarfile.open(fileobj=whole, mode="w") as archive:
            for name in ("nodes/n1/log", "nodes/n1"):
                archive.addfile(tarfile.TarInfo(name))
        with pytest.raises(ClusterError, match=r"cannot be brought home: .*Is a directory"):
            machine._unpack(whole.getvalue(), tmp_path, Host(host="h"))


def test_a_key_that_is_no_use_any_more_is_why_a_host_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, commands would wait for their time in vain, and the reason would be told by nothing."""

    def refused(host: Host) -> Session:
        raise WrongUse("the key for h:22 has a passphrase")

    monkeypatch.setattr(machine, "_AGAIN_EVERY_S", 0)
    monkeypatch.setattr(Session, "open", refused)

    async def story() -> None:
        lost = Machine(msgspec.structs.replace(Host(host="h"), lease_s=0.01), "r", lambda *_: None)
        await lost._again()
        with pytest.raises(ClusterError, match="has a passphrase"):
            await lost.ask("clock")

    asyncio.run(story())
