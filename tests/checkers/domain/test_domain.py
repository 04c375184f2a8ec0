"""Domain checkers against a store that is right, and against one that is wrong in one way.

The store does every operation at one moment between its question and its answer. Some are refused, and some are never
answered: these happen at any later time, or never. That is all that any of these checkers may take for granted.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from checkers import CHECKERS, run_safely
from checkers.domain.proof import while_active
from checkers.history import Event, Header, History, jsonl
from checkers.history.operation import SUBMITTED
from tests.checkers.brute.histories import Line, history_of

Asked = tuple[str, str | None, Any]  # f, key, value
Draw = Callable[[random.Random, int], Asked]

ACCOUNTS = ("1", "2", "3")


class Broken(Exception):
    """The operation has no effect: it is refused."""


@dataclass
class Store:
    """What is under test. `bug` names the one thing that it does wrong, now and then."""

    chance: random.Random
    bug: str = ""
    balances: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ACCOUNTS, 10))
    elements: list[int] = field(default_factory=list)
    total: int = 0
    ids: int = 0
    rows: list[dict[str, int]] = field(default_factory=list)
    cells: dict[str, Any] = field(default_factory=dict)
    queue: list[int] = field(default_factory=list)

    def wrong(self, bug: str) -> bool:
        return self.bug == bug and self.chance.random() < 0.3

    def do(self, workload: str, f: str, key: str | None, value: Any) -> Any:
        return getattr(self, f"_{workload}")(f, key, value)

    def _bank(self, f: str, _: str | None, value: Any) -> Any:
        if f == "read":
            return dict(self.balances)
        if self.balances[value["from"]] < value["amount"]:
            raise Broken
        self.balances[value["from"]] -= value["amount"]
        if not self.wrong("money-lost"):
            self.balances[value["to"]] += value["amount"]
        return value

    def _set(self, f: str, _: str | None, value: Any) -> Any:
        if f == "read":
            return list(self.elements)
        if not self.wrong("add-lost"):
            self.elements.append(value)
        return value

    def _counter(self, f: str, _: str | None, value: Any) -> Any:
        if f == "read":
            return self.total
        if not self.wrong("add-lost"):
            self.total += value
        return value

    def _ids(self, f: str, _: str | None, value: Any) -> Any:
        self.ids += not self.wrong("id-twice")
        return self.ids

    def _monotonic(self, f: str, _: str | None, value: Any) -> Any:
        if f == "read":
            return sorted(self.rows, key=lambda row: row["sts"])
        row = {"val": len(self.rows), "sts": 100 + len(self.rows)}
        if self.wrong("clock-back"):
            row["sts"] -= 50
        self.rows.append(row)
        return row

    def _fork(self, f: str, _: str | None, value: Any) -> Any:
        if f == "write":
            self.cells[value[0][1]] = value[0][2]
            return value
        hidden = self.chance.choice(value)[1] if self.wrong("forks") else None
        return [["r", key, None if key == hidden else self.cells.get(key)] for _, key, _ in value]

    def _reverse(self, f: str, _: str | None, value: Any) -> Any:
        if f == "write":
            self.elements.append(value)
            return value
        seen = list(self.elements)
        if self.wrong("reversed") and seen:
            del seen[self.chance.randrange(len(seen))]
        return seen

    def _queue(self, f: str, _: str | None, value: Any) -> Any:
        if f == "enqueue":
            if not self.wrong("element-lost"):
                self.queue.append(value)
            return value
        if f == "drain":
            drained, self.queue = self.queue, []
            return drained
        if not self.queue:
            raise Broken("empty")
        if self.wrong("element-twice"):
            return self.queue[0]
        return self.queue.pop(-1 if self.wrong("last-first") else 0)

    def _register(self, f: str, key: str | None, value: Any) -> Any:
        key = str(key)
        if f == "read":
            return self.cells.get(key)
        if f == "cas":
            if self.cells.get(key) != value[0]:
                raise Broken("mismatch")
            self.cells[key] = value[1]
        elif not self.wrong("write-lost"):
            self.cells[key] = value
        return value


def read_or(share: float, draw: Draw) -> Draw:
    return lambda chance, count: ("read", None, None) if chance.random() < share else draw(chance, count)


def transfer(chance: random.Random, _: int) -> Asked:
    source, target = chance.sample(ACCOUNTS, 2)
    return "transfer", None, {"from": source, "to": target, "amount": chance.randrange(1, 6)}


def fork(chance: random.Random, count: int) -> Asked:
    if chance.random() < 0.3:
        return "write", None, [["w", f"k{count % 4}", 1]]
    return "read", None, [["r", f"k{number}", None] for number in range(4)]


def register(chance: random.Random, count: int) -> Asked:
    key = chance.choice(["x", "y"])
    old = chance.choice([None, *range(max(0, count - 6), count)])
    return chance.choice([("read", key, None), ("write", key, count), ("cas", key, [old, count])])


def queue(chance: random.Random, count: int) -> Asked:
    return ("dequeue", None, None) if chance.random() < 0.5 else ("enqueue", None, count)


LAST: dict[str, Asked] = {"queue": ("drain", None, None), "bank": ("read", None, None)}
WORKLOADS: dict[str, tuple[Draw, tuple[str, ...]]] = {
    "bank": (read_or(0.5, transfer), ("bank",)),
    "set": (
        read_or(0.4, lambda _, count: ("add", None, count)),
        ("set-full", "durability", "rollback-honesty"),
    ),
    "counter": (read_or(0.5, lambda chance, _: ("add", None, chance.randrange(-3, 6))), ("counter",)),
    "ids": (lambda _, __: ("generate", None, None), ("unique-ids",)),
    "monotonic": (read_or(0.3, lambda _, __: ("add", None, None)), ("monotonic",)),
    "fork": (fork, ("long-fork",)),
    "reverse": (read_or(0.5, lambda _, count: ("write", None, count)), ("causal-reverse",)),
    "queue": (queue, ("queues", "rollback-honesty")),
    "register": (register, ("durability", "rollback-honesty", "coherence", "staleness")),
}


def run(workload: str, seed: int, bug: str = "", steps: int = 90) -> History:
    """A history of three clients at once, with a final read of all that there is."""
    return _Run(workload, seed, bug).run(steps)


class _Run:
    def __init__(self, workload: str, seed: int, bug: str) -> None:
        self.workload = workload
        self.chance = random.Random(f"{workload} {seed}")
        self.store = Store(self.chance, bug)
        self.events: list[Event] = []
        self.asked: dict[int, Asked] = {}
        self.answers: dict[int, tuple[str, Any, str | None]] = {}
        self.late: list[Asked] = []
        self.processes = list(range(3))
        self.count = 0

    def run(self, steps: int) -> History:
        draw, _ = WORKLOADS[self.workload]
        for _ in range(steps):
            place = self.chance.randrange(3)
            process = self.processes[place]
            if process not in self.asked:
                self.count += 1
                self._ask(process, draw(self.chance, self.count), "load")
            elif process in self.answers:
                self._answer(process)
            elif self.chance.random() < 0.1:
                self._vanish(place)
            else:
                self._happen(process)
            if self.late and self.chance.random() < 0.1:
                self._do(self.late.pop(self.chance.randrange(len(self.late))))
        for process in [process for process in self.processes if process in self.answers]:
            self._answer(process)
        self._finish()
        return History.of(Header(), self.events)

    def _ask(self, process: int, asked: Asked, phase: Any) -> None:
        self.asked[process] = asked
        self._record("invoke", process, asked, asked[2], phase=phase)

    def _happen(self, process: int) -> None:
        asked = self.asked[process]
        if self.chance.random() < 0.1:
            self.answers[process] = ("fail", asked[2], "refused")
            if self.store.wrong("refused-yet-done"):
                self._do(asked)
            return
        self.answers[process] = self._do(asked)

    def _do(self, asked: Asked) -> tuple[str, Any, str | None]:
        try:
            return "ok", self.store.do(self.workload, *asked), None
        except Broken as error:
            return "fail", asked[2], str(error) or "refused"

    def _vanish(self, place: int) -> None:
        """It is never answered; whether it happens is left to chance, and so is when."""
        process = self.processes[place]
        asked = self.asked.pop(process)
        if self.chance.random() < 0.7:
            self.late.append(asked)
        if self.chance.random() < 0.5:
            self._record("info", process, asked, asked[2], error="timed out")
        self.processes[place] = max(self.processes) + 1

    def _answer(self, process: int) -> None:
        asked = self.asked.pop(process)
        type_, value, error = self.answers.pop(process)
        self._record(type_, process, asked, value, error=error)

    def _finish(self) -> None:
        finals = {"register": [("read", "x", None), ("read", "y", None)], "ids": [], "fork": []}
        last = LAST.get(self.workload, ("read", None, None))
        for number, asked in enumerate(finals.get(self.workload, [last])):
            process = 1000 + number
            self._ask(process, asked, "final")
            self.answers[process] = self._do(asked)
            self._answer(process)

    def _record(self, type_: Any, process: int, asked: Asked, value: Any, **fields: Any) -> None:
        f, key, _ = asked
        self.events.append(
            Event(
                index=len(self.events),
                time_ns=len(self.events) * 1_000,
                type=type_,
                process=process,
                f=f,
                key=key,
                value=value,
                **fields,
            )
        )


CASES = [(workload, checker) for workload, (_, checkers) in WORKLOADS.items() for checker in checkers]


@pytest.mark.parametrize(("workload", "checker"), CASES)
def test_a_store_that_is_right_raises_no_alarm(workload: str, checker: str) -> None:
    """A right store would be called broken."""
    results = set()
    for seed in range(60):
        verdict = run_safely(CHECKERS[checker], run(workload, seed), name=checker)
        assert verdict.result != "invalid", (seed, verdict.summary, verdict.witnesses[:1])
        assert "error" not in verdict.details, verdict.summary
        results.add(verdict.result)
    assert "valid" in results


@pytest.mark.parametrize(
    ("workload", "bug", "checker", "rules"),
    [
        ("bank", "money-lost", "bank", {"wrong-total"}),
        ("set", "add-lost", "set-full", {"lost"}),
        ("set", "add-lost", "durability", {"lost-element"}),
        ("set", "refused-yet-done", "set-full", {"added-by-failure"}),
        ("set", "refused-yet-done", "rollback-honesty", {"failed-yet-seen"}),
        ("counter", "add-lost", "counter", {"out-of-bounds"}),
        ("ids", "id-twice", "unique-ids", {"duplicated"}),
        ("monotonic", "clock-back", "monotonic", {"values-out-of-order"}),
        ("fork", "forks", "long-fork", {"long-fork"}),
        ("reverse", "reversed", "causal-reverse", {"causal-reverse"}),
        ("queue", "element-lost", "queues", {"lost", "reordered"}),
        ("queue", "element-twice", "queues", {"duplicated"}),
        ("queue", "last-first", "queues", {"reordered"}),
        ("queue", "refused-yet-done", "rollback-honesty", {"failed-yet-seen"}),
        ("register", "write-lost", "durability", {"lost-write"}),
        ("register", "write-lost", "coherence", {"read-your-writes"}),
        ("register", "refused-yet-done", "rollback-honesty", {"failed-yet-seen"}),
    ],
)
def test_a_store_that_is_wrong_is_found_out(workload: str, bug: str, checker: str, rules: set[str]) -> None:
    """A wrong store would pass."""
    found: set[str] = set()
    for seed in range(30):
        verdict = run_safely(CHECKERS[checker], run(workload, seed, bug), name=checker)
        found |= {witness.rule for witness in verdict.witnesses}
    assert rules <= found


@pytest.mark.parametrize(
    ("added", "sts"),
    [
        ({"val": 1, "sts": 1}, "soon"),
        ({"val": 1, "sts": 1}, "²"),
        ({"val": 1, "sts": 1}, "NaN"),
        ({"val": 1, "sts": 1}, "2026-01-01T00:00:00.5"),
        ({"val": 1, "sts": 1}, True),
        (None, 2),
        (1, 2),
    ],
)
def test_rows_without_a_timestamp_or_a_value_are_not_judged(added: Any, sts: Any) -> None:
    """A false alarm: texts would be sorted as texts, and a row would come from nowhere, or the checker would break."""
    lines = [
        Line("invoke", 0, "add"),
        Line("ok", 0, "add", added),
        Line("invoke", 1, "read"),
        Line("ok", 1, "read", [{"val": 1, "sts": 1}, {"val": 2, "sts": sts}]),
    ]
    verdict = run_safely(CHECKERS["monotonic"], history_of(lines), name="monotonic")
    assert verdict.result == "unknown"
    assert verdict.summary.startswith("cannot be judged: event ")


@pytest.mark.parametrize("checker", ["causal-reverse", "long-fork"])
def test_a_write_that_failed_is_not_said_to_be_asked_by_nobody(checker: str) -> None:
    """The sentence of an anomaly would not be so: the history has the write that asked for the value."""
    path = Path(__file__).parents[1] / "histories" / checker
    (failed,) = (jsonl.read(file) for file in path.glob("failed*.jsonl") if file.stem != "failed-read")
    (found,) = CHECKERS[checker](failed).witnesses
    assert found.summary.endswith("although every write of it surely failed")


def _set_full(*lines: Line) -> dict[str, Any]:
    return dict(CHECKERS["set-full"](history_of(lines)).details)


def test_an_element_was_lost_when_a_read_showed_it_last() -> None:
    """As in Jepsen: a lost element would be said to have lived until the last read of the run."""
    added = Line("invoke", 0, "add", 7), Line("ok", 0, "add", 7)
    shows = Line("invoke", 1, "read"), Line("ok", 1, "read", [7])
    lacks = Line("invoke", 1, "read"), Line("ok", 1, "read", [])
    details = _set_full(*added, *shows, *lacks, *lacks)
    assert (details["lost"], details["lost_ms"]["max"], details["stable_ms"]) == (1, 1.0, {})
    assert _set_full(*added, *lacks)["lost_ms"]["max"] == 0.0
    assert _set_full(*added, *lacks, *shows)["stable_ms"]["max"] == 1.0


def test_an_element_that_a_read_shows_beside_one_that_lacks_it_is_not_lost() -> None:
    """A false alarm where reads may be stale: the one that shows the element may have been the later one."""
    added = Line("invoke", 0, "add", 7), Line("ok", 0, "add", 7)
    asked = Line("invoke", 1, "read"), Line("invoke", 2, "read")
    details = _set_full(*added, *asked, Line("ok", 2, "read", []), Line("ok", 1, "read", [7]))
    assert (details["lost"], details["stale"], details["violations"]) == (0, 1, 0)
    assert details["findings"] == ["missing from a later read, for up to 2.0 ms: 1 element"]


def test_an_element_that_no_read_can_have_missed_was_stable_at_no_time() -> None:
    """Elements of which nothing is known would make the store look quick, or pass for kept."""
    lines = (
        *(Line("invoke", 1, "read"), Line("ok", 1, "read", [])),
        *(Line("invoke", 0, "add", 7), Line("ok", 0, "add", 7)),
    )
    details = _set_full(*lines)
    assert (details["never_read"], details["stable_ms"]) == (1, {})
    assert details["findings"] == ["never read, so nothing is known of them: 1 element"]
    assert CHECKERS["set-full"](history_of(lines)).result == "unknown"


def test_an_element_that_a_final_read_lacks_is_lost_and_not_stale() -> None:
    """The details would contradict the verdict: lost by one final read, and stale because another one shows it."""
    added = Line("invoke", 0, "add", 7), Line("ok", 0, "add", 7)
    finals = (
        Line(type_, process, "read", value, phase="final")
        for process, shown in ((1, []), (2, [7]))
        for type_, value in (("invoke", None), ("ok", shown))
    )
    details = _set_full(*added, *finals)
    assert (details["lost"], details["stale"], details["findings"]) == (1, 0, [])


def test_sums_beyond_floats_are_judged() -> None:
    """The checker would break on two balances that a float holds, and on their sum that it does not."""
    shown = {"a": 1.5e308, "b": 1.5e308, "c": 0.1}
    reads = history_of([Line("invoke", 1, "read"), Line("ok", 1, "read", shown)])
    verdict = run_safely(CHECKERS["bank"], reads, name="bank")
    assert (verdict.result, verdict.details["total"]) == ("valid", 3 * 10**308)


def test_a_key_of_two_values_is_left_out_by_their_identity() -> None:
    """1 and true are two values: the key may have been written, deleted and written again."""
    lines = [
        Line(type_, process, "write", [["w", "x", value]])
        for process, value in enumerate((1, True))
        for type_ in ("invoke", "ok")
    ]
    assert CHECKERS["long-fork"](history_of(lines)).details["keys_skipped"] == ["x"]


@pytest.mark.parametrize(
    ("type_", "error", "words"),
    [
        ("ok", None, "the answer came from n1, which it hit."),
        ("info", SUBMITTED, "the answer came from n1, which it hit."),
        ("info", "timeout", "the question went to n1, which it hit."),
    ],
)
def test_what_had_no_answer_is_not_said_to_have_one(type_: Any, error: str | None, words: str) -> None:
    """A reader of a torn insert that timed out would look for its answer."""
    fault = {"id": 1, "name": "kill", "does": "kill", "nodes": ["n1"]}
    events = [
        Event(index=0, time_ns=0, type="invoke", process="nemesis", f="kill", value=fault),
        Event(index=1, time_ns=1, type="invoke", process=1, f="write", node="n1", value=1),
        Event(index=2, time_ns=2, type=type_, process=1, f="write", node="n1", error=error),
    ]
    history = History.of(Header(nodes=("n1",)), events)
    (sentence,) = while_active(history, history.operations[0])
    assert sentence.endswith(words)


@pytest.mark.parametrize("value", [5, {"x": 1}, [["r", "x"]], ["r", "x", 1]])
def test_a_read_of_several_keys_in_another_form_is_not_passed_over(value: Any) -> None:
    """A green light: the reads that are understood would vouch for the others."""
    pairs = (("r", "x", 1), ("r", "y", None))
    understood = [Line("invoke", 1, "read"), Line("ok", 1, "read", [list(pair) for pair in pairs])]
    wrote = [Line(type_, 0, "write", [["w", "x", 1]]) for type_ in ("invoke", "ok")]
    lines = [*wrote, *understood, Line("invoke", 1, "read"), Line("ok", 1, "read", value)]
    verdict = run_safely(CHECKERS["long-fork"], history_of(lines), name="long-fork")
    assert (verdict.result, "expected [f, key, value]" in verdict.summary) == ("unknown", True)


def test_where_nothing_was_read_nothing_was_judged() -> None:
    """A green light: no answer has shown anything that could be wrong."""
    alone = [Line("invoke", 1, "write", 1, key="x"), Line("fail", 1, "write", 1, key="x")]
    verdict = CHECKERS["rollback-honesty"](history_of(alone))
    assert (verdict.result, verdict.details.get("vacuous")) == ("valid", True)


@pytest.mark.parametrize(
    "told", [{"total_amount": "100"}, {"negative_allowed": "false"}, {"negative_allowed": 1}]
)
def test_a_header_that_says_neither_is_refused(told: dict[str, Any]) -> None:
    """A green light: the text "100" would be no total, and the text "false" would allow balances below zero."""
    lines = [Line("invoke", 1, "read"), Line("ok", 1, "read", {"a": 95, "b": -5})]
    history = replace(history_of(lines), header=Header(extra=told))
    verdict = run_safely(CHECKERS["bank"], history, name="bank")
    assert (verdict.result, "a number as total_amount" in verdict.summary) == ("unknown", True)


def test_what_was_submitted_alone_is_counted() -> None:
    """The number of judged writes would be true in place of a number."""
    asked = Line("invoke", 0, "write", 7), Line("info", 0, "write", 7, error="submitted")
    final = Line("invoke", 1, "read", phase="final"), Line("ok", 1, "read", 7, phase="final")
    assert CHECKERS["durability"](history_of((*asked, *final))).details["judged"].__class__ is int


def test_a_cas_of_a_value_to_itself_that_failed_wrote_nothing() -> None:
    """The value that another client wrote would be called that of the cas which failed."""
    failed = Line("invoke", 0, "cas", [1, 1]), Line("fail", 0, "cas", [1, 1])
    shows = Line("invoke", 1, "read"), Line("ok", 1, "read", 1)
    assert CHECKERS["rollback-honesty"](history_of((*failed, *shows))).result == "valid"
    other = Line("invoke", 0, "cas", [2, 1]), Line("fail", 0, "cas", [2, 1])
    assert CHECKERS["rollback-honesty"](history_of((*other, *shows))).result == "invalid"


def _final(shown: Any, *writes: tuple[str, Any]) -> list[str]:
    """The acknowledged operations that are lost, by a final read that shows this."""
    lines = [Line(type_, 0, f, value) for f, value in writes for type_ in ("invoke", "ok")]
    lines += [Line("invoke", 1, "read", phase="final"), Line("ok", 1, "read", shown, phase="final")]
    return [witness.summary for witness in CHECKERS["durability"](history_of(lines)).witnesses]


def test_a_set_that_shows_nothing_has_lost_its_elements() -> None:
    """A key that is gone would be taken for a value that was over before the element."""
    (lost,) = _final(None, ("add", 7))
    assert lost == "7 was acknowledged to process 0, and in the final state it is missing"
    assert _final(None, ("write", 7)) != []
    assert _final([7], ("add", 7)) == []


def test_a_cell_that_no_final_state_shows_is_not_counted() -> None:
    """A green light ("1 acknowledged effects are in 1 final states"): the only final state is that of another cell."""
    asked = Line("invoke", 0, "add", 7, key="x"), Line("ok", 0, "add", 7, key="x")
    for key, counted in (("y", 0), ("x", 1)):
        read = {"f": "read", "key": key, "phase": "final"}
        final = Line("invoke", 1, **read), Line("ok", 1, value=[7] if key == "x" else [], **read)
        verdict = CHECKERS["durability"](history_of((*asked, *final)))
        assert (verdict.details["acknowledged"], verdict.result) == (counted, ["unknown", "valid"][counted])


def test_a_read_of_another_collection_judges_no_order() -> None:
    """A green light: "1 read kept the order of 1 write", of which the read shows nothing."""
    wrote = Line("invoke", 0, "write", 7, key="x"), Line("ok", 0, "write", 7, key="x")
    for key, result in (("y", "unknown"), ("x", "valid")):
        read = Line("invoke", 1, "read", key=key), Line("ok", 1, "read", [], key=key)
        assert CHECKERS["causal-reverse"](history_of((*wrote, *read))).result == result


def test_a_cell_to_which_a_value_was_written_twice_is_not_judged() -> None:
    """A write may be replaced by one of the same value, of which no read tells the two apart."""
    assert len(_final(1, ("write", 1), ("write", 2))) == 1
    assert _final(1, ("write", 1), ("write", 2), ("write", 2)) == []
    assert _final(1, ("write", 1), ("write", 2), ("write", None)) == []
