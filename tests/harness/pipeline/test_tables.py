"""The folder of tables survives being killed at any moment. No Spark is needed for that."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from harness.errors import StoreError
from harness.pipeline.tables import COMMIT, State, Tables


def stage(tables: Tables, place: str, text: str) -> None:
    file = tables.staging / place / "part-0.parquet"
    file.parent.mkdir(parents=True)
    file.write_text(text)


def texts(tables: Tables, table: str = "runs") -> list[str]:
    return sorted(file.read_text() for file in tables.files(table))


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


def test_two_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    """If it failed, two analyses would write the same batch."""
    with (
        Tables(tmp_path).opened(),
        pytest.raises(StoreError, match="another qsync analyze is at work"),
        Tables(tmp_path).opened(),
    ):
        pass


def test_a_state_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """If it failed, rows would be added a second time to tables of which nobody knows what they hold."""
    (tmp_path / "_state.json").write_text("{half")
    with pytest.raises(StoreError, match="try: qsync analyze --anew"), Tables(tmp_path).opened():
        pass
    assert State().runs == {}
