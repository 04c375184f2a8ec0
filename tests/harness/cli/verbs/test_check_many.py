"""`check` of several histories: one that is refused hides none of the others, and the gravest decides."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from harness.campaigns import processes
from harness.cli.verbs import check_many
from harness.errors import HarnessError
from tests.harness.cli.verbs.conftest import Qsync

WRITE = "{:process 0 :type :invoke :f :write :value 1}\n{:process 0 :type :ok :f :write :value 1}\n"
READ = "{:process 0 :type :invoke :f :read}\n{:process 0 :type :ok :f :read :value %d}\n"
VALID, ANOMALY = WRITE + READ % 1, WRITE + READ % 2
STRANGE = "{:process 0 :type :invoke :f :dance}\n{:process 0 :type :ok :f :dance}\n"
TORN = "{:process 0 :type"
HISTORIES = Path(__file__).parents[3] / "checkers" / "histories"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (
        ("a.edn", VALID),
        ("b.edn", ANOMALY),
        ("c.edn", STRANGE),
        ("d.edn", TORN),
        ("e.md", "#"),
    ):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_folder_of_histories_is_a_line_each_and_a_table(folder: Path, qsync: Qsync) -> None:
    """If it failed, somebody with fifty files would write a loop, or one bad file would hide the others."""
    done = qsync("check", folder)
    lines = done.out.splitlines()
    assert done.code == 1
    assert [line.split()[0] for line in lines[:4]] == ["valid", "anomaly", "refused", "refused"]
    assert "give --model" in lines[2] and lines[3].count("d.edn") == 1
    assert [line.split() for line in lines[5:]] == [
        ["histories", "operations"],
        ["anomaly", "1", "2"],
        ["refused", "2", "0"],
        ["valid", "1", "2"],
    ]


@pytest.mark.parametrize("name", [b"\xff.edn", b"\x1b[31m\nvalid.edn"])
def test_any_name_of_a_file_is_one_line(tmp_path: Path, name: bytes, qsync: Qsync) -> None:
    """If it failed, the name of a file could forge a line, colour the terminal, or break the harness."""
    path = tmp_path / "histories" / os.fsdecode(name)
    path.parent.mkdir()
    path.write_text(ANOMALY)
    (path.parent / "b.edn").write_text(VALID)
    done = qsync("check", path.parent)
    assert (done.code, done.err, len(done.out.splitlines())) == (1, "", 6)
    assert "\x1b" not in done.out
    rows = [json.loads(line) for line in qsync("check", path.parent, "--json").out.splitlines()]
    assert str(path) in [row["path"] for row in rows]
    assert qsync("check", path, "--html", tmp_path / "page.html").code == 1
    assert "ANOMALY" in (tmp_path / "page.html").read_text()


def test_a_defect_of_ours_is_the_line_of_one_history(
    folder: Path, qsync: Qsync, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a bug of ours would hide the anomaly in another file, or pass for a file that is wrong."""

    def breaks(path: Path, options: object) -> object:
        if path.name == "a.edn":
            raise RuntimeError("out of order")
        return judged_file(path, options)  # type: ignore[arg-type]

    judged_file = check_many.judged_file
    monkeypatch.setattr(check_many, "judged_file", breaks)
    done = qsync("check", folder / "a.edn", folder / "a.edn", folder / "e.edn")
    assert done.code == 70
    assert (
        "RuntimeError: out of order" in done.out.splitlines()[0] and "traceback" in done.out.splitlines()[0]
    )
    assert qsync("check", folder / "a.edn", folder / "b.edn").code == 1, "an anomaly is the gravest"


def test_ctrl_c_does_not_hide_an_anomaly(folder: Path, qsync: Qsync, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a reader who stops after the first anomaly would be told that there is no verdict."""

    def stops(path: Path, options: object) -> object:
        if path.name == "c.edn":
            raise KeyboardInterrupt
        return judged_file(path, options)  # type: ignore[arg-type]

    judged_file = check_many.judged_file
    monkeypatch.setattr(check_many, "judged_file", stops)
    done = qsync("check", folder / "b.edn", folder / "c.edn", folder / "a.edn")
    assert (done.code, done.err) == (1, "qsync: interrupted\n")
    assert qsync("check", folder / "a.edn", folder / "c.edn").code == 130


def test_lines_of_json_have_a_document_each(folder: Path, qsync: Qsync) -> None:
    """If it failed, a program could not tell which file was refused and why."""
    done = qsync("check", folder / "a.edn", folder / "c.edn", folder / "none.edn", "--json")
    documents = [json.loads(line) for line in done.out.splitlines()]
    assert [each["outcome"] for each in documents] == ["valid", "refused", "refused"]
    assert (documents[0]["model"], documents[0]["ok"]) == ("register", 2)
    assert "none.edn does not exist" in documents[2]["sentence"]
    assert done.code == 64


def test_several_processes_say_the_same_in_the_same_order(folder: Path, qsync: Qsync) -> None:
    """If it failed, a line would stand beside the wrong file, or an error end all."""
    one, two = (qsync("check", folder, "--jobs", jobs) for jobs in (1, 2))
    assert (one.code, one.out) == (two.code, two.out)


def test_a_process_that_is_killed_takes_no_other_line_along(
    folder: Path, qsync: Qsync, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, one history that needs too much memory would hide the anomaly in another one."""

    def killed(
        judge: Callable[[tuple[int, Path]], tuple[int, object]], items: Iterable[tuple[int, Path]], jobs: int
    ) -> Iterator[tuple[int, object]]:
        yield from map(judge, [*items][1::-1])
        raise HarnessError("one of the processes at work was killed")

    monkeypatch.setattr(processes, "spread", killed)
    done = qsync("check", folder, "--jobs", "2")
    lines = done.out.splitlines()
    assert done.code == 1
    assert [line.split()[0] for line in lines[:4]] == ["valid", "anomaly", "refused", "refused"]
    assert all("one of the processes at work was killed" in line for line in lines[2:4])


def test_a_folder_that_may_not_be_read_is_a_line(
    folder: Path, qsync: Qsync, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, one folder of somebody else, such as lost+found, would end the check of all others."""
    (folder / "lost").mkdir()
    (folder / "lost" / "f.edn").write_text(VALID)
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "lost")
    done = qsync("check", folder)
    assert (
        done.code == 1
        and "lost" in done.out.splitlines()[4]
        and done.out.splitlines()[4].startswith("refused")
    )


def test_the_record_of_each_test_in_a_store_is_taken_once(tmp_path: Path, qsync: Qsync) -> None:
    """If it failed, Jepsen's results and its links to the latest test would be judged as histories."""
    for name in ("1", "2"):
        test = tmp_path / "store" / "etcd" / name
        test.mkdir(parents=True)
        for file in ("history.edn", "history.txt", "results.edn"):
            (test / file).write_text(VALID)
    (tmp_path / "store" / "latest").symlink_to(tmp_path / "store" / "etcd" / "2")
    done = qsync("check", tmp_path / "store")
    lines = done.out.splitlines()
    assert done.code == 0
    assert [line.split()[1].split("/")[-3:] for line in lines[:2]] == [
        ["etcd", "1", "history.edn:"],
        ["etcd", "2", "history.edn:"],
    ]
    done = qsync("check", tmp_path / "store" / "etcd" / "1")
    assert (done.code, done.out.split()[0]) == (0, "VALID"), "a folder with one history is that history"


@pytest.mark.parametrize(
    ("results", "said"),
    [
        (
            "{:perf {:valid? true}, :workload {:valid? false, :ops [#x.Op{:f :read}]}, :valid? false}",
            "invalid",
        ),
        ("{:valid? :unknown}", "unknown"),
        ("{:valid? true}", "valid"),
        ("{:workload {:valid? true}}", None),
        ("{:valid", None),
        ("[1 2]", None),
    ],
)
def test_the_verdict_of_jepsen_itself_stands_beside_ours(
    results: str, said: str | None, tmp_path: Path, qsync: Qsync
) -> None:
    """If it failed, somebody who tries us on an old test would have to look up what Jepsen had said."""
    (tmp_path / "history.edn").write_text(VALID)
    (tmp_path / "results.edn").write_text(results)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "history.edn").write_text(VALID)
    done = qsync("check", tmp_path / "history.edn")
    assert done.code == 0 and ("Jepsen said" in done.out) == (said is not None)
    row = json.loads(qsync("check", tmp_path, tmp_path / "other", "--json").out.splitlines()[0])
    assert row.get("jepsen") == said


def test_it_says_which_checkers_of_jepsen_found_something(tmp_path: Path, qsync: Qsync) -> None:
    """If it failed, a panic that Jepsen found in a server's log would look like a verdict on the history."""
    (tmp_path / "history.edn").write_text(VALID)
    (tmp_path / "results.edn").write_text(
        "{:perf {:valid? true}, :assert {:valid? false}, :workload {:valid? :unknown}, :valid? false}"
    )
    words = "Jepsen said invalid, by its checker assert, workload"
    assert words in qsync("check", tmp_path / "history.edn").out
    (tmp_path / "other.edn").write_text(VALID)
    assert f"({words})" in qsync("check", tmp_path / "history.edn", tmp_path / "other.edn").out


def test_the_verdict_in_a_binary_test_stands_there_too(tmp_path: Path, qsync: Qsync) -> None:
    """If it failed, only a test that was stored whole would show what Jepsen had said."""

    def said() -> str | None:
        found: str | None = json.loads(qsync("check", record, "--json").out).get("jepsen")
        return found

    record, beside = tmp_path / "renamed", tmp_path / "test.jepsen"
    shutil.copy(HISTORIES / "jepsen-store" / "small.jepsen", record)
    assert said() == "invalid"
    record.write_text(VALID)
    assert said() is None
    shutil.copy(HISTORIES / "jepsen-store" / "register.jepsen", beside)
    assert said() == "valid", "the test.jepsen beside it"
    (tmp_path / "results.edn").write_text("{:valid? :unknown}")
    assert said() == "unknown", "results.edn comes first"
    beside.write_bytes(beside.read_bytes()[:-1])
    (tmp_path / "results.edn").unlink()
    assert said() is None, "a damaged one says nothing"


def test_what_is_for_one_history_is_refused_for_many(folder: Path, qsync: Qsync) -> None:
    """If it failed, the page of the last history would stand for all."""
    done = qsync("check", folder, "--html", folder / "page.html")
    assert done.code == 64 and "--html is for one history, and these are 4" in done.err
    assert not (folder / "page.html").exists()


def test_a_folder_without_histories_is_told(tmp_path: Path, qsync: Qsync) -> None:
    """If it failed, nothing at all would be valid."""
    done = qsync("check", tmp_path)
    assert done.code == 64 and "holds no run and no history" in done.line
