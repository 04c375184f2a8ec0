"""The definitions against textbook histories, and against each other where two of them say the same."""

from __future__ import annotations

import pytest

from checkers import transactional
from checkers.models import MODELS as BY_MODEL
from checkers.sessions import GUARANTEES
from checkers.transactional import anomalies
from tests.checkers.brute import guarantees, isolation, objects, phenomena, tiny_transactions
from tests.checkers.brute.histories import Line, history_of
from tests.checkers.brute.isolation import BASES, MODELS, STRICT, STRONG, allows
from tests.checkers.brute.serial import serializable
from tests.checkers.brute.snapshots import snapshot_isolated
from tests.checkers.brute.transactions import Order, transactions_of

Answer = list[list[object]]


def together(*answers: Answer) -> list[Line]:
    """Transactions that all run at the same time, each by a process of its own."""
    asked = [
        [[word, key, None if word == "r" else value] for word, key, value in answer] for answer in answers
    ]
    return [
        *(Line("invoke", process, "txn", question) for process, question in enumerate(asked)),
        *(Line("ok", process, "txn", answer) for process, answer in enumerate(answers)),
    ]


TEXTBOOK = {
    "write skew": ([["r", "x", None], ["w", "y", 1]], [["r", "y", None], ["w", "x", 1]]),
    "lost update": ([["r", "x", None], ["w", "x", 1]], [["r", "x", None], ["w", "x", 2]]),
    "long fork": (
        [["w", "x", 1]],
        [["w", "y", 1]],
        [["r", "x", 1], ["r", "y", None]],
        [["r", "x", None], ["r", "y", 1]],
    ),
    "fractured read": ([["w", "x", 1], ["w", "y", 1]], [["r", "x", 1], ["r", "y", None]]),
    "fractured read, the old value first": (
        [["w", "x", 1], ["w", "y", 1]],
        [["r", "y", None], ["r", "x", 1]],
    ),
    "another value, read again": ([["w", "x", 1]], [["r", "x", None], ["r", "x", 1]]),
    "a write that overtook what its writer saw": (
        [["w", "x", 1]],
        [["r", "x", 1], ["w", "y", 1]],
        [["r", "y", 1], ["r", "x", None]],
    ),
    "circular information": ([["w", "x", 1], ["r", "y", 1]], [["w", "y", 1], ["r", "x", 1]]),
    "intermediate read": ([["w", "x", 1], ["w", "x", 2]], [["r", "x", 1]]),
    "own write not seen": ([["w", "x", 1], ["r", "x", None]],),
    "from nowhere": ([["r", "x", 1]],),
}
STRONGEST = BASES[8:]
FORBIDDEN_BY = {
    "write skew": ("update-serializable", "repeatable-read", "serializable"),
    "long fork": ("prefix", "snapshot-isolation", "repeatable-read", "serializable"),
    "lost update": ("cursor-stability", "update-atomic", *STRONGEST),
    "fractured read": BASES[2:],
    "fractured read, the old value first": BASES[4:],
    "another value, read again": BASES[4:],
    "a write that overtook what its writer saw": ("monotonic-view", "causal-cerone", "prefix", *STRONGEST),
    "own write not seen": BASES[2:],
    "circular information": BASES,
    "intermediate read": BASES,
    "from nowhere": BASES,
}


@pytest.mark.parametrize("name", TEXTBOOK)
def test_textbook_anomalies_are_forbidden_by_just_the_models_that_forbid_them(name: str) -> None:
    """If this fails, a definition is not the one of the papers."""
    history = history_of(together(*TEXTBOOK[name]))
    forbidden = [base for base in BASES if not allows(base, history, "rw-register")]
    assert forbidden == list(FORBIDDEN_BY[name])


def test_lists_show_lost_updates_behind_own_reads() -> None:
    """If this fails, appends whose transactions read only their own elements are taken for no conflict."""
    history = history_of(
        together([["append", "y", 1], ["r", "y", [1]]], [["append", "y", 2], ["r", "y", [2]]])
    )
    forbidden = [base for base in BASES if not allows(base, history, "append")]
    assert forbidden == ["cursor-stability", "monotonic-view", "update-atomic", *STRONGEST]


def test_lists_show_what_was_overwritten_unread() -> None:
    """If this fails, monotonic view, which counts that as seen, is the same as causal, which does not."""
    history = history_of(
        together(
            [["append", "z", 1], ["append", "x", 1]],
            [["append", "z", 2], ["append", "y", 1]],
            [["r", "z", [1, 2]]],
            [["r", "y", [1]], ["r", "x", None]],
        )
    )
    forbidden = [base for base in BASES if not allows(base, history, "append")]
    assert forbidden == ["monotonic-view", "prefix", *STRONGEST]


@pytest.mark.parametrize("workload", ["append", "rw-register"])
@pytest.mark.parametrize("prefix", STRONG)
def test_two_definitions_of_the_same_model_agree(workload: str, prefix: str) -> None:
    """If this fails, one of two definitions that were proved to be the same is written down wrongly."""
    before: Order = STRONG[prefix]
    for seed in range(300):
        lines = tiny_transactions.drawn(seed, workload=workload)
        txns = transactions_of(history_of(lines))
        by_points = snapshot_isolated(txns, workload, before)
        by_cycles = phenomena.allowed("snapshot-isolation", txns, workload, before)
        assert by_points == by_cycles, lines
        by_views = phenomena.allowed("consistent-view", txns, workload, before)
        assert by_views == phenomena.allowed("parallel-snapshot-isolation", txns, workload, before), lines
        by_orders = serializable(txns, workload, before)
        by_cycles = phenomena.allowed("repeatable-read", txns, workload, before)
        assert by_orders == by_cycles, lines


@pytest.mark.parametrize("workload", ["append", "rw-register"])
def test_what_a_stronger_model_allows_a_weaker_one_allows(workload: str) -> None:
    """If this fails, the definitions are not ordered as the models are."""
    pairs = [(one, other) for one in MODELS for other in anomalies.weaker(one)]
    for seed in range(150):
        lines = tiny_transactions.drawn(seed, workload=workload)
        history = history_of(lines)
        allowed = {name for name in MODELS if allows(name, history, workload)}
        for stronger, weaker in pairs:
            assert stronger not in allowed or weaker in allowed, (stronger, weaker, lines)


def test_every_model_has_a_definition() -> None:
    """If this fails, a model was added that no brute force stands behind."""
    assert set(MODELS) == set(transactional.MODELS)
    assert STRICT in isolation.MODELS
    assert set(objects.STEPS) == {name for name, model in BY_MODEL.items() if model.linearizable is not None}
    assert set(guarantees.GUARANTEES) == set(GUARANTEES)
