"""The page in a real browser, offline: it asks for nothing, complains of nothing, and shows the proof at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from harness.pages import write
from tests import needs
from tests.harness.pages.run_folders import build
from tests.harness.pages.test_queues import BOARD, LANE, STRETCH

pytestmark = [pytest.mark.browser, needs.chromium]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(build(tmp_path_factory.mktemp("default") / "run", "anomaly"))


@pytest.fixture
def opened(browser: Browser, report: Path) -> Iterator[tuple[Page, list[str]]]:
    """The page at 1280×800, and what went wrong or over the network while it opened."""
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 800})
    page, complaints = context.new_page(), list[str]()
    page.on("console", lambda message: complaints.append(f"console {message.type}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    page.on("request", lambda asked: complaints.append(f"request: {asked.url}"))
    page.goto(report.as_uri())
    assert complaints.pop(0) == f"request: {report.as_uri()}"
    yield page, complaints
    context.close()


def test_it_opens_offline_without_a_request_or_a_complaint(opened: tuple[Page, list[str]]) -> None:
    """If it failed, the page would fetch something, or its own content policy would block a part of it."""
    page, complaints = opened
    assert page.title().startswith("ANOMALY")
    assert complaints == []


def test_the_verdict_and_the_witness_are_on_the_first_screen(opened: tuple[Page, list[str]]) -> None:
    """If it failed, whoever opens the page in the morning would have to scroll for the proof."""
    page, _ = opened
    assert page.locator("#badge").is_visible()
    box = page.locator("#witness svg.timeline").first.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 800
    assert box["width"] > 1000


BOXES = """selector => [...document.querySelectorAll(selector)].map(shape => {
    const box = shape.getBoundingClientRect();
    return [shape.textContent, box.left, box.top, box.right, box.bottom];
})"""


def assert_apart(page: Page, selector: str, at_least: int) -> None:
    boxes = page.evaluate(BOXES, selector)
    assert len(boxes) >= at_least
    for (a, left, top, right, bottom), (b, left_b, top_b, right_b, bottom_b) in combinations(boxes, 2):
        apart = right <= left_b or right_b <= left or bottom <= top_b + 2 or bottom_b <= top + 2
        assert apart, f"{a!r} and {b!r} overlap"


def test_labels_do_not_overlap(opened: tuple[Page, list[str]]) -> None:
    """If it failed, an axis, a fault or an operation of the witness could not be read."""
    page, _ = opened
    assert_apart(page, "#witness svg.timeline text", 20)
    assert_apart(page, "#witness svg.timeline g.op", 5)
    assert_apart(page, "#run svg.chart text", 20)


def test_a_crowded_witness_is_still_legible(browser: Browser, tmp_path: Path) -> None:
    """If it failed, bars and labels of a witness with many operations would lie on each other."""
    folder = build(tmp_path / "run", "anomaly")
    verdict = json.loads((folder / "verdict.json").read_text())
    verdict["checks"][1]["witnesses"][0]["events"] = list(range(300))
    (folder / "verdict.json").write_text(json.dumps(verdict))
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(write(folder).as_uri())
    assert_apart(page, "#witness svg.timeline g.op", 100)
    page.close()


def test_the_words_of_the_queues_do_not_meet(browser: Browser, tmp_path: Path) -> None:
    """If it failed, a reader could not tell which split or which restore a line stands for; or a phone would not do."""
    folder = build(tmp_path / "run", "anomaly")
    verdict = json.loads((folder / "verdict.json").read_text())
    marks = [
        {**LANE["marks"][0], "at_ns": at_ns, "label": f"branch of n{at_ns % 7} wins, 3 votes"}
        for at_ns in range(10_000_000, 500_000_000, 70_000_000)
    ]
    spans = [
        {"from_ns": at_ns, "to_ns": at_ns + 10**7, "kind": "split", "text": "without n1, n2"}
        for at_ns in range(0, 500_000_000, 40_000_000)
    ]
    stretch = {**STRETCH, "lanes": [{**LANE, "marks": marks, "spans": spans}], "board": BOARD}
    verdict["drawings"] = {"queues": {"whole": stretch}}
    (folder / "verdict.json").write_text(json.dumps(verdict))
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(write(folder).as_uri())
    assert_apart(page, "#queues svg.timeline text", 12)
    assert_apart(page, "#queues svg.boxes text", 10)
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()


def test_it_fits_a_phone_without_scrolling_the_page_sideways(browser: Browser, report: Path) -> None:
    """If it failed, reading on a phone would mean dragging the whole page about (drawings scroll on their own)."""
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(report.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()


def test_the_pointer_tells_the_time_and_the_button_is_there(opened: tuple[Page, list[str]]) -> None:
    """If it failed, the page's little script would be dead, most likely by its content policy."""
    page, complaints = opened
    page.locator("#witness svg.timeline").first.hover(position={"x": 600, "y": 100})
    assert page.locator("#witness .cursor-label").first.text_content() != ""
    assert page.locator("#copy").is_visible()
    assert complaints == []
