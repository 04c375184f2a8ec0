"""The tables that `qsync analyze` wrote: their names, and the first rows of one."""

from __future__ import annotations

from pathlib import Path

from harness.pages.json_door import clipped
from harness.pages.tables_page import Cell, Section

FOLDER = "_tables"
ROWS = 100
TEXT_MAX = 200


def names(results: Path) -> list[str]:
    """The names of the folders below _tables/. Links are skipped, also in its place."""
    folder = results / FOLDER
    try:
        paths = () if folder.is_symlink() else sorted(folder.iterdir())
    except OSError:
        return []
    folders = (path.name for path in paths if path.is_dir() and not path.is_symlink())
    return [name for name in folders if name[0] not in "_."]


def first_rows(results: Path, name: str) -> Section:
    """The first rows of a table, which is one of `names`. OSError or ValueError if it cannot be read."""
    import pyarrow.dataset

    folder = results / FOLDER / name
    files = [
        str(path)
        for path in sorted(folder.rglob("*.parquet"))
        if not path.is_symlink() and path.resolve().is_relative_to(folder.resolve())
    ]
    if not files:
        return Section(name, "No rows.", (), ())
    try:
        table = pyarrow.dataset.dataset(
            files, partitioning="hive", partition_base_dir=str(folder), format="parquet"
        )
        head, whole = table.head(ROWS), table.count_rows()
        values = head.to_pylist()
    except (
        pyarrow.ArrowException,
        ArithmeticError,
    ) as error:  # files that do not fit each other, a day after 9999
        raise ValueError(str(error)) from error
    columns = tuple(str(column) for column in head.column_names)
    numbers = {
        field.name
        for field in head.schema
        if pyarrow.types.is_integer(field.type) or pyarrow.types.is_floating(field.type)
    }
    texts = ([_text(row[column]) for column in columns] for row in values)
    rows = [[Cell(text, "prose") if len(text) > 40 else text for text in row] for row in texts]
    caption = f"The first {len(rows):,} of {whole:,} rows." if whole > len(rows) else f"{whole:,} rows."
    return Section(name, caption, columns, rows, frozenset(numbers))


def _text(value: object) -> str:
    return clipped("" if value is None else str(value), TEXT_MAX)
