"""The guarantees of a system: one row a configuration, one entry a class of operation.

A verdict judges each class of answers against its own promise, by what the *server* said it did. The classes:

| class | operations |
|---|---|
| writes | acknowledged writes, and reads that are promised to fit them |
| submitted writes | answered when they are in the queue: commit wait modes `submit` and `none` |
| owner reads | `read-confirmed` at the owner |
| replica reads | `read-confirmed` elsewhere |
| dirty reads | `dirty`, anywhere |
| linearizable reads | `linearizable`, anywhere |
| final state | what all nodes hold after healing |

| model | means |
|---|---|
| linearizable | one order, within real time |
| monotone-prefix | stale without bound, but a node never goes back and shows confirmed values only |
| read-uncommitted | any value that a client wrote |
| converged | all nodes the same, nothing confirmed lost |
| in-turn | not acknowledged: it happens whole, after it was asked for and before what came behind it, or never |
| stale | an old value, no more is said |
| "" | nothing is promised: what is found is reported, and is not a violation |

Submitted writes do not weaken the promise of complete ones: a write that was only submitted
excuses the loss of nothing else (`checkers.domain.queue_order`). Its refusals are as sure as any: error 289 (mode
`none`, no room) is not done. A row that promises nothing of writes promises nothing of submitted ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from harness.errors import WrongUse


@dataclass(frozen=True, slots=True)
class Clause:
    """The guarantee of one class of answers: what the class is, and the model that its answers fit."""

    check: str
    """The subject of the check: writes, reads, the state of nodes; or the name of a checker, for its `source`."""
    model: str = ""
    """"" promises nothing."""
    role: str = ""
    """The role of the node that answers; "" is any, here and below."""
    mode: str = ""
    """The mode of a read."""
    phase: str = ""
    source: str = ""
    """A quotation of the store's own documentation, with its page."""

    @property
    def answers(self) -> tuple[str, str, str, str]:
        """The class of answers, whatever is promised of it."""
        return self.check, self.role, self.mode, self.phase

    @property
    def name(self) -> str:
        return ", ".join(word for word in self.answers if word)


WRITES = Clause("writes")
OWNER_READS = Clause("reads", role="owner", mode="read-confirmed")
REPLICA_READS = Clause("reads", role="replica")
"""Of every mode that has no clause of its own."""
DIRTY_READS = Clause("reads", mode="dirty")
LINEARIZABLE_READS = Clause("reads", mode="linearizable")
FINAL_STATE = Clause("state", phase="final")
ASYNCHRONOUS_WRITES = Clause("asynchronous writes", "as synchronous")
"""Acknowledged asynchronous transactions: they keep to the order of the log on all nodes, like synchronous ones;
"where answered": they stay on the node that acknowledged them; other nodes need not have them."""
LEADERS = Clause("leaders", "one leader a term")
"""Without the promise several nodes may lead, and none of them know it."""
LOGS = Clause("logs", "logs that agree")
"""The nodes' own logs. Promised nothing: they may contradict each other, which is then a finding."""
PLAIN_WRITES = Clause("plain writes", "as writes")
"""Writes that do not depend on what was there; other writes are a cas, an append, an addition, a take."""
TRANSACTIONS = Clause("transactions", "as writes")
"""Transactions of several keys. "as writes": strict-serializable where writes are linearizable, nothing where not; else
an isolation model of `checkers.transactional`, of transactions whose single writes keep their own clause."""
ACKNOWLEDGED = Clause("acknowledged transactions", "as transactions")
"""Whether they are in the final state. "as transactions": where these are whole (`Promise.has_whole_transactions`);
"stays": whatever their model allows a later transaction to miss, as read committed does."""
QUEUES = Clause("queues", "as transactions")
"""Elements that are put in and taken out. "as transactions": once and in order, where these are whole; "at least once":
an acknowledged one is not lost, but may come out again, and in another order."""
STRICT = "strict-serializable"
QUORUM = Clause("quorum", "acknowledged only with a quorum")
"""Promised nothing: a write may be acknowledged while its owner reaches no other node."""

CLAUSES: Mapping[str, Clause] = {
    "writes": WRITES,
    "plain_writes": PLAIN_WRITES,
    "transactions": TRANSACTIONS,
    "acknowledged": ACKNOWLEDGED,
    "queues": QUEUES,
    "dirty_reads": DIRTY_READS,
    "linearizable_reads": LINEARIZABLE_READS,
    "owner_reads": OWNER_READS,
    "replica_reads": REPLICA_READS,
    "final_state": FINAL_STATE,
    "asynchronous": ASYNCHRONOUS_WRITES,
    "leaders": LEADERS,
    "logs": LOGS,
    "quorum": QUORUM,
}
"""The classes by the names that rows of promises give them, with the model of a row that does not say. The first
clause that fits a read is its promise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A row of the table; `why` says in a sentence what it rests on."""

    configuration: str
    clauses: tuple[Clause, ...]
    why: str
    has_leader: bool = True
    """One node takes writes at a time, and calls itself "owner"."""
    has_dumps: bool = True
    """Nodes answer a dump of all their data."""
    may_end_under: tuple[str, ...] = ()
    """The actions of faults in `checkers.history.faults.MAY_END_NODES` under which a node may end: "disk-error" for a
    node that stops when its disk is full. The node must come up again when the fault is over."""
    isolated_owner_rolls_back: bool = False
    """An owner that is cut off for longer than twice the synchro timeout rolls back what waits. A run without
    such a rollback is inconclusive about that."""

    def model(self, answers: Clause) -> str:
        """The model that is promised of this class of answers; "" for nothing."""
        return next((clause.model for clause in self.clauses if clause.answers == answers.answers), "")

    def of_read(self, role: str | None, mode: str | None) -> str:
        """The model that is promised of a read, by the role and mode in its answer. An answer without them, or with
        words that no clause has, counts as a confirmed read of the owner: a new word takes no promise away.
        """
        of_reads = [clause for clause in self.clauses if clause.check == OWNER_READS.check]
        role = role if role and any(role == clause.role for clause in of_reads) else OWNER_READS.role
        mode = mode if mode and any(mode == clause.mode for clause in of_reads) else OWNER_READS.mode
        fitting = (clause for clause in of_reads if clause.role in ("", role) and clause.mode in ("", mode))
        return next((clause.model for clause in fitting), "")

    def but(self, documented: Mapping[str, str] | None = None, **changed: Any) -> Promise:
        """The same with other models, by the names of `CLAUSES`, or other fields; `documented`: checker → source."""
        models = {CLAUSES[name].answers: changed.pop(name) for name in CLAUSES if name in changed}
        kept = tuple(
            replace(clause, model=models[clause.answers]) if clause.answers in models else clause
            for clause in self.clauses
            if documented is None or not clause.source
        )
        sources = tuple(Clause(checker, source=text) for checker, text in (documented or {}).items())
        return replace(self, clauses=kept + sources, **changed)

    def without_power(self, setting: str, documented: Mapping[str, str] | None = None) -> Promise:
        """The same where nodes lose power and, by `setting`, acknowledge what no disk has yet (decision 21): neither
        acknowledged writes nor equal data."""
        return self.but(
            configuration=f"{self.configuration}; {setting}",
            **dict.fromkeys(
                ("writes", "owner_reads", "replica_reads", "linearizable_reads", "final_state"), ""
            ),
            **{name: CLAUSES[name].model for name in ("acknowledged", "queues")},
            documented=documented,
            why=f"{self.why}; and with {setting} a node that loses power may lose what it had acknowledged",
        )

    @property
    def documented(self) -> Mapping[str, str]:
        """Checker → what the store's own documentation says of it."""
        return {clause.check: clause.source for clause in self.clauses if clause.source}

    @property
    def of_plain_writes(self) -> str:
        """The model of writes that do not depend on what was there."""
        model = self.model(PLAIN_WRITES)
        return self.model(WRITES) if model == "as writes" else model

    def isolation(self, *, are_plain: bool) -> str:
        """The model of transactions of several keys. `are_plain`: their writes do not depend on what was there."""
        model = self.model(TRANSACTIONS)
        if model == "as writes":
            return STRICT if self.model(WRITES) == "linearizable" else ""
        return model if self.model(WRITES) or (are_plain and self.of_plain_writes) else ""

    def has_whole_transactions(self, *, are_plain: bool) -> bool:
        """Transactions of several keys fit real time, and none is lost or seen in parts: strong parallel snapshot
        isolation or more."""
        model = self.isolation(are_plain=are_plain)
        if model in (STRICT, ""):
            return model == STRICT
        from checkers.transactional.anomalies import forbidden

        return forbidden(model) >= {"lost-update", "G-single-realtime"}

    @property
    def submitted(self) -> str:
        """The promise for writes that were answered when they were queued."""
        return "in-turn" if self.model(WRITES) == "linearizable" else ""

    @property
    def answers(self) -> str:
        """The promise about the moment in which a complete write is answered."""
        return "answered when it is confirmed" if self.model(WRITES) == "linearizable" else ""

    @property
    def has_fresh_reads(self) -> bool:
        """Some class of reads must show what was acknowledged before their invocation."""
        return "linearizable" in (self.model(OWNER_READS), self.model(LINEARIZABLE_READS))


def promised(configuration: str, why: str, **models: Any) -> Promise:
    """A row of models, by the names of `CLAUSES`."""
    return Promise(configuration=configuration, why=why, clauses=tuple(CLAUSES.values())).but(**models)


CHOICES: Mapping[str, tuple[str, ...]] = {
    "writes": ("linearizable", ""),
    "owner_reads": ("linearizable", "stale", ""),
    "replica_reads": ("linearizable", "monotone-prefix", ""),
    "dirty_reads": ("read-uncommitted", ""),
    "linearizable_reads": ("linearizable", ""),
    "transactions": ("as writes", ""),
    "acknowledged": ("as transactions", "stays"),
    "queues": ("as transactions", "at least once"),
    "final_state": ("converged", ""),
    "asynchronous": ("as synchronous", "where answered"),
    "leaders": ("one leader a term", ""),
    "logs": ("logs that agree", ""),
    "quorum": ("acknowledged only with a quorum", ""),
}
"""The promises that a store may make: names of `CLAUSES`, and the models of each; of transactions also any isolation
model of `checkers.transactional`."""


def must_be_promises(promised: Mapping[str, str]) -> None:
    """WrongUse unless each name and its word stand in `CHOICES`; transactions may also have an isolation model."""
    for name, word in promised.items():
        if name not in CHOICES:
            raise WrongUse(f"promised has no {name!r}; it has: {', '.join(CHOICES)}")
        if word in CHOICES[name]:
            continue
        if name == "transactions" and isinstance(word, str):
            _must_be_a_model(word)
        else:
            choices = ", ".join(repr(model) for model in CHOICES[name])
            raise WrongUse(f"promised: {name} is one of {choices}; got {word!r}")


def _must_be_a_model(word: str) -> None:
    """WrongUse unless it is the name of an isolation model, as `checkers.transactional.MODELS` has it."""
    from checkers.transactional.anomalies import model_of

    expected = f"promised: transactions is 'as writes', '' or an isolation model; got {word!r}"
    try:
        known = model_of(word)
    except KeyError as error:
        raise WrongUse(f"{expected}; {error.args[0]}") from error
    if known != word:
        raise WrongUse(f"{expected}; its name here is {known!r}")
