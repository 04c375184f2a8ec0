"""An HTTP service of three endpoints under test: ./qsync run --system stores/http_store.py --nodes 3"""

from pathlib import Path

from harness.clients.client import Library, NotDone
from harness.clients.operations import Cas, Done, Mismatch, Read, Write
from harness.cluster.http import Http
from harness.systems.own import OwnStore

SERVICE = str(Path(__file__).with_name("http_service.py"))


class Connection:
    """To one node. An exception means that the outcome is unknown."""

    def __init__(self, host, port, timeout_s):
        self.http = Http(host, port, timeout_s)

    def invoke(self, asked):
        (step,) = asked.steps
        match step:
            case Read():
                path, body = "/read", {}
            case Write():
                path, body = "/write", {"value": step.value}
            case Cas():
                path, body = "/cas", {"old": step.old, "value": step.new}
        status, answer = self.http.ask("POST", path, {"key": step.key, **body})
        if status == 409:
            return Mismatch(0, answer["value"])
        if status == 502:
            raise NotDone("the keeper was not reached")
        if status != 200:
            raise RuntimeError(f"status {status}")
        return Done([answer.get("value")])

    def status(self):
        self.http.ask("GET", "/")  # any answer shows that the node is up
        return {}

    def close(self):
        self.http.close()


def start(place):
    keeper = () if place.node == "n1" else (place.peers["n1"],)
    return (place.python, SERVICE, place.listen, f"{place.data}/values.log", *keeper)


SYSTEM = OwnStore(
    "three endpoints over HTTP",
    start=start,
    client=Library(Connection, frozenset({Read, Write, Cas})),
    leader="none",  # every node takes writes
    promised={"quorum": ""},  # n1 acknowledges alone
    files=(SERVICE,),
)
