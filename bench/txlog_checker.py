"""The checker of the TxLog: from Parquet to eleven verdicts, in a new process, over histories of any size.

    python -m bench.txlog_checker [SUBMISSIONS …] [--splits COUNT …]

Three masters, each of which makes a third of the transactions; BATCH of them are a round. All masters acquire, add and
execute all of them, and each is answered to a client. In a split n3 is left out. Both parts go on, and execute when
MaxPeerLag is over. Then all restore their backups, and the recovery (`simple`) sorts both branches into one. Logs and
history are right, so that no check may stop early. "core": seconds of all cores together, in a process of its own that
has the kernels from an earlier one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pyarrow.compute
import pyarrow.parquet

from bench import txlog_tables as tables
from bench.table import print_table
from checkers.history import Header, parquet
from checkers.history.jsonl import header_line
from checkers.logs.txlog import kernels
from checkers.logs.txlog.columns import Columns, LogColumns, Names, Rows, last_of, over_of
from checkers.logs.txlog.records import Backup, Life, Rare, Recovered, Recovering, Restored, Split

Array = Any  # numpy's

MASTERS = ("n1", "n2", "n3")
SHARES = len(MASTERS)
BATCH = 24
"""Transactions of a round: eight of each master."""
SPLITS = 8
SPLIT_ROUNDS = 40
CHUNK = 1_000_000
SIZES = (100_000, 1_000_000, 10_000_000)
SECOND_NS = 1_000_000_000
ROUND_NS = 10_000_000
CONFIGURED = {
    "strategy": "simple",
    "split_ns": SECOND_NS,
    "max_peer_lag_ns": SECOND_NS,
    "agrees_within_ns": 60 * SECOND_NS,
}
CHILD = """
import json, resource, sys, time
from pathlib import Path
began = time.perf_counter(), time.process_time()
from bench import txlog_tables as tables
from checkers.logs.txlog import check
given = tables.read(Path(sys.argv[1]), masters=("n1", "n2", "n3"), **json.loads(sys.argv[2]))
read = time.perf_counter(), time.process_time()
said = check(given)
print(json.dumps({
    "results": sorted({each.result for each in said.values()}),
    "summaries": {name: each.summary for name, each in said.items()},
    "findings": sum(len(each.details["documented"]) for each in said.values()),
    "read_s": read[0] - began[0], "wall_s": time.perf_counter() - began[0], "core_s": time.process_time(),
    "read_core_s": read[1], "gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20),
}))
"""


class Rounds:
    """All logs, made vectorised. Round r has the transactions r · BATCH to (r + 1) · BATCH, in the order of (ts, id).

    In a round a master makes its share, hears two POSTs with what the others made, acquires that, adds all of it, and
    executes it. A split is SPLIT_ROUNDS long.
    """

    def __init__(self, rounds: int, splits: int) -> None:
        self.count = rounds * BATCH
        number = numpy.arange(self.count)
        self.origin, self.ts = (number % SHARES).astype(numpy.int32), 1 + number // SHARES
        self.starts = [rounds * (each + 1) // (splits + 1) for each in range(splits)]
        ends = [0, *(start + SPLIT_ROUNDS for start in self.starts)]
        self.calm = [*zip(ends, [*self.starts, rounds], strict=True)]
        self.rounds = rounds

    def names(self) -> Names:
        prefixes = pyarrow.array([f"{name}-1" for name in MASTERS], pyarrow.large_string())
        own = pyarrow.array(self.ts).cast(pyarrow.large_string())
        origins = prefixes.take(pyarrow.array(self.origin))
        dash = pyarrow.scalar("-", own.type)
        return tables.names_of(
            pyarrow.chunked_array([pyarrow.compute.binary_join_element_wise(origins, own, dash)])
        )

    def columns(self) -> Columns:
        others = [tuple(name for name in MASTERS if name != master) for master in MASTERS]
        return Columns(
            names=self.names(), ts=self.ts, id=numpy.arange(self.count, dtype=numpy.int32), origin=self.origin,
            peers=MASTERS, groups=[*((each, ()) for each in others), (("n2",), ()), (("n1",), ()), ((), ())],
            missing=[("n3",), ("n1", "n2")], logs={name: self.log(own) for own, name in enumerate(MASTERS)},
        )  # fmt: skip

    def log(self, own: int) -> LogColumns:
        log = Log()
        log.rare.append(Life(1, "simple"))
        log.add(kernels.LIFE)
        for number, (begin, end) in enumerate(self.calm):
            self._calm(log, own, begin, end)
            if end < self.rounds:
                self._split(log, own, end, number)
        return log.columns(MASTERS[own])

    def _calm(self, log: Log, own: int, begin: int, end: int) -> None:
        numbers = numpy.arange(begin * BATCH, end * BATCH).reshape(-1, BATCH)
        one, other = (each for each in range(SHARES) if each != own)
        mine, theirs = (
            numbers[:, own::SHARES],
            numpy.hstack((numbers[:, one::SHARES], numbers[:, other::SHARES])),
        )
        counter = self.ts[numbers[:, -1:]]
        share, nothing = BATCH // SHARES, numpy.zeros_like(counter)
        log.add(
            [kernels.MADE] * share + [kernels.HEARD] * 2
            + [kernels.ACQUIRED, kernels.ADDED] + [kernels.EXECUTED] * BATCH,
            number=numpy.hstack((self.ts[mine], counter, counter, nothing, numbers[:, :1], numbers + 1)),
            other=numpy.hstack(
                (nothing.repeat(share, 1), counter, counter, nothing, counter, nothing.repeat(BATCH, 1))
            ),
            name=numpy.hstack((mine, nothing + one, nothing + other, nothing, nothing + own, numbers)),
            count=[0] * share + [share, share, 2 * share, BATCH] + [0] * BATCH,
            listed=numpy.hstack((theirs, theirs, numbers)),
            digest=digests(numbers),
        )  # fmt: skip

    def _split(self, log: Log, own: int, begin: int, number: int) -> None:
        """n3 is left out, and all come back together."""
        numbers = numpy.arange(begin * BATCH, (begin + SPLIT_ROUNDS) * BATCH).reshape(-1, BATCH)
        common, is_alone = begin * BATCH, own == SHARES - 1
        is_ours = (numbers[0] % SHARES == SHARES - 1) == is_alone
        mine, part = numbers[:, own::SHARES], numbers[:, is_ours]
        theirs = numbers[:, :0] if is_alone else numbers[:, 1 - own :: SHARES]
        counter = self.ts[numbers[:, -1:]]
        backup = Backup(common, int(digests(numpy.array([common - 1]))[0]).to_bytes(8, "big", signed=True))
        left_out = ("n1", "n2") if is_alone else ("n3",)
        log.rare.append(Split(log.rows + 1, left_out, backup))
        log.add(kernels.SPLIT, other=len(left_out), name=int(is_alone))
        share, nothing = BATCH // SHARES, numpy.zeros_like(counter)
        index = common + numpy.arange(SPLIT_ROUNDS)[:, None] * part.shape[1]
        heard = 0 if is_alone else 1
        log.add(
            [kernels.MADE] * share + [kernels.HEARD, kernels.ACQUIRED] * heard + [kernels.ADDED],
            number=numpy.hstack((self.ts[mine], *[counter, nothing] * heard, index)),
            other=numpy.hstack((nothing.repeat(share, 1), *[counter, nothing] * heard, counter)),
            name=numpy.hstack((mine, *[nothing + 1 - own, nothing] * heard, nothing + SHARES + own)),
            count=[0] * share + [share, share] * heard + [part.shape[1]],
            listed=numpy.hstack((*[theirs, theirs] * heard, part)),
        )
        done = part.reshape(-1)
        differs = done != common + numpy.arange(len(done))  # from there on, it is another sequence
        log.executed(common, done, digests(done) ^ differs * (1 + is_alone))
        log.rare.append(Recovering(log.rows + 1, None))
        log.add(kernels.RECOVERING)
        last = int(counter[-1, 0])
        votes = {"n1": 2, "n2": 2, "n3": 1}
        log.rare.append(
            Recovered(log.rows + 1, number + 1, common, "n1", votes, last, dict.fromkeys(MASTERS, last))
        )
        both = numbers.reshape(1, -1)
        log.add(kernels.RECOVERED, number=common, name=number, count=both.size, listed=both)
        strange = numbers[:, ~is_ours].reshape(1, -1)
        log.add(kernels.ACQUIRED, count=strange.size, listed=strange)
        log.rare.append(Restored(log.rows + 1, common, backup.hash))
        log.add(kernels.RESTORED, number=common)
        log.add(kernels.ADDED, number=common, other=last, name=own, count=both.size, listed=both)
        log.executed(common, both.reshape(-1), digests(both.reshape(-1)))

    # ---- clients

    def times(self) -> tuple[Array, Array]:
        """By round: when its transactions are submitted, and when they are answered."""
        step = numpy.full(self.rounds, ROUND_NS, dtype=numpy.int64)
        for start in self.starts:
            step[start] += 3 * SECOND_NS // 2
            step[min(self.rounds - 1, start + SPLIT_ROUNDS)] += 5 * SECOND_NS
        asked = numpy.cumsum(step)
        answered = asked + ROUND_NS // 2
        for start in self.starts:
            answered[start : start + SPLIT_ROUNDS] = asked[start + SPLIT_ROUNDS - 1] + 5 * SECOND_NS // 2
        return asked, answered

    def history(self, path: Path, names: Names) -> None:
        asked, answered = (each.repeat(BATCH) for each in self.times())
        number = numpy.arange(self.count)
        process = number % BATCH
        for start in self.starts:
            of_split = slice(start * BATCH, (start + SPLIT_ROUNDS) * BATCH)
            process[of_split] = BATCH + numpy.arange(SPLIT_ROUNDS * BATCH)
        time_ns = numpy.concatenate((asked, answered)) + numpy.concatenate((number, number)) % 1000
        by_time = numpy.argsort(time_ns, kind="stable")
        faults = self._faults()
        places = numpy.searchsorted(time_ns[by_time], [each["time_ns"] for each in faults])
        index = numpy.arange(len(by_time)) + numpy.searchsorted(places, numpy.arange(len(by_time)), "right")
        texts = pyarrow.LargeStringArray.from_buffers(
            self.count, pyarrow.py_buffer(names.first), pyarrow.py_buffer(names.data)
        )
        rows = [
            dict(each, index=int(place) + at)
            for at, (place, each) in enumerate(zip(places, faults, strict=True))
        ]
        write_history(path, texts, self.origin, process, time_ns, by_time, index, rows)

    def _faults(self) -> list[dict[str, Any]]:
        asked, answered = self.times()
        links = [[one, "n3"] for one in ("n1", "n2")] + [["n3", one] for one in ("n1", "n2")]
        found: list[dict[str, Any]] = []
        for number, start in enumerate(self.starts):
            begin, end = int(asked[start - 1]) + ROUND_NS, int(answered[start]) + SECOND_NS // 10
            cut = {"id": number, "name": "alone", "does": "cut", "links": links}
            found.append({"time_ns": begin, "type": "invoke", "actor": "nemesis", "f": "alone", "value": cut})
            over = {"id": number, "took_effect": True, "healed": True}
            found.append({"time_ns": end, "type": "info", "actor": "nemesis", "f": "alone", "value": over})
        settled = int(answered[-1]) + SECOND_NS
        found.append({"time_ns": settled, "type": "info", "actor": "harness", "f": "settled", "value": True})
        return found


def digests(numbers: Array) -> Array:
    """A hash for the state behind each transaction."""
    with numpy.errstate(over="ignore"):
        mixed = (numbers.reshape(-1) + 1) * numpy.int64(-7046029254386353131)
    return mixed ^ (mixed >> 29)


class Log:
    """Parts of a log, one behind the other."""

    def __init__(self) -> None:
        self.rows = 0
        self.rare: list[Rare] = []
        self._parts: dict[str, list[Array]] = {}

    def add(self, kind: Any, number: Any = 0, other: Any = 0, name: Any = 0, count: Any = 0, listed: Any = (),
            digest: Any = ()) -> None:  # fmt: skip
        """Records, or as many rounds of records as `number` has rows."""
        shape = (
            len(number) if isinstance(number, numpy.ndarray) else 1,
            len(kind) if isinstance(kind, list) else 1,
        )
        given = {"kind": kind, "number": number, "other": other, "name": name, "count": count}
        for field, values in given.items():
            whole = numpy.broadcast_to(numpy.asarray(values, dtype=DTYPES[field]), shape)
            self._parts.setdefault(field, []).append(whole.reshape(-1))
        for field, values in (("listed", listed), ("digest", digest)):
            self._parts.setdefault(field, []).append(numpy.asarray(values, dtype=DTYPES[field]).reshape(-1))
        self.rows += shape[0] * shape[1]

    def executed(self, common: int, done: Array, digest: Array) -> None:
        number = common + 1 + numpy.arange(len(done))
        self.add([kernels.EXECUTED], number=number[:, None], name=done[:, None], digest=digest)

    def columns(self, master: str) -> LogColumns:
        fields = {name: numpy.concatenate(parts) for name, parts in self._parts.items()}
        first = numpy.zeros(self.rows + 1, dtype=numpy.int64)
        numpy.cumsum(fields["count"], out=first[1:])
        recoveries = [each for each in self.rare if isinstance(each, Recovered)]
        peer = {name: number for number, name in enumerate(MASTERS)}
        columns = {name: fields[name] for name in ("kind", "number", "other", "name", "listed")}
        return LogColumns(
            master=master, damage="", rows=Rows(first=first, **columns), rare=self.rare, over=over_of(recoveries),
            over_last=last_of(recoveries, peer), digest=fields["digest"], hashes=None, steps=[],
        )  # fmt: skip


DTYPES = {
    "kind": numpy.int8, "number": numpy.int64, "other": numpy.int64, "name": numpy.int32, "count": numpy.int32,
    "listed": numpy.int32, "digest": numpy.int64,
}  # fmt: skip


def write_history(
    path: Path,
    texts: Any,
    origin: Array,
    process: Array,
    time_ns: Array,
    by_time: Array,
    index: Array,
    others: Any,
) -> None:
    """The events of the clients in order, and `others` at their indexes."""
    schema = parquet.schema()
    metadata = {b"qsync-history": header_line(Header(system="txlog", nodes=MASTERS))}
    with pyarrow.parquet.ParquetWriter(
        path, schema.with_metadata(metadata), compression="zstd", write_page_checksum=True
    ) as file:
        for begin in range(0, len(by_time), CHUNK):
            events = by_time[begin : begin + CHUNK]
            which, is_end = events % len(process), events >= len(process)
            count = len(events)
            words = {
                "type": (is_end, ["invoke", "ok"]), "f": (0, ["add"]), "actor": (0, ["client"]), "key": (0, ["s"]),
                "node": (origin[which], MASTERS), "phase": (0, ["load"]),
            }  # fmt: skip
            columns = {
                "index": index[begin : begin + CHUNK], "time_ns": time_ns[events], "process": process[which],
                "transaction": texts.take(pyarrow.array(which, mask=~is_end)).cast(pyarrow.string()),
                "value": pyarrow.array(which).cast(pyarrow.string()),
            }  # fmt: skip
            for name, (codes, meanings) in words.items():
                numbers = numpy.broadcast_to(numpy.asarray(codes, dtype=numpy.int32), count)
                columns[name] = pyarrow.DictionaryArray.from_arrays(
                    pyarrow.array(numbers), pyarrow.array(meanings)
                )
            nothing = {
                field.name: pyarrow.nulls(count, field.type) for field in schema if field.name not in columns
            }
            whole = {**columns, **nothing}
            file.write_table(pyarrow.table([whole[name] for name in schema.names], schema=schema))
            last = int(columns["index"][-1])
            now = [each for each in others if each["index"] < last or begin + CHUNK >= len(by_time)]
            others = others[len(now) :]
            if now:
                rows = [{**each, "phase": "load", "value": json.dumps(each["value"])} for each in now]
                file.write_table(pyarrow.Table.from_pylist(rows, schema=schema))


def make(folder: Path, submissions: int, splits: int) -> int:
    """Write the tables; returns their size in bytes."""
    rounds = Rounds(max(1, submissions // BATCH), splits)
    columns = rounds.columns()
    tables.write(folder, columns)
    rounds.history(folder / tables.HISTORY, columns.names)
    return sum(each.stat().st_size for each in folder.rglob("*.parquet"))


def judged(folder: Path) -> dict[str, Any]:
    """The verdict of a new process, and its cost."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", CHILD, str(folder), json.dumps(CONFIGURED)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    assert said["results"] == ["valid"], said
    return said


def row(submissions: int, splits: int) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        size = make(Path(folder), submissions, splits)
        said = judged(Path(folder))
    return [
        f"{submissions:,}", str(splits), f"{size / (1 << 20):,.0f} MiB", f"{said['read_core_s']:.1f} s",
        f"{said['core_s']:.1f} s", f"{said['wall_s']:.1f} s", f"{1e6 * said['core_s'] / submissions:.2f} µs",
        f"{said['gib']:.1f} GiB",
    ]  # fmt: skip


def main() -> None:
    arguments = argparse.ArgumentParser(description="The checker of the TxLog, from Parquet to its verdicts.")
    arguments.add_argument("submissions", nargs="*", type=int, default=SIZES, help="how many, one line each")
    arguments.add_argument(
        "--splits", type=int, nargs="*", default=(0, SPLITS), help="how many, one line each"
    )
    given = arguments.parse_args()
    rows = [row(count, splits) for count in given.submissions for splits in given.splits]
    head = ("submissions", "splits", "Parquet", "core, read", "core, whole", "clock", "core each", "memory")
    print_table(head, rows)


if __name__ == "__main__":
    main()
