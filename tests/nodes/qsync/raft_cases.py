"""Plays a case of Tarantool's unit test of Raft over one `Election`, with a journal, a network and a clock in hand.

| line | |
|---|---|
| `raft quorum=3 members=31 election_timeout=5 death_timeout=5 mode=candidate` | node 1 alone, in term 1 |
| `next event`, `run 2.5s`, `mark` | to the next timer; time passes, timers fire; time counts from here |
| `n2 votes for n1 in term 2 [seeing the leader]`, `n2 asks in term 2 with {1: 4}` | what a peer says |
| `n2 leads in term 2`, `n2 follows in term 2 [seeing the leader]`, `heartbeat of n2` | |
| `n2 says state 0 in term 10 [vote 3] [with {…}], and is refused` | what no peer may say |
| `log blocks`, `log goes on`, `rows of n1: 5` | the journal writes, or does not; rows of data came |
| `n2 is lost`, `connected 1` | a connection; how many members are connected, with this node |
| `set quorum 5`, `set members 2`, `set election_timeout 10`, `set death_timeout 10`, `set mode voter` | options |
| `promote`, `resign`, `new term`, `restart` | |
| `leader n2, follower in term 2, vote n1` | who leads, its state, what is on disk (`no leader`, `no vote`) |
| `wants term 3, vote n1` | what it will write |
| `votes 2`, `last row term 2, vote n1`, `rows 1` | votes for itself; its journal |
| `tells leader in term 2, vote n1`, `tells nothing` | to all, since `listen` (also `something`) |
| `would tell follower in term 2, vote n1` | to one that is new |
| `elapsed >= 5`, `timer < 5`, `idle 2.5` | seconds since `mark`, until the next timer, since the leader was heard |
| `no timer` | none runs |
| `LINE => LINE; LINE` | several lines |

Of vclocks the component 0 is not looked at: the original writes a term and a vote in two records, our nodes in one.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nodes.iproto.messages import RaftState
from nodes.qsync.decisions import Decisions
from nodes.qsync.election import CANDIDATE, FOLLOWER, LEADER, STATE_NAMES, Election, flaw
from nodes.qsync.exact_election import ExactElection
from tests.nodes.qsync.tarantool_cases import Wrong

SECOND_NS = 1_000_000_000
TOLERANCE_NS = SECOND_NS // 1000
ALL = 31
"""More than any quorum: all are connected, and follow."""
_RELATIONS: Mapping[str, Callable[[int, int], bool]] = {
    "=": lambda found, value: abs(found - value) <= TOLERANCE_NS,
    "<": lambda found, value: found < value,
    "<=": lambda found, value: found <= value + TOLERANCE_NS,
    ">=": lambda found, value: found >= value - TOLERANCE_NS,
}


@dataclass
class RaftPlay:
    """Node 1 and its surroundings."""

    now_ns: int = 0
    mark_ns: int = 0
    term: int = 1
    vote: int = 0
    """What the journal holds."""
    rows: int = 0
    vclock: dict[int, int] = field(default_factory=dict)
    connected: int = ALL
    unwritten: list[tuple[int, int]] = field(default_factory=list)
    is_blocked: bool = False
    told: list[RaftState] = field(default_factory=list)

    def play(self, lines: Sequence[str]) -> None:
        for line in lines:
            try:
                self.happen(line)
            except Wrong as wrong:
                raise Wrong(f"{line}: {wrong}") from None

    def happen(self, line: str) -> None:
        if "=>" in line:
            for part in re.split(" => |; ", line):
                self.happen(part)
            return
        for pattern, verb in _LINES:
            found = re.fullmatch(pattern, line)
            if found is not None:
                verb(self, **{name: value or "" for name, value in found.groupdict().items()})
                return
        raise ValueError(f"not a line of a case: {line!r}")

    def raft(self, options: str) -> None:
        given = dict(word.split("=") for word in options.split())
        self.is_exact = given.get("elections") == "exact"
        self.mode: Any = given.get("mode", "candidate")
        self.quorum, self.members = int(given.get("quorum", 3)), int(given.get("members", ALL))
        self.election_ns = int(float(given.get("election_timeout", 5)) * SECOND_NS)
        self.death_ns = int(float(given.get("death_timeout", 5)) * SECOND_NS)
        self.start()

    def start(self) -> None:
        kind = ExactElection if self.is_exact else Election
        self.election = kind(
            me=1,
            mode=self.mode,
            fencing="off",
            quorum=self.quorum,
            members=self.members,
            election_timeout_ns=self.election_ns,
            death_timeout_ns=self.death_ns,
            chance=random.Random(1),
            decisions=Decisions(),
        )
        self.unwritten.clear()
        self.election.started(self.term, self.vote, self.now_ns)
        self.election.note_health(self.connected, self.now_ns)
        self.settle()

    def settle(self) -> None:
        """Write what is to be written, then tell what is to be told."""
        election = self.election
        if election.must_write:
            election.must_write = False
            self.unwritten.append((election.term, election.vote))
        if self.is_blocked:
            return
        if self.unwritten:
            self.term, self.vote = self.unwritten[-1]
            self.rows += len(self.unwritten)
            self.unwritten.clear()
            election.written(self.now_ns)
            if election.must_write:
                self.settle()
                return
        if election.must_tell:
            self.told.append(election.said_to_all(self.vclock, self.now_ns))

    def tick(self) -> None:
        self.election.tick(self.now_ns, self.connected, ALL)
        self.settle()

    # ---- time

    def next_event(self) -> None:
        wake_ns = self.election.wake_ns()
        if wake_ns is None:
            raise Wrong("no timer runs")
        self.now_ns = max(wake_ns, self.now_ns)
        self.tick()

    def run(self, seconds: str) -> None:
        until_ns = self.now_ns + int(float(seconds) * SECOND_NS)
        while (wake_ns := self.election.wake_ns()) is not None and wake_ns <= until_ns:
            before = (self.now_ns, self.election.term, self.election.state)
            self.now_ns = max(wake_ns, self.now_ns)
            self.tick()
            if before == (self.now_ns, self.election.term, self.election.state):
                self.now_ns += SECOND_NS // 1000
        self.now_ns = max(until_ns, self.now_ns)
        self.tick()

    def mark(self) -> None:
        self.mark_ns = self.now_ns

    # ---- what peers say

    def hear(self, message: RaftState) -> None:
        why = flaw(message)
        if why is not None:
            raise Wrong(why)
        self.election.heard(message.replica_id, self.now_ns)
        self.election.receive(message, self.vclock, self.now_ns)
        self.settle()

    def votes_for(self, source: str, choice: str, term: str, seeing: str) -> None:
        self.hear(RaftState(int(source), int(term), int(choice), FOLLOWER, 0, bool(seeing)))

    def asks(self, source: str, term: str, vclock: str) -> None:
        self.hear(RaftState(int(source), int(term), int(source), CANDIDATE, 0, False, _numbers(vclock)))

    def leads(self, source: str, term: str) -> None:
        self.hear(RaftState(int(source), int(term), 0, LEADER, int(source), False))

    def follows(self, source: str, term: str, seeing: str) -> None:
        self.hear(RaftState(int(source), int(term), 0, FOLLOWER, 0, bool(seeing)))

    def says(self, source: str, state: str, term: str, vote: str, vclock: str) -> None:
        known = _numbers(vclock) if vclock else None
        message = RaftState(int(source), int(term), int(vote or 0), int(state), 0, False, known)
        if flaw(message) is None:
            raise Wrong("it is taken in")

    def is_lost(self, source: str) -> None:
        self.election.lost(int(source), self.now_ns)
        self.settle()

    def is_connected(self, count: str) -> None:
        self.connected = int(count)
        self.election.note_health(self.connected, self.now_ns)
        self.settle()

    def heartbeat(self, source: str) -> None:
        self.election.heard(int(source), self.now_ns)

    # ---- what is done to the node

    def block(self) -> None:
        self.is_blocked = True

    def unblock(self) -> None:
        self.is_blocked = False
        self.settle()

    def data(self, origin: str, count: str) -> None:
        self.vclock[int(origin)] = self.vclock.get(int(origin), 0) + int(count)

    def option(self, name: str, value: str) -> None:
        match name:
            case "quorum":
                self.quorum = int(value)
                self.election.set_quorum(self.quorum, self.now_ns)
            case "members":
                self.members = self.election.members = int(value)
                self.election.set_quorum(self.quorum, self.now_ns)
            case "mode":
                self.mode = value
                self.election.set_mode(self.mode, self.now_ns)
            case _:
                nanoseconds = int(float(value) * SECOND_NS)
                if name == "election_timeout":
                    self.election_ns = nanoseconds
                else:
                    self.death_ns = nanoseconds
                self.election.set_timeouts(self.election_ns, self.death_ns)
        self.settle()

    def promote(self) -> None:
        """As `Control` does it: without elections nobody campaigns."""
        if self.mode != "off":
            self.election.campaign(self.now_ns)
        self.settle()

    def resign(self) -> None:
        self.election.resign(self.now_ns)
        self.settle()

    def new_term(self) -> None:
        self.election.new_term(self.now_ns)
        self.settle()

    def restart(self) -> None:
        self.start()

    # ---- assertions

    def state(self, leader: str, state: str, term: str, vote: str) -> None:
        election = self.election
        found = (election.leader_id, STATE_NAMES[election.state], self.term, self.vote)
        expected = (int(leader or 0), state, int(term), int(vote or 0))
        if found != expected:
            raise Wrong(f"got {found}")

    def wants(self, term: str, vote: str) -> None:
        found = (self.election.term, self.election.vote)
        if found != (int(term), int(vote or 0)):
            raise Wrong(f"got {found}")

    def counts(self, count: str) -> None:
        found = sum(choice == 1 for choice in self.election.votes.values())
        if found != int(count):
            raise Wrong(f"got {found}")

    def row(self, term: str, vote: str) -> None:
        if (self.term, self.vote) != (int(term), int(vote or 0)):
            raise Wrong(f"got {self.term}, {self.vote}")

    def size(self, count: str) -> None:
        if self.rows != int(count):
            raise Wrong(f"got {self.rows}")

    def listen(self) -> None:
        self.told.clear()

    def tells(self, would: str, state: str, term: str, vote: str, vclock: str, unseen: str) -> None:
        if not would and not self.told:
            raise Wrong("nothing")
        message = self.election.said(self.vclock, self.now_ns) if would else self.told[-1]
        found = (STATE_NAMES[message.state], message.term, message.vote, message.vclock is not None)
        if found != (state, int(term), int(vote or 0), bool(vclock)):
            raise Wrong(f"got {message}")
        if unseen and message.is_leader_seen:
            raise Wrong(f"got {message}")

    def tells_nothing(self, what: str) -> None:
        if bool(self.told) != (what == "something"):
            raise Wrong(f"got {self.told}")

    def no_timer(self) -> None:
        if self.election.wake_ns() is not None:
            raise Wrong("one runs")

    def elapsed(self, what: str, relation: str, seconds: str) -> None:
        now_ns = self.now_ns
        match what:
            case "elapsed":
                found = now_ns - self.mark_ns
            case "timer":
                wake_ns = self.election.wake_ns()
                if wake_ns is None:
                    raise Wrong("no timer runs")
                found = wake_ns - now_ns
            case _:
                found = 0 if self.election.is_leader else now_ns - self.election.leader_heard_ns
        if not _RELATIONS[relation or "="](found, int(float(seconds) * SECOND_NS)):
            raise Wrong(f"got {found / SECOND_NS}")


def _numbers(vclock: str) -> dict[int, int]:
    return {int(a): int(b) for a, b in re.findall(r"(\d+): (\d+)", vclock)}


_VOTE = r"(no vote|vote n(?P<vote>\d))"
_SAYS = (
    r"n(?P<source>\d) says state (?P<state>-?\d+) in term (?P<term>\d+)( vote (?P<vote>\d))?"
    r"( with (?P<vclock>\{.*\}))?, and is refused"
)
_TELLS = (
    rf"(?P<would>would )?tells? (?P<state>\w+) in term (?P<term>\d+), {_VOTE}"
    r"(?P<vclock>, with its vclock)?(?P<unseen>, seeing no leader)?"
)
_LINES: Sequence[tuple[str, Callable[..., None]]] = (
    (r"raft(?P<options>( \w+=\S+)*)", RaftPlay.raft),
    (r"next event", RaftPlay.next_event),
    (r"run (?P<seconds>[\d.]+)s", RaftPlay.run),
    (r"mark", RaftPlay.mark),
    (
        r"n(?P<source>\d) votes for n(?P<choice>\d) in term (?P<term>\d+)(?P<seeing> seeing the leader)?",
        RaftPlay.votes_for,
    ),
    (r"n(?P<source>\d) asks in term (?P<term>\d+) with (?P<vclock>\{.*\})", RaftPlay.asks),
    (r"n(?P<source>\d) leads in term (?P<term>\d+)", RaftPlay.leads),
    (r"n(?P<source>\d) follows in term (?P<term>\d+)(?P<seeing> seeing the leader)?", RaftPlay.follows),
    (
        _SAYS,
        RaftPlay.says,
    ),
    (r"n(?P<source>\d) is lost", RaftPlay.is_lost),
    (r"connected (?P<count>\d+)", RaftPlay.is_connected),
    (r"heartbeat of n(?P<source>\d)", RaftPlay.heartbeat),
    (r"log blocks", RaftPlay.block),
    (r"log goes on", RaftPlay.unblock),
    (r"rows of n(?P<origin>\d): (?P<count>\d+)", RaftPlay.data),
    (r"set (?P<name>\w+) (?P<value>\S+)", RaftPlay.option),
    (r"promote", RaftPlay.promote),
    (r"resign", RaftPlay.resign),
    (r"new term", RaftPlay.new_term),
    (r"restart", RaftPlay.restart),
    (r"listen", RaftPlay.listen),
    (
        rf"(no leader|leader n(?P<leader>\d)), (?P<state>\w+) in term (?P<term>\d+), {_VOTE}",
        RaftPlay.state,
    ),
    (rf"wants term (?P<term>\d+), {_VOTE}", RaftPlay.wants),
    (r"votes (?P<count>\d+)", RaftPlay.counts),
    (rf"last row term (?P<term>\d+), {_VOTE}", RaftPlay.row),
    (r"rows (?P<count>\d+)", RaftPlay.size),
    (r"tells (?P<what>nothing|something)", RaftPlay.tells_nothing),
    (
        _TELLS,
        RaftPlay.tells,
    ),
    (r"no timer", RaftPlay.no_timer),
    (r"(?P<what>elapsed|timer|idle) ?(?P<relation>=|<|<=|>=)? ?(?P<seconds>[\d.]+)", RaftPlay.elapsed),
)
