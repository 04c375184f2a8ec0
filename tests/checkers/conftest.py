"""Where kernels are compiled, this comes before the tests of the checkers; the processes share the work.

Compiling takes 80 s of a core, once; on a busy machine several minutes: no test's own limit of time is meant for that.
"""

from __future__ import annotations

import fcntl
import os
import random
from contextlib import suppress
from pathlib import Path

import pytest

import checkers
from checkers.compiled import AS_COMPILED, PLAIN_VARIABLE

CHECKERS = Path(checkers.__file__).parent


@pytest.fixture(scope="session", autouse=True)
def kernels_are_compiled() -> None:
    if os.environ.get(PLAIN_VARIABLE) == AS_COMPILED:
        return
    left = dict(PARTS)
    for mode in (fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.LOCK_EX):  # first what no other process compiles now
        for family, use in tuple(left.items()):
            with (CHECKERS / family / "__init__.py").open() as everybodys, suppress(BlockingIOError):
                fcntl.flock(everybodys, mode)
                use()  # who comes second finds what the first has kept
                del left[family]


def _search_registers() -> None:
    from checkers.linearizable import forward, many, zones
    from checkers.linearizable.search import Limits
    from tests.checkers.linearizable import generated
    from tests.checkers.linearizable.test_agreement import agree

    columns = generated.columns(100, 4, crashed=2)
    assert forward.search_columns(columns, Limits()).result == "yes"
    many.decide(many.joined([columns, columns]), Limits())
    forward.search_columns(generated.columns(300, 70, cas=False, stale=True), Limits())
    assert zones.decide(generated.columns(3_000, 4, unique=True, cas=False)) is not None
    for model in ("cas-register", "unique-register", "counter"):
        agree(model, 30, seed=1)


def _search_transactions() -> None:
    from checkers import transactional
    from checkers.transactional.columns import WORKLOADS
    from tests.checkers.transactional.tiny_database import LEVELS, TinyDatabase

    for workload in WORKLOADS:
        for seed in range(2 * len(LEVELS)):
            history = TinyDatabase(random.Random(seed), workload, LEVELS[seed // 2]).history(20, 4, "xyz")
            transactional.check(history, workload=workload, plain_below=0, timeout_s=3600.0)


def _judge_cuts() -> None:
    from checkers.cuts import messages
    from tests.checkers.cuts import scripts

    trace = scripts.trace({"n1": "*k1 +a>c", "c": "-a +b>n2", "n2": "-b *k1"})
    assert messages.judge(trace, ["k1"]).crossings[0] is not None


PARTS = {"linearizable": _search_registers, "transactional": _search_transactions, "cuts": _judge_cuts}
"""The families with kernels of their own → a function that uses each kernel once."""
