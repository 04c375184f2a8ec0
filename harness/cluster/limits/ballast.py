"""A program that wants memory in the group of a node: `python -I ballast.py KIND FOLDER BYTES [SCRATCH]`.

It enters the group FOLDER (its cgroup.procs) with all that it needs for itself already there, and then

- `fill`: takes BYTES of memory and keeps them. Where the group has less than that to give, the kernel ends a process.
- `press`: reads a file of BYTES without content, made in the folder SCRATCH and already removed, again and again. The
  kernel may drop these pages at once, so no process need end, but all in the group wait for memory now and then.

It ends with its standard input, and with the process that started it. If the kernel chooses a process to end, it
chooses this one last.
"""

import ctypes
import os
import select
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

BLOCK = 1 << 20
PAUSE_S = 0.002
_PR_SET_PDEATHSIG = 1


def main(kind: str, folder: str, size: int, scratch: str) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    with suppress(OSError):  # or else the process that started it has made another one more likely
        Path("/proc/self/oom_score_adj").write_text("-1000")
    Path(f"{folder}/cgroup.procs").write_text(str(os.getpid()))
    if kind == "fill":
        fill(size)
    else:
        press(size, scratch)


def fill(size: int) -> None:
    kept: list[bytes] = []
    while len(kept) * BLOCK < size and not is_over():
        kept.append(b"x" * BLOCK)
        time.sleep(PAUSE_S)
    while not is_over(1.0):
        pass


def press(size: int, scratch: str) -> None:
    with tempfile.TemporaryFile(dir=scratch) as file:
        file.truncate(size)
        at = 0
        while not is_over():
            os.pread(file.fileno(), BLOCK, at)
            at = (at + BLOCK) % size
            time.sleep(PAUSE_S)


def is_over(wait_s: float = 0.0) -> bool:
    """The process that started it has closed its standard input, or is gone."""
    return bool(select.select([0], [], [], wait_s)[0])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] if len(sys.argv) > 4 else "/tmp")
