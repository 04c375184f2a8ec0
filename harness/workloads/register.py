"""Registers: reads, writes and compare-and-set on several keys of one synchronous space.

Every written value is unique (a number per worker and count), so that a read tells which write it saw. A
compare-and-set expects what its worker last saw under the key ("@seen"): often right, often outrun. The set of keys
moves on every few seconds, which bounds the history of one key and with it what a checker has to search.

Most operations go to the owner; a share of the reads goes to replicas, where less is promised.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.clients.answers import failure_of, refusal_completion
from harness.clients.completion import Completion
from harness.errors import WrongUse
from harness.generators import Context, Draft, Each, Generator, Mix, Stagger, Until
from harness.generators.generator import Value
from harness.plan import SECOND_NS, SEEN, WORKERS_MAX, Operation, Plan
from harness.protocols import Replied, Reply
from nodes.iproto.messages import Answer, Call, Request

SPACE = "register"
KEYS = 5
EPOCH_NS = 4 * SECOND_NS


@dataclass(frozen=True, slots=True)
class Register:
    summary: str = "reads, writes and compare-and-set on several keys of a synchronous space"

    def generator(self, plan: Plan, worker: int) -> Generator:
        def write(context: Context, count: int) -> Draft:
            return Draft("write", _key(context), _unique(worker, 2 * count))

        def cas(context: Context, count: int) -> Draft:
            return Draft("cas", _key(context), (SEEN, _unique(worker, 2 * count + 1)))

        def read(context: Context, _: int) -> Draft:
            elsewhere = plan.nodes > 1 and context.chance.random() < plan.replica_reads
            return Draft(
                "read", _key(context), node="@replica" if elsewhere else "@owner", mode=plan.read_mode
            )

        mix = Mix(((0.45, Each(read)), (0.35, Each(write)), (0.2, Each(cas))))
        mean_ns = int(plan.workers / plan.rate * SECOND_NS)
        return Until(Stagger(mix, mean_ns), plan.time_limit_ns)

    def request(self, operation: Operation, value: Value, sync: int) -> Request:
        match operation.f, operation.key, value:
            case "read", str(key), _:
                statement: list[object] = ["get", SPACE, key]
            case "write", str(key), int():
                statement = ["replace", SPACE, [key, value]]
            case "cas", str(key), (old, new):
                statement = ["cas", SPACE, key, old, new]
            case "dump", _, _:
                return Call(sync, "qsync.dump", ())
            case f, key, _:
                raise WrongUse(f"the workload register has no {f!r} of key {key!r} with value {value!r}")
        options = {"read": operation.mode} if operation.mode else {}
        return Call(sync, "qsync.transaction", ([statement], options))

    def completion(self, operation: Operation, value: Value, reply: Reply) -> Completion:
        is_read = operation.f in ("read", "dump")
        match reply:
            case Replied(Answer(_, (dict() as answer,))):
                return _answered(operation, value, answer)
            case Replied(Answer() as answer):
                return Completion(
                    "fail" if is_read else "info", error=f"unexpected answer {answer.data!r}"[:200]
                )
            case Replied(refusal):
                return refusal_completion(refusal, is_read=is_read)
            case _:
                return failure_of(reply, is_read=is_read)

    def final_operations(self, plan: Plan, keys: list[str], owner: str) -> list[Operation]:
        mode = "linearizable" if plan.has_elections else "read-confirmed"
        return [Operation(at_ns=0, worker=0, f="read", key=key, node=owner, mode=mode) for key in keys]


def _key(context: Context) -> str:
    """A key of the present set."""
    return f"{SPACE[0]}{context.time_ns // EPOCH_NS}-{context.chance.randrange(KEYS)}"


def _unique(worker: int, count: int) -> int:
    """Of this worker alone: how many others there are must not change what it writes."""
    return 1 + worker + WORKERS_MAX * count


def _answered(operation: Operation, value: Value, answer: dict[object, object]) -> Completion:
    role = answer.get("role")
    role = role if isinstance(role, str) else None
    match answer:
        case {"spaces": dict()}:
            return Completion("ok", {"spaces": answer["spaces"]})
        case {"committed": False, "mismatch": _}:
            return Completion("fail", value, "mismatch", role)
        case {"committed": True, "results": [[_, None | int() as found]]} if operation.f == "read":
            return Completion("ok", found, None, role)
        case {"committed": True, "results": [None]} if operation.f == "read":
            return Completion("ok", None, None, role)
        case {"committed": True} if operation.f in ("write", "cas"):
            return Completion("ok", value, None, role)
    is_read = operation.f in ("read", "dump")
    return Completion("fail" if is_read else "info", None, f"unexpected answer {answer!r}"[:200], role)
