"""Loss: packets are dropped."""

from __future__ import annotations

from harness.faults.action import Action, Fields, Kind, Situation
from harness.faults.fault import Fault
from harness.faults.hands import AtWork, Hands
from harness.faults.shaped import slow
from harness.faults.where import DOCKER, LOCAL, SIM, SSH, no

NO_LOSS = no(
    LOCAL | SSH, "the relay may drop no byte of a live connection: that would be corruption, not loss"
) | no(SIM, "a virtual stream loses bytes only when its connection dies, as TCP's do")


def lossy(situation: Situation) -> Fields:
    """All links of one node, or all links; 30 % is where TCP still gets through."""
    return {"links": slow(situation)["links"], "percent": 30}


class Loss(Action):
    """`percent` of the packets on the directed `links` are dropped."""

    does = "loss"
    kinds = (
        Kind(
            name="loss",
            group="loss",
            summary="three packets of ten are lost",
            draw=lossy,
            where=DOCKER | NO_LOSS,
            nodes_min=2,
        ),
    )
    fields = ("links", "percent")
    packets = "filtered"

    def real(self, fault: Fault, hands: Hands) -> AtWork:
        return hands.links.lose(fault)
