"""`qsync analyze --follow`: Structured Streaming keeps the tables fresh while runs come in.

The stream's source is the page of every run, the last file that a run writes: so a run is read when it is whole. Each
micro-batch brings in all new runs (`analyze`), so a run that one batch missed comes with the next. The page of a run
that was judged again is no new file for the stream: a look now and then brings these in. A call begins with a scan of
everything, and needs no checkpoint of an earlier stream.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from harness.cluster.scratch import scratch
from harness.errors import HarnessError, StoreError
from harness.pipeline.analyze import analyze
from harness.pipeline.overview import PAGE, overview
from harness.pipeline.session import session
from harness.results.objects import Address
from harness.results.run_folder import REPORT

SOURCE = "path string, modificationTime timestamp, length long, content binary"
EVERY = "2 seconds"
ENDED = "qsync: ended; the tables are whole"
LOOKS_EVERY_S = 30.0
"""At an address a look costs a request for every thousand objects."""


def follow(
    results: Path,
    folder: Path,
    master: str,
    conf: Mapping[str, str],
    tell: Callable[[str], None],
    *,
    until: Callable[[], bool] = lambda: False,
    every_s: float = LOOKS_EVERY_S,
) -> None:
    """Follow until Ctrl-C, or until `until` is true, which is called a few times a second."""
    results.mkdir(parents=True, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    with (
        session(master, conf=conf, log=folder / "_spark.log") as spark,
        scratch("follow") as checkpoint,
        ended_by_signal() as ended,
    ):
        bring_in(spark, results, folder, tell)
        pages = (
            spark.readStream.format("binaryFile").schema(SOURCE).load(str(results / "*" / "[0-9]*" / REPORT))
        )
        at_work, is_over = threading.Lock(), threading.Event()
        looked_s = time.monotonic()

        def look() -> None:
            nonlocal looked_s
            with at_work:
                if not is_over.is_set():
                    bring_in(spark, results, folder, tell)
                looked_s = time.monotonic()

        query = (
            pages.select("path")
            .writeStream.foreachBatch(lambda batch, number: look())
            .option("checkpointLocation", str(checkpoint))
            .trigger(processingTime=EVERY)
            .start()
        )
        try:
            tell(f"qsync: following {results}; Ctrl-C ends it")
            while query.isActive and not until() and not ended.wait(0.2):
                if time.monotonic() - looked_s > every_s:
                    look()
            if query.exception() is not None:
                raise HarnessError(f"the stream broke off: {str(query.exception()).splitlines()[0]}")
        finally:
            with at_work:
                is_over.set()
            query.stop()
        if ended.is_set():
            tell(ENDED)


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
    """Follow runs or tables at an address: it is polled again and again, as Spark cannot watch it.

    After the first look a StoreError, as of an object store that is away for a while, is told, and the next look comes
    in its time; every other error ends it.
    """
    with session(master, conf=conf, log=log) as spark, ended_by_signal() as ended:
        bring_in(spark, results, place, tell, spool)
        tell(f"qsync: following {results}, every {every_s:.0f} s; Ctrl-C ends it")
        while not until() and not ended.wait(every_s):
            try:
                bring_in(spark, results, place, tell, spool)
            except StoreError as error:
                tell(f"qsync: {error.message}; the next look is in {every_s:.0f} s")
        if ended.is_set():
            tell(ENDED)


@contextmanager
def ended_by_signal() -> Iterator[threading.Event]:
    """The first SIGINT or SIGTERM sets the event, and a batch under way is finished. The second one ends the process.

    An exception raised by a signal in the middle of a call to the JVM would leave its answer unread, and the next call
    on that connection, the one that ends the session, would read it as its own.
    """
    ended = threading.Event()
    before = {name: signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for name, handler in before.items():
            signal.signal(name, handler)

    def note(*_: object) -> None:
        restore()
        ended.set()

    for name in before:
        signal.signal(name, note)
    try:
        yield ended
    finally:
        restore()


def bring_in(
    spark: Any,
    results: Path | Address,
    place: Path | Address,
    tell: Callable[[str], None],
    spool: Path | None = None,
) -> None:
    """One batch: all runs that are new now."""
    report = analyze(results, place, lambda: nullcontext(spark), spool=spool)
    if report.new or report.changed:
        content = overview(report.tables, report.place)
        content.write(report.tables / PAGE, report)
        if not isinstance(place, Path):
            content.publish(place)
        tell(f"qsync: {report.new} new, {report.changed} changed runs in {report.seconds:.1f} s")
