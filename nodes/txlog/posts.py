"""A POST: the report of a master to all others in every round.

`["post", 0, epoch, joins, base, index, checksum, counter, queue, strategy, masters, missing, suspects, recovering,
digests, apart, number, unheard, difference]`

| field | |
|---|---|
| epoch | how many recoveries are over |
| joins | how often parts have joined without a recovery (strategy `none`) |
| base, index, checksum | the id of the last synchronised transaction; their number; the checksum of all of them |
| counter | the own timestamp counter |
| queue | the transactions of the incoming queue whose updates the master has |
| strategy | masters with different strategies refuse each other |
| masters | all masters that the poster counts, itself included, sorted (`settings.py`) |
| missing, suspects | masters that are left out; these and the masters that the poster would leave out |
| recovering, digests | whether it waits for the digests of all masters; the masters whose digests it has |
| apart | masters whose synchronised queue contradicts the own one |
| number | life and number of this POST: a later one of the same master has a greater number |
| unheard | masters of which no POST comes straight to the poster: others pass theirs on (`relays.py`) |
| difference | base, index, checksum and entries for a master that lags, and gets no message straight; else empty |
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from nodes.txlog.refs import Ref, lists_of, refs_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    epoch: int
    joins: int
    base: str
    index: int
    checksum: int
    counter: int
    queue: tuple[Ref, ...]
    strategy: str
    masters: tuple[str, ...]
    missing: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()
    is_recovering: bool = False
    digests: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    number: tuple[int, int] = (0, 0)
    unheard: tuple[str, ...] = ()
    difference: tuple[Any, ...] = ()

    def to_message(self) -> list[Any]:
        values = {name: getattr(self, name) for name in NAMES} | {"queue": lists_of(self.queue)}
        return ["post", 0, *(list(each) if isinstance(each, tuple) else each for each in values.values())]

    @classmethod
    def from_fields(cls, fields: list[Any]) -> Post:
        values: dict[str, Any] = {
            name: tuple(each) if isinstance(each, list) else each
            for name, each in zip(NAMES, fields, strict=True)
        }
        values["queue"] = tuple(refs_of(values["queue"]))
        return cls(**values)


NAMES = tuple(field.name for field in fields(Post))
"""The fields in the order of the message."""


def heard_of(fields: list[Any]) -> tuple[tuple[int, int], tuple[str, ...]]:
    """Number and unheard masters of a POST, without its queue, which may be long."""
    *_, (life, number), unheard, _ = fields
    return (life, number), tuple(unheard)
