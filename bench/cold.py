"""`./qsync check FILE` plainly, with machine code kept from before, and in a fresh checkout: CPU seconds by size.

    python -m bench.cold [--sizes 5k 10k 20k 50k 100k]

The whole process. "As it is" takes what `checkers.compiled` and its callers choose, in a fresh checkout; the other
columns force plain functions or machine code. The thresholds (`compiled.PLAIN_ROWS`, `decide.COLD_CALLS`, `PLAIN_BELOW`
of `transactional`) stand where "plain" and "kept" meet.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.table import print_table

SIZES = {"5k": 5_000, "10k": 10_000, "20k": 20_000, "50k": 50_000, "100k": 100_000}
WORKERS = 8
HEADER = {"format": "qsync-history", "version": 1, "system": "bench", "nodes": ["n1"], "workload": "register"}
FORCED = (
    "import sys, checkers.compiled as c, checkers.linearizable.decide as d, checkers.transactional.checker as t;"
    "c.PLAIN_ROWS = d.COLD_CALLS = -1; c.stays_plain = d.stays_plain = lambda module, rows, most: False;"
    "from harness.cli.main import main; sys.argv = ['qsync', 'check', sys.argv[1]]; main()"
)
CHOSEN = "import sys; from harness.cli.main import main; sys.argv = ['qsync', 'check', sys.argv[1]]; main()"
Event = dict[str, Any]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--sizes", nargs="+", choices=SIZES, default=["10k", "20k", "50k"])
    rows = []
    for size in arguments.parse_args().sizes:
        for kind, drawn in KINDS.items():
            with TemporaryDirectory() as folder:
                path = Path(folder) / "history.jsonl"
                _write(path, drawn(random.Random(1), SIZES[size]))
                fresh, kept = {"NUMBA_CACHE_DIR": f"{folder}/fresh"}, {"NUMBA_CACHE_DIR": f"{folder}/kept"}
                chosen = _check(CHOSEN, path, fresh)
                plain = _check(CHOSEN, path, {"QSYNC_PLAIN_KERNELS": "1"})
                compiling = _check(FORCED, path, kept)
                warm = _check(FORCED, path, kept)
                rows.append([size, kind, *(f"{each:.2f}" for each in (chosen, plain, warm, compiling))])
    print_table(("operations", "kind", "as it is, s", "plain, s", "kept, s", "compiled, s"), rows)


def _check(code: str, path: Path, surroundings: dict[str, str]) -> float:
    """CPU seconds of the process."""
    command = [sys.executable, "-P", "-c", code, str(path)]
    root = str(Path(__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": root, **surroundings}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        assert process.stdout is not None
        said = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, said.decode()
    return used.ru_utime + used.ru_stime


def _write(path: Path, events: Iterator[Event]) -> None:
    with path.open("w") as file:
        for line in (
            HEADER,
            *({"index": at, "time_ns": 1_000 * at, **each} for at, each in enumerate(events)),
        ):
            file.write(json.dumps(line, separators=(",", ":")) + "\n")


def _drawn(
    chance: random.Random, operations: int, ask: Callable[[], tuple[Event, Callable[[], Event]]]
) -> Iterator[Event]:
    """Operations of WORKERS clients. `ask` gives an invocation, and what takes effect: at once, or when it ends."""
    running: dict[int, tuple[Event, Callable[[], Event], Event | None]] = {}
    begun = 0
    while begun < operations or running:
        process = chance.randrange(WORKERS)
        if process in running:
            asked, effect, answer = running.pop(process)
            yield {**asked, "type": "ok", **(effect() if answer is None else answer)}
        elif begun < operations:
            begun += 1
            question, effect = ask()
            asked = {"process": process, **question}
            yield {**asked, "type": "invoke"}
            running[process] = asked, effect, effect() if chance.random() < 0.5 else None


def _registers(
    keys: int, names: tuple[str, ...], values: int | None
) -> Callable[[random.Random, int], Iterator[Event]]:
    """`values`: how many different ones are written; None: each once."""

    def draw(chance: random.Random, operations: int) -> Iterator[Event]:
        held: dict[str, int | None] = {}
        written = 0

        def value() -> int:
            nonlocal written
            written += 1
            return written if values is None else chance.randrange(values)

        def ask() -> tuple[Event, Callable[[], Event]]:
            f, key = chance.choice(names), f"r{chance.randrange(keys)}"
            new = value()

            def effect() -> Event:
                if f == "read":
                    return {"value": held.get(key)}
                if f == "cas" and held.get(key) != old:
                    return {"type": "fail", "error": "mismatch"}
                held[key] = new
                return {}

            old = chance.randrange(values) if values else None
            asked = {"read": None, "write": new, "cas": [old, new]}[f]
            return {"f": f, "key": key, "value": asked}, effect

        return _drawn(chance, operations, ask)

    return draw


def _appends(chance: random.Random, operations: int) -> Iterator[Event]:
    held: dict[int, list[int]] = {}
    asked = 0

    def ask() -> tuple[Event, Callable[[], Event]]:
        nonlocal asked
        keys = [5 * (asked // 500) + chance.randrange(5) for _ in range(chance.randint(1, 3))]
        micros: list[list[Any]] = [
            ["append", key, asked + place] if chance.random() < 0.5 else ["r", key, None]
            for place, key in enumerate(keys)
        ]
        asked += len(keys)

        def effect() -> Event:
            done = []
            for f, key, value in micros:
                if f == "append":
                    held.setdefault(key, []).append(value)
                done.append([f, key, [*held.get(key, ())] if f == "r" else value])
            return {"value": done}

        return {"f": "txn", "value": micros}, effect

    return _drawn(chance, operations, ask)


KINDS: dict[str, Callable[[random.Random, int], Iterator[Event]]] = {
    "register, one key": _registers(1, ("read", "write"), None),
    "cas, one key": _registers(1, ("read", "write", "cas"), 5),
    "cas, 20 keys": _registers(20, ("read", "write", "cas"), 5),
    "append": _appends,
}


if __name__ == "__main__":
    main()
