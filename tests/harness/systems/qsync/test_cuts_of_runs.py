"""Cuts that an operator takes of a running replica set, judged level by level."""

from __future__ import annotations

import io
from typing import Any

import pytest

from checkers.cuts.report import OF_REPLICA_SETS, Level
from checkers.history import History, jsonl
from checkers.verdict import Verdict
from harness.errors import WrongUse
from harness.hunt.seeds import try_seed
from harness.judge.whole_run import files_in
from harness.run.assemble import header, parts_of, simulated
from harness.run.conductor import Conductor
from harness.run.plan import Plan
from harness.systems.cut_lines import ENDED
from harness.systems.plans import planned
from harness.systems.system import JudgesNodes, NodeFiles

CUTS = [f"cuts-{level}" for level in OF_REPLICA_SETS]


def plan(**fields: Any) -> Plan:
    usual = {"cluster": "sim", "time_limit_s": 7, "rate": 80, "cut_every_s": 0.5, "faults": ("all",)}
    return planned(**{**usual, **fields})


def ran(plan: Plan) -> tuple[Plan, History, NodeFiles]:
    parts = parts_of(plan)
    cluster, file = simulated(parts, None), io.BytesIO()
    record = jsonl.Writer(file, header(parts))
    cluster.run(Conductor(parts.plan, cluster, parts.system, parts.workload, record).run())
    return parts.plan, jsonl.parse(file.getvalue()), cluster.files()


def judged(plan: Plan, history: History, files: NodeFiles) -> dict[str, Verdict]:
    system = parts_of(plan).system
    assert isinstance(system, JudgesNodes)
    return {check.name: check.run(history) for check in system.checks_of_nodes(plan, files)}


@pytest.mark.parametrize(
    "fields",
    [
        {"configuration": "H", "seed": 3},
        pytest.param({"configuration": "I", "seed": 2, "nodes": 5, "overlap": 3}, marks=pytest.mark.long),
        pytest.param({"configuration": "A", "seed": 5}, marks=pytest.mark.long),
        pytest.param({"configuration": "C", "seed": 3}, marks=pytest.mark.long),
    ],
    ids=lambda fields: fields["configuration"],
)
def test_cuts_of_a_right_set_hold_under_faults(fields: dict[str, Any]) -> None:
    """A false alarm; or no cut was judged, and the green light has nothing behind it."""
    found = judged(*ran(plan(**fields)))
    assert [*found] == CUTS
    for name, verdict in found.items():
        assert verdict.result == "valid", f"{name}: {verdict.summary}"
    judged_ones = [each for each in found["cuts-marker"].details["cuts"] if each["standing"] == "judged"]
    assert len(judged_ones) >= 3


SEEDS = [
    ({"seed": 0, "time_limit_s": 2}),
    *(pytest.param({"seed": n}, marks=pytest.mark.long) for n in range(3)),
]


@pytest.mark.parametrize("fields", SEEDS, ids=["short", "0", "1", "2"])
@pytest.mark.parametrize("bug", ["place-before-marker", "place-when-asked"])
def test_a_wrong_place_is_found_whatever_becomes_of_the_cut(bug: str, fields: dict[str, Any]) -> None:
    """Nodes that name wrong places make every cut fail, and a failed cut is not looked at."""
    assert "cuts-marker" in try_seed(plan(bugs=(bug,), faults=("none",), **fields)).violated


@pytest.mark.parametrize("fields", SEEDS, ids=["short", "0", "1", "2"])
def test_a_cut_without_the_votes_of_its_term_is_found(fields: dict[str, Any]) -> None:
    """All nodes stand at the marker: without this level, the nodes of a restored cut could vote twice in one term."""
    found = try_seed(plan(bugs=("vote-after-promote",), faults=("none",), **fields)).violated
    assert "cuts-quorum" in found
    assert "cuts-marker" not in found


def test_without_a_pace_there_are_no_cuts() -> None:
    """Stored plans and seeds would no longer repeat."""
    done, history, files = ran(plan(cut_every_s=0.0, time_limit_s=2))
    assert judged(done, history, files) == {}
    assert not [event for event in history.events if event.f == ENDED]


def _with(history: History, change: dict[str, Any]) -> History:
    """The last cut that finished, with other values in its line."""
    lines = [event for event in history.events if event.f == ENDED and event.value["state"] == "ok"]
    lines[-1].value.update(change)
    return history


@pytest.mark.parametrize(
    ("change", "level", "result", "says"),
    [
        (
            {"state": "unknown", "why": "n2 told none"},
            "finish",
            "invalid",
            "nothing that was done explains why",
        ),
        ({"state": "failed"}, "finish", "invalid", "nothing that was done explains why"),
        ({"marker": [1, 99999]}, "marker", "unknown", "has no row 1/99999"),
        (
            {"places": {"n1": [], "n2": [[1, 3]]}},
            "quorum",
            "invalid",
            "n2 has row 3 of n1, which has come to 0",
        ),
        ({"places": {"n9": [[1, 1]]}}, "quorum", "unknown", "the log of n9 has no place"),
        ({"places": {"n1": [[1, 99999]]}}, "quorum", "unknown", "the log of n1 has no place"),
    ],
)
def test_what_the_lines_say_is_not_taken_on_trust(
    change: dict[str, Any], level: Level, result: str, says: str
) -> None:
    """A cut that never came about, or that logs do not show, would be called consistent."""
    done, history, files = ran(plan(faults=("none",), time_limit_s=1))
    verdict = judged(done, _with(history, change), files)[f"cuts-{level}"]
    assert verdict.result == result
    assert says in " ".join(each["summary"] for each in verdict.details["cuts"])


@pytest.mark.parametrize(
    "fields",
    [{"configuration": "B"}, {"configuration": "D"}, {"faults": ("membership",), "nodes": 4}],
    ids=["2.6 with an operator", "promoted by hand", "members change"],
)
def test_cuts_are_refused_where_none_can_be_judged(fields: dict[str, Any]) -> None:
    """Every such run would end without evidence, or two operators would work against each other."""
    with pytest.raises(ValueError, match="consistent cuts need members that stay"):
        plan(**fields)


def test_real_tarantool_writes_no_markers() -> None:
    """A run would ask for a function that there is not, cut after cut."""
    refused = plan(system="tarantool", cluster="local", configuration="A")
    with pytest.raises(WrongUse, match="--cut-every has no effect on real Tarantool"):
        parts_of(refused)


def test_files_of_nodes_are_read_only_for_cuts(tmp_path: Any) -> None:
    """Every run would be read into memory twice."""
    (tmp_path / "n1").mkdir()
    (tmp_path / "n1" / "00000000000000000000.xlog").write_bytes(b"x")
    assert files_in(tmp_path, plan(cut_every_s=0.0)) == {}
    assert [*files_in(tmp_path, plan())] == ["n1"]
