"""Tables in an object store: a batch is in effect as a whole or not at all. No Spark is needed for that."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from harness.cli.verbs.analyze import _given_spool
from harness.errors import StoreError
from harness.pipeline.remote_tables import KILLED_LEAVE_S, MANIFEST, READERS_NEED_S, RemoteTables, files_of
from harness.pipeline.sources import AddressSource
from harness.results import StoredRun
from harness.results.objects import Address, ObjectStore
from tests.harness.pipeline.tiny_files import text_of, write_tiny
from tests.harness.results.object_server import Gone, ObjectServer, object_server

HERE = Address("s3", "b/tables")
PLACE = "runs/campaign=a/date=2026-11-21"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectServer]:
    with object_server("b") as found:
        found.speak_through(monkeypatch)
        yield found


def commit(spool: Path, batch: int, text: str, *, replaces: bool = False, place: str = PLACE) -> None:
    tables = RemoteTables(HERE, spool)
    with tables.opened() as state:
        old = tables.partition("runs", "a", "2026-11-21") if replaces else []
        stage(tables, text, place)
        state.batch, state.runs = batch, {**state.runs, text: "stamp"}
        tables.commit(state, old, ["trend"])


def stage(tables: RemoteTables, text: str, place: str = PLACE) -> None:
    for name in (place, "trend"):
        write_tiny(tables.staging / name / "part-0.parquet", text)


def seen() -> dict[str, list[str]]:
    """What a reader finds that goes by the manifest, as text."""
    store = ObjectStore(HERE)
    data = store.read(HERE / MANIFEST)
    if data is None:
        return {}
    found: dict[str, list[str]] = {"known": sorted(msgspec.json.decode(data)["state"]["runs"])}
    for table in ("runs", "trend"):
        contents = [store.read(Address("s3", name.removeprefix("s3://"))) for name in files_of(HERE, table)]
        assert None not in contents, "the manifest names a file that is not there"
        found[table] = sorted(text_of(content) for content in contents if content is not None)
    return found


def test_a_spool_takes_nothing_from_the_folder_that_it_lies_in(server: ObjectServer, tmp_path: Path) -> None:
    """If it failed, `--spool .` beside tables and runs of one's own would remove them."""
    own = (tmp_path / "tables" / PLACE / "1.parquet", tmp_path / "runs" / "notes.txt")
    for file in own:
        file.parent.mkdir(parents=True)
        file.write_text("mine")
    spool = _given_spool(HERE, HERE, tmp_path, "local[*]")
    assert spool is not None
    commit(spool / "tables", 1, "one")
    commit(spool / "tables", 2, "two")
    run = StoredRun("nightly/20261121T101500Z-1", tmp_path / "x", "", Address("s3", "b/results/nightly/none"))
    assert [len(each.left_out) for each in AddressSource(HERE, spool).portions([run], print)] == [1]
    assert [file.read_text() for file in own] == ["mine", "mine"]


def test_a_batch_is_added_and_another_takes_its_place(server: ObjectServer, tmp_path: Path) -> None:
    """If it failed, rows would be lost, or a run that was judged again would be there twice."""
    commit(tmp_path / "one", 1, "one")
    commit(tmp_path / "two", 2, "two")
    assert seen() == {"known": ["one", "two"], "runs": ["one", "two"], "trend": ["two"]}
    commit(tmp_path / "two", 3, "three", replaces=True)
    assert seen() == {"known": ["one", "three", "two"], "runs": ["three"], "trend": ["three"]}
    with RemoteTables(HERE, tmp_path / "new").opened() as state:
        assert (state.batch, sorted(state.runs)) == (3, ["one", "three", "two"])


@pytest.mark.parametrize(
    "requests", [1, *(pytest.param(each, marks=pytest.mark.long) for each in (4, 6, 7, 8))]
)
def test_an_endpoint_that_goes_away_in_the_middle_leaves_the_old_tables_or_the_new_ones(
    server: ObjectServer, tmp_path: Path, requests: int
) -> None:
    """If it failed, a reader would see old and new rows together, or neither."""
    commit(tmp_path / "one", 1, "old")
    before, left = seen(), requests

    def away(asked: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Gone

    server.breaks = away
    with suppress(StoreError):
        commit(tmp_path / "one", 2, "new", replaces=True)
    server.breaks, server.is_gone = (lambda asked: None), False
    assert seen() in (before, {"known": ["new", "old"], "runs": ["new"], "trend": ["new"]})
    commit(tmp_path / "one", 3, "newer", replaces=True)
    assert seen()["runs"] == ["newer"] == seen()["trend"]


def test_a_reader_that_has_read_the_manifest_can_finish(server: ObjectServer, tmp_path: Path) -> None:
    """If it failed, a dashboard would break whenever a nightly ends."""
    commit(tmp_path, 1, "one")
    names = files_of(HERE, "runs")
    commit(tmp_path, 2, "two", replaces=True)
    (content,) = (ObjectStore(HERE).read(Address("s3", name.removeprefix("s3://"))) for name in names)
    assert content is not None and text_of(content) == "one"


@pytest.mark.parametrize("first", [(), ("first",)])
@pytest.mark.parametrize("sends", [False, True])
def test_who_comes_second_gives_up_and_has_changed_nothing(
    server: ObjectServer, tmp_path: Path, first: tuple[str, ...], sends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, the machines of a team would take each other's rows out of the tables."""
    for text in first:
        commit(tmp_path / "first", 1, text)
    tables, left = RemoteTables(HERE, tmp_path / "slow"), ["quick"]
    send = tables._store.send

    def slow(file: Path, to: Address) -> None:
        with suppress(IndexError):
            commit(tmp_path / "quick", 2, left.pop())
        send(file, to)

    with tables.opened() as state:
        stage(tables, "slow")
        if not sends:
            commit(tmp_path / "quick", 2, left.pop())
        monkeypatch.setattr(tables._store, "send", slow)
        state.batch, state.runs = 2, {**state.runs, "slow": "stamp"}
        with pytest.raises(StoreError, match="another qsync analyze has written s3://b/tables meanwhile"):
            tables.commit(state, [], ["trend"])
    there = [*first, "quick"]
    assert seen() == {"known": there, "runs": there, "trend": ["quick"]}


def test_what_nobody_needs_any_more_is_removed_and_what_is_not_ours_is_left(
    server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a bucket would grow by every aggregate that was ever made, or lose somebody's own files."""
    commit(tmp_path, 1, "one")
    left, young = (f"trend/00000{number}-00000-0badcafe.parquet" for number in (8, 9))
    others = ("notes.txt", "sales.parquet", "nightly/20261121T101500Z-1/history.parquet")
    for name in (left, young, *others):
        server.put("b", f"tables/{name}", b"x")
    for name in (left, *others):
        server.changed["b", f"tables/{name}"] -= timedelta(seconds=KILLED_LEAVE_S + 60)
    commit(tmp_path, 2, "two")
    assert f"tables/{left}" not in server.present()
    assert {f"tables/{name}" for name in (young, *others)} <= set(server.present())
    later_s = time.time() + READERS_NEED_S + 60
    monkeypatch.setattr(time, "time", lambda: later_s)
    commit(tmp_path, 3, "three")
    old = [key for key in server.present() if key.startswith("tables/trend/000001")]
    assert old == [] and seen()["trend"] == ["three"]


def test_making_anew_leaves_the_old_tables_until_the_new_ones_are_there(
    server: ObjectServer, tmp_path: Path
) -> None:
    """If it failed, `--anew` with an endpoint that goes away would end with no tables at all."""
    commit(tmp_path, 1, "old")
    tables = RemoteTables(HERE, tmp_path / "new")
    with tables.opened(anew=True) as state:
        assert seen()["runs"] == ["old"]
        stage(tables, "new")
        state.batch, state.runs = 2, {"new": "stamp"}
        tables.commit(state, tables.files("runs"), ["trend"])
    assert seen() == {"known": ["new"], "runs": ["new"], "trend": ["new"]}


def test_tables_without_their_manifest_are_not_written_to(server: ObjectServer, tmp_path: Path) -> None:
    """If it failed, files of tables would count as left by a killed call, and be removed a day later."""
    commit(tmp_path, 1, "one")
    del server.buckets["b"][f"tables/{MANIFEST}"]
    for anew in (False, True):
        with (
            pytest.raises(StoreError, match=r"_manifest[.]json is missing, and there are 2 files of tables"),
            RemoteTables(HERE, tmp_path).opened(anew=anew),
        ):
            pass


def test_what_a_first_call_left_when_it_was_killed_is_not_in_the_way(
    server: ObjectServer, tmp_path: Path
) -> None:
    """If it failed, tables could never be made where the first try broke off."""
    left = 5

    def away(asked: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Gone

    server.breaks = away
    with pytest.raises(StoreError):
        commit(tmp_path / "one", 1, "killed")
    assert [key for key in server.present() if key.endswith(".parquet")], (
        "it broke off before it sent anything"
    )
    server.breaks, server.is_gone = (lambda asked: None), False
    commit(tmp_path / "two", 1, "one")
    assert seen() == {"known": ["one"], "runs": ["one"], "trend": ["one"]}


def test_making_anew_leaves_out_what_has_changed(server: ObjectServer, tmp_path: Path) -> None:
    """If it failed, `--anew` would end with the very error for which it is the way out."""
    commit(tmp_path, 1, "one", place="faults/campaign=a/date=2026-11-21")
    (name,) = (key for key in server.present() if "/faults/" in key)
    server.put("b", name, b"p" + server.buckets["b"][name][1:])
    tables = RemoteTables(HERE, tmp_path / "new")
    with tables.opened(anew=True) as state:
        assert (tables.stock.damaged, state.batch) == ((name.removeprefix("tables/"),), 1)
        assert tables.files("faults") == []


def test_a_manifest_of_somebody_else_is_refused(server: ObjectServer, tmp_path: Path) -> None:
    """If it failed, tables would be written over what another program keeps there."""
    server.put("b", f"tables/{MANIFEST}", b'{"format": "other", "version": 1}')
    with (
        pytest.raises(StoreError, match="expected qsync-tables-manifest 1, got other 1"),
        RemoteTables(HERE, tmp_path).opened(),
    ):
        pass


def test_a_manifest_whose_state_is_not_ours_is_one_line(server: ObjectServer, tmp_path: Path) -> None:
    """If it failed, an edited manifest would end analyze with a traceback."""
    commit(tmp_path / "one", 1, "one")
    store = ObjectStore(HERE)
    manifest = msgspec.json.decode(store.read(HERE / MANIFEST) or b"")
    store.write(HERE / MANIFEST, msgspec.json.encode(manifest | {"state": {"runs": 5}}))
    with (
        pytest.raises(StoreError, match=r"_manifest\.json is not ours: .*runs.*; try: another --tables"),
        RemoteTables(HERE, tmp_path / "two").opened(),
    ):
        pass
