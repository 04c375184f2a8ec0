"""From what came of an operation to what the history says of it, as far as all workloads have it in common."""

from __future__ import annotations

from harness.clients.operations import Asked, Completion, Done, Dump, Outcome, unexpected
from harness.errors import WrongUse
from harness.plan.plan import Operation
from harness.workloads.failing import failed
from harness.workloads.generators.generator import Value
from harness.workloads.workload import Workload

DUMP = "dump"


def asked_of(workload: Workload, operation: Operation, value: Value) -> Asked:
    """WrongUse if the workload cannot say it."""
    if operation.f == DUMP:
        return Dump()
    asked = workload.asked(operation, value)
    if workload.effects.get(operation.f) == "reads" and not asked.is_read:
        raise WrongUse(f"{operation.f!r} is declared as reading only, and asks for more: {asked.steps}")
    return asked


def completed(
    workload: Workload, operation: Operation, value: Value, asked: Asked, outcome: Outcome
) -> Completion:
    """How the operation ended."""
    if isinstance(outcome, Done) and isinstance(asked, Dump):
        return Completion("ok", outcome.results[0])
    if workload.must_fail(operation, value):
        return failed(outcome, value)
    if isinstance(outcome, Completion):
        return outcome
    said = workload.completion(operation, value, outcome)
    if said is None:
        shown = outcome.results if isinstance(outcome, Done) else outcome
        return unexpected(shown, is_read=asked.is_read, role=outcome.role)
    return said
