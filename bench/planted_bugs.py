"""Bugs planted in `nodes/qsync` by an author who did not write the hunt: each a text that is replaced by another.

The old text must occur once in its file: where the node was changed, change it here or take the bug out.
docs/simulator.md has the result of each.
"""

from __future__ import annotations

from typing import NamedTuple


class Planted(NamedTuple):
    name: str
    what: str
    file: str
    """In `nodes/qsync`."""
    old: str
    new: str


PLANTED = (
    Planted(
        "ack-survives-failure",
        "acknowledgement leaves although the write failed",
        "following.py",
        "                self._out.append(Send(applier.link, Ack(vclock, term, sync), after))",
        "                self._out.append(Send(applier.link, Ack(vclock, term, sync), None))",
    ),
    Planted(
        "stale-snapshot-term",
        "restart takes term and vote of the snapshot, not of the log",
        "replica.py",
        "        if not term and snapshot is not None:",
        "        if snapshot is not None:",
    ),
    Planted(
        "snapshot-term-ignored",
        "restart forgets the term and vote that stand in the snapshot alone",
        "replica.py",
        ("            term, vote = snapshot.election.term, snapshot.election.vote\n"),
        ("            pass\n"),
    ),
    Planted(
        "quorum-of-old-members",
        "members change, quorum is not computed anew",
        "membership.py",
        ("        self._options.counts(len(registered.registered))\n        self._election.set_quorum"),
        "        self._election.set_quorum",
    ),
    Planted(
        "reads-ask-old-count",
        "option changes, linearizable reads ask as many as before",
        "replica.py",
        ("        self.reads.others_needed = self.options.others_asked\n"),
        "",
    ),
    Planted(
        "join-over-newer-rows",
        "joining anew overwrites rows that came meanwhile",
        "newcomer.py",
        (
            "        if not covers(joining.data_vclock, public(self._journal.promised)):\n"
            "            self.joining = None"
        ),
        ("        if False:\n            self.joining = None"),
    ),
    Planted(
        "join-lowers-term",
        "joining anew takes the peer's term, even a lower one",
        "newcomer.py",
        "ElectionState(max(joining.term, self._election.term), vote)",
        "ElectionState(joining.term, vote)",
    ),
    Planted(
        "read-ignores-limbo",
        "linearizable read does not wait for the limbo",
        "replica.py",
        ("public(self.journal.vclock), self.commits.last_waiting, self.commits.has_settled"),
        "public(self.journal.vclock), 0, self.commits.has_settled",
    ),
    Planted(
        "read-rides-along",
        "linearizable read takes answers to an earlier question",
        "linearizable_reads.py",
        ("        self.number += 1\n        self._waiting.append("),
        ("        self.number += not self._waiting\n        self._waiting.append("),
    ),
    Planted(
        "read-asks-one-less",
        "linearizable read waits for one node less",
        "linearizable_reads.py",
        "len(read.heard) < self.others_needed or",
        "len(read.heard) < self.others_needed - 1 or",
    ),
    Planted(
        "read-target-last",
        "linearizable read waits for what the last node said, not for all",
        "linearizable_reads.py",
        "read.target[origin] = max(read.target.get(origin, 0), lsn)",
        "read.target[origin] = lsn",
    ),
    Planted(
        "async-overtakes",
        "asynchronous transaction does not wait behind synchronous ones",
        "commits.py",
        (
            "        wait_sync = wait_ack or len(self.limbo) > 0\n"
            "        if wait_sync and self.records.is_behind_barrier:"
        ),
        ("        wait_sync = wait_ack\n        if wait_sync and self.records.is_behind_barrier:"),
    ),
    Planted(
        "submit-in-rollback",
        "writes are taken while a ROLLBACK is on its way",
        "commits.py",
        "        if wait_sync and self.records.is_behind_barrier:",
        "        if False:",
    ),
    Planted(
        "confirm-in-rollback",
        "CONFIRM is written while a ROLLBACK is",
        "commits.py",
        ("        if not limbo.entries or not self.ownership.may_decide or limbo.is_in_rollback:"),
        "        if not limbo.entries or not self.ownership.may_decide:",
    ),
    Planted(
        "rollback-of-confirming",
        "ROLLBACK of what a CONFIRM under way confirms",
        "commits.py",
        "        if limbo.confirming_lsn <= limbo.confirmed_lsn:",
        "        if entry.lsn > limbo.confirmed_lsn:",
    ),
    Planted(
        "left-member-counts",
        "acknowledgement of a member that left still counts",
        "commits.py",
        ("            del self.limbo.acknowledged[gone]  # what it had counts for nothing any more"),
        "            pass",
    ),
    Planted(
        "restore-no-owner-term",
        "snapshot's owner has no term: its rows are dropped as old",
        "commits.py",
        "            self.limbo.term_of[queue.owner_id] = queue.term",
        "            pass",
    ),
    Planted(
        "restore-confirmed-zero",
        "restart from a snapshot forgets what each owner had confirmed",
        "commits.py",
        ("        self.limbo.confirmed_of = dict(queue.confirmed_of)\n"),
        "",
    ),
    Planted(
        "restore-held-zero",
        "restart from a snapshot: late CONFIRM of what it holds contradicts",
        "commits.py",
        ("        self.limbo.held_lsn = vclock.get(queue.owner_id, 0)\n"),
        "",
    ),
    Planted(
        "recovered-unpromised",
        "recovered entries have no number that a PROMOTE could name",
        "commits.py",
        ("Entry(transaction, wait_ack, lsn, promised_lsn=lsn, written_ns=now.monotonic_ns)"),
        "Entry(transaction, wait_ack, lsn, written_ns=now.monotonic_ns)",
    ),
    Planted(
        "recovered-async-commits",
        "recovery commits asynchronous rows behind waiting ones at once",
        "commits.py",
        "            wait_sync = wait_ack or (len(self.limbo) > 0 and not is_nothing(rows))\n",
        "            wait_sync = wait_ack\n",
    ),
    Planted(
        "failed-confirm-stays",
        "a CONFIRM that failed counts as being written for ever",
        "commits.py",
        ("        self.limbo.confirming_lsn = self.limbo.confirmed_lsn\n"),
        "",
    ),
    Planted(
        "confirm-of-any-owner",
        "CONFIRM of a former owner confirms the new one's entries",
        "commits.py",
        (
            "        if number(row, Key.REPLICA_ID) == self.limbo.owner_id:\n            self.fates.commit_entries"
        ),
        ("        if True:\n            self.fates.commit_entries"),
    ),
    Planted(
        "pending-unsorted",
        "late PROMOTE of a lower term stands behind a newer one",
        "promotions.py",
        "            self.pending.sort(key=lambda known: known.term)\n",
        "",
    ),
    Planted(
        "pending-forgotten",
        "PROMOTE that takes effect drops later ones that wait",
        "promotions.py",
        "        del self.pending[: self.pending.index(promotion) + 1]",
        "        self.pending.clear()",
    ),
    Planted(
        "members-asynchronous",
        "change of members waits for no quorum",
        "ownership.py",
        ("        return space.is_sync or (self.is_claimed and space.definition.id == CLUSTER)"),
        "        return space.is_sync",
    ),
    Planted(
        "promote-ignores-pending",
        "PROMOTE does not stand on one that waits",
        "promotions.py",
        ("        if self.pending:\n            old_owner"),
        ("        if False:\n            old_owner"),
    ),
    Planted(
        "not-frozen",
        "owner goes on deciding when a newer term has begun",
        "ownership.py",
        ("        return self._election.term > self._limbo.term or not self.saw_promote"),
        "        return not self.saw_promote",
    ),
    Planted(
        "settled-by-one",
        "transaction counts as settled while it is the oldest that waits",
        "commits.py",
        "self.limbo.entries[0].transaction.number > number",
        "self.limbo.entries[0].transaction.number >= number",
    ),
    Planted(
        "confirm-no-barrier",
        "rows behind a CONFIRM that ends a PROMOTE are judged before it",
        "records.py",
        ("        is_barrier = kind in _BARRIERS or (kind == Type.CONFIRM and bool(self._pending))"),
        "        is_barrier = kind in _BARRIERS",
    ),
    Planted(
        "vote-row-empty",
        "vote is not written, only the term",
        "records.py",
        "write_vote(election.term, election.vote, now.wall_ns / 1e9)",
        "write_vote(election.term, 0, now.wall_ns / 1e9)",
    ),
    Planted(
        "confirming-not-noted",
        "replica does not note a CONFIRM on its way to the disk",
        "commits.py",
        ("                self.limbo.confirming_lsn = max(self.limbo.confirming_lsn, number(row, Key.LSN))"),
        "                pass",
    ),
    Planted(
        "unwritten-commits",
        "CONFIRM commits an entry behind it that is not written yet",
        "limbo.py",
        ("            if entry.lsn == UNWRITTEN or (entry.wait_ack and entry.lsn > self.confirmed_lsn):"),
        "            if entry.wait_ack and entry.lsn > self.confirmed_lsn:",
    ),
    Planted(
        "rollback-keeps-first",
        "ROLLBACK keeps the entry that it names",
        "limbo.py",
        "if entry.wait_ack and entry.lsn >= lsn),",
        "if entry.wait_ack and entry.lsn > lsn),",
    ),
    Planted(
        "confirmed-of-forgotten",
        "owner's confirmed lsn is not kept for its next time",
        "limbo.py",
        ("        self.confirmed_of[self.owner_id] = max(known, self.confirmed_lsn)\n"),
        "",
    ),
    Planted(
        "promote-names-written",
        "PROMOTE names the newest entry's lsn before it is written",
        "limbo.py",
        "else newest.promised_lsn",
        "else newest.lsn",
    ),
    Planted(
        "chain-boundary",
        "PROMOTE that names exactly the waiting one does not stand on it",
        "filter.py",
        "earlier.row_lsn <= chain[0].lsn",
        "earlier.row_lsn < chain[0].lsn",
    ),
    Planted(
        "stale-boundary",
        "late CONFIRM of exactly what is confirmed counts as contradiction",
        "filter.py",
        "    is_confirmed = number(row, Key.LSN) <= confirmed",
        "    is_confirmed = number(row, Key.LSN) < confirmed",
    ),
    Planted(
        "rollback-of-kept",
        "ROLLBACK is taken of what a waiting PROMOTE keeps",
        "filter.py",
        (
            "    if row.type == Type.ROLLBACK and any(p.old_owner == owner and lsn <= "
            "p.lsn for p in pending):\n"
            "        raise Contradiction(Code.SPLIT_BRAIN, KEPT_BY_PROMOTE)\n"
        ),
        "",
    ),
    Planted(
        "votes-twice",
        "votes for a second candidate of a term",
        "election.py",
        'self.mode != "off" and self.vote == 0 and self.leader_id == 0',
        'self.mode != "off" and self.leader_id == 0',
    ),
    Planted(
        "votes-for-behind",
        "votes for a candidate that lacks rows",
        "election.py",
        "        if may_vote and covers(its_vclock, ours):",
        "        if may_vote:",
    ),
    Planted(
        "vote-unwritten",
        "vote is told and not written",
        "election.py",
        ("            self._must_write()\n        elif may_vote:"),
        ("            self.must_tell = True\n        elif may_vote:"),
    ),
    Planted(
        "term-unwritten",
        "new term is not written",
        "election.py",
        ("        self.seen_by.clear()\n        self._must_write()\n"),
        ("        self.seen_by.clear()\n        self.must_tell = True\n"),
    ),
    Planted(
        "old-votes-count",
        "votes of a term before count in the next",
        "election.py",
        ("        self.votes.clear()\n        self.seen_by"),
        "        self.seen_by",
    ),
    Planted(
        "stale-message-counts",
        "vote in a message of a lower term counts",
        "election.py",
        ("        if message.term < self.term:\n            return  #"),
        ("        if message.term < 0:\n            return  #"),
    ),
    Planted(
        "candidate-votes-again",
        "candidate does not note that it voted for itself",
        "election.py",
        "        self.vote = self.votes[self.me] = self.me\n",
        "        self.votes[self.me] = self.me\n",
    ),
    Planted(
        "election-keeps-quorum",
        "changed quorum does not reach elections",
        "election.py",
        "        self.quorum = quorum\n        self._settle_quorum(now_ns)\n",
        "        self._settle_quorum(now_ns)\n",
    ),
    Planted(
        "restart-forgets-vote",
        "restarted node has no vote in its term",
        "election.py",
        ("        self.term, self.vote = max(term, 1), vote\n"),
        ("        self.term, self.vote = max(term, 1), 0\n"),
    ),
    Planted(
        "strict-as-soft",
        "strict fencing waits as long as soft",
        "election.py",
        ('return self.death_timeout_ns // 2 if self.fencing == "strict" else self.death_timeout_ns'),
        "return self.death_timeout_ns",
    ),
    Planted(
        "failed-rows-stay",
        "rows whose write failed stay for relays",
        "journal.py",
        ("        del self.rows[len(self.rows) - sum(len(write.rows) for write in lost) :]\n"),
        "",
    ),
    Planted(
        "failed-numbers-gone",
        "numbers of a failed write are not used again",
        "journal.py",
        ("        self.promised = dict(self.vclock)\n        return lost"),
        "        return lost",
    ),
    Planted(
        "torn-tail-stays",
        "torn tail is not cut off before more is appended",
        "stored_log.py",
        ("        return [*effects, Truncate(name, good_bytes)] if good_bytes < len(data) else effects"),
        "        return effects",
    ),
    Planted(
        "no-sync-after-read",
        "what was read at a start is not synced",
        "journal.py",
        ('            effects.append(Persist(self._sync_token, self._synced_name, b"", "sync"))'),
        "            self._sync_token = 0",
    ),
    Planted(
        "capture-over-promote",
        "snapshot is taken while a PROMOTE waits",
        "checkpoints.py",
        "not commits.records.is_behind_barrier and not commits.pending and not",
        "not commits.records.is_behind_barrier and not",
    ),
    Planted(
        "capture-rolled-back",
        "snapshot keeps what was rolled back since",
        "checkpoints.py",
        ("capture.failures == self._journal.failures and capture.rollbacks == rollbacks"),
        "capture.failures == self._journal.failures",
    ),
    Planted(
        "capture-failed",
        "snapshot keeps what could not be written",
        "checkpoints.py",
        ("capture.failures == self._journal.failures and capture.rollbacks == rollbacks"),
        "capture.rollbacks == rollbacks",
    ),
    Planted(
        "capture-confirmed-stale",
        "snapshot says of the queue what was confirmed when it began",
        "checkpoints.py",
        "            lsn = max(lsn, capture.last_entry.lsn)",
        "            pass",
    ),
    Planted(
        "snapshot-no-vote",
        "snapshot does not hold the vote",
        "checkpoints.py",
        "ElectionState(commits.election.term, commits.election.vote)",
        "ElectionState(commits.election.term, 0)",
    ),
    Planted(
        "id-used-again",
        "newcomer gets the number of a member that left",
        "joining.py",
        ("{fields[0] for fields in space.scan(dirty=True)} | set(self._journal.promised)"),
        "{fields[0] for fields in space.scan(dirty=True)}",
    ),
    Planted(
        "joiner-no-owner",
        "newcomer does not learn who owns the queue",
        "joining.py",
        ("            self.queue = queue_state(row)\n"),
        ("            pass\n"),
    ),
    Planted(
        "join-keeps-broken-off",
        "newcomer keeps tuples of a join that broke off",
        "joining.py",
        ("        self.tuples.clear()\n"),
        "",
    ),
    Planted(
        "half-transaction-stays",
        "half a transaction of a lost link is joined to the next one's rows",
        "applier.py",
        ("        self.partial.clear()\n        self.backlog.clear()"),
        "        self.backlog.clear()",
    ),
    Planted(
        "decides-on-oldest",
        "decisions see the oldest prepared version",
        "spaces.py",
        ("            transaction, newest = versions[-1]\n"),
        ("            transaction, newest = versions[0]\n"),
    ),
    Planted(
        "delete-stays",
        "committed deletion leaves the tuple",
        "spaces.py",
        ("            self.confirmed.pop(key, None)\n"),
        ("            pass\n"),
    ),
    Planted(
        "waits-for-oldest",
        "answer without effect waits for the oldest that it looked at",
        "evaluation.py",
        "maker.number > self.outcome.looked_at.number",
        "maker.number < self.outcome.looked_at.number",
    ),
    Planted(
        "absence-not-waited",
        "answer that reveals a pending deletion does not wait",
        "evaluation.py",
        ("        if maker is not None:\n            self._note_looked_at(maker)"),
        ("        if maker is not None and value is not None:\n            self._note_looked_at(maker)"),
    ),
    Planted(
        "duplicate-at-once",
        "duplicate key is told before the first one is confirmed",
        "service.py",
        (
            "            answer_later(outcome.looked_at, link, refusal, self._out)\n"
            "        elif outcome.mismatch"
        ),
        ("            answer_later(None, link, refusal, self._out)\n        elif outcome.mismatch"),
    ),
    Planted(
        "least-of-before",
        "overdraft: the bound is compared with the sum before",
        "statements.py",
        "    if least is not None and total < least:",
        "    if least is not None and before < least:",
    ),
    Planted(
        "linearizable-dirty",
        "linearizable read shows what is prepared",
        "service.py",
        "Evaluation(self._schema.lookup, confirmed_only=True, is_linearizable=True)",
        "Evaluation(self._schema.lookup, confirmed_only=False, is_linearizable=True)",
    ),
    Planted(
        "room-stale",
        "what waited for room is written as evaluated before the wait",
        "service.py",
        (
            "                lambda now: self._run_writing(link, sync, evaluate, make, "
            "now, options, has_waited=True)\n"
        ),
        (
            "                lambda now: commits.submit(\n"
            "                    tuple(outcome.changes), tuple(outcome.drafts), (link, "
            "make(outcome)), now, is_sync=options.is_sync\n"
            "                )\n"
        ),
    ),
    Planted(
        "unconfirmed-members",
        "member counts before its registration is confirmed",
        "schema.py",
        "self.by_id[system.CLUSTER].scan(dirty=False)",
        "self.by_id[system.CLUSTER].scan(dirty=True)",
    ),
    Planted(
        "promote-without-acks",
        "PROMOTE by hand waits for no acknowledgements",
        "control.py",
        ("        return not self._commits.limbo.entries or self._acks() >= self._commits.promotions.quorum"),
        "        return True",
    ),
    Planted(
        "promote-in-old-term",
        "PROMOTE by hand goes on although another term began",
        "control.py",
        "        if procedure.term and procedure.term != self._election.term:",
        "        if False:",
    ),
    Planted(
        "term-of-promote-unwritten",
        "PROMOTE by hand begins a term that is not written",
        "promotions.py",
        ("        self._records.save_vote(now)\n"),
        (""),
    ),
    Planted(
        "quorum-change-ignored",
        "quorum that is changed at run time stays as it was",
        "options.py",
        ("        self.counts(self.members)\n        self.changed"),
        "        self.changed",
    ),
    # What the node itself did once: readers of a PROMOTE decided whether it waits, and a new candidate began at once.
    Planted(
        "promote-by-readers-option",
        "whether a PROMOTE waits is what the reader's options say",
        "promotions.py",
        "            if not promotion.waits:",
        "            if not self._options.has_elections or self.at_once:",
    ),
    Planted(
        "new-candidate-forgets",
        "node that is made a candidate forgets the leader and begins an election",
        "election.py",
        "            self.leader_heard_ns = now_ns  # as if it had just started: the leader has its time to be heard",
        "            self.leader_id, self.seen_by = 0, {}\n            self._begin(now_ns)",
    ),
)
