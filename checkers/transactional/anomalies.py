"""The anomalies by name, the isolation models, and which anomaly rules out which model.

The cycles are those of Adya's thesis (1999) over three dependencies, as Elle (VLDB 2020) finds them:

    ww  T2 wrote the version after T1's     wr  T2 read what T1 wrote     rw  T1 read what T2 then overwrote

    G0             only ww
    G1c            ww and wr, at least one wr
    G-single       exactly one rw
    G-nonadjacent  two rw or more, never two in a row (what snapshot isolation forbids: Cerone & Gotsman, 2018)
    G2-item        two rw in a row somewhere
    G2             as G2-item, but it needs a predicate's rw. Adya's G2 includes every G2-item, so in a history without
                   predicate reads ("rp") G2-item stands for both

With `-process` a cycle needs a step of "the same client did this first" as well, with `-realtime` one of "this had
ended before that began". `-predicate` marks a G-single or G-nonadjacent that needs a predicate's rw.

Models are pairs: what must have no cycle (the base), and with which order it must agree (nothing; that of each client:
strong-session-…; real time: strong-…). `strict-serializable` is strong serializable.

**What a model means here.** A history is of a model if some execution of the model explains it. In the execution every
ok transaction happened and read what it was answered, no failed one happened, and each unsure (info) one happened as a
whole or not at all; one that was read of happened. Values are written once a key, and null is the value before any
write.

serializable
    The transactions run one after the other.
repeatable-read (Adya's PL-2.99)
    The same, but a read by predicate may show any earlier state.
snapshot-isolation
    Each transaction reads at its snapshot and writes at its later commit. Of two that write one key, one has its
    snapshot after the other's commit: the first committer wins.
parallel-snapshot-isolation (Cerone, Bernardi & Gotsman, 2015)
    Each transaction sees a set of transactions, which holds all that its members saw. Of two that write one key, one
    saw the other. A read gives the last version that was seen.
read-atomic (Bailis et al., 2014)
    There is an order of transactions. Their writes are versions in that order. Each reads of earlier ones. Its reads
    agree with each other and with its own writes. It reads no version older than one by a transaction that it read of.
read-committed (Adya's PL-2)
    There is such an order. Each read gives the last version that some earlier transaction wrote of the key.

read-uncommitted (Adya's PL-1) is not judged. It forbids G0 alone, a circle in the order of versions. Clients learn that
order from reads, and there is no agreed definition of what reads say that may show anything. G0 rules out
read-committed.

With strong-session-… or strong-…, a transaction comes after (reads after the commit of) all that were over before it
began, in its session or anywhere. From read-atomic on it sees them: it reads no version older than theirs (the axiom
SESSION of Cerone, Bernardi & Gotsman, 2015). A predicate read is a read like any other to every base but
repeatable-read.
`tests/checkers/transactional/definitions.py` has the same in code that tries all executions.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

BASES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    # model: (the next weaker ones, what it forbids beside what they forbid)
    "read-committed": (
        (),
        (
            *("duplicate-elements", "garbage-read", "future-read", "cyclic-versions"),
            *("G0", "G1a", "G1b", "G1c", "dirty-update", "incompatible-order"),
        ),
    ),
    "read-atomic": (("read-committed",), ("internal", "fractured-read")),
    "parallel-snapshot-isolation": (("read-atomic",), ("G-single", "G-single-predicate", "lost-update")),
    "snapshot-isolation": (
        ("parallel-snapshot-isolation",),
        ("G-nonadjacent", "G-nonadjacent-predicate"),
    ),
    "repeatable-read": (("read-atomic",), ("G-single", "G-nonadjacent", "G2-item", "lost-update")),
    "serializable": (("snapshot-isolation", "repeatable-read"), ("G2",)),
}
"""The table. repeatable-read is Adya's PL-2.99, which says nothing of predicates."""

CYCLES = (
    "G0",
    "G1c",
    "G-single",
    "G-single-predicate",
    "G-nonadjacent",
    "G-nonadjacent-predicate",
    "G2-item",
    "G2",
)
"""Worst first."""
ORDERS = ("", "-process", "-realtime")
PREFIXES = ("", "strong-session-", "strong-")
OTHERS = (
    "garbage-read",
    "duplicate-elements",
    "future-read",
    "cyclic-versions",
    "incompatible-order",
    "dirty-update",
    "G1a",
    "G1b",
    "internal",
    "fractured-read",
    "lost-update",
)
"""Anomalies that are found without a search for cycles; worst first."""
OF_KEYS = "cyclic-versions"
"""With -process or -realtime: what the model promises of each key by itself has no order of versions. Every model with
that order promises it that forbids G-single."""
NO_ORDER = "no-order"
"""No execution of the judged model gives these answers, although none of the anomalies above is in them."""
ALIASES = {
    "strict-serializable": "strong-serializable",
    "strong-session-strict-serializable": "strong-serializable",
    "session-serializable": "strong-session-serializable",
}


def _named(base: str, order: int) -> str:
    name = PREFIXES[order] + base
    return "strict-serializable" if name == "strong-serializable" else name


def _all_models() -> dict[str, tuple[str, int]]:
    return {_named(base, order): (base, order) for order in range(3) for base in BASES}


MODELS: dict[str, tuple[str, int]] = _all_models()
"""Every model's name, its base and its order (0 none, 1 of each process, 2 real time)."""
ANOMALIES: tuple[str, ...] = (
    *OTHERS,
    *(cycle + order for order in ORDERS for cycle in CYCLES),
    *(OF_KEYS + order for order in ORDERS[1:]),
)
"""Worst first."""


def model_of(name: str) -> str:
    """The name as it stands in `MODELS`. Raises KeyError with the known names."""
    plain = ALIASES.get(name, name)
    plain = "strict-serializable" if plain == "strong-serializable" else plain
    if plain not in MODELS:
        raise KeyError(f"expected one of {', '.join(MODELS)}, got {name!r}")
    return plain


@cache
def forbidden_by_base(base: str) -> frozenset[str]:
    """The anomalies that a base forbids, its weaker ones' included."""
    weaker, own = BASES[base]
    return frozenset(own).union(*(forbidden_by_base(lower) for lower in weaker))


@cache
def forbidden(model: str) -> frozenset[str]:
    """The anomalies that a history of `model` never shows."""
    base, order = MODELS[model_of(model)]
    plain = forbidden_by_base(base)
    cycles = [name for name in plain if name in CYCLES]
    cycles += [OF_KEYS] if "G-single" in plain else []
    return plain.union(*([name + suffix for name in cycles] for suffix in ORDERS[1 : order + 1]))


@cache
def weaker(model: str) -> tuple[str, ...]:
    """The models that `model` implies, itself left out."""
    base, order = MODELS[model]
    below: dict[str, None] = {base: None}
    for name in below_of(base):
        below[name] = None
    names = [_named(lower, number) for number in range(order + 1) for lower in below]
    return tuple(name for name in names if name != model)


@cache
def below_of(base: str) -> tuple[str, ...]:
    """The bases that are weaker than `base`, nearest first."""
    below: dict[str, None] = {}
    for lower in BASES[base][0]:
        below[lower] = None
        below.update(dict.fromkeys(below_of(lower)))
    return tuple(below)


def ruled_out(shown: Iterable[str], refuted: Iterable[str] = ()) -> tuple[str, ...]:
    """The models that a history with these anomalies is not of, and not of `refuted` either, in the table's order."""
    names, models = frozenset(shown), frozenset(refuted)
    return tuple(
        model
        for model in MODELS
        if names & forbidden(model) or model in models or models.intersection(weaker(model))
    )


def strongest(models: Iterable[str]) -> tuple[str, ...]:
    """The models that no other one of `models` implies."""
    given = tuple(models)
    implied = {name for model in given for name in weaker(model)}
    return tuple(model for model in given if model not in implied)
