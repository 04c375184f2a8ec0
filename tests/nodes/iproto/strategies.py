"""Hypothesis strategies: every message and row in the form in which a decoder gives them back.

That form: tuples on the outside, lists within; replica ids from 1 on in a vclock; a transaction of one row has its
own lsn as `tsn`. What a strategy leaves out (a NaN, which is not equal to itself) is left out for the comparison.
"""

from __future__ import annotations

from typing import TypeVar

from hypothesis import strategies as st

from nodes.iproto.messages import (
    Ack,
    Answer,
    Auth,
    Ballot,
    Call,
    Checked,
    Delete,
    Eval,
    Execute,
    Heartbeat,
    Insert,
    Join,
    JoinMeta,
    JoinSnapshot,
    Message,
    Ping,
    RaftState,
    Refusal,
    Register,
    Replace,
    Request,
    Row,
    Rows,
    Select,
    Stage,
    Subscribe,
    Subscribed,
    Type,
    Update,
    Upsert,
    Vote,
)

T = TypeVar("T")

uint32 = st.integers(0, 2**32 - 1)
uint63 = st.integers(0, 2**63 - 1)
uint64 = st.integers(0, 2**64 - 1)
replica_ids = st.integers(1, 31)
uuids = st.uuids().map(str)
vclocks = st.dictionaries(replica_ids, uint63, max_size=4)
timestamps = st.floats(0, 4e9)
# Strings are bytes to Tarantool: what is not UTF-8 comes as lone surrogates.
strings = st.text(max_size=8) | st.binary(max_size=8).map(
    lambda data: data.decode("utf-8", "surrogateescape")
)

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | strings.filter(lambda text: text.isascii() or _survives(text))
    | st.binary(max_size=8)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(scalars, inner, max_size=3),
    max_leaves=6,
)


def _survives(text: str) -> bool:
    """Not all lone surrogates stand for a byte, and some sequences of those that do are UTF-8 after all."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape") == text
    except UnicodeEncodeError:
        return False


def tuples(inner: st.SearchStrategy[T], size_max: int = 20) -> st.SearchStrategy[tuple[T, ...]]:
    return st.lists(inner, max_size=size_max).map(tuple)


fields = tuples(values)
names = st.text(st.characters(codec="utf-8"), max_size=12)

bodies: dict[int, st.SearchStrategy[dict[int, object]]] = {
    Type.INSERT: st.fixed_dictionaries({0x10: uint32, 0x21: fields}),
    Type.REPLACE: st.fixed_dictionaries({0x10: uint32, 0x21: fields}),
    Type.UPDATE: st.fixed_dictionaries({0x10: uint32, 0x20: fields, 0x21: fields}),
    Type.UPSERT: st.fixed_dictionaries({0x10: uint32, 0x21: fields, 0x28: st.lists(values, max_size=3)}),
    Type.DELETE: st.fixed_dictionaries({0x10: uint32, 0x11: uint32, 0x20: fields}),
    Type.NOP: st.just({}),
    Type.PROMOTE: st.fixed_dictionaries({0x02: replica_ids, 0x03: uint63, 0x53: uint63}),
    Type.DEMOTE: st.fixed_dictionaries({0x02: replica_ids, 0x03: uint63, 0x53: uint63}),
    Type.CONFIRM: st.fixed_dictionaries({0x02: replica_ids, 0x03: uint63}),
    Type.ROLLBACK: st.fixed_dictionaries({0x02: replica_ids, 0x03: uint63}),
    Type.RAFT: st.fixed_dictionaries({0: uint63}, optional={1: uint63}),
}


@st.composite
def rows(draw: st.DrawFn, *, on_a_link: bool = False) -> Row:
    """On a link a RAFT row is no row of a log: it says what its sender's election is at."""
    row_type = draw(st.sampled_from(sorted(set(bodies) - ({Type.RAFT} if on_a_link else set()))))
    lsn = draw(st.integers(1, 2**63 - 1))
    is_commit = draw(st.booleans())
    tsn = draw(st.just(lsn) | st.integers(max(1, lsn - 1000), lsn + 5).filter(lambda first: first < 2**63))
    return Row(
        type=row_type,
        replica_id=draw(st.integers(0, 31)),
        lsn=lsn,
        timestamp=draw(timestamps),
        tsn=tsn,
        is_commit=is_commit,
        wait_sync=draw(st.booleans()),
        wait_ack=draw(st.booleans()),
        group_id=draw(st.integers(0, 1)),
        body=draw(bodies[row_type]),
    )


requests: st.SearchStrategy[Request] = st.one_of(
    st.builds(Select, uint64, uint32, fields, uint32, uint32, uint32, st.integers(0, 11)),
    st.builds(Insert, uint64, uint32, fields),
    st.builds(Replace, uint64, uint32, fields),
    st.builds(Delete, uint64, uint32, fields, uint32),
    st.builds(Update, uint64, uint32, fields, fields, uint32, uint32),
    st.builds(Upsert, uint64, uint32, fields, fields, uint32),
    st.builds(Call, uint64, names, fields, st.booleans()),
    st.builds(Eval, uint64, names, fields),
    st.builds(Execute, uint64, st.booleans(), st.dictionaries(uint32, values, max_size=3)),
    st.builds(Auth, uint64, names, fields),
    st.builds(Checked, st.integers(1, 2**32), st.builds(Ping, uint64)),
    st.builds(Ping, uint64),
    st.builds(Vote, uint64),
    st.builds(Join, uint64, uuids, uint32),
    st.builds(Join, uint64, st.just(""), uint32, st.just(True)),
    st.builds(Register, uint64, uuids, vclocks),
)
subscribes = st.builds(Subscribe, uint64, uuids, uuids, st.integers(0, 31), vclocks, uint32, st.booleans())
subscribeds = st.builds(Subscribed, uint64, uuids, vclocks, st.integers(0, 31))
of_joins = (
    st.builds(Ballot, uint64, st.booleans(), vclocks, vclocks, st.booleans())
    | st.builds(Stage, uint64, vclocks)
    | st.builds(JoinMeta, uint64)
    | st.builds(JoinSnapshot, uint64)
)
acks = st.builds(Ack, vclocks, uint63, uint63)
heartbeats = st.builds(Heartbeat, st.integers(0, 31), timestamps, uint63)
raft_states = st.builds(
    RaftState,
    st.integers(1, 31),
    uint63,
    st.integers(0, 31),
    st.integers(1, 3),
    st.integers(0, 31),
    st.booleans(),
    vclocks,
)
refusals = st.builds(Refusal, uint64, st.integers(0, 0x7FFF), names, uint64)
responses: st.SearchStrategy[Message] = st.builds(Answer, uint64, fields, uint64) | refusals
streamed: st.SearchStrategy[Message] = (
    st.builds(Rows, st.lists(rows(on_a_link=True), min_size=1, max_size=4).map(tuple))
    | heartbeats
    | of_joins
    | raft_states
    | refusals
)
