"""`qsync analyze --follow`: Structured Streaming keeps the tables fresh while runs come in.

The stream's source is the page of every run, which is the last file that a run writes: a run is taken when it is whole.
Each micro-batch brings in all that is new (`analyze`), so a run that was missed by one is taken by the next, and a call
begins with a look at everything: where an earlier stream was need not be known.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from harness.cluster.scratch import scratch
from harness.errors import HarnessError, StoreError
from harness.pipeline.analyze import analyze
from harness.pipeline.overview import PAGE, overview
from harness.pipeline.session import session
from harness.store.objects import Address
from harness.store.run_folder import REPORT

SOURCE = "path string, modificationTime timestamp, length long, content binary"
EVERY = "2 seconds"
LOOKS_EVERY_S = 30.0
"""A look costs a request for every thousand objects."""


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
        scratch("follow") as checkpoint,
    ):
        bring_in(spark, results, folder, tell)
        pages = (
            spark.readStream.format("binaryFile").schema(SOURCE).load(str(results / "*" / "[0-9]*" / REPORT))
        )
        query = (
            pages.select("path")
            .writeStream.foreachBatch(lambda batch, number: bring_in(spark, results, folder, tell))
            .option("checkpointLocation", str(checkpoint))
            .trigger(processingTime=EVERY)
            .start()
        )
        try:
            tell(f"qsync: following {results}; Ctrl-C ends it")
            while query.isActive and not until():
                time.sleep(0.2)
            if query.exception() is not None:
                raise HarnessError(f"the stream broke off: {str(query.exception()).splitlines()[0]}")
        except KeyboardInterrupt:
            tell("qsync: ended; the tables are whole")
        finally:
            query.stop()


def follow_address(
    results: Path | Address,
    place: Path | Address,
    spool: Path,
    master: str,
    conf: Mapping[str, str],
    tell: Callable[[str], None],
    *,
    log: Path,
    until: Callable[[], bool] = lambda: False,
    every_s: float = LOOKS_EVERY_S,
) -> None:
    """The same if one of the two is an address: it is polled again and again, as Spark cannot watch it.

    An object store that is away for a while is reported and asked again; every other error ends it.
    """
    with session(master, conf=conf, log=log) as spark:
        bring_in(spark, results, place, tell, spool)
        try:
            tell(f"qsync: following {results}, every {every_s:.0f} s; Ctrl-C ends it")
            while not until():
                time.sleep(every_s)
                try:
                    bring_in(spark, results, place, tell, spool)
                except StoreError as error:
                    tell(f"qsync: {error.message}; the next look is in {every_s:.0f} s")
        except KeyboardInterrupt:
            tell("qsync: ended; the tables are whole")


def bring_in(
    spark: Any,
    results: Path | Address,
    place: Path | Address,
    tell: Callable[[str], None],
    spool: Path | None = None,
) -> None:
    """One batch: whatever is new now."""
    report = analyze(results, place, lambda: nullcontext(spark), spool=spool)
    if report.new or report.changed:
        content = overview(report.tables, report.place)
        content.write(report.tables / PAGE, report)
        if not isinstance(place, Path):
            content.publish(place)
        tell(f"qsync: {report.new} new, {report.changed} changed runs in {report.seconds:.1f} s")
