"""Cuts that an operator takes of a running replica set, judged level by level."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from checkers.cuts.report import OF_REPLICA_SETS, Level
from checkers.history import History, jsonl
from checkers.logs.log_cuts import LogCuts
from checkers.verdict import Verdict, Witness
from harness.campaigns.hunt.seeds import try_seed
from harness.errors import WrongUse
from harness.judge import Case, Left, judge
from harness.judge.case import files_in
from harness.pages.terminal.last_screen import last_screen
from harness.plan.plan import Plan
from harness.run.assemble import header, parts_of, simulated
from harness.run.conductor import Conductor
from harness.systems.cut_lines import ENDED, AskedCut
from harness.systems.parts import NodeFiles
from harness.systems.plans import from_json, planned
from harness.systems.qsync import judging
from harness.systems.qsync.options import settings_of

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


def whole(plan: Plan, history: History, files: NodeFiles) -> dict[str, Any]:
    """The verdict of a run, as verdict.json has it."""
    system = parts_of(plan).system
    return judge(Case(plan, history, Left(logs=system.logs.of(files), files=files)))


def judged(plan: Plan, history: History, files: NodeFiles) -> dict[str, Verdict]:
    logs = parts_of(plan).system.logs
    return {check.name: check.run(history) for check in logs.checks(plan, logs.of(files) or ())}


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
        (
            {"state": "failed", "vclock": [[1, 3]]},
            "finish",
            "valid",
            "n1 had rows of a second writer by then",
        ),
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
    with pytest.raises(ValueError, match=r"no consistent cuts here: .*; leave --cut-every out, or try: "):
        plan(**fields)
    without = plan(**fields, cut_every_s=None)
    assert settings_of(without).cut_every_s == 0
    assert settings_of(without).why_none_is_taken


def test_real_tarantool_writes_no_markers() -> None:
    """A run would ask for a function that there is not, cut after cut."""
    refused = plan(system="tarantool", cluster="local", configuration="A")
    with pytest.raises(WrongUse, match="--cut-every has no effect on real Tarantool"):
        parts_of(refused)


def test_files_of_nodes_are_not_read_for_cuts(tmp_path: Any) -> None:
    """Every run would be read into memory twice: its logs are there already."""
    (tmp_path / "n1").mkdir()
    (tmp_path / "n1" / "00000000000000000000.xlog").write_bytes(b"x")
    assert files_in(tmp_path, plan()) == {}


@pytest.mark.parametrize(
    ("fields", "every_s"),
    [
        ({}, 1.0),
        ({"configuration": "A"}, 1.0),
        ({"time_limit_s": 600, "rate": 100}, 10.0),
        ({"time_limit_s": 3600, "rate": 300}, 0.0),
        ({"cut_every_s": 7, "time_limit_s": 3600, "rate": 300}, 7.0),
        ({"cut_every_s": 0}, 0.0),
        ({"system": "tarantool", "cluster": "local", "configuration": "A", "read": "dirty"}, 0.0),
    ],
)
def test_cuts_are_taken_unless_a_plan_says_otherwise(fields: dict[str, Any], every_s: float) -> None:
    """The card of this harness names consistent cuts; nobody should have to ask for them."""
    assert settings_of(planned(**{"cluster": "sim", **fields})).cut_every_s == every_s


def test_a_stored_plan_that_says_nothing_of_cuts_has_none() -> None:
    """A stored run of before would be repeated differently, and judged by cuts that it never took."""
    stored = msgspec.to_builtins(plan(cut_every_s=None))
    del stored["options"]["cut_every_s"]
    for read in (from_json(msgspec.json.encode(stored), "a plan"), plan(cut_every_s=0)):
        assert settings_of(read).cut_every_s == 0
        assert not settings_of(read).why_none_is_taken
    written = from_json(msgspec.json.encode(plan(cut_every_s=None)), "a plan")
    assert settings_of(written).cut_every_s == 1


def test_a_run_says_how_many_cuts_were_judged() -> None:
    """Its green light could stand for no cut at all."""
    found = [whole(*ran(plan(cut_every_s=pace, time_limit_s=1, faults=("none",)))) for pace in (None, 0)]
    told = [verdict["evidence"].get("cuts") for verdict in found]
    details = [check["details"] for check in found[0]["checks"] if check["checker"] in CUTS]
    assert len(details) == len(CUTS) and not any("opportunities" in each for each in details)
    assert told[0]["asked"] >= told[0]["judged"] >= 1
    assert told[1] is None
    of_d = whole(*ran(plan(cut_every_s=None, configuration="D", time_limit_s=1, faults=("none",))))
    assert "operator" in of_d["evidence"]["cuts"]["why"]
    assert "no consistent cut was judged: an operator fails over" in last_screen(of_d, Path("run"))


@pytest.mark.parametrize(("pace", "outcome"), [(None, "valid"), (0.5, "unknown")])
def test_logs_that_do_not_decide_a_cut_void_only_a_run_that_asks_for_cuts(
    pace: float | None, outcome: str
) -> None:
    """Each run with a node that joins would end undecided: its log begins late, and has no votes."""
    done, history, files = ran(plan(cut_every_s=0.5, faults=("none",), time_limit_s=1))
    asked = done.changed(cut_every_s=pace)
    verdict = whole(asked, _with(history, {"marker": [1, 99999]}), files)
    assert verdict["outcome"] == outcome, verdict["sentence"]
    assert verdict["evidence"]["cuts"]["asked"] == 3


@pytest.mark.parametrize(("pace", "missing"), [(None, False), (0.5, True)])
def test_faults_that_leave_no_cut_void_only_a_run_that_asks_for_cuts(
    pace: float | None, missing: bool
) -> None:
    """Nothing could be said of a run because of a check that nobody asked for."""
    done, history, files = ran(plan(cut_every_s=0.5, faults=("none",), time_limit_s=1))
    refused = {"state": "refused", "why": "read-only", "places": {}}
    for event in history.events:
        if event.f == ENDED:
            event.value.clear()
            event.value.update(refused | {"cut": "cut-1"})
    asked = done.changed(cut_every_s=pace)
    verdict = whole(asked, history, files)
    told = " ".join(verdict["evidence"]["missing"])
    assert ("cuts finished" in told) == missing, told
    assert (verdict["outcome"] == "valid") != missing, verdict["sentence"]


def test_a_node_that_stopped_following_is_a_cause() -> None:
    """As shipped (F) a node may stop on split-brain: no later cut finishes, and a right store would be accused."""
    done, history, files = ran(plan(configuration="F", faults=("none",), time_limit_s=1))
    unfinished = _with(history, {"state": "unknown", "why": "n2 told no place in time"})
    assert judged(done, unfinished, files)["cuts-finish"].result == "invalid"
    ended_ns = max(event.time_ns for event in history.events if event.f == ENDED)
    later = [state for state in history.states if state.time_ns > ended_ns]
    for state in later:
        state.status.update(stopped={"n1": "Split-Brain discovered"})  # type: ignore[attr-defined]  # a dict of JSON
    assert later and judged(done, unfinished, files)["cuts-finish"].result == "invalid"
    for state in history.states:
        state.status.update(stopped={"n1": "Split-Brain discovered"} if state.node == "n2" else {})  # type: ignore[attr-defined]  # a dict of JSON
    found = judged(done, unfinished, files)["cuts-finish"]
    assert found.result == "valid"
    assert "n2 had stopped following n1" in str(found.details["cuts"])


class AtTheirMarkers:
    """Logs of two nodes that are right behind the marker 1:7, of which one violation of each kind is found."""

    rules = ("marker-differs", "status-differs", "confirmed-and-rolled-back")

    def __init__(self) -> None:
        log = SimpleNamespace(find=lambda *_: 3, cut=lambda _: SimpleNamespace(vclock={1: 7}))
        self.walks = {"n1": log, "n2": log}

    def __getitem__(self, node: str) -> Any:
        return self.walks[node]

    def check(self, places: Any, marker: Any = None) -> Verdict:
        assert (places, marker) == ({"n1": 3, "n2": 3}, {1: 7})
        found = tuple(Witness(rule=rule, summary=rule, events=()) for rule in self.rules)
        return Verdict(checker="cuts", result="invalid", summary="", model="", witnesses=found)


@pytest.mark.parametrize(
    ("state", "named", "found"),
    [
        ("ok", 7, [("marker-differs", ""), ("status-differs", "")]),
        ("failed", 7, []),
        ("failed", 6, [("place-not-at-marker", "in front of its marker")]),
        ("failed", 8, [("place-not-at-marker", "behind its marker")]),
    ],
)
def test_what_a_marker_must_keep(state: str, named: int, found: list[tuple[str, str]]) -> None:
    """If it failed, a cut with other decisions on one node than on another would be right, or be two violations."""
    places = {"n1": [[1, 7]], "n2": [[1, named]]}
    value = {"state": state, "marker": [1, 7], "vclock": [[1, 7]], "places": places}
    cut = AskedCut(cut="c", node="n1", asked_ns=0, ended_ns=1, value=value)
    judgement = judging._marker(cut, cast(LogCuts, AtTheirMarkers()))
    assert [(witness.rule, witness.how) for witness in judgement.witnesses] == found
    assert (judgement.result, judgement.count) == ("invalid" if found else "valid", len(found))
