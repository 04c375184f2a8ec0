"""A certificate as a browser prints and shows it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.sync_api import sync_playwright

from harness.campaigns.certification import page
from harness.campaigns.certification.document import Certificate
from tests import needs
from tests.harness.campaigns.certification.conftest import Sample

pytestmark = [pytest.mark.browser, needs.chromium]


def large(certificate: Certificate) -> Certificate:
    """The certificate of a release: many configurations, clusters, runs and bugs, with long reasons."""
    built: dict[str, Any] = msgspec.to_builtins(certificate)
    shown, measured = built["shown"], built["given"]["measured"]
    first = measured["bugs"][0]
    reason = "no run of the matrix can have it: it needs a plan that this matrix does not have, number"
    measured["bugs"] = [
        {**first, "name": f"a-seeded-bug-{number}", "word": "not measured", "why": f"{reason} {number}"}
        for number in range(40)
    ] + [{**first, "name": f"another-seeded-bug-{number}"} for number in range(40)]
    measured["clean"]["sometimes"] = {
        f"a rare turn of number {each}": [each % 2, each % 2] for each in range(90)
    }
    shown["states"] = {
        "reached": [{"state": f"a rare turn of number {each}", "times": 1, "runs": 1} for each in range(90)],
        "never": [f"a rarer turn of number {each}" for each in range(90)],
    }
    shown["promised"] *= 5
    shown["runs"] *= 500
    shown["faults"] = [
        {**shown["faults"][0], "cluster": cluster, "fault": f"{fault}-of-some-kind"}
        for cluster in ("docker", "local", "sim", "ssh")
        for fault in range(25)
    ]
    shown["verdicts"]["findings"] = [{"finding": "a finding " * 30, "runs": 1}] * 50
    return msgspec.convert(built, Certificate)


def test_a_certificate_prints_on_two_sheets(sample: Sample, tmp_path: Path) -> None:
    """If it failed, a certificate would be long, or would fetch or run something when it is opened."""
    asked: list[str] = []
    said: list[str] = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=needs.CHROMIUM, args=["--no-sandbox"])
        for name, certificate in (("small", sample.certificate), ("large", large(sample.certificate))):
            path = tmp_path / f"{name}.html"
            path.write_text(page.html(certificate))
            tab = browser.new_page()
            tab.on("request", lambda request: asked.append(request.url))
            tab.on("console", lambda message: said.append(message.text))
            tab.goto(path.as_uri())
            assert len(re.findall(rb"/Type /Page\b", tab.pdf(prefer_css_page_size=True))) <= 2, name
        browser.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
