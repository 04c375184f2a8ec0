"""Logs written by hand: a line for each record, as the table of `checkers.logs.txlog.records` has it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from checkers.history.history import Header, History
from checkers.history.operation import Event
from checkers.logs.txlog import Given, check, log_of, verify
from checkers.logs.txlog.given import NO_HISTORY
from checkers.verdict import Verdict

SECOND = 1_000_000_000
Records = list[list[Any]]


def ref(ts: int, name: str) -> list[Any]:
    """Ids are `origin-number` here."""
    return [ts, name, name.partition("-")[0]]


def made(ts: int, name: str, counter: int | None = None) -> list[Any]:
    return ["made", ts if counter is None else counter, ts, name, [["write", "register", "k", name]]]


def heard(peer: str, counter: int, last: int | None, *refs: list[Any]) -> list[Any]:
    return ["heard", peer, counter, last, [*refs]]


def acquired(*names: str) -> list[Any]:
    return ["acquired", [[name, [["write", "register", "k", name]]] for name in names]]


def added(
    index: int, bound: int, posters: Sequence[str], absent: Sequence[str], *refs: list[Any]
) -> list[Any]:
    return ["added", index, [*refs], bound, [*posters], [*absent]]


def caught_up(index: int, source: str, *refs: list[Any]) -> list[Any]:
    return ["caught-up", index, [*refs], source]


def executed(index: int, name: str, digest: bytes | None = None) -> list[Any]:
    """With a hash that only the index and the id decide."""
    return ["executed", index, name, f"{index} {name}".encode() if digest is None else digest]


def life(number: int = 1, strategy: str = "none") -> list[Any]:
    return ["life", number, strategy]


def given(logs: Mapping[str, Records], history: History = NO_HISTORY, **fields: Any) -> Given:
    return Given(
        masters=tuple(logs),
        logs={master: log_of(master, records) for master, records in logs.items()},
        history=history,
        **fields,
    )


def verdicts(
    logs: Mapping[str, Records], history: History = NO_HISTORY, **fields: Any
) -> Mapping[str, Verdict]:
    """Of every check, with proofs that the verifier accepts."""
    said = check(given(logs, history, **fields))
    for verdict in said.values():
        verify.check(tuple(logs), logs, verdict.to_json())
    return {str(name): verdict for name, verdict in said.items()}


def is_shown(logs: Mapping[str, Records], rule: str, master: str, **facts: Any) -> bool:
    """Whether the verifier accepts that the last record of the master breaks the rule."""
    proof = {"rule": rule, "records": [(master, len(logs[master]))], **facts}
    try:
        verify.check(tuple(logs), logs, {"result": "invalid", "details": {"proofs": [proof]}})
    except verify.RefusedError:
        return False
    return True


def rules(
    logs: Mapping[str, Records], history: History = NO_HISTORY, of: Collection[str] = (), **fields: Any
) -> set[str]:
    """The broken rules, of all checks or of those in `of`."""
    said = verdicts(logs, history, **fields).items()
    return {witness.rule for name, verdict in said for witness in verdict.witnesses if not of or name in of}


def cut(
    links: Sequence[tuple[str, str]], start_s: float, end_s: float, number: int = 0
) -> list[dict[str, Any]]:
    """The two lines of a fault that cut these links, in both directions."""
    both = [[*link] for link in links] + [[other, one] for one, other in links]
    asked = {"id": number, "name": "halves", "does": "cut", "links": both}
    over = {"id": number, "took_effect": True, "healed": True}
    return [
        {
            "time_ns": int(start_s * SECOND),
            "type": "invoke",
            "process": "nemesis",
            "f": "halves",
            "value": asked,
        },
        {"time_ns": int(end_s * SECOND), "type": "info", "process": "nemesis", "f": "halves", "value": over},
    ]


def operation(
    process: int,
    start_s: float,
    end_s: float,
    transaction: str | None = None,
    *,
    node: str = "n1",
    f: str = "write",
    key: str = "k",
    value: Any = None,
) -> list[dict[str, Any]]:
    """The two lines of an operation that ended ok."""
    line = {"process": process, "f": f, "key": key, "value": value, "node": node}
    return [
        {"time_ns": int(start_s * SECOND), "type": "invoke", **line},
        {"time_ns": int(end_s * SECOND), "type": "ok", **line, "transaction": transaction},
    ]


def told(what: str, at_s: float, value: Any) -> list[dict[str, Any]]:
    """A line of the harness."""
    return [{"time_ns": int(at_s * SECOND), "type": "info", "process": "harness", "f": what, "value": value}]


def history(*lines: Sequence[Mapping[str, Any]]) -> History:
    """Of these lines, in the order of their times."""
    in_order = sorted((line for each in lines for line in each), key=lambda line: line["time_ns"])
    events = [Event(index=index, **line) for index, line in enumerate(in_order)]
    return History.of(Header(system="txlog", nodes=("n1", "n2", "n3")), events)
