"""What runs in containers show: versions, stores behind wrappers, partitions that change, a wrong cut."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import main
from harness.plan.plan import to_json
from nodes.version import VERSION
from tests import needs
from tests.harness.cluster.containers.in_containers import CUTS, cut_checks, lines_of, run
from tests.harness.in_effect import faults_in_effect, until_in_effect
from tests.harness.node_versions import INCOMPATIBLE, wheel
from tests.harness.run.administration.test_upgrades import OLDER, plan

pytestmark = pytest.mark.docker


ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    found = needs.docker()
    yield found
    found.close()


def test_each_node_comes_to_the_newer_version_and_back(client: Any, tmp_path: Path) -> None:
    """If it failed, an upgrade would start a container of the image that was there, or leave the one before."""
    steps = (("upgrade", "n3"), ("upgrade", "n1"), ("upgrade", "n2"), ("downgrade", "n1"))
    asked = tmp_path / "plan.json"
    asked.write_bytes(to_json(plan(tmp_path, *steps)))
    verdict = run(tmp_path, "--plan", str(asked))
    faults = verdict["evidence"]["faults"]
    assert [(each["took_effect"], each["healed"]) for each in faults] == [(True, True)] * 4, verdict[
        "sentence"
    ]
    assert {row["version"].partition("+")[0] for row in verdict["versions"]} == {OLDER, VERSION}
    assert verdict["violations"] == []


def test_a_version_that_does_not_start_in_its_container_is_told(client: Any, tmp_path: Path) -> None:
    """If it failed, a container that ends at its start would be a crash, or an error of the harness."""
    newer = wheel(tmp_path, "0.2.0", INCOMPATIBLE)
    asked = tmp_path / "plan.json"
    asked.write_bytes(to_json(plan(tmp_path, ("upgrade", "n2"), nodes=2, node_to=str(newer))))
    verdict = run(tmp_path, "--plan", str(asked))
    assert verdict["outcome"] == "inconclusive"
    assert verdict["violations"] == []
    (finding,) = [each for each in verdict["findings"] if each["checker"] == "upgrade"]
    assert "its format is that of the version before" in finding["summary"]


def test_partitions_change_and_the_record_says_how(client: Any, tmp_path: Path) -> None:
    """If it failed, a node could be accused by a cut that was another one at that time."""
    words = ("--faults", "changing-partitions", "--time-limit", "12", "--seed", "4", "--rate", "100")
    for verdict in until_in_effect(lambda: run(tmp_path, *words), "changing-partitions"):
        for asked, told in faults_in_effect(lines_of(verdict)):
            planned = iter([shape["links"] for shape in asked["shapes"]])
            assert all(shape["links"] in planned for shape in told["shapes"]), "in the order of the plan"
            assert len(told["shapes"]) > 1
            times = [(shape["asked_ns"], shape["in_effect_ns"]) for shape in told["shapes"]]
            assert times == sorted(times)
            for shape, after in pairwise(told["shapes"]):
                assert after["in_effect_ns"] <= shape["until_ns"], "something was open between two shapes"


WRAPPED = """
from pathlib import Path
from harness.systems.own import OwnStore
SOURCE = Path({example!r}).read_text()
APART = "import os, sys; os.setsid(); os.execvp(sys.argv[1], sys.argv[1:])"  # the image need not have setsid
SYSTEM = OwnStore("a dictionary behind a wrapper", start=lambda place: (
    "sh", "-c", 'export PYTHONPATH="$0"; "$@" & wait', place.root,
    place.python, "-c", APART, place.python, "-c", SOURCE, place.listen
))
"""


MISSING = """
from harness.systems.own import OwnStore
SYSTEM = OwnStore("a file that is not in the image", start=lambda place: (place.python, "/nowhere/store.py"))
"""


def test_faults_of_a_process_reach_a_store_behind_a_wrapper(client: Any, tmp_path: Path) -> None:
    """If it failed, a store would pass kills and pauses that only its wrapper has felt."""
    store = tmp_path / "wrapped.py"
    store.write_text(WRAPPED.format(example=str(ROOT / "docs" / "mystore.py")))
    options = ("--system", str(store), "--nodes", "1", "--rate", "100", "--time-limit", "10")
    verdict = run(tmp_path, *options, "--faults", "kill,pause", "--seed", "1")
    assert {"kill", "pause"} <= set(verdict["evidence"]["kinds_in_effect"]), verdict["sentence"]
    assert {"linearizable", "convergence"} & set(verdict["violations"]), "what is in memory survived a kill"


def test_a_store_that_is_not_in_the_image_is_a_start_that_failed(
    client: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If it failed, a file that was forgotten would be told as an anomaly of the store."""
    store = tmp_path / "missing.py"
    store.write_text(MISSING)
    words = [
        "--system",
        str(store),
        "--nodes",
        "1",
        "--faults",
        "none",
        "--results",
        str(tmp_path / "results"),
    ]
    assert main(["run", "--cluster", "docker", *words]) == 3
    told = capsys.readouterr().err
    assert "ended before it was ready (exit 2)" in told
    assert "can't open file" in told


def test_a_wrong_cut_is_found_in_containers(client: Any, tmp_path: Path) -> None:
    """If it failed, a right cut in containers would say nothing."""
    words = ("--faults", "slow", "--calm", "0.5", "--time-limit", "10", "--seed", "7", "--workers", "15")
    verdict = run(
        tmp_path, *CUTS, *words, "-o", "cut_every_s=0.3", "--rate", "150", "--bug", "finish-at-once"
    )
    assert cut_checks(verdict)["cuts-transactions"] == "invalid", verdict["sentence"]
