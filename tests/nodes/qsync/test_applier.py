"""What an applier forgets when its link ends."""

from __future__ import annotations

from nodes.qsync.applier import Applier


def test_the_id_of_a_peer_is_forgotten_with_its_link() -> None:
    """If it failed, a peer that left would be taken for the member that has its id by now, and that one for none."""
    applier = Applier("n4", 4, answered_id=4, state="following", link=7)
    applier.turn_off()
    assert (applier.answered_id, applier.state, applier.link) == (0, "off", -1)
