"""Machines, network and time put together: a virtual world in which a cluster lives."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import partial

from nodes.kernel.chance import Streams
from nodes.kernel.node import Node
from nodes.kernel.outbox import Durability
from nodes.kernel.trace import Described, Row, Tracer
from nodes.world.agenda import Agenda
from nodes.world.machine import Machine
from nodes.world.network import Codec, Network


class World:
    """One virtual world, entirely decided by its seed and by what is done to it.

    `record_trace` keeps every event of every node as one line, for people and for the promise that the same seed
    gives the same trace, byte for byte.
    """

    def __init__(
        self,
        seed: int,
        makers: Mapping[str, Callable[[], Node]],
        *,
        durability: Durability = "synced",
        codec: Codec | None = None,
        record_trace: bool = False,
        described: Described | None = None,
    ) -> None:
        """`described` says which messages go between nodes: they are recorded in `messages`."""
        self.streams = Streams(seed)
        self.agenda = Agenda()
        self.network = Network(self.agenda, self.streams, codec)
        self.machines = {
            name: Machine(name, make, self.agenda, self.network, self.streams, durability)
            for name, make in makers.items()
        }
        self.trace: list[str] = []
        self.messages: dict[str, list[list[Row]]] = {name: [] for name in makers}
        """Node → for each of its lives the rows of `nodes.kernel.trace`."""
        for machine in self.machines.values():
            self.network.add(machine)
            if record_trace:
                machine.trace = self._note
            if described is not None:
                machine.tracing = partial(self._tracer, machine, described)
        self.network.is_up = self._is_up
        if record_trace:
            self.network.trace = self._note

    def _tracer(self, machine: Machine, described: Described, life: int) -> Tracer:
        rows: list[Row] = []
        self.messages[machine.name].append(rows)
        wall_ns = machine.clock.read(self.agenda.now_ns).wall_ns
        return Tracer(machine.name, life, wall_ns, described, lambda: self.agenda.now_ns, rows.append)

    def _is_up(self, name: str) -> bool:
        machine = self.machines.get(name)
        return machine is None or machine.state != "down"

    def _note(self, line: str) -> None:
        self.trace.append(f"{self.agenda.now_ns} {line}")

    def trace_digest(self) -> str:
        """SHA-256 over the trace's lines."""
        digest = hashlib.sha256()
        for line in self.trace:
            digest.update(line.encode())
            digest.update(b"\n")
        return digest.hexdigest()
