"""The kinds of messages between nodes, in the words that people steer a run by ("hold every PROMOTE to n3").

| kind | messages |
|---|---|
| promote, demote, confirm, rollback | rows that carry one |
| row | rows of transactions |
| ack | acknowledgements |
| raft | what a node says of its election |
| candidate, vote, leader | of these: that it stands for election, that it has voted in this term, that it leads |
| heartbeat, subscribe, join | as they are called |
| joined | what a joining node is given |
"""

from __future__ import annotations

from nodes.iproto.messages import (
    Ack,
    Heartbeat,
    Join,
    JoinMeta,
    JoinSnapshot,
    RaftState,
    Rows,
    Stage,
    Subscribe,
    Type,
)

KINDS = (
    "row",
    "promote",
    "demote",
    "confirm",
    "rollback",
    "ack",
    "raft",
    "candidate",
    "vote",
    "leader",
    "heartbeat",
    "subscribe",
    "join",
    "joined",
)
_CONTROL = {
    Type.CONFIRM.value: "confirm",
    Type.ROLLBACK.value: "rollback",
    Type.PROMOTE.value: "promote",
    Type.DEMOTE.value: "demote",
}
_STATES = {2: "candidate", 3: "leader"}


def kinds_of(message: object) -> tuple[str, ...]:
    """All kinds that a message is of; none for what clients and nodes say to each other."""
    match message:
        case Rows(rows):
            return tuple(dict.fromkeys(_CONTROL.get(row.type, "row") for row in rows))
        case Ack():
            return ("ack",)
        case RaftState():
            state = _STATES.get(message.state)
            return ("raft", *((state,) if state else ()), *(("vote",) if message.vote else ()))
        case Heartbeat():
            return ("heartbeat",)
        case Subscribe():
            return ("subscribe",)
        case Join():
            return ("join",)
        case JoinMeta() | JoinSnapshot() | Stage():
            return ("joined",)
    return ()
