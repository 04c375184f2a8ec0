"""Bank: money moves between accounts, and every read shows all of it.

| f | value |
|---|---|
| transfer | {"from": account, "to": account, "amount": n} |
| read | ok: {account: balance, …}; a key names the bank if there are several |

Two reads with different totals prove that something is wrong, whatever the total should be. So without a given total
(`total`, or "total_amount" in the header), the checker takes the total that most reads show. A read that shows no
account came before there were any. Rules: wrong-total, negative-balance, balance-missing (an account with null).

Cost: linear. Cannot see: a transfer that was lost as a whole, or done twice, because the total stays the same (the
bank's register or append form can). Reads of mode "dirty" are skipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from checkers.domain.proof import active, is_judged, shown, verdict, while_active
from checkers.history.errors import ModelError
from checkers.history.history import History, by_key
from checkers.history.operation import Operation
from checkers.history.values import Number, exact, identity, in_json, many, value_words
from checkers.verdict import Verdict, Witness, witness

NAME = "bank"
MODEL = "the total never changes, no balance is negative"

Balances = list[tuple[str, Number | None]]


def check(history: History, *, total: int | None = None, negative_allowed: bool | None = None) -> Verdict:
    """Whether every read of a bank shows the same total.

    `negative_allowed`: None is what the header says under that name, or no. `details`: reads, total (None if banks have
    different ones), by_fault (wrong reads while each fault was active, "" for none). Raises ModelError for a read that
    shows no balances, and for a header with another form of these.
    """
    extra = history.header.extra
    allowed = extra.get("negative_allowed") or False if negative_allowed is None else negative_allowed
    given = extra.get("total_amount") if total is None else total
    told = exact(given)
    if (told is None and given is not None) or not isinstance(allowed, bool):
        wanted = "a number as total_amount, and true or false as negative_allowed"
        raise ModelError(expected=wanted, came=value_words([given, allowed], 60), index=None)
    reads = [each for each in history.select(f="read", outcome="ok") if is_judged(each)]
    count = 0
    totals: set[Number] = set()
    witnesses: list[Witness] = []
    by_fault: Counter[str] = Counter()
    for of_bank in by_key(reads).values():
        balances = [(read, each) for read in of_bank if (each := _balances(read))]
        if not balances:
            continue
        usual: Operation | None = None
        expected = told
        if expected is None:
            expected, usual = _usual([(read, _total(each)) for read, each in balances])
        count += len(balances)
        totals.add(expected)
        for read, each in balances:
            wrong = list(_wrong(history, read, each, expected, usual, allowed))
            if wrong:
                witnesses += wrong
                by_fault.update({fault.name for fault in active(history, read)} or {""})
    details = {
        "reads": count,
        "total": in_json(next(iter(totals))) if len(totals) == 1 else None,
        "by_fault": dict(sorted(by_fault.items())),
    }
    valid = f"{many(count, 'read')} showed a total of {' or '.join(map(shown, sorted(totals)))}"
    return verdict(NAME, MODEL, witnesses, details, judged=count, valid=valid)


def _balances(read: Operation) -> Balances:
    """Each account, as a sentence names it, and its balance: account 1 is another one than "1"."""
    value = read.value
    rows = list(value.items()) if isinstance(value, dict) else value
    if (
        not isinstance(rows, list)
        or not all(isinstance(row, list | tuple) and len(row) == 2 for row in rows)
        or any(balance is not None and exact(balance) is None for _, balance in rows)
        or len({identity(account) for account, _ in rows}) < len(rows)
    ):
        raise ModelError(
            expected="balances {account: number or null, …}",
            came=value_words(value, 60),
            index=read.invoke_index,
        )
    return [(value_words(account), exact(balance)) for account, balance in rows]


def _total(balances: Balances) -> Number:
    return sum(balance for _, balance in balances if balance is not None)


def _usual(totals: list[tuple[Operation, Number]]) -> tuple[Number, Operation]:
    """The total that most of these reads show, and one of them."""
    counted = Counter(total for _, total in totals)
    most = max(counted.values())
    usual = min(total for total, count in counted.items() if count == most)
    return usual, next(read for read, total in totals if total == usual)


def _wrong(
    history: History,
    read: Operation,
    balances: Balances,
    expected: Number,
    usual: Operation | None,
    negative_allowed: bool,
) -> Iterator[Witness]:
    subject = f"the read by process {read.process}" + (f" at {read.node}" if read.node else "")
    about: dict[str, Any] = {"key": read.key, "node": read.node, "explanation": while_active(history, read)}
    total = _total(balances)
    missing = sorted(account for account, balance in balances if balance is None)
    negative = [(account, amount) for account, amount in balances if amount is not None and amount < 0]
    if total != expected:
        others = [] if usual is None else [usual]
        source = "which most reads show" if others else "which there must be"
        summary = f"{subject} showed a total of {shown(total)} instead of {shown(expected)}, {source}"
        yield witness("wrong-total", summary, [*others, read], **about)
    elif missing:
        summary = f"{subject} showed no balance of account {missing[0]}"
        yield witness("balance-missing", summary, [read], **about)
    if negative and not negative_allowed:
        account, balance = negative[0]
        summary = f"{subject} showed {shown(balance)} in account {account}"
        yield witness("negative-balance", summary, [read], **about)
