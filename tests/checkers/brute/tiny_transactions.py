"""Tiny histories of transactions: at most five, on at most three keys, with at most three micro-operations each.

Two kinds, both from a seed. `guessed`: the answers are drawn, most of them such that they might be true. `answered`:
a tiny database answers, which is right or has one weakness. So most histories are almost right.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.checkers.brute.histories import Line, Recorder

Micro = list[Any]
WEAKNESSES = (
    "none",
    "snapshots",  # snapshot isolation: write skew
    "stale-snapshots",  # snapshots of any earlier moment
    "second-committer",  # snapshots, and nobody looks for conflicts
    "read-committed",  # each read sees the newest commit
    "any-moment",  # each read sees any commit
    "two-sites",  # snapshots of the own site, to which the other site's commits come late: long forks
    "dirty-reads",  # writes happen at once, and are undone by an abort
    "torn-commits",  # commits happen key by key
    "lost-writes",  # a commit now and then leaves out one write
    "undead",  # what was refused happened all the same
    "half-info",  # of a transaction without answer, a part happens
)

TEXTBOOK = (
    ("wx", "wy", "rx-ry", "ry-rx"),  # long fork
    ("rx-wy", "ry-wx"),  # write skew
    ("rx-ry-wx", "rx-ry-wy"),  # the same, reading both
    ("rx-wx", "rx-wx"),  # lost update
    ("wx-wy", "rx-ry"),  # fractured read
    ("wx-wy", "wy-wx", "rx-ry"),  # dirty write
    ("wx-ry", "wy-rx"),  # circular information flow
    ("rx-wx-ry", "ry-wy", "rx-ry"),  # read-only anomaly
    ("wx-rx", "wx-rx-ry"),  # reads of own writes
    ("wx", "rx-wy", "ry-rx"),  # a cause that its effect's reader does not see
    ("wx", "rx-wy", "ry-wx", "rx-ry"),  # the same with a later writer
    ("wx-wy", "ry-rx"),  # a fractured read, which an early read of an old value excuses
    ("wx", "wx", "rx", "rx-rx"),  # writes in two orders
)


def drawn(seed: int, *, workload: str) -> list[Line]:
    """The lines of one history."""
    rng = random.Random(f"transactions {workload} {seed}")
    return guessed(rng, workload) if seed % 3 == 0 else answered(rng, workload, rng.choice(WEAKNESSES))


def _question(rng: random.Random, workload: str, keys: str, fresh: dict[str, int]) -> list[Micro]:
    micros: list[Micro] = []
    writes = rng.choice((0.0, 0.4, 0.6, 1.0))
    places = rng.sample(keys, len(keys)) + [rng.choice(keys) for _ in range(3)]
    for key in places[: rng.choice((1, 2, 2, 2, 3))]:
        if rng.random() >= writes or fresh.get(key, 0) == 4:
            micros.append(["r", key, None])
        else:
            fresh[key] = fresh.get(key, 0) + 1
            micros.append(["append" if workload == "append" else "w", key, fresh[key]])
    return micros


def _questions(rng: random.Random, workload: str, keys: str, fresh: dict[str, int]) -> list[list[Micro]]:
    """Three to five transactions; one time in three those of a textbook's anomaly, and one more."""
    if len(keys) < 2 or rng.random() < 0.67:
        return [_question(rng, workload, keys, fresh) for _ in range(rng.choice((2, 3, 3, 4, 4, 5)))]
    x, y = rng.sample(keys, 2)
    questions: list[list[Micro]] = []
    for text in rng.choice(TEXTBOOK):
        question: list[Micro] = []
        for word, place in text.split("-"):
            key = x if place == "x" else y
            if word == "r":
                question.append(["r", key, None])
            else:
                fresh[key] = fresh.get(key, 0) + 1
                question.append(["append" if workload == "append" else "w", key, fresh[key]])
        questions.append(question)
    rng.shuffle(questions)
    if len(questions) < 4:
        questions.insert(rng.randrange(3), _question(rng, workload, keys, fresh))
    return questions


def guessed(rng: random.Random, workload: str) -> list[Line]:
    """Intervals and outcomes by chance; reads of values that were written, lists most often in one order."""
    keys = "xyz"[: rng.choice((1, 2, 2, 2, 2, 3))]
    fresh: dict[str, int] = {}
    recorder = Recorder(rng.choice((1, 2, 2, 3, 3)))
    questions = _questions(rng, workload, keys, fresh)
    order = {key: rng.sample(range(1, count + 1), count) for key, count in fresh.items()}
    running: dict[int, list[Micro]] = {}
    outcomes = rng.choice((("ok",), ("ok", "ok", "ok", "info"), ("ok", "ok", "ok", "info", "fail")))
    while questions or running:
        client = rng.randrange(recorder.clients)
        if client in running:
            outcome = rng.choice(outcomes)
            asked = running.pop(client)
            told = _guess(rng, workload, asked, order) if outcome == "ok" else asked
            recorder.add(client, outcome, "txn", told)
        elif questions:
            running[client] = questions.pop(0)
            recorder.add(client, "invoke", "txn", running[client])
    return recorder.lines


def _guess(rng: random.Random, workload: str, asked: list[Micro], order: dict[str, list[int]]) -> list[Micro]:
    own: dict[str, list[int]] = {}
    told: list[Micro] = []
    for word, key, value in asked:
        mine = own.setdefault(key, [])
        if word != "r":
            mine.append(value)
            told.append([word, key, value])
            continue
        written = order.get(key, [])
        if workload == "rw-register":
            guess = mine[-1] if mine and rng.random() < 0.8 else rng.choice([None, *written])
            told.append(["r", key, guess])
        elif rng.random() < 0.97:
            seen = written[: rng.randint(0, len(written))]
            told.append(["r", key, [each for each in seen if each not in mine] + mine])
        else:
            told.append(["r", key, rng.sample(written, rng.randint(0, len(written)))])
    return told


# ---- a tiny database


@dataclass(slots=True)
class _Running:
    asked: list[Micro]
    told: list[Micro]
    snapshot: dict[str, Any]
    started: int
    writes: list[Micro] = field(default_factory=list)
    done: bool = False
    aborted: bool = False


class TinyDatabase:
    """Transactions that take effect step by step, by chance. `weakness` is what it does wrong (see WEAKNESSES)."""

    def __init__(self, rng: random.Random, workload: str, weakness: str) -> None:
        self.rng = rng
        self.workload = workload
        self.weakness = weakness
        self.state: dict[str, Any] = {}
        self.past: list[dict[str, Any]] = [{}]
        self.commits: list[set[str]] = []
        self.late: list[Callable[[], None]] = []

    def begin(self, client: int, asked: list[Micro]) -> _Running:
        started = len(self.commits)
        if self.weakness == "stale-snapshots":
            started = self.rng.randint(0, started)
        snapshot = self.state if started == len(self.commits) else self.past[started]
        if self.weakness == "two-sites":
            late = {key for key in self.state if (ord(key) + client) % 2 and self.rng.random() < 0.6}
            old = self.rng.choice(self.past)
            snapshot = {key: old.get(key) if key in late else held for key, held in self.state.items()}
        return _Running(asked, [], dict(snapshot), started)

    def step(self, txn: _Running) -> None:
        """The next micro-operation, or the commit."""
        if len(txn.told) == len(txn.asked):
            self._commit(txn)
            return
        word, key, value = txn.asked[len(txn.told)]
        if word != "r":
            txn.told.append([word, key, value])
            txn.writes.append([word, key, value])
            if self.weakness == "dirty-reads":
                self._write(self.state, word, key, value)
            return
        if self.weakness == "dirty-reads":
            shown = self.state.get(key)
        else:
            view = dict(self._view(txn))
            for each in txn.writes:
                self._write(view, *each)
            shown = view.get(key)
        txn.told.append([word, key, list(shown) if isinstance(shown, list) else shown])

    def _view(self, txn: _Running) -> dict[str, Any]:
        if self.weakness == "read-committed":
            return self.state
        return self.rng.choice(self.past) if self.weakness == "any-moment" else txn.snapshot

    def _write(self, state: dict[str, Any], word: str, key: str, value: Any) -> None:
        state[key] = [*(state.get(key) or []), value] if word == "append" else value

    def _commit(self, txn: _Running) -> None:
        rng, weak = self.rng, self.weakness
        txn.done = True
        read = {key for word, key, _ in txn.asked if word == "r"}
        written = {key for _, key, _ in txn.writes}
        meanwhile = set().union(*self.commits[txn.started :])
        watched: set[str] = set()
        if weak in ("none", "lost-writes", "undead", "half-info", "torn-commits"):
            watched = read | written
        elif weak in ("snapshots", "stale-snapshots", "two-sites"):
            watched = written
        txn.aborted = bool(watched & meanwhile) or rng.random() < 0.05
        if txn.aborted and not (weak == "undead" and rng.random() < 0.5):
            if weak == "dirty-reads":
                self._undo(txn)
            return
        writes = [] if weak == "dirty-reads" else list(txn.writes)
        if weak == "lost-writes" and writes and rng.random() < 0.5:
            writes.pop(rng.randrange(len(writes)))
        if weak == "torn-commits":
            self.late += [lambda each=each: self._write(self.state, *each) for each in writes]
            writes = []
        if writes or weak == "dirty-reads":
            self._install(writes)

    def _install(self, writes: list[Micro]) -> None:
        self.commits.append({key for _, key, _ in writes})
        self.state = dict(self.state)
        for each in writes:
            self._write(self.state, *each)
        self.past.append(self.state)

    def _undo(self, txn: _Running) -> None:
        for _, key, value in txn.writes:
            held = self.state.get(key)
            if isinstance(held, list):
                self.state[key] = [each for each in held if each != value]
            elif held == value:
                self.state[key] = None

    def half(self, txn: _Running) -> None:
        """A part of a transaction that nobody will have an answer of."""
        txn.done = True
        told = [micro for micro in txn.asked if micro[0] != "r"]
        part = [micro for micro in told if self.rng.random() < 0.5]
        if part:
            self._install(part)

    def go_on(self) -> None:
        if self.late:
            self.late.pop(self.rng.randrange(len(self.late)))()


def answered(rng: random.Random, workload: str, weakness: str) -> list[Line]:
    """Clients that ask a tiny database; answers get lost now and then."""
    keys = "xyz"[: rng.choice((1, 2, 2, 2, 2, 3))]
    fresh: dict[str, int] = {}
    database = TinyDatabase(rng, workload, weakness)
    recorder = Recorder(rng.choice((1, 2, 3, 3, 4)))
    lost = rng.choice((0.0, 0.15, 0.4))
    questions = _questions(rng, workload, keys, fresh)
    running: dict[int, _Running] = {}
    while questions or running:
        client = rng.randrange(recorder.clients)
        if rng.random() < 0.3:
            database.go_on()
        if client not in running:
            if questions:
                recorder.add(client, "invoke", "txn", questions[0])
                running[client] = database.begin(client, questions.pop(0))
            continue
        txn = running[client]
        if txn.done:
            del running[client]
            outcome = "info" if rng.random() < lost else "fail" if txn.aborted else "ok"
            recorder.add(client, outcome, "txn", txn.told if outcome == "ok" else txn.asked)
        elif weakness == "half-info" and rng.random() < 0.15:
            database.half(txn)
            del running[client]
            recorder.add(client, "info", "txn", txn.asked)
        else:
            for _ in range(rng.choice((1, 1, 4))):
                if not txn.done:
                    database.step(txn)
    return recorder.lines
