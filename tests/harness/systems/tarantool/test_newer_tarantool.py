"""Versions of Tarantool with elections: what is asked of them, what is promised, and who is of another version.

No such server is packaged where these tests run. So `node.lua` is run by the one that is there, which is told that it
is another one, with a `box` that writes down what it is asked for.
"""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import main
from harness.clients.reply import Replied
from harness.errors import WrongUse
from harness.judge.promised import checks_of
from harness.plan.promise import LINEARIZABLE_READS, REPLICA_READS, WRITES
from harness.systems.plans import planned
from harness.systems.qsync.options import settings_of
from harness.systems.tarantool.system import FOREVER_S, LUA, VERSIONS, Tarantool
from nodes.iproto.messages import Answer, Call
from tests import needs

ROOT = Path(__file__).parents[4]
TARANTOOL = Tarantool()

SHIM = """
_TARANTOOL = '{version}'
local json, usual = require('json'), box
local asked = {{begun = {{}}, made = {{}}}}
local spaces = {{_cluster = {{pairs = function() return pairs({{}}) end}}}}
local function create(name, how)
    asked.made[name] = how.is_sync
    spaces[name] = {{get = function() return nil end, replace = function() end}}
    return {{create_index = function() end}}
end
box = {{
    NULL = usual.NULL, error = usual.error, space = spaces,
    info = {{
        ro = false, id = 2, version = _TARANTOOL, status = 'running', vclock = {{[0] = 5, 9}}, replication = {{}},
        election = {{state = 'leader', term = 7}}, synchro = {{queue = {{len = 3, owner = 2}}}},
    }},
    schema = {{user = {{grant = function() end}}, space = {{create = create}}}},
    ctl = {{promote = function() asked.promoted = true end}},
    begin = function(how) table.insert(asked.begun, how and how.txn_isolation or 'plain') end,
    commit = function() end, rollback = function() end,
    cfg = setmetatable({{}}, {{__call = function(_, options) asked.cfg = asked.cfg or options end}}),
}}
dofile('{node}')
asked.status = qsync.status()
asked.modes = {{}}
for _, mode in ipairs({{'dirty', 'read-confirmed', 'linearizable'}}) do
    table.insert(asked.modes, qsync.transaction({{{{'get', 'register', 'x'}}}}, {{read = mode}}).mode)
end
qsync.transaction({{{{'cas', 'register', 'x', box.NULL, 1}}}}, {{}})
print(json.encode(asked))
os.exit(0)
"""


def said_by(folder: Path, version: str, **fields: Any) -> dict[str, Any]:
    """What node n2 says last when it runs as that version: what it was asked for, or why it does not start."""
    plan = TARANTOOL.completed(planned(system="tarantool", **fields))
    config = folder / "config.json"
    config.write_bytes(TARANTOOL.configurations(plan, ("register",))["n2"])
    script = folder / "shim.lua"
    script.write_text(SHIM.format(version=version, node=ROOT / LUA))
    words = [
        "tarantool",
        str(script),
        str(config),
        str(folder),
        "127.0.0.1:1",
        "n1=127.0.0.1:2",
        "n3=127.0.0.1:3",
    ]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = process.stdout.read().splitlines()
    told: dict[str, Any] = json.loads(lines[-1])
    return told


@pytest.mark.real
@needs.tarantool
def test_a_server_with_elections_is_told_to_elect(tmp_path: Path) -> None:
    """If it failed, a newer server would be driven by hand as 2.6 is, and nobody would see what its elections do."""
    asked = said_by(tmp_path, "3.2.0-0-g1234567", configuration="F", election_timeout_s=0.7)
    cfg = asked["cfg"]
    assert (cfg["election_mode"], cfg["election_timeout"], cfg["election_fencing_mode"]) == (
        "candidate",
        0.7,
        "soft",
    )
    assert (cfg["memtx_use_mvcc_engine"], cfg["read_only"], cfg["bootstrap_strategy"]) == (
        True,
        False,
        "legacy",
    )
    assert cfg["replication_synchro_timeout"] == FOREVER_S, "F rolls nothing back"
    assert asked["made"] == {"register": True, "notes": False}, "whoever leads makes the spaces"
    assert asked["status"]["role"] == "owner"
    assert (asked["status"]["term"], asked["status"]["election_term"], asked["status"]["limbo"]) == (7, 7, 3)
    assert asked["status"]["election"] == "leader"
    assert asked["modes"] == ["dirty", "read-confirmed", "linearizable"]
    assert asked["begun"] == ["read-committed", "read-confirmed", "linearizable", "read-committed"]


@pytest.mark.real
@needs.tarantool
@pytest.mark.parametrize(
    ("version", "fields", "absent"),
    [
        ("2.11.3", {"configuration": "G", "mvcc": False}, ()),
        ("2.10.8", {"configuration": "E"}, ("election_fencing_mode", "bootstrap_strategy")),
        (
            "2.6.0",
            {},
            ("election_mode", "election_fencing_mode", "bootstrap_strategy", "memtx_use_mvcc_engine"),
        ),
    ],
)
def test_each_version_is_asked_for_what_it_has(
    tmp_path: Path, version: str, fields: dict[str, Any], absent: tuple[str, ...]
) -> None:
    """If it failed, an older server would refuse options that it does not know, or serve reads by another name."""
    if version == "2.6.0":
        config = json.loads(
            TARANTOOL.configurations(TARANTOOL.completed(planned(system="tarantool")), ())["n1"]
        )
        assert "elections" not in config and config["versions"]["letter"] == "B"
        return
    asked = said_by(tmp_path, version, synchro_timeout_s=0.9, **fields)
    assert not {*absent} & {*asked["cfg"]}
    assert asked["cfg"]["election_mode"] == "candidate"
    assert asked["cfg"]["replication_synchro_timeout"] == 0.9, "it rolls back"
    assert asked["modes"] == ["dirty"] * 3, "it says by which mode it read"
    assert asked["begun"] == ["plain"], "only the write is a transaction"


@pytest.mark.real
@needs.tarantool
@pytest.mark.parametrize(
    ("version", "configuration", "words"),
    [
        (
            "2.6.0-0-g47aa4e01e",
            "F",
            "configuration F is of Tarantool from 2.11.0 on, and this is 2.6.0-0-g47aa4e01e",
        ),
        ("2.10.8", "G", "configuration G is of Tarantool from 2.11.0 on"),
        ("2.6.0", "E", "configuration E is of Tarantool from 2.6.1 to below 2.11.0"),
        ("3.2.0", "B", "and this is 3.2.0; try: --configuration F or G"),
        ("2.11.0", "E", "and this is 2.11.0; try: --configuration F or G"),
        ("2.7.1", "A", "configuration A is of Tarantool from 2.6.0 to below 2.7.0"),
    ],
)
def test_a_server_of_another_version_says_so(
    tmp_path: Path, version: str, configuration: str, words: str
) -> None:
    """If it failed, a server would be judged by what the documentation of another one says."""
    said = said_by(tmp_path, version, configuration=configuration)
    assert said["ready"] is False
    assert words in said["error"]
    assert "\n" not in said["error"]


@pytest.mark.real
@needs.tarantool
def test_the_packaged_server_has_no_elections(tmp_path: Path) -> None:
    """If it failed, a run of 2.6.0 with elections would be one without, and nobody would be told."""
    with redirect_stderr(io.StringIO()) as said, redirect_stdout(io.StringIO()):
        words = ("--system", "tarantool", "--configuration", "F", "--time-limit", "1", "--faults", "none")
        code = main(["run", *words, "--results", str(tmp_path)])
    assert code == 3
    line = said.getvalue().splitlines()[-1]
    assert "does not come up: configuration F is of Tarantool from 2.11.0 on" in line


@pytest.mark.parametrize("letter", VERSIONS)
def test_what_is_promised_is_quoted_for_each_check_that_may_find_something(letter: str) -> None:
    """If it failed, a newer server would be accused by a sentence of 2.6, or by none."""
    plan = TARANTOOL.completed(planned(system="tarantool", configuration=letter))
    promise = TARANTOOL.promise(plan)
    found_by = {"linearizable", "quorum", "convergence", "replication", "staleness", "overruled", "crash"}
    assert found_by <= {*promise.documented}
    assert promise.model(WRITES) == ("linearizable" if letter in ("A", "F", "G") else "")
    assert promise.model(LINEARIZABLE_READS) == ("linearizable" if letter == "F" else "")
    is_elected = letter not in ("A", "B")
    assert ("Automated leader election" in promise.documented["staleness"]) == is_elected
    names = {check.name for check in checks_of(plan, promise)}
    assert {"replication", "staleness", "overruled", "leadership", "crash"} <= names
    assert TARANTOOL.logs.rules(plan).has_votes == is_elected


@pytest.mark.parametrize(
    ("fields", "letter"),
    [
        ({}, "B"),
        ({"election_mode": "off"}, "B"),
        ({"election_mode": "candidate"}, "F"),
        ({"election_mode": "candidate,voter,voter"}, "F"),
        ({"election_mode": "candidate", "rollback_on_timeout": True}, "G"),
        ({"configuration": "E"}, "E"),
    ],
)
def test_who_asks_for_elections_gets_them(fields: Mapping[str, Any], letter: str) -> None:
    """If it failed, `--election-mode candidate` would break the harness, or be left without effect."""
    plan = TARANTOOL.completed(planned(system="tarantool", cluster="docker", **fields))
    TARANTOOL.validate(plan)
    assert plan.expectations.configuration == letter
    modes = [
        json.loads(each).get("elections", {}).get("mode")
        for each in TARANTOOL.configurations(plan, ()).values()
    ]
    expected = settings_of(plan).election_modes if letter in ("E", "F", "G") else (None,) * 3
    assert tuple(modes) == expected


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"configuration": "I"}, "Tarantool has no configuration I"),
        ({"configuration": "D"}, "Tarantool has no configuration D"),
        ({"configuration": "E", "read": "linearizable"}, "no read mode 'linearizable' in configuration E"),
        ({"configuration": "F", "commit_wait": "submit"}, "without commit wait modes"),
        ({"configuration": "E", "mvcc": False}, "--mvcc has no effect"),
        ({"configuration": "F", "quorum": "N / 2 + 1"}, "is told a number here"),
    ],
)
def test_what_no_version_has_is_refused(fields: Mapping[str, Any], words: str) -> None:
    """If it failed, a run would claim what it did not do."""
    plan = TARANTOOL.completed(planned(system="tarantool", cluster="docker", **fields))
    with pytest.raises(WrongUse) as refused:
        TARANTOOL.validate(plan)
    assert words in refused.value.message


class Asked:
    """A cluster of one node that tells of itself, and writes down what it is asked."""

    def __init__(self, **status: object) -> None:
        self.status_told = status
        self.calls: list[str] = []

    def now_ns(self) -> int:
        return 0

    async def status(self, node: str) -> Mapping[str, object]:
        return self.status_told

    async def call(self, process: int, node: str, request: Call, timeout_ns: int) -> Replied:
        self.calls.append(request.name)
        return Replied(Answer(request.sync, ()))


@pytest.mark.parametrize(
    ("status", "call"), [({"election": "follower"}, "box.ctl.promote"), ({}, "qsync.take_over")]
)
def test_with_elections_who_is_to_lead_is_promoted(status: dict[str, object], call: str) -> None:
    """If it failed, the fault `failover` would clear the queue behind the back of who was elected."""
    cluster = Asked(**status)
    awaited = TARANTOOL.promote("n2", cluster)  # type: ignore[arg-type]  # what it needs of one
    with pytest.raises(StopIteration):
        awaited.send(None)
    assert cluster.calls == [call]


def test_what_weakens_a_promise_of_elections_weakens_this_one() -> None:
    """If it failed, a server would be accused of what no cluster that is set up like this can keep."""

    def promised(**fields: Any) -> tuple[str, str, str]:
        plan = TARANTOOL.completed(planned(system="tarantool", configuration="F", cluster="docker", **fields))
        TARANTOOL.validate(plan)
        promise = TARANTOOL.promise(plan)
        return promise.model(WRITES), promise.model(REPLICA_READS), promise.model(LINEARIZABLE_READS)

    assert promised() == ("linearizable", "monotone-prefix", "linearizable")
    assert promised(mvcc=False) == ("linearizable", "", "")
    assert promised(quorum=1) == ("", "", "")
    assert promised(faults=("quorum",)) == ("linearizable", "monotone-prefix", "")
    assert promised(faults=("power-all",)) == ("", "", "")
