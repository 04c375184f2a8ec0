"""Disks of real nodes that fail: a made-up store that needs a while to notice."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from harness.faults.disk import RealDiskFault
from harness.faults.fault import Evidence, Fault
from tests.harness.faults.made_up_hands import MadeUpHands

FULL = Fault(id=3, name="full-disk", does="disk-error", at_ns=0, until_ns=0, nodes=("n1",), error="ENOSPC")


class Store:
    """One node, its process and its disk. A call of the disk fails; the node then gives `silent` times no answer."""

    def __init__(self, *, silent: int, ends: bool) -> None:
        self.silent = silent
        self.ends = ends
        self.starts = 0
        self._orders: Mapping[str, Any] = {}
        self._is_alive = True

    async def order(self, orders: Mapping[str, Any]) -> None:
        self._orders = orders

    async def effects(self) -> dict[str, Any]:
        return {"id": self._orders["id"], "failed": int(self._orders["write_error"] != "")}

    async def status(self, _: str) -> Mapping[str, object] | None:
        if self.silent:
            self.silent -= 1
            return None
        self._is_alive = not self.ends or self.starts > 0
        return {} if self._is_alive else None

    def is_alive(self, _: str) -> bool:
        return self._is_alive

    async def start_again(self, _: str) -> None:
        self.starts += 1
        self._is_alive = True


class DiskHands(MadeUpHands):
    def __init__(self, store: Store) -> None:
        super().__init__(store.status, processes=store)
        self._store = store

    def storage(self, node: str) -> Any:
        return self._store


async def full_and_mended(store: Store, *, patience_ns: int = 10**10) -> Evidence:
    hands = DiskHands(store)
    hands.ready_within_ns = patience_ns
    at_work = RealDiskFault(FULL, hands)
    await at_work.begin()
    return await at_work.end()


def test_a_store_that_gives_up_after_its_disk_was_mended_is_started_again() -> None:
    """If it failed, PostgreSQL, which ends 5 s after its log could not be written, would end for no reason: an anomaly
    that no promise excuses, and a node that is missing for the rest of the run."""
    store = Store(silent=3, ends=True)
    evidence = asyncio.run(full_and_mended(store))
    assert (store.starts, evidence.healed, evidence.took_effect) == (1, True, True)
    assert evidence.detail == "n1 is dead; n1 had ended, and was started again"


def test_the_fault_lasts_until_the_store_answers_again() -> None:
    """If it failed, the silence of a store that recovers from a full disk would count as its own."""
    store = Store(silent=3, ends=False)
    evidence = asyncio.run(full_and_mended(store))
    assert (store.starts, store.silent, evidence.healed, evidence.detail) == (0, 0, True, "")


def test_a_store_that_never_answers_again_has_not_healed() -> None:
    """If it failed, a store that hangs after a full disk would be said to have recovered."""
    store = Store(silent=1_000, ends=False)
    evidence = asyncio.run(full_and_mended(store, patience_ns=0))
    assert (store.starts, evidence.healed, evidence.took_effect) == (0, False, True)
    assert evidence.detail == "n1 did not answer within 0 s"
