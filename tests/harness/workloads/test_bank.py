"""Bank: what the answers of transfers mean."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.history.history import Header, History
from checkers.history.operation import Event, Phase
from harness.clients.operations import Add, Completion, Done
from harness.clients.reply import Replied
from harness.plan.plan import Operation
from harness.systems.qsync.promises import FIXED_OWNER
from harness.workloads import WORKLOADS
from harness.workloads.bank import ACCOUNTS, OPENING, SPACE, Bank
from harness.workloads.generators.generator import Value
from nodes.iproto.messages import Answer
from tests.harness.said import answered

ASKED: Value = {"from": "a", "to": "b", "amount": 9}


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ({"mismatch": [0, 4]}, {"from": "a", "to": "b", "amount": 9, "found": 4}),
        ({"mismatch": [0, 4], "mode": "dirty"}, ASKED),
        ({"mismatch": [1, 4]}, ASKED),
        ({"mismatch": None}, ASKED),
    ],
    ids=["a balance", "one that may be rolled back", "not the account that pays", "nothing"],
)
def test_a_refused_transfer_keeps_the_balance_that_it_showed(answer: dict[str, Any], value: Value) -> None:
    """Breaks if what an error answer revealed were lost, or taken for confirmed where the store says that it is not."""
    asked = Operation(at_ns=0, worker=0, f="transfer", value=ASKED)
    reply = Replied(Answer(1, ({"committed": False, "role": "owner", **answer},)))
    done = answered(WORKLOADS["bank"], asked, reply)
    assert done == Completion("fail", value, "mismatch", "owner")


def test_a_transfer_takes_first_what_it_gives() -> None:
    """If it failed, a refusal would be recorded with the balance of the account that was to get the money."""
    value: Value = {"from": "a3", "to": "a1", "amount": 7}
    asked = Bank().asked(Operation(at_ns=0, worker=0, f="transfer", value=value, node="n1"), value)
    assert asked.steps == (Add(SPACE, "a3", -7, 0), Add(SPACE, "a1", 7))


def opened_and_read(shown: Value, role: str, phase: Phase) -> History:
    """A bank that is opened, read, and read once more by its owner, who shows what there is."""
    accounts = dict.fromkeys(ACCOUNTS, OPENING)
    told = [("open", accounts, "owner"), ("read", shown, role), ("read", accounts, "owner")]
    events = [
        Event(
            index=2 * process + place,
            time_ns=2 * process + place,
            type="ok" if place else "invoke",
            process=process,
            f=f,
            value=value,
            node="n1",
            role=role if place else None,
            mode="read-confirmed" if f == "read" else None,
            phase=phase,
        )
        for process, (f, value, role) in enumerate(told)
        for place in (0, 1)
    ]
    return History.of(Header(nodes=("n1", "n2"), quorum=2), events)


@pytest.mark.parametrize(
    ("shown", "role", "result"),
    [
        ({}, "owner", "invalid"),
        ({}, "replica", "valid"),
        (dict.fromkeys(ACCOUNTS, OPENING), "owner", "valid"),
    ],
)
def test_a_fresh_read_without_any_account_is_found(shown: Value, role: str, result: str) -> None:
    """If it failed, an owner could lose the whole bank for a while; a replica may be as old as that."""
    (check,) = [each for each in Bank().checks(FIXED_OWNER, None) if each.name == "balances"]
    assert check.run(opened_and_read(shown, role, "load")).result == result


@pytest.mark.parametrize(
    ("role", "phase", "result"),
    [("owner", "final", "invalid"), ("replica", "final", "valid"), ("owner", "load", "valid")],
)
def test_the_owner_shows_all_accounts_in_the_end(role: str, phase: Phase, result: str) -> None:
    """If it failed, a bank that is gone in the end would have the right total, as one that was not opened yet."""
    (check,) = [each for each in Bank().checks(FIXED_OWNER, None) if each.name == "bank"]
    assert check.run(opened_and_read({}, role, phase)).result == result


def test_balances_are_promised_with_writes() -> None:
    """If it failed, a lost transfer would be a finding only, or a store accused that promises nothing of writes."""
    for writes in ("linearizable", ""):
        models = {each.name: each.model for each in Bank().checks(FIXED_OWNER.but(writes=writes), None)}
        assert bool(models["balances"]) == bool(writes)


@pytest.mark.parametrize(
    ("results", "value"),
    [
        ([None] * 5, {}),
        ([7, None, 1, 2, 3], {"a1": 7, "a2": None, "a3": 1, "a4": 2, "a5": 3}),
        ([7, "x", 1, 2, 3], None),
    ],
)
def test_a_read_shows_the_accounts_that_there_are(results: list[object], value: Value) -> None:
    """If it failed, an account that is gone would look like a bank before its opening, or a text like money."""
    done = Bank().completion(Operation(at_ns=0, worker=0, f="read"), None, Done(results, "owner"))
    assert (None if done is None else done.value) == value
