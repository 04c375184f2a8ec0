"""Histories like those that were too much once, with 2,000 operations: a verdict or a reason within seconds?

    python -m bench.siblings [--operations 2000] [--names queue,counter] [--seconds 10]

Each shape is drawn valid, and with one answer that cannot be. One whole `qsync check` after the other; the columns are
its verdict, its CPU seconds and its first line. Exit code 1 if one takes longer, or says unknown without a reason.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from bench.table import print_table

ROOT = Path(__file__).parents[1]
SECONDS = 10.0
CODES = {0: "valid", 1: "anomaly", 2: "unknown", 64: "refused"}


@dataclass
class Store:
    """A store that works one operation after the other, and clients that overlap."""

    chance: Random
    held: Any
    step: Callable[[Store, str, Any], Any]
    crashes: float = 0.0
    lines: list[dict[str, Any]] = field(default_factory=list)
    client: int = 0
    """For whom the store works."""

    def runs(self, operations: int, clients: int, draw: Callable[[Random, int], tuple[str, Any]]) -> None:
        """Clients ask, the store works at some moment in between, clients are answered."""
        running: dict[int, list[Any]] = {}
        asked, names = 0, list(range(clients))
        while asked < operations or running:
            place = self.chance.randrange(clients)
            process = names[place]
            if process not in running and asked < operations:
                f, value = draw(self.chance, asked)
                running[process] = [f, value, None, False]
                self._line("invoke", process, f, value)
                asked += 1
            elif process in running and not running[process][3]:
                f, value, _, _ = running[process]
                self.client = process
                running[process][2:] = [self.step(self, f, value), True]
            elif process in running:
                f, _, answer, _ = running.pop(process)
                if self.chance.random() < self.crashes:
                    self._line("info", process, f, None)
                    names[place] = max(names) + 1
                elif answer is None:
                    self._line("fail", process, f, None)
                else:
                    self._line("ok", process, f, answer)

    def _line(self, type_: str, process: int, f: str, value: Any) -> None:
        self.lines.append({"type": type_, "process": process, "f": f, "value": value})


def _fifo(store: Store, f: str, value: Any) -> Any:
    if f == "enqueue":
        store.held.append(value)
        return value
    return store.held.pop(0) if store.held else None


def _bag(store: Store, f: str, value: Any) -> Any:
    if f == "enqueue":
        store.held.append(value)
        return value
    return store.held.pop(store.chance.randrange(len(store.held))) if store.held else None


def _stack(store: Store, f: str, value: Any) -> Any:
    if f == "push":
        store.held.append(value)
        return value
    return store.held.pop() if store.held else None


def _set(store: Store, f: str, value: Any) -> Any:
    if f == "add":
        store.held.append(value)
        return value
    return sorted(store.held)


def _counter(store: Store, f: str, value: Any) -> Any:
    if f == "add":
        store.held[0] += value
        return value
    return store.held[0]


def _lock(store: Store, f: str, value: Any) -> Any:
    if (f == "acquire") == bool(store.held):
        return None
    store.held[:] = [] if f == "release" else [1]
    return True


def _cas(store: Store, f: str, value: Any) -> Any:
    key, argument = value
    state: dict[str, Any] = store.held
    if f == "read":
        return [key, state.get(key)]
    if f == "cas":
        if state.get(key) != argument[0]:
            return None
        state[key] = argument[1]
        return value
    state[key] = argument
    return value


def _log(store: Store, f: str, value: Any) -> Any:
    """A client polls what is behind the last entry that it was shown."""
    logs: dict[str, list[int]] = store.held.setdefault("logs", {})
    if f == "send":
        _, key, sent = value[0]
        logs.setdefault(key, []).append(sent)
        return [["send", key, [len(logs[key]) - 1, sent]]]
    key = str(store.chance.randrange(5))
    log, place = logs.get(key, []), (store.client, key)
    shown = [[at, log[at]] for at in range(store.held.get(place, 0), len(log))]
    store.held[place] = len(log)
    return [["poll", {key: shown}]]


def _transactions(store: Store, f: str, value: Any) -> Any:
    answer = []
    for word, key, written in value:
        if word == "w":
            store.held[key] = written
        answer.append([word, key, store.held.get(key) if word == "r" else written])
    return answer


def _txn(values: Callable[[Random, int], int]) -> Callable[[Random, int], tuple[str, Any]]:
    def draw(chance: Random, number: int) -> tuple[str, Any]:
        micros = [(chance.choice("rw"), f"k{chance.randrange(40)}") for _ in range(6)]
        return "txn", [
            [word, key, values(chance, 6 * number + at) if word == "w" else None]
            for at, (word, key) in enumerate(micros)
        ]

    return draw


def _queued(put: str, take: str, share: float = 0.5) -> Callable[[Random, int], tuple[str, Any]]:
    return lambda chance, number: (put, number) if chance.random() < share else (take, None)


def _counted(chance: Random, number: int) -> tuple[str, Any]:
    return ("add", chance.randrange(2**31)) if chance.random() < 0.7 else ("read", None)


def _keyed(chance: Random, number: int) -> tuple[str, Any]:
    key, f = f"k{chance.randrange(8)}", chance.choice(("read", "write", "cas"))
    argument = {
        "read": None,
        "write": chance.randrange(5),
        "cas": [chance.randrange(5), chance.randrange(5)],
    }[f]
    return f, [key, argument]


def _sent(chance: Random, number: int) -> tuple[str, Any]:
    return (
        ("send", [["send", str(chance.randrange(5)), number]])
        if chance.random() < 0.5
        else ("poll", [["poll"]])
    )


@dataclass(frozen=True)
class Shape:
    """`like`: the file that it resembles; `spoilt`: what an answer becomes that cannot be."""

    like: str
    model: tuple[str, ...]
    held: Callable[[], Any]
    step: Callable[[Store, str, Any], Any]
    draw: Callable[[Random, int], tuple[str, Any]]
    look: str
    clients: int = 25
    crashes: float = 0.0


def _model(*words: str) -> tuple[str, ...]:
    return ("--model", *words)


_UNIQUE = _txn(lambda chance, number: number)
_FEW = _txn(lambda chance, number: chance.randrange(50))
SHAPES: dict[str, Shape] = {
    "queue": Shape(
        "queue_not_monitor100", _model("queue"), list, _fifo, _queued("enqueue", "dequeue"), "dequeue"
    ),
    "queue, crashes": Shape(
        "queue200", _model("queue"), list, _fifo, _queued("enqueue", "dequeue"), "dequeue", crashes=0.05
    ),
    "queue, 100 clients": Shape(
        "b_queue24", _model("queue"), list, _fifo, _queued("enqueue", "dequeue", 0.7), "dequeue", clients=100
    ),
    "unordered queue": Shape(
        "unordered_queue", _model("unordered-queue"), list, _bag, _queued("enqueue", "dequeue"), "dequeue"
    ),
    "stack": Shape("queue200", _model("stack"), list, _stack, _queued("push", "pop"), "pop"),
    "set": Shape("set1500c25", _model("set"), list, _set, _queued("add", "read", 0.9), "read"),
    "set, crashes": Shape(
        "set1500c25", _model("set"), list, _set, _queued("add", "read", 0.9), "read", crashes=0.05
    ),
    "counter": Shape(
        "b_counter22",
        _model("counter"),
        lambda: [0],
        _counter,
        _counted,
        "read",
        clients=22,
    ),
    "counter, crashes": Shape(
        "b_counter22",
        _model("counter"),
        lambda: [0],
        _counter,
        _counted,
        "read",
        crashes=0.02,
    ),
    "mutex": Shape(
        "mutex_bad",
        _model("mutex"),
        list,
        _lock,
        lambda chance, number: (chance.choice(("acquire", "release")), None),
        "acquire",
        clients=5,
    ),
    "keyed cas": Shape("omni", _model("cas-register"), dict, _cas, _keyed, "read", clients=10),
    "keyed cas, crashes": Shape(
        "omni", _model("cas-register"), dict, _cas, _keyed, "read", clients=10, crashes=0.02
    ),
    "log": Shape("kafka", _model("log"), dict, _log, _sent, "poll", clients=10),
    **{
        f"registers, {promise}{more}": Shape(
            like,
            _model("rw-register", "--promise", promise),
            dict,
            _transactions,
            draw,
            "txn",
            clients=20,
        )
        for promise in ("snapshot-isolation", "serializable", "strict-serializable", "causal")
        for like, draw, more in (
            ("dgraph_si, polysi-fig7", _UNIQUE, ""),
            ("dgraph_si", _FEW, ", values again"),
        )
    },
}


def drawn(shape: Shape, operations: int, *, right: bool) -> list[dict[str, Any]]:
    """The lines of a history of the shape; not right: one answer in the middle cannot be."""
    store = Store(Random(f"{shape.like} {operations}"), shape.held(), shape.step, shape.crashes)
    store.runs(operations, shape.clients, shape.draw)
    if not right:
        looks = [
            at for at, line in enumerate(store.lines) if line["type"] == "ok" and line["f"] == shape.look
        ]
        early, late = looks[len(looks) // 10], looks[len(looks) // 2]
        old, new = store.lines[early]["value"], store.lines[late]["value"]
        if shape.look == "txn":
            olds = {
                key: value
                for line in store.lines[:early]
                for word, key, value in line["value"]
                if word == "w"
            }
            new = [[word, key, olds.get(key) if word == "r" else value] for word, key, value in new]
        elif shape.step is _cas:
            new = [new[0], 99]
        else:
            new = old
        store.lines[late]["value"] = new
        if shape.step is _lock:
            refused = [line for line in store.lines if line["type"] == "fail" and line["f"] == "acquire"]
            refused[len(refused) // 2]["type"] = "ok"
    return store.lines


def judged(lines: Sequence[dict[str, Any]], options: Sequence[str], folder: Path) -> tuple[str, float, str]:
    """(verdict, CPU seconds, the first line that says why) of the whole command."""
    path = folder / "history.jsonl"
    path.write_text(
        "".join(json.dumps({"index": at, "time": at} | line) + "\n" for at, line in enumerate(lines))
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "harness.cli", "check", str(path), *options],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    said = next((line for line in (done.stdout or done.stderr).splitlines() if line.strip()), "")
    return CODES.get(done.returncode, f"exit {done.returncode}"), seconds, said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--operations", type=int, default=2_000)
    parser.add_argument("--names", default="", help="some of the shapes, by the beginning of their names")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    given = parser.parse_args()
    wanted = tuple(given.names.split(",")) if given.names else ("",)
    rows, slow = [], 0
    with TemporaryDirectory() as folder:
        for name, shape in SHAPES.items():
            for right in (True, False) if name.startswith(wanted) else ():
                verdict, seconds, said = judged(
                    drawn(shape, given.operations, right=right), shape.model, Path(folder)
                )
                slow += seconds > given.seconds or not said
                rows.append([name, "right" if right else "one wrong", verdict, f"{seconds:.1f}", said[:60]])
                print(*rows[-1], sep="\t", file=sys.stderr, flush=True)
    print_table(["history", "answers", "verdict", "CPU seconds", "says"], rows)
    sys.exit(bool(slow))


if __name__ == "__main__":
    main()
