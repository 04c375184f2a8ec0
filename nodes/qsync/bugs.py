"""Known bugs that can be switched on by name, so that a harness can be seen to find them.

A switch changes one decision at the place where it is made; with no switch on there is no trace of it.
"""

from __future__ import annotations

CONFIRM_EARLY = "confirm-early"
ACK_BEFORE_FSYNC = "ack-before-fsync"
PROMOTE_AT_ONCE = "promote-at-once"
ACK_WITHOUT_TERM = "ack-without-term"

BUGS: dict[str, str] = {
    CONFIRM_EARLY: (
        "the client is answered and the row shown before the quorum; the entry stays in the limbo and a timeout "
        "still rolls it back, so an acknowledged write is lost"
    ),
    ACK_BEFORE_FSYNC: (
        "a record counts as on disk when it is written, not when it is synced: replies and sends pass it, on every "
        "node, so a power loss of the owner loses acknowledged writes (only the simulator's disks forget)"
    ),
    PROMOTE_AT_ONCE: (
        "with elections: a PROMOTE takes effect when it is written, without a quorum of its own (as shipped in "
        "Tarantool, #9376), so two leader deaths around an unreplicated PROMOTE lose acknowledged writes"
    ),
    ACK_WITHOUT_TERM: (
        "with elections: an acknowledgement counts whatever the term of the replica is (as in Tarantool up to 2.10), "
        "so a deposed owner confirms what the replica has thrown away as rows of an old term"
    ),
}
