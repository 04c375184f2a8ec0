"""Causal consistency over longer histories: vector clocks against sets of bits, and a store that is causal."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers import transactional
from checkers.history import History
from checkers.proofs import verify_isolation
from checkers.proofs.meaning import Terms
from checkers.transactional import sight
from checkers.transactional.columns import OK, columns_of
from checkers.transactional.graph import Time
from tests import examples
from tests.checkers.transactional.txns import Txn, history, ok


def of_replicas(chance: random.Random, count: int, forgets: bool) -> History:
    """Clients, each at a replica of its own, which gets the others' transactions late, in one order.

    So each sees a beginning of that order, and its own transactions. `forgets`: one read sees less than those before.
    """
    clients, keys = 4, "xyz"
    log: list[tuple[int, dict[str, int]]] = []  # the client of each transaction, and its last writes
    upto, txns, fresh = [0] * clients, [], 0
    stale = chance.randrange(count // 2, count) if forgets else -1
    for number in range(count):
        client = chance.randrange(clients)
        upto[client] = chance.randint(upto[client], number)
        known: dict[str, int] = {}
        for at, (who, wrote) in enumerate(log):
            if number != stale and (at < upto[client] or who == client):
                known |= wrote
        words, made = [], dict[str, int]()
        for _ in range(chance.randint(1, 3)):
            key = chance.choice(keys)
            if chance.random() < 0.5:
                fresh += 1
                made[key] = fresh
                words.append(["w", key, fresh])
            else:
                words.append(["r", key, (known | made).get(key)])
        log.append((client, made))
        txns.append(Txn(type="ok", process=client, micros=words, begin=2.0 * number, end=2.0 * number + 1))
    return history(*txns)


@examples.up_to(30)
@given(chance=st.randoms(use_true_random=False), forgets=st.booleans())
def test_clocks_say_what_bits_say(chance: random.Random, forgets: bool) -> None:
    """If this fails, one of two ways to know what a transaction saw is wrong."""
    found = of_replicas(chance, 25, forgets)
    results = []
    with pytest.MonkeyPatch.context() as patch:
        for most in (sight.CLOCKS_MAX, 0):
            patch.setattr(sight, "CLOCKS_MAX", most)
            patch.setattr(sight, "BLOCK", 7)
            verdict = transactional.check(found, workload="rw-register", model="causal")
            if verdict.details["vacuous"]:
                return
            results.append(verdict.result)
            if verdict.result == "valid":
                assert verify_isolation.check(found, verdict, Terms(model="causal")).holds
    assert results[0] == results[1] and "unknown" not in results
    assert forgets or results[0] == "valid"


def test_what_was_seen_stays_seen() -> None:
    """If this fails, a client that goes back in a long history passes for causal, or one that does not is accused."""
    results = {
        forgets: [
            transactional.check(
                of_replicas(random.Random(seed), 30, forgets), workload="rw-register", model="causal"
            ).result
            for seed in range(6)
        ]
        for forgets in (False, True)
    }
    assert results[False] == ["valid"] * 6
    assert results[True].count("invalid") > 1 and "unknown" not in results[True]


def test_sessions_that_overlap_are_no_chains() -> None:
    """If this fails, a session of a node, whose reads overlap, is taken for a client that does one after the other."""
    found = history(ok(1, "wx1", 0, 3), ok(2, "wy1", 1, 4), ok(3, "wz1", 5, 6))
    for sessions, are_chains in ((("a", "b", "a"), True), (("a", "a", "b"), False)):
        of = dict(zip((1, 2, 3), sessions, strict=True))
        columns = columns_of(found, "rw-register", lambda operation, of=of: of[operation.process])
        time = Time.of(columns, (columns.outcome == OK).astype("int8"))
        assert (sight._Chains.of(time) is not None) == are_chains
