"""What the page says of the seeded bugs that a run's checks are known to find."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.pages import material
from harness.pages.known_finds import known_finds
from harness.systems import system_of
from harness.systems.finds import Find, finds_of

MEASURED = ("qsync", "twophase", "txlog")


def read(folder: Path, system: str, *checks: str, outcome: str = "valid") -> material.Material:
    folder.mkdir(exist_ok=True)
    (folder / "plan.json").write_text(json.dumps({"system": system}))
    verdict: dict[str, Any] = {
        "outcome": outcome,
        "checks": [{"checker": each, "result": "valid"} for each in checks],
    }
    (folder / "verdict.json").write_text(json.dumps(verdict))
    return material.read(folder)


@pytest.mark.parametrize("system", MEASURED)
def test_every_seeded_bug_was_hunted(system: str) -> None:
    """If it failed, a page would be silent about a bug, or name one that no longer exists."""
    assert set(finds_of(system)) == set(system_of(system).bugs())


def test_a_bug_that_only_other_checks_find_is_told_apart(tmp_path: Path) -> None:
    """If it failed, a run without the check `linearizable` would look as if it could find a stale read."""
    known = known_finds(read(tmp_path, "qsync", "quorum", "early-timeout"))
    assert known is not None
    assert [check for check, _ in known.rows] == ["quorum", "early-timeout"]
    assert dict(known.rows)["early-timeout"] == "timers-by-wall-clock"
    elsewhere = dict(known.elsewhere)
    assert elsewhere["definite-timeout"] == "linearizable"
    assert "timers-by-wall-clock" not in elsewhere
    found = {bug for _, bugs in known.rows for bug in bugs.split(", ")}
    assert found | set(elsewhere) | set(known.missed) == set(finds_of("qsync"))
    assert known.note == ""


@pytest.mark.parametrize(
    "idle", [{"result": "valid", "details": {"vacuous": True}}, {"result": "unknown", "details": {}}]
)
def test_a_check_that_judged_nothing_finds_nothing(tmp_path: Path, idle: dict[str, Any]) -> None:
    """If it failed, a run without a timeout would claim that it could have found timers by the wrong clock."""
    folder = tmp_path / "run"
    read(folder, "qsync", "quorum")
    verdict = json.loads((folder / "verdict.json").read_text())
    verdict["checks"].append({"checker": "early-timeout", **idle})
    (folder / "verdict.json").write_text(json.dumps(verdict))
    known = known_finds(material.read(folder))
    assert known is not None
    assert [check for check, _ in known.rows] == ["quorum"]
    assert dict(known.elsewhere)["timers-by-wall-clock"] == "early-timeout"


def test_a_real_system_has_the_finds_of_its_reference(tmp_path: Path) -> None:
    """If it failed, a page of real Tarantool would claim that bugs were found in it."""
    known = known_finds(read(tmp_path, "tarantool", "linearizable"))
    assert known is not None
    assert known.note == "They are bugs of the reference node qsync, not of tarantool."


def test_the_page_of_an_anomaly_has_no_such_list(tmp_path: Path) -> None:
    """If it failed, the names of seeded bugs would stand beside an anomaly that none of them caused."""
    assert known_finds(read(tmp_path, "qsync", "linearizable", outcome="anomaly")) is None


@pytest.mark.parametrize("system", ["./mine.py", "", "no-such-system"])
def test_nothing_is_known_of_other_systems(tmp_path: Path, system: str) -> None:
    """If it failed, the page of a store that somebody brings could not be written."""
    assert known_finds(read(tmp_path, system, "linearizable")) is None


def test_a_file_that_a_history_names_is_not_run(tmp_path: Path) -> None:
    """If it failed, the page of somebody's history would run a file of this machine, and end with it."""
    store = tmp_path / "store.py"
    store.write_text("raise SystemExit(3)")
    verdict = {"outcome": "valid", "run": {"system": str(store)}}
    assert known_finds(material.read(tmp_path, verdict)) is None


def test_half_of_the_finds_is_half(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If it failed, two bugs found after 1 and 50 seeds would read as "half within 50", or a first measurement without
    finds would cost the page."""
    known = read(tmp_path, "qsync", "quorum")
    for finds, words in (
        (
            {"a": Find(seeds=1, by=("quorum",)), "b": Find(seeds=50, by=("quorum",))},
            "found 2 of 2: half of them within 1 seed,",
        ),
        ({"a": Find(seeds=9)}, "found none of 1 seeded bugs."),
    ):
        monkeypatch.setattr("harness.pages.known_finds.finds_of", lambda name, finds=finds: finds)
        shown = known_finds(known)
        assert shown is not None and words in shown.sentence


def test_a_bug_stands_in_one_list(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If it failed, a bug that no check here finds would stand among those that one does, or the sentence would count
    finds of other checks as those of this run."""
    finds = {
        "here": Find(seeds=1, by=("quorum", "audit")),
        "there": Find(seeds=50, by=("linearizable", "audit")),
        "nowhere": Find(seeds=99),
    }
    monkeypatch.setattr("harness.pages.known_finds.finds_of", lambda name: finds)
    known = known_finds(read(tmp_path, "qsync", "quorum", "prefix"))
    assert known is not None
    assert known.rows == (("quorum", "here"),)
    assert known.elsewhere == (("there", "linearizable, audit"),)
    assert known.missed == ("nowhere",)
    assert (
        "found 2 of 3: half of them within 1 seed, the last after 50. Checks of this run found 1"
        in known.sentence
    )
    monkeypatch.setattr("harness.pages.known_finds.finds_of", lambda name: {})
    assert known_finds(read(tmp_path, "qsync", "quorum")) is None
