"""The measurements of `bench.regressions`, in a process of the checkout that is measured.

A line on standard input asks for one turn. The answer is a line of JSON: for each name the CPU time of its floor,
divided by that of the work. Less is slower. A floor is the least code that could do the work. It runs beside the work
in the same turn, so a loaded machine slows both down.

| name | work | floor |
|---|---|---|
| recorder | `bench.recording`: an operation against a store that answers at once | encode and write its two lines |
| simulator | a second of virtual time of the default plan | a fixed loop |
| reading | `jsonl.read` | decode the lines |
| check | `jsonl.read` and `linearizable.check` | decode the lines |
| api | `linearizable.check` of a history | the decision on its columns |

An older checkout is measured by this file, too: it knows where older ones have their parts, and leaves out what they do
not have.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from bench import recording, simulation
from checkers import linearizable
from checkers.history import jsonl
from checkers.history.history import Header, History
from checkers.history.operation import Event
from checkers.linearizable import many
from checkers.linearizable.columns import register_columns
from checkers.linearizable.models import Register
from checkers.linearizable.search import Call, Limits
from harness.run.assemble import header, parts_of, simulated
from harness.run.conductor import Conductor

RECORDED = 20_000
PLAN = "default: 20 s, 10 clients, 300 op/s"
VIRTUAL_S = 4.0
JUDGED = 20_000  # of so many lines `check` makes no objects
KEYS = 40
LOOPS = 500_000
TIMES = 10
"""How often a turn repeats a floor that is over in a few milliseconds."""


def seconds(work: Callable[[], object]) -> float:
    """Of the core."""
    began_s = time.process_time()
    work()
    return time.process_time() - began_s


def fixed_loop() -> int:
    found, seen = 0, {0: 0}
    for number in range(LOOPS):
        found += number * number % 7
        seen[number & 255] = found
    return found


def made_history() -> tuple[Header, list[Event]]:
    """Reads and writes of five clients in turns, each on its own key: valid, whatever is asked."""
    events: list[Event] = []
    shown: dict[str, int] = {}
    for number in range(JUDGED):
        key, process = f"r{number % KEYS}", number % 5
        f = "write" if number // KEYS % 2 == 0 else "read"
        if f == "write":
            shown[key] = number
        where: Any = {"process": process, "f": f, "key": key, "node": "n1", "mode": "linearizable"}
        asked = number if f == "write" else None
        at = 2 * number
        events.append(Event(index=at, time_ns=at * 1000, type="invoke", value=asked, **where))
        where |= {"role": "owner", "value": shown[key]}
        events.append(Event(index=at + 1, time_ns=at * 1000 + 500, type="ok", **where))
    return Header(system="bench", workload="register"), events


class Probes:
    """Everything that is measured, made before the first turn."""

    def __init__(self, folder: Path) -> None:
        recording.OPERATIONS = RECORDED
        plan = simulation.PLANS[PLAN]
        self.plan = msgspec.structs.replace(plan, time_limit_s=VIRTUAL_S)
        self.header, self.events = made_history()
        self.path = folder / "history.jsonl"
        jsonl.write(self.path, self.header, self.events)
        self.lines = self.path.read_bytes().splitlines()[1:]
        self.encode = msgspec.json.Encoder().encode
        self.decode = msgspec.json.Decoder(Event).decode
        self.together = self.joined()

    def turn(self) -> dict[str, float]:
        history: list[History] = []
        written = seconds(self.write) / TIMES / len(self.events) * 2
        recorder = seconds(recording.record_once) / RECORDED
        loop, simulator = seconds(fixed_loop), seconds(self.simulate) / VIRTUAL_S
        decoded = seconds(self.decode_lines) / TIMES
        read = seconds(lambda: history.append(jsonl.read(self.path)))
        checked = seconds(lambda: self.check(history[0]))
        return {
            "recorder": written / recorder,
            "simulator": loop / simulator,
            "reading": decoded / read,
            "check": decoded / (read + checked),
            "api": seconds(self.decide) / TIMES / checked,
        }

    def write(self) -> None:
        for _ in range(TIMES):
            file = io.BytesIO()
            for event in self.events:
                file.write(self.encode(event) + b"\n")

    def decode_lines(self) -> None:
        for _ in range(TIMES):
            for line in self.lines:
                self.decode(line)

    def decide(self) -> None:
        for _ in range(TIMES):
            found = many.decide(self.together, Limits())
            assert (found[:, 0] == 1).all(), found

    def joined(self) -> Any:
        """The history's registers, as columns."""
        model = Register()
        keys: dict[Any, list[Call]] = {}
        for each in History.of(self.header, self.events).operations:
            action = model.action(each)
            assert action is not None
            keys.setdefault(each.key, []).append(Call(action, each.invoke_index, each.returned_index))
        return many.joined([register_columns(calls, (None,))[0] for calls in keys.values()])

    def simulate(self) -> None:
        parts = parts_of(self.plan)
        cluster = simulated(parts, None)
        writer = jsonl.Writer(io.BytesIO(), header(parts))
        cluster.run(Conductor(self.plan, cluster, parts.system, parts.workload, writer).run())

    def check(self, history: History) -> None:
        verdict = linearizable.check(history)
        assert verdict.result == "valid", verdict


def main() -> None:
    with TemporaryDirectory() as folder:
        probes = Probes(Path(folder))
        for _ in sys.stdin:
            print(msgspec.json.encode(probes.turn()).decode(), flush=True)


if __name__ == "__main__":
    main()
