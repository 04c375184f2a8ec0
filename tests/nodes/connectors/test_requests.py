"""Drawn sequences of plain requests to a node of ours and to a real Tarantool: every answer is the same.

The space of requests is small on purpose, so that they hit each other: few keys, tuples that fit and that do not,
operations of UPDATE of every kind, iterators, malformed bodies.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from struct import pack as struct_pack

import pytest

from nodes.iproto.messages import (
    Answer,
    Auth,
    Call,
    Checked,
    Delete,
    Insert,
    Ping,
    Refusal,
    Replace,
    Request,
    Select,
    Update,
    Upsert,
)
from nodes.qsync.access import scramble
from tests import needs
from tests.nodes.connectors.servers import Link, Server

pytestmark = [pytest.mark.real, needs.tarantool]

STEPS = 1500
SPACES = (512, 513, 514, 515, 516)
VIEWS = (280, 281, 288, 289)


class Requests:
    """Draws requests."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def pick(self, *choices: object) -> object:
        return self.chance.choice(choices)

    def scalar(self) -> object:
        kinds = (
            0,
            1,
            2,
            3,
            -1,
            2**63,
            2**64 - 1,
            -(2**63),
            1.5,
            -0.25,
            "a",
            "b",
            "häß",
            b"\xff",
            True,
            False,
            None,
        )
        return self.chance.choice(kinds)

    def key(self, space: int) -> tuple[object, ...]:
        chance = self.chance.random()
        if space == 516:
            whole = (self.chance.randrange(3), self.pick("a", "b"))
            return whole if chance < 0.8 else (whole[:1] if chance < 0.9 else (*whole, 1))
        if space == 512:
            return (self.pick(1, "a", 1.5, True, b"x"),) if chance < 0.8 else (self.scalar(),)
        if chance < 0.85:
            return (self.chance.randrange(4),)
        return () if chance < 0.9 else (self.scalar(),)

    def fields(self, space: int) -> tuple[object, ...]:
        key = self.key(space)
        if space == 513 and self.chance.random() < 0.8:
            key = (*key, self.pick("x", "yy", ""))
        if space == 516:
            key = (*key, self.chance.randrange(4))
        rest = [self.value() for _ in range(self.chance.randrange(4))]
        return (*key, *rest)

    def value(self) -> object:
        if self.chance.random() < 0.7:
            return self.scalar()
        return self.pick([1, [2, "x"], {"k": 3}], {"a": 1, "b": [1, 2]}, [], {})

    def operation(self) -> object:
        verb = self.pick(*"=+-&|^!#:", *"=+-&|^!#:", "?", "==", 1)
        field = self.pick(
            0, 1, 1, 2, 2, 3, 4, 5, -1, -2, -7, "name", "rest", "[2]", "nobody", "[3][1]", "[3].a", 1.5
        )
        match verb:
            case ":":
                offset, length = self.chance.randrange(-3, 4), self.chance.randrange(-3, 4)
                arguments = [offset, length, self.pick("", "z", "éé", 1)]
            case "#":
                arguments = [self.pick(1, 2, 9, 0, -1, "x")]
            case "+" | "-" | "&" | "|" | "^":
                arguments = [self.pick(0, 1, 7, -3, 1.5, 2**63, 2**64 - 1, "x", None)]
            case _:
                arguments = [self.value()]
        made = [verb, field, *arguments]
        return made if self.chance.random() < 0.95 else self.pick(made[:-1], [*made, 1], [], "x")

    def operations(self) -> tuple[object, ...]:
        return tuple(self.operation() for _ in range(self.chance.choice((0, 1, 1, 1, 2, 3))))

    def request(self) -> Request:
        space = self.chance.choice(SPACES) if self.chance.random() < 0.98 else 999
        base = self.chance.choice((0, 0, 1))
        index = self.chance.choice((0, 0, 0, 0, 0, 0, 0, 1, 7))
        match self.chance.randrange(12):
            case 0 | 1:
                return Insert(0, space, self.fields(space))
            case 2 | 3:
                return Replace(0, space, self.fields(space))
            case 4 | 5 | 6:
                return Update(0, space, self.key(space), self.operations(), index, base)
            case 7 | 8:
                return Upsert(0, space, self.fields(space), self.operations(), base)
            case 9:
                return Delete(0, space, self.key(space), index)
            case _:
                return self.select(space, index)

    def select(self, space: int, index: int) -> Request:
        key = self.key(space)
        if self.chance.random() < 0.3:
            key = key[: self.chance.randrange(2)]
        limit, offset = self.pick(0, 1, 2, 100, 2**32 - 1), self.pick(0, 0, 0, 1, 5, 2**32 - 1)
        assert isinstance(limit, int)
        assert isinstance(offset, int)
        return Select(0, space, key, index, limit, offset, self.chance.randrange(13))


def plain(answer: Answer | Refusal) -> object:
    """Without the schema version, which counts from another number."""
    if isinstance(answer, Refusal):
        return answer.code, answer.message
    return list(answer.data)


def compare(links: Sequence[Link], request: Request | bytes, seed: object) -> None:
    ours, real = (plain(link.ask(request)) for link in links)
    assert repr(ours) == repr(real), f"{request!r} ({seed})"


@pytest.mark.parametrize("seed", range(4))
def test_drawn_requests_are_answered_alike(both: tuple[Server, Server], seed: int) -> None:
    """Broken, a client that works with Tarantool 2.6 gets something else from our node."""
    links = [server.link() for server in both]
    requests = Requests(seed)
    for step in range(STEPS):
        compare(links, requests.request(), (seed, step))


HEADER = "82 00 {:02x} 01 05 "
BODIES = (
    *(
        "80",
        "81 10 01",
        "82 10 01 21 90",
        "82 10 a1 61 21 90",
        "82 10 ff 21 90",
        "82 10 cd0200 21 01",
        "01",
        "c1",
    ),
    *(
        "82 10 cd0200 20 90",
        "83 10 cd0200 20 90 11 a1 61",
        "82 10 cd0200 28 90",
        "83 10 cd0200 21 91 01 28 01",
    ),
    *("83 10 cd0200 12 01 20 91 01", "84 10 cd0200 12 01 20 91 01 14 cc ff", "83 10 cd0200 12 ff 20 90"),
    *(
        "83 10 cd0200 20 91 01 21 91 01",
        "83 10 cd0200 21 91 01 28 91 93 a1 2b 01 02",
        "81 22 01",
        "81 22 a1 66",
    ),
    *("82 22 a1 66 21 80", "81 23 a1 78", "82 23 a1 78 21 90", "82 23 a1 78 21 01", "82 23 a3 626f62 21 90"),
    *("82 23 a3 626f62 21 92 a1 78 a1 79", "82 23 a3 626f62 21 92 a1 78 01", "82 23 a5 6775657374 21 90"),
)
TYPES = (1, 2, 3, 4, 5, 6, 7, 9, 10, 14, 63, 64, 73, 200)


def frame(hexadecimal: str) -> bytes:
    payload = bytes.fromhex(hexadecimal)
    return b"\xce" + struct_pack(">I", len(payload)) + payload


def test_odd_bodies_are_answered_alike(both: tuple[Server, Server]) -> None:
    """Broken, a slip in a connector is told in other words, or hangs."""
    links = [server.link() for server in both]
    for type_ in TYPES:
        for body in BODIES:
            compare(links, frame(HEADER.format(type_) + body), f"{type_}: {body}")


def test_users_log_in_alike(both: tuple[Server, Server]) -> None:
    """Broken, somebody gets in, or is kept out and told why in other words."""
    who = (
        ("rex", "secret"),
        ("rex", "wrong"),
        ("bob", "secret"),
        ("nobody", "x"),
        ("guest", "x"),
        ("admin", ""),
    )
    for user, password in who:
        links = [server.link() for server in both]
        for link in links:
            assert link.salt
        answers = [
            plain(link.ask(Auth(0, user, ("chap-sha1", scramble(password, link.salt))))) for link in links
        ]
        assert answers[0] == answers[1], (user, password)
        requests: list[Request] = [
            *(Select(0, 512, ()), Insert(0, 512, ("a", 1)), Call(0, "nothing", ()), Auth(0, "guest", ())),
            *(Select(0, 512, ()), Ping(0)),
        ]
        for request in requests:
            compare(links, request, user)


def test_a_stale_schema_is_refused_alike(both: tuple[Server, Server]) -> None:
    """Broken, a connector goes on with spaces that have changed."""
    links = [server.link() for server in both]
    versions = [link.ask(Ping(0)).schema_version for link in links]
    for link, version in zip(links, versions, strict=True):
        assert plain(link.ask(Checked(version, Select(0, 512, (1,), limit=0)))) == []
        refusal = link.ask(Checked(version + 1, Select(0, 512, (1,))))
        assert isinstance(refusal, Refusal)
        assert refusal.schema_version == version
        text = f"Wrong schema version, current: {version + 1}, in request: {version}"
        assert (refusal.code, refusal.message) == (109, text)


def _rows(link: Link, space: int, key: tuple[object, ...] = (), index: int = 0) -> object:
    return plain(link.ask(Select(0, space, key, index, iterator=0 if key else 2)))


@pytest.mark.parametrize("space", [280, 281, 288, 289])
def test_system_spaces_say_the_same(both: tuple[Server, Server], space: int) -> None:
    """Broken, a connector does not find a space, or a field of it by its name."""
    ours, real = ([_sorted(row) for row in _rows(server.link(), space)] for server in both)  # type: ignore[attr-defined]
    assert ours == real


def _sorted(value: object) -> object:
    """Maps in one order; `str` is an old name for `string`."""
    match value:
        case dict():
            return sorted((key, _sorted(inner)) for key, inner in value.items() if inner is not False)
        case list():
            return [_sorted(inner) for inner in value]
        case "str":
            return "string"
    return value


def test_a_space_is_found_by_its_name(both: tuple[Server, Server]) -> None:
    """Broken, `tarantool.Connection.space("formed")` knows no such space."""
    for space, index, key in ((281, 2, ("formed",)), (289, 2, (516, "other")), (305, 2, ("rex",))):
        ours, real = (_sorted(_rows(server.link(), space, key, index)) for server in both)
        assert ours == real


def test_what_a_user_may_not_know_is_not_shown(both: tuple[Server, Server]) -> None:
    """Broken, anybody reads what there is."""
    shown = []
    for server in both:
        link = server.link()
        link.ask(Auth(0, "bob", ("chap-sha1", scramble("secret", link.salt))))
        shown.append([row[0] for row in _rows(link, 281)])  # type: ignore[attr-defined]
    assert shown[0] == shown[1]


def test_functions_of_spaces_are_called_alike(both: tuple[Server, Server]) -> None:
    """Broken, a Lua file that administers real Tarantool does not administer our nodes."""
    links = [server.link() for server in both]
    calls: list[tuple[str, tuple[object, ...]]] = [
        ("box.space.formed:truncate", ()),
        ("box.space.formed:insert", ([1, "x"],)),
        ("box.space.formed:insert", ([1, "x"],)),
        ("box.space.formed:replace", ([2, "y", 7],)),
        ("box.space.formed:update", (2, [["=", 2, "z"], ["+", "rest", 1]])),
        ("box.space.formed:upsert", ([1, "x"], [["=", 2, "w"]])),
        ("box.space.formed:get", (2,)),
        ("box.space.formed:get", (9,)),
        ("box.space.formed:select", ()),
        ("box.space.formed:select", (1,)),
        ("box.space.formed:count", ()),
        ("box.space.formed:delete", (1,)),
        ("box.space.formed:len", ()),
        ("nothing", ()),
        ("box.space.formed:nothing", ()),
    ]
    for name, arguments in calls:
        compare(links, Call(0, name, arguments), name)
        if "space" not in name or "select" in name or "len" in name:
            compare(links, Call(0, name, arguments, wraps=True), f"{name} in the old form")


def test_a_space_made_synchronous_at_run_time(both: tuple[Server, Server]) -> None:
    """Broken, the way of 2.6 to alter `is_sync`, an UPDATE of `_space`, does something else, and counts no version."""
    links = [server.link() for server in both]
    before = [link.ask(Ping(0)).schema_version for link in links]
    for flags in ({"is_sync": True}, {}):
        compare(links, Update(0, 280, (512,), (["=", 5, flags],)), flags)
        compare(links, Replace(0, 512, ("made", 1)), flags)
    after = [link.ask(Ping(0)).schema_version for link in links]
    assert all(now > then for now, then in zip(after, before, strict=True))
