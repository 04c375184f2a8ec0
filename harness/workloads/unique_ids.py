"""Identifiers: each is the next number of one sequence, which everybody wants at the same time.

After the load a few more are asked for: a sequence that fell back gives what it had given before.
"""

from __future__ import annotations

from dataclasses import dataclass

from checkers.domain import unique_ids
from harness.clients.completion import Completion
from harness.clients.transaction import Refused, dump, dump_completion, outcome, transaction, unexpected
from harness.errors import WrongUse
from harness.generators import Context, Draft, Generator
from harness.generators.generator import Value
from harness.plan import Operation, Plan
from harness.protocols import Reply
from harness.systems.promises import Promise
from harness.workloads.checks import Check, of_every_run
from harness.workloads.keyed import Keyed, mixed
from nodes.iproto.messages import Request

SPACE = "ids"
SEQUENCE = "next"
FINAL = 5


@dataclass(frozen=True, slots=True)
class UniqueIds(Keyed):
    summary: str = "numbers of a sequence, each given out once"
    spaces: tuple[str, ...] = (SPACE,)
    model: str = "unique-ids"

    def generator(self, plan: Plan, worker: int) -> Generator:
        def generate(_: Context, __: int) -> Draft:
            return Draft("generate")

        return mixed(plan, (1.0, generate))

    def request(self, operation: Operation, value: Value, sync: int) -> Request:
        match operation.f:
            case "generate":
                return transaction(sync, [["add", SPACE, SEQUENCE, 1]])
            case "dump":
                return dump(sync)
            case f:
                raise WrongUse(f"the workload unique-ids has no {f!r}")

    def completion(self, operation: Operation, value: Value, reply: Reply) -> Completion:
        if operation.f == "dump":
            return dump_completion(reply)
        found = outcome(reply, 1, is_read=False)
        match found:
            case Completion():
                return found
            case Refused():
                return unexpected(found, is_read=False, role=found.role)
        match found.results:
            case [int() as given]:
                return Completion("ok", given, None, found.role)
        return unexpected(found.results, is_read=False, role=found.role)

    def final_operations(self, plan: Plan, keys: list[str], owner: str) -> list[Operation]:
        return [Operation(at_ns=0, worker=0, f="generate", node=owner) for _ in range(FINAL)]

    def checks(self, promise: Promise, stricter: str | None) -> tuple[Check, ...]:
        return (
            Check(
                unique_ids.NAME,
                "no identifier is given out twice",
                unique_ids.MODEL if promise.writes == "linearizable" else "",
                unique_ids.check,
            ),
            *of_every_run(promise),
        )
