"""The connector `tarantool`, unmodified, over every operation that it offers against 2.6: on ours and on a real one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import tarantool
from tarantool.const import ITERATOR_GE, ITERATOR_LE, ITERATOR_REQ

from tests.nodes.connectors.servers import Server


@pytest.fixture
def connection(server: Server) -> Iterator[tarantool.Connection]:
    made = tarantool.Connection("127.0.0.1", server.port)
    yield made
    made.close()


def test_data_requests_by_names(connection: tarantool.Connection) -> None:
    """Broken, a program that uses the connector does not run against our node."""
    assert connection.ping() > 0
    space = connection.space("formed")
    assert space.insert((80, "one", None)).data == [[80, "one", None]]
    assert space.replace((80, "uno", 5)).data == [[80, "uno", 5]]
    assert space.update(80, [("+", 2, 3), ("=", "name", "x")]).data == [[80, "x", 8]]
    assert space.update(80, [("!", -1, "new"), ("#", 2, 1)]).data == [[80, "x", "new"]]
    assert space.update(80, [(":", 1, 0, 0, "ab")]).data == [[80, "abx", "new"]]
    assert space.update(
        80,
        [
            ("=", 2, 12),
        ],
    ).data == [[80, "abx", 12]]
    for verb, result in (("|", 15), ("&", 11), ("^", 8)):
        assert space.update(80, [(verb, 2, {"|": 3, "&": 11, "^": 3}[verb])]).data == [[80, "abx", result]]
    assert space.update(89, [("=", 1, "x")]).data == []
    space.upsert((81, "new", 1), [("+", 2, 1)])
    space.upsert((81, "new", 1), [("+", 2, 1)])
    assert space.select(81).data == [[81, "new", 2]]
    assert space.select(80, iterator=ITERATOR_GE, limit=1, offset=1).data == [[81, "new", 2]]
    assert [row[0] for row in space.select(81, iterator=ITERATOR_LE, limit=2)] == [81, 80]
    assert connection.select("formed", 81, iterator=ITERATOR_REQ).data == [[81, "new", 2]]
    assert space.delete(80).data == [[80, "abx", 8]]
    assert connection.delete("formed", 81).rowcount == 1
    assert connection.delete("formed", 81).data == []
    assert connection.insert("pairs", (8, "k", 1)).data == [[8, "k", 1]]
    assert connection.select("pairs", 1, index="other").data == [[8, "k", 1]]
    assert connection.delete("pairs", (8, "k")).data == [[8, "k", 1]]


def test_calls(connection: tarantool.Connection) -> None:
    """Broken, functions cannot be called in one of the two forms."""
    connection.replace("plain", ("call", 1))
    assert connection.call("box.space.plain:get", "call").data == [["call", 1]]
    connection.delete("plain", "call")


def test_the_old_form_of_call(server: Server) -> None:
    """Broken, connectors from before 1.7 get values where they expect tuples."""
    old = tarantool.Connection("127.0.0.1", server.port, call_16=True)
    old.replace("plain", ("call", 1))
    assert old.call("box.space.plain:get", "call").data == [["call", 1]]
    assert old.call("box.space.plain:select", "call").data == [["call", 1]]
    old.close()


def test_errors_arrive_as_the_connectors_own(server: Server, connection: tarantool.Connection) -> None:
    """Broken, a program cannot tell one error from another."""
    connection.replace("formed", (90, "x"))
    with pytest.raises(tarantool.error.DatabaseError) as duplicate:
        connection.insert("formed", (90, "x"))
    text = "Duplicate key exists in unique index 'primary' in space 'formed'"
    assert duplicate.value.args == (3, text)
    with pytest.raises(tarantool.error.DatabaseError) as unknown:
        connection.call("nothing")
    assert unknown.value.args == (33, "Procedure 'nothing' is not defined")
    with pytest.raises(tarantool.error.SchemaError):
        connection.select("no such space")
    with pytest.raises(tarantool.error.DatabaseError) as wrong:
        connection.insert("formed", ("x", "x"))
    assert wrong.value.args[0] == 23
    connection.delete("formed", 90)
    if server.is_ours:
        with pytest.raises(tarantool.error.DatabaseError) as refused:
            connection.eval("return 1")
        assert refused.value.args == (5, "qsync does not support EVAL")
        with pytest.raises(tarantool.error.DatabaseError) as refused:
            connection.execute("SELECT 1")
        assert refused.value.args == (5, "qsync does not support SQL")


def test_a_user_logs_in(server: Server) -> None:
    """Broken, nobody but guest can be somebody, or a wrong password lets in."""
    rex = tarantool.Connection("127.0.0.1", server.port, user="rex", password="secret")
    assert rex.select("plain", limit=0).data == []
    rex.close()
    with pytest.raises(tarantool.error.DatabaseError) as wrong:
        tarantool.Connection("127.0.0.1", server.port, user="rex", password="wrong", reconnect_max_attempts=0)
    assert "(47, \"Incorrect password supplied for user 'rex'\")" in str(wrong.value)


def test_a_stale_schema_is_read_anew_by_itself(connection: tarantool.Connection, server: Server) -> None:
    """Broken, a long-lived connection never learns of a change: the error 109 is what tells it."""
    other = tarantool.Connection("127.0.0.1", server.port)
    before = connection.select("_vspace", limit=0).schema_version
    connection.update_schema(before)
    if server.is_ours:
        other.call("box.schema.space.create", "fresh", {"id": 601})
    else:  # where the function returns what cannot be sent
        other.eval("box.schema.space.create('fresh', {id = 601}):create_index('primary')")
    assert connection.select("_vspace", "fresh", index=2).data[0][0] == 601  # refused, read anew, sent again
    assert connection.schema_version != before
    assert connection.insert("fresh", (1,)).data == [[1]]
    other.call("box.space.fresh:drop")
    other.close()
