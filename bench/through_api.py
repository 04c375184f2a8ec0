"""The public call, objects in, verdict and proof out, beside Porcupine: seconds of all cores of both sides.

    python -m bench.through_api --driver PATH [--seeds 10]

`checkers.linearizable.check(history)` of a fresh `History` for each seed, in a process that has loaded its kernels.
Porcupine gets the same operations, has read them before the clock starts, and says yes or no alone; its driver is in
bench/porcupine_driver.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from bench.linearizable import LOGS, as_text
from bench.table import print_table
from checkers import linearizable
from checkers.history import Header, History, foreign
from checkers.history.operation import Operation
from checkers.linearizable.columns import Columns, register_columns
from checkers.linearizable.models import Register
from checkers.linearizable.search import Call
from checkers.linearizable.search_kernels import NEVER, OBSERVE, OVERWRITE, REFUSE
from tests.checkers.linearizable.generated import columns, spans

TIMEOUT_S = 60.0
KINDS = {"get": 0, "put": 1, "append": 2}
A_BATCH = 20
WARM = 12
"""Calls of each case before the first one that counts."""
AGAIN = 0.02
"""The share of appends that append what was appended last, as retries do."""


@dataclass(frozen=True)
class Case:
    """Histories, the same for Porcupine's driver, and the model."""

    histories: Sequence[History]
    text: str
    model: str = "register"


def of_operations(operations: Sequence[Operation]) -> History:
    return replace(History.of(Header(), ()), operations=tuple(operations))


def registers(calls: Columns) -> Case:
    """A history of one register; code 0 is nothing."""
    operations = []
    rows = zip(
        *(getattr(calls, name).tolist() for name in ("invoke", "complete", "kind", "old", "new")), strict=True
    )
    for process, (invoke, complete, kind, old, new) in enumerate(rows):
        is_over = complete < NEVER
        f = {OBSERVE: "read", OVERWRITE: "write"}.get(kind, "cas")
        value = {"read": old or None, "write": new}.get(f, [old or None, new if kind > REFUSE else -1])
        operations.append(
            Operation(
                type="info" if not is_over else "fail" if kind == REFUSE else "ok",
                error="mismatch" if kind == REFUSE else None,
                process=process, f=f, key="x", value=value, invoke_index=invoke, invoke_ns=invoke,
                complete_index=complete if is_over else None, complete_ns=complete if is_over else None,
            )
        )  # fmt: skip
    return Case([of_operations(operations)], as_text(calls, TIMEOUT_S))


def store(count: int, clients: int, keys: int, seed: int) -> Case:
    """Gets, puts and appends of texts, as in Porcupine's own test data: a true store, some appends sent twice."""
    chance = random.Random(seed)
    times = spans(chance, count, clients)
    points = sorted(
        (begin + (end - begin) * chance.random(), place) for place, (begin, end) in enumerate(times)
    )
    held, last = [""] * keys, [""] * keys
    asked: dict[int, tuple[str, int, str]] = {}
    for _, place in points:
        key, luck = chance.randrange(keys), chance.random()
        text = f"x {place} y"
        if luck < 0.45:
            asked[place] = "get", key, held[key]
        elif luck < 0.5:
            asked[place] = "put", key, text
            held[key] = text
        else:
            text = last[key] if last[key] and chance.random() < AGAIN else text
            asked[place] = "append", key, text
            held[key] += text
            last[key] = text
    ends = sorted((at, which, place) for place, pair in enumerate(times) for which, at in enumerate(pair))
    rank = {(which, place): number for number, (_, which, place) in enumerate(ends)}
    operations, lines = [], [f"kv {count} {int(TIMEOUT_S * 1000)}"]
    for place in sorted(asked, key=lambda each: rank[0, each]):
        f, key, text = asked[place]
        begin, end = rank[0, place], rank[1, place]
        lines.append(f"{begin} {end} {KINDS[f]} {key} x{text.encode().hex()}")
        operations.append(
            Operation(
                type="ok", process=place, f=f, key=str(key), value=text, invoke_index=begin, invoke_ns=begin,
                complete_index=end, complete_ns=end,
            )
        )  # fmt: skip
    return Case([of_operations(operations)], "\n".join(lines) + "\n", "kv")


def logs(seed: int) -> Case:
    """Some of the etcd logs of Jepsen, one call each."""
    paths = sorted(path for path in LOGS.glob("*.log") if path.name != "etcd_095.log")
    model, histories, texts = Register(), [], []
    for path in random.Random(seed).sample(paths, A_BATCH):
        operations = foreign.read(path).operations
        calls = [
            Call(action, each.invoke_index, each.returned_index)
            for each in operations
            if (action := model.action(each)) is not None
        ]
        histories.append(of_operations(operations))
        texts.append(as_text(register_columns(calls, (None,))[0], TIMEOUT_S))
    return Case(histories, "".join(texts))


CASES: dict[str, Callable[[int], Case]] = {
    "unique writes, 1k × 5": lambda seed: registers(columns(1_000, 5, seed=seed, unique=True, cas=False)),
    "unique writes, 10k × 5": lambda seed: registers(columns(10_000, 5, seed=seed, unique=True, cas=False)),
    "unique writes, 10k × 10": lambda seed: registers(columns(10_000, 10, seed=seed, unique=True, cas=False)),
    "cas, 1k × 5": lambda seed: registers(columns(1_000, 5, seed=seed)),
    "cas, 10k × 10": lambda seed: registers(columns(10_000, 10, seed=seed)),
    "kv, 2k × 50, 10 keys": lambda seed: store(2_000, 50, 10, seed),
    f"{A_BATCH} etcd logs, one by one": logs,
}


def ours(case: Case) -> tuple[list[str], float]:
    """The answers, and CPU seconds."""
    begun_s = time.process_time()
    found = [linearizable.check(each, model=case.model).result for each in case.histories]
    seconds = time.process_time() - begun_s
    return [{"valid": "yes", "invalid": "no"}.get(each, each) for each in found], seconds


def porcupines(case: Case, driver: Path) -> tuple[list[str], float]:
    done = subprocess.run([driver], input=case.text, stdout=subprocess.PIPE, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    return [line[0] for line in lines], sum(int(line[2]) for line in lines) / 1e9


def row(name: str, make: Callable[[int], Case], driver: Path, seeds: int, first: int) -> list[str]:
    """A line of the table. Raises AssertionError where the two contradict each other."""
    times, theirs = [], []
    for seed in range(first, first + seeds):
        case = make(seed)
        answers, seconds = ours(case)
        said, their_seconds = porcupines(case, driver)
        assert "unknown" in said or said == answers, (
            f"{name}, seed {seed}: we say {answers}, Porcupine {said}"
        )
        times.append(seconds)
        theirs.append(their_seconds)
    ratios = [their / our for our, their in zip(times, theirs, strict=True)]
    return [
        name, f"{median(times) * 1e3:,.2f} ms", f"{median(theirs) * 1e3:,.1f} ms", f"{min(ratios):,.1f} ×",
        f"{median(ratios):,.0f} ×", f"{max(ratios):,.0f} ×",
    ]  # fmt: skip


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument(
        "--driver", type=Path, required=True, help="Porcupine's, see bench/porcupine_driver"
    )
    arguments.add_argument("--seeds", type=int, default=10)
    arguments.add_argument("--first-seed", type=int, default=1)
    given = arguments.parse_args()
    for make in (make for make in CASES.values() for _ in range(WARM)):
        ours(make(0))  # loads the kernels, when all calls together would have paid for that
    rows = [row(name, make, given.driver, given.seeds, given.first_seed) for name, make in CASES.items()]
    print_table(("history", "ours", "Porcupine", "least ratio", "median", "largest"), rows)


if __name__ == "__main__":
    main()
