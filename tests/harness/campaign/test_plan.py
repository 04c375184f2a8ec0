"""The file of a campaign and its matrix."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.campaign.plan import Campaign, read
from harness.errors import WrongUse

ROOT = Path(__file__).parents[3]


def campaign(folder: Path, text: str) -> Campaign:
    path = folder / "mine.toml"
    path.write_text(text)
    return read(path)


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
        ("[matrix]\nseed_x = [1]\n" + "nodes = [1]\n", r"'seed_x' is no field"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(tmp_path: Path, text: str, says: str) -> None:
    """If it failed, a night would end at its last cell with a traceback, or test less than the file says."""
    with pytest.raises(WrongUse, match=says) as raised:
        campaign(tmp_path, text)
    assert "\n" not in raised.value.message


def test_the_digest_changes_with_the_meaning_and_not_with_comments(tmp_path: Path) -> None:
    """If it failed, a resumed campaign would go on with another matrix, or not at all after a comment."""
    one = campaign(tmp_path, "[matrix]\nnodes = [3]\n")
    same = campaign(tmp_path, "# why\n[matrix]\nnodes = [ 3 ]\n")
    other = campaign(tmp_path, "[matrix]\nnodes = [5]\n")
    assert one.digest == same.digest != other.digest
    elsewhere = campaign(tmp_path, 'engine = "spark"\nmaster = "spark://host:7077"\n[matrix]\nnodes = [3]\n')
    assert (elsewhere.engine, elsewhere.master) == ("spark", "spark://host:7077")
    assert elsewhere.digest == one.digest  # who judges may change when a campaign goes on


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
