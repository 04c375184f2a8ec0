"""Damage: processes are killed, and a log of theirs is torn, cut off or changed before they are started again.

If damage may only be detected, a node may refuse to start. It is then started once more from the files as they were
before.
"""

from __future__ import annotations

from harness.faults.action import Action, Draw, Fields, Kind, Situation, leader_or_one
from harness.faults.fault import Damage as What
from harness.faults.fault import Evidence, Fault
from harness.faults.hands import AtWork, Hands
from harness.faults.power import Spoilt
from harness.faults.where import REAL, SIM, no

LIKE_POWER = no(SIM, "power losses tear the ends of virtual logs")
STAYS = no(SIM, "what is synced on a virtual disk stays")


class RealDamage(Spoilt):
    """Took effect if the processes were seen dead and at least one file was damaged."""

    async def begin(self) -> None:
        await super().begin()
        for node in self.fault.nodes:
            await self._damage(node)

    async def end(self) -> Evidence:
        self.heal_asked_ns = self.hands.now_ns()
        healed = await self.each(self.revive)
        names = ("disks_damaged", "bytes_damaged", "refused_to_start")
        counters = {name: self.counts[name] for name in names}
        return self.evidence(self.all_seen and self.counts["disks_damaged"] > 0, healed, counters)

    async def _damage(self, node: str) -> None:
        disk = self.disks[node]
        await disk.save()  # before the damage: a node that refuses the damaged log is started on this
        size = await disk.damage(self.fault.damage, self.fault.logs, f"{self.fault.seed} {node}")
        self.counts["bytes_damaged"] += size
        self.counts["disks_damaged"] += size > 0
        if not size:
            self.details.append(f"{node} has no log that is long enough to be damaged")

    async def revive(self, node: str) -> bool | None:
        if self.fault.damage == "torn-tail":
            # Nothing that was safely written is gone: a node that refuses that has crashed.
            return await super().revive(node)
        with self.processes.may_refuse(node) as last_words:
            up = await super().revive(node)
            if up is not False or not await self.has_ended(node, last_words):
                return up
        return await self.once_more(node, last_words)


def damaged(what: What) -> Draw:
    def draw(situation: Situation) -> Fields:
        return {**leader_or_one(situation), "damage": what, "logs": situation.logs}

    return draw


class Damage(Action):
    """The processes of `nodes` are killed, one of their `logs` (patterns of names) gets the `damage`, and they are
    started again at the end; from undamaged files if they refuse damage that they need not survive."""

    does = "damage"
    kinds = (
        Kind(
            name="torn-tail",
            group="damage",
            summary="killed in the middle of a write: half a record ends a log",
            draw=damaged("torn-tail"),
            where=REAL | LIKE_POWER,
        ),
        Kind(
            name="truncated-tail",
            group="damage",
            summary="killed, and the end of the log is gone, synced or not",
            draw=damaged("truncated-tail"),
            where=REAL | STAYS,
            must="detect",
            ability="lost records",
        ),
        Kind(
            name="bit-flip",
            group="damage",
            summary="killed, and a bit in the middle of the log is flipped",
            draw=damaged("bit-flip"),
            where=REAL | STAYS,
            must="detect",
            ability="lost records",
        ),
    )
    fields = ("nodes", "damage")
    ability = "torn logs"
    stops_processes = True
    is_of_disks = True
    recovers_slowly = True

    def real(self, fault: Fault, hands: Hands) -> AtWork:
        return RealDamage(fault, hands)
