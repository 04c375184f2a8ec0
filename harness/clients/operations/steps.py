"""The steps of a transaction. A step observes the effects of the steps before it.

| step | does | result |
|---|---|---|
| Read(space, key) | | the value under the key, None if there is none |
| Scan(space, first, below) | | all (key, value) with first ≤ key < below, in key order; None: no bound |
| Insert(space, key, value) | fails ("duplicate-key") if the key is there | not looked at |
| Write(space, key, value) | | not looked at |
| Delete(space, key) | takes the value away; changes nothing if there is none | whether there was one |
| Cas(space, key, old, new) | the value becomes `new` if it is `old` (None: no value), else `Mismatch` | not looked at |
| Append(space, key, element) | puts it at the end of the list that is the value | not looked at |
| Take(space, key) | takes the first element off that list | the element; None: the list is empty |
| Add(space, key, amount, least) | value (none: 0) + amount; `Mismatch` if that is less than `least` | the sum |

Keys are strings or integers. Values are integers, strings, None, or lists of them.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from harness.clients.operations.members import MemberChange

Effect = Literal["reads", "writes", "both"]
Key = str | int


class Read(msgspec.Struct, frozen=True, gc=False):
    effect: ClassVar[Effect] = "reads"
    space: str
    key: Key


class Scan(msgspec.Struct, frozen=True, gc=False):
    effect: ClassVar[Effect] = "reads"
    space: str
    first: Key | None
    below: Key | None


class Insert(msgspec.Struct, frozen=True, gc=False):
    effect: ClassVar[Effect] = "writes"
    space: str
    key: Key
    value: object


class Write(msgspec.Struct, frozen=True, gc=False):
    effect: ClassVar[Effect] = "writes"
    space: str
    key: Key
    value: object


class Delete(msgspec.Struct, frozen=True, gc=False):
    effect: ClassVar[Effect] = "both"
    space: str
    key: Key


class Cas(msgspec.Struct, frozen=True, gc=False):
    effect: ClassVar[Effect] = "both"
    space: str
    key: Key
    old: object
    new: object


class Append(msgspec.Struct, frozen=True, gc=False):
    effect: ClassVar[Effect] = "writes"
    space: str
    key: Key
    element: object


class Take(msgspec.Struct, frozen=True, gc=False):
    effect: ClassVar[Effect] = "both"
    space: str
    key: Key


class Add(msgspec.Struct, frozen=True, gc=False):
    effect: ClassVar[Effect] = "both"
    space: str
    key: Key
    amount: object
    least: int | None = None


Step = Read | Scan | Insert | Write | Delete | Cas | Append | Take | Add
STEPS: tuple[type[Step], ...] = (Read, Scan, Insert, Write, Delete, Cas, Append, Take, Add)


class Transaction(msgspec.Struct, frozen=True, gc=False):
    """Steps that happen together or not at all. `mode`: the read mode, `wait`: the commit wait mode; None: the store's
    own."""

    steps: tuple[Step, ...]
    mode: str | None = None
    wait: str | None = None

    @property
    def is_read(self) -> bool:
        """It can change nothing: whatever went wrong, it has surely not happened."""
        return all(step.effect == "reads" for step in self.steps)


class Dump(msgspec.Struct, frozen=True, gc=False):
    """All that is confirmed on one node: {"spaces": {space: [[key, value], …]}}."""

    is_read: ClassVar[bool] = True


class RestoredCut(msgspec.Struct, frozen=True, gc=False):
    """No request: a client speaks it if second clusters of its store can begin from a cut."""


Asked = Transaction | Dump | MemberChange
