"""Applies changes of the members in `_cluster` to the election, the quorum, reads, stored logs and links."""

from __future__ import annotations

from collections.abc import Callable

from nodes.kernel.effects import Log
from nodes.kernel.events import Instant
from nodes.qsync.applier import Applier
from nodes.qsync.parts import Parts


class Membership:
    """`now` is the moment of the event that is being taken."""

    def __init__(self, parts: Parts, now: Callable[[], Instant]) -> None:
        self._options = parts.options
        self._schema = parts.schema
        self._election = parts.election
        self._commits = parts.commits
        self._reads = parts.reads
        self._retention = parts.retention
        self._appliers = parts.appliers
        self._relays = parts.relays
        self._out = parts.out
        self._drop = parts.drop
        self._now = now

    def changed(self) -> None:
        """The members in `_cluster` have changed; a new one counts from the moment in which that is committed."""
        answered = {applier.peer: applier.answered_id for applier in self._appliers.values()}
        registered = self._commits.configuration.as_registered(self._schema.members(), answered)
        if registered == self._commits.configuration:
            return
        self._commits.reconfigure(registered)
        # The counts first: the quorum of the election is made of them. Reads ask anew when all of that holds.
        self._election.members = len(registered.registered)
        self._options.counts(len(registered.registered))
        self._election.set_quorum(self._options.election_quorum, self._now().monotonic_ns)
        self._reads.others_needed = self._options.others_asked
        self._reads.ask_anew()
        for peer in registered.peers:
            self._set_member_id(self._appliers[peer.name], peer.id)
        self.forget_who_left({member.id for member in registered.registered})
        members = {str(member.id): member.uuid for member in registered.registered}
        self._out.append(Log("info", "the members are others", {"members": members}))

    def _set_member_id(self, applier: Applier, number: int) -> None:
        """The peer has become a member, or has been removed: its reports on elections count from the start."""
        if applier.peer_id == number:
            return
        self._election.lost(applier.peer_id, self._now().monotonic_ns)
        applier.peer_id = number
        if number and applier.state == "following":
            self._drop(applier.link, "it is a member now: subscribing anew")

    def forget_who_left(self, members: set[int]) -> None:
        """End the links to removed nodes, and keep no logs for them. A node that was removed itself stops writing."""
        for link, relay in list(self._relays.items()):
            if relay.replica_id and relay.replica_id not in members:
                self._drop(link, f"replica {relay.replica_id} is no member any more")
        for number in [number for number in self._retention.followers if number not in members]:
            del self._retention.followers[number]
        if self.is_expelled:
            self._options.read_only, self._options.election_mode = True, "off"
            self._election.set_mode("off", self._now().monotonic_ns)
            self._out.append(
                Log("warning", "we are no member any more", {"id": self._commits.configuration.me.id})
            )

    @property
    def is_expelled(self) -> bool:
        """We were a member, and `_cluster` has us no more."""
        me = self._commits.configuration.me
        return self._commits.is_recovered and me.id != 0 and self._schema.members().get(me.id) != me.uuid
