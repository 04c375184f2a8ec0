"""The file of a campaign and its matrix."""

from __future__ import annotations

import re
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.campaigns.hunt.seeds import try_seed
from harness.campaigns.nightly import left_out
from harness.campaigns.plan import Campaign, Part, read, rotated
from harness.errors import WrongUse
from harness.run.assemble import parts_of
from harness.workloads import WORKLOADS
from tests import examples

ROOT = Path(__file__).parents[3]


def campaign(folder: Path, text: str, day: date | None = None) -> Campaign:
    path = folder / "mine.toml"
    path.write_text(text)
    return read(path, day=day)


def test_the_matrix_is_worked_out_with_exclusions_and_changes(tmp_path: Path) -> None:
    """If it failed, a night would run other cells than the file says."""
    found = campaign(
        tmp_path,
        """
        seeds = 3
        concurrency = { all = 4, local = 2 }
        [plan]
        time_limit_s = 30
        [matrix]
        cluster = ["sim", "local"]
        faults = ["all", "kill, pause", []]
        nodes = [3, 5]
        [[exclude]]
        cluster = "local"
        nodes = 5
        [[change]]
        where = { cluster = "local", faults = ["kill", "pause"] }
        plan = { time_limit_s = 7, bugs = "confirm-early" }
        """,
    )
    assert (found.name, found.seeds, found.excluded, len(found.cells)) == ("mine", 3, 3, 9)
    assert (found.at_once("sim"), found.at_once("local")) == (4, 2)
    plans = {cell.name: cell.plan for cell in found.cells}
    changed = plans["qsync H local register kill+pause with confirm-early nodes=3"]
    assert (changed.time_limit_s, changed.bugs, changed.name) == (7, ("confirm-early",), "mine")
    assert plans["qsync H sim register none nodes=5"].time_limit_s == 30
    assert len(plans) == 9


def test_a_cell_has_the_plan_of_its_runs(tmp_path: Path) -> None:
    """If it failed, a store of one's own would get no certificate: its runs know who leads, its cells would not."""
    store = ROOT / "stores" / "http_store.py"
    text = f'[matrix]\nsystem = ["{store}"]\ncluster = ["local"]\nfaults = ["kill", "full-disk"]\n'
    plans = [cell.plan for cell in campaign(tmp_path, text).cells]
    assert [(plan.leader, plan.disk) for plan in plans] == [("none", "node"), ("none", "mounted")]
    assert [parts_of(plan).plan for plan in plans] == plans


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "[matrix]\ncluster = ['moon']",
            r"cell cluster = moon: unknown cluster 'moon'; try one of: .*exclude",
        ),
        ("[matrix]\ncluster = ['local']\nfaults = ['holds']", r"cannot do the fault 'holds'"),
        ("[matrix]\nclusters = ['sim']", r"'clusters' is no field of a run's plan; try one of: .*cluster"),
        ("[matrix]\nnodes = ['three']", r"cell nodes = three: nodes: expected a whole number, got 'three'"),
        ("[matrix]\nnodes = []", r"needs at least one field, and a value for each"),
        ("[matrix]\nseed = [1]", r"'seed' is no field"),
        (
            "[matrix]\nnodes = [3]\n[[exclude]]\nnodes = 3",
            r"no cell is left of the matrix \(1 are excluded\)",
        ),
        (
            "[matrix]\nrate = [100, 200]\n[[change]]\nwhere = { rate = 200 }\nplan = { rate = 100 }",
            r"rate=100.*: two cells are the same",
        ),
        ("[matrix]\nnodes = [3]\nfaults = ['kill', ['kill']]", r"two cells are the same"),
        ("seeds = 0\n[matrix]\nnodes = [3]", r"seeds: expected a whole number of at least 1, got 0"),
        ("sedes = 2\n[matrix]\nnodes = [3]", r"there is no field 'sedes'"),
        ("name = 'latest'\n[matrix]\nnodes = [3]", r"the name 'latest' is taken"),
        ("[matrix", r"is no TOML"),
        (f"matrix = {'[' * 9_000}", r"is no TOML"),
        ("[[part]]\nmatrix = {}", r"each part's matrix needs at least one field"),
        (
            "rotate = { workload = 1 }\n[matrix]\nnodes = [3]",
            r"rotate: 'workload' is not in the matrix; try: nodes",
        ),
        (
            "rotate = { nodes = 1 }\n[[part]]\nmatrix = { nodes = [3, 5] }",
            r"\[matrix\] needs at least one field",
        ),
        ("[retention]\nday = 3\n[matrix]\nnodes = [3]", "retention: there is no field 'day'"),
        ("rotate = { nodes = 0 }\n[matrix]\nnodes = [3]", r"rotate.*: expected a whole number of at least 1"),
        ("[[part]]\nplan = { wrkload = 'set' }\nmatrix = { nodes = [3] }", r"'wrkload' is no field"),
        ("[matrix]\nseed_x = [1]\n" + "nodes = [1]\n", r"'seed_x' is no field"),
        (
            "concurrency = {}\n[matrix]\nnodes = [3]",
            r"concurrency: expected some of all, local, .*, got none",
        ),
        ("concurrency = { all = 4, dockr = 1 }\n[matrix]\nnodes = [3]", r"concurrency: .*, got dockr"),
        (
            "seeds = 99999999999999999999\n[matrix]\nnodes = [3]",
            r"1 cells with .* runs, at most 1,000,000 are taken",
        ),
        (
            "[plan]\nrate = 50\n[matrix]\nnodes = [3, 5]\n[[exclude]]\nrate = 50",
            r"no cell is left of the matrix \(2 are excluded\)",
        ),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(tmp_path: Path, text: str, says: str) -> None:
    """If it failed, a night would end at its last cell with a traceback, or test less than the file says."""
    with pytest.raises(WrongUse, match=says) as raised:
        campaign(tmp_path, text)
    assert "\n" not in raised.value.message


@pytest.mark.parametrize(
    ("name", "says"), [("latest", "the name 'latest' is taken"), ("our night", "name: expected a name of at")]
)
def test_the_name_of_the_file_is_judged_as_a_name(tmp_path: Path, name: str, says: str) -> None:
    """If it failed, a person would be told to exclude a cell, of a file whose name no run can have."""
    path = tmp_path / f"{name}.toml"
    path.write_text("[matrix]\nnodes = [3]\n")
    with pytest.raises(WrongUse, match=says) as raised:
        read(path)
    assert "exclude" not in raised.value.message and "cell" not in raised.value.message


def test_the_digest_changes_with_the_meaning_and_not_with_comments(tmp_path: Path) -> None:
    """If it failed, a resumed campaign would go on with another matrix, or not at all after a comment."""
    one = campaign(tmp_path, "[matrix]\nnodes = [3]\n")
    same = campaign(tmp_path, "# why\n[matrix]\nnodes = [ 3 ]\n")
    other = campaign(tmp_path, "[matrix]\nnodes = [5]\n")
    assert one.digest == same.digest != other.digest
    elsewhere = campaign(tmp_path, 'engine = "spark"\nmaster = "spark://host:7077"\n[matrix]\nnodes = [3]\n')
    assert (elsewhere.engine, elsewhere.master) == ("spark", "spark://host:7077")
    assert elsewhere.digest == one.digest  # who judges may change when a campaign goes on


PARTS = """
[plan]
rate = 50
[[exclude]]
nodes = 5
workload = "set"
[[part]]
plan = { system = "qsync", cluster = "sim" }
matrix = { nodes = [3, 5], workload = ["register", "set", "bank"] }
rotate = { workload = 2 }
[[part]]
plan = { system = "twophase", cluster = "sim", rate = 20 }
matrix = { concurrency = ["optimistic"] }
"""
DAY = date(2026, 1, 1)


def test_parts_have_matrices_of_their_own_and_are_begun_in_turns(tmp_path: Path) -> None:
    """Systems with other workloads and options could not be in one night, or a short one would not reach the last."""
    found = campaign(tmp_path, PARTS, DAY)
    names = [(cell.plan.system, cell.plan.rate) for cell in found.cells]
    assert names[:2] == [("qsync", 50), ("twophase", 20)]
    assert found.rotates and not campaign(tmp_path, "[matrix]\nnodes = [3]").rotates
    assert all(cell.plan.workload != "set" for cell in found.cells if cell.plan.nodes == 5)


@examples.up_to(20)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=9, unique=True), st.integers(1, 9))
def test_what_rotates_has_each_value_within_its_turn(values: list[int], count: int) -> None:
    """A workload could be in no night."""
    part = Part(matrix={"nodes": list(values)}, rotate={"nodes": count})
    days = -(-len(values) // count)
    nights = [rotated(part, DAY.toordinal() + number, Path("a"))["nodes"] for number in range(days)]
    assert {value for night in nights for value in night} == {*values}
    assert all(len({*night}) == len(night) == min(count, len(values)) for night in nights)


def test_another_day_is_another_campaign_where_something_rotates(tmp_path: Path) -> None:
    """A campaign that was killed before midnight would go on with cells that it does not have."""
    days = [campaign(tmp_path, PARTS, DAY + timedelta(days=number)) for number in (0, 0, 1)]
    assert days[0].digest == days[1].digest != days[2].digest


def test_cells_that_need_what_is_not_here_are_left_out_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One night for all machines would be refused on most of them, or each of its runs would break."""
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("QSYNC_TARANTOOL", raising=False)
    text = """
        [[part]]
        matrix = { cluster = ["sim", "docker"] }
        [[part]]
        plan = { system = "tarantool", cluster = "local", configuration = "B" }
        matrix = { workload = ["set"] }
        """
    out = {each.cell: each.why for each in left_out(campaign(tmp_path, text).cells)}
    assert [*out] == ["tarantool B local set default", "qsync H docker register default"]
    assert "no `tarantool` on PATH" in out["tarantool B local set default"]
    assert "no Docker daemon answers" in out["qsync H docker register default"]


@pytest.mark.parametrize(
    "bug",
    [
        pytest.param("place-when-asked", marks=pytest.mark.nightly),
        pytest.param("vote-after-promote", marks=pytest.mark.long),
    ],
)
def test_a_night_finds_bugs_that_break_cuts_unaided(bug: str) -> None:
    """Consistent cuts would be judged in the words of the documentation alone."""
    week = [read(ROOT / "plans/nightly.toml", day=DAY + timedelta(days=number)) for number in range(7)]
    plans = (cell.plan for night in week for cell in night.cells)
    wanted = ("qsync", "sim", "register")
    plan = next(plan for plan in plans if (plan.system, plan.cluster, plan.workload) == wanted)
    found = try_seed(plan.changed(bugs=(bug,), seed=11))
    assert any(each.startswith("cuts-") for each in found.violated), found.sentence


SHIPPED = ("smoke", "nightly", "release", "certify", "three-bugs", "tarantool")


@pytest.mark.parametrize("name", ["nightly", pytest.param("release", marks=pytest.mark.long)])
def test_a_week_of_nights_has_every_workload_system_and_fault_of_the_card(name: str) -> None:
    """If it failed, a workload could be in no night, unnoticed."""
    days = [read(ROOT / "plans" / f"{name}.toml", day=DAY + timedelta(days=number)) for number in range(7)]
    plans = [cell.plan for day in days for cell in day.cells]
    assert {plan.workload for plan in plans} == {*WORKLOADS}
    assert {(plan.system, plan.cluster) for plan in plans} >= {
        *((system, cluster) for system in ("qsync", "twophase", "txlog") for cluster in ("sim", "docker")),
        ("tarantool", "local"),
        ("tarantool", "docker"),
    }
    named = {fault for plan in plans for fault in plan.faults}
    assert named >= {"default", "isolate-one", "kill", "pause", "clock", "power-all", "membership"}
    for day in days:
        tonight = {cell.plan.system for cell in day.cells}
        assert len(tonight) == 4


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_plan_says_what_it_takes(name: str) -> None:
    """If it failed, a person would start hours of work, or runs in containers, without knowing."""
    text = (ROOT / "plans" / f"{name}.toml").read_text()
    head = text[: text.index("\nname =")]
    assert head.startswith("#") and all(line.startswith("#") for line in head.splitlines())
    assert re.search(r"minutes|hour", head) and "core" in head and "ocker" in head, head


@pytest.mark.parametrize("name", ["smoke", "nightly", "release"])
def test_the_example_plans_can_be_run(name: str) -> None:
    """If it failed, the first thing that a newcomer tries would be refused."""
    assert len(read(ROOT / "plans" / f"{name}.toml").cells) >= 5


@pytest.mark.parametrize(
    ("fields", "missing"),
    [
        ('cluster = "ssh"\ninventory = "/nowhere/hosts.toml"', "cannot read the inventory"),
        ('system = "tarantool"\ncluster = "local"\nnode_from = "/nowhere/tarantool"', "/nowhere/tarantool"),
    ],
)
@pytest.mark.usefixtures("a_tarantool")
def test_what_only_the_machine_of_the_runs_has_is_needed_to_run_alone(
    fields: str, missing: str, tmp_path: Path
) -> None:
    """If it failed, only a machine with the inventory could verify the certificate of runs over ssh."""
    text = f"[plan]\n{fields}\n[matrix]\nnodes = [3]\n"
    with pytest.raises(WrongUse, match=missing):
        campaign(tmp_path, text)
    (cell,) = read(tmp_path / "mine.toml", runs_here=False).cells
    assert cell.plan.nodes == 3
