"""Helpers of the tests of runs in containers."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from harness.cli.main import main


def run(folder: Path, *words: str) -> dict[str, Any]:
    printed = io.StringIO()
    with redirect_stdout(printed):
        main(["run", "--cluster", "docker", *words, "--json", "--results", str(folder)])
    verdict: dict[str, Any] = json.loads(printed.getvalue())
    return verdict


def lines_of(verdict: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The record of a run, without its header."""
    yield from map(json.loads, (Path(verdict["folder"]) / "history.jsonl").read_text().splitlines()[1:])


CUTS = (
    "--system",
    "twophase",
    "--nodes",
    "5",
    "--workload",
    "restore",
    "--rate",
    "60",
    "-o",
    "cut_every_s=1",
)


def cut_checks(verdict: dict[str, Any]) -> dict[str, str]:
    return {
        each["checker"]: each["result"] for each in verdict["checks"] if each["checker"].startswith("cuts-")
    }
