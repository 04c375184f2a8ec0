"""The table of sequential models, by the name that a workload or `--model` gives."""

from __future__ import annotations

from collections.abc import Callable

from checkers.linearizable.models import Model, Register
from checkers.linearizable.objects import Appended, Counter, GrowingSet, KeyValue, MultiRegister, Queue

MODELS: dict[str, Callable[..., Model]] = {
    "register": Register,
    "cas-register": Register,
    "multi-register": MultiRegister,
    "kv": KeyValue,
    "counter": Counter,
    "set": GrowingSet,
    "queue": Queue,
    "list": Appended,
}
