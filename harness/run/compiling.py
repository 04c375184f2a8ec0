"""The search for an order of many clients' operations needs machine code. It is compiled while the load runs.

Compiling takes some ten seconds of a core, once in a checkout. A verdict should not wait for it. Another process of the
lowest priority compiles and keeps the code; it ends with the run at the latest. With few clients the search decides
without machine code, as a rule.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from checkers.compiled import waiting_for
from checkers.linearizable import search_kernels
from harness.cluster.place import ROOT
from harness.plan.plan import Plan

MANY = 100
"""From so many clients on."""
PREPARE = "import os; os.nice(19); from checkers.linearizable.forward import prepare; prepare()"


def is_needed(plan: Plan) -> bool:
    """Virtual time is over before anything is compiled."""
    if plan.cluster == "sim" or plan.workers < MANY:
        return False
    return waiting_for(search_kernels, "advance") == "compiling"


@contextmanager
def compiling(plan: Plan) -> Iterator[None]:
    """Compile beside the block what judging may need."""
    if not is_needed(plan):
        yield
        return
    nothing = subprocess.DEVNULL
    process = subprocess.Popen(
        [sys.executable, "-c", PREPARE], cwd=ROOT, stdin=nothing, stdout=nothing, stderr=nothing
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()
