"""The quorum as an operator writes it: a number, or a formula of N, the number of nodes in the cluster.

    N / 2 + 1        math.max(2*N/3, 1)        3

A formula is arithmetic as Lua has it, over doubles: `+ - * / % ^`, parentheses, `N`, and `math.` `ceil`, `floor`,
`abs`, `min`, `max`, `sqrt` and `fmod`; its value is rounded down. It is parsed here, never evaluated as a program.
`math.random`, which Tarantool allows, is refused: random quorums need not intersect.

A formula must come to 1 … 31 for every N from 1 to 31, a number must be in that range itself; the messages are
Tarantool's (`box_check_replication_synchro_quorum`).

How many nodes a linearizable read asks (`replication_linearizable_quorum`, since 3.7) is written in the same way, with
Q besides N: the quorum of writes. It must come to 1 … 31 for every N and every Q ≤ N. It is not checked that it is N −
Q + 1 or more, which such reads need to observe every acknowledged write.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import lru_cache, reduce

OPTION = "replication_synchro_quorum"
NODES_MAX = 31
DEFAULT_FORMULA = "N / 2 + 1"
LINEARIZABLE_FORMULA = "N - Q + 1"

_TOKEN = re.compile(
    r"\s*(?:(0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(math\.\w+|\w+)|(--|.))", re.ASCII
)
"""`--` begins a comment in Lua: it is no operator, and so it is refused."""
_DEPTH_MAX = 50

_FUNCTIONS: Mapping[str, tuple[int, int, Callable[..., float]]] = {
    "math.ceil": (1, 1, lambda x: float(math.ceil(x)) if math.isfinite(x) else x),
    "math.floor": (1, 1, lambda x: float(math.floor(x)) if math.isfinite(x) else x),
    "math.abs": (1, 1, abs),
    "math.sqrt": (1, 1, lambda x: math.sqrt(x) if x >= 0 else math.nan),
    "math.fmod": (2, 2, lambda x, y: math.fmod(x, y) if y and math.isfinite(x) else math.nan),
    # As processors do it: of a pair with a NaN the second one.
    "math.min": (1, 99, lambda *values: reduce(lambda x, y: x if x < y else y, values)),
    "math.max": (1, 99, lambda *values: reduce(lambda x, y: x if x > y else y, values)),
}
"""Least and greatest number of arguments, and the function."""


class BadQuorum(ValueError):
    """Tarantool's error text for the value, behind "Incorrect value for option 'replication_synchro_quorum': "."""


def check(quorum: object) -> int | str:
    """A quorum that is valid for every number of nodes; raises BadQuorum if it is not."""
    return _checked(quorum, DEFAULT_FORMULA, knows_writes=False)


def check_linearizable(quorum: object) -> int | str:
    """A valid quorum of linearizable reads; raises BadQuorum if it is not."""
    return _checked(quorum, LINEARIZABLE_FORMULA, knows_writes=True)


def linearizable(quorum: int | str, nodes: int, writes: int) -> int:
    """How many nodes a linearizable read asks where `writes` are a quorum: 1 … 31, whatever a formula comes to."""
    return quorum if isinstance(quorum, int) else min(max(_value(quorum, nodes, writes), 1), NODES_MAX)


def _checked(quorum: object, default: str, *, knows_writes: bool) -> int | str:
    if isinstance(quorum, str):
        _try(quorum or default, knows_writes=knows_writes)
        return quorum or default
    if isinstance(quorum, bool) or not isinstance(quorum, int | float):
        raise BadQuorum("should be one of types string, number")
    if isinstance(quorum, float) and not math.isfinite(quorum):
        raise BadQuorum("should be a finite number")
    if not 1 <= int(quorum) <= NODES_MAX:
        raise BadQuorum("the value must be greater than zero and less than maximal number of replicas")
    return int(quorum)


@lru_cache(maxsize=64)
def _try(formula: str, *, knows_writes: bool) -> None:
    """Evaluate a formula for every N and, with `knows_writes`, every Q. Raises BadQuorum."""
    for nodes in range(1, NODES_MAX + 1):
        for writes in range(1, nodes + 1) if knows_writes else (0,):
            evaluate(formula, nodes, writes)


@lru_cache(maxsize=4096)
def evaluate(quorum: int | str, nodes: int, writes: int = 0) -> int:
    """The quorum of a cluster of `nodes`; `writes` is Q, or 0 if the formula does not have Q."""
    if isinstance(quorum, int):
        return quorum
    value = _value(quorum, nodes, writes)
    if not 1 <= value <= NODES_MAX:
        raise BadQuorum(
            f"the formula is evaluated to the quorum {value} for replica number {nodes}"
            f"{f', synchro quorum {writes}' * (writes > 0)}, which is out of range [1;{NODES_MAX}]"
        )
    return value


def _value(formula: str, nodes: int, writes: int) -> int:
    try:
        value = _Parser(formula, nodes, writes).whole()
    except (ArithmeticError, ValueError) as error:
        if isinstance(error, BadQuorum):
            raise
        value = math.nan
    return math.floor(value) if math.isfinite(value) else -1


def _quotient(value: float, divisor: float, sign: str) -> float:
    """`/` or `%` of doubles, where Python raises an error instead of infinity or NaN. Lua's `%` rounds the quotient."""
    if divisor:
        quotient = value / divisor
    else:
        quotient = math.copysign(math.inf, value) * math.copysign(1, divisor) if abs(value) > 0 else math.nan
    if sign == "/":
        return quotient
    return value - (math.floor(quotient) if math.isfinite(quotient) else quotient) * divisor


def _power(base: float, exponent: float) -> float:
    """`^` of doubles, likewise."""
    is_odd = math.isfinite(exponent) and exponent % 2 == 1
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and is_odd else math.inf
    except ValueError:
        return math.nan if base else math.copysign(math.inf, base if is_odd else 1)


class _Parser:
    """Recursive descent that computes as it goes; Lua's precedence: ^, unary minus, * / %, + −."""

    def __init__(self, formula: str, nodes: int, writes: int) -> None:
        self._formula = formula
        self._variables = {"N": float(nodes)} | ({"Q": float(writes)} if writes else {})
        self._tokens: list[str] = [
            next(group for group in groups if group) for groups in _TOKEN.findall(formula.rstrip())
        ]
        self._place = 0
        self._depth = 0

    def whole(self) -> float:
        only = self._tokens[0] if len(self._tokens) == 1 else ""
        if only.isidentifier() and only not in self._variables:
            raise BadQuorum("Expression should return a number")  # Lua knows no such name: it is nil
        value = self._sum()
        if self._place < len(self._tokens):
            raise self._wrong(f"unexpected symbol near '{self._tokens[self._place]}'")
        return value

    def _wrong(self, why: str) -> BadQuorum:
        return BadQuorum(f"Failed to load {self._formula}: {why}")

    def _next_is(self, *tokens: str) -> str | None:
        if self._place < len(self._tokens) and self._tokens[self._place] in tokens:
            self._place += 1
            return self._tokens[self._place - 1]
        return None

    def _expect(self, token: str) -> None:
        if self._next_is(token) is None:
            near = self._tokens[self._place] if self._place < len(self._tokens) else "<eof>"
            raise self._wrong(f"'{token}' expected near '{near}'")

    def _sum(self) -> float:
        value = self._product()
        while sign := self._next_is("+", "-"):
            term = self._product()
            value = value + term if sign == "+" else value - term
        return value

    def _product(self) -> float:
        value = self._unary()
        while sign := self._next_is("*", "/", "%"):
            factor = self._unary()
            value = value * factor if sign == "*" else _quotient(value, factor, sign)
        return value

    def _unary(self) -> float:
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise self._wrong("chunk has too many syntax levels")
        negative = False
        while self._next_is("-"):
            negative = not negative
        value = self._power()
        self._depth -= 1
        return -value if negative else value

    def _power(self) -> float:
        base = self._atom()
        return _power(base, self._unary()) if self._next_is("^") else base

    def _atom(self) -> float:
        if self._place >= len(self._tokens):
            raise self._wrong("unexpected symbol near '<eof>'")
        token = self._tokens[self._place]
        self._place += 1
        if token in self._variables:
            return self._variables[token]
        if token == "(":
            value = self._sum()
            self._expect(")")
            return value
        if token in _FUNCTIONS:
            return self._call(token)
        if token[0] in "0123456789.":
            return float(int(token, 16)) if token[:2] in ("0x", "0X") else float(token)
        raise self._wrong(f"unexpected symbol near '{token}'")

    def _call(self, name: str) -> float:
        least, most, function = _FUNCTIONS[name]
        self._expect("(")
        arguments = [self._sum()]
        while self._next_is(","):
            arguments.append(self._sum())
        self._expect(")")
        if not least <= len(arguments) <= most:
            raise self._wrong(f"bad number of arguments to '{name}'")
        return function(*arguments)
