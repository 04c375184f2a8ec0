"""Runs in an object store: put there, seen there, fetched from there; and what is said when that cannot be."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.errors import StoreError, WrongUse
from harness.results.objects import Address, ObjectStore
from harness.results.remote_runs import WentAway, fetch_run, put_run, scan_address
from harness.results.scan import scan
from harness.run.assemble import parts_of
from harness.run.execute import execute
from harness.run.finish import finish
from harness.systems.plans import planned
from tests.harness.results.object_server import Gone, ObjectServer

ROOT = Address("s3", "b/team/results")
NAME = "20261121T101500Z-7"


def a_run(results: Path, name: str = NAME, history: str = "header\nline\n") -> Path:
    run = results / "nightly" / name
    (run / "nodes" / "n1").mkdir(parents=True)
    (run / "plan.json").write_text("{}")
    (run / "history.jsonl").write_text(history)
    (run / "history.parquet").write_bytes(b"PAR1" * 10)
    (run / "nodes" / "n1" / "log.jsonl").write_text("{}\n")
    (run / ".report.html.unfinished").write_text("half")
    (run / "verdict.json").write_text('{"outcome": "valid"}')
    return run


def test_a_run_that_was_put_there_is_seen_and_comes_back_as_it_was(
    server: ObjectServer, tmp_path: Path
) -> None:
    """If it failed, machines that share a store would not see each other's runs, or other bytes than were recorded."""
    run = a_run(tmp_path / "results")
    (run / "nodes" / "n1" / "history.jsonl").write_text("a node may call its files as it likes")
    store = ObjectStore(ROOT)
    assert put_run(store, ROOT, run) == ROOT / "nightly" / NAME
    (found,) = scan_address(store, ROOT, tmp_path / "spool").runs
    assert (found.name, found.date, found.campaign) == (f"nightly/{NAME}", "2026-11-21", "nightly")
    assert found.address is not None and found.place == f"s3://b/team/results/nightly/{NAME}"
    fetch_run(store, found.address, found.path)
    names = {str(file.relative_to(run)) for file in run.rglob("*") if file.is_file()}
    copies = {str(file.relative_to(found.path)) for file in found.path.rglob("*") if file.is_file()}
    assert copies == names - {".report.html.unfinished"}
    assert all((found.path / name).read_bytes() == (run / name).read_bytes() for name in copies)


def test_the_verdict_comes_last_and_nothing_is_sent_twice(server: ObjectServer, tmp_path: Path) -> None:
    """If it failed, a run would look finished while its record is on its way, or every night would send all nights."""
    run = a_run(tmp_path / "results")
    store = ObjectStore(ROOT)
    put_run(store, ROOT, run)
    sent = [asked for asked in server.asked if asked.startswith("PUT")]
    assert sent[0].endswith("/history.jsonl") and sent[-1].endswith("/verdict.json")
    server.asked.clear()
    put_run(store, ROOT, run)
    assert not [asked for asked in server.asked if asked.startswith(("PUT", "POST", "DELETE"))]


def test_a_run_that_was_judged_again_takes_the_place_of_its_old_self(
    server: ObjectServer, tmp_path: Path
) -> None:
    """If it failed, the old verdict would stand beside the new columns, and tables would never hear of the new one."""
    run = a_run(tmp_path / "results")
    store = ObjectStore(ROOT)
    put_run(store, ROOT, run)
    (before,) = scan_address(store, ROOT, tmp_path).runs
    (run / "verdict.json").write_text('{"outcome": "anomaly"}')
    server.asked.clear()
    assert put_run(store, ROOT, run) == ROOT / "nightly" / NAME
    changes = [
        asked for asked in server.asked if asked.startswith(("PUT", "DELETE")) and not asked.endswith("/")
    ]
    assert changes[0] == f"DELETE b/team/results/nightly/{NAME}/verdict.json"
    assert changes[-1] == f"PUT b/team/results/nightly/{NAME}/verdict.json"
    (after,) = scan_address(store, ROOT, tmp_path).runs
    assert after.stamp != before.stamp


@pytest.mark.long
def test_another_machines_run_of_the_same_name_is_left_alone(server: ObjectServer, tmp_path: Path) -> None:
    """If it failed, two machines that began in the same second would lose one of two runs."""
    store = ObjectStore(ROOT)
    one = a_run(tmp_path / "one", history="header\none\n")
    two = a_run(tmp_path / "two", history="header\ntwo\n")
    assert [put_run(store, ROOT, run).name for run in (one, two, one, two)] == [
        NAME, f"{NAME}-2", NAME, f"{NAME}-2"
    ]  # fmt: skip
    assert len(scan_address(store, ROOT, tmp_path).runs) == 2


@pytest.mark.parametrize(
    "requests", [8, 11, *(pytest.param(each, marks=pytest.mark.long) for each in (1, 4))]
)
def test_an_endpoint_that_goes_away_in_the_middle_leaves_no_run_that_looks_whole(
    server: ObjectServer, tmp_path: Path, requests: int
) -> None:
    """If it failed, half a run would go into everybody's tables as a whole one."""
    run = a_run(tmp_path / "results")
    store = ObjectStore(ROOT)
    left = requests

    def away(asked: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Gone

    server.breaks = away
    with suppress(StoreError):
        put_run(store, ROOT, run)
    server.breaks, server.is_gone = (lambda asked: None), False
    seen = scan_address(store, ROOT, tmp_path / "spool")
    whole = {"plan.json", "history.jsonl", "history.parquet", "nodes/n1/log.jsonl"}
    there = {key.removeprefix(f"team/results/nightly/{NAME}/") for key in server.present()}
    assert not seen.runs or whole <= there
    put_run(store, ROOT, run)  # what was interrupted goes on
    assert [found.name for found in scan_address(store, ROOT, tmp_path / "spool").runs] == [f"nightly/{NAME}"]


def test_what_is_no_run_and_what_is_not_finished_are_told_as_in_a_folder(
    server: ObjectServer, tmp_path: Path
) -> None:
    """If it failed, a foreign object would stop the analysis, or a run without a verdict would be taken."""
    results = tmp_path / "results"
    a_run(results)
    (a_run(results, "20261121T101600Z-8") / "verdict.json").unlink()
    (a_run(results, "20261121T101700Z-9") / "history.jsonl").unlink()
    (a_run(results, "20261121T101800Z-1") / "plan.json").unlink()
    a_run(results, "mine")
    (results / "notes.txt").write_text("mine")
    (results / "nightly" / "notes.txt").write_text("mine")
    (results / "_tables" / "runs").mkdir(parents=True)
    (results / "_tables" / "runs" / "x.parquet").write_text("")
    for file in results.rglob("*"):
        if file.is_file():
            server.put("b", f"team/results/{file.relative_to(results)}", file.read_bytes())
    server.put("b", "team/results/nightly/", b"")  # as some tools mark folders
    server.put("b", "team/results-of-others/nightly/x", b"")
    there, here = scan_address(ObjectStore(ROOT), ROOT, tmp_path / "spool"), scan(results)

    def told(found: object) -> list[tuple[str, str]]:
        return [(each.path.name, each.why) for each in found]  # type: ignore[attr-defined]

    assert [run.name for run in there.runs] == [run.name for run in here.runs] != []
    assert told(there.unfinished) == told(here.unfinished) != []
    assert sorted(told(there.foreign)) == sorted(told(here.foreign)) != []
    assert not [asked for asked in server.asked if "_tables" in asked]


def test_a_run_at_an_address_is_judged_as_one_here(
    server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If it failed, whoever reads of an anomaly on another machine would have to fetch its files by hand."""
    plan = planned(name="nightly", cluster="sim", time_limit_s=2.0, rate=100.0, faults=(), seed=3)
    run = execute(parts_of(plan), tmp_path / "there").folder
    finish(run, plan)
    place = put_run(ObjectStore(ROOT), ROOT, run.path)
    monkeypatch.setenv("QSYNC_RESULTS", str(tmp_path / "here"))
    before = dict(server.buckets["b"])
    assert main(["check", str(place), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["outcome"] == "valid" and told["evidence"] == run.read_verdict()["evidence"]  # type: ignore[index]
    assert server.buckets["b"] == before
    assert main(["check", "s3://b/team/none"]) == 64
    assert "s3://b/team/none is no run" in capsys.readouterr().err


def test_a_run_that_goes_away_while_it_is_fetched_is_told(server: ObjectServer, tmp_path: Path) -> None:
    """If it failed, retention on one machine would end another's analysis, or put half a run into its tables."""
    store = ObjectStore(ROOT)
    place = put_run(store, ROOT, a_run(tmp_path / "results"))

    def vanishes(asked: str) -> None:
        if asked == f"HEAD {place.key}/history.parquet":
            server.buckets["b"].pop(f"{place.key.removeprefix('b/')}/history.parquet", None)

    server.breaks = vanishes
    with pytest.raises(WentAway, match="it went away, or was written, while it was read"):
        fetch_run(store, place, tmp_path / "copy")


def test_names_that_lead_out_of_the_folder_are_not_followed(server: ObjectServer, tmp_path: Path) -> None:
    """If it failed, whoever may write to the store could write anywhere on the machines that read it."""
    server.put("b", f"team/results/nightly/{NAME}/../../evil", b"x")
    server.put("b", f"team/results/nightly/{NAME}/plan.json", b"{}")
    fetch_run(ObjectStore(ROOT), ROOT / "nightly" / NAME, tmp_path / "a" / "b")
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["plan.json"]


def test_no_bucket_no_right_and_no_endpoint_are_one_line_without_secrets(
    server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a mistake in an address would be pages of XML, or a secret would stand in a CI's log."""
    nowhere = Address("s3", "none/results")
    with pytest.raises(WrongUse, match=r"there is no bucket none at http://127\.0\.0\.1"):
        ObjectStore(nowhere).entries(nowhere)
    server.refuses = True
    with pytest.raises(
        StoreError, match=r"it was refused at http://127.*; try: AWS_ACCESS_KEY_ID"
    ) as refused:
        ObjectStore(ROOT).entries(ROOT)
    server.is_gone = True
    with pytest.raises(
        StoreError, match="cannot read s3://b/team/results/x: no server answers at http://127"
    ) as gone:
        ObjectStore(ROOT).read(ROOT / "x")
    for raised in (refused, gone):
        assert "\n" not in raised.value.message
        assert not any(
            os.environ[name] in raised.value.message
            for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
        )
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://me:hush@127.0.0.1:1")
    with pytest.raises(WrongUse, match="expected http://host:port") as wrong:
        ObjectStore(ROOT)
    assert "hush" not in wrong.value.message


def test_an_endpoint_that_is_none_and_a_name_that_is_no_text_are_one_line(
    server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a slip in AWS_ENDPOINT_URL, or a byte that is no UTF-8 in an address, would end in a traceback."""
    odd = Address("s3", "b/\udcff")
    with pytest.raises(StoreError, match="cannot list s3://b/"):
        ObjectStore(odd).objects(odd)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://[::1:9000")
    with pytest.raises(StoreError, match="cannot use s3://b/team/results: Invalid IPv6 URL"):
        ObjectStore(ROOT)


@pytest.mark.long
def test_a_large_object_comes_in_parts_and_is_whole(server: ObjectServer, tmp_path: Path) -> None:
    """If it failed, the record of a long run would be cut at the size of one part."""
    data = os.urandom(1 << 20) * 12
    (tmp_path / "large").write_bytes(data)
    store = ObjectStore(ROOT)
    store.send(tmp_path / "large", ROOT / "large")
    assert "POST b/team/results/large" in server.asked
    assert store.fetch(ROOT / "large", tmp_path / "copy") and (tmp_path / "copy").read_bytes() == data
    assert store.read(ROOT / "none") is None and not store.fetch(ROOT / "none", tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_full_disk_here_is_told_as_that(server: ObjectServer, tmp_path: Path) -> None:
    """If it failed, a full disk on this machine would be taken for an endpoint that is away."""
    store = ObjectStore(ROOT)
    store.write(ROOT / "x", b"data")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot write .*/file/x"):
        store.fetch(ROOT / "x", tmp_path / "file" / "x")
