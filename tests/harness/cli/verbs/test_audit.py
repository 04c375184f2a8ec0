"""`qsync audit` of a run: the same logs are looked at as when it was judged."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
import pytest

from harness.faults.fault import Fault
from harness.faults.table import FAULTS
from harness.plan.plan import SECOND_NS, Drawn, to_json
from harness.systems.qsync import starts
from tests.harness.cli.verbs.conftest import Qsync
from tests.harness.runs import drawn_out, small


@pytest.mark.long
def test_the_log_of_who_has_left_is_left_out(qsync: Qsync, tmp_path: Path, results: Path) -> None:
    """Broken, a node that left and never heard of a rollback is said to contradict the others."""
    plan = small(faults=("membership",), nodes=4, time_limit_s=4.0, rate=60.0, seed=3)
    gone = msgspec.convert(
        {
            "id": 0,
            "name": "remove-node",
            "does": FAULTS["remove-node"].does,
            "at_ns": SECOND_NS,
            "until_ns": 2 * SECOND_NS,
            "nodes": ("n4",),
        },
        Fault,
    )
    drawn = drawn_out(plan).drawn
    assert drawn is not None
    plan = msgspec.structs.replace(plan, drawn=Drawn(faults=(gone,), operations=drawn.operations))
    file = tmp_path / "plan.json"
    file.write_bytes(to_json(plan))
    run = qsync("run", "--plan", file)
    assert "again" in run.out
    audit = json.loads(qsync("audit", results / "latest", "--json").out)
    logs, *_ = audit["checks"]
    assert "logs of 3 nodes" in logs["summary"]


def test_the_line_that_audits_again_has_the_rules(qsync: Qsync, tmp_path: Path) -> None:
    """If it failed, logs without a plan would be audited again by other rules, with another outcome."""
    start = next(Path(starts.__file__).parent.glob("*/*.xlog"))
    folder = tmp_path / "two words"
    (folder / "n1").mkdir(parents=True)
    shutil.copy(start, folder / "n1")
    words = ("--promotes", "at-once", "--no-votes", "--quorum", "1")
    assert qsync("audit", folder, *words).out.splitlines()[-1] == (
        f"again   ./qsync audit '{folder}' --promotes at-once --no-votes --quorum 1"
    )
    assert qsync("audit", folder).out.splitlines()[-1] == f"again   ./qsync audit '{folder}'"
