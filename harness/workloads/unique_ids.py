"""Identifiers: each is the next number of one sequence, which everybody wants at the same time.

After the load a few more are asked for: a sequence that fell back gives what it had given before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from checkers.domain import unique_ids
from checkers.history.declared import Declared
from checkers.history.history import History
from harness.clients.operations import Add, Completion, Done, Mismatch, Transaction
from harness.errors import WrongUse
from harness.plan.plan import Operation, Plan
from harness.plan.promise import WRITES, Promise
from harness.workloads.checks import Check, of_every_run
from harness.workloads.common import mixed
from harness.workloads.generators import Context, Draft, Generator
from harness.workloads.generators.generator import Value
from harness.workloads.workload import Workload

SPACE = "ids"
SEQUENCE = "next"
FINAL = 5


@dataclass(frozen=True, slots=True)
class UniqueIds(Workload):
    summary: str = "numbers of a sequence, each given out once"
    weight: float = 0.3
    spaces: tuple[str, ...] = (SPACE,)
    model: str = "unique-ids"
    has_single_steps: bool = True
    shares: frozenset[str] = frozenset()
    uses: frozenset[type] = frozenset({Add})
    effects: Mapping[str, Declared] = field(default_factory=lambda: {"generate": "both"})

    def generator(self, plan: Plan, worker: int) -> Generator:
        def generate(_: Context, __: int) -> Draft:
            return Draft("generate")

        return mixed(plan, (1.0, generate))

    def asked(self, operation: Operation, value: Value) -> Transaction:
        if operation.f != "generate":
            raise WrongUse(f"the workload unique-ids has no {operation.f!r}")
        return Transaction((Add(SPACE, SEQUENCE, 1),))

    def completion(self, operation: Operation, value: Value, found: Done | Mismatch) -> Completion | None:
        match found:
            case Done([int() as given], role):
                return Completion("ok", given, None, role)
        return None

    def final_operations(self, plan: Plan, keys: list[str], owner: str) -> list[Operation]:
        return [Operation(at_ns=0, worker=0, f="generate", node=owner) for _ in range(FINAL)]

    def checks(self, promise: Promise, stricter: str | None) -> tuple[Check, ...]:
        return (
            Check(
                unique_ids.NAME,
                "no identifier is given out twice",
                unique_ids.MODEL if promise.model(WRITES) == "linearizable" else "",
                unique_ids.check,
            ),
            *of_every_run(promise),
        )

    def missing(self, history: History) -> Iterator[str]:
        if not history.select(f="generate", outcome="ok", phase="final"):
            yield "no number was given out in the end"
