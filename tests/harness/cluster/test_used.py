"""The memory of nodes, as the page shows it."""

from __future__ import annotations

import subprocess
import sys

from harness.cluster.used import memory_bytes, memory_of_all_bytes

HOLD_BYTES = 64 << 20
CHILD = f"held = bytearray({HOLD_BYTES}); print('held', flush=True); input()"


def test_a_node_behind_an_init_or_a_wrapper_is_measured() -> None:
    """The page would show the memory of the init of a container, which never grows."""
    command = ["sh", "-c", '"$0" -c "$1"; true', sys.executable, CHILD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as wrapper:
        assert wrapper.stdin is not None and wrapper.stdout is not None
        assert wrapper.stdout.readline() == b"held\n"
        of_wrapper, of_all = memory_bytes(wrapper.pid), memory_of_all_bytes(wrapper.pid)
        wrapper.stdin.close()
    assert of_wrapper is not None and of_all is not None
    assert of_wrapper < HOLD_BYTES < of_all


def test_a_process_that_is_gone_has_no_memory() -> None:
    """A killed node would be said to need none."""
    with subprocess.Popen(["true"]) as gone:
        pass
    assert memory_of_all_bytes(gone.pid) is None
