"""The states of a node's parts, as tables; the docs' pictures are drawn from them.

Four parts, each with its states and all changes that can happen, by the event that the node receives:

| by | the event |
|---|---|
| request | a client or an operator asked |
| rows | rows of a peer came |
| acknowledgement | a follower reported its vclock and its term |
| election | a peer reported its state in the election |
| written | a record is on disk |
| disk fails | records could not be written |
| time | a timer fired |
| link | a connection was made, refused or lost |
| peer | a peer answered on such a connection, or asked to join |
| start | the process started, and has read its log |

No code runs on these tables. `tests/nodes/qsync/test_states.py` compares them with the code in both directions: each
change that a node makes in the conversations is in a table, and each change in a table occurs in a conversation.
`docs/states.md` is drawn from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Change:
    """From one state to another, by one kind of event; `why` in the words of the drawing."""

    before: str
    by: str
    after: str
    why: str


@dataclass(frozen=True, slots=True)
class Machine:
    """A part of a node: each state with its meaning, and every change."""

    name: str
    title: str
    states: Mapping[str, str]
    changes: tuple[Change, ...]


def _changes(*rows: tuple[str, str, str, str]) -> tuple[Change, ...]:
    return tuple(
        Change(before, by, after, why) for before, kinds, after, why in rows for by in kinds.split(", ")
    )


TRANSACTION = Machine(
    name="transaction",
    title="A transaction in the queue",
    states={
        "new": "a client asks for it, or its rows come",
        "prepared": "not synchronous, and nothing waits: on its way to the disk",
        "queued": "in the queue, its lsn unknown: on its way to the disk",
        "waiting": "in the queue, its lsn known: until a quorum has it and all before it are committed",
        "confirming": "a CONFIRM that covers it is on its way to the disk",
        "committed": "visible, answered",
        "rolled back": "gone: 216, 217, or 40 and 134 if the disk failed",
    },
    changes=_changes(
        ("new", "request, rows, written, disk fails", "prepared", "asynchronous, the queue is empty"),
        ("new", "request, rows, written", "queued", "synchronous, or behind a synchronous one"),
        ("new", "peer", "queued", "a newcomer is registered"),
        ("new", "rows, written", "waiting", "its row has the lsn"),
        ("new", "rows, written", "confirming", "its CONFIRM came with it"),
        ("prepared", "written", "committed", "on disk"),
        ("prepared", "disk fails", "rolled back", "not on disk"),
        ("queued", "written", "waiting", "on disk: it has its lsn"),
        ("queued", "written", "confirming", "acknowledged before it had its lsn"),
        ("queued", "written", "committed", "all before it has committed already"),
        ("queued", "disk fails", "rolled back", "not on disk"),
        ("waiting", "acknowledgement, written, time, request", "confirming", "a quorum has it"),
        ("waiting", "rows", "confirming", "the owner sent CONFIRM"),
        ("waiting", "written", "committed", "all before it has committed, or a PROMOTE confirms it"),
        ("waiting", "written", "rolled back", "ROLLBACK, or a PROMOTE that does not cover it"),
        ("waiting", "disk fails", "rolled back", "a peer's rows are not on disk"),
        ("confirming", "written", "committed", "CONFIRM is on disk"),
        ("confirming", "disk fails", "waiting", "CONFIRM is not on disk"),
        ("confirming", "disk fails", "rolled back", "a peer's rows are not on disk"),
    ),
)

ROLE = Machine(
    name="role",
    title="The role in elections",
    states={
        "follower": "follows a leader, or waits for one",
        "candidate": "has begun a term and asks for votes",
        "leader": "has the votes of a quorum in this term",
    },
    changes=_changes(
        ("follower", "time", "candidate", "no peer sees a leader for the death timeout"),
        ("follower", "request", "candidate", "an operator promotes"),
        ("follower", "request", "leader", "its own vote is a quorum"),
        ("candidate", "election", "leader", "a quorum voted for it"),
        ("candidate", "request", "leader", "a lower quorum has voted for it"),
        ("candidate", "election, rows, acknowledgement", "follower", "a higher term, or a different leader"),
        ("candidate", "time", "follower", "promoted by request, and not elected in time"),
        ("candidate", "request", "follower", "elections are turned off"),
        ("leader", "election, rows, acknowledgement", "follower", "a higher term"),
        ("leader", "time", "follower", "fenced: no quorum of followers"),
        ("leader", "request", "follower", "demoted"),
        ("leader", "disk fails", "follower", "a leader that cannot write resigns"),
    ),
)

QUEUE = Machine(
    name="queue",
    title="The owner of the queue, at one node",
    states={
        "unclaimed": "no owner: no synchronous writes",
        "foreign": "a different node owns it and sends its rows; this node is read-only",
        "ours": "writable: owner, in the newest term, and leader if there are elections",
        "frozen": "ours, but a newer term has begun, we lead no more, or no PROMOTE came since the start",
    },
    changes=_changes(
        ("unclaimed", "start", "ours", "the log says so, and no other node can own it"),
        ("unclaimed", "start", "frozen", "the log says so"),
        ("unclaimed", "start", "foreign", "the log says so"),
        ("unclaimed", "written", "ours", "our PROMOTE takes effect"),
        ("unclaimed", "written", "foreign", "a foreign PROMOTE takes effect"),
        ("unclaimed", "request", "ours", "2.6: we write first"),
        ("unclaimed", "rows", "foreign", "2.6: a different node writes first"),
        ("foreign", "written", "ours", "our PROMOTE takes effect"),
        ("foreign", "written", "unclaimed", "its DEMOTE takes effect"),
        ("foreign", "request", "ours", "2.6: we write to an empty queue"),
        ("ours", "rows", "foreign", "2.6: a different node writes to an empty queue"),
        ("ours", "rows, election, acknowledgement", "frozen", "a higher term"),
        ("ours", "time", "frozen", "fenced"),
        ("ours", "request", "frozen", "we begin a term, to demote"),
        ("ours", "disk fails", "frozen", "we lead no more"),
        ("frozen", "written", "ours", "our PROMOTE takes effect"),
        ("frozen", "written", "foreign", "a foreign PROMOTE takes effect"),
        ("frozen", "written", "unclaimed", "our DEMOTE takes effect"),
    ),
)

APPLIER = Machine(
    name="applier",
    title="The applier of one peer",
    states={
        "off": "no connection",
        "connecting": "calling",
        "asking": "VOTE sent, because we have to join",
        "joining": "receiving all its data",
        "subscribing": "SUBSCRIBE sent",
        "following": "receives rows, sends acknowledgements",
        "stopped": "its history contradicts ours: until the node restarts",
    },
    changes=_changes(
        ("off", "start, time", "connecting", "the beat"),
        ("connecting", "link", "off", "connection refused"),
        ("connecting", "link", "asking", "connected, and we have to join"),
        ("connecting", "link", "subscribing", "connected"),
        ("asking", "peer", "joining", "it can be joined"),
        ("asking", "peer", "subscribing", "the missing rows came from a different peer"),
        ("asking", "peer, link, time", "off", "it cannot be joined; lost; silent"),
        ("joining", "peer, link, time", "off", "refused; lost; silent"),
        ("subscribing", "peer", "following", "accepted"),
        ("subscribing", "peer, link, time", "off", "refused; lost; silent"),
        ("subscribing", "disk fails", "off", "rows must be asked for again"),
        ("following", "link, time", "off", "lost; silent for four heartbeats"),
        ("following", "peer", "off", "refused"),
        ("following", "election", "off", "an election message that no peer may send"),
        ("following", "rows", "off", "a gap"),
        ("following", "disk fails", "off", "rows must be asked for again"),
        ("following", "rows", "stopped", "split-brain"),
    ),
)

MACHINES = (TRANSACTION, ROLE, QUEUE, APPLIER)


def mermaid(machine: Machine) -> str:
    """The picture of one part: an arrow for each pair of states, with all that leads along it."""
    short = {state: state.replace(" ", "_") for state in machine.states}
    arrows: dict[tuple[str, str], list[str]] = {}
    for change in machine.changes:
        words = arrows.setdefault((change.before, change.after), [])
        if change.why not in words:
            words.append(change.why)
    lines = ["stateDiagram-v2"]
    lines += [f'    state "{state}" as {name}' for state, name in short.items() if state != name]
    lines += [
        f"    {short[before]} --> {short[after]} : {_label(words)}"
        for (before, after), words in arrows.items()
    ]
    return "\n".join(lines)


def _label(words: list[str]) -> str:
    """A label ends at a colon or a semicolon."""
    return " / ".join(words).replace(":", " –").replace(";", ",")


def page() -> str:
    """`docs/states.md`: pictures and tables."""
    parts = [_HEAD]
    for machine in MACHINES:
        rows = "\n".join(f"| {state} | {meaning} |" for state, meaning in machine.states.items())
        changes = "\n".join(
            f"| {change.before} | {change.by} | {change.after} | {change.why} |" for change in machine.changes
        )
        parts.append(
            f"## {machine.title}\n\n```mermaid\n{mermaid(machine)}\n```\n\n| state | means |\n|---|---|\n{rows}\n\n"
            f"<details><summary>every change</summary>\n\n| from | by | to | why |\n|---|---|---|---|\n{changes}\n\n"
            "</details>\n"
        )
    return "\n".join(parts)


_HEAD = """# States of a node

Drawn from the tables in `nodes/qsync/states.py`. `tests/nodes/qsync/test_states.py` plays every conversation of
`tests/conversations` and compares. The test fails if a node makes a change that is missing here, and if no
conversation shows a change that is here. This command writes the page:

    QSYNC_REWRITE=1 ./qsync test tests/nodes/qsync/test_states.py
"""
