"""A bank under cuts; when it is over, second clusters begin from cuts that it took.

The load is that of the bank. Then the harness draws cuts from what the nodes left. For each it starts a second cluster
(`harness.run.second_clusters`), reads all accounts there, goes on with transfers, takes one more cut, and reads again.
The money of the bank must be there in every read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from checkers.history.history import History
from checkers.history.operation import Event
from checkers.verdict import WITNESSES_MAX, Verdict, Witness
from harness.clients.operations import Read, RestoredCut, Transaction
from harness.plan.plan import Plan
from harness.plan.promise import WRITES, Promise
from harness.workloads.bank import ACCOUNTS, SPACE, TOTAL, Bank
from harness.workloads.checks import Check
from harness.workloads.restoring import READ

NAME = "restored-total"
RULE = "every read of a second cluster shows all the money of the bank"


@dataclass(frozen=True, slots=True)
class Restore(Bank):
    summary: str = "a bank under cuts, from which second clusters begin when it is over"
    uses: frozenset[type] = frozenset({*Bank().uses, RestoredCut})

    def everything(self, plan: Plan) -> Transaction:
        return Transaction(tuple(Read(SPACE, account) for account in ACCOUNTS), "read-confirmed")

    def checks(self, promise: Promise, stricter: str | None) -> tuple[Check, ...]:
        # Else transfers may be lost in any cluster.
        promised = RULE if promise.model(WRITES) == "linearizable" else ""
        return (*Bank.checks(self, promise, stricter), Check(NAME, RULE, promised, check))

    def missing(self, history: History) -> Iterator[str]:
        yield from Bank.missing(self, history)
        if not any(event.f == READ for event in _reads(history)):
            yield "no second cluster was read: no cut was finished, or none could be restored"


def _reads(history: History) -> Iterator[Event]:
    return history.told("operator", READ)


def check(history: History) -> Verdict:
    """Unknown if nothing was read. Cuts begin when the bank is open: a read that shows no account is wrong."""
    witnesses, judged = [], 0
    for event in _reads(history):
        balances = _balances(event)
        total = sum(balances.values())
        judged += 1
        if total != TOTAL:
            held = ", ".join(f"{name} {money}" for name, money in sorted(balances.items())) or "no account"
            where = f"the cluster restored to {event.value['cut']} shows {total} at {event.node}"
            witnesses.append(
                Witness(
                    rule="wrong-total",
                    summary=f"{where}, not {TOTAL}: {held}",
                    events=(event.index,),
                    node=event.node,
                    start_ns=event.time_ns,
                    end_ns=event.time_ns,
                )
            )
    return Verdict(
        checker=NAME,
        result="unknown" if not judged else "invalid" if witnesses else "valid",
        summary=f"{judged} reads of second clusters, {len(witnesses)} with a wrong total",
        model=RULE,
        witnesses=tuple(witnesses[:WITNESSES_MAX]),
        details={"reads": judged} if judged else {"reads": 0, "vacuous": True},
    )


def _balances(event: Event) -> dict[object, int]:
    return {key: value for space, key, value in event.value["rows"] if space == SPACE and value is not None}
