"""Work on many items, spread over processes: seeds of a hunt, runs of a certification, histories of a check."""

from __future__ import annotations

import gc
import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TypeVar

from harness.cluster.sim.cluster import SEARCHES_FOR_CYCLES
from harness.errors import HarnessError

T = TypeVar("T")
R = TypeVar("R")

AHEAD_PER_JOB = 4


def spread(work: Callable[[T], R], items: Iterable[T], jobs: int) -> Iterator[R]:
    """The results of `work` as they come, from this many processes; here if it is one.

    Items are taken as they are needed; a caller that stops taking results stops the work.
    """
    if jobs <= 1:
        yield from map(work, items)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin_worker) as pool:
        waiting = set()
        try:
            for item in items:
                with _no_ctrl_c_yet():
                    waiting.add(pool.submit(work, item))
                if len(waiting) >= jobs * AHEAD_PER_JOB:
                    done = next(as_completed(waiting))
                    waiting.remove(done)
                    yield done.result()
            for done in as_completed(waiting):
                yield done.result()
        except BrokenProcessPool as error:
            raise HarnessError(
                "one of the processes at work was killed, perhaps for want of memory; try: --jobs 1"
            ) from error
        except KeyboardInterrupt:
            for child in multiprocessing.active_children():
                child.terminate()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def _no_ctrl_c_yet() -> Iterator[None]:
    """Block SIGINT: a process that starts inside inherits this, so Ctrl-C cannot end it before `_begin_worker`."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _begin_worker() -> None:
    """Ignore SIGINT: a terminal sends Ctrl-C to all processes, and the first one ends the workers."""
    gc.freeze()
    gc.set_threshold(*SEARCHES_FOR_CYCLES)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
