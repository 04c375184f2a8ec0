"""The inventory of `--cluster ssh`: a TOML file that names the hosts and how they are logged in to.

    user = "qsync"                      # what stands here holds for every host that does not say otherwise
    key = "id_ed25519"                  # paths are relative to this file; without a key: ssh-agent, then ~/.ssh
    known_hosts = "known_hosts"         # default: ~/.ssh/known_hosts

    [[hosts]]
    host = "10.0.0.1"

    [[hosts]]
    host = "db2.example.org"
    port = 2222
    address = "10.0.0.2"                # where other hosts and the harness reach its nodes; default: host

Nodes are dealt out to the hosts in turn: n1 to the first, n2 to the second, and from the first again.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from harness.errors import WrongUse, given_path
from harness.wrong_values import in_words

Port = Annotated[int, msgspec.Meta(ge=1, le=65_535)]
Words = Annotated[str, msgspec.Meta(min_length=1)]


class Host(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One host. `key` and `known_hosts` are whole paths, `lease_s` the seconds that nodes outlive their harness."""

    host: Words
    port: Port = 22
    user: Words | None = None
    """None: the name of the user that runs the harness."""
    key: Words | None = None
    known_hosts: Words = "~/.ssh/known_hosts"
    accept_new_host_keys: bool = False
    address: Words | None = None
    listen: Words | None = None
    """Where nodes bind; None: `address`."""
    python: Words | None = None
    """None: the first Python 3.11 or newer on PATH."""
    programs: dict[str, str] = {}
    """Where real Tarantool ("tarantool") and libfaketime ("faketime") lie there, if not where they are looked for."""
    folder: Words = "~"
    """In which the folder of a run is made."""
    node_ports: tuple[Port, Port] = (20_000, 32_000)
    lease_s: Annotated[float, msgspec.Meta(ge=2, le=3600)] = 20.0

    @property
    def reached_at(self) -> str:
        return self.address or self.host

    @property
    def binds(self) -> str:
        return self.listen or self.reached_at

    @property
    def place(self) -> str:
        """Its name in messages."""
        return f"{self.host}:{self.port}"


def read(path: str, *, accept_new_host_keys: bool = False) -> tuple[Host, ...]:
    """The hosts of an inventory file. WrongUse says, in one line, what is wrong with it or its keys."""
    file = given_path(path)
    try:
        table = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise WrongUse(f"cannot read the inventory {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise WrongUse(f"{path}: not TOML: {error}") from error
    rows = table.pop("hosts", None)
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise WrongUse(f'{path}: no hosts; expected one [[hosts]] with a host = "…" for each')
    if unknown := sorted(table.keys() - set(Host.__struct_fields__)):
        raise WrongUse(f"{path}: there is no field {unknown[0]!r}")
    hosts = tuple(_host(path, number, {**table, **row}) for number, row in enumerate(rows, start=1))
    places = [host.place for host in hosts]
    if twice := sorted({place for place in places if places.count(place) > 1}):
        raise WrongUse(f"{path}: {', '.join(twice)} stands there twice; nodes share a host by themselves")
    return tuple(_complete(host, file.parent, accept_new_host_keys) for host in hosts)


def _host(path: str, number: int, fields: Mapping[str, Any]) -> Host:
    try:
        return msgspec.convert(fields, Host)
    except msgspec.ValidationError as error:
        raise WrongUse(f"{path}: host {number}: {in_words(error, fields, Host)}") from error


def _complete(host: Host, folder: Path, accept_new_host_keys: bool) -> Host:
    """Whole paths, and a key that can be read."""
    key = host.key
    if key is not None:
        key = str(_whole(folder, key))
        try:
            Path(key).read_bytes()
        except OSError as error:
            raise WrongUse(f"the key of {host.place}, {key}, cannot be read: {error.strerror}") from error
    if host.node_ports[0] > host.node_ports[1]:
        raise WrongUse(f"node_ports of {host.place}: expected [first, last], got {list(host.node_ports)}")
    return msgspec.structs.replace(
        host,
        key=key,
        known_hosts=str(_whole(folder, host.known_hosts)),
        accept_new_host_keys=host.accept_new_host_keys or accept_new_host_keys,
    )


def _whole(folder: Path, path: str) -> Path:
    return (folder / given_path(path)).absolute()
