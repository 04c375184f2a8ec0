"""Size of a run's page, the time to write it, and the time until Chromium has drawn its timeline.

    .venv/bin/python -m bench.report_page [OPERATIONS…]

The runs are made up: 50 workers on 200 keys, every hundredth operation of unknown outcome. Opening is measured from the
navigation to the first drawing of the timeline, three times; the median is printed.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from harness.pages import write

WORKERS, KEYS, NODES = 50, 200, ("n1", "n2", "n3")
HEADER = {"format": "qsync-history", "version": 1, "workload": "register", "nodes": list(NODES), "seed": 1}


def made_up(folder: Path, operations: int) -> Path:
    """A run folder with so many operations; the same for the same number."""
    chance = random.Random(1)
    folder.mkdir(parents=True)
    free = [(chance.random() * 1e-3, worker) for worker in range(WORKERS)]
    next_process, events = WORKERS, []
    for number in range(operations):
        place = number % WORKERS
        start_s, process = free[place]
        f = chance.choice(("read", "write"))
        took_s = chance.lognormvariate(-6, 0.6)
        about = (
            f'"process":{process},"f":"{f}","key":"r{chance.randrange(KEYS)}","node":"{chance.choice(NODES)}"'
        )
        unknown = chance.random() < 0.01
        took_s = 1.0 if unknown else took_s
        outcome = '"info","error":"timeout"' if unknown else '"ok","role":"owner"'
        events.append((round(start_s * 1e9), f'"type":"invoke",{about},"value":{number}'))
        events.append((round((start_s + took_s) * 1e9), f'"type":{outcome},{about},"value":{number}'))
        next_process += unknown
        free[place] = (start_s + took_s + chance.expovariate(300), next_process if unknown else process)
    events.sort()
    with (folder / "history.jsonl").open("w") as file:
        file.write(json.dumps(HEADER) + "\n")
        for index, (time_ns, rest) in enumerate(events):
            file.write(f'{{"index":{index},"time_ns":{time_ns},{rest}}}\n')
    (folder / "plan.json").write_text("{}")
    (folder / "verdict.json").write_text(
        json.dumps({"outcome": "valid", "sentence": "made up", "checks": []})
    )
    return folder


def opening_s(browser: Browser, report: Path) -> float:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    began_s = time.monotonic()
    page.goto(report.as_uri())
    page.wait_for_selector("#timeline-canvas[data-ready]", state="attached")
    took_s = time.monotonic() - began_s
    page.close()
    return took_s


def main(counts: list[int]) -> None:
    print("| operations | page, MB | written in, s | opened in, s |\n|---|---|---|---|")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as root:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for count in counts:
            folder = made_up(Path(root) / str(count), count)
            began_s = time.monotonic()
            report = write(folder)
            written_s = time.monotonic() - began_s
            opened_s = statistics.median(opening_s(browser, report) for _ in range(3))
            size = report.stat().st_size / 1e6
            print(f"| {count:,} | {size:.2f} | {written_s:.1f} | {opened_s:.2f} |", flush=True)
        browser.close()


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]] or [1_000, 100_000, 1_000_000])
