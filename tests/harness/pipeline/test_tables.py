"""The folder of tables survives being killed at any moment. No Spark is needed for that."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import StoreError
from harness.pipeline.analyze import _schema_mark, analyze
from harness.pipeline.session import SparkError
from harness.pipeline.tables import COMMIT, DAMAGED, STATE, Tables
from tests import examples
from tests.harness.pipeline.stored_runs import store_run
from tests.harness.pipeline.tiny_files import text_of, write_tiny


def stage(tables: Tables, place: str, text: str) -> None:
    write_tiny(tables.staging / place / "part-0.parquet", text)


def texts(tables: Tables, table: str = "runs") -> list[str]:
    return sorted(text_of(file.read_bytes()) for file in tables.files(table))


def commit(tables: Tables, batch: int, place: str, text: str, removed: list[Path] | None = None) -> None:
    with tables.opened() as state:
        stage(tables, place, text)
        state.batch = batch
        state.runs[text] = "stamp"
        tables.commit(state, removed or [], [])


def test_a_batch_is_added_and_another_takes_its_place(tmp_path: Path) -> None:
    """If it failed, rows would be lost, or a run that was judged again would be there twice."""
    tables = Tables(tmp_path / "tables")
    commit(tables, 1, "runs/campaign=a/date=d", "one")
    commit(tables, 2, "runs/campaign=b/date=d", "two")
    assert texts(tables) == ["one", "two"]
    commit(tables, 3, "runs/campaign=a/date=d", "one again", tables.partition("runs", "a", "d"))
    assert texts(tables) == ["one again", "two"]
    with tables.opened() as state:
        assert (state.batch, set(state.runs)) == (3, {"one", "two", "one again"})


def test_what_was_staged_but_not_committed_is_forgotten(tmp_path: Path) -> None:
    """If it failed, a kill while Spark writes would leave rows of half a batch."""
    tables = Tables(tmp_path / "tables")
    with tables.opened():
        stage(tables, "runs/campaign=a/date=d", "half")
    with tables.opened() as state:
        assert (state.runs, texts(tables), tables.staging.exists()) == ({}, [], False)


@pytest.mark.parametrize("steps", range(6))
def test_a_kill_while_a_batch_is_put_in_place_is_made_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """If it failed, a kill in the wrong moment would leave old and new rows, or neither."""
    tables = Tables(tmp_path / "tables")
    commit(tables, 1, "runs/campaign=a/date=d", "old")
    left = steps

    class Killed(Exception):
        pass

    def dying(real):  # type: ignore[no-untyped-def]
        def act(*arguments, **options):  # type: ignore[no-untyped-def]
            nonlocal left
            if left == 0:
                raise Killed
            left -= 1
            return real(*arguments, **options)

        return act

    old = tables.partition("runs", "a", "d")
    with monkeypatch.context() as patched, tables.opened() as state:
        stage(tables, "runs/campaign=a/date=d", "new")
        state.batch, state.runs = 2, {"new": "stamp"}
        patched.setattr(Path, "replace", dying(Path.replace))
        patched.setattr(Path, "unlink", dying(Path.unlink))
        with suppress(Killed):
            tables.commit(state, old, [])
    counted = (tables.folder / COMMIT).exists() or steps >= 4
    with tables.opened() as state:
        assert texts(tables) == (["new"] if counted else ["old"])
        assert state.batch == (2 if counted else 1)


def test_a_batch_that_cannot_be_put_in_place_says_so_and_the_next_call_goes_on(tmp_path: Path) -> None:
    """If it failed, a full or foreign disk would end in a traceback, or half of a batch would be forgotten."""
    tables = Tables(tmp_path / "tables")
    tables.folder.mkdir()
    (tables.folder / "runs").write_text("a file in the place of a folder")
    with pytest.raises(StoreError, match=r"cannot put the new files of .* in place: .*; try: again"):
        commit(tables, 1, "runs/campaign=a/date=d", "one")
    (tables.folder / "runs").unlink()
    with tables.opened() as state:
        assert (state.batch, texts(tables)) == (1, ["one"])


@pytest.mark.parametrize(
    ("written", "came"),
    [
        ({"format": "qsync-tables", "version": 1}, "is not ours"),
        ({"format": "qsync-tables", "version": 2}, "got qsync"),
    ],
)
def test_a_commit_that_is_none_of_ours_is_not_carried_out(
    tmp_path: Path, written: dict[str, Any], came: str
) -> None:
    """If it failed, it would end in a traceback, or a newer version's batch be put in place by an older one."""
    (tmp_path / COMMIT).write_bytes(msgspec.json.encode(written))
    with pytest.raises(StoreError, match=f"{COMMIT}.*{came}"), Tables(tmp_path).opened():
        pass


def test_two_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    """If it failed, two analyses would write the same batch."""
    with (
        Tables(tmp_path).opened(),
        pytest.raises(StoreError, match="another qsync analyze is at work"),
        Tables(tmp_path).opened(),
    ):
        pass


PLACES = ("runs/campaign=a/date=d", "runs/campaign=b/date=d", "faults/campaign=a/date=d")


def three_files(folder: Path) -> Tables:
    """Tables of two runs, with the state that fits them."""
    tables = Tables(folder)
    for batch, (place, run) in enumerate(zip(PLACES, ("one", "two", "one"), strict=True), start=1):
        commit(tables, batch, place, run)
    return tables


def _is_lost(folder: Path) -> None:
    (folder / STATE).unlink()


def _is_torn(folder: Path) -> None:
    (folder / STATE).write_text("{half")


def _is_of_before(folder: Path) -> None:
    change(folder, version=0)


def _is_of_no_version(folder: Path) -> None:
    change(folder, version=None)


def _is_no_object(folder: Path) -> None:
    (folder / STATE).write_text("[]")


def _has_other_types(folder: Path) -> None:
    change(folder, runs=["one"])


def _is_from_a_backup(folder: Path) -> None:
    """Of the batch before the last."""
    known = msgspec.json.decode((folder / STATE).read_bytes())
    change(folder, batch=2, sums={name: each for name, each in known["sums"].items() if "faults" not in name})


def _lists_what_is_missing(folder: Path) -> None:
    next((folder / "faults").glob("**/*.parquet")).unlink()


def _names_no_files(folder: Path) -> None:
    """As the first versions wrote it."""
    change(folder, sums={})


def change(folder: Path, **fields: Any) -> None:
    known = msgspec.json.decode((folder / STATE).read_bytes())
    (folder / STATE).write_bytes(msgspec.json.encode({**known, **fields}))


WRONG = (
    *(
        _is_lost,
        _is_torn,
        _is_of_before,
        _is_of_no_version,
        _is_no_object,
        _has_other_types,
        _is_from_a_backup,
    ),
    *(_lists_what_is_missing, _names_no_files),
)


@pytest.mark.parametrize("spoil", WRONG)
def test_nothing_is_written_where_the_state_does_not_fit_and_anew_goes_by_the_files(
    tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    """If it failed, files of tables would be overwritten as if there were none, or rows be there twice."""
    tables = three_files(tmp_path / "tables")
    spoil(tables.folder)
    before = content(tables.folder)
    with (
        pytest.raises(StoreError, match=r"nothing is written there; try: qsync analyze --anew"),
        tables.opened(),
    ):
        pass
    again = Tables(tables.folder)
    with again.opened(anew=True) as state:
        assert content(tables.folder) == before, "something changed before there is anything new"
        assert (set(state.runs), state.batch >= (2 if spoil is _lists_what_is_missing else 3)) == (
            {"one", "two"},
            True,
        )
        assert again.stock.damaged == ()
        stage(again, PLACES[0], "one again")
        state.batch += 1
        again.commit(state, again.partition("runs", "a", "d"), [])
    assert texts(tables) == ["one again", "two"]
    with Tables(tables.folder).opened() as state:
        assert set(state.sums) == {name for name in content(tables.folder) if name.endswith(".parquet")}


def test_a_state_of_a_newer_version_is_left_alone_by_anew_too(tmp_path: Path) -> None:
    """If it failed, an old checkout would take rows out of tables that it does not understand."""
    tables = three_files(tmp_path / "tables")
    change(tables.folder, version=2)
    for anew in (False, True):
        with (
            pytest.raises(
                StoreError, match="expected qsync-tables 1, got qsync-tables 2; try: the qsync that"
            ),
            tables.opened(anew=anew),
        ):
            pass


@given(
    place=st.sampled_from(PLACES), at=st.integers(0, 300), flip=st.integers(1, 255), is_noted=st.booleans()
)
@examples.up_to(12)
def test_a_file_that_changed_is_set_aside_and_no_other_row_is_lost(
    tmp_path_factory: pytest.TempPathFactory, place: str, at: int, flip: int, is_noted: bool
) -> None:
    """If it failed, `--anew` would break off where it is the way out, or throw whole tables away for one file."""
    tables = three_files(tmp_path_factory.mktemp("a") / "tables")
    file = next((tables.folder / place).glob("*.parquet"))
    data = bytearray(file.read_bytes())
    if is_noted:
        data[at % len(data)] ^= flip
    else:
        del data[-1 - at :]  # not every flip shows without a hash
    file.write_bytes(data)
    if not is_noted:
        _is_lost(tables.folder)
    again = Tables(tables.folder)
    name = str(file.relative_to(tables.folder))
    with again.opened(anew=True) as state:
        assert again.stock.damaged == (name,) and file.exists()
        again.commit(state, [], [])
    assert (tables.folder / DAMAGED / name).read_bytes() == data and not file.exists()
    with Tables(tables.folder).opened() as state:
        assert len(state.sums) == 2


def test_a_spark_that_does_not_start_leaves_the_tables_as_they_were(tmp_path: Path) -> None:
    """If it failed, `--anew` with a wrong option of Spark would end without any tables."""
    tables = three_files(tmp_path / "results" / "_tables")
    store_run(tmp_path / "results", 1, time_limit_s=0.5)

    def no_session() -> Any:
        raise SparkError("Spark did not start")

    for state in ((tables.folder / STATE).read_bytes(), b"{}"):
        (tables.folder / STATE).write_bytes(state)
        before = content(tables.folder)
        with pytest.raises(SparkError):
            analyze(tmp_path / "results", tables.folder, no_session, anew=True)
        assert content(tables.folder) == before


def content(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize("campaign", ["a b", "a=b:c", "50%", "é#?", "x[1]*", "a'b\"c"])
def test_a_partition_is_found_by_any_name_of_a_plan(tmp_path: Path, campaign: str) -> None:
    """If it failed, a run below such a folder would be in the tables twice when it is judged again."""
    tables = Tables(tmp_path)
    commit(tables, 1, f"runs/campaign={quote(campaign, safe=' ')}/date=d", "one")
    with tables.opened():
        assert len(tables.partition("runs", campaign, "d")) == 1
        assert tables.partition("runs", campaign[:-1], "d") == []


@pytest.mark.parametrize("name", ["operations", "aggregates", "fingerprint", "causes"])
def test_rows_are_made_anew_when_their_code_has_changed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """If it failed, an anomaly whose fingerprint has a new form would be called fixed: the old one is silent."""
    before, read = _schema_mark(), Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + b"#" * (path.stem == name))
    assert _schema_mark() != before
