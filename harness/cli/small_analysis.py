"""One small analysis. The classes that it loads go into an archive (`harness.pipeline.class_archive`).

`python -m harness.cli.small_analysis FOLDER` simulates one run in the folder, and makes its tables there.
"""

from __future__ import annotations

import sys
from pathlib import Path

from harness.pipeline.analyze import analyze
from harness.pipeline.session import session
from harness.run.assemble import parts_of
from harness.run.execute import execute
from harness.run.finish import finish
from harness.systems.plans import planned

PLAN = planned(
    cluster="sim",
    time_limit_s=10.0,
    rate=100.0,
    bugs=("confirm-early",),
    configuration="C",
    faults=("isolate-owner",),
)


def run_and_analyze(folder: Path) -> None:
    """Everything is made in `folder`."""
    results = folder / "results"
    finish(execute(parts_of(PLAN), results).folder, PLAN)
    analyze(results, results / "_tables", lambda: session("local[2]", log=folder / "spark.log"))


if __name__ == "__main__":
    run_and_analyze(Path(sys.argv[1]))
