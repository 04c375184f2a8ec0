"""The configuration of a node, as the host reads it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from nodes.twophase.configuration import Configuration

WHOLE = Configuration(
    name="c1",
    role="client",
    baseline=("n1", "n2"),
    clients=("c1",),
    bugs=("no-markers",),
    restore="k",
    seed=3,
)


def test_a_configuration_comes_back_from_its_file() -> None:
    """If it failed, a node would run with options other than those of the plan."""
    assert Configuration.from_json(WHOLE.to_json()) == WHOLE


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"no_such": 1}, "there is no option 'no_such'"),
        ({"partitions": "8"}, "'partitions' cannot be '8'"),
        ({"backups": True}, "'backups' cannot be True"),
        ({"role": "king"}, "'role' cannot be 'king'"),
        ({"baseline": ["n1", 2]}, "'baseline' cannot be"),
        ({"baseline": ["n1", "n1"]}, "every node once"),
        ({"partitions": 0}, "expected partitions of at least 1, got 0"),
        ({"trim_entries": 0}, "expected trim_entries of at least 1, got 0"),
        ({"step_ns": -1}, "expected delays of at least 0, got -1 ns"),
        ({"beat_ns": 0}, "times above 0"),
        ({"backups": 2}, "backups from 0 to 1"),
        ({"name": "n9"}, "a client named 'n9'"),
    ],
)
def test_what_is_wrong_is_one_sentence(change: dict[str, object], why: str) -> None:
    """If it failed, a node would end with a traceback, or run with an option that it does not have."""
    data = json.dumps({**json.loads(WHOLE.to_json()), **change}).encode()
    with pytest.raises(ValueError, match=rf"^not a configuration of a two-phase node: .*{why}"):
        Configuration.from_json(data)


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"{}", b"3", b"\xff", b"[" * 99_999])
def test_what_is_no_configuration_is_one_sentence(data: bytes) -> None:
    """If it failed, a torn file would end a node with a traceback."""
    with pytest.raises(ValueError, match=r"^not a configuration of a two-phase node: "):
        Configuration.from_json(data)


def test_a_node_needs_only_what_its_image_has() -> None:
    """If it failed, a container of a node, in which only msgpack is installed, would end at once."""
    code = "import sys; sys.modules.update(msgspec=None, numpy=None, click=None); "
    code += f"from nodes.host.systems import SYSTEMS; SYSTEMS['twophase']({WHOLE.to_json()!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
