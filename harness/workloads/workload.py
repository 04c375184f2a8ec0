"""What a workload is: operations to do, how to say them to a store, and what its answers mean."""

from __future__ import annotations

from typing import Protocol

from harness.clients.completion import Completion
from harness.generators import Generator
from harness.generators.generator import Value
from harness.plan import Operation, Plan
from harness.protocols import Reply
from nodes.iproto.messages import Request


class Workload(Protocol):
    """A sentence for `qsync list`, the generator of each worker, and the two directions of the client."""

    @property
    def summary(self) -> str: ...

    def generator(self, plan: Plan, worker: int) -> Generator:
        """What one worker does; drawn from the plan alone."""
        ...

    def request(self, operation: Operation, value: Value, sync: int) -> Request:
        """How the operation is said; `value` has no "@seen" left in it."""
        ...

    def completion(self, operation: Operation, value: Value, reply: Reply) -> Completion:
        """What an answer means."""
        ...

    def final_operations(self, plan: Plan, keys: list[str], owner: str) -> list[Operation]:
        """What is read when everything has settled."""
        ...
