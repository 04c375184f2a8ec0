"""The first screen of an anomaly's page: cause and effect in a sentence and a picture, without words of a program."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from checkers.history import Event
from checkers.history.values import value_words, vclock_words
from harness.campaigns.hunt import hunted
from harness.cli.verbs.check import command
from harness.judge.causes import ranked
from harness.pages import material
from harness.pages.cause_and_effect import BEFORE_NS, Moment, cause_and_effect, moments, window
from harness.pages.fault_bands import fault_bands
from harness.pages.page import html, linked
from harness.run.assemble import parts_of
from harness.run.execute import execute
from harness.run.finish import Recorded, finish
from harness.systems.plans import planned
from tests.harness.pages.run_folders import build

OF_A_PROGRAM = re.compile(
    r"\bNone\b|\bTrue\b|\bFalse\b|[{(\[]'|': |\{\d+: |Event\(|Operation\(| object at 0x"
)
SECOND_NS = 1_000_000_000


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "nothing"),
        ([None, 3], "[nothing, 3]"),
        (("r1", True), "[r1, true]"),
        ({"a": {1: None}}, "{a: {1: nothing}}"),
        (b"x\xff", "x\ufffd"),
        ("plain", "plain"),
        ("x" * 200, "x" * 119 + "…"),
    ],
)
def test_values_are_words(value: object, words: str) -> None:
    """If it failed, a page would show the text of Python objects."""
    assert value_words(value) == words


def test_a_vclock_is_words() -> None:
    """If it failed, a page would show a dictionary."""
    assert (vclock_words({"1": 146, "2": 3}), vclock_words({})) == ("1:146, 2:3", "empty")


def test_events_are_links_and_nothing_else_is_markup() -> None:
    """If it failed, a reader could not go to the operation, or a value could run a script."""
    text = "event 12 read <img src=x onerror=alert(1)>, events 3, operation 4"
    assert linked(text) == (
        '<a href="#op-12">event 12</a> read &lt;img src=x onerror=alert(1)&gt;, events 3, '
        '<a href="#op-4">operation 4</a>'
    )


def with_witnesses(folder: Path, *checks: tuple[str, dict[str, Any]], sentence: str = "") -> Path:
    verdict = json.loads((folder / "verdict.json").read_text())
    verdict["checks"] = [
        {
            "checker": name,
            "result": "invalid",
            "summary": "",
            "witnesses": [{"events": [], "explanation": [], **each}],
        }
        for name, each in checks
    ]
    verdict |= {"violations": [name for name, _ in checks], "sentence": sentence or verdict["sentence"]}
    verdict["promise"] = {
        "crash": "no node ends unexpectedly",
        "linearizable": "linearizable",
        "why": "one writer",
    }
    (folder / "verdict.json").write_text(json.dumps(verdict))
    return folder


CRASH = {"rule": "crash", "summary": "n1 stopped with an assertion", "node": "n1", "start_ns": 2_000_000_000}
CRASH |= {"end_ns": 2_000_000_000}
STALE = {
    "rule": "stale-read",
    "summary": "event 4 is old",
    "events": [3, 4],
    "start_ns": 1,
    "end_ns": 3_000_000_000,
}


def test_the_page_begins_with_the_cause_and_quotes_its_promise(tmp_path: Path) -> None:
    """If it failed, a reader would see the symptom first, or the promise of a different check."""
    folder = with_witnesses(
        build(tmp_path / "run", "anomaly"),
        ("linearizable", STALE),
        ("crash", CRASH),
        sentence="At 2.000 s n1 stopped with an assertion. Since then, at 3.000 s: event 4 is old.",
    )
    page = html(folder)
    assert "<h1>At 2.000 s n1 stopped with an assertion.</h1>" in page
    assert 'Since then, at 3.000 s: <a href="#op-4">event 4</a> is old.' in page
    first = page[page.index('<section id="witness">') : page.index("<h3>")]
    assert "no node ends unexpectedly" in first
    assert ">crash<" in first
    assert "cause: crash, 2.000 s" in first
    assert "then: stale-read, 3.000 s" in first
    assert page.index('<section id="witness">') < page.index('<dl class="facts">')


@pytest.mark.parametrize(("judged", "has_others"), [(4, True), (6, False)])
def test_cuts_that_were_all_judged_leave_no_others(tmp_path: Path, judged: int, has_others: bool) -> None:
    """If it failed, "6 of 6" would stand beside others that do not exist."""
    folder = build(tmp_path / "run", "valid")
    verdict = json.loads((folder / "verdict.json").read_text())
    verdict["evidence"]["cuts"] = {"asked": 6, "judged": judged}
    (folder / "verdict.json").write_text(json.dumps(verdict))
    page = html(folder)
    assert f"{judged} of 6" in page
    assert ("the others did not come about" in page) is has_others


def test_links_to_events_have_targets_once(tmp_path: Path) -> None:
    """If it failed, a link would lead nowhere, or the page would have an id twice."""
    page = html(build(tmp_path / "run", "anomaly"))
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert any(each.startswith("op-") for each in ids)


def test_what_is_earlier_than_the_cause_is_not_its_effect(tmp_path: Path) -> None:
    """If it failed, the picture would show an effect in front of its cause."""
    folder = with_witnesses(
        build(tmp_path / "run", "anomaly"),
        ("crash", CRASH),
        ("linearizable", {**STALE, "end_ns": 1_000_000_000}),
    )
    read = material.read(folder)
    assert [each.kind for each in moments(ranked(read.verdict))] == ["cause"]


def test_a_crash_in_the_picture_has_its_cross_after_many_earlier_ones(tmp_path: Path) -> None:
    """If it failed, nodes that ended often before would hide the crash that the picture is about."""
    read = material.read(with_witnesses(build(tmp_path / "run", "anomaly"), ("crash", CRASH)))
    times_ns = [*range(1_000, 26_000, 1_000), CRASH["start_ns"]]
    read.monitor = tuple(
        Event(index=0, time_ns=ns, type="info", process="monitor", f="crash", node="n1") for ns in times_ns
    )
    assert 'class="event crash"' in cause_and_effect(read, ranked(read.verdict), ())


def at(kind: str, time_s: float) -> Moment:
    return Moment(kind, int(time_s * SECOND_NS), "n1", "rule", "summary")


def test_the_picture_begins_where_all_was_well_and_ends_behind_the_effect(tmp_path: Path) -> None:
    """If it failed, the fault that led to the cause would be outside of the picture, or the cause a thin line in it."""
    read = material.read(build(tmp_path / "run", "anomaly"))
    bands = fault_bands(read)
    fault = bands[0]
    cause_s = fault.start_ns / SECOND_NS + 0.5
    start_ns, end_ns = window([at("cause", cause_s), at("then", cause_s + 1)], read, bands)
    assert start_ns <= fault.start_ns < (cause_s + 1) * SECOND_NS < end_ns
    start_ns, end_ns = window([at("cause", 100), at("then", 101)], read, ())
    assert 100 * SECOND_NS - 2 * BEFORE_NS < start_ns < 100 * SECOND_NS
    near = window([at("cause", 100), at("then", 100.1), at("then", 2_000)], read, ())
    assert near[1] < 200 * SECOND_NS


@pytest.mark.parametrize(
    ("system", "bug", "seed", "rule", "begins"),
    [
        (
            "qsync",
            "no-cascading-rollback",
            0,
            "state-queue",
            r"At \d+\.\d+ s, in term \d+, n\d has \d+ transactions",
        ),
        pytest.param(
            "twophase",
            "late-marker-restarts",
            0,
            "second-start",
            r"At \d+\.\d+ s.* n1 wrote START of cut-1 twice",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "txlog",
            "counter-reset",
            2,
            "counter-fell",
            r"At about \d+\.\d+ s n\d makes transaction",
            marks=pytest.mark.long,
        ),
    ],
)
def test_the_page_of_a_seeded_bug(
    tmp_path: Path, system: str, bug: str, seed: int, rule: str, begins: str
) -> None:
    """If it failed, the page of a real run would not name rule, node and moment, or would print Python."""
    asked = planned(system=system, cluster="sim", seed=seed, bugs=(bug,))
    plan = hunted(asked, frozenset({"system", "seed"}))
    folder = execute(parts_of(plan), tmp_path).folder
    verdict = finish(folder, plan, Recorded(str(folder.path)))
    lead = ranked(json.loads((folder.path / "verdict.json").read_bytes()))[0]
    assert lead.rule == rule
    assert re.match(begins, verdict["sentence"])
    told = [verdict["sentence"], *(check["summary"] for check in verdict["checks"])]
    for check in verdict["checks"]:
        for witness in check["witnesses"]:
            told += [witness["summary"], *witness["explanation"]]
    assert [text for text in told if OF_A_PROGRAM.search(text)] == []
    page = (folder.path / "report.html").read_text()
    assert f"cause: {rule}, " in page
    assert bug not in page[: page.index('<section id="repeat">')].replace(str(folder.path.parent.name), "")


def test_what_the_first_screen_leaves_out_is_counted(tmp_path: Path) -> None:
    """If it failed, a cluster of eleven nodes would be shown as one of nine."""
    folder = build(tmp_path / "run", "valid")
    lines = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    lines[0]["nodes"] = [f"n{number}" for number in range(1, 12)]
    (folder / "history.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    verdict = json.loads((folder / "verdict.json").read_text())
    verdict["evidence"]["not_observed"] = [f"fault-{number}" for number in range(14)]
    (folder / "verdict.json").write_text(json.dumps(verdict))
    page = html(folder)
    assert "n8, n9 and 2 more" in page and "fault-11 and 2 more" in page


def test_of_a_fault_without_evidence_the_effect_is_not_known(tmp_path: Path) -> None:
    """If it failed, the page of a Jepsen history would say that its partition did nothing."""
    source = tmp_path / "history.edn"
    source.write_text(
        '{:process :nemesis, :type :info, :f :start-partition, :value "n1", :time 5}\n'
        "{:process :nemesis, :type :info, :f :start-partition, :value :cut, :time 10}\n"
        "{:process 0, :type :invoke, :f :write, :value 1, :time 15}\n"
        "{:process 0, :type :ok, :f :write, :value 1, :time 25}\n"
        "{:process :nemesis, :type :info, :f :stop-partition, :value nil, :time 30}\n"
        "{:process :nemesis, :type :info, :f :stop-partition, :value :healed, :time 40}\n"
    )
    done = CliRunner().invoke(command, [str(source), "--html", str(tmp_path / "x.html")])
    page = (tmp_path / "x.html").read_text()
    assert "not known of 1" in page, done.output
    assert '<span class="word no-effect">unknown</span>' in page
