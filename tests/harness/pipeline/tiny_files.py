"""Data files of one row, whose run is called by a text, in place of those that Spark writes."""

from __future__ import annotations

import io
from pathlib import Path


def write_tiny(file: Path, text: str) -> None:
    import pyarrow
    import pyarrow.parquet

    file.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table({"run": [text]}), file, write_page_checksum=True)


def text_of(data: bytes) -> str:
    import pyarrow.parquet

    return str(pyarrow.parquet.ParquetFile(io.BytesIO(data)).read()["run"][0])
