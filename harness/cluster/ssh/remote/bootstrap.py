"""Sent as a script to a host, before anything of ours is there: `python3 -c <this> WORD ARGUMENT`.

| word | argument | does |
|---|---|---|
| look | folder | what this host is, and which run folders lie there |
| install | {folder, info} | unpacks the archive on stdin into a new folder, starts the supervisor |
| attach | folder | joins stdin and stdout to the supervisor's socket |
| fetch | folder | the files that the nodes wrote, as a tar archive on stdout |
| clean | folder | ends all processes of a run there, and removes its folder |
| ungroup | – | removes the control groups of supervisors that are no more, and ends what runs in them |

Prints one JSON line (but for `attach` and `fetch`); an error is {"error": "one line"}. Only folders that
have our name and our mark in them are ever touched, and groups that have our name and no living supervisor.
"""

from __future__ import annotations

import io
import json
import os
import platform
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

Fields = dict[str, Any]  # JSON's door
Named = Sequence[int]
"""A process: its number, and when it began (ticks)."""

PREFIX = "qsync-run-"
MARK = "qsync-run.json"
PROCESSES = "processes.json"
SOCKET = "socket"
FORMAT = "qsync-ssh-run"
FAKETIME = "lib*/*/faketime/libfaketimeMT.so.1"
NODE_PROCESS = "QSYNC_NODE_PROCESS"
"""As `MARK` of harness.cluster.family."""
GONE_WITHIN_S = 5.0
# As `FAR_NAME` of harness.cluster.limits.enclosure.
GROUP = re.compile(r"qsync-ssh-[0-9a-z]+-(\d+)@(\d+)-[A-Za-z0-9_.]+")
MOUNTS = Path("/proc/self/mountinfo")


def look(argument: str) -> Fields:
    """A report on this host."""
    base = Path(argument).expanduser().resolve()
    if not Path("/proc/self/task").is_dir():
        return {"error": "it has no /proc; expected Linux"}
    if not base.is_dir():
        return {"error": f"there is no folder {base} there; name another as `folder`"}
    if not os.access(base, os.W_OK | os.X_OK):
        return {"error": f"the folder {base} there cannot be written; name another as `folder`"}
    return {
        "version": list(sys.version_info[:2]),
        "python": sys.executable,
        "machine": platform.machine(),
        "base": str(base),
        "programs": programs_here(),
        "runs": [run for folder in sorted(base.glob(PREFIX + "*")) for run in run_of(folder)],
    }


def programs_here() -> dict[str, str]:
    """Where real Tarantool and libfaketime lie here, if they do."""
    library = next(iter(sorted(Path("/usr").glob(FAKETIME))), "")
    paths = {"tarantool": shutil.which("tarantool"), "faketime": str(library)}
    return {name: path for name, path in paths.items() if path}


def run_of(folder: Path) -> list[Fields]:
    """The mark in a folder, about its run; empty if it is not ours."""
    try:
        info = json.loads((folder / MARK).read_text())
        stat = folder.stat()
        if stat.st_uid != os.getuid() or info["format"] != FORMAT or folder.name != PREFIX + info["run"]:
            return []
        supervised = is_process(*info["supervisor"]) if info.get("supervisor") else False
        age_s = time.time() - stat.st_mtime
        return [
            {
                "folder": str(folder),
                "owner": info["owner"],
                "is_supervised": supervised,
                "age_s": age_s,
                "lease_s": info["lease_s"],
            }
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def started(pid: int) -> int:
    """When a process began, in ticks since the host did: with its number, a name that is never given again."""
    return int(_stat(pid)[19])


def _stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat behind the name: the state first."""
    return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()


def is_process(pid: int, ticks: int) -> bool:
    try:
        fields = _stat(pid)
        return int(fields[19]) == ticks and fields[0] not in "ZX"
    except (OSError, ValueError):
        return False


def install(argument: str) -> Fields:
    """A new folder with the mark first, then what came on stdin; then the supervisor."""
    request = json.loads(argument)
    folder = Path(request["folder"])
    folder.mkdir(mode=0o700)
    mark(folder, request["info"])
    with tarfile.open(fileobj=io.BytesIO(sys.stdin.buffer.read())) as archive:
        archive.extractall(folder / "bundle")
    for wheel in sorted((folder / "bundle").glob("*.whl")):
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(folder / "bundle")
        wheel.unlink()
    (folder / "nodes").mkdir()
    with (folder / "supervisor.txt").open("w+b") as output:
        supervisor = subprocess.Popen(
            [sys.executable, "-B", "-m", "harness.cluster.ssh.remote.supervisor", str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder / "bundle")},
            start_new_session=True,
        )
        mark(folder, {**request["info"], "supervisor": [supervisor.pid, started(supervisor.pid)]})
        deadline = time.monotonic() + 10
        while not (folder / SOCKET).exists():
            if supervisor.poll() is not None or time.monotonic() > deadline:
                clean(str(folder))
                output.seek(0)  # not by its name: a supervisor that breaks removes its folder
                words = output.read().decode(errors="replace").strip().splitlines() or ["it says nothing"]
                return {"error": f"the supervisor does not come up: {words[-1]}"}
            time.sleep(0.005)
    return {"pid": supervisor.pid}


def mark(folder: Path, info: Fields) -> None:
    fresh = folder / (MARK + ".new")
    fresh.write_text(json.dumps(info))
    fresh.replace(folder / MARK)


def attach(argument: str) -> None:
    """Bytes both ways until either end is over."""
    os.chdir(argument)  # the path of a socket may not be long
    with socket.socket(socket.AF_UNIX) as door:
        door.connect(SOCKET)
        while True:
            readable, _, _ = select.select([door.fileno(), 0], [], [])
            for source in readable:
                data = os.read(source, 65536)
                if not data:
                    return
                if source:
                    write_all(data)
                else:
                    door.sendall(data)


def write_all(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def fetch(argument: str) -> None:
    folder = Path(argument)
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
        archive.add(str(folder / "nodes"), arcname="nodes")
        archive.add(str(folder / "supervisor.txt"), arcname="supervisor.txt")


def clean(argument: str) -> Fields:
    folder = Path(argument)
    if not run_of(folder):
        return {"removed": False}
    info = json.loads((folder / MARK).read_text())
    end([info["supervisor"]] if info.get("supervisor") else [], signal.SIGTERM)
    end(processes(folder), signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        return {"error": f"the folder {folder} there cannot be removed"}
    return {"removed": True}


def ungroup(argument: str) -> Fields:
    """Remove the groups of supervisors that were killed: a supervisor that limits nodes makes groups for them."""
    return {"removed": list(dict.fromkeys(group.name for group in dead_groups() if is_removed(group)))}


def dead_groups() -> Iterable[Path]:
    """The groups of dead supervisors in all mounted hierarchies, of either version."""
    for line in MOUNTS.read_text(errors="surrogateescape").splitlines():
        before, _, after = line.partition(" - ")
        if after.split()[:1] not in (["cgroup"], ["cgroup2"]):
            continue
        for folder, names, _ in os.walk(before.split()[4]):
            for name in sorted(names):
                match = GROUP.fullmatch(name)
                group = Path(folder) / name
                if match and not is_process(int(match[1]), int(match[2])) and is_of_our_pid_namespace(group):
                    yield group


def is_of_our_pid_namespace(group: Path) -> bool:
    """All its processes are: the number of a supervisor says nothing elsewhere. In doubt it is not."""
    with suppress(OSError):
        ours = Path("/proc/self/ns/pid").readlink()
        procs = group / "cgroup.procs"
        pids = procs.read_text().split() if procs.exists() else []  # 0 is a process that we cannot see
        return all(Path(f"/proc/{pid}/ns/pid").readlink() == ours for pid in pids)
    return False


def is_removed(group: Path) -> bool:
    """Remove a group, and first kill its processes: a process there is a node of a dead run."""
    deadline = time.monotonic() + GONE_WITHIN_S
    while group.exists() and time.monotonic() < deadline:
        with suppress(OSError, ValueError):  # it ended by itself, or is another user's
            for pid in (group / "cgroup.procs").read_text().split():
                os.kill(int(pid), signal.SIGKILL)
        try:
            group.rmdir()
        except OSError:
            time.sleep(0.01)
    return not group.exists()


def processes(folder: Path) -> list[Named]:
    """The processes that the supervisor wrote down at their start, and all with the run's mark in their environment."""
    try:
        known = list(json.loads((folder / PROCESSES).read_text()))
    except (OSError, ValueError):
        known = []
    return [*known, *marked(folder)]


def marked(folder: Path) -> Iterable[Named]:
    """Processes with this run's folder in their environment."""
    wanted = f"{NODE_PROCESS}={folder}/".encode()
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if any(variable.startswith(wanted) for variable in (place / "environ").read_bytes().split(b"\0")):
                yield int(place.name), started(int(place.name))
        except (OSError, ValueError):
            continue  # it ended, or is another user's


def end(named: Iterable[Named], number: signal.Signals) -> None:
    """Signal the processes that are still the same, wait until they are gone, then kill the rest."""
    send(named, number)
    deadline = time.monotonic() + GONE_WITHIN_S
    while any(is_process(*process) for process in named) and time.monotonic() < deadline:
        time.sleep(0.01)
    send(named, signal.SIGKILL)


def send(named: Iterable[Named], number: signal.Signals) -> None:
    for pid, ticks in named:
        if is_process(pid, ticks):
            # It has just ended: the kernel ends nodes with their supervisor.
            with suppress(ProcessLookupError):
                os.kill(pid, number)


WORDS: dict[str, Callable[[str], Fields | None]] = {
    "look": look,
    "install": install,
    "attach": attach,
    "fetch": fetch,
    "clean": clean,
    "ungroup": ungroup,
}


def main(word: str, argument: str) -> None:
    try:
        answer = WORDS[word](argument)
    except OSError as error:
        if word == "fetch":  # behind a part of an archive no reader would find the line of an error
            sys.exit(str(error))
        answer = {"error": str(error)}
    if answer is not None:
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:3])
