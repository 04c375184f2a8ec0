"""Histories of Jepsen, megabytes a second: their text to values, to a history, and with one token at a time.

    python -m bench.foreign [--operations 30000]
    python -m bench.foreign --transactions 100000

Registers (`jepsen.independent`), transactions over lists, and Jepsen's log. CPU time of one process, which has read a
tenth of the text before. The twin of the tests reads one token at a time, as the first version did.

`--transactions`: CPU time of whole commands instead, `./qsync check` of a file of so many, which a correct store
answered. `--keep FILE` keeps the file, for another checker.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import checkers
from bench.check import check
from bench.table import print_table
from checkers.history.foreign import edn, jepsen_text
from tests.checkers.history import one_token_at_a_time


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=30_000)
    parser.add_argument("--transactions", type=int)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    if given.transactions:
        whole_commands(given.transactions, given.keep)
    else:
        rates(given.operations)


def rates(operations: int) -> None:
    rows = []
    with TemporaryDirectory() as folder:
        for name, (lines, ending) in NOTATIONS.items():
            text = "".join(f"{line}\n" for line in lines(Random(1), operations))
            path = Path(folder) / f"history{ending}"
            path.write_text(text)
            read: Callable[[str], object] = edn.read if ending == ".edn" else jepsen_text.parse
            slowly = one_token_at_a_time.read if ending == ".edn" else None
            found = [_rate(read, text), _rate(partial(_read_file, path), text)]
            found += [_rate(slowly, text)] if slowly else []
            shown = [f"{rate:.1f}" for rate in found]
            rows.append([name, f"{len(text) / 1e6:.1f}", *shown, *([] if slowly else ["-"])])
    print_table(["", "MB", "to values", "to a history", "one token at a time"], rows)


def whole_commands(count: int, keep: Path | None) -> None:
    with TemporaryDirectory() as folder:
        path = keep or Path(folder) / "history.edn"
        path.write_text("".join(f"{line}\n" for line in transactions(Random(1), count)))
        rows = []
        for _ in range(3):  # the first one may compile
            seconds, core_s, mib = check(path)
            rows.append(
                [
                    f"{count:,}",
                    f"{path.stat().st_size / 1e6:.1f}",
                    f"{core_s:.1f}",
                    f"{seconds:.1f}",
                    f"{mib:,.0f}",
                ]
            )
        print_table(["transactions", "MB", "of the core, s", "by the clock, s", "peak, MiB"], rows)


def _read_file(path: Path, _: str) -> object:
    return checkers.read(path)


def _rate(read: Callable[[str], object], text: str) -> float:
    """Megabytes a second."""
    read(text[: text.index("\n", len(text) // 10)])
    began_s = time.process_time()
    read(text)
    return len(text) / 1e6 / (time.process_time() - began_s)


def registers(chance: Random, operations: int) -> Iterator[str]:
    for place, (process, f, asked, answer) in enumerate(_on_registers(chance, operations)):
        key = chance.randrange(100)
        for number, (type_, value) in enumerate((("invoke", asked), ("ok", answer))):
            index = 2 * place + number
            yield (
                f"{{:type :{type_}, :f :{f}, :value [{key} {value}], :time {index * 71_903}, :process {process}, "
                f":index {index}}}"
            )


def log(chance: Random, operations: int) -> Iterator[str]:
    for process, f, asked, answer in _on_registers(chance, operations):
        yield f"INFO  jepsen.util - {process}\t:invoke\t:{f}\t{asked}"
        yield f"INFO  jepsen.util - {process}\t:ok\t:{f}\t{answer}"


def _on_registers(chance: Random, operations: int) -> Iterator[tuple[int, str, str, str]]:
    """Process, f, and the value that is asked with and answered."""
    for _ in range(operations):
        one, other = chance.randrange(5), chance.randrange(5)
        f = chance.choice(("read", "write", "cas"))
        asked = {"read": "nil", "write": str(one), "cas": f"[{one} {other}]"}[f]
        yield chance.randrange(5), f, asked, str(one) if f == "read" else asked


def transactions(chance: Random, operations: int) -> Iterator[str]:
    lists: dict[int, list[int]] = {}
    for place in range(operations):
        asked, answer = [], []
        for _ in range(chance.randint(1, 4)):
            key = place // 50 + chance.randrange(8)
            elements = lists.setdefault(key, [])
            if chance.random() < 0.5:
                elements.append(len(elements) + 1)
                asked.append(f"[:append {key} {elements[-1]}]")
                answer.append(asked[-1])
            else:
                asked.append(f"[:r {key} nil]")
                answer.append(f"[:r {key} [{' '.join(map(str, elements))}]]")
        process = chance.randrange(5)
        for number, (type_, value) in enumerate((("invoke", asked), ("ok", answer))):
            index = 2 * place + number
            yield (
                f"{{:index {index}, :time {index * 71_903}, :type :{type_}, :process {process}, :f :txn, "
                f":value [{' '.join(value)}]}}"
            )


NOTATIONS: dict[str, tuple[Callable[[Random, int], Iterator[str]], str]] = {
    "registers, EDN": (registers, ".edn"),
    "transactions, EDN": (transactions, ".edn"),
    "registers, history.txt": (log, ".txt"),
}

if __name__ == "__main__":
    main()
