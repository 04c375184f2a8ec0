"""`qsync check FILE`: any history is judged by itself, others' as well as ours; beside it nothing is written."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from checkers.history import foreign
from checkers.proofs import verify
from checkers.transactional.proving import Prover
from checkers.verdict import Verified
from harness.judge.files.second_opinion import opinion
from harness.run.assemble import parts_of
from harness.run.execute import execute
from tests.harness.cli.verbs.conftest import Qsync
from tests.harness.runs import recorded, small

PORCUPINE = Path(__file__).parents[3] / "checkers" / "histories" / "porcupine"
GOOD = [
    "{:type :invoke, :process 0, :f :write, :value [x 1]}",
    "{:type :ok, :process 0, :f :write, :value [x 1]}",
    "{:type :invoke, :process 1, :f :read, :value [x nil]}",
    "{:type :ok, :process 1, :f :read, :value [x 1]}",
]
BAD = [
    *GOOD,
    "{:type :invoke, :process 0, :f :read, :value [y nil]}",
    "{:type :ok, :process 0, :f :read, :value [y 7]}",
]
SIZE = "import sys; print(len(open(sys.argv[1]).readlines()), 'lines, unknown')"


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return written(tmp_path / "good", GOOD)


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    return written(tmp_path / "bad", BAD)


def written(folder: Path, lines: list[str]) -> Path:
    path = folder / "files" / "history.edn"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(lines))
    return path


def says(word: str) -> str:
    """The command line of a checker that says so."""
    return f"{shlex.quote(sys.executable)} -c \"print('{word}')\""


def test_files_of_others_are_judged(qsync: Qsync, good: Path) -> None:
    """If it failed, whoever has a Jepsen history could not use these checkers."""
    done = qsync("check", good)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("VALID  ")
    assert f"again   ./qsync check {good} --model register" in done.out
    assert [path.name for path in good.parent.iterdir()] == [good.name]


def test_an_anomaly_is_named_and_is_1(qsync: Qsync, bad: Path) -> None:
    """If it failed, a broken store's history would pass, or nobody would learn why it did not."""
    done = qsync("check", bad)
    assert done.code == 1
    assert done.out.startswith("ANOMALY  ")
    verdict = json.loads(qsync("check", bad, "--json").out)
    assert verdict["violations"][0] == "linearizable"
    assert verdict["checks"][0]["witnesses"][0]["events"] == [4, 5]


def test_one_key_alone(qsync: Qsync, bad: Path) -> None:
    """If it failed, one key of a long history could not be looked at."""
    assert qsync("check", bad, "--key", "x").code == 0
    assert qsync("check", bad, "--key", "y").code == 1
    assert qsync("check", bad, "--key", "x").out.startswith("VALID  Of the key x alone: ")
    done = qsync("check", bad, "--key", "z")
    assert "it has x, y" in done.line
    assert done.code == 64


@pytest.mark.parametrize(("name", "code"), [("etcd_000.log", 1), ("etcd_002.log", 0), ("etcd_095.log", 3)])
def test_published_logs(qsync: Qsync, name: str, code: int) -> None:
    """If it failed, we would contradict the verdict that others have published, or call an empty log valid."""
    published = (PORCUPINE / "VERDICTS.txt").read_text()
    assert code == 3 or (f"{name} not" in published) == (code == 1)
    done = qsync("check", PORCUPINE / name, "--failed-cas", "observes")
    assert done.code == code
    assert code != 3 or "no operations" in done.line


@pytest.mark.parametrize("path", sorted(PORCUPINE.glob("kv/*.txt")), ids=lambda path: path.stem)
def test_published_key_value_files(qsync: Qsync, path: Path) -> None:
    """If it failed, we would contradict the reference checker about texts that are appended to."""
    assert qsync("check", path).code == (1 if path.stem.endswith("bad") else 0)


TRANSACTIONS = [
    {"type": "invoke", "process": 0, "value": [["append", 1, 1]]},
    {"type": "invoke", "process": 1, "value": [["append", 1, 2], ["r", 1, None]]},
    {"type": "ok", "process": 0, "value": [["append", 1, 1]]},
    {"type": "ok", "process": 1, "value": [["append", 1, 2], ["r", 1, [1, 2]]]},
    {"type": "invoke", "process": 0, "value": [["r", 1, None]]},
    {"type": "ok", "process": 0, "value": [["r", 1, [1, 2]]]},
]


@pytest.mark.parametrize(("last", "code"), [([1, 2], 0), ([2, 1], 1), ([1], 1)])
def test_transactions_as_elle_cli_takes_them(
    qsync: Qsync, tmp_path: Path, last: list[int], code: int
) -> None:
    """If it failed, Elle's histories would need Elle."""
    path = tmp_path / "history.json"
    path.write_text(json.dumps([*TRANSACTIONS[:-1], {**TRANSACTIONS[-1], "value": [["r", 1, last]]}]))
    done = qsync("check", path)
    assert done.code == code
    assert "model append" in done.out
    assert (qsync("check", path, "--promise", "serializable").code == 0) == (last != [2, 1])


def test_what_is_no_history_is_one_line(qsync: Qsync, tmp_path: Path) -> None:
    """If it failed, a wrong file would be a traceback."""
    page = tmp_path / "page.html"
    page.write_text("<html></html>")
    done = qsync("check", page)
    assert done.code == 3
    assert "expected a history.jsonl" in done.line


def test_a_torn_file_is_no_evidence_unless_it_shows_an_anomaly(qsync: Qsync, tmp_path: Path) -> None:
    """If it failed, half a history would pass for a whole one, or its anomaly would be lost."""
    path = written(tmp_path, [*GOOD, "{:type :invoke, :proc"])
    done = qsync("check", path)
    assert done.code == 3
    assert "torn" in done.out
    path.write_text("\n".join([*BAD, "{:type"]))
    assert qsync("check", path).code == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--model", "peace"), "--model 'peace' is not known"),
        (("--promise", "peace"), "--promise 'peace' is not known"),
        (("--model", "kv"), "--model kv knows append, get, put"),
        (("--timeout", "-1"), "--timeout"),
        (("--second-opinion", "'"), "is no command"),
    ],
)
def test_what_cannot_be_asked_is_64(qsync: Qsync, good: Path, words: tuple[str, ...], said: str) -> None:
    """If it failed, a mistyped word would be judged as something else."""
    done = qsync("check", good, *words)
    assert said in done.line
    assert done.code == 64


def test_operations_that_speak_of_no_model(qsync: Qsync, tmp_path: Path) -> None:
    """If it failed, a file would be judged as something that it is not."""
    path = written(tmp_path, ["{:type :invoke :process 0 :f :dance}", "{:type :ok :process 0 :f :dance}"])
    done = qsync("check", path)
    assert "(dance): give --model" in done.line
    assert done.code == 64


def test_proofs_are_verified(qsync: Qsync, good: Path, bad: Path) -> None:
    """If it failed, one would have to believe the search."""
    for path, code in ((good, 0), (bad, 1)):
        done = qsync("check", path, "--verify")
        assert done.code == code
        assert "proofs accepted" in done.out
        assert json.loads(qsync("check", path, "--verify", "--json").out)["verified"]["holds"] is True


def test_a_refused_proof_is_no_verdict(
    qsync: Qsync, good: Path, bad: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a search that broke could go on calling stores valid."""
    monkeypatch.setattr(
        verify, "check", lambda history, verdict, asked: Verified(0, ("it is wrong",), (), False)
    )
    done = qsync("check", good, "--verify")
    assert "REFUSED  it is wrong" in done.out
    assert done.code == 2
    assert qsync("check", bad, "--verify").code == 1


def transactions(tmp_path: Path) -> Path:
    lines = [
        f"{{:type {type_} :process {process} :f :txn :value {value}}}"
        for process, value in ((0, "[[:append x 1]]"), (1, "[[:r x [1]]]"))
        for type_ in (":invoke", ":ok")
    ]
    return written(tmp_path, lines)


def test_proofs_of_transactions_are_verified(qsync: Qsync, tmp_path: Path) -> None:
    """If it failed, one would have to believe the search for an order."""
    path = transactions(tmp_path)
    for promise in ("strict-serializable", "snapshot-isolation", "read-committed"):
        done = qsync("check", path, "--promise", promise, "--verify", "--json")
        assert (done.code, json.loads(done.out)["verified"]["holds"]) == (0, True)


REGISTERS = [
    f"{{:type {type_} :process {process} :f :txn :value {value}}}"
    for process, value in ((0, "[[:w x 1]]"), (1, "[[:w x 2]]"), (2, "[[:r x 1]]"), (2, "[[:r x 2]]"))
    for type_ in (":invoke", ":ok")
]
"""Both writes are over before a client reads the first one, and then the second."""


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ((), 0),
        (("--wfr-keys",), 0),
        (("--sequential-keys",), 0),
        (("--linearizable-keys",), 1),
        (("--transaction-order", "{1 1, 3 2}"), 0),
        (("--transaction-order", "{1 2, 3 1}"), 0),
        (("--transaction-order", f"{{1 {10**400}, 3 1}}"), 0),
        (("--transaction-order", "{1 2, 3 1}", "--sequential-keys"), 1),
    ],
)
def test_an_order_of_single_keys_is_judged_too(
    qsync: Qsync, tmp_path: Path, options: tuple[str, ...], code: int
) -> None:
    """If this fails, an option that Elle's users know changes nothing, or its verdict has no proof."""
    path, order = written(tmp_path, REGISTERS), tmp_path / "order.edn"
    if options[:1] == ("--transaction-order",):
        order.write_text(options[1])
        options = (options[0], str(order), *options[2:])
    done = qsync("check", path, "--promise", "serializable", "--verify", "--json", *options)
    told = json.loads(done.out)
    assert (done.code, told["verified"]["holds"]) == (code, True)
    assert all(word in told["repeat"]["command"] for word in options)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("[1]", "expected a map of indexes to numbers in JSON or EDN, as {3 0, 5 1}"),
        ("{:x 1}", "expected a map of indexes to numbers in JSON or EDN, as {3 0, 5 1}"),
        ('{"3": 0, "03": 1}', "expected a map of indexes to numbers in JSON or EDN, as {3 0, 5 1}"),
        ("{99 1}", "expected the index of an operation in the transaction order, got 99"),
        (f"{{{'9' * 5000} 1}}", "expected a map of indexes to numbers in JSON or EDN, as {3 0, 5 1}"),
        (None, "cannot read "),
    ],
)
def test_a_wrong_transaction_order_is_refused(
    qsync: Qsync, tmp_path: Path, content: str | None, line: str
) -> None:
    """If this fails, a file that is no order is ignored, or ends in a traceback."""
    order = tmp_path / "order.edn"
    if content is not None:
        order.write_text(content)
    done = qsync("check", written(tmp_path, REGISTERS), "--transaction-order", order)
    assert done.code == 64 and line in done.line


def test_an_order_of_single_keys_is_for_registers(qsync: Qsync, tmp_path: Path, good: Path) -> None:
    """If this fails, an option is ignored where it means nothing."""
    for path in (good, transactions(tmp_path)):
        done = qsync("check", path, "--linearizable-keys")
        assert done.code == 64 and "expected rw-register for an order of single keys" in done.line


def test_a_model_that_is_not_judged_is_refused(qsync: Qsync, tmp_path: Path) -> None:
    """If this fails, a store is judged by a model without a definition, or nobody says why not."""
    done = qsync("check", transactions(tmp_path), "--promise", "PL-1")
    assert done.code == 64 and "--promise 'PL-1' is not judged: it forbids G0 alone" in done.line


def test_a_proof_that_does_not_replay_is_our_defect(
    qsync: Qsync, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a defect of the checker would be told as a verdict on the store, valid or unknown."""
    monkeypatch.setattr(Prover, "replays", lambda *_: False)
    done = qsync("check", transactions(tmp_path))
    assert done.code == 70
    assert "does not replay" in done.line


def test_a_second_opinion_stands_beside_ours(qsync: Qsync, bad: Path) -> None:
    """If it failed, a sceptic would have to compare by hand."""
    done = qsync("check", bad, "--second-opinion", says("false"))
    assert "second opinion  invalid (it said 'false')" in done.out
    assert "DISAGREEMENT" not in done.out
    assert done.code == 1


def test_a_disagreement_is_shouted(qsync: Qsync, bad: Path) -> None:
    """If it failed, one of two checkers could be wrong and nobody would notice."""
    done = qsync("check", bad, "--second-opinion", says("history.edn true"))
    assert "DISAGREEMENT  we say ANOMALY" in done.out
    assert done.code == 1
    told = json.loads(qsync("check", bad, "--json", "--second-opinion", says("true")).out)["second_opinion"]
    assert told["disagrees"] is True


def test_the_other_checker_is_given_the_history(qsync: Qsync, good: Path, tmp_path: Path) -> None:
    """If it failed, it would judge another file, or none."""
    script = "import sys; print([open(name).read() for name in sys.argv[1:]], 'valid')"
    show = shlex.join([sys.executable, "-c", script])
    told = json.loads(qsync("check", good, "--json", "--second-opinion", show).out)["second_opinion"]
    assert told["said"].endswith("valid")
    assert "[x 1]" in told["said"]
    told = json.loads(qsync("check", good, "--json", "--key", "x", "--second-opinion", f"{show} {{edn}}").out)
    assert ":value 1}" in told["second_opinion"]["said"]


@pytest.mark.parametrize(
    ("out", "code", "result"),
    [
        ("history.edn\ttrue\n", 0, "valid"),
        ("history.edn\tfalse\n", 0, "invalid"),
        ("{:valid? :unknown, :error timeout}", 0, "unknown"),
        ("{:anomaly-types (:G1c), :valid? false}", 1, "invalid"),
        ('{"valid?":true}', 0, "valid"),
        ("not linearizable\n", 0, "invalid"),
        ("linearizable: yes\n", 0, "valid"),
        ("result: Illegal", 0, "invalid"),
        ("result: Ok", 0, "valid"),
        ("", 0, "unknown"),
        ("", 1, "unknown"),
        ("", 137, "unknown"),
        ("usage: checker [true|false]\n", 2, "unknown"),
        ("judged 7 valid keys\n", 1, "unknown"),
        ("false\n", -9, "unknown"),
    ],
)
def test_how_other_checkers_say_it(out: str, code: int, result: str) -> None:
    """If it failed, agreement and disagreement would be mixed up."""
    assert opinion("checker", out, "", code).result == result


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("no-such-checker", "it could not be started: No such file or directory"),
        (__file__, "it could not be started: Permission denied"),
        ("sh -c 'exit 1'", "it said no verdict, and ended with exit code 1"),
        ("sh -c 'echo invalid option >&2; exit 1'", "ended with exit code 1: invalid option"),
        ("sh -c 'kill -9 $$'", "ended with exit code -9"),
        (
            shlex.join([sys.executable, "-c", "raise ValueError('invalid')"]),
            "exit code 1: ValueError: invalid",
        ),
        ("true", "it said no verdict, and ended with exit code 0"),
    ],
)
def test_a_checker_that_breaks_has_no_opinion(
    qsync: Qsync, good: Path, bad: Path, command: str, why: str
) -> None:
    """If it failed, a missing file would look like a difference between two checkers, or like agreement."""
    for path, code in ((good, 0), (bad, 1))[: 1 + (command == "no-such-checker")]:
        done = qsync("check", path, "--second-opinion", command)
        assert f"second opinion  unknown ({why}" in done.out or f"{why})" in done.out
        assert "DISAGREEMENT" not in done.out
        assert done.code == code


def test_one_key_of_a_run_is_one_key_for_others(qsync: Qsync, tmp_path: Path) -> None:
    """If it failed, another tool would be asked about other operations than those that were judged."""
    plan = small(time_limit_s=1.0, rate=60.0, faults=("none",), seed=5)
    folder = execute(parts_of(plan), tmp_path / "results").folder
    lone = tmp_path / "sent.jsonl"
    lone.write_bytes((folder.path / "history.jsonl").read_bytes())
    key = next(each.key for each in foreign.read(lone).operations if each.key is not None)
    count = len([each for each in foreign.read(lone).operations if each.key == key and each.f != "dump"])
    show = shlex.join([sys.executable, "-c", SIZE])
    for path in (folder.path, lone):
        edn = tmp_path / "key.edn"
        done = qsync("check", path, "--key", key, "--edn", edn, "--json", "--second-opinion", show)
        operations = foreign.read(edn).operations
        assert 0 < len(operations) <= count
        assert {each.key for each in operations} == {None}
        told = json.loads(done.out)["second_opinion"]["said"]
        assert told == f"{len(edn.read_text().splitlines())} lines, unknown"


def test_one_key_of_a_foreign_file_is_one_key_for_others(qsync: Qsync, bad: Path) -> None:
    """If it failed, another tool would find the anomaly of another key, and the two would be said to disagree."""
    show = shlex.join([sys.executable, "-c", SIZE])
    for options, lines in (((), len(BAD)), (("--key", "x"), len(GOOD))):
        done = qsync("check", bad, *options, "--json", "--second-opinion", show)
        assert json.loads(done.out)["second_opinion"]["said"] == f"{lines} lines, unknown"


def test_the_page_and_the_edn_are_written_where_one_asks(qsync: Qsync, bad: Path, tmp_path: Path) -> None:
    """If it failed, an anomaly in somebody's file could not be shown, nor handed to another checker."""
    page, edn = tmp_path / "page.html", tmp_path / "out.edn"
    done = qsync("check", bad, "--html", page, "--edn", edn)
    assert done.code == 1
    assert "<svg" in page.read_text()
    assert "never-written" in page.read_text()
    assert foreign.read(edn).operations == foreign.read(bad).operations
    done = qsync("check", bad, "--html", tmp_path)
    assert "expected a file to write" in done.line
    assert done.code == 64


def test_a_record_of_ours_outside_of_its_folder(qsync: Qsync, tmp_path: Path) -> None:
    """If it failed, a record that somebody sent us could not be judged."""
    plan = small(time_limit_s=3.0, rate=40.0, faults=("none",), replica_reads=0.5, seed=5)
    data = recorded(plan).data
    lone = tmp_path / "sent.jsonl"
    lone.write_bytes(data)
    assert qsync("check", lone).code == 0
    assert not (tmp_path / "verdict.json").exists()
    folder = execute(parts_of(plan), tmp_path / "results").folder
    edn = tmp_path / "run.edn"
    assert qsync("check", folder.path, "--edn", edn, "--second-opinion", says("true")).code == 0
    assert folder.read_verdict() is not None
    assert qsync("check", edn).code == 0


@pytest.mark.parametrize("step_ns", [None, 2_000_000])
def test_a_log_without_times_is_told_of_in_events_and_not_in_seconds(
    qsync: Qsync, tmp_path: Path, step_ns: int | None
) -> None:
    """If it failed, a person would read that all of an imported log happened in 0.0000 s."""
    asked = [("invoke", "write", 1), ("ok", "write", 1), ("invoke", "write", 2), ("ok", "write", 2)]
    asked += [("invoke", "read", "nil"), ("ok", "read", 1)]
    lines = [
        f"{{:process 0, :type :{type_}, :f :{f}, :value {value}"
        + (f", :time {1_000_000 + place * step_ns}}}" if step_ns else "}")
        for place, (type_, f, value) in enumerate(asked)
    ]
    at = f", :time {1_000_000 + 3 * step_ns}" if step_ns else ""
    faults = [f"{{:process :nemesis, :type :info, :f :{f}{at}}}" for f in ("start", "start", "stop", "stop")]
    lines[4:4] = faults if step_ns else []
    lines += [] if step_ns else faults
    log, page = tmp_path / "log.edn", tmp_path / "page.html"
    log.write_text("\n".join(lines))
    done = qsync("check", log, "--model", "register", "--html", page, "--json")
    checks = {check["checker"]: check for check in json.loads(done.out)["checks"]}
    assert (" ms and 1 version" in checks["staleness"]["summary"]) == (step_ns is not None)
    (witness,) = checks["linearizable"]["witnesses"]
    told = " ".join([witness["summary"], *witness["explanation"]])
    assert ("asked at event 4" in told) == (step_ns is None)
    assert ("asked at 0.0090 s" in told) == (step_ns is not None)
    assert ("had completed before that began" in told) == (step_ns is None)
    shown = page.read_text()
    assert ("no times" in shown) == (step_ns is None)
    # A fault, too.
    assert (">event 6</td>" in shown and "0.000 s" not in shown) == (step_ns is None)
    assert "0.0000 s" not in told + shown


def test_a_report_of_etcd_is_one_history(qsync: Qsync, tmp_path: Path) -> None:
    """If it failed, each client's file would be a line of its own, and none could be judged."""
    report = Path(__file__).parents[3] / "checkers" / "histories" / "etcd-report"
    done = qsync("check", report)
    assert done.code == 0 and "model etcd" in done.out and "VALID" in done.out
    lines = qsync("check", report, report / "client-1" / "operations.json").out.splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["valid", "unknown"]
    # Named from within, its page has its name.
    above = report / "client-1" / ".."
    assert qsync("check", above, "--html", tmp_path / "page.html").code == 0
    assert "etcd-report" in (tmp_path / "page.html").read_text()


def test_the_line_that_repeats_has_the_limits_as_they_were(qsync: Qsync, good: Path) -> None:
    """If it failed, the line would repeat another check: with 1,234,570 s in place of 1,234,567 s."""
    done = qsync("check", good, "--timeout", "1234567", "--memory", "20.0")
    assert "--timeout 1234567.0 --memory 20\n" in done.out


@pytest.mark.parametrize(
    ("said", "code", "result"),
    [
        ("Result: not valid", 0, "invalid"),
        ("NOT VALID", 1, "invalid"),
        ("the history is not legal", 0, "invalid"),
        ("it isn't valid", 0, "invalid"),
        ("History is not strictly serializable", 1, "invalid"),
        ("it does not appear to be linearizable", 0, "invalid"),
        ("linearizable: no", 0, "invalid"),
        ('{"valid": true, "anomalies": []}', 0, "valid"),
        ("legal, anomalies: []", 0, "valid"),
        ("no anomalies found", 0, "unknown"),
        ("valid, no anomalies found", 0, "valid"),
        ('{"valid?": "unknown", "anomalies": {"empty-transaction-graph": true}}', 0, "unknown"),
        ('{"valid?": false, "not": ["read-atomic"], "also-not": ["serializable"]}', 1, "invalid"),
        ("{:valid? true, :anomaly-types []}", 0, "valid"),
        ("{:results {:x {:valid? false}}, :valid? false}", 1, "invalid"),
    ],
)
def test_what_another_checker_says_is_not_turned_round(said: str, code: int, result: str) -> None:
    """If it failed, "not valid" would stand beside our verdict as "valid"."""
    assert opinion("c", said, "", code).result == result


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("history.edn", "--html", "history.edn"), "--html: history.edn"),
        (("history.edn", "--edn", "link.edn"), "--edn: link.edn"),
        (("history.edn", "--html", "new", "--edn", "new"), "--edn: new"),
        (("run", "--shiviz", "run/history.jsonl"), "--shiviz: run/history.jsonl"),
        (("run", "--shiviz", "run/nodes/n1/log.jsonl"), "--shiviz: run/nodes/n1/log.jsonl"),
        (("run/history.jsonl", "--edn", "run/plan.json"), "--edn: run/plan.json"),
        (("store", "--edn", "store/test/history.edn"), "--edn: store/test/history.edn"),
        (("history.edn", "--transaction-order", "order", "--html", "order"), "--html: order"),
    ],
)
def test_what_is_read_is_not_written_over(
    qsync: Qsync, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], named: str
) -> None:
    """If it failed, a slip would put a page in the place of the only record, or one output in that of another."""
    monkeypatch.chdir(tmp_path)
    names = ("history.edn", "order", "store/test/history.edn")
    names += ("run/history.jsonl", "run/plan.json", "run/nodes/n1/log.jsonl")
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("as it was")
    (tmp_path / "link.edn").symlink_to("history.edn")
    said = qsync("check", *words)
    assert (said.code, f"{named} is read, or is written already" in said.line) == (64, True)
    assert {(tmp_path / name).read_text() for name in names} == {"as it was"}
    assert not (tmp_path / "new").exists()
