"""Pages of `qsync serve` with many stored runs: each page alone, and under load.

    python -m bench.serve [--runs 2000] [--per-second 50] [--seconds 10] [--events 1000000] [--folder DIR]

One simulated run is stored under all names, as hard links, and one more with a long record. The server is a process of
its own on a free port. Under load, requests begin at fixed times, whether or not earlier ones are answered: a slow page
makes all later ones late, and the percentiles show it.
"""

from __future__ import annotations

import argparse
import http.client
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.table import print_table
from harness.run.assemble import parts_of
from harness.run.execute import execute
from harness.run.finish import finish
from harness.systems.plans import planned

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
LONG = "20270101T000000Z-1"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--per-second", type=int, default=50)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "qsync-bench-serve")
    given = parser.parse_args()
    results = _stored(given.folder, given.runs, given.events)
    began_s = time.perf_counter()
    words = [sys.executable, "-P", "-m", "harness.cli", "serve", "--results", str(results), "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        ready_s = time.perf_counter() - began_s
        port = int(line.partition("http://127.0.0.1:")[2].partition("/")[0])
        try:
            _measure(port, given, ready_s)
        finally:
            server.send_signal(signal.SIGINT)
    print(f"ended with {server.returncode}")


def _measure(port: int, given: argparse.Namespace, ready_s: float) -> None:
    one, other = _name(0), _name(1)
    pages = [
        "/runs",
        "/runs?text=isolate&sort=ok&page=7",
        f"/runs/bench/{one}",
        f"/results/bench/{one}/report.html",
        f"/runs/bench/{one}/operations?from=500",
        f"/runs/bench/{LONG}/operations?from={given.events // 2}",
        f"/runs/bench/{LONG}/operations?from={given.events - 5}",
        f"/compare?a=bench/{one}&b=bench/{other}",
        f"/runs/bench/{one}/live",
        "/live",
        "/campaigns",
        "/tables",
    ]
    print(f"load {os.getloadavg()[0]:.1f}; {given.runs:,} runs; ready after {ready_s:.1f} s")
    rows = []
    for page in pages:
        first, again = _timed(port, page), sorted(_timed(port, page) for _ in range(9))
        rows.append([page, f"{first * 1e3:.0f}", f"{again[4] * 1e3:.0f}", f"{again[-1] * 1e3:.0f}"])
    print_table(["page", "first ms", "median ms", "worst ms"], rows)
    took = _under_load(port, pages, given.per_second, given.seconds)
    quantiles = [("50 %", 0.5), ("90 %", 0.9), ("99 %", 0.99), ("worst", 1.0)]
    found = [[name, f"{took[min(int(len(took) * q), len(took) - 1)] * 1e3:.0f}"] for name, q in quantiles]
    print(f"{len(took):,} requests, {given.per_second} a second, all pages in turn")
    print_table(["of the requests", "ms"], found)


def _timed(port: int, page: str) -> float:
    began_s = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", page)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    assert answer.status == 200, (page, answer.status)
    return time.perf_counter() - began_s


def _under_load(port: int, pages: list[str], per_second: int, seconds: int) -> list[float]:
    """From the moment at which each request was due, shortest first."""
    took: list[float] = []
    threads = []
    began_s = time.perf_counter()

    def ask(page: str, due_s: float) -> None:
        _timed(port, page)
        took.append(time.perf_counter() - due_s)

    for number in range(per_second * seconds):
        due_s = began_s + number / per_second
        time.sleep(max(due_s - time.perf_counter(), 0))
        thread = threading.Thread(target=ask, args=(pages[number % len(pages)], due_s))
        thread.start()
        threads.append(thread)
    for thread in threads:
        thread.join()
    return sorted(took)


def _name(number: int) -> str:
    return f"{FIRST + timedelta(minutes=number):%Y%m%dT%H%M%SZ}-{number}"


def _stored(folder: Path, runs: int, events: int) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    plan = planned(name="bench", cluster="sim", time_limit_s=10.0, rate=150.0, seed=1)
    made = execute(parts_of(plan), folder / "made").folder
    finish(made, plan)
    results = folder / "results"
    for number in range(runs):
        target = results / "bench" / _name(number)
        shutil.copytree(made.path, target, copy_function=os.link)
    long = results / "bench" / LONG
    shutil.copytree(made.path, long, copy_function=os.link)
    lines = made.history.read_bytes().splitlines(keepends=True)
    (long / "history.jsonl").unlink()
    with (long / "history.jsonl").open("wb") as file:
        file.write(lines[0])
        for _ in range(events // (len(lines) - 1) + 1):
            file.writelines(lines[1:])
    return results


if __name__ == "__main__":
    main()
