"""The content of the tables, as their state notes it, or from the data files alone, if the state is lost."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.results import hashes
from harness.results.remote_runs import at_once

_BATCH = re.compile(r"/(\d+)-[^/]*$")


@dataclass(slots=True)
class State:
    """`runs`: run → its stamp; `schema` names the tables' schema: with a different one all rows are made anew.

    `sums`: each data file → the SHA-256 of its content, by which it is verified before it is read.
    """

    runs: dict[str, str] = field(default_factory=dict)
    sums: dict[str, str] = field(default_factory=dict)
    batch: int = 0
    schema: str = ""


@dataclass(frozen=True, slots=True)
class Stock:
    """`damaged`: files that are not as they were written. `lost`: runs of the state that are in no file."""

    state: State
    damaged: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


def taken_stock(names: Sequence[str], known: State, at: Callable[[str], Path]) -> Stock:
    """Look into each data file. `known`: the state, as far as it can be read; `at`: the path of a name's file.

    A file that the state does not know is whole if it can be read.
    """

    def whole_sum(name: str) -> str | None:
        try:
            digest = hashes.of_file(at(name)).sha256
        except OSError:
            return None
        noted = known.sums.get(name)
        return digest if (_is_readable(name, at(name)) if noted is None else digest == noted) else None

    sums = dict(zip(names, at_once(whole_sum, names), strict=True))
    whole = {name: found for name, found in sums.items() if found is not None}
    runs = {run for name in whole if name.startswith("runs/") for run in _runs(at(name))}
    batches = (int(found[1]) for name in names if (found := _BATCH.search(name)))
    return Stock(
        State(
            runs={run: known.runs.get(run, "") for run in sorted(runs)},
            sums=whole,
            batch=max(known.batch, *batches, 0),
            schema=known.schema,
        ),
        damaged=tuple(name for name in names if name not in whole),
        lost=tuple(run for run in known.runs if run not in runs),
    )


def _is_readable(name: str, file: Path) -> bool:
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(file, page_checksum_verification=True) as table:
            for _ in table.iter_batches():
                pass
        if name.startswith("runs/"):
            _runs(file)
    except (OSError, pyarrow.ArrowException, KeyError, UnicodeDecodeError):  # the last two: a damaged schema
        return False
    return True


def _runs(file: Path) -> list[str]:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(file) as table:
        names: list[str] = table.read(columns=["run"])["run"].to_pylist()
    return names
