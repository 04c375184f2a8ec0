"""Discovery: one log for all nodes, in which a majority of the servers holds every entry (Raft, Ongaro 2014).

The servers elect a *coordinator*, which appends proposed entries and replicates them. An entry that a majority has on
disk is committed; every node delivers the committed entries in their order, each in its own time. A server that has
heard a coordinator recently refuses to vote (section 4.2.3). A server asks a majority whether it would vote before it
takes a new term (section 9.6). Otherwise the term of a node that was cut off would depose the coordinator when the node
is back, and again each time that its log, which is behind, loses an election.

The coordinator also detects failures: a node with a new life gets a "join" entry, a silent one a "left" entry.
Clients have no vote and no log: they report that they are alive, and the coordinator sends them the entries they lack.

The log is trimmed behind the entries that all members have delivered (`sweeping.py`). A node that asks for an older
entry is not a member, and gets the state that results from the trimmed entries.

Messages of discovery may be lost: the next beat repeats them. A proposal is repeated until its entry is delivered.
The reports that members have done their part of a cut go to the coordinator, which appends one entry for all of them:
an entry is a message to every server, so an entry a member would be O(N²) messages a cut.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Literal

from nodes.kernel.errors import StartAgain
from nodes.twophase.agreed import NOT_YET, TOPOLOGY_WORDS, Agreed, Entry, is_report
from nodes.twophase.discovery_log import DiscoveryLog
from nodes.twophase.site import Site
from nodes.twophase.sometimes import STATE_TAKEN, TRIMMED

Tell = Callable[[str, list[Any]], None]
Deliver = Callable[[int, Entry], None]
BATCH = 64
"""The greatest number of entries in one message."""


class Discovery:
    def __init__(
        self, site: Site, agreed: Agreed, tell: Tell, deliver: Deliver, swept: Callable[[], list[int]]
    ) -> None:
        """`tell`: put a message on the discovery link of a node, if it stands. `swept`: as `Sweeping.over`."""
        self._site = site
        self._agreed = agreed
        self._tell = tell
        self._deliver = deliver
        self._swept = swept
        self.log = DiscoveryLog(site)
        self.role: Literal["follower", "asking", "candidate", "coordinator"] = "follower"
        """Asking: whether a majority would vote for this server."""
        self.coordinator: str | None = None
        self.committed = 0
        self.delivered = 0
        self._proposals: list[Entry] = []
        self._reports: list[Entry] = []
        """At the coordinator: `cut-done` of members that have done their part of a cut that has not ended."""
        self._votes: set[str] = set()
        self._heard_ns = 0
        """When the coordinator was last heard."""
        self._led: tuple[str, int] | None = None
        """The newest coordinator other than this node, and when it was last heard."""
        self._patience_ns = 0
        self._matched: dict[str, int] = {}
        self._next: dict[str, int] = {}
        self._alive_ns: dict[str, int] = {}
        self._lives: dict[str, tuple[int, str]] = {}
        """Reporting node → its life and role."""
        self._swept_by: dict[str, tuple[int, list[int]]] = {}
        """Reporting node → its life, and the last sweep that is over there."""
        self._sweep_due_ns = 0
        self._waiting: deque[tuple[int, Entry]] = deque()
        """Committed entries that are not delivered yet, each with the earliest time of its delivery."""

    @property
    def _servers(self) -> tuple[str, ...]:
        return self._site.configuration.baseline

    @property
    def majority(self) -> int:
        return len(self._servers) // 2 + 1

    def start(self, files: Mapping[str, bytes]) -> None:
        if self._site.is_server:
            self.log.read(files)
            if self.log.state is not None:
                self._begin_with(self.log.base, self.log.state)
        self._hear()

    def _begin_with(self, index: int, state: Mapping[str, Any]) -> None:
        self._agreed.load(state)
        self.committed = self.delivered = index
        self._waiting.clear()
        self._site.cancel("deliver")

    def trim(self, index: int, state: Mapping[str, Any]) -> None:
        """Trim the log up to this entry, which all members have delivered; `state` replaces the entries."""
        if not self._site.is_server or index - self.log.base < self._site.configuration.trim_entries:
            return
        self._site.sometimes.note(TRIMMED)
        self.log.begin_with(index, self.log.term_at(index), state)

    def newest_topology(self) -> int:
        """The version of the topology, or the index of the last undelivered entry in the own log, committed or not,
        that may raise it. A delivered entry without an effect has not raised it."""
        log = self.log
        return next(
            (i for i in range(log.last_index, self.delivered, -1) if log.at(i)[1][0] in TOPOLOGY_WORDS),
            self._agreed.version,
        )

    def propose(self, entry: Entry) -> None:
        """Propose an entry, and repeat that until it is delivered. A second copy of an entry has no effect."""
        if entry not in self._proposals:
            self._proposals.append(entry)
            self._pass_on(entry)

    def withdraw(self, entry: Entry) -> None:
        if entry in self._proposals:
            self._proposals.remove(entry)

    # ---- time

    def beat(self) -> None:
        site = self._site
        if self.role == "coordinator":
            self._detect_failures()
            for peer in self._servers:
                if peer != site.name:
                    self._replicate(peer)
            self._sweep_if_all()
            return self._repeat_proposals()
        if not site.is_server:
            for peer in self._servers:
                self._tell(peer, ["alive", 0, site.life, self.committed, self._swept()])
        elif site.now.monotonic_ns - self._heard_ns > self._patience_ns:
            self._hear()
            self._ask_for_votes("asking", "would-vote?", self.log.term + 1)
        return self._repeat_proposals()

    def _repeat_proposals(self) -> None:
        for entry in self._proposals:
            self._pass_on(entry)

    def _pass_on(self, entry: Entry) -> None:
        if self.role == "coordinator" and is_report(entry):
            self._gather(entry)
        elif self.role == "coordinator":
            if not any(waiting == entry for _, waiting in self.log.behind(self.committed)):
                self._append(entry)
        elif self.coordinator is not None:
            self._tell(self.coordinator, ["propose", 0, entry])

    def _gather(self, report: Entry) -> None:
        if report not in self._reports and not self._agreed.has_ended(report[1]):
            self._reports.append(report)
            self._report_if_all()

    def _report_if_all(self) -> None:
        together = self._agreed.together(self._reports)
        if together is not None and all(entry != together for _, entry in self.log.behind(self.delivered)):
            self._append(together)

    def _hear(self) -> None:
        self._heard_ns = self._site.now.monotonic_ns
        election_ns = self._site.configuration.election_ns
        self._patience_ns = election_ns + self._site.chance.randrange(election_ns)

    def _detect_failures(self) -> None:
        now_ns, agreed = self._site.now.monotonic_ns, self._agreed
        for node, (life, role) in sorted(self._lives.items()):
            if life > agreed.lives.get(node, NOT_YET):
                self._pass_on(["join", node, life, role])
        for node in sorted({*agreed.members, *agreed.present}):
            if node not in agreed.members and self._site.configuration.restore is not None:
                continue  # a cluster is restored as a whole, or not at all
            silent_ns = now_ns - self._alive_ns.setdefault(node, now_ns)
            if node != self._site.name and silent_ns > self._site.configuration.leave_ns:
                self._pass_on(["left", node, agreed.life_of(node)])

    def _sweep_if_all(self) -> None:
        """Propose the next sweep when the last one is over at all members."""
        agreed, now_ns = self._agreed, self._site.now.monotonic_ns
        last = [agreed.version, agreed.sweeps]
        peers = [(node, member.life) for node, member in agreed.members.items() if node != self._site.name]
        if now_ns < self._sweep_due_ns or self._swept() != last:
            return
        if all(self._swept_by.get(node) == (life, last) for node, life in peers):
            self._sweep_due_ns = now_ns + self._site.configuration.sweep_ns
            self._pass_on(["sweep", agreed.version, agreed.sweeps + 1])

    # ---- elections

    def _ask_for_votes(self, role: Literal["asking", "candidate"], word: str, term: int) -> None:
        """Ask for votes, as a candidate or as a server that would be one in this term."""
        log, name = self.log, self._site.name
        self.role, self.coordinator, self._votes = role, None, {name}
        for peer in self._servers:
            if peer != name:
                self._tell(peer, [word, 0, term, log.last_index, log.last_term])
        self._count_votes()

    def _stand(self) -> None:
        self._hear()
        # On disk before the question leaves: a restarted candidate must not vote for another one in this term.
        self.log.promise(self.log.term + 1, self._site.name)
        self._ask_for_votes("candidate", "vote?", self.log.term)

    def _follow(self, term: int) -> None:
        if term > self.log.term:
            self.log.promise(term, None)
            self.coordinator = None
        if self.role != "follower":
            self.role = "follower"
            self._hear()

    def _count_votes(self) -> None:
        if len(self._votes) < self.majority:
            return None
        if self.role == "asking":
            return self._stand()
        self.role, self.coordinator = "coordinator", self._site.name
        self._alive_ns.clear()  # every other node gets the whole time: we have listened to none so far
        if self._led is not None and self._led[0] not in self._votes:
            self._alive_ns.update([self._led])
        self._matched = dict.fromkeys(self._servers, 0)
        self._next = dict.fromkeys(self._servers, self.log.last_index + 1)
        self._lives = {self._site.name: (self._site.life, "server")}
        self._swept_by.clear()
        self._reports.clear()  # their members report again, to the new coordinator
        # An entry of the own term: only with one do those of earlier terms count as committed (section 3.6.2).
        self._append(["noop"])
        return self.beat()

    def _note_vote(self, peer: str, term: int, counts: bool) -> None:
        if term > self.log.term:
            self._follow(term)
        elif counts:
            self._votes.add(peer)
            self._count_votes()

    def take(self, peer: str, life: int, message: list[Any]) -> None:
        """Take a message of a peer in that life."""
        match message:
            case ["would-vote?", _, term, last_index, last_term]:
                would = (
                    term > self.log.term and not self._hears() and self._is_complete(last_index, last_term)
                )
                self._tell(peer, ["would-vote", 0, self.log.term, would])
            case ["vote?", _, term, last_index, last_term]:
                self._asked_to_vote(peer, term, last_index, last_term)
            case ["would-vote", _, term, would]:
                self._note_vote(peer, term, would and self.role == "asking")
            case ["vote", _, term, granted]:
                self._note_vote(peer, term, granted and term == self.log.term and self.role == "candidate")
            case ["append", _, term, before, term_before, entries, committed]:
                self._take_entries(peer, term, before, term_before, entries, committed)
            case ["state", _, term, index, term_there, state]:
                self._take_state(peer, term, index, term_there, state)
            case ["appended", _, term, ok, match, swept]:
                self._swept_by[peer] = (life, swept)
                self._note_appended(peer, life, term, ok, match)
            case ["propose", _, entry]:
                if self.role == "coordinator":
                    self._pass_on(entry)
            case ["alive", _, client_life, known, swept]:
                self._swept_by[peer] = (client_life, swept)
                self._serve_client(peer, client_life, known)
            case ["learn", _, first, entries]:
                self._learn(peer, first, entries)

    def _hears(self) -> bool:
        """As far as this server knows, a coordinator leads: then it votes for no candidate."""
        silent_ns = self._site.now.monotonic_ns - self._heard_ns
        is_heard = self.coordinator is not None and silent_ns < self._site.configuration.election_ns
        return is_heard or self.role == "coordinator"

    def _is_complete(self, last_index: int, last_term: int) -> bool:
        """Whether a log with this end has all entries of the own log (section 3.6.1)."""
        return (last_term, last_index) >= (self.log.last_term, self.log.last_index)

    def _asked_to_vote(self, peer: str, term: int, last_index: int, last_term: int) -> None:
        log = self.log
        if self._hears():
            return
        if term > log.term:
            self._follow(term)
        is_complete = self._is_complete(last_index, last_term)
        granted = term == log.term and log.vote in (None, peer) and is_complete
        if granted:
            log.promise(term, peer)  # on disk before the vote leaves
            self._hear()
        self._tell(peer, ["vote", 0, log.term, granted])

    # ---- replication

    def _append(self, entry: Entry) -> None:
        self.log.append(self.log.term, entry, self._advance)
        for peer in self._servers:
            if peer != self._site.name:
                self._replicate(peer)

    def _replicate(self, peer: str) -> None:
        log, first = self.log, self._next[peer]
        if first <= log.base:
            self._send_state(peer)
            first = self._next[peer]
        entries = [list(entry) for entry in log.behind(first - 1)[:BATCH]]
        self._tell(peer, ["append", 0, log.term, first - 1, log.term_at(first - 1), entries, self.committed])
        # If it is lost, the follower answers the next beat that it has a gap.
        self._next[peer] = first + len(entries)

    def _send_state(self, node: str) -> None:
        log = self.log
        self._tell(node, ["state", 0, log.term, log.base, log.base_term, log.state])
        self._next[node] = log.base + 1

    def _take_state(
        self, peer: str, term: int, index: int, term_there: int, state: Mapping[str, Any]
    ) -> None:
        """Take the state of the trimmed entries. A node that lacks some of these has left, or has not joined yet.

        It may have joined and left in the entries that it lacks, without knowing that it was a member.
        """
        site = self._site
        if site.is_server and term < self.log.term:
            return self._appended(peer, False, 0)
        self._listen(peer, term)
        if index > self.delivered:
            was_member = self._agreed.is_member(site.name, site.life)
            self._begin_with(index, state)
            if was_member or self._agreed.has_left(site.name, site.life):
                raise StartAgain(f"life {site.life} of {site.name} has left the cluster")
            site.sometimes.note(STATE_TAKEN)
            if site.is_server:
                self.log.begin_with(index, term_there, state)
        return self._appended(peer, True, index) if site.is_server else None

    def _appended(self, peer: str, ok: bool, match: int) -> None:
        """Answer an append; the answer leaves when the entries are on disk."""
        self._tell(peer, ["appended", 0, self.log.term, ok, match, self._swept()])

    def _listen(self, coordinator: str, term: int) -> None:
        if self._site.is_server:
            self._follow(term)
        self.coordinator = coordinator
        self._hear()
        self._led = coordinator, self._heard_ns

    def _take_entries(
        self, peer: str, term: int, before: int, term_before: int, entries: list[Any], committed: int
    ) -> None:
        log = self.log
        if term < log.term:
            return self._appended(peer, False, 0)
        self._listen(peer, term)
        if before < log.base:  # committed entries, which our state stands for
            entries = entries[log.base - before :]
            before, term_before = log.base, log.base_term
        if before > log.last_index or log.term_at(before) != term_before:
            return self._appended(peer, False, min(before - 1, log.last_index))
        log.take(before + 1, entries, lambda: None)
        match = before + len(entries)
        self._appended(peer, True, match)
        # No further than the entries of this message: what stands behind them in the own log may be of an old term.
        self._commit(min(committed, match))
        return None

    def _note_appended(self, peer: str, life: int, term: int, ok: bool, match: int) -> None:
        if term > self.log.term:
            return self._follow(term)
        if self.role != "coordinator" or term < self.log.term:
            return None
        self._alive_ns[peer] = self._site.now.monotonic_ns
        if self._lives.get(peer, (0, ""))[0] < life:
            self._lives[peer] = (life, "server")
        if not ok:
            self._next[peer] = max(1, match + 1)
            return self._replicate(peer)
        self._matched[peer] = max(self._matched[peer], match)
        if self._next[peer] <= self.log.last_index:
            self._replicate(peer)
        self._advance()
        return None

    def _advance(self) -> None:
        """Commit the entries that a majority has on disk, if the newest is of the own term (section 3.6.2)."""
        if self.role != "coordinator":
            return
        self._matched[self._site.name] = self.log.durable  # not the last index: a majority of disks counts
        index = sorted(self._matched.values(), reverse=True)[self.majority - 1]
        if index > self.committed and self.log.term_at(index) == self.log.term:
            self._commit(index)
            for peer in self._servers:
                if peer != self._site.name:
                    self._replicate(peer)

    def _commit(self, index: int) -> None:
        while self.committed < index:
            self.committed += 1
            self._hand_out(self.log.at(self.committed)[1])

    def _hand_out(self, entry: Entry) -> None:
        delivery_ns, now_ns = self._site.configuration.delivery_ns, self._site.now.monotonic_ns
        due_ns = now_ns + (self._site.chance.randrange(delivery_ns) if delivery_ns else 0)
        self._waiting.append((due_ns, entry))
        if not delivery_ns:
            self._deliver_next()
        elif len(self._waiting) == 1:
            self._site.after("deliver", due_ns - now_ns, self._deliver_in_time)

    def _deliver_in_time(self) -> None:
        """Deliver one entry an event: other messages come in between, even if the next entry is due as well."""
        self._deliver_next()
        if self._waiting:
            due_ns = self._waiting[0][0]
            self._site.after("deliver", max(0, due_ns - self._site.now.monotonic_ns), self._deliver_in_time)

    def _deliver_next(self) -> None:
        _, entry = self._waiting.popleft()
        self.withdraw(entry)
        self.delivered += 1
        self._deliver(self.delivered, entry)
        if self.role == "coordinator":
            self._reports = [report for report in self._reports if not self._agreed.has_ended(report[1])]
            self._report_if_all()
            for client in self._site.configuration.clients:
                self._teach(client)

    # ---- clients

    def _serve_client(self, client: str, life: int, known: int) -> None:
        if self.role == "coordinator":
            self._alive_ns[client] = self._site.now.monotonic_ns
            self._lives[client] = (life, "client")
            self._next[client] = known + 1
            self._teach(client, is_answer=True)

    def _teach(self, client: str, *, is_answer: bool = False) -> None:
        first = self._next.get(client)
        if first is None:
            return
        if first <= self.log.base:
            self._send_state(client)
            first = self._next[client]
        known = min(BATCH, max(0, self.delivered - first + 1))  # a newer coordinator may have taught it more
        entries = [entry for _, entry in self.log.behind(first - 1)[:known]]
        if entries or is_answer:
            self._tell(client, ["learn", 0, first, entries])
            self._next[client] = first + len(entries)

    def _learn(self, peer: str, first: int, entries: list[Entry]) -> None:
        self._listen(peer, 0)
        for index, entry in enumerate(entries, first):
            if index == self.committed + 1:
                self.committed = index
                self._hand_out(entry)
