"""Two machines that share their history through an object store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.campaigns import journal, shared
from harness.campaigns.journal import Ended, Journal, Task
from harness.errors import StoreError
from harness.results.objects import Address, StoredObject
from tests.harness.campaigns.journals import ended
from tests.harness.results.object_server import Gone, ObjectServer, object_server

HERE = Address("s3", "b/team")
PLAN = """
name = "tiny"
first_seed = 5
publish = "s3://b/team"
[plan]
cluster = "sim"
time_limit_s = 2
rate = 100
faults = "none"
[matrix]
configuration = ["C"]
"""


@pytest.fixture
def server() -> Iterator[ObjectServer]:
    with object_server("b") as found:
        yield found


def night(
    folder: Path, server: ObjectServer, *more: str, bugs: str = '"", "confirm-early"'
) -> tuple[int, dict[str, Any], str]:
    """A campaign on the machine whose folder this is: exit code, summary, what it said."""
    folder.mkdir(exist_ok=True)
    plan = folder / "tiny.toml"
    plan.write_text(PLAN)
    words = [sys.executable, "-P", "-m", "harness.cli", "nightly", str(plan), "--json"]
    done = subprocess.run(
        [*words, "--results", str(folder / "results"), *more],
        env={**os.environ, **server.environ}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr and "not-told" not in done.stderr + done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr


def verdicts(server: ObjectServer) -> list[str]:
    return [key for key in server.present() if key.endswith("/verdict.json")]


def campaign(results: Path, *ends: Ended) -> Journal:
    """A campaign that is over, as a machine keeps it, with the folders of its runs."""
    book = journal.create(results, "tiny", "digest", [Task(each.cell, each.seed) for each in ends])
    for each in ends:
        book.note(each)
        run = results / each.run
        run.mkdir(parents=True)
        for name in ("plan.json", "history.jsonl"):
            (run / name).write_text(f"{each.cell} {each.seed}")
        (run / "verdict.json").write_text(json.dumps({"outcome": each.outcome}))
    book.write(journal.SUMMARY, b"{}")
    book.close()
    return book


class Breaking:
    """A store in memory that lets so many calls through, and then no more."""

    def __init__(self, stored: list[str], calls: int) -> None:
        self.stored, self.calls = stored, calls

    def __call__(self, address: Address) -> Breaking:
        return self

    def _let_through(self) -> None:
        if self.calls == 0:
            raise StoreError("no server answers")
        self.calls -= 1

    def send(self, source: Path, address: Address) -> None:
        self._let_through()
        self.stored.append(f"{address.parent.name}/{address.name}")

    def fetch(self, address: Address, target: Path) -> None:
        self._let_through()
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("")

    def objects(self, address: Address) -> list[StoredObject]:
        return [StoredObject(name, 0, "", 0.0) for name in self.stored]


@pytest.mark.parametrize("calls", range(3))
def test_a_campaign_with_a_head_is_whole(tmp_path: Path, calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a machine would take half of a campaign, which was cut off on its way, for all of it, for good."""
    address, book, store = Address("s3", "b/r"), campaign(tmp_path, ended("a")), Breaking([], calls)
    monkeypatch.setattr(shared, "ObjectStore", store)
    with pytest.raises(StoreError):
        shared.put_campaign(address, book)
    assert [name for name in store.stored if name.endswith(journal.HEAD)] == []
    store.calls = 3
    shared.put_campaign(address, book)
    assert store.stored[-1].endswith(journal.HEAD)
    store.calls = 1
    with pytest.raises(StoreError):
        shared.fetch(address, "tiny", tmp_path / "there")
    assert {path.name for path in (tmp_path / "there").rglob("*.*")} == {journal.RUNS}


@pytest.mark.long
def test_what_one_machine_found_the_other_knows(
    server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a team's CI machines would each begin every night as if nothing had ever failed, or count what one
    machine saw twice.
    """
    server.speak_through(monkeypatch)
    one, two = tmp_path / "one", tmp_path / "two"
    mine = campaign(one, ended("cell", 1, "anomaly", "f1", run="tiny/20261121T101500Z-1"))
    broken = ended("other", 2, "broken", run="")
    theirs = campaign(two, ended("cell", 2, run="tiny/20261121T101500Z-2"))
    assert shared.put_runs(HERE, one, [*mine.ended, broken]) == 1
    shared.put_campaign(HERE, mine)
    assert shared.unpublished(HERE, one, "tiny") == [] and len(shared.unpublished(HERE, two, "tiny")) == 1
    shared.put_what_is_left(HERE, two, "tiny", lambda line: None)
    assert len(verdicts(server)) == 2
    for results, own, seen in ((one, [mine], [theirs]), (two, [theirs], [mine])):
        shared.fetch_apart(HERE, "tiny", results)
        others = shared.of_others(results, "tiny", own)
        assert [each.ended for each in others] == [each.ended for each in seen]
    server.asked.clear()
    shared.fetch(HERE, "tiny", two / shared.SHARED / "tiny")
    # A file that is there is not fetched again.
    assert not [asked for asked in server.asked if asked.endswith(".jsonl")]
    server.put("b", "team/_campaigns/tiny/20300101T000000Z-strange/campaign.json", b"[]")
    key = f"team/_campaigns/tiny/{shared.name_of(mine)}/"
    for name in ("campaign.json", "runs.jsonl"):
        data = server.buckets["b"][key + name].replace(b'"outcome"', b'"otherwise"')
        server.put("b", f"team/_campaigns/tiny/20300101T000000Z-of-later/{name}", data)
    shared.fetch(HERE, "tiny", two / shared.SHARED / "tiny")
    assert len(shared.of_others(two, "tiny", [theirs])) == 1  # what cannot be read is left out
    server.is_gone = True
    with pytest.raises(StoreError, match="no server answers at http://127"):
        shared.fetch_apart(HERE, "tiny", one)


@pytest.mark.long
def test_an_endpoint_that_goes_away_is_no_green_and_the_next_campaign_makes_good(
    server: ObjectServer, tmp_path: Path
) -> None:
    """If it failed, a night that nobody can see would be green, or its runs would never get to the others."""

    def away(asked: str) -> None:
        if asked.startswith(("PUT", "POST")) and asked.endswith("/history.parquet"):
            raise Gone

    server.breaks = away
    code, summary, _ = night(tmp_path, server)
    assert (code, summary["exit_code"], summary["counts"]["valid"]) == (3, 3, 1)
    assert "no server answers at http://127.0.0.1" in summary["unpublished"]
    assert "not published" in summary["sentence"] and verdicts(server) == []
    server.breaks, server.is_gone = (lambda asked: None), False
    code, summary, said = night(tmp_path, server, "--first-seed", "10")
    assert (code, summary["unpublished"], said.count("which had not been")) == (0, "", 1)
    assert len(verdicts(server)) == 2


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ("results", "expected an address such as s3://bucket/results"),
        pytest.param("s3://none/x", "there is no bucket none", marks=pytest.mark.long),
    ],
)
def test_a_wrong_address_is_told_before_anything_runs(
    server: ObjectServer, tmp_path: Path, given: str, line: str
) -> None:
    """If it failed, a slip in the address would cost a night."""
    code, _, said = night(tmp_path, server, "--publish", given)
    assert code == 64 and line in said and said.count("\n") == 1
    assert not list((tmp_path / "results").glob("tiny/*"))
