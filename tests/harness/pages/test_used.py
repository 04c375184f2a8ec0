"""Memory and disk of a run's processes: measured, recorded, and shown on the page."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from harness.cluster.used import disk_bytes, memory_bytes
from harness.pages.page import html
from harness.pages.used import used
from harness.run.monitor import MEASURED_EVERY_NS
from tests.harness.fake_cluster import FakeCluster
from tests.harness.pages.test_owner_changes import SECOND, read
from tests.harness.run.conducted import Recorded, drawn, operation

MIB = 1024 * 1024


def test_memory_and_disk_are_on_the_page(tmp_path: Path) -> None:
    """Broken, nobody sees that a node of a long run grows until it is killed."""
    told: list[dict[str, object]] = []
    for place in range(11):
        node = {"disk_bytes": (5 + place) * MIB} | ({} if place == 4 else {"memory_bytes": 40 * MIB})
        value = {"harness": {"memory_bytes": (60 + 20 * (place == 5)) * MIB}, "n1": node}
        base = {"time_ns": place * 10 * SECOND, "type": "info", "process": "harness", "f": "used"}
        told.append({"index": place, **base, "value": value})
    material = read(tmp_path, told)
    table = used(material)
    assert table is not None
    assert [(row.name, *row.memory, row.most, row.disk) for row in table.rows] == [
        ("harness", "60", "60", "60", "60", "60", "60", "80", "–"),
        ("n1", "40", "40", "–", "40", "40", "40", "40", "15"),
    ]
    assert "Memory and disk" in html(tmp_path)


def test_a_number_that_no_machine_has_is_none(tmp_path: Path) -> None:
    """Broken, a damaged line ends the page with a traceback."""
    value = {"n1": {"memory_bytes": 10**400, "disk_bytes": 2.0**62}}
    base = {"index": 0, "time_ns": SECOND, "type": "info", "process": "harness", "f": "used"}
    table = used(read(tmp_path, [{**base, "value": value}]))
    assert table is not None and [(row.most, row.disk) for row in table.rows] == [("–", "–")]


class Measured(FakeCluster):
    async def used(self) -> Mapping[str, Mapping[str, int]]:
        return {"n1": {"memory_bytes": 7}}


def test_a_cluster_that_can_tell_is_measured_now_and_then() -> None:
    """Broken, the record of a long run would not say what it took."""
    end_ms = 2 * MEASURED_EVERY_NS // 1_000_000 + 5
    history = Recorded(drawn(operation(10), operation(end_ms), time_limit_s=60), Measured()).history
    lines = [event for event in history.events if event.process == "harness" and event.f == "used"]
    assert [event.value for event in lines] == 3 * [{"n1": {"memory_bytes": 7}}]


def test_what_a_process_and_a_folder_use(tmp_path: Path) -> None:
    """Broken, the figures on the page are not those of the machine."""
    (tmp_path / "removed").mkdir()
    (tmp_path / "1.xlog").write_bytes(b"x" * 100)
    os.link(tmp_path / "1.xlog", tmp_path / "removed" / "1.xlog")
    (tmp_path / "removed" / "0.xlog").write_bytes(b"x" * 11)
    assert disk_bytes(tmp_path) == 111
    assert (memory_bytes("self") or 0) > 5 * MIB
    assert memory_bytes(2**22 + 1) is None
