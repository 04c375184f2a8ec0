"""Checks on Spark say what checks in process say."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from checkers import linearizable
from checkers.history import Header, History, parquet
from checkers.history.operation import Event
from harness.pipeline import checking, spread
from harness.results import RunFolder
from harness.run.finish import finish, judged_again
from harness.systems.plans import planned, read
from tests.harness.pipeline.stored_runs import store_run
from tests.harness.stored import BEFALLS, Kind, stored

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checked")
    store_run(folder, 1, time_limit_s=6.0)
    store_run(folder, 3, name="bugs", time_limit_s=10.0, bugs=("confirm-early",), faults=("isolate-owner",))
    return folder


def runs(results: Path) -> list[Path]:
    return sorted(path.parent for path in results.glob("[bn]*/*/plan.json"))


DIFFERENT = ("seconds", "proofs", "decided_without_proof", "decided_by", "configurations_max")


def without_times(found: Any) -> Any:
    """A verdict as it is on disk, but for how long it took, and the proofs that only one of the ways keeps."""
    if isinstance(found, dict):
        return {name: without_times(value) for name, value in found.items() if name not in DIFFERENT}
    if isinstance(found, list | tuple):
        return [without_times(each) for each in found]
    return found


@pytest.mark.parametrize("segment", [checking.SEGMENT, 40])
def test_a_run_has_the_same_verdict_and_witnesses_by_keys_and_by_segments(
    spark: Any, results: Path, segment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a verdict would depend on where it was computed."""
    monkeypatch.setattr(checking, "SEGMENT", segment)
    outcomes = []
    for path in runs(results):
        folder = RunFolder(path)
        plain = without_times(finish(folder, read(folder.plan_file)))
        assert without_times(checking.check_run(spark, folder)) == plain
        outcomes.append(plain["outcome"])
    assert outcomes == ["anomaly", "valid"]


def test_many_runs_are_judged_and_written_by_the_workers(spark: Any, results: Path) -> None:
    """If it failed, a campaign that is judged again on Spark would keep old verdicts."""
    before = {}
    for path in runs(results):
        before[path] = msgspec.json.decode((path / "verdict.json").read_bytes())
        (path / "verdict.json").unlink()
    missing = results / "nowhere"
    found = dict(checking.check_runs(spark, [*before, missing]))
    assert found.pop(missing)["exit_code"] == 64
    for path, verdict in before.items():
        assert found[path] == {name: verdict[name] for name in ("outcome", "exit_code", "sentence")}
        again = msgspec.json.decode((path / "verdict.json").read_bytes())
        assert without_times(again) == without_times(verdict)


def test_stored_runs_of_all_kinds_have_the_outcome_on_spark_that_they_have_without(
    spark: Any, tmp_path: Path
) -> None:
    """If it failed, a verdict would depend on the engine where logs are missing, torn or wrong, or the record is."""
    plan = planned(cluster="sim", time_limit_s=2.0, rate=60.0, faults=("none",), seed=5)
    found = [run for _, run in stored(tmp_path, (Kind("sound", plan, BEFALLS),))]
    plain = [judged_again(run.path) for run in found]
    assert len({each["outcome"] for each in plain}) == 4
    for run in found:
        (run.path / "verdict.json").unlink(missing_ok=True)
    assert [told for _, told in checking.check_runs(spark, [run.path for run in found])] == plain
    for run, told in zip(found, plain, strict=True):
        assert (run.read_verdict_outcome() or "inconclusive") == told["outcome"]


def big_record(path: Path, *, lie: bool) -> None:
    """A parquet record of many registers; with a lie, one read shows a value that is gone."""
    from bench.big_histories import write

    write(path, 6_000, 40)
    if lie:
        history = parquet.read(path)
        events = list(history.events)
        first = next(event for event in events if event.f == "write" and event.type == "ok")
        late = next(
            event
            for event in reversed(events)
            if event.f == "read" and event.type == "ok" and event.key == first.key
        )
        events[late.index] = Event(
            **{**{name: getattr(late, name) for name in Event.__struct_fields__}, "value": first.value}
        )
        parquet.write(path, type(history).of(history.header, events))


@pytest.mark.parametrize("lie", [False, True])
def test_a_big_record_is_decided_as_in_process(spark: Any, tmp_path: Path, lie: bool) -> None:
    """If it failed, the way for fifty million operations would say something else than the one for a thousand."""
    path = tmp_path / "history.parquet"
    big_record(path, lie=lie)
    found = spread.check_parquet(spark, path)
    plain = linearizable.check(parquet.read(path))
    assert found is not None
    assert (found.verdict.result, found.verdict.witnesses) == (plain.result, plain.witnesses)
    assert found.verdict.result == ("invalid" if lie else "valid")
    same = ("keys", "operations", "observations", "keys_invalid", "keys_undecided", "reads_not_judged")
    assert {name: found.verdict.details[name] for name in same} == {
        name: plain.details[name] for name in same
    }
    assert found.verdict.summary == plain.summary
    exact = exact_quantiles(path)
    for f, quantiles in exact.items():
        for name, value in quantiles.items():
            assert value <= found.quantiles_ms[f][name] <= value * 1.012


def exact_quantiles(path: Path) -> dict[str, dict[str, float]]:
    from checkers.replicas.availability import quantiles_ms

    by_f: dict[str, list[int]] = {}
    for each in parquet.read(path).operations:
        if each.type == "ok" and each.complete_ns is not None:
            by_f.setdefault(each.f, []).append(each.complete_ns - each.invoke_ns)
    return {f: quantiles_ms(times) for f, times in by_f.items()}


def test_what_columns_cannot_hold_is_left_to_the_check_in_process(spark: Any, tmp_path: Path) -> None:
    """If it failed, a record of texts would be judged as if it had no values."""
    path = tmp_path / "history.parquet"
    big_record(path, lie=False)
    history = parquet.read(path)
    events = list(history.events)
    events[0] = Event(
        **{**{name: getattr(events[0], name) for name in Event.__struct_fields__}, "value": "text"}
    )
    parquet.write(path, type(history).of(history.header, events))
    assert spread.check_parquet(spark, path) is None


@pytest.mark.parametrize("lines", [0, 1])
def test_a_record_without_operations_is_judged_as_in_process(spark: Any, tmp_path: Path, lines: int) -> None:
    """If it failed, the record of a run that broke off before its load would end in a traceback."""
    path = tmp_path / "history.parquet"
    told = Event(index=0, time_ns=1, type="info", process="harness", f="settled", value=False)
    parquet.write(path, History.of(Header(), [told][:lines]))
    found = spread.check_parquet(spark, path)
    plain = linearizable.check(parquet.read(path))
    assert found is not None
    assert (found.verdict.result, found.verdict.summary) == (plain.result, plain.summary)
    assert found.verdict.details == plain.details


def steps(*operations: tuple[str, str, int | None, str | None, str | None]) -> list[Event]:
    """The events of operations one after the other: f, outcome, value, key of the invocation, of the completion."""
    return [
        Event(
            index=2 * number + half,
            time_ns=1_000 * (2 * number + half),
            process=0,
            type="invoke" if half == 0 else outcome,
            f=f,
            key=key,
            value=value if f == "write" or half else None,
        )
        for number, (f, outcome, value, *keys) in enumerate(operations)
        for half, key in enumerate(keys)
    ]


def key_of_the_task_of_no_key(tasks: int) -> str:
    """A key that goes to the same task as a missing key."""
    part = zlib.crc32(b"None") % tasks
    return next(f"r{number}" for number in range(1_000) if zlib.crc32(b"r%d" % number) % tasks == part)


@pytest.mark.parametrize("wrong", [(None,), ("None",), (None, "None")])
def test_a_missing_key_is_a_key_of_its_own(spark: Any, tmp_path: Path, wrong: tuple[str | None, ...]) -> None:
    """If it failed, a register without a key that lost a write would be valid on Spark alone."""
    path = tmp_path / "history.parquet"
    keys = (None, "None", "r1")
    writes = [("write", "ok", number, key, key) for key in keys for number in (1, 2)]
    reads = [("read", "ok", 1 if key in wrong else 2, key, key) for key in keys]
    parquet.write(path, History.of(Header(), steps(*writes, *reads)))
    assert_same_as_in_process(spark, path, keys_invalid=["None"] * len(wrong))


@pytest.mark.parametrize("shown", [1, 2])
def test_a_completion_may_leave_out_its_key(spark: Any, tmp_path: Path, shown: int) -> None:
    """If it failed, a read that proves a lost write would be dropped, and the key would be valid on Spark alone."""
    path = tmp_path / "history.parquet"
    key = key_of_the_task_of_no_key(tasks=spark.sparkContext.defaultParallelism)
    writes = [("write", "ok", number, key, None) for number in (1, 2)]
    parquet.write(path, History.of(Header(), steps(*writes, ("read", "ok", shown, key, None))))
    assert_same_as_in_process(spark, path, keys_invalid=[] if shown == 2 else [key])


def assert_same_as_in_process(spark: Any, path: Path, *, keys_invalid: list[str]) -> None:
    found = spread.check_parquet(spark, path)
    plain = linearizable.check(parquet.read(path))
    assert found is not None
    assert found.verdict.details["keys_invalid"] == plain.details["keys_invalid"] == keys_invalid
    assert (found.verdict.result, found.verdict.summary) == (plain.result, plain.summary)
    assert found.verdict.witnesses == plain.witnesses
    for name in ("keys", "operations", "observations"):
        assert found.verdict.details[name] == plain.details[name]
