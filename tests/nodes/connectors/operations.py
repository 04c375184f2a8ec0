"""Everything that the two connectors offer against a 2.6 server, one step each, and how an answer is written down.

A step has the connector's own method, a few words, and what is done with the connection. `answers.txt` has the answer
of each on a real Tarantool 2.6.0, and, where a node of ours answers something else (it has neither Lua nor SQL), that.

    .venv/bin/python -m tests.nodes.connectors.operations      writes the file anew; needs `tarantool` on PATH

Steps run in their order on one connection, and leave no tuple behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import decimal
import sys
import tempfile
import uuid
import warnings
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asynctnt
import tarantool
from tarantool import const, dbapi

FILE = Path(__file__).parent / "answers.txt"
OURS = "  ours: "


@dataclass(frozen=True)
class Step:
    """`method` is a name of the connector's own; `do` gets the connection (and of asynctnt may give an awaitable)."""

    connector: str
    method: str
    words: str
    do: Callable[[Any], Any]

    @property
    def name(self) -> str:
        return f"{self.connector} {self.method}: {self.words}"


def told(value: Any) -> str:
    """An answer in words that do not depend on the server's age, ports or memory."""
    match value:
        case asynctnt.Response():
            return told(value.body if value.body is None else list(value.body))
        case asynctnt.TarantoolTuple():
            return told(tuple(value))
        case tarantool.response.Response():
            return told(value.data)
        case list() | tuple():
            return f"[{', '.join(map(told, value))}]"
        case dict():
            return "{" + ", ".join(f"{told(key)}: {told(each)}" for key, each in value.items()) + "}"
        case _:
            return repr(value)


def failed(error: Exception) -> str:
    """Class, code and message of an error."""
    kind = f"{type(error).__module__.split('.')[0]}.{type(error).__name__}"
    match error:
        case asynctnt.exceptions.TarantoolDatabaseError():
            return f"{kind} {int(error.code)} {error.message}"
        case _:
            return f"{kind} {' '.join(map(str, error.args))}"


# ---- asynctnt

_ITERATORS = ("EQ", "REQ", "ALL", "LT", "LE", "GE", "GT")
_OF_OTHER_INDEXES = ("BITS_ALL_SET", "BITS_ANY_SET", "BITS_ALL_NOT_SET", "OVERLAPS", "NEIGHBOR")


async def _fill(c: Any) -> str:
    for key, name in ((300, "a"), (301, "b"), (302, "c")):
        await c.replace("formed", [key, name, key])
    for key in ("x", "y"):
        await c.replace("pairs", [30, key, ord(key)])
    return "done"


async def _empty(c: Any) -> str:
    for key in range(300, 310):
        await c.delete("formed", [key])
    for key in ("x", "y"):
        await c.delete("pairs", [30, key])
    return "done"


async def _pushes(c: Any) -> object:
    future = c.call("box.space.formed:get", [300], push_subscribe=True)
    pushes = [each async for each in asynctnt.PushIterator(future)]
    return [pushes, await future]


async def _prepared(c: Any) -> object:
    async with c.prepare("SELECT 1 + ?") as statement:
        return [statement.params_count, await statement.execute([2])]


async def _prepared_by_hand(c: Any) -> object:
    number = (await c.prepare_iproto("SELECT 3")).stmt_id
    return [number > 0, await c.execute(number)]


async def _reconnected(c: Any) -> object:
    await c.reconnect()
    return [c.is_connected, c.is_fully_connected, await c.select("formed", [300])]


async def _in_a_stream(c: Any) -> object:
    async with c.stream() as stream:
        return await stream.select("formed")


async def _anew(c: Any) -> object:
    async with await asynctnt.connect(host=c.host, port=c.port, fetch_schema=False) as other:
        return [await other.select(513, [300]), other.schema_id > 0]


async def _in_a_dictionary(c: Any) -> object:
    found = (await c.select("formed", {"id": 300}))[0]
    return [found["name"], dict(found), found.get("rest"), "name" in found, len(found)]


def _asynctnt() -> Iterator[Step]:
    def step(method: str, words: str, do: Callable[[Any], Any]) -> Step:
        return Step("asynctnt", method, words, do)

    yield step("ping", "is answered", lambda c: c.ping(timeout=10))
    yield step("replace", "what the steps below see", _fill)
    for name in (*_ITERATORS, *_OF_OTHER_INDEXES):
        of = getattr(asynctnt.Iterator, name)
        yield step(
            "select", f"iterator {name}", lambda c, of=of: c.select("formed", [301], iterator=of, limit=2)
        )
    yield step("select", "no key", lambda c: c.select("pairs"))
    yield step(
        "select", "offset and limit", lambda c: c.select("formed", [300], iterator="GE", offset=1, limit=1)
    )
    yield step("select", "limit 0", lambda c: c.select("formed", [300], iterator="GE", limit=0))
    yield step("select", "a part of the key, downwards", lambda c: c.select("pairs", [30], iterator="REQ"))
    yield step("select", "another index by name", lambda c: c.select("pairs", [120], index="other"))
    yield step(
        "select", "another index by number", lambda c: c.select("pairs", [121], index=1, iterator="LE")
    )
    yield step("select", "space and index by number", lambda c: c.select(513, [300], index=0))
    yield step("select", "a key by names, fields by names", _in_a_dictionary)
    yield step("select", "an index that is not there", lambda c: c.select("formed", [1], index="nope"))
    yield step("select", "an index number that is not there", lambda c: c.select("formed", [1], index=7))
    yield step("select", "a space that is not there", lambda c: c.select("nope"))
    yield step("select", "a space number that is not there", lambda c: c.select(9999))
    yield step("select", "a key of another type", lambda c: c.select("formed", ["x"]))
    yield step("select", "a key with too many parts", lambda c: c.select("formed", [1, 2]))
    yield step("insert", "fields by names", lambda c: c.insert("formed", {"id": 303, "name": "d"}))
    yield step("insert", "a list", lambda c: c.insert("formed", [304, "e", {"deep": [1, None, True, 1.5]}]))
    yield step("insert", "replace=True", lambda c: c.insert("formed", [304, "e"], replace=True))
    yield step("insert", "a key that is there", lambda c: c.insert("formed", [303, "d"]))
    yield step("insert", "a field of another type", lambda c: c.insert("formed", [305, 5]))
    yield step("insert", "a field too few", lambda c: c.insert("formed", [305]))
    yield step("insert", "a name that is no field", lambda c: c.insert("formed", {"id": 305, "nope": 1}))
    yield step("insert", "a decimal", lambda c: c.insert("formed", [306, "x", decimal.Decimal("1.50")]))
    yield step("insert", "a UUID", lambda c: c.insert("formed", [307, "x", uuid.UUID(int=7)]))
    yield step("insert", "bytes", lambda c: c.insert("formed", [308, "x", b"\xff\x00"]))
    yield step("select", "a decimal, a UUID, bytes", lambda c: c.select("formed", [306], iterator="GE"))
    yield step(
        "replace", "fields by names", lambda c: c.replace("formed", {"id": 303, "name": "dd", "rest": 1})
    )
    yield step("update", "=, +", lambda c: c.update("formed", [303], [["=", "name", "n"], ["+", "rest", 4]]))
    yield step(
        "update",
        "-, and a field that is not there",
        lambda c: c.update("formed", [303], [["-", 2, 1], ["|", 4, 1]]),
    )
    for verb in "-&|^":
        yield step("update", verb, lambda c, verb=verb: c.update("formed", [303], [[verb, 2, 6]]))
    yield step("update", "!", lambda c: c.update("formed", [303], [["!", 3, "end"]]))
    yield step("update", "#", lambda c: c.update("formed", [303], [["#", 3, 1]]))
    yield step("update", ":", lambda c: c.update("formed", [303], [[":", "name", 0, 1, "spliced"]]))
    yield step("update", "a key by names", lambda c: c.update("formed", {"id": 303}, [["=", "name", "m"]]))
    yield step("update", "by another index", lambda c: c.update("pairs", [120], [["=", 3, 9]], index="other"))
    yield step("update", "what is not there", lambda c: c.update("formed", [399], [["=", 1, "x"]]))
    yield step("update", "a sum with a string", lambda c: c.update("formed", [303], [["+", "name", 1]]))
    yield step("update", "the key itself", lambda c: c.update("formed", [303], [["=", "id", 1]]))
    yield step("upsert", "new", lambda c: c.upsert("formed", [305, "u", 1], [["+", "rest", 1]]))
    yield step("upsert", "there", lambda c: c.upsert("formed", [305, "u", 1], [["+", "rest", 1]]))
    yield step("select", "after both", lambda c: c.select("formed", [305]))
    yield step("delete", "there", lambda c: c.delete("formed", [305]))
    yield step("delete", "by names", lambda c: c.delete("formed", {"id": 304}))
    yield step("delete", "not there", lambda c: c.delete("formed", [399]))
    yield step("delete", "by an index that is not unique", lambda c: c.delete("pairs", [121], index="other"))
    yield step("delete", "a part of the key", lambda c: c.delete("pairs", [30]))
    yield step("call", "a method of a space", lambda c: c.call("box.space.formed:get", [300]))
    yield step("call", "many tuples", lambda c: c.call("box.space.formed:select", [300]))
    yield step("call", "what is not there", lambda c: c.call("nope"))
    yield step("call", "with pushes", _pushes)
    yield step("call16", "a method of a space", lambda c: c.call16("box.space.formed:select", [300]))
    yield step("call16", "what is not there", lambda c: c.call16("nope"))
    yield step("eval", "a number", lambda c: c.eval("return 1, ...", [2]))
    yield step("execute", "a query", lambda c: c.execute("SELECT 1"))
    yield step("execute", "with parameters", lambda c: c.execute("SELECT :a", [{":a": 5}]))
    yield step("execute", "a slip", lambda c: c.execute("SELEKT"))
    yield step("execute", "parse_metadata=False", lambda c: c.execute("SELECT 1", parse_metadata=False))
    yield step("prepare", "a statement, executed and dropped", _prepared)
    yield step("prepare_iproto", "a statement, executed by its number", _prepared_by_hand)
    yield step("unprepare_iproto", "a statement that is not there", lambda c: c.unprepare_iproto(99))
    for verb in ("begin", "commit", "rollback"):
        yield step(verb, "of 2.10", lambda c, verb=verb: getattr(c, verb)())
    yield step("stream", "of 2.10", _in_a_stream)
    yield step(
        "features", "of 2.10", lambda c: [c.features.streams, c.features.transactions, c.features.watchers]
    )
    yield step("version", "as greeted", lambda c: c.version)
    yield step(
        "refetch_schema",
        "known spaces",
        lambda c: _then(c.refetch_schema(), lambda: c.schema.spaces["formed"].sid),
    )
    yield step("reconnect", "and asked again", _reconnected)
    yield step("connect", "without a schema", _anew)
    yield step("delete", "what the steps have left", _empty)
    yield step("disconnect", "and asked", lambda c: _then(c.disconnect(), lambda: c.is_connected))
    yield step("ping", "after disconnect", lambda c: c.ping())


async def _then(first: Awaitable[object], value: Callable[[], object]) -> object:
    await first
    return value()


# ---- tarantool


def _fill_pairs(c: Any) -> str:
    for key, name in ((400, "a"), (401, "b"), (402, "c")):
        c.replace("formed", (key, name, key))
    for key in ("x", "y"):
        c.replace("pairs", (40, key, ord(key)))
    return "done"


def _empty_pairs(c: Any) -> str:
    for key in range(400, 410):
        c.delete("formed", key)
    for key in ("x", "y"):
        c.delete("pairs", (40, key))
    return "done"


def _pushed(c: Any) -> object:
    pushes: list[object] = []
    answer = c.call(
        "box.space.formed:get", 400, on_push=lambda *given: pushes.append(given), on_push_ctx=None
    )
    return [pushes, answer]


def _another(c: Any, **options: Any) -> Any:
    return contextlib.closing(tarantool.connect(c.host, c.port, **options))


def _logged_in(c: Any) -> object:
    with _another(c) as other:
        return [other.authenticate("rex", "secret"), other.select("formed", 400)]


def _wrongly(c: Any) -> object:
    with _another(c) as other:
        return other.authenticate("rex", "wrong")


def _by_descriptor(c: Any) -> object:
    import socket

    own = socket.create_connection((c.host, c.port)).detach()
    with contextlib.closing(tarantool.Connection(host=None, port=None, socket_fd=own)) as other:
        return other.select("formed", 400)


def _pool(c: Any) -> object:
    pool = tarantool.ConnectionPool([{"host": c.host, "port": c.port}])
    modes = tarantool.Mode
    try:
        return [
            pool.ping(mode=modes.ANY, notime=True),
            pool.replace("formed", (403, "p")),
            pool.select("formed", 403, mode=modes.PREFER_RO),
            pool.select("formed", 403, mode=modes.PREFER_RW),
            pool.call("box.space.formed:get", 403, mode=modes.RW),
            pool.update("formed", 403, [("=", 1, "q")]),
            pool.upsert("formed", (403, "p"), [("=", 1, "r")]),
            pool.delete("formed", 403),
            pool.insert("formed", (403, "p")),
            pool.delete("formed", 403),
        ]
    finally:
        pool.close()


def _pool_for_readers(c: Any) -> object:
    pool = tarantool.ConnectionPool([{"host": c.host, "port": c.port}])
    try:
        return pool.select("formed", 400, mode=tarantool.Mode.RO)
    finally:
        pool.close()


def _mesh(c: Any) -> object:
    gone = {"host": "127.0.0.1", "port": 1}
    addresses = [gone, {"host": c.host, "port": c.port}]
    made = tarantool.MeshConnection(addrs=addresses, connect_now=False, reconnect_max_attempts=1)
    with warnings.catch_warnings(), contextlib.closing(made) as mesh:
        warnings.simplefilter("ignore")  # that it connects anew
        return mesh.call("box.space.formed:get", 400)


def _mesh_of_one(c: Any) -> object:
    with contextlib.closing(tarantool.connectmesh([{"host": c.host, "port": c.port}])) as mesh:
        return mesh.select("formed", 400)


def _mesh_that_asks(c: Any) -> object:
    addresses = [{"host": c.host, "port": c.port}]
    with warnings.catch_warnings(record=True) as told_of:
        warnings.simplefilter("always")
        made = tarantool.MeshConnection(
            addrs=addresses, cluster_discovery_function="nope", cluster_discovery_delay=0
        )
        with contextlib.closing(made) as mesh:
            answer = mesh.select("formed", 400)
    return [answer, sorted({type(each.message).__name__ for each in told_of})]


def _cursor(c: Any, do: Callable[[Any], Any]) -> object:
    with contextlib.closing(dbapi.connect(host=c.host, port=c.port)) as connection:
        return do(connection.cursor())


def _of_dbapi(c: Any, do: Callable[[Any], Any]) -> object:
    with contextlib.closing(dbapi.connect(host=c.host, port=c.port)) as connection:
        return do(connection)


def _executed(cursor: Any) -> object:
    cursor.execute("SELECT 1, :a", {"a": 2})
    return [cursor.rowcount, cursor.fetchone(), cursor.fetchmany(2), cursor.fetchall()]


def _schema(c: Any) -> object:
    c.flush_schema()
    found = c.schema.get_space("formed")
    index = c.schema.get_index("pairs", "other")
    return [found.sid, found.arity, sorted(map(str, found.format)), index.iid, index.name, index.unique]


_CRUD: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("crud_insert", ("formed", [404, None, "x"])),
    ("crud_insert_object", ("formed", {"id": 404})),
    ("crud_insert_many", ("formed", [[404, None, "x"]])),
    ("crud_insert_object_many", ("formed", [{"id": 404}])),
    ("crud_get", ("formed", 400)),
    ("crud_update", ("formed", 400, [["=", 1, "x"]])),
    ("crud_delete", ("formed", 400)),
    ("crud_replace", ("formed", [404, None, "x"])),
    ("crud_replace_object", ("formed", {"id": 404})),
    ("crud_replace_many", ("formed", [[404, None, "x"]])),
    ("crud_replace_object_many", ("formed", [{"id": 404}])),
    ("crud_upsert", ("formed", [404, None, "x"], [])),
    ("crud_upsert_object", ("formed", {"id": 404}, [])),
    ("crud_upsert_many", ("formed", [[[404, None, "x"], []]])),
    ("crud_upsert_object_many", ("formed", [[{"id": 404}, []]])),
    ("crud_select", ("formed",)),
    ("crud_min", ("formed", "primary")),
    ("crud_max", ("formed", "primary")),
    ("crud_truncate", ("formed",)),
    ("crud_len", ("formed",)),
    ("crud_storage_info", ()),
    ("crud_count", ("formed",)),
    ("crud_stats", ("formed",)),
    ("crud_unflatten_rows", ([[1]], [{"name": "id", "type": "unsigned"}])),
)


def _tarantool() -> Iterator[Step]:
    def step(method: str, words: str, do: Callable[[Any], Any]) -> Step:
        return Step("tarantool", method, words, do)

    yield step("ping", "is answered", lambda c: c.ping(notime=True))
    yield step("replace", "what the steps below see", _fill_pairs)
    for name in ("EQ", "REQ", "ALL", "LT", "LE", "GE", "GT"):
        of = getattr(const, f"ITERATOR_{name}")
        yield step(
            "select", f"iterator {name}", lambda c, of=of: c.select("formed", 401, iterator=of, limit=2)
        )
    for name in ("BITSET_ALL_SET", "BITSET_ANY_SET", "BITSET_ALL_NOT_SET", "OVERLAPS", "NEIGHBOR"):
        of = getattr(const, f"ITERATOR_{name}")
        yield step("select", f"iterator {name}", lambda c, of=of: c.select("formed", 401, iterator=of))
    yield step("select", "no key", lambda c: c.select("pairs"))
    yield step("select", "offset and limit", lambda c: c.select("formed", 400, iterator=5, offset=1, limit=1))
    yield step("select", "a part of the key", lambda c: c.select("pairs", 40))
    yield step("select", "another index by name", lambda c: c.select("pairs", 120, index="other"))
    yield step("select", "another index by number", lambda c: c.select("pairs", 121, index=1))
    yield step("select", "space by number", lambda c: c.select(513, 400, index=0))
    yield step("select", "on_push", lambda c: c.select("formed", 400, on_push=print))
    yield step("select", "an index that is not there", lambda c: c.select("formed", 1, index="nope"))
    yield step("select", "an index number that is not there", lambda c: c.select("formed", 1, index=7))
    yield step("select", "a space that is not there", lambda c: c.select("nope"))
    yield step("select", "a space number that is not there", lambda c: c.select(9999))
    yield step("select", "a key of another type", lambda c: c.select("formed", "x"))
    yield step("insert", "a tuple", lambda c: c.insert("formed", (403, "d", {"deep": [1, None, True, 1.5]})))
    yield step("insert", "a key that is there", lambda c: c.insert("formed", (403, "d")))
    yield step("insert", "a field of another type", lambda c: c.insert("formed", (404, 5)))
    yield step("insert", "a field too few", lambda c: c.insert("formed", (404,)))
    yield step("insert", "a decimal", lambda c: c.insert("formed", (406, "x", decimal.Decimal("1.50"))))
    yield step("insert", "a UUID", lambda c: c.insert("formed", (407, "x", uuid.UUID(int=7))))
    yield step(
        "insert",
        "a date",
        lambda c: c.insert("formed", (408, "x", tarantool.Datetime(year=2020, month=2, day=29))),
    )
    yield step("insert", "an interval", lambda c: c.insert("formed", (409, "x", tarantool.Interval(year=1))))
    yield step("select", "a decimal, a UUID", lambda c: c.select("formed", 406, iterator=5, limit=2))
    yield step("replace", "a tuple", lambda c: c.replace("formed", (403, "dd", 5)))
    yield step("update", "=, +", lambda c: c.update("formed", 403, [("=", "name", "n"), ("+", "rest", 4)]))
    for verb in "-&|^":
        yield step("update", verb, lambda c, verb=verb: c.update("formed", 403, [(verb, 2, 6)]))
    yield step("update", "!", lambda c: c.update("formed", 403, [("!", 3, "end")]))
    yield step("update", "#", lambda c: c.update("formed", 403, [("#", 3, 1)]))
    yield step("update", ":", lambda c: c.update("formed", 403, [(":", "name", 0, 1, "spliced")]))
    yield step("update", "by another index", lambda c: c.update("pairs", 120, [("=", 3, 9)], index="other"))
    yield step("update", "what is not there", lambda c: c.update("formed", 499, [("=", 1, "x")]))
    yield step("update", "a sum with a string", lambda c: c.update("formed", 403, [("+", "name", 1)]))
    yield step("update", "the key itself", lambda c: c.update("formed", 403, [("=", "id", 1)]))
    yield step("upsert", "new", lambda c: c.upsert("formed", (405, "u", 1), [("+", "rest", 1)]))
    yield step("upsert", "there", lambda c: c.upsert("formed", (405, "u", 1), [("+", "rest", 1)]))
    yield step("select", "after both", lambda c: c.select("formed", 405))
    yield step("delete", "there", lambda c: c.delete("formed", 405))
    yield step("delete", "not there", lambda c: c.delete("formed", 499))
    yield step("delete", "by an index that is not unique", lambda c: c.delete("pairs", 121, index="other"))
    yield step("space", "its own methods", _by_space)
    yield step("call", "a method of a space", lambda c: c.call("box.space.formed:get", 400))
    yield step("call", "what is not there", lambda c: c.call("nope"))
    yield step("call", "with pushes", _pushed)
    yield step("eval", "a number", lambda c: c.eval("return 1, ...", 2))
    yield step("execute", "a query", lambda c: c.execute("SELECT 1, :a", {"a": 2}))
    yield step("execute", "a slip", lambda c: c.execute("SELEKT"))
    for method, arguments in _CRUD:
        yield step(
            method,
            "a module that is not there",
            lambda c, method=method, arguments=arguments: getattr(c, method)(*arguments),
        )
    yield step("authenticate", "rex", _logged_in)
    yield step("authenticate", "rex, wrongly", _wrongly)
    yield step("schema", "space and index", _schema)
    yield step("load_schema", "again", lambda c: c.load_schema())
    yield step("update_schema", "to the version that there is", lambda c: c.update_schema(c.schema_version))
    yield step("flush_schema", "and asked", lambda c: [c.flush_schema(), c.select("formed", 400)])
    yield step("generate_sync", "grows", lambda c: -c.generate_sync() + c.generate_sync())
    yield step("Connection", "by a socket", _by_descriptor)
    yield step("ConnectionPool", "every mode", _pool)
    yield step("ConnectionPool", "who wants one that is read-only", _pool_for_readers)
    yield step("MeshConnection", "connectmesh", _mesh_of_one)
    yield step("MeshConnection", "past a node that is gone", _mesh)
    yield step("MeshConnection", "discovery by a function that is not there", _mesh_that_asks)
    yield step("dbapi", "a query", lambda c: _cursor(c, _executed))
    yield step("dbapi", "many", lambda c: _cursor(c, lambda it: it.executemany("VALUES (:a)", [{"a": 1}])))
    yield step("dbapi", "a slip", lambda c: _cursor(c, lambda it: it.execute("SELEKT")))
    yield step("dbapi", "a procedure", lambda c: _cursor(c, lambda it: it.callproc("box.space.formed:get")))
    yield step("dbapi", "fetch of nothing", lambda c: _cursor(c, lambda it: it.fetchone()))
    yield step("dbapi", "commit, autocommit", lambda c: _of_dbapi(c, lambda it: [it.commit(), it.autocommit]))
    yield step("dbapi", "rollback", lambda c: _of_dbapi(c, lambda it: it.rollback()))
    yield step("delete", "what the steps have left", _empty_pairs)
    yield step("close", "and asked if it is", lambda c: [c.close(), c.is_closed()])


def _by_space(c: Any) -> object:
    space = c.space("formed")
    return [
        space.insert((404, "s")),
        space.replace((404, "t", 1)),
        space.update(404, [("+", "rest", 1)]),
        space.upsert((404, "t", 1), [("+", "rest", 1)]),
        space.select(404),
        space.call("box.space.formed:get", 404),
        space.delete(404),
    ]


STEPS: tuple[Step, ...] = (*_asynctnt(), *_tarantool())


def answers(port: int) -> dict[str, str]:
    """What a server answers to every step, by the step's name."""
    return {**asyncio.run(_of_asynctnt(port)), **_of_tarantool(port)}


async def _of_asynctnt(port: int) -> dict[str, str]:
    found: dict[str, str] = {}
    connection = asynctnt.Connection(host="127.0.0.1", port=port, reconnect_timeout=0)
    await connection.connect()
    for step in STEPS:
        if step.connector != "asynctnt":
            continue
        try:
            done = step.do(connection)
            found[step.name] = told(await done if hasattr(done, "__await__") else done)
        except Exception as error:
            found[step.name] = failed(error)
    return found


def _of_tarantool(port: int) -> dict[str, str]:
    found: dict[str, str] = {}
    connection = tarantool.Connection("127.0.0.1", port)
    for step in STEPS:
        if step.connector == "tarantool":
            try:
                found[step.name] = told(step.do(connection))
            except Exception as error:
                found[step.name] = failed(error)
    return found


def read() -> tuple[dict[str, str], dict[str, str]]:
    """The answers in the file: of a real server, and of ours where they are others."""
    real: dict[str, str] = {}
    ours: dict[str, str] = {}
    name = ""
    for line in FILE.read_text().splitlines():
        if line.startswith(OURS):
            ours[name] = line.removeprefix(OURS)
        elif line and not line.startswith("#"):
            name, _, real[name] = line.partition(" → ")  # a target list is assigned from left to right
    return real, {**real, **ours}


def main() -> int:
    from tests.nodes.connectors.servers import START

    both: dict[str, dict[str, str]] = {}
    for kind, start in START.items():
        with tempfile.TemporaryDirectory() as folder:
            server = start(Path(folder))
            both[kind] = answers(server.port)
            server.stop()
    lines = ["# Step → the answer of Tarantool 2.6.0; below it that of ours, where it is another."]
    for step in STEPS:
        real, ours = both["tarantool"][step.name], both["ours"][step.name]
        lines += [f"{step.name} → {real}", *([] if ours == real else [f"{OURS}{ours}"])]
    FILE.write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
