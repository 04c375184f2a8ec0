"""The inventory of `--cluster ssh`: what may stand in it, and the one line that says what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import paramiko  # type: ignore[import-untyped]  # it has no types
import pytest

from harness.cluster.place import Place
from harness.cluster.ssh import inventory
from harness.cluster.ssh.session import Session, _Unknown
from harness.errors import ClusterError, WrongUse
from harness.systems import SYSTEMS
from harness.systems.plans import planned


def written(folder: Path, text: str) -> str:
    path = folder / "inventory.toml"
    path.write_text(text)
    return str(path)


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(WrongUse) as raised:
        inventory.read(written(folder, text))
    return raised.value.message


def test_what_stands_above_the_hosts_holds_for_all_that_do_not_say_otherwise(tmp_path: Path) -> None:
    """If it failed, a host would be logged in to as somebody else, or at another port, than the file says."""
    (tmp_path / "key").write_text("a key")
    text = """
    user = "qsync"
    key = "key"
    [[hosts]]
    host = "a"
    [[hosts]]
    host = "b"
    port = 2222
    user = "other"
    address = "10.0.0.2"
    """
    a, b = inventory.read(written(tmp_path, text))
    assert (a.host, a.port, a.user, a.key) == ("a", 22, "qsync", str(tmp_path / "key"))
    assert (b.host, b.port, b.user, b.key) == ("b", 2222, "other", str(tmp_path / "key"))
    assert (a.reached_at, a.binds, b.reached_at, b.binds) == ("a", "a", "10.0.0.2", "10.0.0.2")


def test_unknown_hosts_are_believed_only_where_somebody_said_so(tmp_path: Path) -> None:
    """If it failed, the first connection to a stranger's machine would be silently trusted."""
    path = written(tmp_path, '[[hosts]]\nhost = "a"\n[[hosts]]\nhost = "b"\naccept_new_host_keys = true\n')
    assert [host.accept_new_host_keys for host in inventory.read(path)] == [False, True]
    assert all(host.accept_new_host_keys for host in inventory.read(path, accept_new_host_keys=True))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hosts = 3", "no hosts; expected one [[hosts]]"),
        ("", "no hosts; expected one [[hosts]]"),
        ("[[hosts]]\nport = 22\n", "host 1: the field 'host' is missing"),
        ('[[hosts]]\nhost = "a"\nport = 0\n', "host 1: port: expected a whole number of at least 1, got 0"),
        ('[[hosts]]\nhost = "a"\npasword = "x"\n', "host 1: there is no field 'pasword'"),
        ('pasword = "x"\n[[hosts]]\nhost = "a"\n', ".toml: there is no field 'pasword'"),
        ('[[hosts]]\nhost = "a"\nkey = "\\u0000"\n', r"got one with a NUL in it: '\x00'"),
        ('[[hosts]]\nhost = "a"\n[[hosts]]\nhost = "a"\n', "a:22 stands there twice"),
        ('[[hosts]]\nhost = "a"\nkey = "none"\n', "none, cannot be read: No such file or directory"),
        ('[[hosts]]\nhost = "a"\nnode_ports = [4000, 3000]\n', "expected [first, last], got [4000, 3000]"),
        ("[[hosts", "not TOML"),
        (f"hosts = {'[' * 9_000}", "not TOML"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, text: str, expected: str) -> None:
    """If it failed, people would search a wrong inventory for hours, or a slip would be taken for a default."""
    assert expected in refusal(tmp_path, text)
    assert "\n" not in refusal(tmp_path, text)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """If it failed, a wrong path would end in a traceback."""
    with pytest.raises(WrongUse, match="cannot read the inventory"):
        inventory.read(str(tmp_path / "none.toml"))
    with pytest.raises(WrongUse, match="no user of this name"):
        inventory.read("~nobody-of-this-name/hosts.toml")


def test_a_host_without_tarantool_is_told_apart_from_one_that_has_it_elsewhere(tmp_path: Path) -> None:
    """If it failed, a missing server would look like a node that crashed, or another one would be under test."""
    command = SYSTEMS["tarantool"].command(planned(system="tarantool", cluster="ssh", configuration="B"))

    def words(programs: dict[str, str]) -> tuple[str, ...]:
        there = {name: f"/there/{name}" for name in ("config", "data", "log", "clock", "root")}
        return command(
            Place(node="n2", listen="h:1", peers={}, epoch_ns=0, python="python3", programs=programs, **there)
        )

    with pytest.raises(ClusterError, match="the host of n2 has no `tarantool` on PATH"):
        words({})
    assert words({"tarantool": "/opt/tarantool"})[0] == "/opt/tarantool"
    fake = words({"tarantool": "/opt/tarantool", "faketime": "/opt/fake.so"})
    assert "LD_PRELOAD=/opt/fake.so" in fake and "/opt/tarantool" in fake


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("a..b", "", "a..b:22 cannot be reached: "),
        ("h" * 70, "", "cannot be reached: "),
        ("h", "h ssh-rsa AAAAB3!!!\n", "the known host keys in "),
        ("h", "\udcff\n", "the known host keys in "),
        ("h", None, "the known host keys in "),
    ],
)
def test_a_host_that_cannot_be_and_keys_that_are_none(
    tmp_path: Path, name: str, known: str | None, expected: str
) -> None:
    """If it failed, a slip in a file would end in a traceback."""
    file = tmp_path / "known_hosts"
    file.mkdir() if known is None else file.write_text(known, errors="surrogateescape")
    with pytest.raises(ClusterError) as raised:
        Session.open(inventory.Host(host=name, known_hosts=str(file)))
    assert expected in raised.value.message


def test_a_user_without_a_name_is_asked_for_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a harness in a container with a number for a user would end in a traceback."""

    def nameless(number: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {number}")

    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", nameless)
    host = inventory.Host(host="127.0.0.1", known_hosts=str(tmp_path / "none"), accept_new_host_keys=True)
    with pytest.raises(WrongUse, match="try: `user` in the inventory"):
        Session.open(host)


def test_the_first_key_ever_is_written_down(tmp_path: Path) -> None:
    """If it failed, a user without a folder for keys would be told that the host cannot be reached, or the last key
    that a file had be spoilt by the new one."""
    key = paramiko.RSAKey.generate(1024)

    def met(known_hosts: Path) -> None:
        host = inventory.Host(host="h", known_hosts=str(known_hosts), accept_new_host_keys=True)
        _Unknown(host).missing_host_key(paramiko.SSHClient(), "h", key)

    met(tmp_path / "ssh" / "known_hosts")
    assert (tmp_path / "ssh" / "known_hosts").read_text() == f"h ssh-rsa {key.get_base64()}\n"
    edited = tmp_path / "edited"
    edited.write_text("other ssh-rsa AAAA")
    met(edited)
    assert edited.read_text() == f"other ssh-rsa AAAA\nh ssh-rsa {key.get_base64()}\n"
    with pytest.raises(ClusterError, match="the host key of h:22 cannot be written to "):
        met(tmp_path / "ssh" / "known_hosts" / "below")
