"""A store of one's own: the example is judged as any store is, and what is no store is told in a line."""

from __future__ import annotations

import asyncio
import io
import json
from contextlib import redirect_stdout
from dataclasses import replace
from importlib import metadata
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.cli.main import main
from harness.clients.client import Library
from harness.clients.operations import MEMBER_CHANGES, AddMember
from harness.errors import ClusterError, WrongUse
from harness.judge import Case, judge, repeat_line
from harness.plan.plan import Leadership
from harness.plan.promise import (
    CHOICES,
    FINAL_STATE,
    LINEARIZABLE_READS,
    OWNER_READS,
    REPLICA_READS,
    WRITES,
)
from harness.run.assemble import parts_of
from harness.systems import SYSTEMS, system_of
from harness.systems.own import GROUP, LED, OwnOptions, OwnStore
from harness.systems.plans import planned
from harness.workloads import workload_of
from tests.harness.judge.test_judge import good, history, operation

EXAMPLE = Path(__file__).parents[3] / "docs" / "mystore.py"
OF_TRANSACTIONS = "promised: transactions is 'as writes', '' or an isolation model"
TRIES = 5
"""Of real time; one is enough unless the machine is so busy that a run has too few operations to be evidence."""
BUSY = ("too little load", "too few answers", "the harness itself stood still", "the nodes were not quiet")
"""What makes a run no evidence on a machine that has much else to do, whatever the store."""


def run(folder: Path, *words: str) -> dict[str, Any]:
    printed = io.StringIO()
    options = ("--system", str(EXAMPLE), "--nodes", "1", "--seed", "1", "--rate", "100")
    with redirect_stdout(printed):
        main(["run", *options, *words, "--json", "--results", str(folder)])
    verdict: dict[str, Any] = json.loads(printed.getvalue())
    return verdict


@pytest.mark.long
def test_the_example_is_clean_when_calm(tmp_path: Path) -> None:
    """If it failed, nobody could put a store of their own under test by following the documentation."""
    for _ in range(TRIES):
        verdict = run(tmp_path, "--faults", "none", "--time-limit", "4")
        assert verdict["violations"] == [], verdict["sentence"]
        assert verdict["evidence"]["ok"] > 0, verdict["sentence"]
        others = [each for each in verdict["evidence"]["missing"] if not each.startswith(BUSY)]
        assert not others, others
        if verdict["outcome"] == "valid":
            break


@pytest.mark.long
def test_the_example_loses_what_it_acknowledged_when_it_is_killed(tmp_path: Path) -> None:
    """If it failed, the harness would sign for a store that keeps nothing."""
    seen: set[str] = set()
    for _ in range(TRIES):
        seen |= set(run(tmp_path, "--faults", "kill", "--time-limit", "6")["violations"])
        if {"linearizable", "convergence"} & seen:
            break
    assert {"linearizable", "convergence"} & seen, seen


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "there is no file"),
        ("raise ValueError('no')", "ValueError: no"),
        ("import sys\nsys.exit('usage: mystore PORT')", "SystemExit: usage: mystore PORT"),
        ("SYSTEM = 3", "has no SYSTEM"),
    ],
)
def test_what_is_no_store_is_told_in_one_line(tmp_path: Path, text: str | None, words: str) -> None:
    """If it failed, a mistake in one's own file would end in a traceback of the harness."""
    path = tmp_path / "mystore.py"
    if text is not None:
        path.write_text(text)
    with pytest.raises(WrongUse) as refused:
        system_of(str(path))
    assert words in refused.value.message


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def make(data):\n    raise ValueError('no')", "hosted of the store raised ValueError: no"),
        ("def make(data):\n    raise SystemExit(1)", "hosted of the store raised SystemExit: 1"),
        ("def make(data):\n    return 5", "hosted gives a nodes.host.systems.Hosted; got 5"),
        ("make = 3", "hosted of the store raised TypeError: 'int' object is not callable"),
        ("", "cannot be hosted: AttributeError"),
        ("raise SystemExit(1)", "cannot be hosted: SystemExit: 1"),
    ],
)
def test_a_function_that_makes_no_node_is_told_in_one_line(tmp_path: Path, text: str, told: str) -> None:
    """If it failed, a mistake in one's own node would count as a defect of the harness, in the simulator."""
    path = tmp_path / "node.py"
    path.write_text(text)
    with pytest.raises(WrongUse) as refused:
        OwnStore("a store", hosted=f"{path}:make").maker(b"{}")()
    assert told in refused.value.message


def test_a_path_that_is_too_long_is_no_file() -> None:
    """If it failed, a text that was pasted by mistake would count as a failure of the disk, with exit 3."""
    with pytest.raises(WrongUse, match=r"^there is no file a"):
        system_of("a" * 300 + ".py")


OWNER, FOLLOWER = {"role": "owner", "vclock": 1}, {"role": "replica", "vclock": 1}


@pytest.mark.parametrize(
    ("leader", "statuses", "is_quiet"),
    [
        ("fixed", (OWNER, FOLLOWER), True),
        ("fixed", (OWNER, None), False),
        ("fixed", (FOLLOWER, FOLLOWER), False),
        ("fixed", (OWNER, {**FOLLOWER, "vclock": 2}), False),
        ("fixed", (OWNER, OWNER), True),
        ("elected", (OWNER, OWNER), False),
        ("none", (FOLLOWER, FOLLOWER), True),
        ("none", (FOLLOWER, {}), True),
    ],
)
def test_quiet_means_that_all_answer_and_are_equal(
    leader: Leadership, statuses: tuple[Any, ...], is_quiet: bool
) -> None:
    """If it failed, final reads would be taken of nodes that are away, or lag be called divergence."""
    found = dict(zip(("n1", "n2"), statuses, strict=True))
    assert OwnStore("a store", leader=leader).is_settled(found) == is_quiet


class Unequal:
    """A cluster whose nodes stay at different positions."""

    def __init__(self, *vclocks: object) -> None:
        self.vclocks, self.time_ns = vclocks, 0

    def now_ns(self) -> int:
        return self.time_ns

    async def status(self, node: str) -> dict[str, object]:
        role = "owner" if node == "n1" else "replica"
        return {"role": role, "vclock": self.vclocks[int(node[1:]) - 1]}

    async def sleep_until(self, time_ns: int) -> None:
        self.time_ns = time_ns


@pytest.mark.parametrize(
    ("vclocks", "told"),
    [
        ((1, 2, None), "did not all answer with one owner among them and equal positions (vclock) in 10 s"),
        ((1, 1, None), ""),
    ],
)
def test_a_start_that_fails_says_what_it_waited_for(vclocks: tuple[object, ...], told: str) -> None:
    """If it failed, nodes that all answered would be said to be silent, and their positions never looked at."""
    cluster: Any = Unequal(*vclocks)
    said = ""
    try:
        asyncio.run(OwnStore("a store").set_up(planned(system="qsync", configuration="C"), cluster))
    except ClusterError as error:
        said = error.message
    assert said.endswith(told) and bool(said) == bool(told)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("promised={'qourum': ''}", "promised has no 'qourum'; it has: writes, owner_reads, replica_reads"),
        ("promised={'writes': 'bananas'}", "promised: writes is one of 'linearizable', ''; got 'bananas'"),
        (
            "promised={'transactions': 'snapshot'}",
            f"{OF_TRANSACTIONS}; got 'snapshot'; 'snapshot' is not known: expected one of read-committed, ",
        ),
        (
            "promised={'transactions': 'read-uncommitted'}",
            f"{OF_TRANSACTIONS}; got 'read-uncommitted'; 'read-uncommitted' is not judged: it forbids G0 alone",
        ),
        (
            "promised={'transactions': 'PL-SI'}",
            f"{OF_TRANSACTIONS}; got 'PL-SI'; its name here is 'snapshot-isolation'",
        ),
        ("promised={'transactions': None}", "promised: transactions is one of 'as writes', ''; got None"),
        ("leader='fix'", "leader is one of 'fixed', 'elected', 'none'; got 'fix'"),
        ("able=('clocks',)", "able is of clock, disk layer, drift"),
        ("able=('clock')", "able is a tuple of texts; got 'clock'; try: ('clock',)"),
        (
            "cannot_join_says=('no room')",
            "cannot_join_says is a tuple of texts; got 'no room'; try: ('no room',)",
        ),
        ("may_end_under=('disk',)", "may_end_under is of clock, "),
        ("syncs='no'", "syncs is True or False; got 'no'"),
        ("ready_within_s=0", "ready_within_s is a number of seconds above 0, up to 3600; got 0"),
        ("ready_within_s=float('nan')", "ready_within_s is a number of seconds above 0, up to 3600; got nan"),
        ("ready_within_s='90 s'", "ready_within_s is a number of seconds above 0, up to 3600; got '90 s'"),
        ("image=3", "image is the name of a Docker image; got 3"),
        (
            "image='a:1', packages=('b',)",
            "an image is taken as it is; got image 'a:1' and packages; try: one of",
        ),
        ("hosted=5", "hosted is a text, as 'module:function'; got 5"),
        ("packages=3", "packages is a tuple of texts; got 3"),
        ("files=(3,)", "files is a tuple of texts; got (3,)"),
        ("client=None", "client has connect or converse, and speaks a set of operations; got None"),
        ("client=Library", "client has connect or converse, and speaks a set of operations; got <class"),
        (
            "client=Library(print, [3])",
            "client has connect or converse, and speaks a set of operations; got L",
        ),
        ("options=OwnOptions()", "options is a class, as harness.systems.own.OwnOptions; got OwnOptions(quo"),
        ("options=dict", "options is a class, as harness.systems.own.OwnOptions; got <class 'dict'>"),
        ("wire=None", "a client of messages needs a wire; got None"),
    ],
)
def test_a_word_that_no_promise_has_is_refused_with_the_choices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, told: str
) -> None:
    """If it failed, a typing error would take a promise away, or end as a defect of the harness."""
    store = tmp_path / "mystore.py"
    imports = (
        "from harness.clients.client import Library\nfrom harness.systems.own import OwnOptions, OwnStore\n"
    )
    store.write_text(f"{imports}SYSTEM = OwnStore('a store', {words})\n")
    assert main(["run", "--system", str(store), "--results", str(tmp_path)]) == 64
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert f"mystore.py: {told}" in line


def test_a_read_mode_that_nothing_is_promised_of_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """If it failed, after a typing error the reads of an owner would not be judged, and stale ones pass as valid."""
    assert main(["run", "--system", str(EXAMPLE), "--nodes", "1", "--read", "linearisable"]) == 64
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "'linearisable'; try one of: linearizable, read-confirmed, dirty, mixed, mostly-confirmed" in line


def test_an_option_with_the_name_of_a_common_field_is_refused() -> None:
    """If it failed, --workers would be the store's alone, and a plan that is read again would be another one."""
    options: Any = msgspec.defstruct(
        "Mine", [("workers", int, 4)], bases=(OwnOptions,), frozen=True, kw_only=True
    )
    with pytest.raises(
        WrongUse, match=r"^options has a field 'workers', as every plan has; try: another name$"
    ):
        OwnStore("a store", options=options)


def test_an_option_with_the_long_name_of_a_common_one_leaves_it_alone(tmp_path: Path) -> None:
    """If it failed, --time-limit would set the store's option, and the run would last as long as by default."""
    store = tmp_path / "mystore.py"
    store.write_text(
        "from harness.systems.own import OwnOptions, OwnStore\n"
        "class Mine(OwnOptions, frozen=True, kw_only=True):\n    time_limit: int = 3\n"
        "SYSTEM = OwnStore('a store', hosted='a:b', options=Mine)\n"
    )
    asked = ["run", "--system", str(store), "--time-limit", "7", "-o", "time-limit=2"]
    assert main([*asked, "--write-plan", str(tmp_path / "plan.json")]) == 0
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert (plan["time_limit_s"], plan["options"]["time_limit"]) == (7.0, 2)


def test_a_store_that_says_nothing_of_its_nodes_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the refusal failed, the hosting process would start and complain of an option that nobody gave."""
    store = tmp_path / "mystore.py"
    store.write_text("from harness.systems.own import OwnStore\nSYSTEM = OwnStore('a store')\n")
    assert main(["run", "--system", str(store), "--results", str(tmp_path)]) == 64
    assert "expected an OwnStore with start or hosted" in capsys.readouterr().err


@pytest.mark.parametrize(("word", "violated"), [("linearizable", ["linearizable"]), ("monotone-prefix", [])])
def test_reads_of_replicas_may_be_promised_to_be_fresh(word: str, violated: list[str]) -> None:
    """If it failed, the promise would be accepted and judge nothing."""
    promise = OwnStore("a store", promised={"replica_reads": word}).promise(planned())
    stale = operation(2_500, "read", 3, process=8, node="n3", role="replica", mode="read-confirmed")
    plan = planned(cluster="sim", configuration="C", rate=10, time_limit_s=3, faults=("pause",))
    assert judge(Case(plan, history([*good(), *stale]), given_promise=promise))["violations"] == violated


@pytest.mark.parametrize(
    ("role", "mode", "violated"),
    [
        ("owner", "read-confirmed", ["linearizable"]),
        ("leader", "read-confirmed", ["linearizable"]),
        ("owner", "strong", ["linearizable"]),
        (None, None, ["linearizable"]),
        ("leader", "dirty", []),
        ("replica", "strong", []),
    ],
)
def test_a_word_that_no_promise_has_is_no_way_out(
    role: str | None, mode: str | None, violated: list[str]
) -> None:
    """If it failed, a store that calls its owner "leader" would show stale values, and each run of it be valid."""
    promise = OwnStore("a store").promise(planned())
    stale = operation(2_500, "read", 3, process=8, node="n1", role=role, mode=mode)
    plan = planned(cluster="sim", configuration="C", rate=10, time_limit_s=3, faults=("pause",))
    assert judge(Case(plan, history([*good(), *stale]), given_promise=promise))["violations"] == violated


def installed(monkeypatch: pytest.MonkeyPatch, **points: str) -> None:
    found = [EntryPoint(name, value, GROUP) for name, value in points.items()]
    monkeypatch.setattr(metadata, "entry_points", lambda group: found if group == GROUP else [])


def test_an_installed_package_may_name_its_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, who packages a store would have to copy files into this checkout, or paths into every plan."""
    installed(monkeypatch, mystore="docs.mystore:SYSTEM", broken="docs.nowhere:SYSTEM", number="json:__doc__")
    assert isinstance(system_of("mystore"), OwnStore)
    parts = parts_of(planned(system="mystore", nodes=1, faults=("none",)))
    assert parts.system.owner(parts.plan) == "n1"
    for name, words in (
        ("broken", "the entry point broken (docs.nowhere:SYSTEM) cannot be loaded: ModuleNotFoundError"),
        ("number", "the entry point number (json:__doc__) is no system"),
        (
            "nothing",
            f"unknown system 'nothing'; try one of: {', '.join(SYSTEMS)}, mystore, broken, number, or a file",
        ),
    ):
        with pytest.raises(WrongUse) as refused:
            system_of(name)
        assert words in refused.value.message


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("raise SystemExit('there is no such folder')", "(exit 1): there is no such folder"),
        ("def (", "SyntaxError: invalid syntax"),
        (None, "can't open file"),
        ("import os; os.abort()", "(signal 6)"),
    ],
)
def test_a_store_that_cannot_start_is_no_anomaly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], program: str | None, words: str
) -> None:
    """If it failed, a typing error in one's own store would be told as a bug that the harness has found in it."""
    if program is not None:
        (tmp_path / "node.py").write_text(program)
    store = tmp_path / "mystore.py"
    store.write_text(
        "from harness.systems.own import OwnStore\n"
        f"SYSTEM = OwnStore('broken', start=lambda place: (place.python, {str(tmp_path / 'node.py')!r}))\n"
    )
    code = main(
        ["run", "--system", str(store), "--nodes", "3", "--faults", "none", "--results", str(tmp_path)]
    )
    told = capsys.readouterr().err
    assert code == 3
    assert "ended before it was ready" in told
    assert words in told


@pytest.mark.parametrize(
    ("gives", "words"),
    [
        ("(place.python, 5)", "got ('/"),
        ("()", "got ()"),
        ("None", "got None"),
        ("'sleep 5'", "got 'sleep 5'"),
        ("(place.python, 'a\\0b')", "got ('/"),
        ("1 / 0", "start of the store raised ZeroDivisionError: division by zero"),
        ("exit('no binary')", "start of the store raised SystemExit: no binary"),
    ],
)
def test_a_start_that_gives_no_command_is_wrong_use(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], gives: str, words: str
) -> None:
    """If it failed, a slip in one's own store would be a harness that broke, with a traceback."""
    store = tmp_path / "mystore.py"
    store.write_text(
        "from harness.systems.own import OwnStore\n"
        f"SYSTEM = OwnStore(summary='odd', start=lambda place: {gives})\n"
    )
    assert main(["run", "--system", str(store), "--nodes", "1", "--results", str(tmp_path)]) == 64
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("qsync: start")]
    assert words in line


DURABLE = Path(__file__).with_name("durable_store.py")


@pytest.mark.nightly
@pytest.mark.parametrize("nodes", [1, 3])
def test_a_correct_store_passes_under_the_default_faults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], nodes: int
) -> None:
    """If it failed, nobody could have a green run of a store of their own without knowing which faults to leave out."""
    for seed in range(TRIES):
        options = ["--nodes", str(nodes), "--rate", "60", "--time-limit", "12", "--seed", str(seed)]
        code = main(["run", "--system", str(DURABLE), *options, "--json", "--results", str(tmp_path)])
        verdict = json.loads(capsys.readouterr().out)
        assert verdict["violations"] == [], verdict["sentence"]
        missing = [each for each in verdict["evidence"]["missing"] if not each.startswith(BUSY)]
        assert not missing, missing
        if code == 0:
            return
    raise AssertionError("not one run of a correct store was valid")


@pytest.mark.parametrize(
    "fault", ["torn-tail", "failover", "clock", "remove-node", "quorum", "rolling-upgrade"]
)
def test_a_fault_that_cannot_take_effect_is_refused_before_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], fault: str
) -> None:
    """If it failed, a whole run would end with "asked for and never felt"."""
    code = main(["run", "--system", str(DURABLE), "--faults", fault, "--results", str(tmp_path / "results")])
    told = capsys.readouterr().err
    assert code == 64
    assert len(told.strip().splitlines()) == 1
    assert not (tmp_path / "results").exists()


def test_what_is_only_known_of_nodes_of_ours_is_asked_of_no_other_store() -> None:
    """If it failed, a store that waits instead of rolling back would never have a run that is evidence."""
    plan = planned(configuration="C")
    assert system_of("qsync").promise(plan).isolated_owner_rolls_back
    assert not system_of(str(DURABLE)).promise(plan).isolated_owner_rolls_back


@pytest.mark.parametrize("leader", LED)
def test_nothing_is_said_of_a_store_that_is_only_known_of_ours(leader: Leadership) -> None:
    """If it failed, verdict.json would state of any store that its CONFIRM is on disk, and the line that repeats a run
    would name a configuration that it has not."""
    promise = OwnStore("a store", leader=leader).promise(planned())
    assert "CONFIRM" not in promise.why
    assert promise.of_read("replica", "read-confirmed") == ("monotone-prefix" if leader == "fixed" else "")
    parts = parts_of(planned(system=str(EXAMPLE), nodes=1, faults=("none",)))
    assert "--configuration" not in repeat_line(parts.plan)


@pytest.mark.parametrize("promised", [{}, {"queues": "at least once", "acknowledged": "stays"}])
def test_a_store_that_does_not_sync_promises_less_where_power_is_lost_and_only_there(
    promised: dict[str, str],
) -> None:
    """If it failed, a store that is documented to lose its last second would be an anomaly each night, or a kill would
    excuse what it loses."""
    store = OwnStore("a store", promised=promised, syncs=False)
    power, kill = planned(faults=("power-all",)), planned(faults=("kill",))
    assert store.promise(kill) == replace(store, syncs=True).promise(kill)
    promise = store.promise(power)
    assert promise.configuration.endswith("; syncs=False")
    of_data = [WRITES, OWNER_READS, REPLICA_READS, LINEARIZABLE_READS, FINAL_STATE]
    assert not any(promise.model(clause) for clause in of_data)
    for name in ("append", "message-queue", "register", "bank"):
        judged = {check.name for check in workload_of(name).checks(promise, None) if check.model}
        assert judged.isdisjoint({"linearizable", "durability", "transactional", "queues", "kept", "bank"})
    assert (store.durability(power), replace(store, syncs=True).durability(power)) == ("written", "synced")


def test_the_page_says_what_the_store_promises_otherwise() -> None:
    """If it failed, the page of a broker that promises nothing of its order would rest on "one order of all"."""
    store = OwnStore("a broker", promised={"queues": "at least once", "writes": ""})
    assert store.promise(planned()).why.endswith("; queues: at least once; writes: no promise")


def test_the_page_has_each_name_and_word_of_a_promise() -> None:
    """If it failed, authors would look for the words in the code."""
    page = (EXAMPLE.parent / "put-your-store-under-test.md").read_text()
    words = {*CHOICES, *(word for choices in CHOICES.values() for word in choices if word)}
    assert [word for word in sorted(words) if f"`{word}`" not in page] == []


@pytest.mark.parametrize(
    ("leader", "spoken", "can"),
    [
        ("elected", MEMBER_CHANGES, True),
        ("none", MEMBER_CHANGES, False),
        ("elected", frozenset({AddMember}), False),
    ],
)
def test_members_change_where_a_leader_can_be_asked_to(
    leader: Leadership, spoken: frozenset[type], can: bool
) -> None:
    """If it failed, a run would end in the middle for a store that cannot do what was asked, or refuse one that can."""
    connected: Any = None
    client = Library(lambda host, port, timeout_s: connected, spoken)
    assert ("members" in OwnStore("", leader=leader, client=client).abilities) is can


def test_a_node_that_cannot_be_hosted_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If it failed, a slip in the name of a file would read "the harness itself broke"."""
    store = tmp_path / "mystore.py"
    store.write_text(
        "from harness.systems.own import OwnStore\nSYSTEM = OwnStore(summary='mine', hosted='nowhere.py:f')\n"
    )
    assert main(["run", "--system", str(store), "--cluster", "sim", "--results", str(tmp_path)]) == 64
    assert "the system nowhere.py:f cannot be hosted" in capsys.readouterr().err
