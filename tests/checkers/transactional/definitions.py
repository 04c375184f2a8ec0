"""The isolation models by their definitions, for tiny histories: every execution is tried.

A history is of a model if there is an execution of the model in which every ok transaction happened and gave its
answers, no failed one happened, and each unsure one happened or not. This file shares nothing with
`checkers.transactional`, and concludes nothing: it tries subsets, orders and interleavings.

serializable, repeatable-read         one after the other; repeatable-read lets reads by predicates show earlier states
snapshot-isolation                    a moment for the snapshot, a later one for the commit; who writes a key commits
                                      while nobody else does who writes it
update-serializable                   those that write one after the other, and each that only reads somewhere in an
                                      order of them that has the same orders of versions
prefix                                as snapshot-isolation, without a word of who else writes a key
parallel-snapshot-isolation           an order of versions, and for each transaction the least set of seen ones that is
                                      closed and in which writers of one key saw each other; a read gives the last seen
causal-cerone                         the same, but writers of one key need not have seen each other
update-atomic                         as parallel-snapshot-isolation, but the set is not closed
monotonic-view                        as parallel-snapshot-isolation, but the set is that of a read: what this read, and
                                      reads and writes of the transaction before it, saw
read-atomic                           an order of versions that agrees with who read of whom; no read gives a version
                                      older than one by a transaction that was read of, or that comes before it in the
                                      session or in real time; reads agree with own writes
monotonic-atomic-view                 the same, but a read knows of those alone that it or a read before it was of
cursor-stability                      nobody writes a key between the version that a transaction read of it and its own
read-committed                        an order of versions that agrees with who read of whom; only last versions

strong-session-… and strong-…: the order has what was over before it began, in the session or anywhere, before it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations, permutations
from typing import Any

from checkers.history import History, Operation

BASES = (
    "read-committed",
    "cursor-stability",
    "monotonic-atomic-view",
    "monotonic-view",
    "read-atomic",
    "update-atomic",
    "causal-cerone",
    "prefix",
    "parallel-snapshot-isolation",
    "update-serializable",
    "snapshot-isolation",
    "repeatable-read",
    "serializable",
)
State = dict[Any, tuple[Any, ...]]


def name_of(base: str, order: int) -> str:
    if base == "causal-cerone":
        return ("causal-cerone", "causal", "strong-causal")[order]
    name = ("", "strong-session-", "strong-")[order] + base
    return "strict-serializable" if name == "strong-serializable" else name


class Definitions:
    """`holds`: of each model by name, whether the history is of it."""

    def __init__(self, history: History, workload: str) -> None:
        self.lists = workload == "append"
        self.txns = [each for each in history.operations if each.f == "txn"]
        ok = [number for number, each in enumerate(self.txns) if each.type == "ok"]
        unsure = [number for number, each in enumerate(self.txns) if each.type == "info"]
        self.choices = [
            sorted(ok + list(some))
            for count in range(len(unsure) + 1)
            for some in combinations(unsure, count)
        ]
        self.writer = {
            (k, v): n for n, t in enumerate(self.txns) for f, k, v in t.value if f in ("w", "append")
        }
        self.holds = {
            name_of(base, order): self._holds(base, order)
            for base in BASES
            for order in range(1 if base == "update-serializable" else 3)
        }

    def _holds(self, base: str, order: int) -> bool:
        if not self._readable():
            return False
        if base in ("snapshot-isolation", "prefix"):
            wins = base == "snapshot-isolation"
            return any(self._interleaves(chosen, order, first_wins=wins) for chosen in self.choices)
        if base == "update-serializable":
            return any(self._updates_run(chosen, order) for chosen in self.choices)
        test = {
            "serializable": self._runs,
            "repeatable-read": self._runs_but_predicates,
            "parallel-snapshot-isolation": partial(self._sees, conflicts=True, closed=True),
            "causal-cerone": partial(self._sees, conflicts=False, closed=True),
            "update-atomic": partial(self._sees, conflicts=True, closed=False),
            "monotonic-view": self._is_monotonic,
            "read-atomic": self._is_atomic,
            "monotonic-atomic-view": self._is_atomic_so_far,
            "cursor-stability": self._is_stable,
            "read-committed": self._is_committed,
        }[base]
        return any(test(each, order) for chosen in self.choices for each in self._orders(chosen, order))

    def _readable(self) -> bool:
        """No read shows what nobody wrote, or what its own transaction writes only later, or something twice, or a
        later append of a transaction without its earlier ones."""
        for number, txn in enumerate(self.txns):
            if txn.type != "ok":
                continue
            mine = set()
            for f, key, value in txn.value:
                if f in ("w", "append"):
                    mine.add((key, value))
                    continue
                shown = self._shown(value)
                if len(set(shown)) < len(shown):
                    return False
                for each in shown:
                    writer = self.writer.get((key, each))
                    if writer is None or (writer == number and (key, each) not in mine):
                        return False
                    if self.lists and not self._is_whole(shown, writer, key):
                        return False
        return True

    def _is_whole(self, shown: Sequence[Any], writer: int, key: Any) -> bool:
        """Whether a list has the first appends of its writer, in their order."""
        made = [v for f, k, v in self.txns[writer].value if f == "append" and k == key]
        there = [value for value in shown if value in made]
        return there == made[: len(there)]

    def _shown(self, value: Any) -> tuple[Any, ...]:
        return () if value is None else tuple(value) if self.lists else (value,)

    def _before(self, one: int, other: int, order: int) -> bool:
        a, b = self.txns[one], self.txns[other]
        return a.precedes(b) and (order == 2 or (order == 1 and a.process == b.process))

    def _orders(self, chosen: Sequence[int], order: int) -> Iterator[tuple[int, ...]]:
        for each in permutations(chosen):
            if not any(self._before(late, early, order) for early, late in combinations(each, 2)):
                yield each

    def _writes(self, number: int) -> State:
        """The last values that it writes of each key: of lists all, in their order."""
        state: State = {}
        for f, key, value in self.txns[number].value:
            if f == "append":
                state[key] = (*state.get(key, ()), value)
            elif f == "w":
                state[key] = (value,)
        return state

    def _after(self, state: State, number: int) -> State:
        state = dict(state)
        for key, values in self._writes(number).items():
            state[key] = (*state.get(key, ()), *values) if self.lists else values
        return state

    # one state that a transaction reads

    def _answers(self, number: int, state: State, predicates: bool = True) -> bool:
        state = dict(state)
        for f, key, value in self.txns[number].value:
            if f == "append":
                state[key] = (*state.get(key, ()), value)
            elif f == "w":
                state[key] = (value,)
            elif self.txns[number].type != "ok" or (f == "rp" and not predicates):
                continue
            elif self._shown(value) != state.get(key, ()):
                return False
        return True

    def _runs(self, order: Sequence[int], _: int) -> bool:
        state: State = {}
        for number in order:
            if not self._answers(number, state):
                return False
            state = self._after(state, number)
        return True

    def _updates_run(self, chosen: Sequence[int], order: int) -> bool:
        updates = [number for number in chosen if self._writes(number)]
        looks = [number for number in chosen if not self._writes(number)]
        by_versions: dict[Any, list[tuple[int, ...]]] = defaultdict(list)
        for each in self._orders(updates, order):
            if self._runs(each, order):
                writers = {
                    key: [n for n in each if key in self._writes(n)] for n in each for key in self._writes(n)
                }
                by_versions[str(sorted(writers.items()))].append(each)
        return any(
            all(any(self._has_room_for(look, each, order) for each in orders) for look in looks)
            for orders in by_versions.values()
        )

    def _has_room_for(self, look: int, updates: Sequence[int], order: int) -> bool:
        """Whether it may stand somewhere among them."""
        together = ((*updates[:at], look, *updates[at:]) for at in range(len(updates) + 1))
        return any(
            self._runs(each, order)
            and not any(self._before(late, early, order) for early, late in combinations(each, 2))
            for each in together
        )

    def _runs_but_predicates(self, order: Sequence[int], _: int) -> bool:
        state: State = {}
        past = [state]
        for number in order:
            if not self._answers(number, state, predicates=False):
                return False
            for f, key, value in self.txns[number].value:
                free = f != "rp" or self.txns[number].type != "ok"
                if not free and not any(self._agrees(number, key, value, each) for each in past):
                    return False
            if not self._repeats(number):
                return False
            state = self._after(state, number)
            past.append(state)
        return self._no_lost_update(order)

    def _agrees(self, number: int, key: Any, value: Any, state: State) -> bool:
        mine = self._writes(number).get(key, ())
        shown = self._shown(value)
        base = state.get(key, ())
        if self.lists:
            return any(shown == base + mine[:size] for size in range(len(mine) + 1))
        return shown == base or shown in [
            (v,) for f, k, v in self.txns[number].value if f == "w" and k == key
        ]

    def _repeats(self, number: int) -> bool:
        """Within the transaction reads agree with its first read and its own writes."""
        state: State = {}
        own: State = defaultdict(tuple)
        for f, key, value in self.txns[number].value:
            if f in ("w", "append"):
                own[key] = (*own[key], value) if self.lists else (value,)
                if key in state:
                    state[key] = (*state[key], value) if self.lists else (value,)
                elif not self.lists:
                    state[key] = (value,)
                continue
            if self.txns[number].type != "ok":
                continue
            shown = self._shown(value)
            if key in state and state[key] != shown:
                return False
            if self.lists and own[key] and shown[-len(own[key]) :] != own[key]:
                return False
            state[key] = shown
        return True

    def _no_lost_update(self, order: Sequence[int]) -> bool:
        """Of two that first read one version of a key and then wrote it, one did not see the other."""
        seen = set()
        for number in order:
            first: dict[Any, Any] = {}
            for f, key, value in self.txns[number].value:
                if f in ("r", "rp") and key not in first and self.txns[number].type == "ok":
                    first[key] = self._shown(value)
                elif f in ("w", "append") and first.setdefault(key, None) is not None:
                    if (key, first[key]) in seen:
                        return False
                    seen.add((key, first[key]))
                    first[key] = None
        return True

    def _interleaves(self, chosen: Sequence[int], order: int, *, first_wins: bool) -> bool:
        writes = {number: set(self._writes(number)) for number in chosen}

        def go(begun: dict[int, set[Any]], over: frozenset[int], state: State) -> bool:
            """`begun`: those with a snapshot and no commit, and the keys that were committed since."""
            if len(over) == len(chosen):
                return True
            for number in chosen:
                if number in over:
                    continue
                if number in begun:
                    if not (first_wins and begun[number] & writes[number]):
                        since = {n: keys | writes[number] for n, keys in begun.items() if n != number}
                        if go(since, over | {number}, self._after(state, number)):
                            return True
                elif (
                    all(o in over or not self._before(o, number, order) for o in chosen)
                    and self._answers(number, state)
                    and go({**begun, number: set()}, over, state)
                ):
                    return True
            return False

        return go({}, frozenset(), {})

    # an order of versions

    def _external(self, number: int) -> Iterator[tuple[str, Any, tuple[Any, ...], bool]]:
        """(f, key, what a read shows of others, whether it is the first of the key), for reads that need others."""
        state: State = {}
        own: State = defaultdict(tuple)
        rows: set[Any] = set()
        for f, key, value in self.txns[number].value:
            if f in ("w", "append"):
                own[key] = (*own[key], value)
                if not self.lists:
                    state[key] = (value,)
                elif key in state:
                    state[key] = (*state[key], value)
                continue
            if self.txns[number].type != "ok":
                continue
            shown = self._shown(value)
            # The first that is no predicate's.
            row = f == "r" and key not in rows and (self.lists or not own[key])
            rows |= {key} if f == "r" else set()
            if row or state.get(key) != shown:
                yield (
                    f,
                    key,
                    self._without_own(shown, own[key]),
                    key not in state and (self.lists or not own[key]),
                )
            state[key] = shown

    def _without_own(self, shown: tuple[Any, ...], own: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.lists:
            kept = len(shown)
            while kept and shown[kept - 1] in own:
                kept -= 1
            return shown[:kept]
        return () if shown and shown[0] in own else shown

    def _versions(self, order: Sequence[int]) -> dict[Any, list[tuple[int, tuple[Any, ...]]]]:
        """By key, the writers in their order, and the state after each."""
        found: dict[Any, list[tuple[int, tuple[Any, ...]]]] = defaultdict(list)
        for number in order:
            for key, values in self._writes(number).items():
                before = found[key][-1][1] if found[key] else ()
                found[key].append((number, before + values if self.lists else values))
        return found

    def _source(self, number: int, key: Any, shown: tuple[Any, ...], versions: Any) -> int | None:
        """Whose version it is; -1: nobody's; None: it is no last version of anybody who happened."""
        if not shown:
            return -1
        for writer, state in versions[key]:
            if state == shown and writer != number:
                return int(writer)
        return None

    def _is_committed(self, order: Sequence[int], _: int) -> bool:
        versions, place = self._versions(order), {number: at for at, number in enumerate(order)}
        for number in order:
            for _f, key, shown, _first in self._external(number):
                source = self._source(number, key, shown, versions)
                if source is None or (source >= 0 and place[source] > place[number]):
                    return False
        return True

    def _is_atomic(self, order: Sequence[int], level: int) -> bool:
        if not self._is_committed(order, level) or not all(self._repeats(number) for number in order):
            return False
        versions, place = self._versions(order), {number: at for at, number in enumerate(order)}
        for number in order:
            reads = list(self._external(number))
            sources = {self._source(number, key, shown, versions) for _, key, shown, _ in reads} - {
                -1,
                number,
            }
            sources |= {one for one in order if self._before(one, number, level)}
            for f, key, shown, _ in reads:
                mine = self._source(number, key, shown, versions)
                for one in sources:
                    other = f == "r" and one != mine and one is not None and key in self._writes(one)
                    if other and (mine is None or mine < 0 or place[mine] < place[one]):
                        return False
        return True

    def _sees(self, order: Sequence[int], level: int, *, conflicts: bool, closed: bool) -> bool:
        """`conflicts`: of two that write one key, one saw the other; `closed`: each saw what those saw that it saw."""
        if not self._is_committed(order, level) or not all(self._repeats(number) for number in order):
            return False
        versions = self._versions(order)
        seen: dict[int, set[int]] = {}
        for at, number in enumerate(order):
            direct = {o for o in order[:at] if self._before(o, number, level)}
            if conflicts:
                direct |= {o for o in order[:at] if set(self._writes(o)) & set(self._writes(number))}
            sources = {
                self._source(number, key, shown, versions) for _, key, shown, _ in self._external(number)
            }
            direct |= {each for each in sources if each is not None and each >= 0}
            seen[number] = direct.union(*(seen[each] for each in direct)) if closed else direct
            for f, key, shown, _ in self._external(number):
                if f == "rp" and not closed:
                    continue
                last = [o for o in order[:at] if o in seen[number] and key in self._writes(o)]
                if self._source(number, key, shown, versions) != (last[-1] if last else -1):
                    return False
        return closed or self._no_lost_update(order)

    def _is_stable(self, order: Sequence[int], level: int) -> bool:
        if not self._is_committed(order, level) or not self._no_lost_update(order):
            return False
        versions = self._versions(order)
        for at, number in enumerate(order):
            for f, key, source in self._steps(number, versions):
                if f == "r" and key in self._writes(number):
                    last = [-1, *(o for o in order[:at] if key in self._writes(o))][-1]
                    if source != last:
                        return False
        return True

    # what a read knows of

    def _steps(self, number: int, versions: Any) -> Iterator[tuple[str, Any, int]]:
        """(f, key, source of a read or -1: of nobody) for each micro-operation, without reads of own writes."""
        own: State = defaultdict(tuple)
        for f, key, value in self.txns[number].value:
            if f in ("w", "append"):
                own[key] = (*own[key], value)
                yield "w", key, number
            elif self.txns[number].type == "ok":
                shown = self._shown(value)
                if self.lists or not (shown and shown[0] in own[key]):
                    source = self._source(number, key, self._without_own(shown, own[key]), versions)
                    assert source is not None
                    yield f, key, source

    def _shows_own(self, number: int) -> bool:
        own: State = defaultdict(tuple)
        for f, key, value in self.txns[number].value:
            if f in ("w", "append"):
                own[key] = (*own[key], value) if self.lists else (value,)
            elif self.txns[number].type == "ok":
                shown = self._shown(value)
                if own[key] and shown[-len(own[key]) :] != own[key]:
                    return False
        return True

    def _is_atomic_so_far(self, order: Sequence[int], level: int) -> bool:
        if not self._is_committed(order, level) or not all(self._shows_own(number) for number in order):
            return False
        versions, place = self._versions(order), {number: at for at, number in enumerate(order)}
        for number in order:
            known = {one for one in order if self._before(one, number, level)}
            for f, key, source in self._steps(number, versions):
                if f != "w":
                    known |= {source} - {-1}
                newest = max((place[one] for one in known if key in self._writes(one)), default=-1)
                if f == "r" and newest > (place[source] if source >= 0 else -1):
                    return False
        return True

    def _is_monotonic(self, order: Sequence[int], level: int) -> bool:
        if not self._is_committed(order, level) or not all(self._shows_own(number) for number in order):
            return False
        versions, place = self._versions(order), {number: at for at, number in enumerate(order)}
        seen: dict[int, set[int]] = {}
        for at, number in enumerate(order):
            known: set[int] = set()
            for one in order[:at]:
                if self._before(one, number, level):
                    known |= {one} | seen[one]
            for f, key, source in self._steps(number, versions):
                if f == "w":
                    known = known.union(*({o} | seen[o] for o in order[:at] if key in self._writes(o)))
                    continue
                known |= {source} | seen[source] if source >= 0 else set()
                newest = max((place[one] for one in known if key in self._writes(one)), default=-1)
                if newest > (place[source] if source >= 0 else -1):
                    return False
            seen[number] = known
        return True

    def __repr__(self) -> str:
        return "\n".join(_line(each) for each in self.txns)


def _line(txn: Operation) -> str:
    micros = " ".join(f"{f}{key}{'' if value is None else value}" for f, key, value in txn.value)
    return f"{txn.type:5} process {txn.process} events {txn.invoke_index}-{txn.complete_index} {micros}"
