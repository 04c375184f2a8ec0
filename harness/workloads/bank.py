"""A bank: transfers between accounts, and reads of all of them at one moment. Money is neither made nor lost.

A transfer is one transaction of two statements; the first refuses to leave less than nothing in its account. The
total must be right in every answer that is not dirty, also in a stale one; which transfers are in it is judged by each
account's bounds, as a sum of what was surely and of what was possibly added (check `balances`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from msgspec import structs

from checkers.domain import bank, counter
from checkers.history.declared import Declared
from checkers.history.history import History
from checkers.history.operation import Operation as Recorded
from checkers.verdict import Verdict
from harness.clients.operations import Add, Completion, Done, Insert, Mismatch, Read, Step, Transaction
from harness.errors import WrongUse
from harness.plan.plan import Operation, Plan
from harness.plan.promise import WRITES, Promise
from harness.workloads.checks import (
    Check,
    Reads,
    fresh_reads,
    is_fresh_at_the_end,
    kept_by,
    of_every_run,
    with_a_known_end,
)
from harness.workloads.common import mixed, renamed
from harness.workloads.failing import FAILURES, failing
from harness.workloads.generators import Context, Draft, Generator
from harness.workloads.generators.generator import Value
from harness.workloads.reads import drawn_read, drawn_write, final_mode
from harness.workloads.workload import USUAL, Workload

SPACE = "bank"
ACCOUNTS = ("a1", "a2", "a3", "a4", "a5")
OPENING = 40
AMOUNT_MAX = 10
TOTAL = OPENING * len(ACCOUNTS)
BALANCES = "every balance lies between what surely and what possibly was transferred"


@dataclass(frozen=True, slots=True)
class Bank(Workload):
    summary: str = "transfers between accounts, and reads of all of them at one moment"
    weight: float = 1
    spaces: tuple[str, ...] = (SPACE,)
    model: str = "bank"
    needs_fresh_reads: bool = True
    shares: frozenset[str] = USUAL | {"failing"}
    uses: frozenset[type] = frozenset({Read, Add, Insert})
    effects: Mapping[str, Declared] = field(
        default_factory=lambda: {"open": "writes", "transfer": "both", "read": "reads"}
    )

    def first_operations(self, plan: Plan, owner: str) -> list[Operation]:
        return [Operation(at_ns=0, worker=0, f="open", value=dict.fromkeys(ACCOUNTS, OPENING), node=owner)]

    def generator(self, plan: Plan, worker: int) -> Generator:
        def transfer(context: Context, _: int) -> Draft:
            source, target = context.chance.sample(ACCOUNTS, 2)
            amount = context.chance.randint(1, AMOUNT_MAX)
            fails = failing(plan, context)
            value: dict[str, Value] = {"from": source, "to": target, "amount": amount}
            return Draft(
                "transfer",
                value={**value, "fails": fails} if fails else value,
                node=drawn_write(plan, context),
            )

        def read(context: Context, _: int) -> Draft:
            node, mode = drawn_read(plan, context)
            return Draft("read", node=node, mode=mode)

        return mixed(plan, (0.5, transfer), (0.5, read))

    def asked(self, operation: Operation, value: Value) -> Transaction:
        match operation.f, value:
            case "read", _:
                steps: list[Step] = [Read(SPACE, account) for account in ACCOUNTS]
            case "transfer", {"from": str(source), "to": str(target), "amount": int(amount)}:
                # The source first: `completion` takes a mismatch of step 0 for its balance.
                steps = [Add(SPACE, source, -amount, 0), Add(SPACE, target, amount)]
                if (fails := _fails(value)) in FAILURES:
                    steps.insert(1, FAILURES[fails](SPACE, source))
            case "open", dict():
                steps = [Insert(SPACE, account, amount) for account, amount in value.items()]
            case f, _:
                raise WrongUse(f"the workload bank has no {f!r} with value {value!r}")
        return Transaction(tuple(steps), operation.mode)

    def must_fail(self, operation: Operation, value: Value) -> bool:
        return operation.f == "transfer" and _fails(value) != ""

    def completion(self, operation: Operation, value: Value, found: Done | Mismatch) -> Completion | None:
        match operation.f, found:
            case "read", Done(results, role):
                return _balances(results, role)
            case "read", Mismatch():
                return None
            case _, Mismatch(0, int() as there, role, is_confirmed=True) if isinstance(value, dict):
                return Completion("fail", {**value, "found": there}, "mismatch", role)
            case _, Mismatch(role=role):
                return Completion("fail", value, "mismatch", role)
        return Completion("ok", value, None, found.role)

    def final_operations(self, plan: Plan, keys: list[str], owner: str) -> list[Operation]:
        """At the owner, and then what each node has."""
        nodes = [(owner, final_mode(plan)), *((node, "read-confirmed") for node in plan.node_names)]
        return [Operation(at_ns=0, worker=0, f="read", node=node, mode=mode) for node, mode in nodes]

    def checks(self, promise: Promise, stricter: str | None) -> tuple[Check, ...]:
        reads = fresh_reads(promise, stricter)
        is_whole = promise.has_whole_transactions(are_plain=False)
        return (
            Check(
                bank.NAME,
                "every read shows the same total, and no account is overdrawn",
                bank.MODEL if is_whole else "",
                lambda history: bank.check(_with_closed_accounts(history), total=TOTAL),
            ),
            Check(
                "balances",
                "every account holds what was transferred",
                BALANCES if promise.model(WRITES) == "linearizable" else "",
                lambda history: balances(with_a_known_end(history), reads),
            ),
            *of_every_run(promise),
            *kept_by(promise, counter.gone_everywhere, _in_parts),
        )

    def missing(self, history: History) -> Iterator[str]:
        """Reads must have seen money move, and the end must be known."""
        shown = [each.value for each in history.select(f="read", outcome="ok", phase="load") if each.value]
        different = len({tuple(sorted(each.items())) for each in shown})
        wanted = max(2, len(shown) // 20)
        if different < wanted:
            yield f"too few reads saw money move: {different} different states, {wanted} are needed"
        if not any(is_fresh_at_the_end(each) for each in history.select(f="read", phase="final")):
            yield "the accounts had no final read that had to be fresh"


def _fails(value: Value) -> str:
    """How a transfer must fail; "" if it need not."""
    match value:
        case {"fails": str(fails)}:
            return fails
    return ""


def _balances(results: Sequence[object], role: str | None) -> Completion | None:
    if not all(balance is None or isinstance(balance, int) for balance in results):
        return None
    is_open = any(balance is not None for balance in results)
    return Completion("ok", dict(zip(ACCOUNTS, results, strict=True)) if is_open else {}, None, role)


def _with_closed_accounts(history: History) -> History:
    """A read that shows no account came before there were any; but not at the end, where the fixed owner has them."""
    operations = tuple(
        structs.replace(each, value=dict.fromkeys(ACCOUNTS))
        if each.phase == "final" and each.f == "read" and each.value == {} and each.role == "owner"
        else each
        for each in with_a_known_end(history).operations
    )
    return replace(history, operations=operations)


def balances(history: History, reads: Reads) -> Verdict:
    """Each account as a counter: transfers add to it and take from it, every read shows it."""
    verdict = counter.check(_in_parts(history), reads=reads)
    return renamed(verdict, "balances", BALANCES)


def _in_parts(history: History) -> History:
    """Each account as a counter; the nodes' dumps, which show accounts as such, stay."""
    parts = tuple(part for operation in history.operations for part in _parts(operation))
    return replace(history, operations=(*parts, *history.dumps))


def _parts(operation: Recorded) -> Iterator[Recorded]:
    match operation.f, operation.value:
        case "open", dict() as opened:
            for account, amount in opened.items():
                yield structs.replace(operation, f="add", key=account, value=amount)
        case "transfer", {"from": source, "to": target, "amount": amount}:
            yield structs.replace(operation, f="add", key=source, value=-amount)
            yield structs.replace(operation, f="add", key=target, value=amount)
        case "read", dict() as shown if operation.type == "ok":
            # The bank opened before the load: a fresh read that shows no account has lost them all.
            for account, balance in (shown or dict.fromkeys(ACCOUNTS)).items():
                if balance is not None or not shown:
                    yield structs.replace(operation, key=account, value=balance)
