"""Accepts or refuses the proofs in a linearizability verdict. Shares no code with the search: trust this, not that.

    judged = verify.Terms(model="cas-register", reads=…, failed_cas_observes=True)      # what was promised
    verify.check(history, verdict, judged).holds      # the verdict follows from its proofs and the history

The caller says what is judged, because it knows the promise: a verdict that judged by another model, or left out reads,
is refused.

| kind of proof | claims | is checked by |
|---|---|---|
| order | valid: this order of operations explains all answers | replaying it, and comparing it with real time |
| zones | invalid: each of two values' operations must begin before the other's end | two comparisons |
| witness | invalid: these few operations have no order, and the rest cannot help | trying all orders of them |
| element | invalid: an element came out more often than it had been put in | counting |
| configurations | invalid: after event `until` nothing is possible any more | walking through all that is possible |

Why a witness may leave out operations: one that only looks (a read, a refused compare) changes nothing. A write or
change may go if no operation that stays could follow the value which it left. An operation over before `after` began
may go if no other change ran beside `after`, which then fixes the value. After `until` only the past counts: what was
still running then may have happened or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from checkers.history.history import History
from checkers.history.operation import Operation
from checkers.proofs.meaning import FIRST, OPEN, STEPS, WRONG, Op, Terms, first_of, keys_of, op_of, plain
from checkers.verdict import RefusedError, Verdict, Verified, need

STEPS_MAX = 1_000_000
REGISTERS = {"cas-register": "register"}
"""Models by their other names."""
PUTS_AND_TAKES = {
    "queue": ("enqueue", "dequeue"),
    "unordered-queue": ("enqueue", "dequeue"),
    "stack": ("push", "pop"),
    "priority-queue": ("insert", "poll"),
}


def check(history: History, verdict: Verdict, asked: Terms) -> Verified:
    """Check every proof of the verdict. It holds if one shows it invalid, or if each key's shows it valid."""
    details = verdict.details
    model, claimed = (REGISTERS.get(each, each) for each in (asked.model, details["model"]))
    if model != claimed:
        return Verified(0, (f"it judges by {claimed}, not by {model}",), (), holds=False)
    ops = ((keys_of(each, model), op_of(each, model)) for each in _operations_judged(history, asked))
    judged = [(keys, op) for keys, op in ops if not op.does_nothing(model)]
    proved: dict[str | None, str] = {}
    refused = []
    for proof in details.get("proofs", ()):
        try:
            about = list(_about(model, judged, proof["keys"]))
            _prove(
                model, about, proof, first_of(model, {key: history.start.of(key) for key in proof["keys"]})
            )
            proved |= dict.fromkeys(proof["keys"], "valid" if proof["kind"] == "order" else "invalid")
        except (RefusedError, LookupError, TypeError, ValueError) as error:
            name = (
                f"{proof.get('kind')} of {proof.get('keys')}" if isinstance(proof, dict) else f"{proof!r:.40}"
            )
            refused.append(f"{name}: {error}")
    keys = {key for about, _ in judged for key in about}
    without = tuple(sorted(str(key) for key in keys - proved.keys()))
    shown = "invalid" if "invalid" in proved.values() else "unknown" if without else "valid"
    accepted = len(details.get("proofs", ())) - len(refused)
    return Verified(accepted, tuple(refused), without, shown == verdict.result and not refused)


def _prove(model: str, ops: Sequence[Op], proof: Mapping[str, Any], first: Any) -> None:
    match proof["kind"]:
        case "order":
            _order(model, ops, proof["operations"], first)
        case "zones":
            _zones(model, ops, [plain(value) for value in proof["values"]], first)
        case "witness":
            _witness(model, ops, set(proof["operations"]), proof["until"], proof["after"], first)
        case "element":
            _element(model, ops, set(proof["operations"]), first)
        case "configurations":
            past = list(_until(ops, proof["until"]))
            need(not _possible(model, past, first), "some order explains all of it")
        case kind:
            raise RefusedError(f"no such kind of proof: {kind!r}")


def _operations_judged(history: History, asked: Terms) -> Iterable[Operation]:
    for operation in history.operations:
        weak = (
            operation.only_reads
            and operation.type == "ok"
            and not asked.reads(operation.role, operation.mode)
        )
        refused = (
            operation.saw_empty
            or operation.found_nothing
            or (operation.f == "cas" and operation.error == "mismatch")
        )
        observed = refused and asked.failed_cas_observes
        if operation.f != "dump" and not weak and (operation.type != "fail" or observed):
            yield operation


def _about(
    model: str, judged: Iterable[tuple[set[str | None], Op]], keys: Sequence[str | None]
) -> Iterable[Op]:
    need(len(keys) == 1 or model == "multi-register", "objects that nothing holds together")
    for about, op in judged:
        need(about <= set(keys) or not about & set(keys), "an operation is about other keys too")
        if about & set(keys) and (op.over < OPEN or not op.looks):
            yield op


def _order(model: str, ops: Sequence[Op], named: Sequence[int], first: Any) -> None:
    by_id = {op.id: op for op in ops}
    need(
        len(set(named)) == len(named) and set(named) <= by_id.keys(),
        "it names operations twice, or unknown ones",
    )
    need({op.id for op in ops if op.over < OPEN} <= set(named), "an operation that happened is missing")
    state, latest = first, -1.0
    for op in map(by_id.__getitem__, named):
        need(op.over > latest, f"operation {op.id} was over before one that stands before it began")
        state, latest = STEPS[model, op.word](state, op.value), max(latest, op.began)
        need(state is not WRONG, f"operation {op.id} cannot have had its answer")


def _zones(model: str, ops: Sequence[Op], values: Sequence[Any], start: Any) -> None:
    need(model == "register" and all(op.word != "cas" for op in ops), "more than writes may change the value")
    need(0 < len(values) <= 2, "one value or two are needed")
    bounds = []
    for value in values:
        cluster = [op for op in ops if op.word in ("read", "write") and op.value == value]
        made = [op.began for op in cluster if op.word == "write"] + [-1.0] * (value == start)
        need(len(made) <= 1, "a value that was written twice")
        first, last = min(op.over for op in cluster), max(op.began for op in cluster)
        if not made or first < made[0]:
            return  # read, but never written; or read before that
        bounds.append((min(first, *made, OPEN) if value == start else first, last))
    need(len(set(values)) == 2, "these reads fit their write")
    (first, last), (other_first, other_last) = bounds
    need(first < other_last and other_first < last, "one may have ended before the other began")


def _element(model: str, ops: Sequence[Op], named: set[int], first: Any) -> None:
    """Whatever becomes of other elements: each time that this one came out, it had been put in once more before."""
    puts, takes = PUTS_AND_TAKES.get(model, ("", ""))
    need(bool(puts) and first == FIRST[model], "no queue or stack that began empty")
    values = {op.value for op in ops if op.id in named}
    need(len(values) == 1, "its operations are about several elements, or none")
    of_element = [op for op in ops if op.value in values and op.word in (puts, takes)]
    for out in (op for op in of_element if op.word == takes):
        came = sum(op.word == takes and op.over <= out.over for op in of_element)
        if came > sum(op.word == puts and op.began < out.over for op in of_element):
            return
    raise RefusedError("it may have been put in each time before it came out")


def _until(ops: Iterable[Op], until: int) -> Iterable[Op]:
    for op in ops:
        if op.over <= until:
            yield op
        elif op.began <= until and not op.looks:
            yield replace(op, over=OPEN)


def _witness(
    model: str, ops: Sequence[Op], named: set[int], until: int, after: int | None, first: Any
) -> None:
    state, past = first, list(_until(ops, until))
    if after is not None:
        (fixing,) = (
            op for op in past if op.id == after and op.over < OPEN and op.word in ("read", "write", "cas")
        )
        beside = (op for op in ops if op.over > fixing.began and op.began < fixing.over and op.over < OPEN)
        need(
            model == "register" and all(op.looks or op is fixing for op in beside),
            "another change ran beside it",
        )
        state = fixing.value[1] if fixing.word == "cas" else fixing.value
        past = [op for op in past if op.over == OPEN or op.began > fixing.over]
    stay = [op for op in past if op.id in named]
    gone = [op for op in past if op.id not in named and not op.looks]
    need(len(stay) == len(named), "it names operations that are not of that time")
    need(not gone or model == "register", "a change that may not be left out")
    left = {op.value[1] if op.word == "cas" else op.value for op in gone}
    needy = [op for op in stay if op.word != "write"]
    helped = any(STEPS[model, op.word](value, op.value) is not WRONG for value in left for op in needy)
    need(not helped, "what is left out could help")
    need(not _possible(model, stay, state), "some order explains them")


def _possible(model: str, ops: Sequence[Op], first: Any) -> bool:
    """Whether some order explains all operations. Walks through all possible states, event by event."""
    events = [(op.began, False, op) for op in ops] + [(op.over, True, op) for op in ops if op.over < OPEN]
    pending: dict[int, Op] = {}
    steps, now = 0, {(first, frozenset[int]())}
    for _, ends, op in sorted(events, key=lambda event: event[0]):
        pending[op.id] = op
        after, visited, todo = set(), set(), list(now)
        while todo:
            state, done = todo.pop()
            done |= {
                running.id for running in pending.values() if running.looks and _fits(model, state, running)
            }
            # Refused, not accepted: what was not looked at may be possible.
            need((steps := steps + 1) < STEPS_MAX, "too much is possible to look at all of it")
            if not ends or op.id in done:
                after.add((state, done - {op.id} if ends else done))
            elif (state, done) not in visited:
                visited.add((state, done))
                for running in pending.values():
                    if running.id not in done and _fits(model, state, running):
                        todo.append((STEPS[model, running.word](state, running.value), done | {running.id}))
        if ends:
            del pending[op.id]
        now = after
    return bool(now)


def _fits(model: str, state: Any, op: Op) -> bool:
    return STEPS[model, op.word](state, op.value) is not WRONG
