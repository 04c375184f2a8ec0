"""One SSH connection, with paramiko: the host's key, our login, and commands there.

A host key must be known: an unknown one is refused unless the inventory or the command line says to take it, and then
it is written down; one that differs from what is written down is always refused. An error is one line
(`ClusterError`), in which no key or path of a key stands. Everything here blocks: call it from threads.
"""

from __future__ import annotations

import base64
import getpass
import hashlib
import logging
import shlex
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.cluster.ssh.inventory import Host
from harness.errors import ClusterError, WrongUse

if TYPE_CHECKING:
    import paramiko  # type: ignore[import-untyped]  # it has no types

CONNECT_WITHIN_S: Final = 10.0
_ALIVE_EVERY_S: Final = 5
_SCRIPT: Final = (Path(__file__).parent / "remote" / "bootstrap.py").read_text()
_IS_NEW_ENOUGH: Final = "import sys; sys.exit(sys.version_info < (3, 11))"
_PYTHONS: Final = ("python3", "python3.14", "python3.13", "python3.12", "python3.11", "python3.15")
_NO_PYTHON: Final = 69
_WRITING: Final = threading.Lock()


class Session:
    def __init__(self, client: paramiko.SSHClient, host: Host) -> None:
        self._client = client
        self._host = host

    @classmethod
    def open(cls, host: Host) -> Session:
        """Connect and log in. Raises ClusterError, or WrongUse for a key that cannot be used."""
        import paramiko

        logging.getLogger("paramiko").addHandler(logging.NullHandler())  # what matters is raised
        logging.getLogger("paramiko").propagate = False
        client = paramiko.SSHClient()
        try:
            _load_known(client, host)
            client.set_missing_host_key_policy(_Unknown(host))
            client.connect(
                host.host,
                port=host.port,
                username=_user(host),
                key_filename=host.key,
                allow_agent=host.key is None,
                look_for_keys=host.key is None,
                timeout=CONNECT_WITHIN_S,
                banner_timeout=CONNECT_WITHIN_S,
                auth_timeout=CONNECT_WITHIN_S,
            )
        except BaseException as error:
            client.close()
            if isinstance(error, OSError | EOFError | UnicodeError | paramiko.SSHException):
                raise _in_words(host, error) from error
            raise
        transport = client.get_transport()
        assert transport is not None
        transport.set_keepalive(_ALIVE_EVERY_S)
        return cls(client, host)

    def begin(self, word: str, argument: str) -> paramiko.Channel:
        """Start `remote/bootstrap.py` with a word of its table; the channel to its stdin and stdout."""
        import paramiko

        pythons = " ".join(map(shlex.quote, (self._host.python,) if self._host.python else _PYTHONS))
        script = (
            f"for python in {pythons}; do "
            f'"$python" -c {shlex.quote(_IS_NEW_ENOUGH)} 2>/dev/null '
            f'&& exec "$python" -B -c {shlex.quote(_SCRIPT)} {shlex.quote(word)} {shlex.quote(argument)}; '
            f"done; exit {_NO_PYTHON}"
        )
        try:
            transport = self._client.get_transport()
            if transport is None:
                raise ClusterError(f"the connection to {self._host.place} was lost")
            channel = transport.open_session(timeout=CONNECT_WITHIN_S)
            channel.exec_command(f"sh -c {shlex.quote(script)}")
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise _in_words(self._host, error) from error
        return channel

    def run(self, word: str, argument: str, stdin: bytes = b"", *, within_s: float = 60.0) -> bytes:
        """The output of a word of `remote/bootstrap.py`. Raises ClusterError with the host's error."""
        channel = self.begin(word, argument)
        channel.settimeout(within_s)
        try:
            return self._exchange(channel, stdin)
        except (OSError, EOFError) as error:
            raise ClusterError(
                f"{self._host.place} broke off at `{word}`: {str(error) or 'timeout'}"
            ) from error
        finally:
            channel.close()

    def _exchange(self, channel: paramiko.Channel, stdin: bytes) -> bytes:
        with suppress(OSError):  # it ended before it read all: its exit code says why
            channel.sendall(stdin)
        channel.shutdown_write()
        output = channel.makefile("rb").read()
        errors = channel.makefile_stderr("rb").read().decode(errors="replace").strip()
        code = channel.recv_exit_status()
        if code == _NO_PYTHON:
            named = self._host.python or "python3"
            raise ClusterError(
                f"{self._host.place} has no Python 3.11 or newer as {named}; name one as `python` in the inventory"
            )
        if code:
            last = (errors.splitlines() or [f"exit {code}"])[-1]
            raise ClusterError(f"{self._host.place} cannot do what it must: {last}")
        return bytes(output)

    def close(self) -> None:
        self._client.close()


def _load_known(client: paramiko.SSHClient, host: Host) -> None:
    import paramiko

    known = Path(host.known_hosts)
    if known.exists():
        try:
            client.load_host_keys(str(known))
        except (OSError, UnicodeError, paramiko.hostkeys.InvalidHostKey) as error:
            raise ClusterError(f"the known host keys in {known} cannot be read: {error}") from error
    elif not host.accept_new_host_keys:
        raise ClusterError(
            f"there is no {known} to know the host key of {host.place} by; "
            "try: ssh-keyscan, or --accept-new-host-keys"
        )


class _Unknown:
    """Decides about a host without a written-down key; paramiko calls it."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        host = self._host
        known: Any = client.get_host_keys().lookup(hostname)
        if known:
            kinds = ", ".join(sorted(known.keys()))
            raise ClusterError(
                f"the host key of {host.place} is known, of kind {kinds}, and it shows another: "
                f"{_fingerprint(key)}; it is refused"
            )
        if not host.accept_new_host_keys:
            raise ClusterError(
                f"the host key of {host.place} is not known: {_fingerprint(key)}; "
                "if that is right, try: --accept-new-host-keys"
            )
        known_hosts = Path(host.known_hosts)
        try:
            with _WRITING:
                known_hosts.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with known_hosts.open("a+b") as file:
                    file.seek(max(0, file.tell() - 1))
                    end = b"" if file.read() in (b"", b"\n") else b"\n"  # people edit this file, too
                    file.write(end + f"{hostname} {key.get_name()} {key.get_base64()}\n".encode())
        except OSError as error:
            raise ClusterError(
                f"the host key of {host.place} cannot be written to {known_hosts}: {error.strerror}"
            ) from error


def _user(host: Host) -> str:
    try:
        return host.user or getpass.getuser()
    except (KeyError, OSError) as error:
        raise WrongUse(
            f"the user that runs the harness has no name to log in to {host.place} with; "
            "try: `user` in the inventory"
        ) from error


def _fingerprint(key: paramiko.PKey) -> str:
    digest = base64.b64encode(hashlib.sha256(key.asbytes()).digest()).decode().rstrip("=")
    return f"{key.get_name()} SHA256:{digest}"


def _in_words(host: Host, error: BaseException) -> ClusterError | WrongUse:
    import paramiko

    match error:
        case paramiko.BadHostKeyException():
            return ClusterError(
                f"the host key of {host.place} has changed: expected {_fingerprint(error.expected_key)}, "
                f"got {_fingerprint(error.key)}; if that is right, take the old one out of known_hosts"
            )
        case paramiko.PasswordRequiredException():
            return WrongUse(
                f"the key for {host.place} has a passphrase; leave `key` out and add it to ssh-agent"
            )
        case paramiko.AuthenticationException():
            return ClusterError(f"{host.place} does not let {_user(host)} in with the key it was offered")
        case TimeoutError() | socket.timeout():
            return ClusterError(f"{host.place} cannot be reached: no answer in {CONNECT_WITHIN_S:.0f} s")
        case OSError() | UnicodeError():  # UnicodeError: no name of a host looks like that
            return ClusterError(
                f"{host.place} cannot be reached: {getattr(error, 'strerror', None) or error}"
            )
        case _:
            return ClusterError(f"no SSH with {host.place}: {str(error) or 'it closed the connection'}")
