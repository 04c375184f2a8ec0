"""The whole timeline in a real browser, by the attributes of its canvas (timeline.js lists them)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from harness.pages import whole_timeline, write
from tests import needs
from tests.harness.pages.run_folders import build
from tests.harness.pages.test_orders import STALE, write_run

pytestmark = [pytest.mark.browser, needs.chromium]

READY = "#timeline-canvas[data-ready]"
SETTLE = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


class Timeline:
    """A page whose timeline is drawn, and what it asked for or complained of."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("console", lambda message: self.complaints.append(f"console {message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("request", lambda asked: self.complaints.append(f"request: {asked.url}"))

    def open(self, report: Path, link: str = "") -> None:
        self.page.goto(report.as_uri() + link)
        self.page.wait_for_selector(READY)
        assert [each for each in self.complaints if not each.startswith(f"request: {report.as_uri()}")] == []

    def state(self) -> dict[str, str]:
        self.page.evaluate(SETTLE)
        found: dict[str, str] = self.page.evaluate(
            "({...document.getElementById('timeline-canvas').dataset})"
        )
        return found

    @property
    def span(self) -> tuple[int, int]:
        state = self.state()
        return int(state["startNs"]), int(state["endNs"])

    def press(self, *keys: str) -> None:
        self.page.locator("#timeline-canvas").focus()
        for key in keys:
            self.page.keyboard.press(key)

    def details(self) -> str:
        return self.page.locator("#timeline-details").inner_text()

    def said(self) -> str:
        return self.page.locator("#timeline-said").inner_text()


@contextmanager
def timeline(browser: Browser, width: int = 1280, has_touch: bool = False) -> Iterator[Timeline]:
    viewport = {"width": width, "height": 800}
    context = browser.new_context(offline=True, viewport=viewport, has_touch=has_touch, is_mobile=has_touch)
    yield Timeline(context.new_page())
    context.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("default") / "run", "anomaly")


@pytest.fixture(scope="module")
def report(folder: Path) -> Path:
    return write(folder)


@pytest.fixture
def opened(browser: Browser, report: Path) -> Iterator[Timeline]:
    with timeline(browser) as it:
        it.open(report)
        yield it
        assert it.complaints == [f"request: {report.as_uri()}"]


def index_of(folder: Path, **wanted: object) -> int:
    lines = (json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()[1:])
    found = [
        line["index"] for line in lines if all(line.get(name) == value for name, value in wanted.items())
    ]
    return int(found[0])


def test_keys_zoom_and_pan(opened: Timeline) -> None:
    """If it failed, a reader without a mouse could not read the timeline."""
    start, end = opened.span
    opened.press("+", "+")
    inner = opened.span
    assert inner[1] - inner[0] == pytest.approx((end - start) / 4, rel=0.01)
    opened.press("ArrowRight")
    moved = opened.span
    assert moved[0] - inner[0] == pytest.approx((inner[1] - inner[0]) * 0.2, rel=0.01)
    opened.press("ArrowLeft", "-", "-")
    assert opened.span[1] - opened.span[0] == pytest.approx(end - start, rel=0.01)
    opened.press("+", "0")
    assert opened.span == (start, end)


def test_the_wheel_zooms_after_a_click_and_scrolls_the_page_before(opened: Timeline) -> None:
    """If it failed, a reader could not scroll past the canvas, or zoom at the place under the pointer."""
    whole = opened.span
    canvas = opened.page.locator("#timeline-canvas")
    canvas.scroll_into_view_if_needed()
    canvas.hover(position={"x": 600, "y": 150})
    opened.page.mouse.wheel(0, -300)
    assert opened.span == whole
    canvas.focus()
    canvas.scroll_into_view_if_needed()
    canvas.hover(position={"x": 600, "y": 150})
    opened.page.mouse.wheel(0, -300)
    opened.page.wait_for_function("() => document.getElementById('timeline-canvas').dataset.startNs > 0")
    zoomed = opened.span
    assert zoomed[1] - zoomed[0] < (whole[1] - whole[0]) * 0.8


def test_dragging_pans(opened: Timeline) -> None:
    """If it failed, a click would be taken for a drag, or the view would stay where it is."""
    opened.press("+", "+")
    before = opened.span
    canvas = opened.page.locator("#timeline-canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    opened.page.mouse.move(box["x"] + 700, box["y"] + 150)
    opened.page.mouse.down()
    opened.page.mouse.move(box["x"] + 500, box["y"] + 150, steps=4)
    opened.page.mouse.up()
    after = opened.span
    assert after[0] > before[0] and after[1] - after[0] == pytest.approx(before[1] - before[0], rel=0.001)
    assert opened.state()["selected"] == ""


def test_two_fingers_zoom_and_one_pans(browser: Browser, report: Path) -> None:
    """If it failed, a reader with a phone or a tablet could not look closer at a moment, or not leave it again."""
    with timeline(browser, 500, has_touch=True) as it:
        it.open(report)
        canvas = it.page.locator("#timeline-canvas")
        canvas.scroll_into_view_if_needed()
        box = canvas.bounding_box()
        assert box is not None
        touches = it.page.context.new_cdp_session(it.page)

        def move(*fingers: tuple[float, float]) -> None:
            """Each finger from one place of the canvas to another."""
            for kind, part in (
                ("touchStart", 0.0),
                ("touchMove", 0.3),
                ("touchMove", 0.7),
                ("touchMove", 1.0),
            ):
                at = [
                    {"x": box["x"] + start + part * (end - start), "y": box["y"] + 120, "id": number}
                    for number, (start, end) in enumerate(fingers)
                ]
                touches.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": at})
            touches.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

        whole = it.span
        move((250, 180), (310, 380))  # from 60 pixels to 200
        inner = it.span
        assert inner[1] - inner[0] == pytest.approx((whole[1] - whole[0]) * 60 / 200, rel=0.02)
        assert whole[0] < inner[0] < inner[1] < whole[1]  # about the middle of the fingers
        assert it.page.evaluate("visualViewport.scale") == 1  # the timeline has grown, not the page
        move((300, 240))
        panned = it.span
        assert panned[0] > inner[0] and panned[1] - panned[0] == pytest.approx(inner[1] - inner[0], rel=0.001)
        assert it.state()["selected"] == ""
        move((150, 260), (350, 280))  # together again, more than the whole run allows
        assert it.span == whole
        assert it.complaints == [f"request: {report.as_uri()}"]


def test_a_link_opens_its_operation(browser: Browser, folder: Path, report: Path) -> None:
    """If it failed, a link could not lead a colleague to the operation that matters."""
    index = index_of(folder, process=4, f="write", value=7, type="invoke")
    with timeline(browser) as it:
        it.open(report, f"#op-{index}")
        assert it.state()["selected"] == str(index)
        start, end = it.span
        assert start < 8_620_000_000 < end and end - start < 1_000_000_000
        told = it.details()
        assert (
            "write r3 7" in told and "8.620000 s" in told and "isolate-owner" in told and "lost-write" in told
        )
        box = it.page.locator("#timeline-canvas").bounding_box()
        assert box is not None and 0 <= box["y"] < 800, "it is on the screen"
        other = index_of(folder, process=1, f="read", value=7, type="ok")
        it.page.evaluate(f"location.hash = 'op-{other}'")
        it.page.wait_for_function(
            "() => document.getElementById('timeline-details').innerText.includes('read r3')"
        )
        assert it.state()["selected"] == str(
            index_of(folder, process=1, f="read", key="r3", time_ns=8_840_000_000)
        )


def test_an_index_that_no_operation_has_is_said_so(opened: Timeline) -> None:
    """If it failed, a wrong link would look like a page without answer."""
    opened.page.evaluate("location.hash = 'op-999999'")
    opened.page.wait_for_function(
        "() => document.getElementById('timeline-said').innerText.includes('999999')"
    )
    assert "no operation of this run has such an event" in opened.said()


def test_search_goes_from_hit_to_hit_and_opens_one(opened: Timeline) -> None:
    """If it failed, an error text or a value could only be found by reading the file."""
    opened.press("/")
    opened.page.keyboard.type("quorum timeout")
    hits = int(opened.state()["hits"])
    assert hits == 5
    first = opened.state()["hit"]
    opened.page.keyboard.press("Enter")
    assert opened.state()["selected"] == first
    assert "216 quorum timeout" in opened.details()
    opened.page.keyboard.press("n")
    second = opened.state()["hit"]
    assert second != first and f"Hit 2 of {hits}" in opened.said()
    opened.page.keyboard.press("p")
    assert opened.state()["hit"] == first
    opened.page.keyboard.press("n")
    opened.page.keyboard.press("Enter")
    assert opened.state()["selected"] == second
    opened.page.keyboard.press("Escape")
    assert opened.state()["selected"] == "" and not opened.page.locator("#timeline-details").is_visible()


@pytest.mark.parametrize("query", ["r3", "p4", "n2", "mismatch", "[7, 9]"])
def test_search_finds_keys_processes_nodes_errors_and_values(opened: Timeline, query: str) -> None:
    """If it failed, one kind of text could not be searched for."""
    opened.page.locator("#timeline-search").fill(query)
    hits = int(opened.state()["hits"])
    assert 0 < hits < 2000
    assert query != "[7, 9]" or hits == 1


def test_filters_narrow_and_combine(opened: Timeline, folder: Path) -> None:
    """If it failed, the operations on one key during one fault could not be looked at alone."""
    lines = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()[1:]]
    asked = [line for line in lines if line["type"] == "invoke" and isinstance(line["process"], int)]

    def matching() -> int:
        return int(opened.state()["matching"])

    assert matching() == len(asked)
    opened.page.locator("#timeline-key").fill("r3")
    on_key = matching()
    assert on_key == sum(line.get("key") == "r3" for line in asked)
    opened.page.locator("#timeline-fault").select_option("2")
    under = matching()
    assert 0 < under < on_key
    opened.page.locator("#timeline-process").fill("4")
    assert matching() == 1, "the write of 7"
    opened.page.locator("#timeline-outcome").select_option("fail")
    assert matching() == 0
    opened.page.locator("#timeline-clear").click()
    assert matching() == len(asked)
    opened.page.locator("#timeline-node").select_option(label="n2")
    assert matching() == sum(line["node"] == "n2" for line in asked)


def test_lanes_switch_between_processes_and_nodes(opened: Timeline) -> None:
    """If it failed, the load of a node would have to be gathered from all clients."""
    assert opened.state()["lanes"] == "process"
    opened.page.locator("#timeline-lanes").select_option("node")
    assert opened.state()["lanes"] == "node"


def test_a_click_shows_the_operation_under_the_pointer(browser: Browser, folder: Path, report: Path) -> None:
    """If it failed, the details would be those of a neighbour."""
    index = index_of(folder, process=4, f="write", value=7, type="invoke")
    with timeline(browser) as it:
        it.open(report, f"#op-{index}")
        it.press("Escape")
        assert it.state()["selected"] == ""
        it.page.evaluate("scrollTo(0, document.getElementById('timeline').offsetTop)")
        canvas = it.page.locator("#timeline-canvas")
        box = canvas.bounding_box()
        assert box is not None
        found = set()
        for y in range(60, int(box["height"]), 6):
            canvas.click(position={"x": 96 + (box["width"] - 102) / 2, "y": y})
            found.add(it.state()["selected"])
        assert found == {"", str(index)}


def test_a_page_with_a_part_of_the_operations_leads_to_the_rest(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a reader of a long run would take a sample for everything, or stand before a dead link."""
    monkeypatch.setattr(whole_timeline, "ROOM", 200)
    report = write(build(tmp_path / "a run", "anomaly"))
    with timeline(browser) as it:
        it.open(report)
        assert it.state()["mode"] == "density"
        status = it.page.locator("#timeline-status").inner_text()
        assert "about 2,258 operations, 200 of them on this page" in status
        it.page.evaluate("location.hash = 'op-3'")
        it.page.wait_for_function(
            "() => document.getElementById('timeline-said').innerText.includes('serve')"
        )
        links = it.page.locator("#timeline-said a")
        assert links.get_attribute("href") == "http://127.0.0.1:8000/runs/a%20run/operations?from=3"
        it.press("+", "+", "+", "+", "+", "+")
        assert it.state()["mode"] == "operations"


HOSTILE = "<img src=x onerror=\"document.title='broken'\">"


def test_no_text_of_a_run_becomes_markup(browser: Browser, tmp_path: Path) -> None:
    """If it failed, a value that a server returned could run a script in the reader's browser."""
    folder = build(tmp_path / HOSTILE.replace("/", "_") / "run", "anomaly")
    lines = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    for line in lines[1:]:
        for name in ("key", "error", "role", "mode", "node", "value"):
            if line.get(name) is not None and isinstance(line["process"], int):
                line[name] = HOSTILE
        if line["process"] == "nemesis" and line["type"] == "invoke":
            line["value"] |= {"name": HOSTILE, "does": HOSTILE, "nodes": [HOSTILE]}
        if line["process"] == "monitor":
            line["value"], line["node"] = {"up": True, "role": HOSTILE}, HOSTILE
    (folder / "history.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    verdict = json.loads((folder / "verdict.json").read_text())
    for check in verdict["checks"]:
        check["summary"] = HOSTILE
        for witness in check.get("witnesses", ()):
            witness |= {"rule": HOSTILE, "summary": HOSTILE, "key": HOSTILE, "explanation": [HOSTILE]}
    (folder / "verdict.json").write_text(json.dumps(verdict))
    report = write(folder)
    with timeline(browser) as it:
        it.open(report, f"#op-{index_of(folder, process=4, f='write', type='invoke', time_ns=8_620_000_000)}")
        assert HOSTILE in it.details()
        it.page.locator("#timeline-search").fill("onerror")
        it.press("n", "Enter")
        it.page.locator("#timeline-key").fill(HOSTILE)
        assert int(it.state()["matching"]) > 100
        it.page.locator("#timeline-node").select_option(label=HOSTILE)
        it.page.locator("#timeline-lanes").select_option("node")
        it.page.locator("#timeline-canvas").hover(position={"x": 600, "y": 60})
        assert it.page.locator("img").count() == 0
        assert it.page.title().startswith("ANOMALY")
        assert len(it.complaints) == 1


def test_an_order_is_stepped_through_on_the_timeline(browser: Browser, tmp_path: Path) -> None:
    """If it failed, the longest orders would be lists of numbers beside a picture that does not know them."""
    report = write(write_run(tmp_path / "run", STALE))
    with timeline(browser) as it:
        it.open(report)
        step = it.page.locator("button[data-order='0']")
        step.click()
        assert (it.state()["order"], it.state()["step"], it.state()["selected"]) == ("0", "1", "0")
        assert "Step 1 of 2" in it.said() and "then the value is 1" in it.said()
        step.click()
        assert (it.state()["step"], it.state()["selected"]) == ("2", "2")
        assert "That does not fit the value 2" in it.said()
        it.press("Escape")
        assert it.state()["order"] == ""
        it.page.locator("#orders a").first.click()
        it.page.wait_for_function("() => !document.getElementById('timeline-details').hidden")
        assert it.state()["selected"] == "0"
        assert len(it.complaints) == 1
