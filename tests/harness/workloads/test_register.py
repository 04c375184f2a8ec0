"""The register workload: how operations are said to a store, and what its answers mean."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.clients.operations import Completion
from harness.clients.reply import Lost, NotSent, Replied
from harness.errors import WrongUse
from harness.plan.plan import SECOND_NS, Drawn, Operation
from harness.run.assemble import parts_of
from harness.run.draw import draw, operations_of
from harness.systems import SYSTEMS
from harness.systems.plans import planned
from harness.workloads import WORKLOADS
from harness.workloads.register import EPOCH_NS, EPOCHS, ONCE, PLACES, Register
from nodes.iproto.messages import Answer, Call, Refusal
from tests.harness.said import answered, said

REGISTER = Register()


def operation(f: str, key: str | None = "x", *, value: Any = None, mode: str | None = None) -> Operation:
    return Operation(at_ns=0, worker=0, f=f, key=key, value=value, node="n1", mode=mode)


WRITE = operation("write", value=3)
DELETE = operation("write")
CAS = operation("cas", value=(2, 3))
READ = operation("read", mode="read-confirmed")
DUMP = operation("dump", None)


@pytest.mark.parametrize(
    ("asked", "arguments"),
    [
        (WRITE, ([["replace", "register", ["x", 3]]], {})),
        (CAS, ([["cas", "register", "x", 2, 3]], {})),
        (operation("cas", value=(None, 3)), ([["cas", "register", "x", None, 3]], {})),
        (DELETE, ([["delete", "register", "x"]], {})),
        (READ, ([["get", "register", "x"]], {"read": "read-confirmed"})),
        (operation("read", mode="dirty"), ([["get", "register", "x"]], {"read": "dirty"})),
    ],
)
def test_an_operation_is_one_transaction(asked: Operation, arguments: tuple[Any, ...]) -> None:
    """If it failed, the table of errors would not hold: it is for requests that are one transaction."""
    assert said(REGISTER, asked, 7) == Call(7, "qsync.transaction", arguments)


def test_a_dump_is_a_call_of_its_own() -> None:
    """If it failed, nothing would be known of what the nodes hold in the end."""
    assert said(REGISTER, DUMP, 7) == Call(7, "qsync.dump", ())


@pytest.mark.parametrize(
    "asked",
    [
        operation("append", value=3),
        operation("write", value="x"),
        operation("cas", value=3),
        operation("read", None),
    ],
)
def test_what_cannot_be_said_is_refused(asked: Operation) -> None:
    """If it failed, a slip in an edited plan would break the harness in the middle of a run."""
    with pytest.raises(WrongUse, match="the workload register has no"):
        REGISTER.asked(asked, asked.value)


def told(asked: Operation, **answer: Any) -> Completion:
    return answered(REGISTER, asked, Replied(Answer(1, (answer,))))


@pytest.mark.parametrize(
    ("asked", "answer", "done"),
    [
        (
            WRITE,
            {"committed": True, "results": [["x", 3]], "role": "owner"},
            Completion("ok", 3, None, "owner"),
        ),
        (
            CAS,
            {"committed": True, "results": [None], "role": "owner"},
            Completion("ok", (2, 3), None, "owner"),
        ),
        (
            CAS,
            {"committed": False, "mismatch": 0, "role": "owner"},
            Completion("fail", (2, 3), "mismatch", "owner"),
        ),
        (
            CAS,
            {"committed": False, "mismatch": [0, 7], "role": "owner"},
            Completion("fail", (2, 3, 7), "mismatch", "owner"),
        ),
        (
            CAS,
            {"committed": False, "mismatch": [0, 7], "role": "owner", "mode": "dirty"},
            Completion("fail", (2, 3), "mismatch with what may be rolled back", "owner"),
        ),
        (
            DELETE,
            {"committed": True, "results": [["x", 8]], "role": "owner"},
            Completion("ok", None, None, "owner"),
        ),
        (
            DELETE,
            {"committed": True, "results": [None], "role": "owner"},
            Completion("fail", None, "nothing-there", "owner"),
        ),
        (
            DELETE,
            {"committed": True, "results": [None], "role": "owner", "mode": "dirty"},
            Completion("fail", None, "nothing-there, or what was there may be rolled back", "owner"),
        ),
        (
            READ,
            {"committed": True, "results": [["x", 8]], "role": "replica"},
            Completion("ok", 8, None, "replica"),
        ),
        (
            READ,
            {"committed": True, "results": [None], "role": "owner"},
            Completion("ok", None, None, "owner"),
        ),
        (DUMP, {"spaces": {"register": [["x", 3]]}}, Completion("ok", {"spaces": {"register": [["x", 3]]}})),
    ],
)
def test_what_an_answer_means(asked: Operation, answer: dict[str, Any], done: Completion) -> None:
    """If it failed, the history would tell something else than the store said."""
    assert told(asked, **answer) == done


def test_a_read_is_judged_by_what_the_server_says_it_was() -> None:
    """If it failed, a stale read at a replica would be judged by the owner's promise: a false alarm."""
    assert told(READ, committed=True, results=[None], role="replica").role == "replica"
    assert told(READ, committed=True, results=[None], role=3).role is None


ODD: list[dict[str, Any]] = [
    {},
    {"committed": False},
    {"committed": 1, "results": []},
    {"committed": True, "results": "x"},
    {"committed": True, "results": [["x"]]},
    {"committed": True, "results": [["x", "not a number"]]},
    {"committed": True, "results": [["x", [3]]]},
    {"spaces": 3},
    {"error": "?"},
]


@pytest.mark.parametrize("answer", ODD)
def test_an_answer_that_makes_no_sense_is_no_success(answer: dict[str, Any]) -> None:
    """If it failed, a store that answers nonsense would pass, or break the harness."""
    assert told(READ, **answer).type == "fail"
    assert told(DUMP, **answer).type == "fail"
    if answer.get("committed") is not True:
        assert told(WRITE, **answer).type == "info"
        assert told(DELETE, **answer).type == "info"
        assert told(CAS, **answer).type == "info"


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.lists(JSON, max_size=2).map(tuple), st.sampled_from([WRITE, DELETE, CAS, READ, DUMP]))
def test_any_answer_at_all_has_a_meaning(data: tuple[Any, ...], asked: Operation) -> None:
    """If it failed, one odd answer would end a run."""
    done = answered(REGISTER, asked, Replied(Answer(1, data)))
    assert done.type in ("ok", "fail", "info")
    assert done.type != "info" or asked.f in ("write", "cas")
    if asked is READ:
        assert done.value is None or isinstance(done.value, int)


@pytest.mark.parametrize(
    ("asked", "reply", "type_"),
    [
        (WRITE, Replied(Refusal(1, 216, "timeout")), "info"),
        (WRITE, Replied(Refusal(1, 7, "read-only")), "fail"),
        (DELETE, Replied(Refusal(1, 217, "rolled back")), "info"),
        (READ, Replied(Refusal(1, 216, "timeout")), "fail"),
        (DUMP, Replied(Refusal(1, 32, "?")), "fail"),
        (WRITE, Lost("reset"), "info"),
        (CAS, Lost("timeout"), "info"),
        (READ, Lost("reset"), "fail"),
        (DUMP, Lost("reset"), "fail"),
        (CAS, NotSent("refused"), "fail"),
    ],
)
def test_no_answer_and_refusals(asked: Operation, reply: Any, type_: str) -> None:
    """If it failed, a write that nobody knows the end of would be called undone: a false alarm."""
    assert answered(REGISTER, asked, reply).type == type_


@pytest.mark.parametrize(
    "done", [Completion("ok"), Completion("fail", None, "nothing-there"), Completion("ok", None)]
)
def test_after_a_deletion_its_client_expects_nothing(done: Completion) -> None:
    """If it failed, hardly any compare-and-set would begin where nothing is."""
    seen: dict[str, Any] = {"x": 3}
    REGISTER.remember(DELETE, done, seen)
    assert REGISTER.resolved(operation("cas", value=("@seen", 4)), seen) == (None, 4)
    REGISTER.remember(WRITE, Completion("ok", 3), seen)
    REGISTER.remember(DELETE, Completion("info", None, "timeout"), seen)
    assert seen == {"x": 3}


def test_a_share_of_the_writes_deletes_and_is_never_only_submitted() -> None:
    """If it failed, no run would delete, or a submitted write could not be told from its deletion."""
    plan = planned(deletes=0.3, write_once=0.2, rate=400.0, commit_wait="mixed")
    drawn = draw(plan, SYSTEMS["qsync"], REGISTER).drawn
    assert drawn is not None
    writes = [each for each in drawn.operations if each.f == "write"]
    shared = [each for each in writes if ONCE not in (each.key or "")]
    deletions = [each for each in writes if REGISTER.is_deletion(each)]
    assert 0.25 < len(deletions) / len(shared) < 0.35
    assert len(shared) < len(writes)
    assert {each.wait for each in deletions} == {None}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"workload": "append", "deletes": 0.1},
            "the workload append deletes nothing; try: --workload register",
        ),
        ({"system": "twophase", "deletes": 0.1}, "the client of --system twophase does not speak Delete"),
        (
            {"system": "txlog", "workload": "rw-register", "failing": 0.1},
            "the client of --system txlog does not speak Add; leave the transactions that must fail out",
        ),
    ],
)
def test_steps_of_a_share_are_refused_where_none_can_be(options: dict[str, Any], words: str) -> None:
    """If it failed, the share would be ignored, or every such operation would end in an error."""
    with pytest.raises(WrongUse, match=words):
        parts_of(planned(**options))


def test_a_drawn_out_deletion_is_refused_as_well() -> None:
    """If it failed, an edited plan would make a client say what it cannot."""
    drawn = Drawn(faults=(), operations=(DELETE,))
    with pytest.raises(WrongUse, match="does not speak Delete"):
        parts_of(planned(system="twophase", drawn=drawn))


def test_every_key_is_read_at_the_owner_in_the_end() -> None:
    """If it failed, a lost write that nobody read again would stay unseen."""
    final = REGISTER.final_operations(planned(configuration="C"), ["x", "y"], "n2")
    assert [(each.f, each.key, each.node, each.mode) for each in final] == [
        ("read", "x", "n2", "read-confirmed"),
        ("read", "y", "n2", "read-confirmed"),
    ]


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_workload_has_a_sentence(name: str) -> None:
    """If it failed, `qsync list workloads` would show a name that nobody understands."""
    assert WORKLOADS[name].summary


def test_the_keys_of_an_hour_come_again() -> None:
    """Broken, nodes would hold the keys of a whole day, and the final reads of a day's run would take minutes."""
    hour_ns = EPOCHS * EPOCH_NS
    plan = planned(time_limit_s=1.5 * hour_ns / SECOND_NS, rate=20.0, workers=20)
    drawn = list(operations_of(plan, SYSTEMS["qsync"], REGISTER, 3))
    later = {each.key for each in drawn if each.at_ns >= hour_ns}
    assert later
    assert later <= {f"r{epoch}-{key}" for epoch in range(EPOCHS // 2) for key in PLACES}
    assert not {each.key for each in drawn if EPOCH_NS * EPOCHS // 2 < each.at_ns < hour_ns} & later


def test_no_value_is_written_twice() -> None:
    """If it failed, a read would not tell which of two writes it saw, and a stale one could pass."""
    parts = parts_of(planned(cluster="sim", configuration="C", workers=3, time_limit_s=20, write_once=0.1))
    written = [
        operation.value[1] if operation.f == "cas" else operation.value
        for worker in range(3)
        for operation in operations_of(parts.plan, parts.system, parts.workload, worker)
        if operation.f != "read"
    ]
    assert len(written) > 100
    assert len({*written}) == len(written)
