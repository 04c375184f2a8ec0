"""`asynctnt`, unmodified, over every operation that it offers against 2.6: on a node of ours and on a real one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import asynctnt
import pytest
from asynctnt.exceptions import ErrorCode, TarantoolDatabaseError, TarantoolSchemaError

from tests.nodes.connectors.servers import Server

Work = Callable[[asynctnt.Connection], Awaitable[None]]


@asynccontextmanager
async def connected(server: Server, **options: object) -> AsyncIterator[asynctnt.Connection]:
    connection = asynctnt.Connection(host="127.0.0.1", port=server.port, **options)
    await connection.connect()
    try:
        yield connection
    finally:
        await connection.disconnect()


def do(server: Server, work: Work, **options: object) -> None:
    async def main() -> None:
        async with connected(server, **options) as connection:
            await work(connection)

    asyncio.run(main())


async def code_of(awaitable: Awaitable[object]) -> tuple[int, str]:
    with pytest.raises(TarantoolDatabaseError) as raised:
        await awaitable
    return raised.value.code, raised.value.message


def test_the_version_and_the_schema_are_understood(server: Server) -> None:
    """Broken, the connector takes us for another version, or does not know a space or its fields by name."""

    async def work(connection: asynctnt.Connection) -> None:
        assert connection.version == (2, 6, 0)
        assert connection.schema_id and connection.schema_id > 0
        spaces = connection.schema.spaces
        assert spaces["formed"].sid == 513
        assert [field.name for field in spaces["formed"].metadata.fields] == ["id", "name", "rest"]
        assert spaces["pairs"].indexes["other"].iid == 1
        assert "_vindex" in spaces

    do(server, work)


def test_data_requests_by_names(server: Server) -> None:
    """Broken, a program that uses asynctnt does not run against our node."""

    async def work(connection: asynctnt.Connection) -> None:
        await connection.ping()
        assert (await connection.insert("formed", [70, "one", None])).body == [(70, "one", None)]
        assert (await connection.insert("formed", {"id": 71, "name": "two"})).body[0][:2] == (71, "two")
        row = (await connection.replace("formed", [70, "uno", 5]))[0]
        assert (row["id"], row["name"], row["rest"]) == (70, "uno", 5)
        assert (await connection.update("formed", [70], [["+", "rest", 3], ["=", "name", "x"]])).body[0] == (
            70,
            "x",
            8,
        )
        assert (await connection.update("formed", {"id": 70}, [[":", 1, 0, 1, "yy"]])).body[0] == (
            70,
            "yy",
            8,
        )
        assert (await connection.update("formed", [79], [["=", 1, "x"]])).body == []
        await connection.upsert("formed", [72, "new", 1], [["+", 2, 1]])
        await connection.upsert("formed", [72, "new", 1], [["+", 2, 1]])
        assert (await connection.select("formed", [72])).body == [(72, "new", 2)]
        found = await connection.select("formed", [70], iterator="GE", limit=2, offset=1)
        assert [row[0] for row in found] == [71, 72]
        found = await connection.select("formed", [72], iterator=asynctnt.Iterator.LE, limit=2)
        assert [row[0] for row in found] == [72, 71]
        assert (await connection.delete("formed", [71])).rowcount == 1
        for key in (70, 72):
            await connection.delete("formed", [key])
        assert (await connection.delete("formed", [72])).body == []
        assert (await connection.insert("pairs", [7, "k", 1])).body == [(7, "k", 1)]
        assert (await connection.select("pairs", [1], index="other")).body == [(7, "k", 1)]
        assert (await connection.delete("pairs", [7, "k"])).body == [(7, "k", 1)]

    do(server, work)


def test_calls(server: Server) -> None:
    """Broken, functions cannot be called in one of the two forms."""

    async def work(connection: asynctnt.Connection) -> None:
        await connection.replace("plain", ["call", 1])
        assert (await connection.call("box.space.plain:get", ["call"])).body == [["call", 1]]
        assert (await connection.call16("box.space.plain:get", ["call"])).body == [["call", 1]]
        await connection.delete("plain", ["call"])

    do(server, work)


def test_errors_arrive_with_their_codes(server: Server) -> None:
    """Broken, a program cannot tell a duplicate key from a missing space."""

    async def work(connection: asynctnt.Connection) -> None:
        await connection.replace("formed", [90, "x"])
        assert await code_of(connection.insert("formed", [90, "x"])) == (
            ErrorCode.ER_TUPLE_FOUND,
            "Duplicate key exists in unique index 'primary' in space 'formed'",
        )
        assert (await code_of(connection.select(999)))[0] == ErrorCode.ER_NO_SUCH_SPACE
        assert (await code_of(connection.insert("formed", ["x", "x"])))[0] == ErrorCode.ER_FIELD_TYPE
        assert (await code_of(connection.update("formed", [90], [["+", 1, 1]])))[
            0
        ] == ErrorCode.ER_UPDATE_ARG_TYPE
        assert await code_of(connection.call("nothing")) == (
            ErrorCode.ER_NO_SUCH_PROC,
            "Procedure 'nothing' is not defined",
        )
        with pytest.raises(TarantoolSchemaError):
            await connection.select("no such space")
        await connection.delete("formed", [90])

    do(server, work)


def test_a_user_logs_in(server: Server) -> None:
    """Broken, nobody but guest can be somebody, or a wrong password lets in."""

    async def work(connection: asynctnt.Connection) -> None:
        assert (await connection.select("_vuser", ["rex"], index="name")).body[0][2] == "rex"

    do(server, work, username="rex", password="secret")
    with pytest.raises(TarantoolDatabaseError, match="Incorrect password supplied for user 'rex'") as wrong:
        do(server, work, username="rex", password="wrong", reconnect_timeout=0)
    assert wrong.value.code == 47
    with pytest.raises(TarantoolDatabaseError, match="User 'nemo' is not found"):
        do(server, work, username="nemo", password="x", reconnect_timeout=0)


def test_a_schema_that_changes_is_read_anew(server: Server) -> None:
    """Broken, a connection that has been open for long does not find a space that was made meanwhile."""

    async def work(connection: asynctnt.Connection) -> None:
        before = connection.schema_id
        async with connected(server) as other:
            if server.is_ours:
                await other.call("box.schema.space.create", ["later", {"id": 600}])
            else:  # where the function returns what cannot be sent
                await other.eval("box.schema.space.create('later', {id = 600}):create_index('primary')")
        await connection.ping()
        assert (await connection.insert(600, [1])).body == [(1,)]
        await connection.refetch_schema()
        assert connection.schema_id != before
        assert (await connection.select("later")).body == [(1,)]
        await connection.call("box.space.later:drop")
        with pytest.raises(TarantoolDatabaseError):
            await connection.select(600)

    do(server, work)


def test_eval_and_sql_are_refused_by_ours(server: Server) -> None:
    """Broken, a node pretends to run Lua or SQL."""
    if not server.is_ours:
        return

    async def work(connection: asynctnt.Connection) -> None:
        assert await code_of(connection.eval("return 1")) == (5, "qsync does not support EVAL")
        assert await code_of(connection.execute("SELECT 1")) == (5, "qsync does not support SQL")
        assert await code_of(connection.prepare("SELECT 1").prepare()) == (5, "qsync does not support SQL")

    do(server, work)
