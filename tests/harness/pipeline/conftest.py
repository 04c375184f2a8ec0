"""One Spark session for the whole suite, small and quick to start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from harness.pipeline.session import session

    conf = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    log = tmp_path_factory.mktemp("spark") / "spark.log"
    with session("local[2]", conf=conf, log=log, memory_mib=1024) as found:
        yield found
