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
whole or not at all; one that was read of happened. Null is the value before any write. If a value was written to a
register more than once, some choice of the writes that its reads show makes such an execution (see `candidates`).

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
update-serializable (Adya's PL-3U)
    Those that write run one after the other. For each that only reads, these and it alone do so too, with the same
    order of versions: two that only read may put the same writers in different orders.
prefix (Cerone, Bernardi & Gotsman, 2015)
    Snapshot isolation where the first committer does not win: updates may be lost.
causal-cerone (the same)
    There is an order of transactions, which orders the versions. Each transaction sees those that it read of, and all
    that these saw. A read gives the last version that was seen.
causal (Biswas & Enea, 2019)
    The same with the order of sessions: strong-session-causal-cerone.
update-atomic (Cerone, Gotsman & Yang, 2017; ROLA)
    Each transaction sees those that it read of, and of two that write one key, one saw the other. A read gives the last
    version that was seen.
read-atomic (Bailis et al., 2014)
    There is an order of transactions. Their writes are versions in that order. Each reads of earlier ones. Its reads
    agree with each other and with its own writes. It reads no version older than one by a transaction that it read of.
monotonic-view (Adya's PL-2L)
    As parallel-snapshot-isolation, but a read only knows of what its transaction saw until then: by this read and the
    ones before, and as the version before one that it wrote. It shows its transaction's own write, if that has come.
monotonic-atomic-view (Bailis et al., Highly Available Transactions, 2013)
    A read gives no version older than one by a transaction that this read or one before it was of. It shows its
    transaction's own write, if that has come.
cursor-stability (Adya's PL-CS)
    No transaction writes a key between the version that another one read and the version that this one wrote. Every
    read counts as one by a cursor.
read-committed (Adya's PL-2)
    There is such an order. Each read gives the last version that some earlier transaction wrote of the key.

`REFUSED` has the models that are not judged, with the reasons.

With strong-session-… or strong-…, a transaction comes after (reads after the commit of) all that were over before it
began, in its session or anywhere. But for read-committed and cursor-stability it sees them: it reads no version older
than theirs (the axiom SESSION of Cerone, Bernardi & Gotsman, 2015). A predicate read is a read like any other to every
base but repeatable-read; to read-atomic, update-atomic, monotonic-atomic-view and cursor-stability it is never too old.
But an `internal` or a `lost-update` may be one of such a read.
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
    "cursor-stability": (("read-committed",), ("lost-update",)),
    "monotonic-atomic-view": (("read-committed",), ()),
    "monotonic-view": (("monotonic-atomic-view",), ()),
    "read-atomic": (("monotonic-atomic-view",), ("internal", "fractured-read")),
    "update-atomic": (("read-atomic", "cursor-stability"), ()),
    "causal-cerone": (("read-atomic",), ()),
    "prefix": (("causal-cerone",), ()),
    "parallel-snapshot-isolation": (
        ("causal-cerone", "update-atomic", "monotonic-view"),
        ("G-single", "G-single-predicate"),
    ),
    "update-serializable": (("parallel-snapshot-isolation",), ()),
    "snapshot-isolation": (
        ("parallel-snapshot-isolation", "prefix"),
        ("G-nonadjacent", "G-nonadjacent-predicate"),
    ),
    "repeatable-read": (("update-atomic",), ("G-single", "G-nonadjacent", "G2-item")),
    "serializable": (("snapshot-isolation", "repeatable-read", "update-serializable"), ("G2",)),
}
"""The table. repeatable-read is Adya's PL-2.99, which says nothing of predicates."""

SUMMARIES: dict[str, str] = {
    "read-committed": "reads show last versions of transactions that happened, and these have an order",
    "cursor-stability": "and no key is written between a transaction's read and write of it",
    "monotonic-atomic-view": "and nothing is older than a transaction that was read of before",
    "monotonic-view": "and nothing is older than what came before such a transaction",
    "read-atomic": "and nothing is older than a transaction that this one reads of at all",
    "update-atomic": "read-atomic and no lost update",
    "causal-cerone": "read-atomic, and nothing is older than a cause of what was read",
    "prefix": "each reads all commits until some moment",
    "parallel-snapshot-isolation": "causal-cerone and no lost update",
    "update-serializable": "those that write are serializable with each one that only reads",
    "snapshot-isolation": "prefix and no lost update",
    "repeatable-read": "serializable but for reads by predicate",
    "serializable": "one after the other",
}
"""Each base in a few words; the table above has the order."""
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
WITHOUT_ORDER = ("update-serializable",)
"""With an order of sessions it has no definition: one that only reads says nothing of the next one that only reads."""
ALIASES = {
    **dict.fromkeys(("PL-3", "conflict-serializable", "view-serializable", "1SR"), "serializable"),
    "PL-3U": "update-serializable",
    "PL-2.99": "repeatable-read",
    "PL-SI": "snapshot-isolation",
    **dict.fromkeys(
        ("PL-2+", "consistent-view", "PL-FCV", "forward-consistent-view"), "parallel-snapshot-isolation"
    ),
    "PL-2L": "monotonic-view",
    "PL-CS": "cursor-stability",
    "PL-2": "read-committed",
    "ROLA": "update-atomic",
}
"""Other names of bases: Adya's, and those of Elle.

Consistent view forbids G1 and G-single, and so does parallel snapshot isolation (Cerone & Gotsman, 2018). Forward
consistent view also counts that one began after another ended, in an order of starts and ends that nobody sees: all may
overlap in it.
"""
OTHER_NAMES = {
    "PL-SS": "strict-serializable",
    "strong-session-strict-serializable": "strict-serializable",
    "session-serializable": "strong-session-serializable",
}
SPOKEN = {
    "strong-serializable": "strict-serializable",
    "strong-session-causal-cerone": "causal",
    "strong-causal-cerone": "strong-causal",
    "strong-session-causal": "causal",
}
"""Models that have a name of their own."""
REFUSED = {
    **dict.fromkeys(
        ("read-uncommitted", "PL-1"),
        "it forbids G0 alone, a circle in the order of versions; clients learn that order from reads, and reads that "
        "may show anything say nothing of it; try read-committed, which forbids G0 too",
    ),
    **dict.fromkeys(
        ("monotonic-snapshot-read", "PL-MSR"),
        "it orders the starts of single reads as the store chose them, which no client sees; try monotonic-view",
    ),
    **dict.fromkeys(
        (
            *("linearizable", "sequential", "PRAM", "writes-follow-reads"),
            *("monotonic-reads", "monotonic-writes", "read-your-writes"),
        ),
        "it is a promise of single operations; try strict-serializable or causal",
    ),
}
"""Models of Elle's tree that are not judged, and why; also with strong-session-… or strong-…."""


def named(base: str, order: int) -> str:
    """The name of the model of this base and order."""
    name = PREFIXES[order] + base
    return SPOKEN.get(name, name)


def _all_models() -> dict[str, tuple[str, int]]:
    return {
        named(base, order): (base, order)
        for order in range(3)
        for base in BASES
        if not order or base not in WITHOUT_ORDER
    }


MODELS: dict[str, tuple[str, int]] = _all_models()
"""Every model's name, its base and its order (0 none, 1 of each process, 2 real time)."""
ANOMALIES: tuple[str, ...] = (
    *OTHERS,
    *(cycle + order for order in ORDERS for cycle in CYCLES),
    *(OF_KEYS + order for order in ORDERS[1:]),
)
"""Worst first."""


def judged(*, has_real_time: bool) -> tuple[str, ...]:
    """The models that such a history can be judged by, the strongest last."""
    return tuple(name for name, (_, order) in MODELS.items() if has_real_time or order < 2)


def model_of(name: str) -> str:
    """The name as it stands in `MODELS`. Raises KeyError with the known names, or the reason why it is not judged."""
    prefix = next(prefix for prefix in (*PREFIXES[1:], "") if name.startswith(prefix))
    base = name.removeprefix(prefix)
    plain = prefix + ALIASES.get(base, base)
    plain = OTHER_NAMES.get(plain, SPOKEN.get(plain, plain))
    if base in REFUSED:
        raise KeyError(f"{name!r} is not judged: {REFUSED[base]}")
    if prefix and ALIASES.get(base, base) in WITHOUT_ORDER:
        raise KeyError(f"{name!r} is not judged: it has no definition with an order; try {base}")
    if plain not in MODELS:
        raise KeyError(f"{name!r} is not known: expected one of {', '.join(MODELS)}")
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
    names = [named(lower, number) for number in range(order + 1) for lower in below]
    return tuple(name for name in names if name != model and name in MODELS)


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
