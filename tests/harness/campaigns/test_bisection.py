"""The search, and a bisection over commits of a repository made here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.history import jsonl
from checkers.history.history import Header
from harness.campaigns.bisecting import Bisection, asked_fingerprint, between, hash_of
from harness.campaigns.bisection import Answer, confidence, first_that_shows
from harness.cli.exit_codes import ExitCode
from harness.cli.main import main
from harness.errors import StoreError
from harness.plan.plan import Plan
from harness.results import RunFolder
from tests.harness.pipeline.stored_runs import store_run

ROOT = Path(__file__).parents[3]
DECISIONS = "nodes/qsync/decisions.py"
RIGHT = "        return evaluate(quorum, max(members, 1))\n"
WRONG = "        return 1\n"
"""A quorum of one: writes of an isolated owner are acknowledged and lost."""
SHOWS_AN_ANOMALY: dict[str, Any] = {
    "time_limit_s": 6.0,
    "rate": 60.0,
    "faults": ("isolate-owner",),
    "bugs": ("confirm-early",),
}


@given(
    st.lists(st.sampled_from(["clean", "skip"]), max_size=20),
    st.lists(st.sampled_from(["shows", "skip"]), max_size=20),
)
def test_the_range_is_that_of_a_walk_from_both_ends(before: list[Answer], after: list[Answer]) -> None:
    """If it failed, a bisection would name a wrong commit, or a range that leaves the right one out."""
    answers: list[Answer] = [*before, *after, "shows"]
    asked: list[int] = []

    def ask(place: int) -> Answer:
        asked.append(place)
        return answers[place]

    found = first_that_shows(len(answers), ask)
    last_clean = max((place for place, answer in enumerate(answers) if answer == "clean"), default=-1)
    assert (found.first, found.last) == (last_clean + 1, answers.index("shows"))
    assert len(asked) == len(set(asked)) and len(answers) - 1 not in asked
    if "skip" not in answers:
        assert found.is_exact and len(asked) <= len(answers).bit_length()


def test_a_few_runs_are_no_certainty() -> None:
    """If it failed, one clean run would be taken for a proof."""
    assert confidence(1, 1, 1) == pytest.approx(2 / 3)
    assert confidence(3, 3, 3) == pytest.approx(1 - (1 / 5) ** 3)
    assert confidence(1, 3, 3) < confidence(3, 3, 3) < 1


def git(folder: Path, *words: str) -> str:
    environment = os.environ | {
        f"GIT_{who}_{what}": "t@t" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    words = ("git", "-C", str(folder), "-c", "commit.gpgsign=false", *words)
    return subprocess.run(words, check=True, capture_output=True, text=True, env=environment).stdout.strip()


def repository(folder: Path, commits: int, planted: int, broken: tuple[int, ...] = ()) -> list[str]:
    """Commits with the nodes of this checkout: `planted` brings a bug, `broken` ones do not run. The first is good."""
    shutil.copytree(ROOT / "nodes", folder / "nodes", ignore=shutil.ignore_patterns("__pycache__"))
    git(folder, "init", "-q")
    right = (folder / DECISIONS).read_text()
    assert right.count(RIGHT) == 1
    made: list[str] = []
    for number in range(commits + 1):
        text = right.replace(RIGHT, WRONG) if number >= planted else right
        (folder / DECISIONS).write_text(
            f"this does not run {number}\n" if number in broken else text + f"# {number}\n"
        )
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", f"nodes: change {number}")
        made.append(git(folder, "rev-parse", "HEAD"))
        (folder / "README").write_text(f"{number}\n")
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", f"docs: change {number}")
    return made


def anomalous_run(nodes: Path, results: Path) -> Path:
    """A run with the nodes of that folder."""
    words = [
        "run",
        "--cluster",
        "sim",
        "--time-limit",
        "8",
        "--rate",
        "100",
        "--configuration",
        "C",
        "--seed",
        "5",
    ]
    done = subprocess.run(
        [*(sys.executable, "-P", "-m", "harness.cli"), *words, "--faults", "isolate-owner", "--json"],
        capture_output=True,
        env=os.environ | {"PYTHONPATH": f"{nodes}{os.pathsep}{ROOT}", "QSYNC_RESULTS": str(results)},
        check=False,
    )
    assert done.returncode == ExitCode.ANOMALY, done.stderr
    return Path(json.loads(done.stdout)["folder"])


@pytest.fixture(scope="module")
def found_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("found")
    shutil.copytree(ROOT / "nodes", folder / "nodes", ignore=shutil.ignore_patterns("__pycache__"))
    text = (folder / DECISIONS).read_text()
    (folder / DECISIONS).write_text(text.replace(RIGHT, WRONG))
    return anomalous_run(folder, folder / "results")


@pytest.mark.parametrize(
    ("commits", "planted", "broken"),
    [
        pytest.param(4, 3, (2,), marks=pytest.mark.long),
        pytest.param(20, 13, (10, 11), marks=pytest.mark.nightly),
        pytest.param(20, 1, (), marks=pytest.mark.nightly),
        pytest.param(20, 20, (5,), marks=pytest.mark.nightly),
        pytest.param(20, 15, (14,), marks=pytest.mark.nightly),
    ],
)
def test_the_commit_of_a_planted_bug_is_found(
    tmp_path: Path,
    found_run: Path,
    capsys: pytest.CaptureFixture[str],
    commits: int,
    planted: int,
    broken: tuple[int, ...],
) -> None:
    """If it failed, a bisection would blame a commit that did nothing. A broken commit beside the planted one leaves a
    range, which has the right one.
    """
    (tmp_path / "repo").mkdir()
    made = repository(tmp_path / "repo", commits, planted, broken)
    words = [
        "bisect",
        str(found_run),
        "--repository",
        str(tmp_path / "repo"),
        "--results",
        str(tmp_path / "results"),
    ]
    code = main([*words, "--good", made[0], "--repeat", "1", "--json"])
    said = capsys.readouterr()
    told = json.loads(said.out)
    is_exact = planted - 1 not in broken
    assert (code, told["is_exact"]) == ((0, True) if is_exact else (3, False)), said.err
    assert made.index(told["first"]) == (planted if is_exact else broken[0])
    assert made.index(told["last"]) == planted
    assert (told["confidence"] == 1) == (planted == 1), "only a clean commit leaves a doubt"
    assert told["judged"][told["last"]]["answer"] == "shows"
    assert len(told["judged"]) <= 9 + len(broken)


@pytest.mark.parametrize("is_good", [True, False])
def test_an_anomaly_without_a_fingerprint_makes_no_commit_clean(
    is_good: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If it failed, a bisection would blame a commit after the one that brought the anomaly."""
    nameless = {"outcome": "anomaly", "sentence": "it is one", "fingerprints": (), "run": "bisect/1"}
    monkeypatch.setattr(Bisection, "_run", lambda self, root, seed: nameless)
    search = Bisection(Plan(cluster="sim"), "wanted", tmp_path, tmp_path, 2, lambda line: None)
    runs = search._judged_anew(tmp_path, is_good=is_good, stops=True)
    assert (runs.answer, runs.why) == ("skip", "a different anomaly: one without a fingerprint")


def test_the_run_of_a_commit_that_shows_the_anomaly_shows_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If it failed, the JSON of a bisection would send its reader to a run with another anomaly."""
    prints = ("other", "wanted", "other", "other")

    def run(self: Bisection, root: Path, seed: int) -> dict[str, object]:
        return {"outcome": "anomaly", "fingerprints": (prints[seed],), "run": f"bisect/{seed}"}

    monkeypatch.setattr(Bisection, "_run", run)
    search = Bisection(Plan(cluster="sim", seed=0), "wanted", tmp_path, tmp_path, 2, lambda line: None)
    runs = search._judged_anew(tmp_path, is_good=False, stops=False)
    assert (runs.answer, runs.run) == ("shows", "bisect/1")


def test_a_name_and_a_title_may_be_any(tmp_path: Path) -> None:
    """If it failed, a branch called like a folder, or a title with another end of a line, would end in a traceback."""
    git(tmp_path, "init", "-q")
    (tmp_path / "nodes").mkdir()
    for number in range(2):
        (tmp_path / "nodes" / "node.py").write_text(f"{number}")
        git(tmp_path, "add", "-A")
        git(tmp_path, "commit", "-q", "-m", f"one\u2028two\x0b{number}")
    git(tmp_path, "tag", "nodes")
    (commit,) = between(tmp_path, "HEAD~1", "nodes")
    assert (commit.title, commit.hash) == ("one\u2028two\x0b1", hash_of(tmp_path, "nodes"))


def test_what_cannot_be_searched_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If it failed, a slip would end in a traceback, or in hours of runs that can find nothing."""
    found_run = store_run(tmp_path, 1, **SHOWS_AN_ANOMALY)
    (tmp_path / "repo").mkdir()
    git(tmp_path / "repo", "init", "-q")
    for number in range(2):
        (tmp_path / "repo" / "README").write_text(f"{number}")
        git(tmp_path / "repo", "add", "-A")
        git(tmp_path / "repo", "commit", "-q", "-m", "docs")
    here = ("--repository", str(tmp_path / "repo"))
    valid = tmp_path / "valid"
    valid.mkdir()
    for name in ("plan.json", "history.jsonl"):
        shutil.copy(found_run / name, valid / name)
    (valid / "verdict.json").write_text('{"outcome": "valid"}')
    cases = [
        ((str(tmp_path), "--good", "HEAD"), "is no run"),
        ((str(found_run),), "Missing option '--good'"),
        ((str(valid), "--good", "HEAD"), "shows no anomaly"),
        ((str(found_run), "--good", "nix", *here), "there is no commit nix"),
        ((str(found_run), "--good", "--all", *here), "there is no commit --all"),
        ((str(found_run), "--good", "HEAD", "--bad", "HEAD~1", *here), "no ancestor"),
        ((str(found_run), "--good", "HEAD~1", *here), "changes nodes/"),
        ((str(found_run), "--good", "HEAD", "--repository", str(tmp_path / "nix")), "there is no commit"),
        (
            (str(found_run), "--good", "HEAD~1", "--fingerprint", "nix", *here),
            "--fingerprint nix: the run has",
        ),
        ((str(found_run), "--good", "HEAD~1", "--cluster", "nix", *here), "nix"),
    ]
    for words, said in cases:
        assert main(["bisect", *words]) == ExitCode.WRONG_USE
        told = capsys.readouterr()
        assert said in told.err and told.err.count("\n") == 1 and "Traceback" not in told.err, told.err


@pytest.mark.parametrize("witness", [{}, {"rule": "r"}, {"rule": "r", "events": ["a", 1]}, {"rule": "crash"}])
def test_a_damaged_verdict_is_one_line(tmp_path: Path, witness: dict[str, Any]) -> None:
    """If it failed, `qsync bisect` of a run with a damaged verdict.json would be a bug of ours."""
    check = {"checker": "x", "witnesses": [witness]}
    (tmp_path / "verdict.json").write_text(json.dumps({"outcome": "anomaly", "checks": [check]}))
    with (tmp_path / "history.jsonl").open("wb") as file:
        jsonl.Writer(file, Header())
    with pytest.raises(StoreError, match="its verdict is damaged; try: qsync check"):
        asked_fingerprint(RunFolder(tmp_path), None, may_be_foreign=False)
