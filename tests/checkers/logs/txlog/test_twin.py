"""The checks against their definitions, on logs of a tiny cluster, right and wronged: one errs if they differ."""

from __future__ import annotations

from hypothesis import event, example, given
from hypothesis import strategies as st

from checkers.logs.txlog.given import NO_HISTORY
from tests import examples
from tests.checkers.logs.txlog.definitions import CHECKS
from tests.checkers.logs.txlog.scripts import history, told, verdicts
from tests.checkers.logs.txlog.tiny_cluster import Cluster, wronged

BUSY = [
    (0, 0, 0, 0),
    (0, 1, 0, 0),
    (1, 0, 0, 0),
    (3, 0, 0, 0),
    (0, 2, 0, 0),
    (0, 0, 0, 0),
    (1, 2, 0, 0),
    (0, 1, 0, 0),
]
"""Each master makes transactions, and hears of others."""
QUIET = history(told("settled", 1, True))
NUMBERS = st.integers(0, 11)
SCRIPTS = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS), min_size=5, max_size=60)
WRONGS = st.lists(st.tuples(NUMBERS, st.integers(0, 60), NUMBERS, NUMBERS), min_size=1, max_size=2)


@examples.up_to(150)
@given(SCRIPTS, st.booleans())
def test_right_logs_are_right(script: list[tuple[int, int, int, int]], drains: bool) -> None:
    cluster = Cluster().run(script)
    logs = (cluster.drain() if drains else cluster).logs
    said = verdicts(logs, QUIET if drains else NO_HISTORY)
    assert {name for name, verdict in said.items() if verdict.result == "invalid"} == set()
    checks = {name: check for name, check in CHECKS.items() if drains or name != "kept"}
    assert {name for name, is_broken in checks.items() if is_broken(logs)} == set()


@examples.up_to(600)
@example([(0, 0, 0, 0), *[(0, 1, 0, 0)] * 4], [(1, 0, 3, 0), (1, 8, 0, 0)])  # posts without updates, for ever
@given(SCRIPTS, WRONGS)
def test_wronged_logs_are_judged_as_the_definitions_say(
    script: list[tuple[int, int, int, int]], wrongs: list[tuple[int, int, int, int]]
) -> None:
    logs = Cluster().run([*BUSY, *script]).drain().logs
    for who, where, how, much in wrongs:
        logs = wronged(logs, who, where, how, much)
    broken = {name for name, is_broken in CHECKS.items() if is_broken(logs)}
    event(f"broken: {sorted(broken)}")
    said = verdicts(logs, QUIET)
    assert {name for name in CHECKS if said[name].result == "invalid"} == broken
