"""`qsync analyze --follow`: Structured Streaming keeps the tables fresh while runs come in.

The stream's source is the page of every run, which is the last file that a run writes: a run is taken when it is whole.
Each micro-batch brings in all that is new (`analyze`), so a run that was missed by one is taken by the next, and a call
begins with a look at everything: where an earlier stream was need not be known.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from harness.errors import HarnessError
from harness.pipeline.analyze import analyze
from harness.pipeline.overview import overview
from harness.pipeline.session import session
from harness.store.run_folder import REPORT

SOURCE = "path string, modificationTime timestamp, length long, content binary"
EVERY = "2 seconds"


def follow(
    results: Path,
    folder: Path,
    master: str,
    conf: Mapping[str, str],
    tell: Callable[[str], None],
    *,
    until: Callable[[], bool] = lambda: False,
) -> None:
    """Until Ctrl-C, or `until` says so, which is asked a few times a second."""
    results.mkdir(parents=True, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    with (
        session(master, conf=conf, log=folder / "_spark.log") as spark,
        tempfile.TemporaryDirectory(prefix="qsync-follow-", ignore_cleanup_errors=True) as checkpoint,
    ):
        bring_in(spark, results, folder, tell)
        pages = (
            spark.readStream.format("binaryFile").schema(SOURCE).load(str(results / "*" / "[0-9]*" / REPORT))
        )
        query = (
            pages.select("path")
            .writeStream.foreachBatch(lambda batch, number: bring_in(spark, results, folder, tell))
            .option("checkpointLocation", checkpoint)
            .trigger(processingTime=EVERY)
            .start()
        )
        tell(f"qsync: following {results}; Ctrl-C ends it")
        try:
            while query.isActive and not until():
                time.sleep(0.2)
            if query.exception() is not None:
                raise HarnessError(f"the stream broke off: {str(query.exception()).splitlines()[0]}")
        except KeyboardInterrupt:
            tell("qsync: ended; the tables are whole")
        finally:
            query.stop()


def bring_in(spark: Any, results: Path, folder: Path, tell: Callable[[str], None]) -> None:
    """One batch: whatever is new now."""
    report = analyze(results, folder, lambda: nullcontext(spark))
    if report.new or report.changed:
        overview(folder).write(folder / "overview.html", report)
        tell(f"qsync: {report.new} new, {report.changed} changed runs in {report.seconds:.1f} s")
