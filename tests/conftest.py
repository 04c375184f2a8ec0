"""What all tests share: how Hypothesis looks for examples, in which order they come, and that Ctrl-C is heard.

By default it draws the same examples in every run, so that a test which passed yesterday fails today only if the
code changed. `HYPOTHESIS_PROFILE=search ./qsync test -n0` looks for new ones, many more, and takes its time.
"""

from __future__ import annotations

import gc
import os
import signal

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "same",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("search", deadline=None, max_examples=5_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# A shell starts what it runs in the background deaf to Ctrl-C, and that is inherited: tests of Ctrl-C would fail there.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """All that is there now stays. Searching it for garbage again and again would take a tenth of the time."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Kernels first, so that one process compiles them while the others have something else to do; small tests last, so
    that all are done at the same time."""
    items.sort(key=lambda item: _turn(item.nodeid))


def _turn(name: str) -> int:
    if name.startswith(("tests/checkers/linearizable/", "tests/checkers/transactional/")):
        return 0
    return 2 if name.startswith("tests/checkers/") else 1
