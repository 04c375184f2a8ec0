"""How a cut is named: in the marker of a message, and in the sign of a transaction.

| variant | cut | marker | sign |
|---|---|---|---|
| `shipped` | the id of the request | id, number, topology's version | the running cut's id, None if none runs |
| `seed-counter` | its number | number | the number of the newest cut, None before the first |
| `seed-colour` | its number | colour, number | both, of the newest cut; white for odd numbers, else red |

Behind these fields every marker has the cut's timestamp, which START records: a restore can choose a cut by its time.

The seed design signs with the colour alone. That is not enough if a cut fails before every node has changed its
colour: a node two cuts behind has the colour of the newest cut.

A transaction is on the side AFTER if its sign says so, or, as shipped, if its topology is newer than the cut's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from nodes.twophase.configuration import Variant as Name

NO_VERSION = -1


@dataclass(frozen=True, slots=True)
class Named:
    """A cut as a message names it. `version` is that of the topology when it began, NO_VERSION if it is not known.
    `time_ns`: its timestamp, greater than those of all cuts before it."""

    id: str
    number: int
    version: int = NO_VERSION
    time_ns: int = 0


class Variant(Protocol):
    def named(self, request: str, number: int, version: int, time_ns: int) -> Named:
        """The cut that an entry of the discovery log began."""
        ...

    def marker(self, cut: Named) -> object:
        """The marker that messages carry while the cut runs."""
        ...

    def cut_of(self, marker: Any) -> Named: ...

    def sign(self, newest: Named | None, is_running: bool) -> object:
        """The sign of a transaction that commits now."""
        ...

    def is_after(self, sign: object, version: int, cut: Named) -> bool:
        """Whether a transaction with this sign, mapped on this topology, does not belong to the cut."""
        ...


class Shipped:
    def named(self, request: str, number: int, version: int, time_ns: int) -> Named:
        return Named(request, number, version, time_ns)

    def marker(self, cut: Named) -> object:
        return [cut.id, cut.number, cut.version, cut.time_ns]

    def cut_of(self, marker: Any) -> Named:
        return Named(*marker)

    def sign(self, newest: Named | None, is_running: bool) -> object:
        return newest.id if newest is not None and is_running else None

    def is_after(self, sign: object, version: int, cut: Named) -> bool:
        return sign == cut.id or version > cut.version


class Counter:
    def named(self, request: str, number: int, version: int, time_ns: int) -> Named:
        return Named(str(number), number, NO_VERSION, time_ns)

    def marker(self, cut: Named) -> object:
        return [cut.number, cut.time_ns]

    def cut_of(self, marker: Any) -> Named:
        number, time_ns = marker[-2:]
        return self.named("", number, NO_VERSION, time_ns)

    def sign(self, newest: Named | None, is_running: bool) -> object:
        return newest.number if newest is not None else None

    def is_after(self, sign: object, version: int, cut: Named) -> bool:
        return isinstance(sign, int) and sign >= cut.number


class Colour(Counter):
    def _colour(self, cut: Named) -> str:
        return "white" if cut.number % 2 else "red"

    def marker(self, cut: Named) -> object:
        return [self._colour(cut), cut.number, cut.time_ns]

    def sign(self, newest: Named | None, is_running: bool) -> object:
        return [self._colour(newest), newest.number] if newest is not None else None

    def is_after(self, sign: object, version: int, cut: Named) -> bool:
        return sign == self.sign(cut, True)


VARIANTS: dict[Name, Variant] = {"shipped": Shipped(), "seed-counter": Counter(), "seed-colour": Colour()}
