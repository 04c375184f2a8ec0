"""Which histories each isolation model allows: the names of the models, and the definition behind each."""

from __future__ import annotations

from functools import partial

from checkers.history import History
from tests.checkers.brute import phenomena
from tests.checkers.brute.serial import serializable
from tests.checkers.brute.snapshots import snapshot_isolated
from tests.checkers.brute.transactions import Order, Txn, nothing, realtime, session, transactions_of

BASES = (
    "read-committed",
    "cursor-stability",
    "monotonic-atomic-view",
    "monotonic-view",
    "read-atomic",
    "update-atomic",
    "causal-cerone",
    "prefix",
    "parallel-snapshot-isolation",
    "update-serializable",
    "snapshot-isolation",
    "repeatable-read",
    "serializable",
)
STRONG: dict[str, Order] = {"": nothing, "strong-session-": session, "strong-": realtime}
STRICT = "strict-serializable"

OWN_NAMES = {
    "strong-serializable": STRICT,
    "strong-session-causal-cerone": "causal",
    "strong-causal-cerone": "strong-causal",
}
MODELS: dict[str, tuple[str, Order]] = {
    OWN_NAMES.get(prefix + base, prefix + base): (base, before)
    for prefix, before in STRONG.items()
    for base in BASES
    if not prefix or base != "update-serializable"
}
"""By name: what is proscribed, and the order that must be kept."""


def allows(model: str, history: History, workload: str, of_keys: Order = nothing) -> bool:
    """Whether `model` allows the history. `workload`: "append" or "rw-register".

    `of_keys`: the order that each register keeps by itself, beside what the model promises.
    """
    base, before = MODELS[model]
    txns = transactions_of(history)
    if of_keys is nothing:
        return _allows(base, txns, workload, before)
    name = "repeatable-read" if base == "serializable" else base
    return phenomena.allowed(name, txns, workload, before, partial(phenomena.keeps_each_key, of_keys))


def _allows(base: str, txns: list[Txn], workload: str, before: Order) -> bool:
    if base == "serializable":
        return serializable(txns, workload, before)
    if base == "snapshot-isolation":
        return snapshot_isolated(txns, workload, before)
    return phenomena.allowed(base, txns, workload, before)
