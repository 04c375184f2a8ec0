"""Real Tarantool as a system under test: what is refused, what it is told, and whole runs against it."""

from __future__ import annotations

import io
import json
import shutil
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import main
from harness.errors import WrongUse
from harness.plan import Plan
from harness.systems.tarantool import Tarantool

TARANTOOL = Tarantool()


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (Plan(cluster="sim"), "cannot run in the simulator"),
        (Plan(bugs=("typo",)), "no seeded bugs"),
        (Plan(read="linearizable"), "no read mode 'linearizable'"),
        (Plan(configuration="F"), "no configuration F"),
    ],
)
def test_what_it_cannot_do_is_refused(plan: Plan, words: str) -> None:
    """If it failed, a run would claim what 2.6 has not."""
    with pytest.raises(WrongUse) as refused:
        TARANTOOL.validate(TARANTOOL.completed(plan))
    assert words in refused.value.message


def test_every_node_knows_all_members_and_the_first_master() -> None:
    """If it failed, two nodes would bootstrap clusters of their own."""
    configurations = TARANTOOL.configurations(Plan(), ("register",))
    decoded = {name: json.loads(data) for name, data in configurations.items()}
    assert {each["owner"] for each in decoded.values()} == {"n1"}
    assert len({each["replicaset_uuid"] for each in decoded.values()}) == 1
    assert len({each["instance_uuid"] for each in decoded.values()}) == 3
    spaces = {space["name"]: space["is_sync"] for space in decoded["n1"]["spaces"]}
    assert spaces == {"register": True, "notes": False}


def test_the_master_of_the_newest_generation_takes_the_writes() -> None:
    """If it failed, clients would keep to an old master that was cut off."""
    statuses = {"n1": {"role": "owner", "term": 1}, "n2": {"role": "owner", "term": 2}, "n3": None}
    assert TARANTOOL.owner_now(statuses) == "n2"


def _run(folder: Path, *words: str) -> tuple[int, dict[str, Any]]:
    printed = io.StringIO()
    with redirect_stdout(printed):
        code = main(["run", "--system", "tarantool", *words, "--json", "--results", str(folder)])
    return code, json.loads(printed.getvalue())


@pytest.mark.real
@pytest.mark.skipif(shutil.which("tarantool") is None, reason="no `tarantool` on PATH")
def test_a_calm_run_is_clean(tmp_path: Path) -> None:
    """If it failed, nothing that the harness says of a real server could be believed."""
    code, verdict = _run(tmp_path, "--faults", "none", "--time-limit", "4", "--seed", "1")
    assert (code, verdict["outcome"], verdict["findings"]) == (0, "valid", []), verdict["sentence"]
    folder = Path(verdict["folder"])
    assert all(list(folder.glob(f"nodes/{node}/*.xlog")) for node in ("n1", "n2", "n3"))
