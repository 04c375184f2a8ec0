"""The kinds of messages between nodes, in the words of an operator who steers a run ("hold every PROMOTE to n3").

| kind | messages |
|---|---|
| promote, demote, confirm, rollback | rows that carry one |
| row | rows of transactions |
| ack | acknowledgements |
| raft | a node's report of its election |
| candidate, vote, leader | such reports: it stands for election, it has voted in this term, it leads |
| heartbeat, subscribe, join | the messages of these names |
| joined | the data for a joining node |
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

_CONTROL = {
    Type.PROMOTE.value: "promote",
    Type.DEMOTE.value: "demote",
    Type.CONFIRM.value: "confirm",
    Type.ROLLBACK.value: "rollback",
}
_STATES = {2: "candidate", 3: "leader"}
_OTHERS = ("heartbeat", "subscribe", "join", "joined")
KINDS = ("row", *_CONTROL.values(), "ack", "raft", "candidate", "vote", "leader", *_OTHERS)


def kinds_of(message: object) -> tuple[str, ...]:
    """All kinds of a message; none for one that the table lacks, such as a client's or the answer to a SUBSCRIBE."""
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
