"""Triggers in the simulator: faults that begin when a node does something wait for them.

The simulator reports every record and message to its listener, which is set only while a fault waits. The trigger of
a record that was synced fires on the spot, before anything behind the record has left. All other triggers fire at the
same virtual time, behind what is due then already: the node is in the middle of a step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.cluster.sim.virtual_tasks import Pending
from harness.faults.fault import Moment
from nodes.world.network import Pair
from nodes.world.world import World


@dataclass(slots=True, eq=False)
class Waiting:
    moment: Moment
    left: int
    """How many more times it must occur."""
    came: Pending[str]


class Moments:
    def __init__(self, world: World, kinds_of: Callable[[object], tuple[str, ...]]) -> None:
        self._world = world
        self._kinds_of = kinds_of
        self._waiting: list[Waiting] = []
        self._asked = frozenset[str]()
        """The `does` of all moments that are waited for: "sends", "gets", "writes", "wrote"."""
        world.network.kinds_of = kinds_of

    def wait(self, moment: Moment) -> Pending[str]:
        """Resolved with the node's name when it has occurred."""
        waiting = Waiting(moment, moment.nth, Pending())
        self._waiting.append(waiting)
        self._listen()
        return waiting.came

    def _listen(self) -> None:
        self._asked = frozenset(waiting.moment.does for waiting in self._waiting)
        self._world.network.on_message = self._message if self._asked & {"sends", "gets"} else None
        on_record = self._record if self._asked & {"writes", "wrote"} else None
        for machine in self._world.machines.values():
            machine.records.on_record = on_record

    def _record(self, does: str, node: str, record: str) -> None:
        self._came(does, node, (record,))

    def _message(self, does: str, pair: Pair, message: object) -> None:
        if does in self._asked:
            self._came(does, pair[0] if does == "sends" else pair[1], self._kinds_of(message))

    def _came(self, does: str, node: str, kinds: tuple[str, ...]) -> None:
        for waiting in list(self._waiting):
            moment = waiting.moment
            if moment.does != does or moment.what not in kinds or moment.node not in ("", node):
                continue
            waiting.left -= 1
            if waiting.left > 0:
                continue
            self._waiting.remove(waiting)
            self._listen()
            if does == "wrote" and moment.after_ns == 0:
                waiting.came.resolve(node)
            else:
                self._world.agenda.after(moment.after_ns, waiting.came.resolve, node)
