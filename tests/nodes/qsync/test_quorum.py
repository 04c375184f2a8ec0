"""The quorum as a number or a formula of N."""

from __future__ import annotations

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.kernel.quorum import NODES_MAX, BadQuorum, check, evaluate


@pytest.mark.parametrize(
    ("formula", "nodes", "quorum"),
    [
        ("N / 2 + 1", 1, 1),
        ("N / 2 + 1", 2, 2),
        ("N / 2 + 1", 4, 3),
        ("N / 2 + 1", 5, 3),
        ("math.max(2*N/3, 1)", 1, 1),
        ("math.max(2*N/3, 1)", 3, 2),
        ("math.max(2*N/3, 1)", 5, 3),
        ("math.max(2*N/3, 1)", 6, 4),
        ("N", 31, 31),
        ("(N + 1) - 1 * 1", 7, 7),
        ("-(-N)", 3, 3),
        ("2 ^ 3 ^ 0 + N % 3", 5, 4),
        ("-2 ^ 2 + 8", 3, 4),
        ("math.min(N, 3, 0x10)", 9, 3),
        ("math.ceil(N / 2 + 0.1)", 4, 3),
        ("math.floor(math.sqrt(N)) + math.abs(-1) + math.fmod(N, 2)", 9, 5),
        ("1e0 + .5", 2, 1),
        ("math.min(N / (N - 1), 3)", 1, 3),
        ("math.min(N / (N - 1), 3)", 2, 2),
        ("math.max(1, -1 / 0)", 3, 1),
        ("math.max(1, 1 / -(N - N))", 3, 1),
        ("math.min(3, 10 ^ 400)", 3, 3),
        ("math.max(3, (-10) ^ 401)", 3, 3),
        ("math.min(math.ceil(1 / 0), math.floor(0 ^ -1), 2)", 3, 2),
        ("math.max((-8) ^ 0.5, 2)", 3, 2),
        ("math.max(N % 0, 2)", 3, 2),
        ("math.max(math.fmod(N, 0), 2)", 3, 2),
        ("math.min(N % (1 / 0), 2)", 3, 2),
        ("1 % 0.1 * 20 + 1", 3, 1),
        ("math.max(N) + math.min(1)", 3, 4),
        ("1 - -1", 3, 2),
    ],
)
def test_formulas_are_lua_arithmetic(formula: str, nodes: int, quorum: int) -> None:
    """Broken, an operator's formula gives another quorum here than in Tarantool."""
    assert evaluate(formula, nodes) == quorum


@pytest.mark.parametrize(
    ("quorum", "message"),
    [
        ("aaa", "Expression should return a number"),
        ("3 --1", "Failed to load 3 --1: unexpected symbol near '--'"),
        ("0 / 0", "the formula is evaluated to the quorum -1 for replica number 1, which is out of range [1;31]"),
        (
            "math.max(2, N % 0)",
            "the formula is evaluated to the quorum -1 for replica number 1, which is out of range [1;31]",
        ),
        ("N - 1", "the formula is evaluated to the quorum 0 for replica number 1, which is out of range [1;31]"),
        ("N + 1", "the formula is evaluated to the quorum 32 for replica number 31, which is out of range [1;31]"),
        ("1 / 0", "the formula is evaluated to the quorum -1 for replica number 1, which is out of range [1;31]"),
        ("9 ^ 9 ^ 9", "the formula is evaluated to the quorum -1 for replica number 1, which is out of range [1;31]"),
        (0, "the value must be greater than zero and less than maximal number of replicas"),
        (32, "the value must be greater than zero and less than maximal number of replicas"),
        (10**400, "the value must be greater than zero and less than maximal number of replicas"),
        (-1, "the value must be greater than zero and less than maximal number of replicas"),
        (None, "should be one of types string, number"),
        (True, "should be one of types string, number"),
        ("N N", "Failed to load N N: unexpected symbol near 'N'"),
        ("N +", "Failed to load N +: unexpected symbol near '<eof>'"),
        ("(N", "Failed to load (N: ')' expected near '<eof>'"),
        ("__import__('os')", "Failed to load __import__('os'): unexpected symbol near '__import__'"),
        ("math.random(3)", "Failed to load math.random(3): unexpected symbol near 'math.random'"),
        ("٣", "Failed to load ٣: unexpected symbol near '٣'"),
        ("N" + "^1" * 9_000, f"Failed to load N{'^1' * 9_000}: chunk has too many syntax levels"),
        ("math.fmod(N)", "Failed to load math.fmod(N): bad number of arguments to 'math.fmod'"),
        ("(" * 99 + "N" + ")" * 99, None),
    ],
)  # fmt: skip
def test_a_quorum_that_no_cluster_can_use_is_refused(quorum: object, message: str | None) -> None:
    """Broken, a cluster runs with a quorum of 0, or a formula is run as a program."""
    with pytest.raises(BadQuorum) as caught:
        check(quorum)
    assert message is None or str(caught.value) == message


def test_an_empty_formula_is_the_default() -> None:
    """Broken, `replication_synchro_quorum = ''` leaves the queue stuck instead of going back to the majority."""
    assert check("") == "N / 2 + 1"


@given(a=st.integers(1, 31), b=st.integers(1, 9), c=st.integers(-5, 5))
def test_against_python(a: int, b: int, c: int) -> None:
    """Broken, precedence or rounding is off. The plain version is Python's own arithmetic on the same doubles."""
    for formula, value in (
        (f"{a} * N / {b} - {c}", a * 3.0 / b - c),
        (f"{a} - N * {b} % 7 / 2 + {abs(c)}", a - 3.0 * b % 7 / 2 + abs(c)),
        (f"-({c} - {a}) * {b}", -(c - a) * b),
    ):
        expected = math.floor(value)
        if 1 <= expected <= NODES_MAX:
            assert evaluate(formula, 3) == expected
        else:
            with pytest.raises(BadQuorum, match="out of range"):
                evaluate(formula, 3)


@given(st.text(max_size=12))
def test_any_text_ends_in_a_quorum_or_in_one_error(text: str) -> None:
    """Broken, a typing mistake in a configuration is a traceback."""
    with contextlib.suppress(BadQuorum):
        assert 1 <= evaluate(check(text), 3) <= NODES_MAX
