"""Every workload: what it asks can be said, any answer has a meaning, good nodes pass and known bugs are found."""

from __future__ import annotations

import functools
import re
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.history.history import Header, History
from checkers.history.operation import Event
from checkers.verdict import Verdict
from harness.campaigns.hunt.seeds import try_seed
from harness.clients import operations
from harness.clients.operations import Done
from harness.clients.reply import Lost, NotSent, Replied
from harness.errors import WrongUse
from harness.judge.evidence.rare_turns import DELETED, FAILED, FOUND_NOTHING, WRITTEN_ONCE
from harness.judge.words import repeat_line
from harness.plan.plan import Drawn, Operation, to_json
from harness.run.assemble import parts_of
from harness.run.draw import draw
from harness.systems import SYSTEMS
from harness.systems.plans import from_json, planned
from harness.systems.qsync.promises import FIXED_OWNER
from harness.systems.qsync.rare_turns import STRAY
from harness.workloads import WORKLOADS
from harness.workloads.failing import AS_IT_HAD_TO, COMMITTED, FAILURES
from harness.workloads.reads import STAYS_NS
from harness.workloads.workload import SHARES
from nodes.iproto.messages import Answer, Refusal
from nodes.qsync import service
from nodes.qsync.evaluation import Evaluation, Outcome
from nodes.qsync.keys import Tuple
from nodes.qsync.spaces import Space
from nodes.qsync.statements import run
from tests import examples
from tests.harness.said import answered, said
from tests.suites import mostly_long

SMALL = planned(cluster="sim", time_limit_s=4, rate=60, workers=5, faults=("isolate-one",))
NAMES = tuple(name for name, each in WORKLOADS.items() if each.uses <= SYSTEMS["qsync"].client.speaks)


QUICK_FOUND = ("counter", "mixed-spaces", "register")
QUICK_GOOD = ("append", "long-fork", "queue", "read-write")
"""By default a bug is found in some workloads, and good nodes pass in others."""


@functools.cache
def drawn(name: str) -> tuple[Operation, ...]:
    plan = msgspec.structs.replace(SMALL, workload=name)
    whole = draw(plan, SYSTEMS["qsync"], WORKLOADS[name]).drawn
    assert whole is not None
    return whole.operations


@functools.cache
def everything(name: str) -> tuple[Operation, ...]:
    """One operation of each kind that a run has, the first and the last ones included."""
    workload = WORKLOADS[name]
    load = drawn(name)
    keys = list(dict.fromkeys(key for operation in load for key in workload.keys(operation)))
    dump = Operation(at_ns=0, worker=0, f="dump", node="n1")
    first, final = workload.first_operations(SMALL, "n1"), workload.final_operations(SMALL, keys, "n1")
    return (*load[:40], *first, *final, dump)


@pytest.mark.parametrize("name", NAMES)
def test_everything_that_is_drawn_is_one_call(name: str) -> None:
    """If it failed, a run would break on its own operation, or one operation would be several transactions."""
    asked = [said(WORKLOADS[name], each) for each in everything(name)]
    assert {call.name for call in asked} == {"qsync.transaction", "qsync.dump"}


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_with_every_operation_as_a_line_comes_back_from_its_file(name: str) -> None:
    """If it failed, a stored plan would run other operations than those that were drawn."""
    plan = msgspec.structs.replace(SMALL, workload=name, drawn=Drawn(faults=(), operations=drawn(name)))
    assert from_json(to_json(plan), "here") == plan


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [None, 3, "x", (), (1, 2), (("r",),), {"from": 1}])
def test_what_cannot_be_said_is_refused_in_one_line(name: str, value: Any) -> None:
    """If it failed, a slip in an edited plan would break the harness in the middle of a run."""
    with pytest.raises(WrongUse, match=f"the workload {WORKLOADS[name].spaces[0]}|{name}"):
        WORKLOADS[name].asked(Operation(at_ns=0, worker=0, f="sing", value=value), value)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=5), st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=8,
)
RESULTS = st.builds(lambda results: {"committed": True, "results": results}, st.lists(JSON, max_size=5))
REFUSALS = st.builds(lambda found: {"committed": False, "mismatch": [0, found]}, JSON)


@pytest.mark.parametrize("name", NAMES)
@examples.up_to(200)
@given(data=st.one_of(JSON, RESULTS, REFUSALS), number=st.integers(0, 1000))
def test_any_answer_at_all_has_a_meaning(name: str, data: Any, number: int) -> None:
    """If it failed, one odd answer would end a run."""
    choices = everything(name)
    asked = choices[number % len(choices)]
    done = answered(WORKLOADS[name], asked, Replied(Answer(1, (data,))))
    assert done.type in ("ok", "fail", "info")


@pytest.mark.parametrize("name", ["set", "mixed-spaces"])
def test_rows_of_a_scan_may_be_any_sequence(name: str) -> None:
    """If it failed, a client that gives tuples, as `fitting` allows, would have no read that succeeds."""
    asked = next(each for each in everything(name) if each.f == "read" and each.mode == "linearizable")
    lists, tuples = (
        WORKLOADS[name].completion(asked, asked.value, Done([rows])) for rows in ([[5, 5]], ((5, 5),))
    )
    assert lists is not None
    assert lists == tuples


@pytest.mark.parametrize("name", NAMES)
def test_silence_leaves_a_write_open_and_is_nothing_for_a_read(name: str) -> None:
    """If it failed, a write that happened after all would be called undone: a false alarm."""
    for asked in everything(name):
        done = answered(WORKLOADS[name], asked, Lost("reset"))
        refused = answered(WORKLOADS[name], asked, Replied(Refusal(1, 216, "timeout")))
        is_read = asked.f in ("read", "dump") or (
            asked.f == "txn" and all(micro[0] == "r" for micro in asked.value)
        )
        assert done.type == refused.type == ("fail" if is_read else "info")
        assert answered(WORKLOADS[name], asked, NotSent("no")).type == "fail"


@pytest.mark.parametrize("name", NAMES)
def test_every_check_of_a_workload_has_a_name_and_a_sentence(name: str) -> None:
    """If it failed, `qsync list checkers` and the page would show rules that nobody understands."""
    checks = WORKLOADS[name].checks(FIXED_OWNER, None)
    assert len({check.name for check in checks}) == len(checks)
    assert all(check.summary for check in checks)


@pytest.mark.parametrize("name", mostly_long(NAMES, quick=QUICK_GOOD))
@pytest.mark.parametrize("mode", [pytest.param("off", marks=pytest.mark.nightly), "candidate"])
def test_good_nodes_pass(name: str, mode: str) -> None:
    """If it failed, the workload would raise a false alarm, or could not gather evidence."""
    tried = try_seed(SMALL.changed(workload=name, election_mode=mode, seed=1))
    assert (tried.outcome, tried.violated) == ("valid", ()), tried.sentence


SEEDS = 12
FOUND_BY = {
    "register": {"linearizable"},
    "read-write": {"linearizable"},
    "append": {"durability", "transactional"},
    "rw-register": {"durability", "transactional"},
    "bank": {"balances"},
    "set": {"set-full"},
    "counter": {"counter"},
    "queue": {"queues"},
    "message-queue": {"queues"},
    "unique-ids": {"unique-ids"},
    "long-fork": {"durability", "long-fork"},
    "mixed-spaces": {"write-once"},
}
"""The checkers that a workload is for; what judges every run, such as the quorum, does not count."""


def found(name: str, checkers: set[str], **fields: Any) -> set[str]:
    """What violates the promise in the first seed in which the workload's own checker is among it."""
    violated: set[str] = set()
    for seed in range(SEEDS):
        tried = try_seed(SMALL.changed(workload=name, seed=seed, **fields))
        violated = set(tried.violated)
        if checkers & violated:
            break
    return violated


@pytest.mark.parametrize("name", mostly_long(NAMES, quick=QUICK_FOUND))
def test_a_confirmation_before_the_quorum_is_found(name: str) -> None:
    """If it failed, the workload would have gone blind: its own checker must see what is rolled back."""
    assert FOUND_BY[name] & found(name, FOUND_BY[name], faults=("isolate-owner",), bugs=("confirm-early",))


@pytest.mark.parametrize(
    "name",
    mostly_long(
        (name for name in NAMES if name not in ("queue", "message-queue", "unique-ids")),
        quick=("bank", "register"),
    ),
)
def test_an_acknowledgement_of_what_a_power_loss_takes_away_is_found(name: str) -> None:
    """If it failed, the workload would not see that acknowledged transactions are gone.

    Left out are those that cannot ask any more: a store that lost all takes no writes, and they know no reads.
    """
    checkers = FOUND_BY[name] | (
        {"prefix", "convergence"} if name in ("register", "read-write") else {"bank", "balances"}
    )
    bugs = ("ack-before-fsync",)
    assert checkers & found(name, checkers, faults=("power-all",), bugs=bugs, configuration="C")


OF_SEVERAL_STATEMENTS = ("append", "rw-register", "bank", "mixed-spaces")


@pytest.mark.parametrize("name", mostly_long(OF_SEVERAL_STATEMENTS, quick=["bank"]))
def test_transactions_that_must_fail_do_and_a_store_that_keeps_a_part_of_one_is_found(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, no run would see that a failing statement leaves behind what stood before it."""
    plan = msgspec.structs.replace(SMALL, workload=name, failing=0.3, seed=3)
    tried = try_seed(plan)
    assert (tried.outcome, tried.violated) == ("valid", ()), tried.sentence
    assert tried.sometimes[FAILED] > 10

    def keeps_a_part(evaluation: Evaluation, statements: Sequence[object]) -> Outcome:
        outcome = run(evaluation, statements)
        if outcome.changes:
            outcome.mismatch = outcome.duplicate = None
        return outcome

    monkeypatch.setattr(service, "run", keeps_a_part)
    assert try_seed(plan).outcome == "anomaly"


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("unique-ids", "long-fork")])
def test_writes_go_astray_and_clients_roam(name: str) -> None:
    """If it failed, nobody would ask followers and former leaders to write, or read at one node after the other."""
    plan = msgspec.structs.replace(SMALL, workload=name, stray_writes=0.3, roaming=0.5)
    whole = draw(plan, SYSTEMS["qsync"], WORKLOADS[name]).drawn
    assert whole is not None
    writes = {each.node for each in whole.operations if each.mode is None}
    assert writes == {"n1", "n2", "n3"}
    reads = [each for each in whole.operations if each.mode is not None and each.worker == 0]
    stays = [(each.at_ns // STAYS_NS, each.node) for each in reads]
    assert len(set(stays)) == len({place for place, _ in stays}), (
        "a client that roams stays for half a second"
    )
    assert name.endswith("queue") or len({node for _, node in stays}) > 1


@pytest.mark.parametrize("name", NAMES)
def test_a_workload_names_the_shares_that_it_draws_by(name: str) -> None:
    """If it failed, `--failing 0.5` would be taken for tried by a run that never tried it."""
    for share in SHARES:
        some, none = (msgspec.structs.replace(SMALL, workload=name, **{share: each}) for each in (0.5, 0.0))
        is_drawn_by = draw(some, SYSTEMS["qsync"], WORKLOADS[name]).drawn != (
            draw(none, SYSTEMS["qsync"], WORKLOADS[name]).drawn
        )
        assert is_drawn_by == (share in WORKLOADS[name].shares), share
        assert ("0.5" in repeat_line(some)) == is_drawn_by, share


@pytest.mark.parametrize("fails", FAILURES)
def test_the_answer_to_what_must_fail_is_told(fails: str) -> None:
    """If it failed, such transactions would count as operations without an answer, or as committed ones."""
    value = {"spaces": {"once": (1, 2)}, "fails": fails}
    asked = Operation(at_ns=0, worker=0, f="insert", value=value)
    workload = WORKLOADS["mixed-spaces"]
    statements: Any = said(workload, asked).arguments[0]
    assert [each[0] for each in statements].count("insert") == (3 if fails == "duplicate" else 2)
    assert statements[0] == ["insert", "once", [1, 1]], "something stands before what fails"
    answers = {"compare": Answer(1, ({"committed": False, "mismatch": [1, None]},))}
    codes = {"duplicate": 3, "malformed": 1}
    reply = Replied(answers.get(fails) or Refusal(1, codes[fails], "no"))
    done = answered(workload, asked, reply)
    assert (done.type, done.error) == ("fail", AS_IT_HAD_TO)
    committed = Replied(Answer(1, ({"committed": True, "results": [1, 2, 3]},)))
    assert answered(workload, asked, committed).error == COMMITTED


def test_writes_that_a_follower_refuses_are_counted() -> None:
    """If it failed, the table of rare turns would say that no client ever wrote to a node that does not lead."""
    assert try_seed(msgspec.structs.replace(SMALL, stray_writes=0.5, seed=1)).sometimes[STRAY] > 10


def test_a_share_of_the_registers_is_written_once_and_read_in_the_end() -> None:
    """If it failed, a lost row would be hidden by the next write to its key."""
    tried = try_seed(msgspec.structs.replace(SMALL, write_once=0.5, seed=1))
    assert (tried.outcome, tried.violated) == ("valid", ()), tried.sentence
    assert tried.sometimes[WRITTEN_ONCE] > 10


def test_a_share_of_the_registers_is_deleted() -> None:
    """If it failed, no run would delete, or the nodes or a checker would stumble over deletions."""
    tried = try_seed(msgspec.structs.replace(SMALL, deletes=0.3, seed=1))
    assert (tried.outcome, tried.violated) == ("valid", ()), tried.sentence
    assert tried.sometimes[DELETED] > 10
    assert tried.sometimes[FOUND_NOTHING] > 1


def test_a_deletion_that_leaves_the_tuple_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a store that deletes nothing would pass."""

    def stays(space: Space, key: Hashable, value: Tuple | None) -> None:
        if value is not None:
            space.confirmed[key] = value

    monkeypatch.setattr(Space, "put", stays)
    tried = try_seed(msgspec.structs.replace(SMALL, deletes=0.3, seed=1))
    assert {"linearizable", "convergence"} <= set(tried.violated), tried.sentence


def test_a_pending_deletion_that_is_shown_at_once_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a client could be told that nothing is there, and find the tuple again later."""

    def read(evaluation: Evaluation, space: Space, key: Hashable) -> Tuple | None:
        shown = evaluation.outcome.looked_at
        found = reads(evaluation, space, key)
        if found is None:
            evaluation.outcome.looked_at = shown
        return found

    reads = Evaluation.read
    monkeypatch.setattr(Evaluation, "read", read)
    plan = planned(
        cluster="sim", time_limit_s=6, rate=150, deletes=0.3, faults=("isolate-owner",), configuration="C"
    )
    assert "linearizable" in try_seed(plan.changed(seed=3)).violated


@pytest.mark.usefixtures("a_tarantool")
def test_asynchronous_rows_are_refused_where_the_system_has_no_space_for_them() -> None:
    """If it failed, a run on another system would end in errors of every second operation."""
    plan = planned(system="tarantool", workload="mixed-spaces")
    with pytest.raises(WrongUse, match="asynchronous space 'notes'"):
        parts_of(plan)


@pytest.mark.parametrize("name", sorted(set(WORKLOADS) - {"restore"}))
def test_the_page_has_the_steps_of_a_workload(name: str) -> None:
    """If it failed, an author would look in the code for the steps that a client must support."""
    page = (Path(__file__).parents[3] / "docs" / "workloads.md").read_text()
    table = page.partition("| steps that the client must support |")[2].partition("\n\n")[0]
    rows = [line for line in table.splitlines() if f"`{name}`" in line]
    steps = {word for line in rows for word in re.findall(r"`(\w+)`", line) if word in dir(operations)}
    assert steps >= {step.__name__ for step in WORKLOADS[name].uses}


LOST_UPDATES = {
    "append": {"transactional"},
    "rw-register": {"transactional"},
    "bank": {"bank"},
    "counter": {"counter"},
    "queue": {"queues"},
    "message-queue": {"queues"},
    "unique-ids": {"unique-ids"},
}
"""Not here: the workloads in which no transaction decides by what it read."""


@pytest.mark.parametrize("name", mostly_long(LOST_UPDATES, quick=["counter"]))
def test_transactions_that_do_not_see_each_other_are_found(name: str) -> None:
    """If it failed, isolation would not be tested: all other bugs lose whole transactions."""
    plan = msgspec.structs.replace(SMALL, workload=name, rate=120, workers=10, bugs=("decide-on-confirmed",))
    assert LOST_UPDATES[name] & set(try_seed(plan).violated)


def test_identifiers_must_be_given_out_in_the_end() -> None:
    """If the check failed, a sequence that fell back would pass where no client could get a number any more."""
    missing = WORKLOADS["unique-ids"].missing
    events = [
        Event(index=number, time_ns=number, process=0, f="generate", type=word, value=value, phase="final")
        for number, (word, value) in enumerate((("invoke", None), ("ok", 1)))
    ]
    assert list(missing(History.of(Header(), events[:1]))) == ["no number was given out in the end"]
    assert list(missing(History.of(Header(), events))) == []


def test_stale_snapshots_are_told_and_a_node_that_goes_back_is_an_anomaly() -> None:
    """If it failed, a replica's old answers would be a false alarm, or a torn order at a replica would pass."""
    snapshots = next(
        check for check in WORKLOADS["append"].checks(FIXED_OWNER, None) if check.name == "snapshots"
    )

    def told(*lines: tuple[int, str, Any, str]) -> Verdict:
        events = []
        for process, node, value, role in lines:
            fields: dict[str, Any] = {"process": process, "f": "txn", "node": node, "value": value}
            for type_ in ("invoke", "ok"):
                mode = None if value[0][0] == "append" else "read-confirmed"
                events.append(
                    Event(index=len(events), time_ns=len(events), type=type_, role=role, mode=mode, **fields)  # type: ignore[arg-type]  # one of the two words
                )
        return snapshots.run(History.of(Header(), events))

    write = (0, "n1", [["append", "x", 1]], "owner")
    new, old = [["r", "x", [1]]], [["r", "x", None]]
    stale = told(write, (1, "n2", new, "replica"), (1, "n3", old, "replica"))
    assert stale.result == "valid"
    assert stale.details["findings"] == ["reads were stale, as is allowed: G-single-realtime"]
    back = told(write, (1, "n2", new, "replica"), (2, "n2", old, "replica"))
    assert back.result == "invalid"
    assert any("both were answered by n2" in each for each in back.witnesses[0].explanation)
