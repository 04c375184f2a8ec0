"""Adds PySpark (half a gigabyte) when a verb first needs it, so that a newcomer's first run does not wait for it.

`ensure` looks at the stamp of the group `spark` (`harness.cli.environment`). If it is not in order, a bare Python adds
it to .venv, and this command line begins anew, because modules that are imported already may have been replaced.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import click

from harness.cli.environment import Environment

ROOT = Path(__file__).resolve().parents[2]
GROUP = "spark"


def ensure(needs: str, root: Path = ROOT) -> None:
    """Return if PySpark is there; else add it and start this command again. `needs` names the verb or option."""
    environment = Environment(root)
    if environment.in_order(GROUP):
        if _is_ours(environment):
            _keep_classes()
        return
    if not _is_ours(environment):
        if find_spec("pyspark") is None:
            raise click.ClickException(f"{needs} needs PySpark; try: pip install --group spark, or ./qsync")
        return
    click.echo(f"qsync: {needs} needs PySpark (half a gigabyte, once)", err=True)
    bare = getattr(sys, "_base_executable", sys.executable)
    code = subprocess.run(
        [bare, "-I", str(root / "harness" / "cli" / "environment.py"), "install", GROUP], check=False
    ).returncode
    if code != 0:
        raise SystemExit(code)
    os.execv(root / "qsync", [str(root / "qsync"), *sys.argv[1:]])


def _keep_classes() -> None:
    """Make an archive of Spark's classes, once for a Java and a PySpark; later starts take half the time."""
    from harness.errors import HarnessError
    from harness.pipeline import class_archive, java

    try:
        jvm = java.find(os.environ)
    except HarnessError:
        return  # the verb will say what is missing
    if class_archive.is_wanted(jvm):
        click.echo("qsync: keeping Spark's classes for quicker starts (some 20 s, once)", err=True)
        class_archive.make(jvm)


def _is_ours(environment: Environment) -> bool:
    """Whether this process runs in the checkout's own .venv. Any other environment is left alone."""
    return Path(sys.prefix).resolve() == environment.folder.resolve()
