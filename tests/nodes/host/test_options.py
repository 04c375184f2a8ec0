"""The command line of a node: what it names cannot be hosted, in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodes.host.options import WrongUse, parse
from nodes.host.systems import SYSTEMS, NoSystem, system_of

REST = ("--config", "c", "--data", "d", "--listen", "127.0.0.1:0")


@pytest.mark.parametrize("system", [":", "module:", ":function", "nothing"])
def test_a_system_without_a_module_or_a_function_is_refused(system: str) -> None:
    """If it failed, a slip in a plan would end the node with a traceback."""
    with pytest.raises(WrongUse, match="expected one of qsync, twophase, txlog, or module:function"):
        parse(("--system", system, *REST), [*SYSTEMS])


@pytest.mark.parametrize("system", ["..:x", "no.such.module:x", "json:x", "nowhere.py:x"])
def test_a_system_that_cannot_be_imported_is_one_sentence(system: str) -> None:
    """If it failed, a slip in a plan would end the node with a traceback."""
    with pytest.raises(NoSystem, match="cannot be hosted"):
        system_of(system, SYSTEMS)


@pytest.mark.parametrize("code", ["def f(:", "nobody.knows()"])
def test_a_file_that_cannot_be_run_is_one_sentence_each_time(code: str, tmp_path: Path) -> None:
    """If it failed, a slip in a store of one's own would end the run with a traceback, or host half a module."""
    file = tmp_path / "store.py"
    file.write_text(code)
    for _ in range(2):
        with pytest.raises(NoSystem, match=r"store\.py:f cannot be hosted: (Syntax|Name)Error"):
            system_of(f"{file}:f", SYSTEMS)


def test_a_file_is_one_module_by_a_relative_path_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, each node of a simulated store would have classes of its own, and match no message of another."""
    (tmp_path / "my_relative_store.py").write_text("def f(config): ...")
    monkeypatch.chdir(tmp_path)
    first, second = (system_of(f"{path}my_relative_store.py:f", SYSTEMS) for path in ("", "./"))
    assert first is second is system_of(f"{tmp_path}/my_relative_store.py:f", SYSTEMS)


@pytest.mark.parametrize("host", ["", "a..b", "a" * 64, "ä" * 64])
@pytest.mark.parametrize("option", ["--peer=n2=", "--listen="])
def test_a_host_that_no_look_up_takes_is_refused(option: str, host: str) -> None:
    """If it failed, a slip in the address of a peer would end the node with exit 70 when it dials."""
    with pytest.raises(WrongUse, match="is not HOST:PORT"):
        parse(("--system", "qsync", *REST, f"{option}{host}:3301"), [*SYSTEMS])


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "n1.example.", "bücher.example", "a" * 63])
def test_a_host_that_can_be_looked_up_is_taken(host: str) -> None:
    """If it failed, a node could not be told of a peer that is there."""
    assert parse(("--system", "qsync", *REST, f"--peer=n2=[{host}]:1"), [*SYSTEMS]).peers["n2"].host == host


def test_a_peer_has_one_address() -> None:
    """If it failed, a node would dial one of two addresses, and the slip would show as a lost peer."""
    twice = ("--peer=n2=127.0.0.1:1", "--peer=n2=127.0.0.1:2")
    with pytest.raises(WrongUse, match="a peer is named twice"):
        parse(("--system", "qsync", *REST, *twice), [*SYSTEMS])
