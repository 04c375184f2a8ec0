"""Every operation that the two connectors offer, on a node of ours and on a real 2.6.0: the same answers, or errors.

`operations` has the steps, and `answers.txt` what a real one answers to each.
"""

from __future__ import annotations

import inspect
from pathlib import Path

import asynctnt
import pytest
import tarantool

from tests.nodes.connectors.operations import STEPS, answers, read
from tests.nodes.connectors.servers import Server

DOCS = Path(__file__).parents[3] / "docs" / "connectors.md"
REFUSED = ("qsync does not support EVAL", "qsync does not support SQL")

OF_THE_CLIENT_ALONE = {
    "asynctnt": {
        "close": "disconnect that nobody waits for",
        "connection_lost": "what the transport calls",
        "protocol_factory": "a part of connect",
    },
    "tarantool": {
        "connect": "what making one does",
        "connect_basic": "a part of connect",
        "connect_tcp": "a part of connect",
        "connect_socket_fd": "a part of connect, see Connection by a socket",
        "connect_unix": "nodes listen on TCP alone",
        "handshake": "a part of connect",
        "wrap_socket_ssl": "2.6 has no SSL",
        "is_closed": "see close",
    },
}


@pytest.mark.long
def test_every_operation_is_answered_as_by_a_real_one(server: Server) -> None:
    """Broken, a program that was written for Tarantool 2.6 gets another answer, class or code from a node of ours."""
    real, ours = read()
    assert list(real) == [step.name for step in STEPS]
    assert answers(server.port) == (ours if server.is_ours else real)


def test_ours_differs_in_what_it_refuses_alone() -> None:
    """Broken, the file of answers could be written anew with any difference, and nobody would see it."""
    real, ours = read()
    different = [name for name in real if ours[name] != real[name]]
    assert different
    for name in different:
        assert ours[name].endswith(REFUSED), name
        assert name.split()[1].rstrip(":") in (
            "eval",
            "execute",
            "prepare",
            "prepare_iproto",
            "unprepare_iproto",
            "dbapi",
        )


@pytest.mark.parametrize(
    ("connector", "kind"), [("asynctnt", asynctnt.Connection), ("tarantool", tarantool.Connection)]
)
def test_no_method_of_a_connector_is_left_out(connector: str, kind: type) -> None:
    """Broken, a new version of a connector offers something that nobody has tried on our node."""
    offered = {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}
    tried = {step.method for step in STEPS if step.connector == connector}
    assert offered - tried == set(OF_THE_CLIENT_ALONE[connector])


def test_the_page_names_every_method() -> None:
    """Broken, the page of connectors tells of less than there is."""
    page = DOCS.read_text()
    for method in {step.method for step in STEPS} | set().union(*OF_THE_CLIENT_ALONE.values()):
        assert f"`{method}`" in page, method
