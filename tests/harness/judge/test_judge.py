"""The judge: a green light with nothing behind it is impossible, and an anomaly outranks everything."""

from __future__ import annotations

import io
import shlex
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers import linearizable
from checkers.history import jsonl
from checkers.history.history import Header, History
from checkers.replicas import convergence, crash, quorum
from checkers.verdict import Result, Verdict, Witness
from harness.cli.options import plan_of
from harness.cli.verbs.run import command
from harness.faults.fault import Fault
from harness.judge import EXIT_CODES, Case, judge, repeat_line
from harness.judge.checks import Checked
from harness.judge.evidence import Evidence
from harness.judge.outcome import weighed, without_opportunity
from harness.judge.words import _NAMED, idle_fields, not_decided, sentence
from harness.plan.plan import LEAST, Drawn, Plan, to_json
from harness.plan.promise import Promise
from harness.systems import SYSTEMS
from harness.systems.plans import known_fields, planned
from harness.systems.qsync.promises import ELECTED, FIXED_OWNER, PROMISES
from harness.workloads import WORKLOADS
from harness.workloads.checks import Check
from tests import examples

MILLISECOND_NS = 1_000_000
NODES = ("n1", "n2", "n3")
Line = dict[str, Any]
PLAN = planned(cluster="sim", configuration="C", rate=10, time_limit_s=3, faults=("pause",))


NOT_ASKED = ("prefix", "dirty")
"""Checks of classes of reads that no client of these runs asked for: they judge nothing."""


def _unknown(verdict: dict[str, Any]) -> list[str]:
    checks = [each for each in verdict["checks"] if each["checker"] not in NOT_ASKED]
    return [each["checker"] for each in checks if each["result"] == "unknown"]


def operation(at_ms: int, f: str, value: Any, *, type_: str = "ok", **others: Any) -> list[Line]:
    """A question and its answer half a millisecond later."""
    fields = {"process": 0, "f": f, "key": "x", "node": "n1", "role": "owner", **others}
    asked = None if f in ("read", "dump") else value
    lines = [{**fields, "type": "invoke", "value": asked, "role": None, "at_ms": at_ms}]
    return [*lines, {**fields, "type": type_, "value": value, "at_ms": at_ms + 0.5}]


def good(writes: Iterable[int] = range(30)) -> list[Line]:
    """Writes at an owner, ten a second; a pause of n2 in the middle, and an end where all is quiet and equal."""
    lines: list[Line] = []
    last = None
    for last in writes:
        lines += operation(100 * last, "write", last)
    fault = {"id": 0, "name": "pause", "does": "pause", "at_ns": 0, "until_ns": 0, "nodes": ["n2"]}
    times = dict.fromkeys(("asked_ns", "first_effect_ns", "all_in_effect_ns"), 1_050 * MILLISECOND_NS)
    times |= dict.fromkeys(("heal_asked_ns", "last_effect_ns"), 2_050 * MILLISECOND_NS)
    evidence = {"id": 0, "took_effect": True, "healed": True, **times}
    nemesis = {"process": "nemesis", "f": "pause"}
    lines.append({**nemesis, "type": "invoke", "value": fault, "at_ms": 1_050})
    lines.append({**nemesis, "type": "info", "value": evidence, "at_ms": 2_060})
    for node in NODES:
        state = {"process": "monitor", "f": "state", "type": "info", "node": node, "at_ms": 3_000}
        lines.append({**state, "value": {"up": True, "rollbacks": 0}})
    lines.append({"process": "harness", "f": "settled", "type": "info", "value": True, "at_ms": 3_100})
    lines += operation(3_200, "read", last, process=1, mode="read-confirmed", phase="final")
    for number, node in enumerate(NODES):
        held = {"spaces": {"register": [] if last is None else [["x", last]]}}
        dump: Any = {"process": 2 + number, "node": node, "key": None, "role": None, "phase": "final"}
        lines += operation(3_300 + number, "dump", held, **dump)
    return lines


def history(lines: list[Line], *, torn: bool = False) -> History:
    file = io.BytesIO()
    header = Header(
        system="qsync",
        cluster="sim",
        workload="register",
        nodes=NODES,
        quorum=2,
        owner="n1",
        heartbeat_ns=10**8,
    )
    record = jsonl.Writer(file, header)
    for line in sorted(lines, key=lambda line: line["at_ms"]):
        fields = {
            name: value for name, value in line.items() if name not in ("type", "process", "f", "at_ms")
        }
        time_ns = int(line["at_ms"] * MILLISECOND_NS)
        record.record(line["type"], line["process"], line["f"], time_ns=time_ns, **fields)
    return jsonl.parse(file.getvalue() + (b'{"index": 9' if torn else b""))


def judged(lines: list[Line], plan: Plan = PLAN, *, torn: bool = False, **others: Any) -> dict[str, Any]:
    return judge(Case(plan, history(lines, torn=torn), **others, given_promise=FIXED_OWNER))


def outcome(verdict: dict[str, Any]) -> tuple[str, int]:
    return verdict["outcome"], verdict["exit_code"]


def of(process: str, line: Line, **fields: Any) -> bool:
    return line["process"] == process and all(line[name] == value for name, value in fields.items())


Damage = Callable[[list[Line]], list[Line]]


def without(unwanted: Callable[[Line], bool]) -> Damage:
    return lambda lines: [line for line in lines if not unwanted(line)]


def evidence_of_the_fault(**changed: Any) -> Damage:
    def damage(lines: list[Line]) -> list[Line]:
        return [
            {**line, "value": {**line["value"], **changed}} if of("nemesis", line, type="info") else line
            for line in lines
        ]

    return damage


def added(**line: Any) -> Damage:
    return lambda lines: [*lines, line]


HARNESS = {"process": "harness", "type": "info", "at_ms": 2_500}
INCONCLUSIVE: dict[str, tuple[Damage, str]] = {
    "no line at all": (lambda lines: [], "no operation succeeded"),
    "no operation": (lambda lines: good([]), "no operation succeeded"),
    "too few operations": (lambda lines: good(range(0, 30, 6)), "too little load: "),
    "none under faults": (
        lambda lines: good([*range(11), *range(21, 30)]),
        "too little load under faults: 0 operations succeeded",
    ),
    "no fault": (without(lambda line: of("nemesis", line)), "there was no time for one"),
    "a fault that took no effect": (
        evidence_of_the_fault(took_effect=False),
        "fault 0 (pause) took no effect",
    ),
    "a fault that did not heal": (
        evidence_of_the_fault(healed=False),
        "fault 0 (pause) was not seen to heal",
    ),
    "a fault whose healing was not tried": (
        evidence_of_the_fault(healed=None),
        "fault 0 (pause) was not seen to heal",
    ),
    "a fault that never ended": (
        without(lambda line: of("nemesis", line, type="info")),
        "fault 0 (pause) never ended",
    ),
    "nothing settled": (without(lambda line: line["f"] == "settled"), "not quiet and equal in time"),
    "not settled": (
        lambda lines: [{**line, "value": False} if line["f"] == "settled" else line for line in lines],
        "not quiet and equal in time",
    ),
    "stalled": (
        added(**HARNESS, f="stall", value={"stalled_ms": 1_001}),
        "the harness itself stood still for 1001",
    ),
    "interrupted, as the record says": (added(**HARNESS, f="interrupted"), "the run was interrupted"),
}
AROUND: dict[str, tuple[dict[str, Any], str]] = {
    "interrupted": ({"interrupted": True}, "the run was interrupted"),
    "failed": ({"failure": "n2 does not come up"}, "n2 does not come up"),
    "torn": ({"torn": True}, "the record is torn: "),
}


def lost_write(lines: list[Line]) -> list[Line]:
    """An anomaly: a read of nothing after everything was written."""
    return [*lines, *operation(2_950, "read", None, process=8, mode="read-confirmed")]


def test_a_good_run_is_valid() -> None:
    """If it failed, all tests of this file would prove nothing."""
    verdict = judged(good())
    assert outcome(verdict) == ("valid", 0)
    assert verdict["evidence"]["missing"] == []
    assert {check["result"] for check in verdict["checks"] if check["checker"] not in NOT_ASKED} == {"valid"}
    assert (verdict["evidence"]["ok"], verdict["evidence"]["ok_under_fault"]) == (30, 10)
    assert verdict["evidence"]["kinds_in_effect"] == ["pause"]
    assert verdict["violations"] == []


@pytest.mark.parametrize("name", INCONCLUSIVE)
def test_a_green_light_with_nothing_behind_it_is_impossible(name: str) -> None:
    """If it failed, a run that shows nothing would pass for one that shows a store's strength."""
    damage, words = INCONCLUSIVE[name]
    verdict = judged(damage(good()))
    assert outcome(verdict) == ("inconclusive", 3)
    assert any(words in sentence for sentence in verdict["evidence"]["missing"])
    assert verdict["sentence"].startswith(
        ("Nothing can be said of this run: ", "The evidence of this run is incomplete: ")
    )


def fault_beside(does: str, at_ms: int, until_ms: int) -> list[Line]:
    """A second fault, that took effect and healed."""
    nemesis = {"process": "nemesis", "f": does}
    asked = {"id": 1, "name": does, "does": does, "at_ns": 0, "until_ns": 0, "nodes": ["n3"]}
    evidence = {"id": 1, "took_effect": True, "healed": True}
    return [
        {**nemesis, "type": "invoke", "value": asked, "at_ms": at_ms},
        {**nemesis, "type": "info", "value": evidence, "at_ms": until_ms},
    ]


@pytest.mark.parametrize(
    ("does", "at_ms", "until_ms", "is_excused"),
    [
        ("kill", 1_500, 2_500, True),
        ("kill", 1_500, 2_000, False),
        ("kill", 2_100, 2_500, False),
        ("clock", 1_500, 2_500, False),
    ],
)
def test_only_a_fault_at_work_then_hides_whether_another_healed(
    does: str, at_ms: int, until_ms: int, is_excused: bool
) -> None:
    """If it failed, any fault beside one that never healed would excuse it, or one that hid it would spoil the run."""
    lines = [*evidence_of_the_fault(healed=None)(good()), *fault_beside(does, at_ms, until_ms)]
    assert outcome(judged(lines))[0] == ("valid" if is_excused else "inconclusive")


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ((), ""),
        (("pause",), "1 of 2 faults of the schedule was skipped (once because"),
        (("kill",), "nothing happened of: kill"),
    ],
)
def test_what_was_left_out_is_counted_and_told(names: tuple[str, ...], words: str) -> None:
    """If it failed, a run whose faults never came would look like one that had them."""
    told = [
        {**HARNESS, "f": "skipped-fault", "value": {"fault": {"id": 5, "name": name}, "why": "it was late"}}
        for name in names
    ]
    verdict = judged([*good(), *told])
    assert verdict["outcome"] == "valid"
    assert [each["name"] for each in verdict["evidence"]["skipped_faults"]] == list(names)
    summaries = [found["summary"] for found in verdict["findings"] if found["checker"] == "faults"]
    assert len(summaries) == len(names)
    assert all(words in summary for summary in summaries)


@pytest.mark.parametrize("name", AROUND)
def test_what_befell_the_run_itself_counts_as_well(name: str) -> None:
    """If it failed, half a run would pass for a whole one."""
    given, words = AROUND[name]
    verdict = judged(good(), **given)
    assert outcome(verdict) == ("inconclusive", 3)
    assert any(words in sentence for sentence in verdict["evidence"]["missing"])


@pytest.mark.parametrize("name", [*INCONCLUSIVE, *AROUND])
def test_an_anomaly_outranks_what_is_missing(name: str) -> None:
    """If it failed, a lost write would be shrugged off because a fault took no effect."""
    damage: Damage = INCONCLUSIVE[name][0] if name in INCONCLUSIVE else lambda lines: lines
    verdict = judged(
        [*operation(10, "write", 99, process=7), *lost_write(damage(good()))], **AROUND.get(name, ({},))[0]
    )
    assert outcome(verdict) == ("anomaly", 1)
    assert "linearizable" in verdict["violations"]
    assert ": key x: " in verdict["sentence"] or " s key x: " in verdict["sentence"]


def test_where_nodes_may_stop_for_good_those_that_did_need_not_be_equal() -> None:
    """If it failed, what such a configuration does promise could not be shown; or any unrest would be excused there."""
    unequal = [{**line, "value": False} if line["f"] == "settled" else line for line in good()]
    stopped = {"up": True, "stopped": {"n2": "Split-Brain discovered"}}
    state = {
        "process": "monitor",
        "f": "state",
        "type": "info",
        "node": "n1",
        "at_ms": 3_050,
        "value": stopped,
    }
    may_stop = FIXED_OWNER.but(final_state="")
    excused = judge(Case(PLAN, history([*unequal, state]), given_promise=may_stop))
    assert outcome(excused) == ("valid", 0)
    assert {
        "checker": "convergence",
        "summary": "n1 stopped following n2: Split-Brain discovered",
    } in excused["findings"]
    assert outcome(judge(Case(PLAN, history(unequal), given_promise=may_stop))) == ("inconclusive", 3)
    assert outcome(judge(Case(PLAN, history([*unequal, state]), given_promise=FIXED_OWNER)))[0] != "valid"


@pytest.mark.parametrize(("peer", "is_evidence"), [("n2", True), ("n3", False)])
def test_a_cut_between_nodes_that_stopped_for_good_need_not_heal(peer: str, is_evidence: bool) -> None:
    """If it failed, runs would be wasted for a link that nobody uses any more; or any link that stays dead excused."""
    lines = [
        {**line, "value": {**line["value"], "does": "cut", "links": [["n1", peer]], "nodes": []}}
        if of("nemesis", line, type="invoke")
        else line
        for line in evidence_of_the_fault(healed=False)(good())
    ]
    stopped = {"up": True, "stopped": {"n2": "Split-Brain discovered"}}
    state = {
        "process": "monitor",
        "f": "state",
        "type": "info",
        "node": "n1",
        "at_ms": 3_050,
        "value": stopped,
    }
    verdict = judge(Case(PLAN, history([*lines, state]), given_promise=FIXED_OWNER.but(final_state="")))
    assert outcome(verdict) == (("valid", 0) if is_evidence else ("inconclusive", 3))
    assert outcome(judge(Case(PLAN, history([*lines, state]), given_promise=FIXED_OWNER)))[0] != "valid"


@pytest.mark.parametrize(
    ("name", "refused", "is_excused"),
    [("truncated-tail", 0, True), ("truncated-tail", 1, False), ("torn-tail", 0, False)],
)
def test_after_damage_that_need_not_be_survived_a_node_may_stop_and_say_so(
    name: str, refused: int, is_excused: bool
) -> None:
    """If it failed, a store that stops on what a damaged disk lost would be accused; or one that must survive would be
    excused, or one that lost nothing, for it refused the damaged files and got them back."""
    lines = [
        {
            **line,
            "f": name,
            "value": {
                **line["value"],
                **({"name": name, "does": "damage"} if "at_ns" in line["value"] else {}),
            },
        }
        if line["process"] == "nemesis"
        else {**line, "value": False}
        if line["f"] == "settled"
        else line
        for line in good()
    ]
    told = evidence_of_the_fault(counters={"refused_to_start": refused}, detail="n2 refuses: a bad block")(
        lines
    )
    stopped = {"up": True, "stopped": {"n2": "Split-Brain discovered"}}
    state = {
        "process": "monitor",
        "f": "state",
        "type": "info",
        "node": "n1",
        "at_ms": 3_050,
        "value": stopped,
    }
    plan = msgspec.structs.replace(PLAN, faults=(name,), cluster="local")
    verdict = judged([*told, state], plan)
    summaries = [finding["summary"] for finding in verdict["findings"]]
    assert (verdict["outcome"] == "valid") == is_excused
    assert (f"after {name}: n2 refuses: a bad block" in summaries) == bool(refused)
    assert outcome(judged(lost_write([*told, state]), plan)) == ("anomaly", 1), (
        "wrong data are wrong whatever was damaged"
    )


def test_an_answer_is_under_a_fault_while_that_surely_was_in_effect() -> None:
    """If it failed, answers before a slow fault took effect would show how the store behaves under it."""
    late = evidence_of_the_fault(all_in_effect_ns=1_850 * MILLISECOND_NS)(good())
    facts, usual = judged(late)["evidence"], judged(good())["evidence"]
    assert (facts["ok_under_fault"], usual["ok_under_fault"]) == (2, 10)
    assert facts["quiet"] == usual["quiet"]


def test_operations_of_unknown_effect_leave_valid_checks_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a workload that forgets to declare an operation would be valid, or lose its anomalies."""
    monkeypatch.setattr("harness.judge.checks.undeclared", lambda history: ("mystery",))
    assert outcome(judged(good())) == ("unknown", 2)
    assert outcome(judged(lost_write(good()))) == ("anomaly", 1)


@pytest.mark.parametrize(
    ("result", "stopped", "is_damaged", "expected"),
    [
        ("invalid", True, True, "anomaly"),
        ("unknown", True, True, "valid"),
        ("unknown", False, True, "unknown"),
        ("unknown", True, False, "unknown"),
    ],
)
def test_an_excuse_takes_away_an_unknown_and_no_anomaly(
    result: Result, stopped: bool, is_damaged: bool, expected: str
) -> None:
    """If it failed, nodes that were damaged, and stopped, could hold what no client wrote, in a valid run; or either of
    the two alone would excuse nodes that nobody saw agree."""
    case = Case(PLAN, history(good()), given_promise=FIXED_OWNER)
    evidence = Evidence(
        facts={}, missing=(), findings=(), stopped=("n1 stopped",) * stopped, is_damaged=is_damaged
    )
    witnesses = (Witness(rule="failed-is-there", summary="n2 holds it", events=(0,)),)
    excused = Verdict(
        checker=convergence.NAME,
        result=result,
        summary="",
        model="equal",
        witnesses=witnesses if result == "invalid" else (),
    )
    read = Verdict(checker=linearizable.NAME, result="valid", summary="", model="linearizable")
    checked = Checked([(verdict.model, verdict) for verdict in (read, excused)])
    assert weighed(case, checked, evidence).outcome == expected


def test_a_plan_may_ask_for_more_than_a_share() -> None:
    """If it failed, a hunt that says so many operations a seed would count seeds with fewer."""
    plan = msgspec.structs.replace(PLAN, least_ok=30)
    assert outcome(judged(good(), plan)) == ("valid", 0)
    verdict = judged(good(), msgspec.structs.replace(PLAN, least_ok=31))
    assert outcome(verdict) == ("inconclusive", 3)
    assert "too little load: 30 operations succeeded, expected at least 31" in verdict["evidence"]["missing"]


@pytest.mark.parametrize(("asked", "wanted"), [(4, 0), (5, 1), (9, 1), (12, 1)])
def test_a_kind_that_clients_asked_for_has_answers(asked: int, wanted: int) -> None:
    """If it failed, a run of which no write was ever answered would be VALID, as long as there were less than ten."""
    lines = good()
    for number in range(asked):
        lines += operation(
            100 * number + 30, "cas", [number, 900 + number], type_="info", process=50 + number
        )
    missing = judged(lines)["evidence"]["missing"]
    told = f"too few answers to cas: 0 of {asked} operations, {wanted} are needed"
    assert [text for text in missing if "cas" in text] == ([told] if wanted else [])


def test_a_kind_with_too_few_answers_names_its_most_frequent_error() -> None:
    """If it failed, a typing error in a client would be found in history.jsonl alone."""
    lines = good()
    for number in range(12):
        error = "timeout" if number % 4 == 0 else "AttributeError: 'Cas' object has no attribute 'value'"
        lines += operation(
            100 * number + 30, "cas", [number, 900 + number], type_="info", error=error, process=50 + number
        )
    (sentence,) = judged(lines)["evidence"]["missing"]
    assert sentence == (
        "too few answers to cas: 0 of 12 operations, 1 are needed; "
        "most frequent error: AttributeError: 'Cas' object has no attribute 'value' (9 of 12)"
    )


def test_a_plan_that_asks_for_less_needs_the_share_of_its_load_under_faults() -> None:
    """If it failed, a drawn seed would be evidence although hardly anything succeeded while a fault was active."""
    plan = msgspec.structs.replace(PLAN, rate=40, least_ok=9)
    missing = judged(good([*range(12), *range(21, 30)]), plan)["evidence"]["missing"]
    assert (
        "too little load under faults: 1 operations succeeded while one was active, expected at least 6"
        in missing
    )


@pytest.mark.parametrize(("system", "quorum"), [("qsync", None), ("qsync", 3), ("txlog", None)])
def test_a_store_that_needs_every_node_needs_less_load(system: str, quorum: int | None) -> None:
    """If it failed, no run of such a store would be evidence; or every cluster would pass with as little."""
    others = {} if quorum is None else {"quorum": quorum}
    plan = planned(
        system=system, cluster="sim", rate=20, least_ok=9, time_limit_s=3, faults=("pause",), **others
    )
    missing = judged(good([*range(4, 12), 28]), plan)["evidence"]["missing"]
    told = {text.partition(":")[0] for text in missing if text.startswith("too little load")}
    assert told == (set() if system == "txlog" else {"too little load", "too little load under faults"})


@pytest.mark.parametrize("rate", [0.4, 1.0, 5.0])
def test_a_small_plan_needs_something_too(rate: float) -> None:
    """If it failed, a plan of so few operations that a share of them rounds to none would pass with none."""
    plan = msgspec.structs.replace(PLAN, rate=rate)
    verdict = judged(good(range(9)), plan)
    assert outcome(verdict) == ("inconclusive", 3)
    assert verdict["evidence"]["missing"] == [
        "too little load under faults: 0 operations succeeded while one was active, expected at least 1"
    ]


def doing(does: str, lines: list[Line], **others: Any) -> list[Line]:
    """The same with another fault."""
    return [
        {**line, "value": {**line["value"], "does": does, **others}}
        if of("nemesis", line, type="invoke")
        else line
        for line in lines
    ]


@pytest.mark.parametrize(
    ("nodes", "does", "is_enough"),
    [(NODES, "pause", False), (("n1",), "pause", True), (("n1",), "clock", False)],
)
def test_while_the_only_node_is_down_nobody_serves(
    nodes: tuple[str, ...], does: str, is_enough: bool
) -> None:
    """If it failed, many runs of a single node would be thrown away; or clusters, or a node that is always there,
    would pass with as little."""
    plan = msgspec.structs.replace(PLAN, rate=20)
    told = history(doing(does, good([*range(12), *range(21, 30)])))
    verdict = judge(
        Case(
            plan,
            replace(told, header=msgspec.structs.replace(told.header, nodes=nodes)),
            given_promise=FIXED_OWNER,
        )
    )
    missing = [
        text for text in verdict["evidence"]["missing"] if text.startswith("too little load under faults: 1 ")
    ]
    assert (missing == []) == is_enough


@pytest.mark.parametrize(
    ("does", "at_ms", "until_ms", "links", "is_excused"),
    [
        ("remove", 1_500, 1_900, [["n3", "n1"], ["n2", "n3"]], True),
        ("remove", 1_500, 1_900, [["n3", "n1"], ["n2", "n1"]], False),
        ("remove", 2_100, 2_500, [["n3", "n1"]], False),
        ("add", 1_500, 2_500, [["n3", "n1"]], True),
        ("add", 1_500, 1_900, [["n3", "n1"]], False),
        ("add", 1_500, 2_500, [["n2", "n1"]], False),
    ],
)
def test_whether_a_cut_healed_cannot_be_tried_with_who_is_not_there(
    does: str, at_ms: int, until_ms: int, links: list[list[str]], is_excused: bool
) -> None:
    """If it failed, a run in which a member left, or came, beside a cut of its links would be thrown away; or a cut of
    others that was never seen to heal would be excused by it."""
    cut = doing("cut", evidence_of_the_fault(healed=None)(good()), links=links, nodes=[])
    missing = judged([*cut, *fault_beside(does, at_ms, until_ms)])["evidence"]["missing"]
    assert ("fault 0 (pause) was not seen to heal" not in missing) == is_excused


def test_faults_upon_faults_leave_less_load() -> None:
    """If it failed, no run with overlapping faults would prove anything, or a run without load would."""
    piled_up = msgspec.structs.replace(PLAN, overlap=3)
    assert outcome(judged(good(range(0, 30, 6)), piled_up)) == ("valid", 0)
    assert outcome(judged(good([0, 15]), piled_up)) == ("inconclusive", 3)


@pytest.mark.parametrize("faults", [(), ("none",), ("none", "none")])
def test_a_run_that_asked_for_no_fault_needs_none(faults: tuple[str, ...]) -> None:
    """If it failed, a plain run could never be valid."""
    calm = without(lambda line: of("nemesis", line))(good())
    assert outcome(judged(calm, msgspec.structs.replace(PLAN, faults=faults))) == ("valid", 0)


def test_a_drawn_plan_is_measured_by_its_own_lines() -> None:
    """If it failed, a shrunk plan that was stored as a regression test would always be "inconclusive"."""
    few = without(lambda line: of("nemesis", line))(good([28, 29]))
    one = Drawn(faults=(), operations=())
    plan = msgspec.structs.replace(PLAN, rate=300, drawn=one)
    assert outcome(judged(few, plan)) == ("valid", 0)
    fault = Fault(id=0, name="pause", does="pause", at_ns=0, until_ns=1, nodes=("n2",))
    with_fault = msgspec.structs.replace(plan, drawn=Drawn(faults=(fault,), operations=()))
    assert outcome(judged(few, with_fault)) == ("inconclusive", 3)


@pytest.mark.parametrize("stalled_ms", [251, 1_000])
def test_a_short_stall_is_told_and_forgiven(stalled_ms: int) -> None:
    """If it failed, a busy machine would make every run worthless."""
    verdict = judged([*good(), {**HARNESS, "f": "stall", "value": {"stalled_ms": stalled_ms}}])
    assert outcome(verdict) == ("valid", 0)
    assert verdict["evidence"]["stalls"] == 1


def raises(history: History, **_: Any) -> Verdict:
    raise ZeroDivisionError("a bug in a checker")


def says_unknown(history: History, **_: Any) -> Verdict:
    return Verdict(checker="quorum", result="unknown", summary="out of time")


@pytest.mark.parametrize("check", [raises, says_unknown])
def test_what_a_checker_cannot_decide_is_unknown(
    monkeypatch: pytest.MonkeyPatch, check: Callable[..., Verdict]
) -> None:
    """If it failed, a checker that breaks, or runs out of time, would say "valid" or stop the others."""
    monkeypatch.setattr(quorum, "check", check)
    verdict = judged(good())
    assert outcome(verdict) == ("unknown", 2)
    assert verdict["sentence"].startswith("Not decided: quorum: ")
    assert not any(f"{name}: " in verdict["sentence"] for name in NOT_ASKED)
    assert _unknown(verdict) == ["quorum"]
    assert outcome(judged(lost_write(good()))) == ("anomaly", 1)


def test_checks_that_are_undecided_for_one_reason_give_it_once() -> None:
    """If it failed, the sentence would say one thing five times, and a person would not see the other one."""
    told = [("a", "no time"), ("b", "no dump"), ("c", "no time"), ("d", "no time")]
    verdicts = [Verdict(checker=name, result="unknown", summary=why) for name, why in told]
    assert not_decided(verdicts) == "Not decided: a: no time (also c, d); b: no dump."


def test_a_check_that_judged_nothing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a run would be "not decided", and the sentence would end there."""
    empty = Verdict(
        checker="crash", result="valid", summary="there was nothing", model="", details={"vacuous": True}
    )
    monkeypatch.setattr(crash, "check", lambda history, **given: empty)
    verdict = judged(good())
    assert outcome(verdict) == ("unknown", 2)
    assert verdict["sentence"] == "Not decided: crash: there was nothing."


@pytest.mark.parametrize(
    ("in_effect", "words"), [(1, "1 fault that took effect"), (2, "2 faults that took effect")]
)
def test_a_valid_run_counts_its_faults(in_effect: int, words: str) -> None:
    """If it failed, the first sentence of a short run would read "during 1 faults"."""
    evidence = {
        "ok": 9,
        "ok_under_fault": 4,
        "faults": [{"took_effect": True}] * in_effect + [{"took_effect": False}],
    }
    assert sentence("valid", (), evidence).endswith(f"4 of them during {words}.")


def test_a_check_without_any_opportunity_is_not_exercised(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a run in which something could not happen would wait for its check, or be valid without others."""

    def said(**details: object) -> Verdict:
        return Verdict(checker="crash", result="unknown", summary="there was nothing", details=details)

    for told, expected in (
        ({"vacuous": True, "opportunities": 0}, "valid"),
        ({"vacuous": True, "asked": 0}, "valid"),
        ({"vacuous": True, "asked": 9}, "unknown"),  # of a short run that is too large a part
        ({"vacuous": True, "opportunities": 1}, "unknown"),
        ({"vacuous": True}, "unknown"),
        ({"opportunities": 0}, "unknown"),
    ):
        monkeypatch.setattr(crash, "check", lambda history, told=told, **given: said(**told))
        assert outcome(judged(good()))[0] == expected, told


@pytest.mark.parametrize(
    ("asked", "operations", "is_excused"),
    [(0, 0, True), (1, 5, False), (1, 100, True), (9, 100, True), (9, 90, False), (10, 100_000, False)],
)
def test_so_few_reads_may_all_be_lost_to_faults(asked: int, operations: int, is_excused: bool) -> None:
    """If it failed, one replica read that a fault swallowed would leave a run open, or a run about them would pass."""
    empty = Verdict(checker="prefix", result="unknown", summary="", details={"vacuous": True, "asked": asked})
    assert without_opportunity([empty], operations) == ({"prefix"} if is_excused else set())


def test_an_unknown_is_shown_where_something_is_missing() -> None:
    """If it failed, "inconclusive" would hide that a checker could not decide."""
    without_dumps = without(lambda line: line["f"] == "dump")(good())
    assert outcome(judged(without_dumps)) == ("unknown", 2)
    verdict = judged(without_dumps, interrupted=True)
    assert outcome(verdict) == ("inconclusive", 3)
    assert _unknown(verdict) == ["convergence"]


@pytest.mark.parametrize(
    ("states", "are_dumped", "expected", "told"),
    [
        (
            ["failed", "refused", "failed"],
            True,
            "inconclusive",
            "none of 3 cuts finished (2 failed: n2 left)",
        ),
        (["failed", "refused", "failed"], False, "unknown", "cuts-messages"),
        (["failed", "ok"], True, "unknown", "Not decided: cuts-messages"),
        ([], True, "unknown", "Not decided: cuts-messages"),
    ],
)
def test_a_run_in_which_no_cut_finished_shows_nothing(
    states: list[str], are_dumped: bool, expected: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a level of cuts would be called undecided, although there was no cut to decide on; or an unfinished
    cut would be the reason why the nodes' data were not compared."""
    lines = good() if are_dumped else without(lambda line: line["f"] == "dump")(good())
    for number, state in enumerate(states):
        ended = {"cut": f"c{number}", "state": state, "why": "n2 left"}
        for f, value in (("cut-asked", {"cut": f"c{number}"}), ("cut-ended", ended)):
            lines = added(at_ms=2_000, process="operator", type="info", f=f, node="n1", value=value)(lines)
    undecided = Verdict(
        checker="cuts-messages", result="unknown", summary="not judged: the cut did not finish"
    )
    check = Check("cuts-messages", "", "no message crosses a cut", lambda history, **given: undecided)
    monkeypatch.setattr(Case, "checks_of_nodes", (check,))
    verdict = judged(lines)
    assert outcome(verdict)[0] == expected
    assert told in verdict["sentence"]


@pytest.mark.parametrize("module", [linearizable, quorum, convergence, crash])
def test_no_checker_is_left_out(monkeypatch: pytest.MonkeyPatch, module: Any) -> None:
    """If it failed, a checker would be there and never be asked."""
    monkeypatch.setattr(module, "check", raises)
    assert outcome(judged(good())) == ("unknown", 2)


def test_a_crash_and_a_diverged_node_are_anomalies() -> None:
    """If it failed, only what clients saw would count."""
    crashed = {"process": "monitor", "f": "crash", "type": "info", "node": "n2", "at_ms": 2_500}
    assert outcome(judged([*good(), {**crashed, "value": {"how": "signal 11"}}])) == ("anomaly", 1)
    diverged = good()
    diverged[-1]["value"] = {"spaces": {"register": [["x", 28]]}}
    verdict = judged(diverged)
    assert outcome(verdict) == ("anomaly", 1)
    assert verdict["violations"] == ["convergence"]


def stale_replica(lines: list[Line]) -> list[Line]:
    """A replica that shows what was confirmed two seconds ago: allowed, and weaker than a reader may think."""
    return [*lines, *operation(2_500, "read", 3, process=8, node="n3", role="replica", mode="read-confirmed")]


def test_a_finding_is_shown_and_changes_no_exit_code() -> None:
    """If it failed, what is allowed yet surprising would be an alarm, or would not be told."""
    verdict = judged(stale_replica(good()))
    assert outcome(verdict) == ("valid", 0)
    assert [finding["checker"] for finding in verdict["findings"]] == ["prefix"]
    assert "stale" in verdict["findings"][0]["summary"]


def test_a_failed_compare_is_as_fresh_as_the_owners_reads() -> None:
    """Broken, a paused ex-leader that compares with its old state is an alarm where its reads may be stale."""
    stale = [*good(), *operation(2_950, "cas", [29, 30], type_="fail", error="mismatch")]
    fixed = register_check(FIXED_OWNER).run(history(stale))
    elected = register_check(ELECTED).run(history(stale))
    assert fixed.result == "invalid"
    assert elected.result != "invalid"


def register_check(promise: Promise) -> Check:
    return WORKLOADS["register"].checks(promise, None)[0]


def test_a_stricter_promise_judges_replica_reads_too() -> None:
    """If it failed, `--promise linearizable` would say nothing that a plain run does not say."""
    plan = msgspec.structs.replace(PLAN, promise="linearizable")
    assert outcome(judged(good(), plan)) == ("valid", 0)
    verdict = judged(stale_replica(good()), plan)
    assert outcome(verdict) == ("anomaly", 1)
    assert verdict["violations"] == ["linearizable"]


def test_dirty_reads_are_judged_by_their_own_promise() -> None:
    """If it failed, a dirty read of what is not confirmed yet would be called an anomaly."""
    dirty = operation(2_500, "read", 3, process=8, node="n3", role="replica", mode="dirty")
    for promise in (None, "linearizable"):
        assert outcome(judged([*good(), *dirty], msgspec.structs.replace(PLAN, promise=promise))) == (
            "valid",
            0,
        )
    invented = operation(2_500, "read", 12_345, process=8, node="n3", role="replica", mode="dirty")
    assert judged([*good(), *invented])["violations"] == ["dirty"]


def test_an_owner_that_could_not_reach_anybody_must_have_rolled_back() -> None:
    """If it failed, a run whose isolation of the owner did not force anything would count as one that did."""
    long = [
        {**line, "f": "isolate-owner", "value": {**line["value"], "name": "isolate-owner"}}
        if of("nemesis", line)
        else line
        for line in good()
    ]
    plan = PLAN.changed(synchro_timeout_s=0.4, faults=("isolate-owner",))
    verdict = judge(Case(plan, history(long), given_promise=PROMISES["C"]))
    assert outcome(verdict) == ("inconclusive", 3)
    said = "the owner was isolated, and yet nothing was ever rolled back"
    assert verdict["evidence"]["missing"] == [said]
    silent = [{**line, "value": {"up": True}} if of("monitor", line) else line for line in long]
    verdict = judge(Case(plan, history(silent), given_promise=PROMISES["C"]))
    assert "the owner was isolated, and yet no node reported a rollback" in verdict["evidence"]["missing"]
    submitting = plan.changed(commit_wait="mixed")  # such writes have no time-out
    assert (
        said not in judge(Case(submitting, history(long), given_promise=PROMISES["C"]))["evidence"]["missing"]
    )
    longer = plan.changed(synchro_timeout_s=0.6)
    assert outcome(judge(Case(longer, history(long), given_promise=PROMISES["C"]))) == ("valid", 0)
    assert outcome(judged(long, plan)) == ("valid", 0), "another promise says nothing of rollbacks"
    for damage in ({"took_effect": False}, {"all_in_effect_ns": 0}, {"heal_asked_ns": 0}):
        vain = judge(Case(plan, history(evidence_of_the_fault(**damage)(long)), given_promise=PROMISES["C"]))
        assert said not in vain["evidence"]["missing"], "it is not known that the owner was isolated"


def test_the_verdict_is_json_with_everything_in_it() -> None:
    """If it failed, the report and the certificate would have nothing to show."""
    verdict = msgspec.json.decode(msgspec.json.encode(judged(good())))
    assert (verdict["format"], verdict["version"]) == ("qsync-verdict", 1)
    assert verdict["run"] == {
        "system": "qsync",
        "cluster": "sim",
        "workload": "register",
        "seed": 0,
        "bugs": [],
    }
    assert verdict["promise"]["linearizable"] == "linearizable"
    assert verdict["promise"]["why"]
    assert verdict["repeat"]["repeats"] == "outcome"
    assert [each["checker"] for each in verdict["checks"]] == [
        each.name
        for each in (*WORKLOADS["register"].checks(FIXED_OWNER, None), *SYSTEMS["qsync"].checks(PLAN))
    ]
    local = judged(good(), msgspec.structs.replace(PLAN, cluster="local"))
    assert local["repeat"]["repeats"] == "schedule"


def test_every_outcome_has_an_exit_code_of_its_own() -> None:
    """If it failed, a machine could not tell an anomaly from a run that shows nothing."""
    assert EXIT_CODES == {"valid": 0, "anomaly": 1, "unknown": 2, "inconclusive": 3}


# ---- the line that repeats a run


def parsed(line: str) -> Plan:
    """What the command line makes of it."""
    words = shlex.split(line)
    assert words[:2] == ["./qsync", "run"]
    given = command.make_context("run", words[2:]).params
    names = {*known_fields(), "plan_file"}
    plan = plan_of(**{name: value for name, value in given.items() if name in names and name != "drawn"})
    assert isinstance(plan, Plan)
    return msgspec.structs.replace(plan, code="")


SECONDS = st.floats(LEAST, 86_400)


@pytest.mark.long
@examples.up_to(200)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "name": st.sampled_from(["nightly", "a.b-c_d"]),
            "cluster": st.sampled_from(["local", "sim"]),
            "faults": st.sampled_from([("none",), (), ("kill", "pause"), ("all",)]),
            "nodes": st.integers(3, 31),
            "seed": st.integers(0, (1 << 53) - 1),
            "time_limit_s": SECONDS,
            "rate": st.floats(LEAST, 1_000_000),
            "workers": st.integers(1, 10_000),
            "quorum": st.one_of(st.integers(1, 3), st.sampled_from(["N", "math.max(2*N/3, 1)"])),
            "synchro_timeout_s": SECONDS,
            "replication_timeout_s": SECONDS,
            "request_timeout_s": SECONDS,
            "settle_timeout_s": SECONDS,
            "read": st.sampled_from(["read-confirmed", "dirty"]),
            "replica_reads": st.floats(0, 1),
            "bugs": st.sampled_from([(), ("confirm-early",), ("confirm-early", "ack-before-fsync")]),
            "node_options": st.sampled_from(
                [(), ("n2:election_timeout=0.8", "n3:memtx_use_mvcc_engine=false")]
            ),
            "promise": st.sampled_from([None, "linearizable"]),
            "base_port": st.integers(0, 65_000),
        },
    )
)
def test_the_line_that_repeats_a_run_gives_its_plan(given: dict[str, Any]) -> None:
    """If it failed, whoever follows the line of an anomaly would look at another run."""
    plan = planned(**given)
    line = repeat_line(plan)
    idle = {field: getattr(Plan(), field) for field in idle_fields(plan)}
    same = msgspec.structs.replace(plan, faults=plan.faults or ("none",), **idle)
    assert parsed(line) == same
    assert "\n" not in line


def test_no_field_of_a_plan_is_left_out_of_the_line() -> None:
    """If it failed, a new field of plans would silently not be repeated."""
    several = {"faults", "bugs", "leader", "options"}
    said_otherwise = {*several, "format", "version", "seed", "code", "drawn", "accept_new_host_keys"}
    assert {*_NAMED, *said_otherwise} == {*Plan.__struct_fields__}


def test_a_drawn_plan_is_repeated_from_its_file(tmp_path: Path) -> None:
    """If it failed, the line would draw another run from the seed."""
    plan = msgspec.structs.replace(PLAN, drawn=Drawn(faults=(), operations=()))
    path = tmp_path / "a folder" / "plan.json"
    path.parent.mkdir()
    path.write_bytes(to_json(plan))
    assert parsed(repeat_line(plan, path)) == plan


def test_one_key_that_was_skipped_is_one() -> None:
    """If this fails, the sentence of a verdict on one key counts "1 other keys"."""
    verdict = judged([*good(), *operation(50, "write", 7, key="y")], key="x")
    assert verdict["sentence"].startswith("Not all was judged: ")
    assert "judged the key x alone, and skipped 1 other key." in verdict["sentence"]
