"""Whether the log keeps the order of the clients: I11.

A transaction that is submitted after another one was answered sorts behind it, whichever masters were asked: a master
executes what is synchronised up to T only after every counter has come to T. In a split a part executes without the
counters of the other masters. Its answers, and those that a restore takes back, are the documented price. With the
strategy `none` the branches stay, and masters take parts of them from each other: from the first entry of a part on,
all answers are.
"""

from __future__ import annotations

from checkers.history.operation import Operation
from checkers.logs.txlog.report import Breach, Report
from tests.checkers.logs.txlog.plain.given import Given
from tests.checkers.logs.txlog.plain.records import Added, CaughtUp, Executed, Restored
from tests.checkers.logs.txlog.plain.replay import NEVER, Replay

PRICE = "documented: a part of a split cluster executes without the counters of the others"


def judge(given: Given) -> Report:
    found = Report()
    branches_from = _first_of_a_part(given) if given.strategy == "none" else NEVER
    weak = {master: _weak(given, master, branches_from) for master in given.logs}
    asked = [each for name, each in given.operations.items() if name in given.stamped]
    moments = [(each.invoke_index, False, each) for each in asked]
    moments += [(each.returned_index, True, each) for each in asked if each.returned_index is not None]
    firm: Operation | None = None
    soft: Operation | None = None
    before = 0
    for _, is_over, operation in sorted(moments, key=lambda moment: moment[:2]):
        if is_over:
            before += 1
            if operation.transaction in weak.get(operation.node or "", ()):
                soft = _later(given, soft, operation)
            else:
                firm = _later(given, firm, operation)
            continue
        found.count("sessions", transactions=1, with_earlier_ones=bool(before))
        for earlier, price in ((firm, ""), (soft, PRICE)):
            if earlier is not None and _key(given, operation) < _key(given, earlier):
                found.breaches.append(_breach(given, earlier, operation, price if given.has_split else ""))
                break
    if not found.compared.get("sessions"):
        found.nothing["sessions"] = "no answer named a transaction"
    found.proofs["sessions"] = {"rule": "all in order", **found.compared.get("sessions", {})}
    return found


def _key(given: Given, operation: Operation) -> tuple[int, str]:
    return given.stamped[operation.transaction or ""].key


def _later(given: Given, one: Operation | None, other: Operation) -> Operation:
    """The one with the greater place in the log."""
    return other if one is None or _key(given, one) < _key(given, other) else one


def _first_of_a_part(given: Given) -> int:
    """The least index at which a master that had left others out synchronised anything; NEVER if none did."""
    first = NEVER
    for master, log in given.logs.items():
        replay = Replay(master)
        for event in log.events:
            if isinstance(event, Added | CaughtUp) and replay.missing:
                first = min(first, event.index)
            replay.apply(event)
    return first


def _weak(given: Given, master: str, branches_from: int) -> set[str]:
    """The transactions that the master first executed in a split, or in a branch, or that a restore took back."""
    events = given.logs[master].events
    weak: set[str] = set()
    least = NEVER
    for event in reversed(events):
        if isinstance(event, Restored):
            least = min(least, event.index)
        elif isinstance(event, Executed) and event.index > least:
            weak.add(event.id)
    replay, seen = Replay(master), set[str]()
    for event in events:
        if isinstance(event, Executed) and event.id not in seen:
            seen.add(event.id)
            is_of_part = event.index <= len(replay.left_out) and bool(replay.left_out[event.index - 1])
            if is_of_part or event.index > branches_from:
                weak.add(event.id)
        replay.apply(event)
    return weak


def _breach(given: Given, earlier: Operation, later: Operation, price: str) -> Breach:
    one, other = given.stamped[earlier.transaction or ""], given.stamped[later.transaction or ""]
    return Breach(
        rule="submitted-later-sorts-before",
        summary=f"{other.id} (ts {other.ts}) was submitted after {earlier.node} had executed {one.id} (ts {one.ts}), "
        "and sorts before it",
        records=[(made.ref.origin, made.place) for made in (given.made[one.id], given.made[other.id])],
        events=(*earlier.events, *later.events),
        facts={"earlier": one.id, "later": other.id},
        price=price,
    )
