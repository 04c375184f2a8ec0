"""How a node's process comes up, refuses to, stops, breaks, and dies with its parent."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nodes.host import process as host_process
from nodes.host.links import Address
from nodes.host.options import parse
from nodes.kernel.node import RARE_TURN
from tests import needs
from tests.nodes.host.hosts import PATIENCE_S, ROOT, Process, StartHost, command_line, eventually, is_gone


def test_the_readiness_line_names_node_pid_and_port(start_host: StartHost) -> None:
    """Broken, a harness could neither find nor signal the node that it has started."""
    process = start_host()
    assert process.said == {"ready": True, "node": "n1", "pid": process.popen.pid, "port": process.port}
    assert process.client().ask("echo it works") == "it works"


def test_a_node_hears_of_its_files_but_not_of_its_log(start_host: StartHost, tmp_path: Path) -> None:
    """Broken, a restarted node would forget its journal, or read its own log as one."""
    (tmp_path / "n1").mkdir()
    for name in ("b.xlog", "a.snap", "log.jsonl"):
        (tmp_path / "n1" / name).write_text(name)
    process = start_host("--log", str(tmp_path / "n1" / "log.jsonl"))
    assert process.client().ask("files") == "a.snap b.xlog"


def test_what_was_stored_is_there_after_a_kill(start_host: StartHost) -> None:
    """Broken, an acknowledged record would not be in the file."""
    process = start_host()
    assert process.client().ask("store one") == "stored one"
    process.end(signal.SIGKILL)
    assert (process.data / "journal.txt").read_text() == "one\n"
    again = start_host()
    assert again.client().ask("store two") == "stored two"
    assert (process.data / "journal.txt").read_text() == "one\ntwo\n"


def test_a_node_may_cut_off_a_torn_end_when_it_starts(start_host: StartHost, tmp_path: Path) -> None:
    """Broken, the first record after a crash would lie behind half a record, where nobody reads it."""
    (tmp_path / "n1").mkdir()
    (tmp_path / "n1" / "journal.txt").write_text("one\ntw")
    assert start_host().client().ask("store three") == "stored three"
    assert (tmp_path / "n1" / "journal.txt").read_text() == "one\nthree\n"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"config": "{"}, "is not usable: Expecting property name"),
        ({"listen": "192.0.2.1:1"}, "cannot listen on 192.0.2.1:1: cannot assign requested address"),
    ],
)
def test_what_keeps_a_node_from_starting_is_one_line(
    start_host: StartHost, arguments: dict[str, str], error: str
) -> None:
    """Broken, a harness would wait for a node that has already given up, or show a traceback."""
    process = start_host(**arguments)
    assert process.said["ready"] is False
    assert error in str(process.said["error"])
    assert process.popen.wait(PATIENCE_S) == 1


def test_a_port_in_use_is_named_and_the_files_stay_as_they_are(start_host: StartHost, tmp_path: Path) -> None:
    """Broken, somebody would have to guess which of five nodes could not listen and why, or would lose a torn end."""
    (tmp_path / "n1").mkdir()
    (tmp_path / "n1" / "journal.txt").write_text("one\ntw")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        process = start_host(listen=listen)
        assert process.said == {"ready": False, "error": f"cannot listen on {listen}: address already in use"}
        assert process.popen.wait(PATIENCE_S) == 1
    assert (tmp_path / "n1" / "journal.txt").read_text() == "one\ntw"


def test_unreadable_data_is_named(start_host: StartHost, tmp_path: Path) -> None:
    """Broken, a node would start empty over data that it cannot read, or die without a word."""
    (tmp_path / "n1").mkdir()
    (tmp_path / "n1" / "journal.txt").write_text("unreadable")
    process = start_host()
    assert "n1 cannot start" in str(process.said["error"])
    assert str(process.said["error"]).endswith("journal.txt is not a journal")
    assert process.popen.wait(PATIENCE_S) == 1


def test_two_processes_never_share_a_data_folder(start_host: StartHost) -> None:
    """Broken, a second start of a node would write into the journal of the first."""
    start_host()
    assert "is in use by another process" in str(start_host().said["error"])


@pytest.mark.parametrize("options", [("--peer", "n2"), ("--durability", "maybe"), ("--nonsense",)])
def test_wrong_use_has_an_exit_code_of_its_own(start_host: StartHost, options: tuple[str, ...]) -> None:
    """Broken, a mistake in the harness would look like a node that failed."""
    process = start_host(*options)
    assert process.said["ready"] is False
    assert process.popen.wait(PATIENCE_S) == 64


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_clean_stop_lets_the_node_say_its_last_words(start_host: StartHost, number: int) -> None:
    """Broken, what a stopping node still writes and sends would be lost."""
    process = start_host()
    client = process.client()
    assert client.ask("echo here") == "here"
    assert process.end(number) == 0
    assert (client.line(), client.line()) == ("goodbye", "")
    assert (process.data / "journal.txt").read_text() == "the end\n"
    assert process.log()[-1]["message"] == "stopped"


def test_a_broken_node_ends_on_the_spot_and_says_why(start_host: StartHost) -> None:
    """Broken, a crash would look like a clean stop and the checker of crashes would see nothing."""
    process = start_host()
    client = process.client()
    client.tell("break", "echo never")
    assert process.popen.wait(PATIENCE_S) == 70
    assert client.line() == ""
    line = process.log()[-1]
    assert (line["level"], line["message"]) == ("error", "assertion failed")
    assert str(line["error"]).startswith("AssertionError: asked to break")
    assert "in obey" in str(line["where"])


def test_a_node_that_asks_for_what_is_no_file_ends_as_broken(start_host: StartHost) -> None:
    """Broken, the disk's thread ends alone: the node answers no one any more, and hears no SIGTERM."""
    process = start_host()
    process.client().tell("misplace log/1")
    assert process.popen.wait(PATIENCE_S) == 70
    assert str(process.log()[-1]["error"]).startswith("AssertionError: log/1")


def test_log_lines_carry_clock_node_and_status(start_host: StartHost) -> None:
    """Broken, the report could not lay the nodes' lines beside the history."""
    process = start_host("--epoch-ns", "0")
    client = process.client()
    assert client.ask("store x") == "stored x"
    client.tell("log look at that")
    assert client.ask("echo done") == "done"
    line = process.log()[-1]
    assert isinstance(line.pop("time_ns"), int)
    expected = {
        "level": "info",
        "message": "look at that",
        "node": "n1",
        "term": 1,
        "lsn": 1,
        "colour": "blue",
    }
    assert line == expected


def test_a_node_ends_when_its_stdin_does(start_host: StartHost) -> None:
    """Broken, a harness killed with -9 would leave nodes behind where the kernel does not help."""
    process = start_host("--stdin-lifeline")
    process.popen.send_signal(signal.SIGINT)  # a terminal's Ctrl-C reaches it too and is not its business
    assert process.client().ask("echo alive") == "alive"
    assert process.popen.stdin is not None
    process.popen.stdin.close()
    assert process.popen.wait(PATIENCE_S) == 129


@needs.linux  # elsewhere a stopped process reads no end of file, so it stays
@pytest.mark.parametrize("stopped", [False, True])
def test_a_node_dies_with_its_parent(tmp_path: Path, stopped: bool) -> None:
    """Broken, a harness killed with -9 would leave nodes behind, paused ones for ever."""
    (tmp_path / "c.json").write_text('{"name": "n1"}')
    command = command_line("toy", tmp_path / "c.json", tmp_path / "data", tmp_path / "log", "127.0.0.1:0")
    program = (
        "import subprocess, sys, time\n"
        "node = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)\n"
        "assert b'true' in node.stdout.readline()\n"
        "print(node.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program, *command], cwd=ROOT, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    if stopped:
        os.kill(pid, signal.SIGSTOP)
    parent.kill()
    parent.communicate()
    assert eventually(lambda: is_gone(pid))


@pytest.mark.long
def test_a_rare_turn_is_in_the_log_of_a_node_that_is_killed(start_host: StartHost) -> None:
    """Broken, a night under kills would say of most states that no run reached them."""
    process = start_host()
    client = process.client()
    assert [client.ask("turn split vote") for _ in range(3)] == ["1", "2", "3"]
    assert eventually(lambda: rare_turns(process) == ["split vote"])
    assert client.ask("turn split vote") == "4"
    process.end(signal.SIGKILL)
    assert rare_turns(process) == ["split vote"]


@pytest.mark.parametrize("how", ["stops", "breaks"])
def test_the_last_rare_turns_are_in_the_log(start_host: StartHost, how: str) -> None:
    """Broken, the rare turn that a node breaks in would be the one that is not counted."""
    process = start_host()
    client = process.client()
    assert client.ask("turn fenced") == "1"
    if how == "breaks":
        client.tell("break")
        assert process.popen.wait(PATIENCE_S) == 70
    else:
        assert process.end() == 0
    assert rare_turns(process) == ["fenced"]


def rare_turns(process: Process) -> list[object]:
    return [line["row"] for line in process.log() if line["message"] == RARE_TURN]


@pytest.mark.parametrize("listen", [["--listen", "127.0.0.1:0"], ["--listen=127.0.0.1:0"]])
def test_a_life_that_is_over_begins_anew_at_the_same_port(
    monkeypatch: pytest.MonkeyPatch, listen: list[str]
) -> None:
    """Broken, a node with the other spelling of an option ends with a traceback, or moves to another port."""
    executed: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda program, words: executed.append(words))
    rest = ["--config", "c", "--data", "d", "--system", "qsync"]
    words = ["python", "-m", "nodes.host", *listen, *rest]
    for _ in range(3):
        monkeypatch.setattr(sys, "orig_argv", words)
        start_again: Callable[[Address], object] = host_process._start_again
        start_again(Address("127.0.0.1", 7000))
        words = executed[-1]
        assert str(parse(words[3:], ("qsync",)).listen) == "127.0.0.1:7000"
    assert executed[0] == executed[-1]
