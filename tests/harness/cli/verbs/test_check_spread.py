"""`qsync check --engine spark` of a history.parquet, on workers in this process instead of Spark's."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow
import pytest

from checkers.history import Event, Header, History, parquet
from checkers.limits import Limits
from harness.cli.verbs.check_spread import _check_parquet
from tests.harness.cli.verbs.conftest import Qsync


@dataclass(frozen=True)
class Frame:
    """What `check_parquet` needs of a DataFrame: batches, in one partition each."""

    batches: list[Any]

    def mapInArrow(self, work: Callable[[Iterator[Any]], Iterable[Any]], _schema: str) -> Frame:  # noqa: N802
        return Frame([made for batch in self.batches for made in work(iter([batch]))])

    def repartitionById(self, _tasks: int, part: str) -> Frame:  # noqa: N802
        rows = [row for batch in self.batches for row in batch.to_pylist()]
        parts = sorted({row[part] for row in rows})
        return Frame(
            [
                pyarrow.RecordBatch.from_pylist([row for row in rows if row[part] == number])
                for number in parts
            ]
        )

    def collect(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(**row) for batch in self.batches for row in batch.to_pylist()]


class Workers:
    """What `check_parquet` needs of a SparkSession."""

    sparkContext = SimpleNamespace(defaultParallelism=2)  # noqa: N815

    def range(self, end: int, **_: int) -> Frame:
        return Frame([pyarrow.RecordBatch.from_pydict({"id": [number]}) for number in range(end)])


def record(path: Path, *done: tuple[str, str, int], torn: str | None) -> None:
    """These operations on a key, one after the other: f, outcome, value."""
    events = [
        Event(
            index=2 * number + half,
            time_ns=1_000 * (2 * number + half),
            process=0,
            type=("invoke", outcome)[half],  # type: ignore[arg-type]
            f=f,
            key="a",
            value=value if f == "write" or half else None,
        )
        for number, (f, outcome, value) in enumerate(done)
        for half in (0, 1)
    ]
    parquet.write(path, replace(History.of(Header(), events), torn=torn))


WRITES = [("write", "ok", 1), ("write", "ok", 2)]
TORN = "Nothing can be said of this file: the file is torn: line 9 has no end."


@pytest.mark.parametrize(
    ("done", "torn", "code", "said"),
    [
        ([*WRITES, ("read", "ok", 2)], None, 0, None),
        ([*WRITES, ("read", "ok", 2)], "line 9 has no end", 3, TORN),
        ([*WRITES, ("read", "ok", 1)], "line 9 has no end", 1, None),
        ([("write", "fail", 1)], None, 3, "Nothing can be said of this file: no operation succeeded."),
    ],
)
def test_a_record_has_the_same_outcome_as_in_process(
    qsync: Qsync,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    done: list[tuple[str, str, int]],
    torn: str | None,
    code: int,
    said: str | None,
) -> None:
    """If it failed, the lost end of a record, with an anomaly in it perhaps, would be a pass on Spark alone."""
    path = tmp_path / "history.parquet"
    record(path, *done, torn=torn)
    plain = qsync("check", path, "--json")
    assert plain.code == code
    assert _check_parquet(path, True, Limits(), nullcontext(Workers())) == code
    found, of_process = json.loads(capfd.readouterr().out), json.loads(plain.out)
    assert (found["outcome"], found["exit_code"]) == (of_process["outcome"], code)
    if said is not None:
        assert found["sentence"] == of_process["sentence"] == said
        _check_parquet(path, False, Limits(), nullcontext(Workers()))
        assert capfd.readouterr().out.startswith(f"inconclusive {said[:-1]}; ")
