"""Plans: JSON in and out, and one line for everything that is wrong with one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import WrongUse
from harness.faults.fault import Damage, Fault
from harness.faults.table import ACTIONS
from harness.plan.plan import LEAST, Drawn, Operation, Plan, to_json
from harness.systems.plans import from_json, planned, read
from harness.systems.tarantool.options import TarantoolOptions

NODES = st.sampled_from(["n1", "n2", "n3", "client"])
COUNTS = st.integers(0, 1 << 53)
SECONDS = st.floats(LEAST, 86_400)
TEXT = st.text(max_size=8)
VALUES = st.one_of(
    st.none(),
    st.integers(-(1 << 53), 1 << 53),
    st.lists(st.one_of(st.none(), st.integers(0, 99), TEXT), max_size=3).map(tuple),
)
FAULTS = st.builds(
    Fault,
    id=COUNTS,
    name=TEXT,
    does=st.sampled_from([*ACTIONS]),
    at_ns=COUNTS,
    until_ns=COUNTS,
    nodes=st.lists(NODES, max_size=3).map(tuple),
    links=st.lists(st.tuples(NODES, NODES), max_size=3).map(tuple),
    delay_ns=COUNTS,
    jitter_ns=COUNTS,
    jump_ns=st.integers(-(1 << 53), 1 << 53),
    drift_ppm=st.integers(-999_999, 1_000_000),
    error=TEXT,
    at_sync=st.booleans(),
    damage=st.sampled_from(get_args(Damage)),
    percent=st.integers(0, 100),
    seed=COUNTS,
)
OPERATIONS = st.builds(
    Operation,
    at_ns=COUNTS,
    worker=COUNTS,
    f=TEXT,
    key=st.one_of(st.none(), TEXT),
    value=VALUES,
    node=NODES,
    mode=st.one_of(st.none(), TEXT),
)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    nodes = draw(st.integers(1, 31))
    some = st.lists
    return planned(
        name=draw(
            st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z").filter(lambda name: name != "latest")
        ),
        system=draw(st.sampled_from(("qsync", "tarantool"))),
        cluster=draw(TEXT),
        workload=draw(TEXT),
        faults=tuple(draw(some(TEXT, max_size=3))),
        nodes=nodes,
        seed=draw(st.integers(0, (1 << 53) - 1)),
        time_limit_s=draw(SECONDS),
        rate=draw(st.floats(LEAST, 1_000_000)),
        workers=draw(st.integers(1, 10_000)),
        quorum=draw(st.one_of(st.none(), st.integers(1, nodes), st.sampled_from(["N", "N / 2 + 1"]))),
        synchro_timeout_s=draw(SECONDS),
        settle_timeout_s=draw(SECONDS),
        read=draw(TEXT),
        replica_reads=draw(st.floats(0, 1)),
        bugs=tuple(draw(some(TEXT, max_size=2))),
        promise=draw(st.one_of(st.none(), TEXT)),
        base_port=draw(st.integers(0, 65_000)),
        drawn=draw(
            st.one_of(
                st.none(),
                st.builds(
                    Drawn,
                    faults=some(FAULTS, max_size=3).map(tuple),
                    operations=some(OPERATIONS, max_size=3).map(tuple),
                ),
            )
        ),
    )


@given(plans())
def test_json_gives_the_same_plan_back(plan: Plan) -> None:
    """If it failed, a stored plan would repeat another run."""
    assert from_json(to_json(plan), "the plan") == plan


@given(plans())
def test_a_plan_is_one_field_a_line(plan: Plan) -> None:
    """If it failed, two plans could not be compared by eye, nor edited in one place."""
    lines = to_json(plan).decode().splitlines()
    fields = [line for line in lines if line.startswith(' "')]
    assert len(fields) == len(Plan.__struct_fields__) - (plan.drawn is None)
    assert json.loads(to_json(plan))["format"] == "qsync-plan"


def test_a_plan_of_version_1_is_read_as_what_it_was() -> None:
    """If it failed, stored runs would be judged by other options than those they had."""
    of_all = {"version": 1, "quorum": 2, "synchro_timeout_s": 0.4, "wal_mode": None, "mvcc": False, "seed": 4}
    plan = from_json(json.dumps(of_all).encode(), "the plan")
    assert plan == planned(quorum=2, synchro_timeout_s=0.4, mvcc=False, seed=4, read="usual", cut_every_s=0)
    theirs = from_json(
        json.dumps({**of_all, "system": "tarantool", "wal_mode": "fsync"}).encode(), "the plan"
    )
    assert theirs.options == TarantoolOptions(
        quorum=2, synchro_timeout_s=0.4, mvcc=False, wal_mode="fsync", read="usual", cut_every_s=0
    )


@pytest.mark.parametrize("options", [5, None, [1], "quorum"])
def test_options_that_are_no_table_are_refused_in_a_line(options: object) -> None:
    """If it failed, a plan that was edited by hand would end in a traceback."""
    with pytest.raises(WrongUse, match=r"some\.json: not a plan: options: expected a table of fields, got"):
        from_json(json.dumps({"options": options}).encode(), "some.json")


ECHO = "tests/systems/echo/echo.py"


def test_a_plan_of_version_2_is_read_as_what_it_was() -> None:
    """If it failed, stored runs would be judged by other read modes, or begin with other disks, than they had."""
    moved = {"commit_wait": "mixed", "read": "dirty", "start": "unmarked-by-hand@9"}
    said = {"version": 2, "seed": 4, **moved, "options": {"quorum": 2}}
    assert from_json(json.dumps(said).encode(), "the plan") == planned(
        quorum=2, seed=4, cut_every_s=0, **moved
    )
    unsaid = {**said, "commit_wait": "complete", "read": None, "start": None}
    assert from_json(json.dumps(unsaid).encode(), "the plan") == planned(
        quorum=2, seed=4, read="usual", cut_every_s=0
    )
    of_version_3 = {"version": 3, "seed": 4, "options": {"quorum": 2, "read": None}}
    assert from_json(json.dumps(of_version_3).encode(), "the plan") == planned(
        quorum=2, seed=4, read="usual", cut_every_s=0
    )


@pytest.mark.parametrize("version", [1, 2])
def test_an_older_plan_keeps_what_its_system_has_and_says_the_rest(version: int) -> None:
    """If it failed, the plan of another store would lose its read mode, or what it cannot do would be left out."""
    said = {"version": version, "system": ECHO, "commit_wait": "complete", "read": "dirty", "start": None}
    assert from_json(json.dumps(said).encode(), "the plan") == planned(system=ECHO, read="dirty")
    with pytest.raises(WrongUse, match="commit_wait"):
        from_json(json.dumps({**said, "commit_wait": "mixed"}).encode(), "the plan")


@given(st.binary(max_size=60))
def test_any_bytes_are_a_plan_or_one_line(data: bytes) -> None:
    """If it failed, a file that is no plan would end in a traceback."""
    message = "some.json: fine"
    try:
        from_json(data, "some.json")
    except WrongUse as error:
        message = error.message
    assert message.startswith("some.json: ")
    assert "\n" not in message


WRONG: dict[str, list[Any]] = {
    "format": ["qsync-history", 3],
    "version": [4, "1"],
    "name": ["", "../up", "a/b", ".hidden", "x" * 65, "run\n", 3, "latest"],
    "system": [3],
    "cluster": [None],
    "workload": [["register"]],
    "faults": ["all", [3]],
    "nodes": [0, -1, 32, 2.5, "three", None],
    "seed": [-1, 1 << 53, "7", 1.5],
    "time_limit_s": [0, -5, 1e-300, 86_401, "20", None],
    "rate": [0, -1, 1e-300, 1_000_001, []],
    "workers": [0, 10_001, 1.5],
    "quorum": [0, -2, 4, 32, "", "4", "N -", "N + 1", "N / 2", [2]],
    "synchro_timeout_s": [0, -0.5],
    "replication_timeout_s": [0, -1],
    "request_timeout_s": [-1, 1e-300, "2"],
    "settle_timeout_s": [0, 1e-300],
    "read": [4],
    "replica_reads": [-0.1, 1.1],
    "bugs": ["confirm-early", [None]],
    "promise": [1],
    "base_port": [-1, 65_001],
    "code": [7],
    "drawn": [3, {}, {"faults": []}],
    "colour": ["red"],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field in WRONG for value in WRONG[field]])
def test_what_is_wrong_with_a_field_is_one_line_that_names_it(field: str, value: object) -> None:
    """If it failed, a person would have to guess which of twenty fields is meant."""
    with pytest.raises(WrongUse) as refused:
        from_json(json.dumps({field: value}).encode(), "some.json")
    message = refused.value.message
    assert message.startswith("some.json: ")
    assert field in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("strategy", "strategy: expected one of none, simple, smart, got 'blue'"),
        ("read", "read: expected one of linearizable, mixed, read-confirmed, got 'blue'"),
        ("leader", "leader: expected one of elected, fixed, none, got 'blue'"),
    ],
)
@pytest.mark.parametrize("is_apart", [False, True])
def test_an_unknown_word_is_told_beside_the_known_ones(option: str, expected: str, is_apart: bool) -> None:
    """If it failed, a word that only a system's own option knows would be refused without a hint."""
    said = {"system": "txlog", option: "blue"}
    if is_apart and option != "leader":
        said = {"system": "txlog", "options": {option: "blue"}}
    with pytest.raises(WrongUse, match=f"^some.json: not a plan: {expected}; try: "):
        from_json(json.dumps(said).encode(), "some.json")


@pytest.mark.parametrize(
    ("place", "row"),
    [
        ("faults[0].at_ns", {"faults": [{"id": 0, "name": "x", "does": "cut", "at_ns": -1, "until_ns": 0}]}),
        ("faults[0].does", {"faults": [{"id": 0, "name": "x", "does": "burn", "at_ns": 1, "until_ns": 2}]}),
        ("operations[0].worker", {"operations": [{"at_ns": 0, "worker": -1, "f": "read"}]}),
        ("operations[0]", {"operations": [{"at_ns": 0, "worker": 1, "f": "read", "colour": "red"}]}),
    ],
)
def test_what_is_wrong_with_a_drawn_line_names_its_place(place: str, row: dict[str, Any]) -> None:
    """If it failed, the wrong one of six thousand lines could not be found."""
    drawn = {"faults": [], "operations": [], **row}
    with pytest.raises(WrongUse) as refused:
        from_json(json.dumps({"drawn": drawn}).encode(), "some.json")
    assert f"drawn.{place}: " in refused.value.message


@pytest.mark.parametrize("content", [None, b"", b"{", b"\xff\xfe", b"[]", b'"x"', b'{"seed": 1}garbage'])
def test_a_file_that_is_no_plan_is_one_line_with_its_path(tmp_path: Path, content: bytes | None) -> None:
    """If it failed, a mistyped path would end in a traceback."""
    path = tmp_path / "some.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(WrongUse) as refused:
        read(path)
    assert str(path) in refused.value.message
    assert "\n" not in refused.value.message


@pytest.mark.parametrize(
    ("nodes", "quorum", "size"),
    [
        *((1, None, 1), (2, None, 2), (3, None, 2), (4, None, 3), (5, None, 3), (5, 5, 5)),
        *(
            (3, "math.max(2*N/3, 1)", 2),
            (5, "math.max(2*N/3, 1)", 3),
            (6, "math.max(2*N/3, 1)", 4),
            (4, "N", 4),
        ),
    ],
)
def test_the_quorum_is_a_majority_unless_said(nodes: int, quorum: int | str | None, size: int) -> None:
    """If it failed, two halves of a cluster could both confirm."""
    assert planned(nodes=nodes, quorum=quorum).quorum_size == size


def test_every_stream_has_a_name_of_its_own() -> None:
    """If it failed, one more draw in one place would shift another."""
    streams, again = planned(seed=3).streams(), planned(seed=3).streams()
    again["faults"].random()
    assert streams["worker 1"].random() == again["worker 1"].random()
    assert streams["worker 2"].random() != streams["worker 3"].random()
    assert planned(seed=4).streams()["worker 1"].random() != planned(seed=3).streams()["worker 1"].random()


def test_a_plan_cannot_be_changed() -> None:
    """If it failed, a run could differ from the plan that its folder keeps."""
    with pytest.raises(AttributeError):
        planned().seed = 3  # type: ignore[misc]  # that is the point
    assert msgspec.structs.replace(planned(), seed=3) == planned(seed=3)


def test_a_jump_that_no_clock_can_show_is_refused() -> None:
    """If it failed, rows with a time that no reader of logs takes would end up as missing in a verdict."""
    fault = {"id": 0, "name": "clock", "does": "clock", "at_ns": 0, "until_ns": 1, "jump_ns": 2**63}
    drawn = json.dumps({"drawn": {"faults": [fault], "operations": []}}).encode()
    with pytest.raises(WrongUse, match=r"drawn\.faults\[0\]\.jump_ns: expected a whole number of at most"):
        from_json(drawn, "the plan")
