"""Small logs written by hand: a line per row."""

from __future__ import annotations

from msgspec.structs import replace

from checkers.logs.wal import NodeLog, Record


def write(origin: int, lsn: int, value: object = None, *, key: str = "x", waits: bool = True) -> Record:
    """A transaction of one row; `value` None: one that nothing else tells from the lsn."""
    shown = lsn if value is None else value
    return Record(
        kind="write",
        origin=origin,
        lsn=lsn,
        file=f"row {lsn}",
        is_synchronous=waits,
        body=repr((key, shown)).encode(),
        tuple=(key, shown),
    )


def data(lsn: int, key: str) -> Record:
    """A row of replica 1 that puts its own lsn under a key of space 512."""
    return replace(write(1, lsn, key=key), space=512, key=key)


def nop(origin: int, lsn: int) -> Record:
    return Record(kind="nop", origin=origin, lsn=lsn, file=f"row {lsn}")


def confirm(origin: int, lsn: int, until: int, owner: int | None = None) -> Record:
    return _decision("confirm", origin, lsn, origin if owner is None else owner, until)


def rollback(origin: int, lsn: int, start: int) -> Record:
    return _decision("rollback", origin, lsn, origin, start)


def promote(origin: int, lsn: int, *, over: int, until: int, term: int) -> Record:
    return _decision("promote", origin, lsn, over, until, term)


def vote(lsn: int, term: int, candidate: int) -> Record:
    return Record(kind="vote", origin=0, lsn=lsn, file=f"row {lsn}", term=term, vote=candidate)


def log(
    node: str, *records: Record, damage: str | None = None, begins: dict[int, int] | None = None
) -> NodeLog:
    return NodeLog(node=node, records=records, damage=damage, begins=begins or {})


def _decision(kind: str, origin: int, lsn: int, owner: int, until: int, term: int = 0) -> Record:
    return Record(
        kind=kind,  # type: ignore[arg-type]
        origin=origin,
        lsn=lsn,
        file=f"row {lsn}",
        owner=owner,
        until=until,
        term=term,
        body=repr((kind, owner, until, term)).encode(),
    )
