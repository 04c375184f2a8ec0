"""Explains an anomaly, in sentences, and as a picture can be drawn from it.

A cycle's transactions are called T1, T2, … in its order; each edge becomes a sentence with its evidence, the last one
says what cannot be.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from checkers.history.history import History
from checkers.transactional.anomalies import NO_ORDER
from checkers.transactional.append import Problem
from checkers.transactional.columns import NIL, PREDICATE_READ, UNKNOWN, WRITE, Columns, Workload
from checkers.transactional.graph import KINDS, PROCESS, REALTIME, RW_PREDICATE, WR, WW, Cycle, Edge
from checkers.verdict import Witness

SHOWN_MAX = 12
"""How many elements of a list a sentence shows; the last ones matter."""


class Explanation:
    """Witnesses, sentences and pictures of the anomalies in `columns`."""

    def __init__(self, columns: Columns, workload: Workload) -> None:
        self.columns = columns
        self.workload = workload
        self.past = "appended {} to {}" if workload == "append" else "wrote {} to {}"
        self.read = "read {} as {}"
        self.steps = "r", "append" if workload == "append" else "w"

    def cycle_witness(self, name: str, cycle: Cycle) -> Witness:
        """The cycle as proof of the anomaly `name`."""
        keys = {self.columns.key_name(int(self.columns.key[edge.cause])) for edge in cycle if edge.cause >= 0}
        kinds = ", ".join(KINDS[edge.kind] for edge in cycle)
        return Witness(
            rule=name,
            summary=f"{name}: {len(cycle)} transactions form a circle ({kinds})",
            events=self._events(edge.source for edge in cycle),
            key=keys.pop() if len(keys) == 1 else None,
            explanation=self.sentences(cycle),
        )

    def problem_witness(self, problem: Problem) -> Witness:
        """The proof of an anomaly without a cycle."""
        columns = self.columns
        micros = [problem.micro] if problem.cause is None else [problem.micro, problem.cause]
        sentence = self._problem(problem)
        return Witness(
            rule=problem.rule,
            summary=f"{problem.rule}: {sentence}",
            events=self._events(columns.owner(micro) for micro in micros),
            key=columns.key_name(int(columns.key[problem.micro])),
            explanation=(sentence,),
        )

    def no_order_witness(self, core: Sequence[int], model: str) -> Witness:
        """That the transactions of `core` have no execution of the model."""
        many = "this transaction" if len(core) == 1 else f"these {len(core)} transactions"
        sentence = f"no execution that is {model} gives the answers of {many}"
        return Witness(
            rule=NO_ORDER,
            summary=f"{NO_ORDER}: {sentence}",
            events=self._events(core),
            # Some models are refuted without trying all orders.
            explanation=(f"N{sentence[1:]}.", *self._duplicates(core)),
        )

    def _duplicates(self, core: Sequence[int]) -> Iterator[str]:
        """Which values that these transactions read were written more than once."""
        columns, among = self.columns, set(core)
        if self.workload == "append":
            return
        reads = {
            (int(columns.key[micro]), int(columns.value[micro]))
            for txn in core
            for micro in range(int(columns.first[txn]), int(columns.first[txn + 1]))
            if columns.f[micro] != WRITE and columns.length[micro] != UNKNOWN
        }
        for key, value in sorted(reads):
            writes = ((columns.f == WRITE) & (columns.key == key) & (columns.value == value)).nonzero()[0]
            writers = dict.fromkeys(columns.owner(int(micro)) for micro in writes)
            by = [f"the transaction of event {int(columns.invoke[txn])}" for txn in writers if txn in among]
            began = ["the value with which the key began"] if value == NIL else []
            if len(by) + len(began) > 1 or (by and began):
                yield (
                    f"{columns.key_name(key)} = {columns.value_name(value, key)} was written by several transactions "
                    f"({', '.join([*by, *began])}); a read of it may show the write of any of them, and all were tried."
                )

    def no_order_json(self, core: Sequence[int], model: str) -> dict[str, Any]:
        """The same for a picture, which has no edges."""
        transactions = [self._transaction_json(txn, f"T{place + 1}") for place, txn in enumerate(core)]
        return {"transactions": transactions, "edges": [], "at": [], "model": model}

    def cycle_json(self, cycle: Cycle) -> dict[str, Any]:
        """{"transactions": […], "edges": […]}: all that a picture of the cycle needs."""
        names = _names(cycle)
        return {
            "transactions": [self._transaction_json(txn, name) for txn, name in names.items()],
            "edges": [self._edge_json(edge, names) for edge in cycle],
        }

    def problem_json(self, problem: Problem) -> dict[str, Any]:
        """The picture of an anomaly without a cycle; it has no edges."""
        micros = [problem.micro] if problem.cause is None else [problem.micro, problem.cause]
        owners = list(dict.fromkeys(self.columns.owner(micro) for micro in micros))
        transactions = [self._transaction_json(txn, f"T{place + 1}") for place, txn in enumerate(owners)]
        return {"transactions": transactions, "edges": [], "at": [self._micro(micro) for micro in micros]}

    def sentences(self, cycle: Cycle) -> tuple[str, ...]:
        """A sentence for each edge, and the conclusion."""
        names = _names(cycle)
        lines = [self._sentence(edge, names) for edge in cycle]
        lines[-1] = "Yet " + lines[-1]
        return (*lines, "So each of them would have to come before itself: there is no such order.")

    def _sentence(self, edge: Edge, names: dict[int, str]) -> str:
        one, other = names[edge.source], names[edge.target]
        columns = self.columns
        if edge.kind == PROCESS:
            process = int(columns.process[edge.source])
            if columns.session_names is not None:
                name = columns.session_names[process]
                return f"{one} was over before {other} was asked for, and both were answered by {name}."
            return f"{one} was over before the same client (process {process}) asked for {other}."
        if edge.kind == REALTIME:
            ended, begun = int(columns.complete[edge.source]), int(columns.invoke[edge.target])
            return f"{one} had ended (event {ended}) before {other} was begun (event {begun})."
        key = columns.key_name(int(columns.key[edge.cause]))
        if edge.kind == WR:
            read = self._answer(edge.effect)
            return (
                f"{one} {self._wrote(edge.cause)}; {other} {self.read.format(key, read)}, "
                f"so {other} came after {one}."
            )
        if edge.kind == WW:
            after = f"{other} {self._wrote(edge.effect)} after that"
            return f"{one} {self._wrote(edge.cause)}; {after}{self._why_later(edge)}."
        by = " by a predicate" if edge.kind == RW_PREDICATE else ""
        read = self._answer(edge.cause)
        unseen = f"{other} {self._wrote(edge.effect)}"
        return f"{one} read {key}{by} as {read}; {unseen}, which {one} did not see, so {one} came before {other}."

    def _why_later(self, edge: Edge) -> str:
        """The read that shows the order of two writes."""
        columns, key = self.columns, int(self.columns.key[edge.effect])
        if self.workload == "append":
            earlier, later = (int(columns.value[write]) for write in (edge.cause, edge.effect))
            reads = (columns.key == key) & (columns.f != WRITE) & (columns.length > 0)
            for micro in reads.nonzero()[0]:
                start = int(columns.value[micro])
                shown = columns.elements[start : start + int(columns.length[micro])].tolist()
                if earlier in shown and later in shown[shown.index(earlier) :]:
                    event = int(columns.complete[columns.owner(int(micro))])
                    return f" (event {event} read {self._answer(int(micro))})"
            return " (no read shows it, so it came after all that was read)"
        target = edge.target
        for micro in range(int(columns.first[target]), edge.effect):
            if columns.key[micro] == key and columns.f[micro] != WRITE:
                return f" (it had read {self._answer(micro)} before)"
        return " (by what is promised of the key)"

    def _problem(self, problem: Problem) -> str:
        columns = self.columns
        key = columns.key_name(int(columns.key[problem.micro]))
        reader = self._at(problem.micro)
        answer = "" if columns.f[problem.micro] == WRITE else self._answer(problem.micro)
        cause = problem.cause
        wrote = "" if cause is None else self._did(cause)
        writer = "" if cause is None else self._at(cause)
        match problem.rule:
            case "internal":
                return f"{reader} read {key} as {answer}, although it {wrote} itself before"
            case "future-read":
                if columns.f[problem.micro] == WRITE:
                    return f"{reader} is read before it is written"
                return f"{reader} read {key} as {answer}, which holds what it wrote itself only later"
            case "G1a":
                return f"{reader} read {key} as {answer}, but {writer}, which {wrote}, had failed"
            case "G1b":
                return (
                    f"{reader} read {key} as {answer}, but {writer}, which {wrote}, wrote {key} again later"
                )
            case "incompatible-order":
                if columns.f[problem.micro] == WRITE:
                    return f"{reader} {self._did(problem.micro)} after it {wrote}, but no read shows them in that order"
                return f"{reader} read {key} as {answer}, and {writer} read it as {self._answer(cause or 0)}"
            case "garbage-read":
                what = "which holds a value that was never written"
                if self._lacks_start(problem.micro):
                    what = (
                        f"without {columns.start_names[int(columns.key[problem.micro])]}, with which it began"
                    )
                return f"{reader} read {key} as {answer}, {what}"
            case "duplicate-elements":
                return f"{reader} read {key} as {answer}, in which a value stands twice"
            case "lost-update":
                return f"{reader} and {writer} read the same version of {key}, and both wrote it, unseen by each other"
            case "dirty-update":
                return (
                    f"{reader} {self._did(problem.micro)} on top of what {writer} {wrote}, which had failed"
                )
            case "fractured-read":
                return (
                    f"{reader} read {key} as {answer}, yet it saw something else by {writer}, which {wrote}"
                )
            case "cyclic-versions" | "cyclic-versions-process" | "cyclic-versions-realtime":
                return f"the order of the versions of {key} is a circle: what is promised of single keys does not hold"
        raise AssertionError(problem)

    def _at(self, micro: int) -> str:
        return f"the transaction of event {int(self.columns.invoke[self.columns.owner(micro)])}"

    def _did(self, micro: int) -> str:
        if self.columns.f[micro] == WRITE:
            return self._wrote(micro)
        return f"read {self.columns.key_name(int(self.columns.key[micro]))} as {self._answer(micro)}"

    def _wrote(self, micro: int) -> str:
        columns = self.columns
        return self.past.format(
            columns.value_name(int(columns.value[micro]), int(columns.key[micro])),
            columns.key_name(int(columns.key[micro])),
        )

    def _answer(self, micro: int) -> str:
        columns = self.columns
        if self.workload == "rw-register":
            return columns.value_name(int(columns.value[micro]), int(columns.key[micro]))
        start, length, key = int(columns.value[micro]), int(columns.length[micro]), int(columns.key[micro])
        lacks = self._lacks_start(micro)
        began = [] if lacks or key not in columns.start_names else [columns.start_names[key][1:-1]]
        elements = columns.elements[start : start + length - lacks].tolist()
        shown = [columns.value_name(element, key) for element in elements[-SHOWN_MAX:]]
        return "[" + ", ".join((["…"] if len(elements) > SHOWN_MAX else began) + shown) + "]"

    def _lacks_start(self, micro: int) -> bool:
        """Whether a list read did not show what the list began with."""
        columns, end = self.columns, int(self.columns.value[micro] + self.columns.length[micro])
        is_list = self.workload == "append" and columns.f[micro] != WRITE and columns.length[micro] > 0
        return bool(is_list and columns.without_start and columns.elements[end - 1] == columns.without_start)

    def _micro(self, micro: int) -> list[Any]:
        columns = self.columns
        key, value = columns.key_name(int(columns.key[micro])), int(columns.value[micro])
        if columns.f[micro] == WRITE:
            return [self.steps[1], key, columns.value_name(value, int(columns.key[micro]))]
        f = "rp" if columns.f[micro] == PREDICATE_READ else self.steps[0]
        return [f, key, None if columns.length[micro] == UNKNOWN else self._answer(micro)]

    def _transaction_json(self, txn: int, name: str) -> dict[str, Any]:
        columns = self.columns
        micros = range(int(columns.first[txn]), int(columns.first[txn + 1]))
        return {
            "name": name,
            "events": list(self._events([txn])),
            "process": int(columns.process[txn]) if columns.session_names is None else None,
            "operations": [self._micro(micro) for micro in micros],
        }

    def _edge_json(self, edge: Edge, names: dict[int, str]) -> dict[str, Any]:
        proved = edge.cause >= 0
        return {
            "from": names[edge.source],
            "to": names[edge.target],
            "kind": KINDS[edge.kind],
            "key": self.columns.key_name(int(self.columns.key[edge.cause])) if proved else None,
            "cause": self._micro(edge.cause) if proved else None,
            "effect": self._micro(edge.effect) if proved else None,
            "predicate": edge.kind == RW_PREDICATE,
            "sentence": self._sentence(edge, names),
        }

    def _events(self, transactions: Iterable[int]) -> tuple[int, ...]:
        columns = self.columns
        events = {int(column[txn]) for txn in transactions for column in (columns.invoke, columns.complete)}
        return tuple(sorted(event for event in events if event >= 0))


def _names(cycle: Cycle) -> dict[int, str]:
    return {edge.source: f"T{place + 1}" for place, edge in enumerate(cycle)}


def with_time(witness: Witness, history: History) -> Witness:
    """The witness with the time that its events span. Part of a record, such as a frame, has not all indexes."""
    events = history.events
    places = [bisect_left(events, index, key=attrgetter("index")) for index in witness.events]
    times_ns = [events[place].time_ns for place in places if place < len(events)]
    if not times_ns:
        return witness
    return replace(witness, start_ns=min(times_ns), end_ns=max(times_ns))
