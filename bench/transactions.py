"""Transactions judged per second: a clean list-append history of a million transactions, from columns, on one core.

The history is that of a serial store with concurrent clients, made as Elle's own benchmark makes it: transactions of
one to four micro-operations, half of them reads, a few live keys, 32 appends to each before it is left for a new one.
A verdict of valid includes the replay of its proof; what that takes has a column of its own.
`python -m bench.transactions [how many transactions]`
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

import numpy
from numpy.typing import NDArray

from bench.table import print_table
from checkers.transactional import check_columns
from checkers.transactional.columns import NIL, READ, WRITE, Columns, Int64s, Workload
from checkers.transactional.proving import Proof, Prover

LIVE_KEYS = 10
APPENDS_A_KEY = 32
CLIENTS = 20


def serial_history(count: int, seed: int, live_keys: int = LIVE_KEYS) -> Columns:
    """A history of `count` list-append transactions, as a strict serializable store answers them."""
    chance = numpy.random.default_rng(seed)
    first = numpy.concatenate([[0], numpy.cumsum(chance.integers(1, 5, count))]).astype(numpy.int64)
    micro = int(first[-1])
    write = chance.random(micro) < 0.5
    slot = chance.integers(0, live_keys, micro)
    key, place = _keys(write, slot, live_keys)
    length = numpy.where(write, 0, place).astype(numpy.int32)
    starts = numpy.concatenate([[0], numpy.cumsum(length)[:-1]]).astype(numpy.int64)
    elements = numpy.arange(int(length.sum()), dtype=numpy.int64) - numpy.repeat(starts, length)
    invoke, complete, process = _events(count, chance)
    return Columns(
        outcome=numpy.zeros(count, numpy.int8),
        process=process,
        invoke=invoke,
        complete=complete,
        first=first,
        f=numpy.where(write, WRITE, READ).astype(numpy.int8),
        key=key.astype(numpy.int32),
        value=numpy.where(write, place, starts),
        length=length,
        elements=elements,
        key_count=int(key.max()) + 1,
    )


def _keys(write: NDArray[numpy.bool_], slot: Int64s, live_keys: int) -> tuple[Int64s, Int64s]:
    """The key of each micro-operation, and how long its list is then: a slot moves on to a new key when one is full."""
    key = numpy.empty(len(slot), numpy.int64)
    place = numpy.empty(len(slot), numpy.int64)
    for each in range(live_keys):
        mine = numpy.flatnonzero(slot == each)
        before: Int64s = numpy.cumsum(write[mine]) - write[mine]
        key[mine] = before // APPENDS_A_KEY * live_keys + each
        place[mine] = before % APPENDS_A_KEY
    return key, place


def _events(count: int, chance: numpy.random.Generator) -> tuple[Int64s, Int64s, Int64s]:
    """Transaction t takes effect at time t, and its client waits for it some time before and after."""
    begun = numpy.arange(count) - chance.random(count) * CLIENTS / 2
    begun = numpy.maximum.accumulate(begun)
    ended = numpy.arange(count) + chance.random(count) * CLIENTS / 2
    events = numpy.argsort(numpy.concatenate([begun, ended]), kind="stable")
    place = numpy.empty(2 * count, numpy.int64)
    place[events] = numpy.arange(2 * count)
    return place[:count].copy(), place[count:].copy(), numpy.arange(count, dtype=numpy.int64) % (4 * CLIENTS)


def serial_registers(count: int, seed: int) -> Columns:
    """The same store with registers: a read gives the last value that was written."""
    lists = serial_history(count, seed)
    write = lists.f == WRITE
    seen = numpy.where(lists.length > 0, lists.length.astype(numpy.int64) - 1, NIL)
    value = numpy.where(write, lists.value, seen)
    return replace(
        lists, value=value, length=numpy.zeros(len(write), numpy.int32), elements=numpy.zeros(0, numpy.int64)
    )


MAKERS: dict[Workload, Callable[[int, int], Columns]] = {
    "append": serial_history,
    "rw-register": serial_registers,
}


def measure(count: int) -> None:
    rows = []
    for workload, make in MAKERS.items():
        check_columns(make(1000, 1), workload=workload, plain_below=0)  # compiles
        columns = make(count, 1)
        best_s, replay_s = min(_seconds(columns, workload) for _ in range(3))
        peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rows.append(
            [
                workload,
                f"{count:,}",
                f"{len(columns.f):,}",
                f"{best_s - replay_s:.2f}",
                f"{best_s:.2f}",
                f"{count / best_s:,.0f}",
                f"{peak_mib:,.0f}",
            ]
        )
    print_table(
        [
            "workload",
            "transactions",
            "micro-operations",
            "s without replay",
            "s with replay",
            "transactions/s",
            "peak MiB",
        ],
        rows,
    )


def _seconds(columns: Columns, workload: Workload) -> tuple[float, float]:
    """The CPU seconds of the check, and the part of them that the replay of its proof takes."""
    replaying_s = 0.0
    plain = Prover.replays

    def timed(self: Prover, proof: Proof, model: str) -> bool:
        nonlocal replaying_s
        begun_s = time.process_time()
        try:
            return plain(self, proof, model)
        finally:
            replaying_s += time.process_time() - begun_s

    with patch.object(Prover, "replays", timed):
        begun_s = time.process_time()  # one thread: what others do on this machine does not count
        verdict = check_columns(columns, workload=workload, model="strict-serializable")
        taken_s = time.process_time() - begun_s
    assert verdict.result == "valid", verdict
    return taken_s, replaying_s


if __name__ == "__main__":
    measure(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
