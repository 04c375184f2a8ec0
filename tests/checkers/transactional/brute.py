"""The plain twin of the checker: the definitions, by dictionaries and by walking every simple cycle.

For tiny histories. It shares nothing with `checkers.transactional` but the names of the anomalies.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from checkers.history import History, Operation

Edges = dict[tuple[int, int], set[str]]

_BY_PREDICATE = (
    ("G-single", "G-single-predicate"),
    ("G-nonadjacent", "G-nonadjacent-predicate"),
    ("G2-item", "G2"),
)
"""Cycles that need a predicate are looked for only where there are none that don't."""


class Brute:
    """`found`: the smallest number of transactions in a cycle of each class, 0 for what is no cycle.

    A cycle that goes by real time more than once counts in `every` alone, the names of all that there is.
    """

    def __init__(self, history: History, workload: str) -> None:
        self.txns = [each for each in history.operations if each.f == "txn"]
        self.found: dict[str, int] = {}
        self.every: set[str] = set()
        self.writer: dict[Any, int] = {}
        for number, txn in enumerate(self.txns):
            for f, key, value in txn.value:
                if f in ("w", "append"):
                    self.writer[key, value] = number
        self.edges: Edges = defaultdict(set)
        if workload == "append":
            self._append()
        else:
            self._register()
        for (one, other), kinds in self.edges.items():
            if "wr" in kinds and "rw" in self.edges.get((other, one), set()):
                self._see("fractured-read")
        self._cycles()
        self.every |= set(self.found)

    def _ok(self) -> Iterator[tuple[int, Operation]]:
        for number, txn in enumerate(self.txns):
            if txn.type == "ok":
                yield number, txn

    def _writes(self, number: int, key: Any) -> list[Any]:
        return [v for f, k, v in self.txns[number].value if f in ("w", "append") and k == key]

    def _see(self, name: str) -> None:
        self.found.setdefault(name, 0)

    def _committed(self, seen: set[int]) -> set[int]:
        return {n for n, t in enumerate(self.txns) if t.type == "ok" or (t.type == "info" and n in seen)}

    def _edge(self, one: int, other: int, kind: str) -> None:
        if one != other:
            self.edges[one, other].add(kind)

    # list-append

    def _append(self) -> None:
        reads: dict[Any, list[list[Any]]] = defaultdict(list)
        for _, txn in self._ok():
            own: dict[Any, list[Any]] = defaultdict(list)
            for f, key, value in txn.value:
                if f == "append":
                    own[key].append(value)
                else:
                    self._duplicates(list(value or []))
                    reads[key].append(_without(list(value or []), own[key]))
        orders = {}
        for key, lists in reads.items():
            orders[key] = max(lists, key=len)
            for each in lists:
                if each != orders[key][: len(each)]:
                    self._see("incompatible-order")
        seen = {self.writer[k, v] for k, order in orders.items() for v in order if (k, v) in self.writer}
        self.committed = self._committed(seen)
        for key, order in orders.items():
            aborted = False
            for value in dict.fromkeys(order):
                writer = self.writer.get((key, value))
                if writer is None:
                    continue
                if self.txns[writer].type == "fail":
                    aborted = True
                elif self.txns[writer].type == "ok" and aborted:
                    self._see("dirty-update")
        self._append_reads(orders)

    def _append_reads(self, orders: dict[Any, list[Any]]) -> None:
        updates: dict[Any, set[int]] = defaultdict(set)
        external: list[tuple[int, Any, list[Any], str]] = []
        for number, txn in self._ok():
            state: dict[Any, list[Any]] = {}
            mine: dict[Any, list[Any]] = defaultdict(list)
            first: dict[Any, list[Any]] = {}
            found: dict[Any, int] = {}
            rows: set[Any] = set()
            for f, key, said in txn.value:
                value = said
                if f == "append":
                    if value in orders.get(key, []) and orders[key].index(value) < found.get(key, 0):
                        self._see("future-read")
                        if first.get(key) == orders[key][: len(first.get(key, ()))]:
                            first.pop(key)  # then no version that others can have read
                    if key in first and not mine[key]:
                        updates[key, tuple(first[key])].add(number)
                    mine[key].append(value)
                    if key in state:
                        state[key] = [*state[key], value]
                    continue
                value = list(value or [])
                self._judge_list(number, key, value, mine[key])
                tail = mine[key] if key not in state else []
                right = value == state[key] if key in state else (not tail or value[-len(tail) :] == tail)
                if not right:
                    self._see("internal")
                base = _without(value, mine[key])
                row = f == "r" and key not in rows
                rows |= {key} if f == "r" else set()
                if (key not in state or not right or row) and base == orders[key][: len(base)]:
                    if base and (key, base[-1]) in self.writer and base[-1] not in base[:-1]:
                        writer = self.writer[key, base[-1]]
                        if writer != number and self._writes(writer, key)[-1] != base[-1]:
                            self._see("G1b")
                    found[key] = max(found.get(key, 0), len(base))
                    external.append((number, key, base, f))
                if key not in state and not mine[key]:
                    first[key] = value
                state[key] = value
        for number in sorted(self.committed):
            self._own_order(self.txns[number], orders)
        if any(len(each) > 1 for each in updates.values()):
            self._see("lost-update")
        self._append_edges(orders, external)

    def _duplicates(self, values: list[Any]) -> None:
        if len(set(values)) < len(values):
            self._see("duplicate-elements")

    def _own_order(self, txn: Operation, orders: dict[Any, list[Any]]) -> None:
        last: dict[Any, Any] = {}
        for f, key, value in txn.value:
            if f != "append":
                continue
            order = orders.get(key, [])
            if (
                key in last
                and value in order
                and (last[key] not in order or order.index(last[key]) > order.index(value))
            ):
                self._see("incompatible-order")
            last[key] = value

    def _judge_list(self, reader: int, key: Any, value: list[Any], mine: list[Any]) -> None:
        for each in value:
            writer = self.writer.get((key, each))
            if writer is None:
                self._see("garbage-read")
            elif writer == reader and each not in mine:
                self._see("future-read")
            elif self.txns[writer].type == "fail":
                self._see("G1a")

    def _append_edges(
        self, orders: dict[Any, list[Any]], external: list[tuple[int, Any, list[Any], str]]
    ) -> None:
        def writers(key: Any, values: list[Any]) -> list[int]:
            """Of each value once, of committed transactions only."""
            known = dict.fromkeys(values)
            found = [self.writer[key, v] for v in known if (key, v) in self.writer]
            return [n for n in found if n in self.committed]

        unread: dict[Any, set[int]] = defaultdict(set)
        for number in sorted(self.committed):
            for f, key, value in self.txns[number].value:
                if f == "append" and value not in orders.get(key, []):
                    unread[key].add(number)
        for key, order in orders.items():
            chain = writers(key, order)
            for one, other in pairwise(chain):
                self._edge(one, other, "ww")
            if chain:
                for other in unread[key]:
                    self._edge(chain[-1], other, "ww")
        for number, key, value, f in external:
            order = orders[key]
            chain = writers(key, value)
            if chain:
                self._edge(chain[-1], number, "wr")
            rest = order[len(value) :]
            after = writers(key, order)[len(writers(key, order[: len(value)])) :] if rest else []
            kind = "rw" if f == "r" else "rwp"
            for other in after[:1] or sorted(unread[key]):
                self._edge(number, other, kind)

    # rw-register

    def _register(self) -> None:
        seen = set()
        for _, txn in self._ok():
            for key, value in _reads_of_others(txn):
                if (key, value) in self.writer:
                    seen.add(self.writer[key, value])
        self.committed = self._committed(seen)
        found: list[tuple[int, Any, Any, str]] = []
        first: dict[tuple[int, Any], Any] = {}
        for number, txn in self._ok():
            state: dict[Any, Any] = {}
            origin: dict[Any, Any] = {}
            written: dict[Any, set[Any]] = defaultdict(set)
            rows: set[Any] = set()
            for f, key, value in txn.value:
                if f == "w":
                    written[key].add(value)
                    source = self.writer.get((key, origin.get(key)))
                    if source is not None and self.txns[source].type == "fail":
                        self._see("dirty-update")
                elif key not in state or state[key] != value or (f == "r" and key not in rows | set(written)):
                    if key in state and state[key] != value:
                        self._see("internal")
                    elif key not in state:
                        origin[key] = value
                    # A version, right or not.
                    if self._judge_register(number, key, value, written.get(key, set())):
                        found.append((number, key, value, f))
                        if key not in state:
                            first[number, key] = value
                rows |= {key} if f == "r" else set()
                state[key] = value
        self._lost_updates(first)
        self._register_edges(found, first)

    def _judge_register(self, reader: int, key: Any, value: Any, written: set[Any]) -> bool:
        if value is None:
            return True
        writer = self.writer.get((key, value))
        if writer is None:
            self._see("garbage-read")
        elif writer == reader:
            if value not in written:
                self._see("future-read")
            return False
        elif self.txns[writer].type == "fail":
            self._see("G1a")
        elif self._writes(writer, key)[-1] != value:
            self._see("G1b")
        return True

    def _lost_updates(self, first: dict[tuple[int, Any], Any]) -> None:
        updates: dict[Any, set[int]] = defaultdict(set)
        for (number, key), value in first.items():
            if self._writes(number, key):
                updates[key, value].add(number)
        if any(len(each) > 1 for each in updates.values()):
            self._see("lost-update")

    def _register_edges(
        self, found: list[tuple[int, Any, Any, str]], first: dict[tuple[int, Any], Any]
    ) -> None:
        after = self._versions_after(first)
        for version, later in after.items():
            for other in later:
                if self._is_made(version):
                    self._edge(self.writer[version], self.writer[other], "ww")
        for number, key, value, f in found:
            if self._is_made((key, value)):
                self._edge(self.writer[key, value], number, "wr")
            for other in after.get((key, value), ()):
                self._edge(number, self.writer[other], "rw" if f == "r" else "rwp")

    def _is_made(self, version: tuple[Any, Any]) -> bool:
        """Whether a transaction that took place wrote it."""
        return self.writer.get(version) in self.committed

    def _versions_after(self, read: dict[tuple[int, Any], Any]) -> dict[Any, dict[Any, None]]:
        """(key, version) → the versions that are known to follow it."""
        after: dict[Any, dict[Any, None]] = defaultdict(dict)
        for number in sorted(self.committed):
            for key in dict.fromkeys(k for _, k, _ in self.txns[number].value):
                chain = [(key, v) for v in self._writes(number, key)]
                if (number, key) in read and self.txns[number].type == "ok":
                    chain = [(key, read[number, key]), *chain]
                for one, other in pairwise(chain):
                    after[one][other] = None
        circular = [(v, w) for v, later in list(after.items()) for w in later if self._reaches(after, w, v)]
        for version, other in circular:
            self._see("cyclic-versions")
            del after[version][other]
        follows = {
            other
            for version, later in after.items()
            for other in later
            if version[1] is None or self._is_made(version)
        }
        for number in sorted(self.committed):
            for f, key, value in self.txns[number].value:
                if f == "w" and (key, value) not in follows:
                    after[key, None][key, value] = None
        return after

    @staticmethod
    def _reaches(after: dict[Any, dict[Any, None]], begin: Any, goal: Any) -> bool:
        stack, seen = [begin], set()
        while stack:
            for other in after.get(stack.pop(), ()):
                if other == goal:
                    return True
                if other not in seen:
                    seen.add(other)
                    stack.append(other)
        return False

    # cycles

    def _cycles(self) -> None:
        edges: Edges = {pair: set(kinds) for pair, kinds in self.edges.items()}
        for one in self.committed:
            for other in self.committed:
                if one != other and self.txns[one].precedes(self.txns[other]):
                    edges.setdefault((one, other), set()).add("realtime")
                    if self.txns[one].process == self.txns[other].process:
                        edges[one, other].add("process")
        self.out: dict[int, dict[int, set[str]]] = defaultdict(dict)
        for (one, other), kinds in edges.items():
            self.out[one][other] = kinds
        for suffix, time in (("", None), ("-process", "process"), ("-realtime", "realtime")):
            for begin in sorted(self.out):
                self._walk(begin, begin, [], {begin}, time, suffix)
        for suffix in ("-realtime", "-process"):
            for name in [name for name in self.found if name.endswith(suffix)]:
                plain = name.removesuffix(suffix)
                worse = [plain] if suffix == "-process" else [plain, plain + "-process"]
                if any(each in self.found for each in worse):
                    del self.found[name]
        for item, named in _BY_PREDICATE:
            orders = ("", "-process", "-realtime")
            for count, last in enumerate(orders, 1):
                if any(item + each in self.found for each in orders[:count]):
                    self.found.pop(named + last, None)

    def _walk(
        self, begin: int, here: int, kinds: list[str], seen: set[int], time: str | None, suffix: str
    ) -> None:
        """All simple cycles whose least transaction is `begin`, every choice of edge kinds."""
        if len(kinds) >= 6:
            return
        for there, between in self.out[here].items():
            if there < begin or (there in seen and there != begin):
                continue
            for kind in sorted(between & {"ww", "wr", "rw", "rwp", time or "ww"}):
                if there == begin:
                    self._class([*kinds, kind], time, suffix)
                else:
                    self._walk(begin, there, [*kinds, kind], seen | {there}, time, suffix)

    def _class(self, kinds: list[str], time: str | None, suffix: str) -> None:
        if time is not None and time not in kinds:
            return
        anti = [kind in ("rw", "rwp") for kind in kinds]
        adjacent = (
            any(one and other for one, other in zip(anti, anti[1:] + anti[:1], strict=True))
            and len(kinds) > 1
        )
        predicate = "rwp" in kinds
        if sum(anti) == 0:
            name = "G1c" if "wr" in kinds else "G0"
            if name == "G0" and "ww" not in kinds:
                return
        elif sum(anti) == 1:
            name = "G-single-predicate" if predicate else "G-single"
        elif not adjacent:
            name = "G-nonadjacent-predicate" if predicate else "G-nonadjacent"
        else:
            name = "G2" if predicate else "G2-item"
        self.every.add(name + suffix)
        if kinds.count("realtime") > 1:
            return
        known = self.found.get(name + suffix, 99)
        self.found[name + suffix] = min(known, len(kinds))


def _reads_of_others(txn: Operation) -> list[tuple[Any, Any]]:
    state: dict[Any, Any] = {}
    reads = []
    for f, key, value in txn.value:
        if f in ("r", "rp") and value is not None and (key not in state or state[key] != value):
            reads.append((key, value))
        state[key] = value
    return reads


def _without(values: list[Any], own: list[Any]) -> list[Any]:
    """A list without what its reader had appended, as far as it ends so and lacks none of it before."""
    kept = len(values)
    while kept and values[kept - 1] in own and values[kept - 1 :] in _runs(own):
        kept -= 1
    mine = own[: own.index(values[kept])] if kept < len(values) else []
    return values[:kept] if not mine or mine[-1] in values[:kept] else values


def _runs(own: list[Any]) -> list[list[Any]]:
    return [own[begin:end] for end in range(len(own) + 1) for begin in range(end)]
