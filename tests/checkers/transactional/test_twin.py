"""The clever checker against the plain one, on random histories of tiny stores, right and wrong."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from checkers import transactional
from checkers.history import History
from checkers.proofs import verify_isolation
from checkers.proofs.meaning import Terms
from checkers.transactional import anomalies, append, append_kernels, graph_kernels
from checkers.transactional.anomalies import ANOMALIES
from checkers.transactional.columns import WORKLOADS, Workload, columns_of
from checkers.verdict import Verdict
from tests import examples
from tests.checkers.transactional.around import around
from tests.checkers.transactional.brute import Brute
from tests.checkers.transactional.tiny_database import LEVELS, TinyDatabase
from tests.checkers.transactional.txns import history, ok, register, txn

NEVER_COMPILED = 10**9
BY_THEMSELVES = [name for name in ANOMALIES if not name.startswith(anomalies.OF_KEYS + "-")]


def _drawn(seed: int) -> tuple[History, Workload, str, float]:
    chance = random.Random(seed)
    workload, level = chance.choice(WORKLOADS), chance.choice(LEVELS)
    chaos = chance.choice((0, 0, 0.1, 0.3))
    count, clients, keys = chance.randint(2, 6), chance.randint(1, 4), chance.choice(("x", "xy", "xyz"))
    return TinyDatabase(chance, workload, level, chaos).history(count, clients, keys), workload, level, chaos


def _judged(
    history: History,
    workload: Workload,
    model: str = "strict-serializable",
    plain_below: int = NEVER_COMPILED,
) -> Verdict:
    """With time enough for a machine that has to compile first, and does other things."""
    return transactional.check(
        history, workload=workload, model=model, plain_below=plain_below, timeout_s=600.0
    )


def _sizes(verdict: Verdict) -> dict[str, int]:
    return {name: len(each["edges"]) for name, each in verdict.details["anomalies"].items()}


def _by_itself(verdict: Verdict) -> dict[str, int]:
    """Without what was concluded from the model, where nothing else speaks against it."""
    concluded = {anomalies.NO_ORDER, *(anomalies.OF_KEYS + order for order in anomalies.ORDERS[1:])}
    found = verdict.details["anomalies"]
    return {
        name: len(each["edges"])
        for name, each in found.items()
        if name not in concluded and not each.get("of_keys")
    }


def _compare(seed: int) -> set[str]:
    """The anomalies that the checker names."""
    history, workload, level, chaos = _drawn(seed)
    brute, verdict = _agree(history, workload, f"seed {seed}")
    if not chaos:
        forbidden = anomalies.forbidden(level) if level in anomalies.MODELS else {"G0"}
        assert not set(brute.found) & forbidden, f"seed {seed}: {level}"
    return set(_sizes(verdict))


def _compare_around(anomaly: str, seed: int, plain_below: int) -> bool:
    """Whether the history showed the anomaly."""
    history, workload = around(random.Random(f"{anomaly} {seed}"), anomaly)
    return anomaly in _agree(history, workload, f"{anomaly} {seed}", plain_below)[0].found


def _agree(
    history: History, workload: Workload, name: str, plain_below: int = NEVER_COMPILED
) -> tuple[Brute, Verdict]:
    brute = Brute(history, workload)
    verdict = _judged(history, workload, plain_below=plain_below)
    assert _by_itself(verdict) == brute.found, name
    assert set(anomalies.ruled_out(brute.every)) <= set(verdict.details["ruled_out"]), name
    return brute, verdict


def test_the_same_anomalies_in_some_histories() -> None:
    """If this fails, an anomaly is missed, made up, called by the wrong name, or its cycle is not the smallest."""
    seen: set[str] = set().union(*map(_compare, range(400)))
    assert {"G0", "G1c", "G-single", "G2-item", "G2", "G-single-process", "G-single-realtime"} <= seen


@pytest.mark.long
def test_the_same_anomalies_with_the_same_smallest_cycles() -> None:
    """If this fails, as above, on many more; or the random histories no longer show what the comparison is for."""
    seen: set[str] = set().union(*map(_compare, range(3000)))
    assert set(anomalies.OTHERS) <= seen | {"cyclic-versions"}
    assert {"G0", "G1c", "G-single", "G2-item", "G2", "G-single-process", "G-single-realtime"} <= seen


@pytest.mark.parametrize("count", [25, pytest.param(100, marks=pytest.mark.long)])
@pytest.mark.parametrize("anomaly", BY_THEMSELVES)
def test_the_same_around_each_anomaly(anomaly: str, count: int) -> None:
    """If this fails, as above, in histories that are drawn so that most show this anomaly."""
    shown = sum(_compare_around(anomaly, seed, NEVER_COMPILED) for seed in range(count))
    assert shown > count * 4 // 10, "the histories no longer show what they are drawn for"


BESIDE = {
    "a value that nobody wrote": ("rx9 wx1", "rx9 wx2"),
    "a value of a failed transaction": ("rx8 wx1", "rx8 wx2"),
    "nobody's value, twice in a row": ("rx9 wx1 ry", "rx1 wx2 ry7 wy3", "rx1 wx4"),
}


@pytest.mark.parametrize("words", BESIDE.values(), ids=BESIDE)
def test_an_impossible_read_hides_no_lost_update(words: tuple[str, ...]) -> None:
    """If this fails, one wrong read ends the search, and a lost update beside it is not named."""
    failed = txn("fail", 9, "wx8", 0, 0.5)
    found = history(failed, *(ok(process, word, process, 99) for process, word in enumerate(words, 1)))
    verdict = _judged(found, "rw-register", "serializable")
    assert {"lost-update", "G2-item"} <= verdict.details["anomalies"].keys()
    assert {"garbage-read", "G1a"} & verdict.details["anomalies"].keys()
    assert _by_itself(_judged(found, "rw-register")) == Brute(found, "rw-register").found
    assert verify_isolation.check(found, verdict, Terms(model="serializable")).holds


def test_a_second_write_is_no_second_lost_update() -> None:
    """If this fails, a store with one lost update is said to have several."""
    found = history(ok(0, "wx9", 0, 1), ok(1, "rx9 wx1", 2, 99), ok(2, "rx9 wx2 wx3", 2, 99))
    assert _judged(found, "rw-register", "serializable").details["anomalies"]["lost-update"]["count"] == 1


def test_writes_of_a_failed_transaction_are_no_circle() -> None:
    """If this fails, an order of versions is said to contradict itself because of writes that never happened."""
    failed = txn("fail", 9, "wx1 wx2", 0, 1)
    found = history(failed, register(1, "rx2", 2, 3), register(1, "rx1", 4, 5))
    verdict = transactional.check(found, workload="rw-register", linearizable_keys=True)
    assert verdict.details["anomalies"].keys() == {"G1a"}


def test_a_list_that_fits_into_no_order_hides_no_lost_update() -> None:
    """As above, of lists: two read one that is incompatible with a longer one, and both append to it."""
    written = (ok(1, "ax1 ax2", 0, 1), ok(2, "rx12", 2, 3))
    found = history(*written, ok(3, "rx2 ax3", 0, 99), ok(4, "rx2 ax4", 0, 99))
    verdict = _judged(found, "append", "serializable")
    assert {"incompatible-order", "lost-update"} <= verdict.details["anomalies"].keys()
    assert verify_isolation.check(found, verdict, Terms(model="serializable")).holds


def test_a_circle_of_versions_hides_no_other_order_of_the_key() -> None:
    """As above, of a key with some versions in a circle: what comes after null and behind the circle is known."""
    circle = (ok(1, "rx1 wx2", 0, 99), ok(2, "rx2 wx1", 0, 99))
    found = history(*circle, ok(3, "rx2 wx3 wy4", 0, 99), register(4, "rx2 ry4", 0, 99))
    verdict = _judged(found, "rw-register", "serializable")
    assert {"cyclic-versions", "G1c", "G-single"} <= verdict.details["anomalies"].keys()
    assert verify_isolation.check(found, verdict, Terms(model="serializable")).holds


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(10))
def test_the_same_anomalies_at_length(part: int) -> None:
    """As above, on 5,000 histories, new ones each night."""
    for seed in examples.tonight(500, part):
        _compare(seed)


@pytest.mark.nightly
@pytest.mark.parametrize("anomaly", BY_THEMSELVES)
def test_the_same_around_each_anomaly_at_length(anomaly: str) -> None:
    """As above, on 5,000 histories for each anomaly, by the compiled kernels."""
    shown = sum(_compare_around(anomaly, seed, 0) for seed in examples.tonight(5_000))
    assert shown > 2_000


@pytest.mark.parametrize("count", [60, pytest.param(250, marks=pytest.mark.long)])
def test_compiled_and_plain_kernels_say_the_same(count: int) -> None:
    """If this fails, a verdict depends on whether numba is there."""
    for seed in range(5000, 5000 + count):
        history, workload, _, _ = _drawn(seed)
        columns = columns_of(history, workload)
        # Compiling takes what it takes.
        patient: dict[str, Any] = {"workload": workload, "timeout_s": math.inf}
        plain = transactional.check_columns(columns, **patient, plain_below=NEVER_COMPILED)
        fast = transactional.check_columns(columns, **patient, plain_below=0)
        assert _without_time(plain) == _without_time(fast), f"seed {seed}"


def _without_time(verdict: Verdict) -> dict[str, Any]:
    return verdict.to_json() | {"seconds": 0}


@pytest.mark.parametrize("level", [level for level in LEVELS if level in transactional.MODELS])
@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize(("count", "length"), [(3, 40), pytest.param(12, 60, marks=pytest.mark.long)])
def test_a_store_that_keeps_its_promise_is_believed(
    level: str, workload: Workload, count: int, length: int
) -> None:
    """If this fails, there are false alarms: at this level, in histories too long for the plain twin."""
    for seed in range(count):
        history = TinyDatabase(random.Random(seed), workload, level).history(length, clients=5)
        verdict = _judged(history, workload, level)
        assert verdict.result == "valid", f"seed {seed}: {verdict.summary}"
        assert verdict.details["proof"]["kind"] != "none"


@pytest.mark.parametrize(("count", "length"), [(4, 60), pytest.param(12, 60, marks=pytest.mark.long)])
def test_what_a_level_allows_is_seen_at_it(count: int, length: int) -> None:
    """If this fails, the stores above are stronger than their names, and prove little."""
    shown = {
        "serializable": "G-single-realtime",
        "strong-snapshot-isolation": "G2-item",
        "read-committed": "lost-update",
        "dirty": "G1c",
    }
    for level, anomaly in shown.items():
        histories = (
            TinyDatabase(random.Random(seed), "append", level).history(length, clients=5)
            for seed in range(count)
        )
        seen = {name for history in histories for name in _sizes(_judged(history, "append"))}
        assert {anomaly, anomaly.replace("realtime", "process")} & seen, level


@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_order_of_a_valid_history_replays(workload: Workload) -> None:
    """If this fails, the proof of a valid verdict proves nothing."""
    replayed = 0
    for seed in range(40):
        history = TinyDatabase(random.Random(seed), workload, "strict-serializable").history(10, clients=5)
        columns = columns_of(history, workload)
        order = transactional.serial_order_of(columns, workload=workload, model="strict-serializable")
        proof = _judged(history, workload).details["proof"]
        assert order is not None
        assert proof["order"] == columns.invoke[order].tolist()
        if proof["kind"] == "serial-order":
            replayed += 1
            _replay([each for each in history.operations if each.f == "txn"], order.tolist(), workload)
    # What is not known of a register's versions may leave an order of its dependencies that does not replay.
    assert replayed == 40 if workload == "append" else replayed > 10


@pytest.mark.parametrize("count", [40, pytest.param(200, marks=pytest.mark.long)])
def test_a_clean_history_of_lists_needs_no_graph(count: int) -> None:
    """If this fails, the replay is stuck where there is an order, and clean histories take three times as long."""
    for seed in range(count):
        history = TinyDatabase(random.Random(seed), "append", "strict-serializable").history(30, clients=5)
        columns = columns_of(history, "append")
        assert append.analysis(columns, append_kernels, graph_kernels).order is not None, f"seed {seed}"


def _replay(operations: list[Any], order: list[int], workload: Workload) -> None:
    state: dict[str, Any] = {}
    for number in order:
        for f, key, value in operations[number].value:
            if f == "append":
                state[key] = [*state.get(key, []), value]
            elif f == "w":
                state[key] = value
            elif operations[number].type == "ok":
                assert value == state.get(key), (number, f, key)
    for place, number in enumerate(order):
        for earlier in order[:place]:
            assert not operations[number].precedes(operations[earlier]), (number, earlier)
