"""Which runs go into the tables. No Spark is needed for that."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.pipeline.usable import usable
from harness.results import hashes
from harness.results.scan import scan
from tests import examples
from tests.harness.pipeline.stored_runs import store_run

NO_OUTCOMES = ("perhaps", "", "VALID", " valid", "valid\n", "none", "ok", 0, None, True, [], {}, ["valid"])
DOCUMENTS = ("plan.json", "verdict.json")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store_run(tmp_path_factory.mktemp("whole"), 1, time_limit_s=1.0)


def copied(whole: Path, root: Path, *, is_early: bool = True) -> Path:
    """A copy below results/, as a run of an early version: without its hashes."""
    run = root / "results" / "nightly" / whole.name
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(whole, run)
    if is_early:
        (run / hashes.HASHES).unlink()
    return run


def why(run: Path) -> str:
    """Why it is left out; empty if it is not."""
    _, broken = usable(scan(run.parents[1]).runs, lambda name: True)
    return broken[0].why if broken else ""


def change(file: Path, path: tuple[str | int, ...], value: Any) -> None:
    found = place = msgspec.json.decode(file.read_bytes())
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    file.write_bytes(msgspec.json.encode(found))


@pytest.mark.parametrize("is_early", [False, True])
def test_a_whole_run_is_used_with_hashes_and_without(whole: Path, tmp_path: Path, is_early: bool) -> None:
    """If it failed, runs of early versions would be missing from the tables."""
    assert why(copied(whole, tmp_path, is_early=is_early)) == ""


def test_the_word_of_early_versions_is_an_outcome(whole: Path, tmp_path: Path) -> None:
    """If it failed, inconclusive runs of early versions would be missing from the tables."""
    run = copied(whole, tmp_path)
    change(run / "verdict.json", ("outcome",), "not-evidence")
    assert why(run) == ""


@pytest.mark.parametrize("outcome", NO_OUTCOMES, ids=repr)
def test_an_outcome_that_is_none_is_named(whole: Path, tmp_path: Path, outcome: Any) -> None:
    """If it failed, runs would be counted in the tables, and under no outcome."""
    run = copied(whole, tmp_path)
    change(run / "verdict.json", ("outcome",), outcome)
    assert why(run).startswith("damaged: verdict.json is not ours: ")


CHANGES: tuple[tuple[str, tuple[str | int, ...], Any], ...] = (
    ("plan.json", ("name",), None),
    ("plan.json", ("seed",), "seven"),
    ("plan.json", ("nodes",), 1 << 64),
    ("plan.json", ("faults",), "kill"),
    ("verdict.json", ("checks",), {}),
    ("verdict.json", ("checks", 0, "result"), "maybe"),
    ("verdict.json", ("checks", 0, "checker"), 3),
    ("verdict.json", ("checks", 0, "witnesses"), [{"rule": "r", "events": None}]),
    ("verdict.json", ("checks", 0, "witnesses"), [{"rule": "r", "events": [1 << 63]}]),
    ("verdict.json", ("evidence", "ok"), "many"),
    ("verdict.json", ("violations",), "quorum"),
)


@pytest.mark.parametrize(("name", "path", "value"), CHANGES)
def test_a_field_of_another_type_is_named(
    whole: Path, tmp_path: Path, name: str, path: tuple[str | int, ...], value: Any
) -> None:
    """If it failed, sums would lack such a run without a word, or the whole analysis break off."""
    run = copied(whole, tmp_path)
    change(run / name, path, value)
    assert why(run).startswith(f"damaged: {name} is not ours: ")


def _shorter(data: bytes, at: int) -> bytes:
    return data[: at % len(data)]


def _other_byte(data: bytes, at: int) -> bytes:
    at %= len(data)
    return data[:at] + bytes([data[at] ^ 0x80]) + data[at + 1 :]


def _without_a_line(data: bytes, at: int) -> bytes:
    lines = data.splitlines(keepends=True)
    del lines[at % len(lines)]
    return b"".join(lines)


def _a_line_twice(data: bytes, at: int) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join([*lines, lines[at % len(lines)]])


KINDS = {
    "history.jsonl": (_shorter, _other_byte, _without_a_line, _a_line_twice),
    "history.parquet": (_shorter, _other_byte),
    **dict.fromkeys(DOCUMENTS, (_shorter,)),
}


@given(
    at=st.integers(0, 1 << 20),
    damaged=st.sampled_from([(name, damage) for name, kinds in KINDS.items() for damage in kinds]),
)
@examples.up_to(25)
def test_damage_of_a_run_without_hashes_is_named(
    whole: Path,
    tmp_path_factory: pytest.TempPathFactory,
    at: int,
    damaged: tuple[str, Callable[[bytes, int], bytes]],
) -> None:
    """If it failed, a damaged record would give rows without fingerprints, or a job of Spark break off for all runs."""
    run = copied(whole, tmp_path_factory.getbasetemp())
    name, damage = damaged
    content = (run / name).read_bytes()
    (run / name).write_bytes(damage(content, at))
    if damage is _shorter and at % len(content) == len(content) - 1:
        return  # only the last newline is missing
    assert why(run).startswith(("damaged: ", "half-written: "))


def test_what_is_no_file_at_all_is_named(whole: Path, tmp_path: Path) -> None:
    """If it failed, one such entry would end the analysis of all runs."""
    for name in (*DOCUMENTS, "history.jsonl", "history.parquet", "hashes.json"):
        run = copied(whole, tmp_path, is_early=name != "hashes.json")
        (run / name).unlink()
        (run / name).mkdir()
        assert why(run), name


def test_columns_of_other_types_are_named(whole: Path, tmp_path: Path) -> None:
    """If it failed, Spark would break off at them, for all runs."""
    import pyarrow
    import pyarrow.parquet

    run = copied(whole, tmp_path)
    table = pyarrow.parquet.read_table(run / "history.parquet").replace_schema_metadata({})
    odd = table.set_column(0, "index", table["index"].cast(pyarrow.string()))
    pyarrow.parquet.write_table(odd, run / "history.parquet")
    assert "expected int64 in the column index, got string" in why(run)


def test_one_damaged_run_leaves_the_others(whole: Path, tmp_path: Path) -> None:
    """If it failed, nothing would be known of a night in which one file was spoilt."""
    run = copied(whole, tmp_path)
    (run / "verdict.json").write_text("[" * 100_000)
    shutil.copytree(whole, run.with_name(f"{whole.name}-2"))
    found, broken = usable(scan(run.parents[1]).runs, lambda name: True)
    assert [each.path.name for each in found] == [f"{whole.name}-2"] and len(broken) == 1
