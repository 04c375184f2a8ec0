"""The table of sequential models, by the name that a workload or `--model` gives."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from checkers.linearizable.containers import PriorityQueue, Queue, Stack, UnorderedQueue
from checkers.linearizable.locks import Mutex
from checkers.linearizable.models import Model, Register
from checkers.linearizable.objects import Appended, Counter, GrowingSet, KeyValue, MultiRegister

MODELS: dict[str, Callable[..., Model]] = {
    "register": Register,
    "cas-register": Register,
    "multi-register": MultiRegister,
    "kv": KeyValue,
    "counter": Counter,
    "set": GrowingSet,
    "queue": Queue,
    "unordered-queue": UnorderedQueue,
    "stack": Stack,
    "priority-queue": PriorityQueue,
    "list": Appended,
    "mutex": Mutex,
    **{
        name: partial(
            Mutex, name=name, has_owner=True, is_reentrant="reentrant" in name, is_fenced="fenced" in name
        )
        for name in ("owner-aware-mutex", "reentrant-mutex", "fenced-mutex", "reentrant-fenced-mutex")
    },
}
