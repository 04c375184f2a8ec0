"""`qsync doctor`: what this machine can do, what is missing, and the command that gets it."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import click

from harness.cli.options import ROOT


class Finding(NamedTuple):
    """`is_needed`: without it `qsync run` does not work; everything else is for some suites only."""

    what: str
    state: str
    is_there: bool
    is_needed: bool
    remedy: str = ""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="The findings as JSON, and nothing else.")
def command(as_json: bool) -> int:
    """What this machine can do, what is missing, and the one command that gets it."""
    findings = [look() for look in LOOKS]
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode([finding._asdict() for finding in findings]).decode())
    else:
        width = max(len(finding.what) for finding in findings)
        for finding in findings:
            mark = "ok  " if finding.is_there else "MISS" if finding.is_needed else "none"
            remedy = f"   try: {finding.remedy}" if finding.remedy and not finding.is_there else ""
            click.echo(f"{mark}  {finding.what:<{width}}  {finding.state}{remedy}")
    missing = [finding for finding in findings if finding.is_needed and not finding.is_there]
    return 3 if missing else 0


def _python() -> Finding:
    return Finding("python", platform.python_version(), sys.version_info >= (3, 11), is_needed=True)


def _processes() -> Finding:
    """Local clusters: how nodes are sure to die with the harness."""
    linux = sys.platform == "linux"
    state = (
        "nodes die with the harness (the kernel sees to it)" if linux else "nodes die with the harness (EOF)"
    )
    return Finding("local processes", f"{state}, {os.cpu_count()} cores", is_there=True, is_needed=True)


def _results() -> Finding:
    folder = Path(os.environ.get("QSYNC_RESULTS", ROOT / "results"))
    folder = folder if folder.exists() else folder.parent
    writable = os.access(folder, os.W_OK)
    free_gib = shutil.disk_usage(folder).free / 2**30 if folder.exists() else 0.0
    state = f"{folder}: {free_gib:.1f} GiB free" if writable else f"{folder} cannot be written"
    return Finding("results", state, writable and free_gib > 0.1, is_needed=True, remedy="--results FOLDER")


def _program(what: str, names: tuple[str, ...], use: str, remedy: str) -> Callable[[], Finding]:
    def look() -> Finding:
        found = next((path for name in names if (path := shutil.which(name))), None)
        return Finding(what, found or f"not found ({use})", found is not None, is_needed=False, remedy=remedy)

    return look


def _java() -> Finding:
    """Which Java would run Spark."""
    from harness.pipeline import java

    try:
        found = java.find(os.environ)
    except java.NoJava as error:
        reason = error.message.partition("; try: ")[0]
        return Finding(
            "java", reason, is_there=False, is_needed=False, remedy="./qsync analyze, which installs one"
        )
    return Finding("java", f"{found.version} ({found.origin}: {found.home})", is_there=True, is_needed=False)


def _pyspark() -> Finding:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return Finding("pyspark", version("pyspark"), is_there=True, is_needed=False)
    except PackageNotFoundError:
        state = "not installed yet (half a gigabyte; the first verb that needs it brings it)"
        return Finding("pyspark", state, is_there=False, is_needed=False, remedy="./qsync analyze")


LOOKS: tuple[Callable[[], Finding], ...] = (
    _python,
    _processes,
    _results,
    _program("git", ("git",), "plans then do not say which code ran", "apt-get install git"),
    _program(
        "chromium",
        ("chromium", "chromium-browser", "google-chrome"),
        "tests of the report in a browser",
        "apt-get install chromium fonts-dejavu-core",
    ),
    _program("tarantool", ("tarantool",), "tests against the real server", "apt-get install tarantool"),
    _pyspark,
    _java,
)
