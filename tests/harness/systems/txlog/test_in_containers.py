"""Seeded bugs of the TxLog in containers: found by the checks of the logs, and by the right one."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import main
from nodes.txlog import bugs
from tests import needs

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    found = needs.docker()
    yield found
    found.close()


@pytest.mark.parametrize(
    ("bug", "words"),
    [
        ("own-value", ("--faults", "none", "--time-limit", "3")),
        (
            "rejoin-with-duplicates",
            ("--faults", "halves", "--time-limit", "5", "--strategy", "simple", "--workload", "set"),
        ),
    ],
)
def test_a_bug_is_found_by_the_check_that_it_names(
    client: Any, tmp_path: Path, bug: str, words: tuple[str, ...]
) -> None:
    """If it failed, masters in containers could do anything, or their logs would not come to the checks."""
    asked = ("--system", "txlog", "--cluster", "docker", "--bug", bug, *words, "--rate", "60", "--seed", "1")
    printed = io.StringIO()
    with redirect_stdout(printed):
        main(["run", *asked, "--json", "--results", str(tmp_path)])
    verdict = json.loads(printed.getvalue())
    assert {*bugs.bug(bug).checkers} <= {*verdict["violations"]}, verdict["sentence"]
