"""Real Tarantool as a system under test: what is refused, what it is told, and whole runs against it."""

from __future__ import annotations

import io
import json
import re
import shutil
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from checkers.history import Event, Header, History
from harness.cli.main import main
from harness.cluster.faketime_files import SHARED
from harness.errors import WrongUse
from harness.judge.promised import checks_of
from harness.plan.plan import Plan
from harness.run.assemble import parts_of
from harness.run.draw import faults_of
from harness.systems.plans import from_json, planned
from harness.systems.tarantool.system import Tarantool
from tests import needs
from tests.harness.in_effect import TRIES

TARANTOOL = Tarantool()
NOBODY = "Incorrect value for option 'replication': failed to connect to one or more replicas"


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (planned(system="tarantool", cluster="sim"), "cannot run in the simulator"),
        (planned(system="tarantool", bugs=("typo",)), "no seeded bugs"),
        (planned(system="tarantool", read="linearizable"), "no read mode 'linearizable'"),
        (planned(system="tarantool", configuration="D"), "no configuration D"),
        (
            planned(system="tarantool", faults=("slow-disk",)),
            "'slow-disk' has no effect; try: --wal-mode fsync",
        ),
    ],
)
def test_what_it_cannot_do_is_refused(plan: Plan, words: str) -> None:
    """If it failed, a run would claim what 2.6 has not."""
    with pytest.raises(WrongUse) as refused:
        TARANTOOL.validate(TARANTOOL.completed(plan))
    assert words in refused.value.message


@pytest.mark.parametrize("letter", ["H", "h", "synchronous-promote"])
def test_the_default_of_qsync_is_refused_if_a_user_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], letter: str
) -> None:
    """If it failed, a run of another configuration would be taken for one of H, which Tarantool has not."""
    words = [
        "run",
        "--system",
        "tarantool",
        "--cluster",
        "docker",
        "--write-plan",
        str(tmp_path / "plan.json"),
    ]
    assert main([*words, "--configuration", letter]) == 64
    assert "Tarantool has no configuration H; try: --configuration B" in capsys.readouterr().err
    assert main(words) == 0


def test_every_node_knows_all_members_and_the_first_master() -> None:
    """If it failed, two nodes would bootstrap clusters of their own."""
    configurations = TARANTOOL.configurations(TARANTOOL.completed(planned(system="tarantool")), ("register",))
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


SETTLED = {"role": "replica", "limbo": 0, "following": ["n9"], "vclock": {"1": 3}}


@pytest.mark.parametrize(
    ("other", "settled"),
    [
        ({}, True),
        ({"role": "owner"}, False),
        ({"limbo": 1}, False),
        ({"following": []}, False),
        ({"vclock": {"1": 2}}, False),
    ],
)
def test_settled_means_one_master_and_equal_logs(other: dict[str, object], settled: bool) -> None:
    """If it failed, final reads would be taken of nodes that still change, and lag be called divergence."""
    assert TARANTOOL.is_settled({"n1": {**SETTLED, "role": "owner"}, "n2": {**SETTLED, **other}}) == settled
    assert not TARANTOOL.is_settled({"n1": SETTLED, "n2": SETTLED}), "nobody leads"


STAMP = "2026-11-21 14:20:57.531 [12931] main/103/node.lua F> "


@pytest.mark.parametrize(
    ("how", "words", "is_refusal"),
    [
        (
            "exit 1",
            "can't initialize storage: Can't modify data because this instance is in read-only mode.",
            True,
        ),
        ("exit 1", f"can't initialize storage: {NOBODY}", True),
        ("exit 1", "can't initialize storage: Unknown request type 40", False),
        ("exit 1", "can't create a new space before snapshot recovery", False),
        ("signal 6", f"can't initialize storage: {NOBODY}", False),
    ],
)
def test_a_newcomer_whom_nobody_can_take_in_has_not_crashed(how: str, words: str, is_refusal: bool) -> None:
    """If it failed, a cluster without a master would be accused of a crash, or a crash be excused."""
    line = STAMP + words
    assert TARANTOOL.members.cannot_join(how, ("something before", line)) == (line if is_refusal else "")


def test_what_a_node_said_in_a_life_before_excuses_no_crash() -> None:
    """If it failed, a node that once found nobody to join, and joined later, could crash and nobody would be told."""
    before = f"{STAMP}can't initialize storage: {NOBODY}"
    assert TARANTOOL.members.cannot_join("exit 1", (before, f"{STAMP}failed to write to disk")) == ""
    assert (
        TARANTOOL.members.cannot_join("exit 1", (f"{STAMP}failed to write to disk", before, "the end"))
        == before
    )


def test_of_sets_the_elements_are_judged_and_not_their_rows() -> None:
    """If it failed, a divergence would be told in keys that no client named, and nobody would see who wrote them."""
    plan = TARANTOOL.completed(planned(system="tarantool", workload="set"))
    state = {"type": "info", "process": "monitor", "f": "state", "value": {"up": True, "vclock": {"1": 9}}}
    lines: list[dict[str, Any]] = [{**state, "node": node} for node in ("n1", "n2", "n1", "n2")]
    for node, rows in (("n1", []), ("n2", [[70000000005, "s7"]])):
        dump = {"process": len(lines), "f": "dump", "node": node, "phase": "final"}
        lines += [{"type": "invoke", **dump}, {"type": "ok", **dump, "value": {"spaces": {"set": rows}}}]
    events = [Event(index=index, time_ns=index, **line) for index, line in enumerate(lines)]
    (check,) = [each for each in checks_of(plan, TARANTOOL.promise(plan)) if each.name == "replication"]
    (witness,) = check.run(History.of(Header(nodes=("n1", "n2")), events)).witnesses
    assert (witness.key, witness.explanation[0]) == ("s7", "s7 of set: n1 lacks 5")


def _run(folder: Path, *words: str) -> tuple[int, dict[str, Any]]:
    printed = io.StringIO()
    with redirect_stdout(printed):
        code = main(["run", "--system", "tarantool", *words, "--json", "--results", str(folder)])
    return code, json.loads(printed.getvalue())


def _of(verdict: dict[str, Any], checker: str) -> dict[str, Any]:
    found: dict[str, Any] = next(check for check in verdict["checks"] if check["checker"] == checker)
    return found


@pytest.mark.real
@needs.tarantool
def test_a_calm_run_is_clean(tmp_path: Path) -> None:
    """If it failed, nothing that the harness says of a real server could be believed."""
    words = ("--faults", "none", "--time-limit", "4", "--seed", "1", "--synchro-timeout", "60")
    # A busy machine must not look like a lost quorum, but may leave too few operations.
    for _ in range(TRIES):
        code, verdict = _run(tmp_path, *words)
        assert verdict["violations"] == [], verdict["sentence"]
        if verdict["outcome"] == "valid":
            break
    assert (code, verdict["outcome"]) == (0, "valid"), verdict["sentence"]
    found = {finding["checker"] for finding in verdict["findings"]}
    assert found <= {"audit"}, verdict["findings"]  # 2.6.0 writes CONFIRMs twice
    assert set(_of(verdict, "audit")["details"]["breaches"]) <= {"confirm-not-increasing"}
    folder = Path(verdict["folder"])
    assert all(list(folder.glob(f"nodes/{node}/*.xlog")) for node in ("n1", "n2", "n3"))


@pytest.mark.real
@needs.tarantool
def test_members_leave_and_come(tmp_path: Path) -> None:
    """If it failed, no run would tell what real Tarantool does while its members change."""
    words = (
        "--faults",
        "membership",
        "--time-limit",
        "14",
        "--seed",
        "3",
        "--rate",
        "50",
        "--synchro-timeout",
        "60",
    )
    done: set[str] = set()
    for _ in range(TRIES):
        verdict = _run(tmp_path, *words)[1]
        assert set(verdict["violations"]) <= {"crash"}  # 2.6.0 ends if a CONFIRM comes while it joins
        done |= {
            each["name"] for each in verdict["evidence"]["faults"] if each["took_effect"] and each["healed"]
        }
        if {"remove-node", "add-node"} <= done:
            break
    assert {"remove-node", "add-node"} <= done, verdict["sentence"]


@pytest.mark.real
@needs.tarantool
def test_another_binary_takes_over_the_data(tmp_path: Path) -> None:
    """If it failed, an upgrade of a real server would start the binary that was there, or lose what it had."""
    older = tmp_path / "tarantool-2.6.9"
    data = Path(shutil.which("tarantool") or "").read_bytes()
    older.write_bytes(data.replace(b"2.6.0-0-g", b"2.6.9-0-g"))  # the same server under another number
    older.chmod(0o755)
    words = ("--faults", "rolling-upgrade", "--node-from", str(older), "--time-limit", "40", "--seed", "3")
    verdict = _run(tmp_path, *words, "--rate", "30", "--synchro-timeout", "60")[1]
    assert [each["took_effect"] and each["healed"] for each in verdict["evidence"]["faults"]] == [True] * 3
    told = {row["version"].split("-")[0] for row in verdict["versions"]}
    assert told == {"2.6.9", "2.6.0"}
    assert verdict["violations"] == []


PLANS = Path(__file__).parents[4] / "docs" / "findings" / "plans"


def test_every_stored_plan_is_one_and_stands_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, somebody who follows the page would get an error instead of what was found, or miss a plan."""
    monkeypatch.setattr("harness.systems.tarantool.system.program", lambda: "/usr/bin/tarantool")
    page = (PLANS.parent / "tarantool-2.6.0.md").read_text()
    for path in sorted(PLANS.iterdir()):
        parts = parts_of(from_json(path.read_bytes(), str(path)))
        assert (parts.plan.system, parts.plan.expectations.configuration, parts.plan.cluster) == (
            "tarantool",
            "B",
            "local",
        )
        assert faults_of(parts.plan, parts.system), path
        assert f"plans/{path.name}" in page, path


@pytest.mark.real
@needs.tarantool
@pytest.mark.parametrize(
    ("plan", "violations", "findings"),
    [
        ("stale-reads", set(), {"staleness"}),
        ("overruled-rollback", {"replication"}, {"overruled", "staleness"}),
        ("crash", {"crash"}, set()),
    ],
)
def test_a_stored_plan_raises_again_what_was_found(
    tmp_path: Path, plan: str, violations: set[str], findings: set[str]
) -> None:
    """If it failed, the page of findings would tell of what nobody can see, or a checker would have gone blind."""
    # Each was raised by ten of ten runs; when a machine is late, a run may miss the moment.
    for _ in range(TRIES):
        verdict = _run(tmp_path, "--plan", str(PLANS / f"{plan}.json"))[1]
        told = {finding["checker"] for finding in verdict["findings"]}
        if violations <= set(verdict["violations"]) and findings <= told:
            break
    assert violations <= set(verdict["violations"]), verdict["sentence"]
    assert findings <= told, verdict["findings"]
    if plan == "crash":
        (crash,) = [check for check in verdict["checks"] if check["checker"] == "crash"]
        assert any("txn_limbo" in line for line in crash["witnesses"][0]["explanation"])


@pytest.mark.real
@needs.tarantool
@needs.faketime
def test_killed_nodes_leave_nothing_in_shared_memory(tmp_path: Path) -> None:
    """If it failed, each kill would leave two files in the memory of the machine, until it has none."""
    verdict = _run(tmp_path, "--faults", "kill", "--time-limit", "10", "--seed", "4", "--rate", "30")[1]
    assert any(each["took_effect"] for each in verdict["evidence"]["faults"])
    said = "".join(path.read_text() for path in Path(verdict["folder"]).glob("nodes/*/tarantool.log"))
    pids = set(re.findall(r"^\S+ \S+ \[(\d+)\] main", said, re.MULTILINE))
    assert len(pids) > 3, "a node was started again"
    assert not pids & {path.name.rpartition("_")[2] for path in SHARED.glob("*faketime*")}
