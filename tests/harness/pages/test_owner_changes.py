"""The figures of a failover: what went through before, for how long nothing did, what went through after."""

from __future__ import annotations

import json
from pathlib import Path

from harness.pages import material
from harness.pages.owner_changes import handovers, owner_changes
from harness.pages.page import html
from tests.harness.pages.run_folders import HEADER

MILLISECOND = 1_000_000
SECOND = 1000 * MILLISECOND


def lines(acknowledged_ms: list[int], owners: list[tuple[int, str, int]]) -> list[dict[str, object]]:
    """Writes that are acknowledged at these times, and what the monitor sees: time, owner, term."""
    told: list[dict[str, object]] = []
    for place, at_ms in enumerate(acknowledged_ms):
        base = {"process": place, "f": "write", "key": "r1", "value": place, "node": "n1"}
        told.append({"time_ns": (at_ms - 1) * MILLISECOND, "type": "invoke", **base})
        told.append({"time_ns": at_ms * MILLISECOND, "type": "ok", **base})
    for at_ms, node, term in owners:
        state = {"up": True, "role": "owner", "term": term}
        told.append(
            {
                "time_ns": at_ms * MILLISECOND,
                "type": "info",
                "process": "monitor",
                "f": "state",
                "node": node,
                "value": state,
            }
        )
    told.sort(key=lambda line: int(str(line["time_ns"])))
    return [{"index": index, **line} for index, line in enumerate(told)]


def read(folder: Path, told: list[dict[str, object]]) -> material.Material:
    text = "\n".join(json.dumps(line) for line in [HEADER, *told])
    (folder / "history.jsonl").write_text(text + "\n", encoding="utf-8")
    return material.read(folder)


BEFORE = list(range(1_000, 4_001, 10))
AFTER = list(range(5_200, 9_001, 20))
OWNERS = [(at, "n1", 2) for at in range(500, 4_001, 500)] + [(at, "n2", 3) for at in range(5_500, 9_001, 500)]


def test_a_failover_has_its_figures(tmp_path: Path) -> None:
    """Broken, the page says that a failover cost more, or less, than it did."""
    found = owner_changes(read(tmp_path, lines(BEFORE + AFTER, OWNERS)))
    assert [change.owners for change in found] == ["n1 → n2"]
    (change,) = found
    assert (change.before, change.after) == ("100/s", "50/s")
    assert change.pause == "1.2 s"


def test_a_longer_pause_elsewhere_is_not_the_failovers(tmp_path: Path) -> None:
    """Broken, a pause that a fault made at another time is put down to the failover."""
    late = [at + 20_000 for at in AFTER]
    found = owner_changes(read(tmp_path, lines(BEFORE + AFTER + late, OWNERS)))
    assert [change.pause for change in found] == ["1.2 s"]


def test_a_rate_is_of_the_time_in_which_there_was_load(tmp_path: Path) -> None:
    """Broken, a failover right behind the start seems to have had nothing before it."""
    short = [at for at in BEFORE if at >= 3_500]
    (change,) = owner_changes(read(tmp_path, lines(short + AFTER[:3], OWNERS)))
    assert (change.before, change.after) == ("102/s", "–")


def test_an_old_owner_that_does_not_know_it_yet_is_no_change(tmp_path: Path) -> None:
    """Broken, two nodes that call themselves owner look like a change at each look."""
    both = [*OWNERS, (5_600, "n1", 2), (6_100, "n1", 2)]
    assert len(handovers(read(tmp_path, lines(BEFORE + AFTER, both)).monitor)) == 1


def test_without_a_change_there_is_no_table(tmp_path: Path) -> None:
    """Broken, every page has an empty table, or a run without a failover has one."""
    told = lines(BEFORE, [each for each in OWNERS if each[1] == "n1"])
    assert owner_changes(read(tmp_path, told)) == []
    assert "Changes of the owner" not in html(tmp_path)


def test_the_page_shows_the_table(tmp_path: Path) -> None:
    """Broken, the figures are made and nobody sees them."""
    read(tmp_path, lines(BEFORE + AFTER, OWNERS))
    page = html(tmp_path)
    assert "Changes of the owner" in page
    for figure in ("n1 → n2", "100/s", "50/s", "1.2 s"):
        assert figure in page


def test_no_write_at_all_is_no_failure_of_the_page(tmp_path: Path) -> None:
    """Broken, a run in which nothing was acknowledged has no page."""
    assert owner_changes(read(tmp_path, lines([], OWNERS))) == []
    (change,) = owner_changes(read(tmp_path, lines([2_000, 6_000], OWNERS)))
    assert (change.before, change.pause, change.after) == ("–", "4 s", "–")
