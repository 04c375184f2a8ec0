"""kill -9 of a master just behind a record that an operator or a start writes, on real processes.

    .venv/bin/python -m bench.txlog_operator_kills [--times 10]

Such records are too rare for kills by chance (`bench.txlog_kills`). Each attempt has three new masters, and a fourth
one that is added. The first master is killed when its log ends with the record, and starts again. Then all masters must
hold what was accepted, count the same masters and use the same strategy. The program ends with 1 if one does not.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]  # it has no types

from bench.table import print_table
from harness.clients.reply import Replied
from harness.cluster.local.cluster import LocalCluster, LocalSettings
from harness.cluster.place import node_host
from harness.faults.fault import Fault
from harness.plan.plan import SECOND_NS
from harness.systems.framed_wire import FRAMED
from nodes.records import records_of
from nodes.txlog.configuration import Configuration
from nodes.txlog.journal import FILE

FIRST = ("n1", "n2", "n3")
ALL = (*FIRST, "n4")
VICTIM = "n1"
SUBMISSIONS = 20
CALL_NS = 2 * SECOND_NS
PATIENCE_S = 30.0
KINDS = ("matched", "peer", "strategy")


class Attempt:
    def __init__(self, folder: Path, kind: str) -> None:
        self._log = folder / "nodes" / VICTIM / FILE
        self._kind = kind
        configurations = {
            name: Configuration(name=name, masters=FIRST if name in FIRST else ALL).to_json() for name in ALL
        }
        self._cluster = LocalCluster(
            LocalSettings(
                command=node_host("txlog", "synced"),
                talk=FRAMED,
                configs=configurations,
                folder=folder,
                heartbeat_ns=100_000_000,
                epoch_ns=time.monotonic_ns(),
            )
        )
        self._number = 0

    async def run(self) -> tuple[str, str]:
        """The record behind which the master was killed, and what is wrong afterwards; "": nothing."""
        fault = Fault(id=1, name="kill", does="kill", at_ns=0, until_ns=0, nodes=(VICTIM,))
        try:
            await self._cluster.start()
            accepted = 0
            if self._kind != "matched":
                await self._until(lambda states: all(states[name].get("ready") for name in FIRST))
                accepted = await self._submitted()
            asked = [asyncio.create_task(self._ask(node)) for node in FIRST]
            await asyncio.to_thread(self._kill_when_written)
            await self._cluster.inject(fault)
            last = str(self._records()[-1][0])
            await self._cluster.heal(fault)
            await asyncio.gather(*asked)
            await self._ask(VICTIM)  # its configuration still names the old strategy
            return last, await self._wrong(accepted)
        finally:
            await self._cluster.stop()

    async def _submitted(self) -> int:
        for key in range(SUBMISSIONS):
            told = await self._call(VICTIM, "submit", [["insert", "set", key, key]], "accepted")
            assert told is not None and told["type"] == "accepted", told
        return SUBMISSIONS

    async def _ask(self, node: str) -> None:
        """The operator asks again until the master has done it."""
        if self._kind == "matched":
            return
        word, value = ("add-peer", "n4") if self._kind == "peer" else ("strategy", "smart")
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            told = await self._call(node, word, value)
            if told is not None and (told.get("type") == "ok" or "is a master of this" in str(told)):
                return
            await asyncio.sleep(0.05)

    def _kill_when_written(self) -> None:
        """At once, past the cluster: a fault of the harness takes as long as a master needs for its next record."""
        data = f"/nodes/{VICTIM}"
        (master,) = (
            child
            for child in psutil.Process().children(recursive=True)
            if data in " ".join(child.cmdline()) and "nodes.host" in child.cmdline()
        )
        deadline = time.monotonic() + PATIENCE_S
        while not self._log.exists() or self._kind.encode() not in self._log.read_bytes():
            assert time.monotonic() < deadline, f"{VICTIM} wrote no {self._kind}"
        master.kill()

    def _records(self) -> list[list[Any]]:
        return records_of(FILE, self._log.read_bytes())[0]

    async def _wrong(self, accepted: int) -> str:
        members = ALL if self._kind == "peer" else FIRST
        strategy = "smart" if self._kind == "strategy" else "none"

        def is_settled(states: dict[str, dict[Any, Any]]) -> bool:
            return all(
                states[name].get("ready")
                and sorted(states[name].get("masters", ())) == sorted(members)
                and states[name].get("strategy") == strategy
                and states[name].get("executed") == accepted
                for name in members
            )

        try:
            await self._until(is_settled)
        except TimeoutError as error:
            return str(error)
        for name in members:
            dumped = await self._call(name, "dump")
            assert dumped is not None
            if len(dumped["spaces"].get("set", ())) != accepted:
                return f"{name} holds {len(dumped['spaces'].get('set', ()))} of {accepted}"
        return ""

    async def _until(self, holds: Any) -> None:
        deadline = time.monotonic() + PATIENCE_S
        states: dict[str, Any] = {}
        while time.monotonic() < deadline:
            states = {name: await self._call(name, "status") or {} for name in ALL}
            if holds(states):
                return
            await asyncio.sleep(0.02)
        raise TimeoutError(f"it did not settle: {states}")

    async def _call(self, node: str, word: str, *words: Any) -> dict[Any, Any] | None:
        self._number += 1
        match await self._cluster.call(self._number, node, [word, self._number, *words], CALL_NS):
            case Replied([_, _, dict() as told]):
                return told
        return None


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=10)
    given = parser.parse_args()
    rows, failed = [], []
    for kind in KINDS:
        hit = 0
        for _ in range(given.times):
            with tempfile.TemporaryDirectory() as folder:
                last, wrong = asyncio.run(Attempt(Path(folder), kind).run())
            hit += last == kind
            failed += [f"{kind}: {wrong}"] if wrong else []
        rows.append([kind, str(given.times), str(hit)])
    print_table(["record", "kills", "last whole record"], rows)
    print("\n".join(failed) or "nothing was lost")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
