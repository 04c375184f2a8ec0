"""The pages in a real browser, from a server in a process of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, sync_playwright

from tests import needs
from tests.harness.serve.test_app import CAMPAIGN, NAME, OTHER, PAGES, RUN, event, store, store_campaign

pytestmark = [pytest.mark.browser, needs.chromium]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("serve") / "results"
    store(results, "night", NAME)
    store(results, "night", OTHER, "valid", "plain")
    store(results, "<img src=x onerror=alert(1)>", NAME, None)
    store_campaign(results, "20261122T021700Z", "x")
    store_campaign(results, "20261123T021700Z", "x", "y")
    return results


@pytest.fixture(scope="module")
def server(results: Path) -> Iterator[str]:
    words = [sys.executable, "-P", "-m", "harness.cli", "serve", "--results", str(results), "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        yield "http://127.0.0.1:" + line.partition("http://127.0.0.1:")[2].partition("/")[0]
        process.send_signal(signal.SIGINT)
        _, complained = process.communicate(timeout=30)
    assert (process.returncode, complained) == (0, "")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=needs.CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield started
        started.close()


@pytest.mark.parametrize("width", [1280, 500])
def test_every_page_opens_without_a_complaint_and_stays_in_its_width(
    browser: Browser, server: str, width: int
) -> None:
    """If it failed, a page would be blocked by its own policy, run a name as a script, or scroll sideways."""
    page = browser.new_page(viewport={"width": width, "height": 800})
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(f"{page.url} {message.text}"))
    page.on("pageerror", lambda error: complaints.append(f"{page.url} {error}"))
    page.on("dialog", lambda dialog: complaints.append(f"{page.url} dialog {dialog.message}"))
    page.on("request", lambda asked: complaints.append(asked.url) if server not in asked.url else None)
    for path in (*(path for path in PAGES if not path.startswith("/tables/")), f"{RUN}/report.html"):
        answer = page.goto(server + path)
        assert answer is not None
        if answer.status != 404:
            assert page.locator("h1").count() == 1
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    complaints = [each for each in complaints if "404" not in each]
    assert complaints == []
    page.close()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (500, "dark")])
def test_axe_finds_nothing_serious(
    browser: Browser, server: str, width: int, scheme: Literal["light", "dark"]
) -> None:
    """If it failed, a reader with a screen reader, a keyboard or weak eyes would miss a part of a page."""
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    found = []
    for path in (path for path in PAGES if not path.startswith("/tables/")):
        answer = page.goto(server + path)
        if answer is not None and answer.status == 200:
            violations = Axe().run(page).response["violations"]
            serious = [each for each in violations if each["impact"] in ("serious", "critical")]
            found += [(path, each["id"], each["nodes"][0]["html"]) for each in serious]
    assert found == []
    page.close()


def test_a_live_page_follows_a_run(browser: Browser, server: str, results: Path) -> None:
    """If it failed, a reader would look at a run that seems to stand still, or never see its end."""
    folder = store(results, "growing", NAME, None, "plain")
    page = browser.new_page()
    page.goto(f"{server}/live")  # refreshes itself until the run is listed
    page.get_by_role("link", name=f"growing/{NAME}").click(timeout=20_000)
    page.get_by_text("UNDER WAY", exact=True).wait_for()
    with (folder / "history.jsonl").open("a") as file:
        lines = [event(304 + n, type="ok", process=3, f="read") for n in range(1000)]
        file.write('"}\n' + "".join(lines))
    page.get_by_text("1,150", exact=False).first.wait_for(timeout=20_000)
    (folder / "verdict.json").write_text(json.dumps({"outcome": "valid", "sentence": "all is well"}))
    page.get_by_text("OVER", exact=True).wait_for(timeout=20_000)
    page.close()


def test_a_campaign_is_reached_by_links(browser: Browser, server: str) -> None:
    """If it failed, a page would lead to one that is not there."""
    page = browser.new_page()
    page.goto(f"{server}/campaigns")
    page.get_by_role("link", name="/20261123T021700Z").click()
    page.get_by_role("link", name="Compare with the night before").click()
    page.get_by_text("Since 2026-11-22 02:17").wait_for()
    page.get_by_role("link", name="A", exact=True).click()
    assert page.url.endswith(f"{CAMPAIGN}/20261122T021700Z")
    page.locator("a.mark-of").first.click()
    assert page.url.endswith(RUN)
    page.close()
