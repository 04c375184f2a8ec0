"""What operations come to on the wire of our nodes, and what answers mean for the history; for tests."""

from __future__ import annotations

from harness.clients.operations import Completion
from harness.clients.reply import Reply
from harness.plan.plan import Operation
from harness.systems.qsync.calls import call_of, outcome_of
from harness.workloads import Workload
from harness.workloads.completed import asked_of, completed
from nodes.iproto.messages import Call


def said(workload: Workload, operation: Operation, sync: int = 1) -> Call:
    return call_of(asked_of(workload, operation, operation.value), sync)


def answered(workload: Workload, operation: Operation, reply: Reply) -> Completion:
    asked = asked_of(workload, operation, operation.value)
    return completed(workload, operation, operation.value, asked, outcome_of(asked, reply))
