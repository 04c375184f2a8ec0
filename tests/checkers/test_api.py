"""What a person types in a notebook: `import checkers` and no more."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

import checkers
from checkers import CHECKERS, Verdict
from checkers.history import HistoryError, foreign

FILE = Path(__file__).parent / "histories" / "porcupine" / "etcd_002.log"
LISTS = b"[{:type :ok :value [[:append :x 1]]} {:type :ok :value [[:r :x [1]]]}]"
BALANCES = b"{:type :invoke :process 0 :f :read} {:type :ok :process 0 :f :read :value {1 5 2 5}}"

api = cast(Any, checkers)  # that modules can be called is nothing that a type checker knows


def test_a_checker_is_called_by_its_name() -> None:
    """The line that the documentation shows would not work."""
    history = checkers.read(FILE)
    verdict = api.linearizable(history, model="cas-register", timeout_s=10.0)
    assert isinstance(verdict, Verdict)
    assert verdict.result == "valid"
    again = checkers.linearizable.check(history, model="cas-register", timeout_s=10.0)
    assert replace(verdict, seconds=again.seconds) == again
    assert api.sessions(history, guarantee="read-your-writes").result == "unknown"  # values are written twice
    assert api.judge(history, "cas-register").strongest == "linearizable"


def test_other_families_as_well() -> None:
    """Each family would have to be called in another way."""
    lists = foreign.parse(LISTS)
    assert api.transactional(lists, workload="append", model="serializable").result == "valid"
    assert api.domain.bank(foreign.parse(BALANCES), total=10).result == "valid"
    assert api.crash(lists).checker == "crash"


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    """Nonsense would be judged."""
    (tmp_path / "page.html").write_text("<html>")
    with pytest.raises(HistoryError):
        checkers.read(str(tmp_path / "page.html"))


def test_names_are_those_of_the_verdicts() -> None:
    """A verdict could not be traced to who gave it."""
    history = foreign.parse(BALANCES)
    for name in ("bank", "set-full", "counter", "coherence", "staleness", "rollback-honesty"):
        assert checkers.run_safely(CHECKERS[name], history, name=name).checker == name
    with pytest.raises(AttributeError, match="no attribute 'soothsayer'"):
        api.soothsayer  # noqa: B018  # the look is what is tested


def test_importing_costs_little() -> None:
    """Every command would wait for what it does not need."""
    asked = "import sys, checkers; print([name for name in ('numba', 'pyarrow') if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
