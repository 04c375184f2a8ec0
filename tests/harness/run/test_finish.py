"""A run that is judged later comes to what it would have come to at once."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import msgspec
import pytest

from checkers.history import parquet
from harness.doing import now
from harness.errors import ClusterError, HarnessError, StoreError, WrongUse
from harness.plan.plan import Plan
from harness.results import RunFolder
from harness.run.assemble import parts_of
from harness.run.execute import execute
from harness.run.finish import Failure, Recorded, conclude
from harness.systems.plans import planned

ANOMALOUS = planned(
    name="later",
    cluster="sim",
    seed=1,
    time_limit_s=6.0,
    rate=150.0,
    faults=("isolate-owner",),
    bugs=("confirm-early",),
)
CALM = planned(name="later", cluster="sim", seed=3, time_limit_s=2.0, rate=100.0, faults=())


def recorded(results: Path, plan: Plan) -> str:
    return str(execute(parts_of(plan), results).folder.path)


def test_what_a_record_cannot_tell_comes_through_as_json(tmp_path: Path) -> None:
    """If it failed, a run that was broken off would be judged as one that was whole."""
    folder = recorded(tmp_path, CALM)
    through = msgspec.json.decode(msgspec.json.encode(Recorded(folder, interrupted=True)), type=Recorded)
    verdict, code = conclude(through)
    assert code == 130
    assert RunFolder(Path(folder)).read_verdict_outcome() == verdict["outcome"]
    broken = Recorded(folder, failure=Failure.of(ClusterError("node n2 did not come up")))
    verdict, code = conclude(msgspec.json.decode(msgspec.json.encode(broken), type=Recorded))
    assert (verdict["outcome"], code) == ("inconclusive", 3)
    assert any("node n2 did not come up" in each for each in verdict["evidence"]["missing"])


def test_an_anomaly_is_one_whoever_ended_its_run(tmp_path: Path) -> None:
    """If it failed, Ctrl-C or a cluster that broke would hide what was found."""
    folder = recorded(tmp_path, ANOMALOUS)
    for each in (
        Recorded(folder, interrupted=True),
        Recorded(folder, failure=Failure.of(StoreError("the disk is full"))),
    ):
        verdict, code = conclude(each)
        assert (verdict["outcome"], code) == ("anomaly", 1)


@pytest.mark.parametrize(("plan", "is_told"), [(ANOMALOUS, True), (CALM, False)])
def test_a_full_disk_hides_no_anomaly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: Plan, is_told: bool
) -> None:
    """If it failed, a run that found something would end as one that could not be kept; or a calm one as valid."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    folder = recorded(tmp_path, plan)
    monkeypatch.setattr(parquet, "write", full)
    if is_told:
        verdict, code = conclude(Recorded(folder))
        assert (verdict["outcome"], code) == ("anomaly", 1)
        assert [each["checker"] for each in verdict["findings"]][-1] == "store"
        assert RunFolder(Path(folder)).read_verdict_outcome() == "anomaly"
    else:
        with pytest.raises(StoreError, match="No space left on device"):
            conclude(Recorded(folder))
        assert RunFolder(Path(folder)).read_verdict_outcome() is None


@pytest.mark.parametrize("kind", [WrongUse, ClusterError, StoreError, HarnessError])
def test_a_failure_keeps_its_exit_code(kind: type[HarnessError]) -> None:
    """If it failed, a harness that broke would count as a run that is no evidence, or the other way round."""
    error = Failure.of(kind("why")).error()
    assert (type(error), error.message, error.exit_code) == (kind, "why", kind.exit_code)


def test_a_record_that_could_not_be_kept_is_told_in_one_line(tmp_path: Path) -> None:
    """If it failed, half a record would be judged to be fine."""
    folder = recorded(tmp_path, CALM)
    with pytest.raises(StoreError, match="no space left"):
        conclude(Recorded(folder, failure=Failure.of(StoreError("no space left"))))


def test_the_line_says_when_the_strongest_model_is_sought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, its half a minute would be put down to the last check, which takes milliseconds."""
    said: list[str] = []
    monkeypatch.setattr("harness.run.finish.strongest", lambda *_: said.append(now()))
    conclude(Recorded(recorded(tmp_path, CALM)))
    assert said == ["the strongest model that held"]
