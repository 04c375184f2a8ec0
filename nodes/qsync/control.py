"""Commands of an operator to a node, all by CALL: `box.ctl`, `box.cfg`, and waiting for elections.

| function | arguments | answer |
|---|---|---|
| `box.ctl.promote`, `box.ctl.clear_synchro_queue` | – | when the election is won, or this node owns the queue |
| `box.ctl.demote` | – | when the queue has no owner, or the leader has stepped off |
| `box.ctl.wait_rw`, `box.ctl.wait_ro` | seconds | when the node is writable, or is not; error 78 when the time is up |
| `box.cfg`, `qsync.cfg` | map of options | – ; without a map: all options (`nodes.qsync.options`) |
| `qsync.on_election` | number, seconds | when there have been more elections than that: number, state, term, leader |

With elections (`manual`, `candidate`) promote asks for votes, once, and the winner writes its PROMOTE by itself. Only
with `promote_waits_for_queue` the call waits for that: 78 after the synchro timeout, 246 if the node leads no more. A
call that does not win ends with the reason: 223 another leads, 242 too few peers are connected, 245 another term began,
224 the node may lead no more, 78 its time is over: the term, with exact elections the election timeout. A second call
meanwhile gets 278, or 5 while a PROMOTE or DEMOTE is being written. Without elections, promote and demote go through
steps, and a step that is interrupted ends in the matching error:

| step | until | errors |
|---|---|---|
| empty | the queue is empty, or twice the synchro timeout is over | 223 another PROMOTE came first |
| term | a new term has begun, and is on disk (demote does this first) | |
| acked | a quorum has all that waits in the queue | 222 the synchro timeout is over, 223, 246 another term began |
| written | the PROMOTE or DEMOTE is on disk and has taken effect | |

As shipped (`synchronous_promote` off), the winner of an election goes through the step `acked` too, without a limit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from nodes.iproto.codes import Code
from nodes.iproto.messages import Refusal
from nodes.kernel.effects import Effect, Log, Send, SetTimer
from nodes.kernel.events import Instant
from nodes.qsync.commits import Commits
from nodes.qsync.election import CANDIDATE, STATE_NAMES
from nodes.qsync.keys import Rejected, Tuple
from nodes.qsync.options import SECOND_NS
from nodes.qsync.service import Caller, Function

CONTROL_TIMER = "control"
FOREVER_NS = 2**62

Step = Literal["empty", "term", "acked"]


@dataclass(slots=True, eq=False)
class Procedure:
    """A promote or demote under way, or a new leader on its way to its PROMOTE (then without a caller)."""

    steps: list[Step]
    is_demote: bool
    caller: Caller | None
    promote_term: int
    """The greatest term of a PROMOTE when the procedure began."""
    deadline_ns: int
    term: int = 0
    """The term of its PROMOTE or DEMOTE; 0 until that term has begun."""


@dataclass(slots=True, eq=False)
class Round:
    """An election that an operator asked for, in `term`."""

    caller: Caller
    term: int
    gives_up_ns: int
    """When the call ends without a winner."""
    deadline_ns: int = 0
    """When a new leader stops waiting for its queue; 0 until the election is won."""


@dataclass(frozen=True, slots=True)
class Wait:
    """A call that waits for a condition: `is_met` tests it, `answer` gives the values of the answer."""

    caller: Caller
    deadline_ns: int
    is_met: Callable[[], bool]
    answer: Callable[[], tuple[object, ...]]


class Control:
    """Answers operators. `acked(owner, lsn)` counts the nodes with that row, `connected()` the connected members."""

    def __init__(
        self,
        commits: Commits,
        acked: Callable[[int, int], int],
        connected: Callable[[], int],
        changed: Callable[[Instant], None],
        out: list[Effect],
    ) -> None:
        self._commits = commits
        self._election = commits.election
        self._options = commits.options
        self._acked = acked
        self._connected = connected
        self._changed = changed
        self._out = out
        self._procedure: Procedure | None = None
        self._rounds: list[Round] = []
        self._waits: list[Wait] = []
        self._wakes_ns = FOREVER_NS
        self.elections = 0
        """How often state, term or leader changed since the node started."""
        self._seen: tuple[int, int, int] | None = None
        self.functions: dict[str, Function] = {
            "box.ctl.promote": self._promote,
            "box.ctl.clear_synchro_queue": self._promote,
            "box.ctl.demote": self._demote,
            "box.ctl.wait_rw": self._wait_rw,
            "box.ctl.wait_ro": self._wait_ro,
            "qsync.on_election": self._on_election,
            "box.cfg": self._configure,
            "qsync.cfg": self._configure,
        }

    def lead(self, now: Instant) -> None:
        """We won an election."""
        if self._commits.promotions.at_once:
            self._procedure = self._new(["acked"], None, now, is_demote=False)
            self._procedure.term = self._election.term
            self._procedure.deadline_ns = FOREVER_NS
        else:
            self._commits.promotions.lead(now)

    def advance(self, now: Instant) -> None:
        """Check every procedure, election and wait; called after each event."""
        seen = (self._election.state, self._election.term, self._election.leader_id)
        if self._seen is None:
            self._seen = seen
        if seen != self._seen:
            self._seen, self.elections = seen, self.elections + 1
            fields = {"state": STATE_NAMES[seen[0]], "election_term": seen[1], "leader": seen[2]}
            self._out.append(Log("info", "on election", fields))
        if self._procedure is not None:
            self._proceed(self._procedure, now)
        for ballot in list(self._rounds):
            self._advance_round(ballot, now)
        for wait in list(self._waits):
            if wait.is_met():
                self._waits.remove(wait)
                self._answer(wait.caller, *wait.answer())
            elif wait.deadline_ns <= now.monotonic_ns:
                self._waits.remove(wait)
                self._refuse(wait.caller, Code.TIMEOUT)
        self._set_timer(now)

    def hung_up(self, link: int) -> None:
        """Calls on this link wait no more for a condition; a promote or demote goes on without its caller."""
        self._waits = [wait for wait in self._waits if wait.caller.link != link]

    def _set_timer(self, now: Instant) -> None:
        if not self._waits and not self._rounds and self._procedure is None:
            self._wakes_ns = FOREVER_NS
            return
        deadlines = [wait.deadline_ns for wait in self._waits]
        deadlines += [ballot.deadline_ns or ballot.gives_up_ns for ballot in self._rounds]
        if self._procedure is not None and not self._awaits_term(self._procedure):
            deadlines.append(self._procedure.deadline_ns)
        wakes_ns = min(deadlines, default=FOREVER_NS)
        if wakes_ns < FOREVER_NS and wakes_ns != self._wakes_ns:
            self._out.append(SetTimer(CONTROL_TIMER, max(wakes_ns - now.monotonic_ns, 0)))
        self._wakes_ns = wakes_ns

    # ---- promote and demote

    def _promote(self, caller: Caller, arguments: Tuple, now: Instant) -> None:
        self._must_be_alone()
        if self._procedure is not None or self._rounds:
            raise Rejected(Code.IN_ANOTHER_PROMOTE)
        election, mode = self._election, self._options.election_mode
        if self._commits.ownership.may_decide:
            self._answer(caller)
        elif election.is_leader:
            self._rounds.append(Round(caller, election.term, FOREVER_NS))
        elif mode == "voter":
            raise Rejected(Code.UNSUPPORTED, "election_mode='voter'", "manual elections")
        elif mode == "off":
            self._procedure = self._new(["empty", "term", "acked"], caller, now, is_demote=False)
        else:
            if self._connected() < self._options.election_quorum:
                if election.is_exact:
                    self._commits.promotions.begin_term(now)
                raise Rejected(Code.NO_ELECTION_QUORUM, self._connected(), self._options.election_quorum)
            election.campaign(now.monotonic_ns)
            limit_ns = now.monotonic_ns + election.election_timeout_ns if election.is_exact else FOREVER_NS
            self._rounds.append(Round(caller, election.term, limit_ns))

    def _demote(self, caller: Caller, arguments: Tuple, now: Instant) -> None:
        self._must_be_alone()
        if self._procedure is not None:
            raise Rejected(Code.UNSUPPORTED, "box.ctl.promote/demote", "simultaneous invocations")
        limbo, election = self._commits.limbo, self._election
        is_of_this_term = limbo.term == election.term
        if self._options.has_elections:
            if self._commits.is_owner and is_of_this_term:
                election.resign(now.monotonic_ns)
            self._answer(caller)
        elif election.leader_id != 0:
            # Other nodes hold elections, and have a leader.
            raise Rejected(Code.NOT_LEADER, election.leader_id)
        elif limbo.owner_id == 0 or (is_of_this_term and not self._commits.is_owner):
            self._answer(caller)
        else:
            self._procedure = self._new(["term", "empty", "acked"], caller, now, is_demote=True)

    def _must_be_alone(self) -> None:
        """Raises Rejected while a PROMOTE or DEMOTE is being written here, or if this node is not a member."""
        if self._election.me == 0:
            raise Rejected(Code.UNSUPPORTED, "replication_anon=true", "manual elections")
        running = self._procedure
        is_writing = running is not None and (running.is_demote or running.caller is None)
        if is_writing or self._commits.records.is_behind_barrier:
            raise Rejected(Code.UNSUPPORTED, "box.ctl.promote/demote", "simultaneous invocations")

    def _new(self, steps: list[Step], caller: Caller | None, now: Instant, *, is_demote: bool) -> Procedure:
        deadline_ns = now.monotonic_ns + 2 * self._options.synchro_timeout_ns
        return Procedure(steps, is_demote, caller, self._commits.limbo.term, deadline_ns)

    def _proceed(self, procedure: Procedure, now: Instant) -> None:
        """Take all steps that can be taken now."""
        while self._procedure is procedure:
            # Before each step: another PROMOTE or term may have come while the last one waited.
            refusal = self._disturbed(procedure)
            if refusal is not None:
                self._end(procedure, refusal)
            elif self._awaits_term(procedure):
                return
            elif not procedure.steps:
                if self._commits.records.is_behind_barrier:
                    return  # another decision is on its way to the disk
                self._write(procedure, now)
            elif not self._step(procedure, now):
                return

    def _awaits_term(self, procedure: Procedure) -> bool:
        """Its term is on the way to the disk; its deadline does not count meanwhile."""
        return procedure.term > 0 and not self._commits.records.has_written_term

    def _disturbed(self, procedure: Procedure) -> tuple[Code, tuple[object, ...]] | None:
        limbo = self._commits.limbo
        if procedure.caller is None:
            procedure.promote_term = limbo.term  # a leader goes on, whichever node was promoted before it
        if limbo.term != procedure.promote_term:
            return Code.INTERFERING_PROMOTE, (limbo.owner_id,)
        if procedure.term and procedure.term != self._election.term:
            return Code.INTERFERING_ELECTIONS, ()
        if procedure.caller is None and not self._election.is_leader:
            return Code.NOT_LEADER, (self._election.leader_id,)
        return None

    def _step(self, procedure: Procedure, now: Instant) -> bool:
        """True if the next step is done."""
        is_late = now.monotonic_ns >= procedure.deadline_ns
        match procedure.steps[0]:
            case "term":
                self._commits.promotions.begin_term(now)
                procedure.term = self._election.term
            case "empty" if len(self._commits.limbo) > 0 and not is_late:
                return False
            case "acked" if not self._has_quorum():
                if is_late:
                    self._end(procedure, (Code.QUORUM_WAIT, (self._options.quorum_size, "timed out")))
                return False
        done = procedure.steps.pop(0)
        if done != "acked" and procedure.deadline_ns < FOREVER_NS:
            wait_ns = self._options.synchro_timeout_ns * (1 if procedure.steps[0] == "acked" else 2)
            procedure.deadline_ns = now.monotonic_ns + wait_ns
        return True

    def _has_quorum(self) -> bool:
        return not self._commits.limbo.entries or self._acks() >= self._commits.promotions.quorum

    def _acks(self) -> int:
        """How many nodes have every entry of the queue."""
        limbo = self._commits.limbo
        return self._acked(limbo.owner_id, limbo.last_synchronous_lsn())

    def promotion(self) -> dict[str, int] | None:
        """The acks and the quorum, by the present options, of our PROMOTE that waits for it; None if none waits."""
        acks = self._commits.promotions.acks
        if acks is None and self._procedure is not None and self._procedure.steps == ["acked"]:
            acks = self._acks()
        return None if acks is None else {"acks": acks, "quorum": self._options.quorum_size}

    def _write(self, procedure: Procedure, now: Instant) -> None:
        """A quorum has the whole queue: write the PROMOTE or DEMOTE. A leader's own PROMOTE has no client to answer."""
        self._procedure = None
        caller = procedure.caller
        reply = None if caller is None else (caller.link, caller.answer())
        self._commits.promotions.write(now, reply, is_demote=procedure.is_demote)

    def _end(self, procedure: Procedure, refusal: tuple[Code, tuple[object, ...]]) -> None:
        self._procedure = None
        code, arguments = refusal
        if procedure.caller is not None:
            self._refuse(procedure.caller, code, *arguments)
        else:
            self._out.append(Log("info", "the PROMOTE was not written", {"why": code.text(*arguments)}))

    def _advance_round(self, ballot: Round, now: Instant) -> None:
        election = self._election
        is_won = election.term == ballot.term and election.is_leader
        if is_won and not ballot.deadline_ns:
            ballot.deadline_ns = now.monotonic_ns + self._options.synchro_timeout_ns
        waits = self._commits.configuration.promote_waits_for_queue and not self._commits.is_writable
        is_open = election.state == CANDIDATE or election.is_writing
        is_late = now.monotonic_ns >= ballot.gives_up_ns
        if election.term == ballot.term and not is_won and is_open and not is_late:
            return
        if is_won and waits and now.monotonic_ns < ballot.deadline_ns:
            return
        self._rounds.remove(ballot)
        if is_late and not is_won:
            election.end_campaign(now.monotonic_ns)
        if is_won and not waits:
            self._answer(ballot.caller)
        elif is_won:
            self._refuse(ballot.caller, Code.TIMEOUT)
        elif ballot.deadline_ns:
            self._refuse(ballot.caller, Code.INTERFERING_ELECTIONS)
        elif election.leader_id:
            self._refuse(ballot.caller, Code.INTERFERING_PROMOTE, election.leader_id)
        elif self._connected() < self._options.election_quorum:
            self._refuse(
                ballot.caller, Code.NO_ELECTION_QUORUM, self._connected(), self._options.election_quorum
            )
        elif election.term > ballot.term:
            self._refuse(ballot.caller, Code.OLD_TERM, ballot.term, election.term)
        elif election.mode in ("off", "voter"):
            self._refuse(ballot.caller, Code.ELECTION_DISABLED)
        else:
            self._refuse(ballot.caller, Code.TIMEOUT)

    # ---- the rest

    def _wait_rw(self, caller: Caller, arguments: Tuple, now: Instant) -> None:
        self._wait(caller, _seconds(arguments, 0), now, lambda: self._commits.is_writable, lambda: ())

    def _wait_ro(self, caller: Caller, arguments: Tuple, now: Instant) -> None:
        self._wait(caller, _seconds(arguments, 0), now, lambda: not self._commits.is_writable, lambda: ())

    def _on_election(self, caller: Caller, arguments: Tuple, now: Instant) -> None:
        count = arguments[0] if arguments else None
        if count is not None and (isinstance(count, bool) or not isinstance(count, int)):
            raise Rejected(Code.ILLEGAL_PARAMS, f"expected a number of elections, got {count!r}"[:100])
        known = self.elections if count is None else count
        seconds = _seconds(arguments, 1)
        self._wait(caller, seconds, now, lambda: self.elections > known, self._election_status)

    def _configure(self, caller: Caller, arguments: Tuple, now: Instant) -> None:
        if not arguments:
            self._answer(caller, self._options.told())
            return
        if not isinstance(arguments[0], dict):
            raise Rejected(Code.ILLEGAL_PARAMS, "cfg should be a table")
        self._options.set(arguments[0])
        self._changed(now)
        self._answer(caller)

    def _election_status(self) -> tuple[object, ...]:
        election = self._election
        return (
            {
                "number": self.elections,
                "state": STATE_NAMES[election.state],
                "term": election.term,
                "leader": election.leader_id,
            },
        )

    def _wait(
        self,
        caller: Caller,
        seconds: float | None,
        now: Instant,
        is_met: Callable[[], bool],
        answer: Callable[[], tuple[object, ...]],
    ) -> None:
        deadline_ns = FOREVER_NS if seconds is None else now.monotonic_ns + int(seconds * SECOND_NS)
        self._waits.append(Wait(caller, min(deadline_ns, FOREVER_NS), is_met, answer))

    def _answer(self, caller: Caller, *values: object) -> None:
        self._out.append(Send(caller.link, caller.answer(*values)))

    def _refuse(self, caller: Caller, code: Code, *arguments: object) -> None:
        self._out.append(Send(caller.link, Refusal(caller.sync, code, code.text(*arguments))))


def _seconds(arguments: Tuple, place: int) -> float | None:
    """A timeout among the arguments of a call; None if there is none."""
    if len(arguments) <= place or arguments[place] is None:
        return None
    value = arguments[place]
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise Rejected(Code.ILLEGAL_PARAMS, f"expected a timeout in seconds, got {value!r}"[:100])
    return float(min(value, 1e9))
