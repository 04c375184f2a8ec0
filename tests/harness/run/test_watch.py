"""A run that is judged while it goes on: the violations of the whole record, in the memory of the keys in use."""

from __future__ import annotations

import io
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from checkers.check import run_here
from checkers.history.jsonl import parse
from checkers.history.operation import Event
from harness.judge.promised import checks_of, promise_of
from harness.plan.plan import SECOND_NS, Plan
from harness.results import RunFolder
from harness.run.assemble import header, parts_of
from harness.run.execute import execute
from harness.run.watch import LEFT_ALONE_NS, Watch, Watched
from harness.systems.plans import planned


def lines_held(watch: Watch) -> int:
    return sum(len(key.lines) for key in watch._keys.values())


def parts_judged(watch: Watch) -> int:
    """How often a key was judged."""
    return sum(map(len, watch._spilled_parts.values()))


def ended(
    folder: Path, *, fails_fast: bool = False, time_limit_s: float = 20.0, **options: object
) -> tuple[RunFolder, Plan]:
    plan = planned(cluster="sim", time_limit_s=time_limit_s, rate=40.0, **options)
    executed = execute(parts_of(plan), folder, fails_fast=fails_fast)
    return executed.folder, plan


@pytest.mark.parametrize(
    ("seed", "bugs"),
    [
        (1, ()),
        pytest.param(3, ("confirm-early",), marks=pytest.mark.long),
        pytest.param(5, ("no-fencing",), marks=pytest.mark.long),
    ],
)
def test_a_watch_finds_what_a_whole_record_shows_of_its_keys(
    tmp_path: Path, seed: int, bugs: tuple[str, ...]
) -> None:
    """Broken, a run would be ended although nothing is wrong, or go on for a day although its first minute is."""
    folder, plan = ended(tmp_path, seed=seed, bugs=bugs, time_limit_s=30.0)
    data = folder.history.read_bytes()
    whole = parse(data)
    checks = [each for each in checks_of(plan, promise_of(plan, whole)) if each.model and each.is_per_key]
    watch, most = Watch(plan, whole.header, io.BytesIO()), 0
    found = ""
    for number, line in enumerate(data.splitlines()[1:]):
        watch.take(line)
        most = max(most, lines_held(watch))
        if number % 500 == 0:
            found = found or watch.judge_finished()
    watch.take(line_of(beat(number + 1, (whole.events[-1].time_ns + LEFT_ALONE_NS) // SECOND_NS + 1)))
    found = found or watch.judge_finished()
    assert bool(found) == any(run_here(check, whole).result == "invalid" for check in checks)
    assert found or (parts_judged(watch) > 30 and most < len(whole.events) * 2 // 3)


@pytest.mark.parametrize(("shown", "is_wrong"), [(1, False), (2, True)])
def test_a_key_that_comes_again_is_judged_with_all_before(shown: int, is_wrong: bool) -> None:
    """Broken, a value of an hour ago would be one that no client wrote, or one that was never written would pass."""
    plan = planned(cluster="sim")
    watch = Watch(plan, header(parts_of(plan)), io.BytesIO())
    lines = (
        (0, "invoke", "write", 1),
        (1, "ok", "write", 1),
        (20, "invoke", "read", None),
        (21, "ok", "read", 1),
        (40, "invoke", "read", None),
        (41, "ok", "read", shown),
    )
    found = []
    for index, (at_s, type_, f, value) in enumerate(lines):
        event = Event(
            index=2 * index, time_ns=at_s * SECOND_NS, type=type_,  # type: ignore[arg-type]  # one of the four
            process=0, f=f, key="r0-1", value=value, node="n1", role="owner", mode="linearizable",
        )  # fmt: skip
        watch.take(line_of(event))
        watch.take(line_of(beat(2 * index + 1, at_s + 15)))
        found.append(bool(watch.judge_finished()))
    assert found == [False, False, False, False, False, is_wrong]
    assert (parts_judged(watch), lines_held(watch)) == (3, 0)


def line_of(event: Event) -> bytes:
    return msgspec.json.encode(event)


def beat(index: int, at_s: int) -> Event:
    """Time goes on."""
    return Event(index=index, time_ns=at_s * SECOND_NS, type="info", process="monitor", f="state", node="n1")


def test_a_run_that_fails_fast_ends_at_its_first_violation(tmp_path: Path) -> None:
    """Broken, a day of load follows a bug that showed in the first minute."""
    folder, _ = ended(tmp_path, fails_fast=True, seed=11, bugs=("confirm-early",))
    history = parse(folder.history.read_bytes())
    assert history.events[-1].time_ns < 15 * SECOND_NS
    (told,) = [event.value for event in history.events if event.f == "interrupted"]
    assert "linearizable" in told


def test_a_record_that_is_still_being_written_is_no_error(tmp_path: Path) -> None:
    """Broken, a line that is half on disk would end a run, or be lost."""
    folder, plan = ended(tmp_path, seed=3, bugs=("confirm-early",))
    data = folder.history.read_bytes()
    folder.history.unlink()
    found = ""
    with closing(Watched(folder, plan)) as watched:
        assert watched.look() == "", "the record is not there yet"
        with folder.history.open("ab", buffering=0) as file:
            for place in range(0, len(data), 29_989):
                file.write(data[place : place + 29_989])
                found = found or watched.look()
    assert found.startswith("linearizable: ")


def test_a_record_with_a_damaged_line_ends_no_run(tmp_path: Path) -> None:
    """Broken, a read would be a violation because the line of its write cannot be read."""
    folder, plan = ended(tmp_path, time_limit_s=0.1, faults=("none",))
    start, *_ = folder.history.read_bytes().splitlines(keepends=True)
    read = (
        Event(index=0, time_ns=1, type="invoke", process=0, f="read", key="r0-1", node="n1"),
        Event(
            index=1, time_ns=2, type="ok", process=0, f="read", key="r0-1", value=5, node="n1",
            role="owner", mode="linearizable",
        ),
    )  # fmt: skip
    rest = [line_of(event) + b"\n" for event in (*read, beat(2, 60))]
    folder.history.write_bytes(start + b"".join(rest))
    with closing(Watched(folder, plan)) as watched:
        assert watched.look() != "", "a read of what was never written"
    with closing(Watched(folder, plan)) as watched:
        folder.history.write_bytes(start + b"{\n")
        assert watched.look() == ""
        with folder.history.open("ab") as file:
            file.writelines(rest)
        assert watched.look() == ""


def test_a_node_that_ended_ends_a_run() -> None:
    """Broken, a day of load follows a crash, if no key is wrong."""
    plan = planned(cluster="sim")
    watch = Watch(plan, header(parts_of(plan)), io.BytesIO())
    watch.take(line_of(beat(0, 1)))
    assert watch.judge_finished() == ""
    crash = Event(
        index=1, time_ns=SECOND_NS, type="info", process="monitor", f="crash", node="n1",
        value={"node": "n1", "pid": 1, "how": "signal 11"},
    )  # fmt: skip
    watch.take(line_of(crash))
    assert watch.judge_finished().startswith("crash: ")
    assert watch.judge_finished() == "", "it is told once"
