"""The page on a narrow screen, in the dark, on paper and for a screen reader; a cycle's arrows; odd runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from harness.pages import write
from tests import needs
from tests.harness.pages.run_folders import build, write_history
from tests.harness.pages.test_orders import STALE, write_run

pytestmark = [pytest.mark.browser, needs.chromium]

READY = "#timeline-canvas[data-ready]"
SERIOUS = ("serious", "critical")
CYCLE = {
    "transactions": [
        {"name": "T1", "process": 2, "operations": [["r", "x", "[1]"], ["append", "y", "2"]]},
        {"name": "T2", "process": 4, "operations": [["r", "y", "[]"], ["append", "x", "3"]]},
    ],
    "edges": [
        {
            "from": "T1",
            "to": "T2",
            "kind": "rw",
            "key": "x",
            "cause": ["r", "x", "[1]"],
            "effect": ["append", "x", "3"],
            "sentence": "T1 read x as [1]; T2 appended 3 to x, which T1 did not see.",
        },
        {
            "from": "T2",
            "to": "T1",
            "kind": "rw",
            "key": "y",
            "cause": ["r", "y", "[]"],
            "effect": ["append", "y", "2"],
            "sentence": "Yet T2 read y as []; T1 appended 2 to y.",
        },
    ],
}


def with_cycle(folder: Path) -> Path:
    """The run of an anomaly, with a transactional check whose first witness is a cycle of two of its operations."""
    build(folder, "anomaly")
    verdict = json.loads((folder / "verdict.json").read_text())
    events = verdict["checks"][1]["witnesses"][0]["events"]
    first, second = events[:2], events[2:4]
    picture = json.loads(json.dumps(CYCLE))
    for transaction, mine in zip(picture["transactions"], (first, second), strict=True):
        transaction["events"] = mine
    witness = {"rule": "G2-item", "summary": "two transactions form a circle", "events": [*first, *second]}
    verdict["checks"] = [
        {
            "checker": "transactional",
            "result": "invalid",
            "summary": "not serializable",
            "details": {"anomalies": {"G2-item": picture}},
            "witnesses": [witness, {"rule": "G1a", "summary": "the transaction of event 3 read k as 1"}],
        }
    ]
    verdict["violations"] = ["transactional"]
    (folder / "verdict.json").write_text(json.dumps(verdict))
    return folder


def written(root: Path, kind: str) -> Path:
    match kind:
        case "orders":
            return write(write_run(root / "orders", STALE))
        case "cycle":
            return write(with_cycle(root / "cycle"))
        case "empty":
            (root / "empty").mkdir()
            return write(root / "empty")
    return write(build(root / kind, kind))  # type: ignore[arg-type]


@pytest.fixture
def opened(browser: Browser) -> Iterator[Any]:
    """A function that opens a page, and afterwards checks that it neither complained nor asked for anything."""
    complaints: list[str] = []
    contexts = []

    def open_(
        report: Path, width: int = 1280, scheme: Literal["light", "dark"] = "light", link: str = ""
    ) -> Page:
        context = browser.new_context(
            offline=True, viewport={"width": width, "height": 800}, color_scheme=scheme
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(f"console {message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on(
            "request",
            lambda asked: asked.url.startswith(report.as_uri()) or complaints.append(f"request: {asked.url}"),
        )
        page.goto(report.as_uri() + link)
        if page.locator("#timeline-canvas").count():
            page.wait_for_selector(READY)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert complaints == []


KINDS = ("valid", "anomaly", "unknown", "inconclusive", "orders", "cycle", "empty")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (500, "dark")])
def test_axe_finds_nothing_serious(
    opened: Any, tmp_path: Path, kind: str, width: int, scheme: Literal["light", "dark"]
) -> None:
    """If it failed, a reader with a screen reader, a keyboard or weak eyes would miss a part of the page."""
    page = opened(written(tmp_path, kind), width, scheme)
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    found = Axe().run(page).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in SERIOUS] == []


@pytest.mark.parametrize("kind", KINDS)
def test_no_page_scrolls_sideways_at_500_px(opened: Any, tmp_path: Path, kind: str) -> None:
    """If it failed, reading on half a screen would mean dragging the whole page about."""
    page = opened(written(tmp_path, kind), 500)
    assert page.evaluate("document.documentElement.scrollWidth") <= 500


def test_the_witness_is_a_list_on_a_narrow_screen(opened: Any, tmp_path: Path) -> None:
    """If it failed, the proof could be read only by scrolling a picture sideways."""
    report = written(tmp_path, "anomaly")
    narrow = opened(report, 500)
    assert not narrow.locator("#witness svg.timeline").first.is_visible()
    told = narrow.locator("#witness .as-list").first
    words = told.inner_text()
    for part in (
        "isolate-owner",
        "cause: lost-write at n1",
        "process 4: write 7 · n1, ok after 90 ms",
        "process 3: read → 3 · n1",
    ):
        assert part in words
    assert words.index("write 7") < words.index("read → 7") < words.index("read → 3")
    box = told.bounding_box()
    assert box is not None and box["x"] + box["width"] <= 500
    wide = opened(report, 1280)
    assert wide.locator("#witness svg.timeline").first.is_visible()
    assert not wide.locator("#witness .as-list").first.is_visible()


def pages_of(pdf: bytes) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


@pytest.mark.parametrize("kind", ["valid", "anomaly", "orders", "cycle"])
def test_paper_gets_at_most_four_sheets_unless_asked_for_all(opened: Any, tmp_path: Path, kind: str) -> None:
    """If it failed, a reader who prints a page for a meeting would get twenty sheets of logs."""
    report = written(tmp_path, kind)
    verdict = json.loads((report.parent / "verdict.json").read_text())
    more = {
        "checker": "staleness",
        "result": "valid",
        "summary": "A long sentence. " * 20,
        "details": {"a": 1},
    }
    verdict["checks"] += [more] * 60
    (report.parent / "verdict.json").write_text(json.dumps(verdict))
    write(report.parent)
    short, whole = opened(report), opened(report, link="#print-all")
    sheets = pages_of(short.pdf(format="A4"))
    assert sheets <= 4
    assert pages_of(whole.pdf(format="A4")) > max(sheets, 4)


def test_an_arrow_opens_its_reason_and_a_box_its_transaction(opened: Any, tmp_path: Path) -> None:
    """If it failed, a circle of transactions would be arrows whose grounds stand somewhere else."""
    page = opened(written(tmp_path, "cycle"))
    assert page.locator("details.reason[open]").count() == 0
    page.locator("svg.cycle a[href='#edge-0-1'] text").click()
    page.wait_for_function("() => document.querySelector('details.reason[open]')")
    told = page.locator("details.reason[open]").inner_text()
    assert "T2 → T1: rw: it read y without the write of" in told
    assert "Yet T2 read y as []; T1 appended 2 to y." in told
    assert "by y ⊕ 2" in told and "process 4" in told
    page.locator("svg.cycle a[href^='#op-'] text").first.click()
    page.wait_for_function("() => !document.getElementById('timeline-details').hidden")
    assert "write r3 3" in page.locator("#timeline-details").inner_text()


def many(folder: Path, keys: int, processes: int, nodes: tuple[str, ...]) -> Path:
    """A run of as many keys and processes, with a node's name of any length."""
    build(folder, "valid", seconds=2, rate=20)
    lines = []
    for number in range(processes * 40):
        process, at_ns = number % processes, number * 100_000
        about = {
            "process": process,
            "f": "write",
            "key": f"k{number % keys}",
            "node": nodes[number % len(nodes)],
        }
        lines.append({"type": "invoke", "value": number, "time_ns": at_ns, **about})
        took_ns = 90_000 * processes
        lines.append({"type": "ok", "value": number, "time_ns": at_ns + took_ns, "role": "owner", **about})
    lines.sort(key=lambda line: line["time_ns"])
    write_history(folder, [{**line, "index": index} for index, line in enumerate(lines)])
    return folder


def test_two_hundred_keys_and_fifty_processes_are_readable(opened: Any, tmp_path: Path) -> None:
    """If it failed, the timeline of a wide run would be a screen high for each dozen of clients."""
    page = opened(write(many(tmp_path / "run", 200, 50, ("n1", "n2"))))
    box = page.locator("#timeline-canvas").bounding_box()
    assert box is not None and box["height"] < 700
    page.locator("#timeline-key").fill("k17")
    assert page.locator("#timeline-canvas").get_attribute("data-matching") == "10"


def test_a_node_with_a_name_of_64_characters_is_readable(opened: Any, tmp_path: Path) -> None:
    """If it failed, a long host name would push the page off the screen or hide which node it is."""
    name = "storage-" + "0123456789" * 5 + "-north"
    assert len(name) == 64
    page = opened(write(many(tmp_path / "run", 3, 4, (name, "n2"))), 500, link="#op-0")
    assert page.evaluate("document.documentElement.scrollWidth") <= 500
    page.locator("#timeline-lanes").select_option("node")
    assert name in page.locator("#timeline-details").inner_text()


@pytest.mark.parametrize("left", [0.5, 0.01])
def test_a_run_that_was_killed_half_way_is_readable(opened: Any, tmp_path: Path, left: float) -> None:
    """If it failed, the run of a killed harness could not be looked at, and that is when a reader wants to."""
    folder = build(tmp_path / "run", "valid")
    history = folder / "history.jsonl"
    history.write_bytes(history.read_bytes()[: int(history.stat().st_size * left)] + b'{"index":99')
    (folder / "verdict.json").unlink()
    page = opened(write(folder))
    assert "is torn" in page.locator("#notes").inner_text()
    assert int(page.locator("#timeline-canvas").get_attribute("data-here") or 0) > 0


def test_a_run_without_operations_says_so(opened: Any, tmp_path: Path) -> None:
    """If it failed, "no operations" would look like a broken page."""
    folder = build(tmp_path / "run", "inconclusive")
    write_history(folder, [])
    page = opened(write(folder))
    assert "No operation was recorded." in page.locator("#timeline").inner_text()
    assert page.locator("#timeline-canvas").count() == 0
