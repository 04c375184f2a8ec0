"""The audit of whole runs: the logs of sound nodes agree and flip no verdict; those of broken nodes tell on them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from checkers.check import Check
from checkers.history import jsonl
from checkers.verdict import Result, Verdict, Witness
from harness.cli.verbs.audit import command
from harness.errors import StoreError
from harness.judge import Case, Left, judge
from harness.judge.audit import Audit
from harness.plan.plan import Plan
from harness.run.assemble import header, parts_of, simulated
from harness.run.conductor import Conductor
from harness.run.execute import execute
from harness.run.finish import finish
from harness.systems.plans import read
from harness.systems.qsync.logs import log_of
from nodes.iproto import xlog
from nodes.iproto.messages import Row, Type
from tests.harness.runs import small
from tests.harness.stored import Kind, a_log_with_a_hole, a_torn_log, nothing
from tests.harness.stored import stored as stored_runs
from tests.suites import mostly_long

SMALL = small(seed=3, time_limit_s=4.0, rate=60.0, faults=("kill",))


def judged(plan: Plan, changed: Callable[[bytes], bytes] = lambda record: record) -> dict[str, Any]:
    """A simulated run in memory with its logs, judged. `changed`: its record."""
    parts = parts_of(plan)
    cluster = simulated(parts, None)
    record = io.BytesIO()
    cluster.run(
        Conductor(plan, cluster, parts.system, parts.workload, jsonl.Writer(record, header(parts))).run()
    )
    return judge(
        Case(
            plan,
            jsonl.parse(changed(record.getvalue())),
            Left(
                logs=[log_of(name, machine.disk.files()) for name, machine in cluster.world.machines.items()],
                effects=cluster.effects(),
            ),
            given_promise=parts.system.promise(plan),
        )
    )


def check_of(verdict: dict[str, Any], name: str) -> dict[str, Any]:
    return next(check for check in verdict["checks"] if check["checker"] == name)


@pytest.mark.parametrize(
    ("seed", "election_mode", "time_limit_s"),
    [
        (4, "candidate", 8.0),
        *(pytest.param(*each, 20.0, marks=pytest.mark.long) for each in ((3, "off"), (4, "candidate"))),
    ],
)
def test_the_logs_of_sound_nodes_agree_and_settling_flips_nothing(
    seed: int, election_mode: str, time_limit_s: float
) -> None:
    """Breaks if a rule over logs, or settling, were a false alarm about a correct system."""
    verdict = judged(small(seed=seed, time_limit_s=time_limit_s, election_mode=election_mode))
    assert check_of(verdict, "audit")["result"] == "valid", check_of(verdict, "audit")["witnesses"]
    assert all(check["result"] == "valid" for check in verdict["settled"]["checks"])
    assert verdict["settled"]["did_not"] + verdict["settled"]["happened"] > 0
    assert verdict["settled"]["open"] == 0


@pytest.mark.parametrize("told", [b'"settled","value":true', b'"settled","value":false', b'"told-nothing"'])
def test_logs_deny_a_write_only_if_nodes_had_settled(told: bytes) -> None:
    """Breaks if a write that was on its way when the nodes were stopped counted as one that did not happen: a read that
    showed it would be an anomaly."""

    def never_written(record: bytes) -> bytes:
        """One more write, without an answer, of a value that is in no log; and what the harness tells of the end."""
        lines = record.splitlines(keepends=True)
        asked = next(
            place for place, line in enumerate(lines) if b'"f":"write"' in line and b'"invoke"' in line
        )
        event = json.loads(lines[asked])
        event["process"], event["value"] = 1_000_000, 987_654_321
        lines.insert(asked, json.dumps(event).encode() + b"\n")
        numbered = (
            {**json.loads(line), "index": number} if number >= 0 else json.loads(line)
            for number, line in enumerate(lines, start=-1)
        )
        whole = b"".join(json.dumps(each, separators=(",", ":")).encode() + b"\n" for each in numbered)
        assert whole.count(b'"f":"settled","value":true') == 1
        return whole.replace(b'"settled","value":true', told)

    verdict = judged(small(seed=3, time_limit_s=2.0, faults=("none",)), never_written)
    assert verdict["settled"]["did_not"] == told.endswith(b"true")


@pytest.mark.parametrize("time_limit_s", [5.0, pytest.param(20.0, marks=pytest.mark.long)])
def test_transactions_are_settled_too(time_limit_s: float) -> None:
    """Breaks if the logs said nothing of the outcomes of transactions over lists."""
    verdict = judged(small(seed=3, time_limit_s=time_limit_s, workload="append", configuration="H"))
    assert verdict["settled"]["did_not"] + verdict["settled"]["happened"] > 0
    assert verdict["settled"]["open"] == 0
    assert all(check["result"] == "valid" for check in verdict["settled"]["checks"])
    assert check_of(verdict, "audit")["result"] == "valid"


@pytest.mark.parametrize("bug", ["confirm-early", "ack-before-fsync"])
def test_the_logs_of_broken_nodes_tell_on_them(bug: str) -> None:
    """Breaks if logs in which an acknowledged transaction is discarded passed."""
    faults = ("isolate-owner", "power-all")
    verdict = judged(small(seed=5, faults=faults, election_mode="off", bugs=(bug,)))
    assert check_of(verdict, "audit")["result"] == "invalid"


@pytest.mark.parametrize("bug", ["confirm-early", "confirm-before-wal-owner"])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_an_early_answer_is_found_by_every_seed(bug: str, seed: int) -> None:
    """Breaks if an answer before its quorum or its CONFIRM were seen only where a fault strikes between the two."""
    verdict = judged(small(seed=seed, time_limit_s=2.0, faults=("none",), election_mode="off", bugs=(bug,)))
    assert set(verdict["violations"]) <= {"acknowledged-early", "node-state"}
    early = check_of(verdict, "acknowledged-early")
    answered = [each for each in early["witnesses"] if each["rule"] == "answered-before-confirm"]
    assert answered
    assert all(witness["events"] for witness in answered)


def test_an_early_acknowledgement_is_found_without_a_loss_of_power() -> None:
    """Breaks if a store that acknowledges what is not synced were found only by the power loss that shows it."""
    plan = small(seed=1, time_limit_s=3.0, faults=("lose-unsynced",), election_mode="off")
    verdict = judged(msgspec.structs.replace(plan, bugs=("ack-before-fsync",)))
    rules = {witness["rule"] for witness in check_of(verdict, "acknowledged-early")["witnesses"]}
    assert "claimed-before-durable" in rules


@pytest.mark.parametrize("configuration", mostly_long("ABI", quick="B"))
def test_a_sound_store_answers_in_time_in_every_configuration(configuration: str) -> None:
    """Breaks if the check of answers asked for more than a configuration promises."""
    verdict = judged(small(seed=7, time_limit_s=5.0, configuration=configuration))
    early = check_of(verdict, "acknowledged-early")
    assert early["result"] == "valid", early["witnesses"]
    assert early["details"]["writes"] > 0
    assert (early["checker"] in verdict["promise"]) == (configuration != "B")


def test_what_is_only_submitted_is_not_answered_early() -> None:
    """Breaks if answers that promise no confirmation were condemned."""
    verdict = judged(small(seed=3, time_limit_s=4.0, commit_wait="mixed"))
    assert check_of(verdict, "acknowledged-early")["result"] == "valid"


def test_a_stored_run_keeps_what_its_disks_did(tmp_path: Path) -> None:
    """Breaks if `check` and `audit` of a stored run judged answers by another record than the run; or by none."""
    plan = small(seed=3, time_limit_s=3.0, faults=("none",), election_mode="off", bugs=("confirm-early",))
    folder, verdict = stored(tmp_path, plan)
    again, _ = stored(tmp_path / "again", plan)
    kept = (folder / "nodes" / "effects.jsonl").read_bytes()
    assert kept == (again / "nodes" / "effects.jsonl").read_bytes()
    assert set(verdict["violations"]) <= {"acknowledged-early", "node-state"}
    done = CliRunner().invoke(command, [str(folder), "--json"], standalone_mode=False)
    assert done.return_value == 1
    assert [check["result"] for check in json.loads(done.output)["checks"]][:2] == ["valid", "invalid"]
    (folder / "nodes" / "effects.jsonl").write_bytes(b'["d",1\n' + kept)
    done = CliRunner().invoke(command, [str(folder), "--json"], standalone_mode=False)
    assert isinstance(done.exception, StoreError)
    assert "has changed" in done.exception.message
    (folder / "hashes.json").unlink()
    done = CliRunner().invoke(command, [str(folder), "--json"], standalone_mode=False)
    assert isinstance(done.exception, StoreError)
    assert "line 1" in done.exception.message


def test_a_stored_run_can_be_audited(tmp_path: Path) -> None:
    """Breaks if `qsync audit RUN` did not find the plan, the logs or the record of a run."""
    folder, _ = stored(tmp_path, SMALL)
    done = CliRunner().invoke(command, [str(folder), "--json"], standalone_mode=False)
    assert done.return_value == 0
    audit = json.loads(done.output)
    assert audit["outcome"] == "valid"
    assert set(audit["checks"][0]["details"]["nodes"]) == {"n1", "n2", "n3"}
    assert audit["settled"] is not None
    assert "n3" in CliRunner().invoke(command, [str(folder)], standalone_mode=False).output


def test_a_missing_log_is_said_and_proves_nothing(tmp_path: Path) -> None:
    """Breaks if a lost log were taken for one that never held a row, or its loss went unsaid."""
    folder, _ = stored(tmp_path, SMALL)
    (folder / "hashes.json").unlink()  # it was lost before the run was judged
    for path in (folder / "nodes" / "n2").glob("*.xlog"):
        path.unlink()
    done = CliRunner().invoke(command, [str(folder), "--json"], standalone_mode=False)
    audit = json.loads(done.output)
    assert (done.return_value, audit["outcome"]) == (2, "unknown")
    assert any("1 of 3 nodes are missing" in finding for finding in audit["checks"][0]["details"]["findings"])
    assert audit["settled"]["did_not"] == 0


def test_a_log_that_ends_before_its_nodes_last_report_proves_nothing(tmp_path: Path) -> None:
    """Breaks if a log whose second half is gone were a whole one: its torn end is what a kill leaves."""
    folder, _ = stored(tmp_path, SMALL)
    (folder / "hashes.json").unlink()  # it was lost before the run was judged
    (log,) = (folder / "nodes" / "n2").glob("*.xlog")
    data = log.read_bytes()
    log.write_bytes(data[: len(data) * 2 // 3])
    done = CliRunner().invoke(command, [str(folder), "--json"], standalone_mode=False)
    audit = json.loads(done.output)
    assert (done.return_value, audit["outcome"]) == (2, "unknown")
    assert audit["checks"][0]["summary"].startswith("rows are missing: n2 reported lsn ")


def test_a_folder_without_logs_is_wrong_use(tmp_path: Path) -> None:
    """Breaks if nothing to audit were a pass or a traceback."""
    from harness.errors import WrongUse

    with pytest.raises(WrongUse, match=r"expected \*\.xlog files"):
        CliRunner().invoke(command, [str(tmp_path)], standalone_mode=False, catch_exceptions=False)


def test_a_duplicate_confirm_shows_in_any_folder_of_logs(tmp_path: Path) -> None:
    """Breaks if logs without a plan could not be audited."""
    rows = (
        Row(
            type=Type.INSERT.value,
            replica_id=1,
            lsn=1,
            timestamp=1.0,
            tsn=1,
            wait_ack=True,
            body={16: 512, 33: ("x", 1)},
        ),
        *(
            Row(type=Type.CONFIRM.value, replica_id=1, lsn=lsn, timestamp=1.0, tsn=lsn, body={2: 1, 3: 1})
            for lsn in (2, 3)
        ),
    )
    uuid = "7170b4a6-5a1d-4a0c-a8ae-0f7ba5b0a1e7"
    data = xlog.encode_header("XLOG", uuid, {}) + b"".join(xlog.encode_block([row]) for row in rows)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "00000000000000000000.xlog").write_bytes(data)
    done = CliRunner().invoke(command, [str(tmp_path), "--json"], standalone_mode=False)
    assert done.return_value == 1
    assert json.loads(done.output)["checks"][0]["witnesses"][0]["rule"] == "confirm-not-increasing"


def test_damage_with_good_rows_behind_it_is_told(tmp_path: Path) -> None:
    """Breaks if a log that is damaged in the middle counted as whole: what it held there is not known."""
    uuid = "7170b4a6-5a1d-4a0c-a8ae-0f7ba5b0a1e7"
    row = Row(
        type=Type.INSERT.value,
        replica_id=1,
        lsn=1,
        timestamp=1.0,
        tsn=1,
        wait_ack=True,
        body={16: 512, 33: ("x", 1)},
    )
    block = xlog.encode_block([row])
    header_bytes = xlog.encode_header("XLOG", uuid, {})
    torn = log_of("a", {"00000000000000000000.xlog": header_bytes + block + block[:-1]})
    assert torn.is_whole
    broken = block[:-1] + bytes([block[-1] ^ 1])
    damaged = log_of("a", {"00000000000000000000.xlog": header_bytes + broken + block})
    assert not damaged.is_whole


@pytest.mark.parametrize(
    ("space", "definition", "left_out"),
    [
        (280, (600, 1, "usual", "memtx", 0, {"is_sync": True}, ()), set()),
        (280, (600, 1, "near", "memtx", 0, {"group_id": 1}, ()), {600}),
        (280, (600, 1, "brief", "memtx", 0, {"temporary": True}, ()), {600}),
        (288, (600, 0, "primary", "tree", {}, ((0, "string"),)), set()),
        (288, (600, 0, "primary", "tree", {}, ((1, "string"),)), {600}),
        (330, (600, 1), {600}),
    ],
    ids=["usual", "local", "temporary", "first field", "another field", "truncated"],
)
@pytest.mark.parametrize("place", ["log", "snapshot"])
def test_spaces_whose_rows_are_not_all_in_the_log_are_left_out(
    place: str, space: int, definition: tuple[object, ...], left_out: set[int]
) -> None:
    """Breaks if a snapshot were compared with rows that the log does not have: a false alarm about a sound node."""
    uuid = "7170b4a6-5a1d-4a0c-a8ae-0f7ba5b0a1e7"
    row = xlog.encode_block([Row(Type.REPLACE.value, 1, 2, 1.0, 2, body={16: space, 33: definition})])
    files = {
        "00000000000000000001.snap": xlog.encode_header("SNAP", uuid, {1: 1}),
        "00000000000000000001.xlog": xlog.encode_header("XLOG", uuid, {1: 1}),
    }
    files[next(name for name in files if name.endswith({"log": "xlog", "snapshot": "snap"}[place]))] += row
    files["00000000000000000001.snap"] += xlog.encode_eof()
    (snapshot,) = log_of("a", files).snapshots
    assert snapshot.left_out == left_out


def stored(results: Path, plan: Plan) -> tuple[Path, dict[str, Any]]:
    """A run in its folder, judged."""
    folder = execute(parts_of(plan), results).folder
    return folder.path, finish(folder, read(folder.plan_file))


def test_a_hole_between_two_logs_is_told(tmp_path: Path) -> None:
    """Breaks if a log that is gone from the middle went unnoticed: the rows in it may be what the others contradict."""
    uuid = "7170b4a6-5a1d-4a0c-a8ae-0f7ba5b0a1e7"

    def file(first: int, last: int) -> bytes:
        rows = [
            Row(Type.INSERT.value, 1, lsn, 1.0, lsn, body={16: 512, 33: ("x", lsn)})
            for lsn in range(first, last + 1)
        ]
        begins = {1: first - 1} if first > 1 else {}
        return xlog.encode_header("XLOG", uuid, begins) + b"".join(xlog.encode_block([row]) for row in rows)

    whole = {f"{first - 1:020d}.xlog": file(first, first + 1) for first in (1, 3, 5)}
    assert log_of("a", whole).is_whole
    torn = {**whole, f"{2:020d}.xlog": whole[f"{2:020d}.xlog"] + b"\xd5\xba\x0b\xab\x20"}
    assert log_of("a", torn).is_whole, "a torn end that the next file does not count is legal"
    without = {name: data for name, data in whole.items() if name != f"{2:020d}.xlog"}
    damage = log_of("a", without).damage
    assert damage is not None
    assert "begins at {1: 4}, but the log before it ends at {1: 2}" in damage
    closed = file(1, 3) + xlog.encode_eof()
    broken = bytearray(closed)
    broken[len(closed) - 8] ^= 0xFF
    assert not log_of("a", {f"{0:020d}.xlog": bytes(broken)}).is_whole, "a closed log was whole"


def test_xlog_and_audit_agree_on_the_logs_of_a_run(tmp_path: Path) -> None:
    """Breaks if one says that a log is damaged and the other that all is well."""
    from harness.cli.verbs.xlog import command as xlog_command

    befalls = {nothing: 0, a_torn_log: 0, a_log_with_a_hole: 2}
    kind = Kind("sound", small(time_limit_s=2.0, faults=("none",), seed=5), tuple(befalls))
    for (_, folder), code in zip(stored_runs(tmp_path, (kind,)), befalls.values(), strict=True):
        done = CliRunner().invoke(command, [str(folder.path)], standalone_mode=False)
        assert done.return_value == code, done.output
        seen = CliRunner().invoke(xlog_command, [str(folder.nodes)], standalone_mode=False)
        assert seen.return_value == (1 if code else 0), seen.output


UUIDS = ("7170b4a6-5a1d-4a0c-a8ae-0f7ba5b0a1e7", "11111111-2222-3333-4444-555555555555")


def sound_files(uuid: str = UUIDS[0]) -> dict[str, bytes]:
    """Of a node: a snapshot in the middle, and logs before and behind it, of which the last one is open."""
    rows = [
        Row(Type.INSERT.value, 1, lsn, 1.0, lsn, body={16: 512, 33: (f"k{lsn}", lsn)}) for lsn in range(1, 6)
    ]
    held = [Row(Type.INSERT.value, 0, place, 1.0, place, body=row.body) for place, row in enumerate(rows[:3])]
    end = xlog.encode_eof()
    return {
        f"{0:020d}.snap": xlog.encode_header("SNAP", uuid, {}) + end,
        f"{0:020d}.xlog": xlog.encode_header("XLOG", uuid, {}) + xlog.encode_block(rows[:3]) + end,
        f"{3:020d}.snap": xlog.encode_header("SNAP", uuid, {1: 3}) + xlog.encode_block(held) + end,
        f"{3:020d}.xlog": xlog.encode_header("XLOG", uuid, {1: 3}, {}) + xlog.encode_block(rows[3:]),
    }


def audited(folder: Path, nodes: dict[str, dict[str, bytes]]) -> dict[str, Any]:
    for node, files in nodes.items():
        (folder / node).mkdir(exist_ok=True, parents=True)
        for name, data in files.items():
            (folder / node / name).write_bytes(data)
    done = CliRunner().invoke(command, [str(folder), "--json"], standalone_mode=False)
    said: dict[str, Any] = json.loads(done.output)
    return said


def test_a_flipped_bit_in_any_snapshot_is_told(tmp_path: Path) -> None:
    """Breaks if a damaged snapshot leaves an audit valid. The bytes of the version are all that nothing denies."""
    nodes = {name: sound_files(uuid) for name, uuid in zip(("n1", "n2"), UUIDS, strict=True)}
    assert audited(tmp_path, nodes)["outcome"] == "valid"
    for name, data in nodes["n1"].items():
        if not name.endswith(".snap"):
            continue
        version = data.index(b"Version: ") + 9, data.index(b"\nInstance")
        for place in range(len(data)):
            spoilt = bytearray(data)
            spoilt[place] ^= 1 << place % 8
            log = log_of("n1", {**nodes["n1"], name: bytes(spoilt)})
            is_told = any(name in each for each in (*log.unread, log.damage or ""))
            assert is_told or version[0] <= place < version[1], (name, place)
    name = f"{3:020d}.snap"
    data = nodes["n1"][name]
    spoilt = bytearray(data)
    spoilt[-20] ^= 1
    said = audited(tmp_path, {"n1": {name: bytes(spoilt)}})
    assert said["outcome"] == "unknown"
    assert said["sentence"].startswith(f"Snapshots are damaged: n1: {name}: ")
    (tmp_path / "n3").mkdir()
    said = audited(tmp_path, {"n1": nodes["n1"], "n3": {name: data[:-4]}})
    assert said["outcome"] == "unknown", "a node of which nothing but a damaged snapshot is there"
    assert f"n3: {name}: there is no end marker" in said["sentence"]


@pytest.mark.parametrize("part", [slice(0, 2), slice(1, 3), slice(0, 3, 2)], ids=["end", "first", "middle"])
def test_a_part_of_a_transaction_is_damage(tmp_path: Path, part: slice) -> None:
    """Breaks if rows that are gone from the middle of a log leave an audit valid."""
    rows = [
        Row(Type.INSERT.value, 1, lsn, 1.0, 1, lsn == 3, body={16: 512, 33: ("x", lsn)}) for lsn in (1, 2, 3)
    ]
    begin, name = xlog.encode_header("XLOG", UUIDS[0], {}), f"{0:020d}.xlog"
    sound = {name: begin + xlog.encode_block(rows)}
    assert audited(tmp_path, {"n1": sound})["outcome"] == "valid"
    behind = xlog.encode_block([Row(Type.NOP.value, 1, 4, 1.0, 4)])
    for end in (b"", xlog.encode_eof(), behind, behind + xlog.encode_eof()):
        said = audited(tmp_path, {"n1": {name: begin + xlog.encode_block(rows[part]) + end}, "n2": sound})
        assert said["outcome"] == "unknown"
        assert f"n1: {name}: the transaction 1:1 from row 1 on" in said["sentence"]
    torn = xlog.encode_block(rows[:1])[:-2] + b"\0"
    assert (
        audited(tmp_path, {"n1": {name: begin + xlog.encode_block(rows) + torn}, "n2": sound})["outcome"]
        == "valid"
    )


@pytest.mark.parametrize(
    ("result", "violated", "counts"),
    [
        ("invalid", (), True),
        ("invalid", ("linearizable",), False),
        ("unknown", (), False),
        ("valid", (), False),
    ],
)
def test_of_what_is_judged_again_only_a_new_anomaly_counts(
    result: Result, violated: tuple[str, ...], counts: bool
) -> None:
    """If it failed, a valid run would be undecided because a search over its settled history gave up, or one anomaly
    would be two."""
    witnesses = (Witness(rule="stale", summary="an old value", events=(0,)),) if result == "invalid" else ()
    again = Verdict(checker="linearizable", result=result, summary="", witnesses=witnesses)
    logs = Verdict(checker="audit", result="valid", summary="")
    check = Check("linearizable", "", "linearizable", lambda history: again)
    judged = Audit(logs=logs, settled=((check, again),)).judged("logs that agree", "", violated)
    assert ("linearizable-settled" in [verdict.checker for _, verdict in judged]) == counts
