"""The virtual environment of a checkout: `./qsync` has this file make, repair and renew it.

It runs on a bare Python, before anything is installed, and so imports the standard library alone.

- A *group* is a lock file: `run` is what `./qsync run` needs; `spark`, on top of it, what the verbs that start Spark
  need; `test`, on top of both, what the tests need.
- A group's *stamp*, `.venv/<group>.stamp`, holds the checkout's path and the lock file as installed. While
  it is equal to the present ones the group is in order; `./qsync` compares it without coming here.
- `.venv/unfinished` exists while packages are being installed. Found at the start, it means that this was
  interrupted, and .venv is made anew rather than mended. It is also made anew if the checkout moved (scripts carry
  their own path) or the `run` lock changed (pip does not remove packages that are no longer listed).
- `.venv/lock` lets one process in at a time; other processes wait and then find everything in order. The commands
  that run here inherit it: a pip that outlived a killed set-up still holds the lock.

The project itself is not installed: a .pth file in .venv points to the checkout.

`python3 harness/cli/environment.py lock` remakes the lock files: the newest versions that
pyproject.toml allows, with all their dependencies.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

LOCK_FILES = {
    "run": "requirements.lock",
    "spark": "requirements-spark.lock",
    "test": "requirements-test.lock",
}
LOCK_HEADER = "# Remade by `python3 harness/cli/environment.py lock` from what pyproject.toml asks for.\n"
# Nothing is compiled on a newcomer's machine; pyspark alone has no wheel, and nothing in it to compile.
PIP_INSTALL = ("-m", "pip", "install", "--quiet", "--only-binary", ":all:", "--no-binary", "pyspark")


class SetupError(Exception):
    """The environment cannot be made; the message is one line that says what to do."""

    exit_code = 70


class IsLink(SetupError):
    """.venv is a symbolic link: its target may belong to another checkout, and is left alone."""

    exit_code = 64


class Environment:
    """The .venv of the checkout at `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / ".venv"
        self.python = self.folder / "bin" / "python"
        self.log = self.folder / "pip.log"
        self.unfinished = self.folder / "unfinished"

    def install(self, groups: Sequence[str]) -> None:
        """Bring `groups` in order. Progress goes to stderr."""
        if self.folder.is_symlink():
            target = self.folder.readlink()
            raise IsLink(f"it is a symbolic link to {target}; try: rm '{self.folder}', then ./qsync again")
        with self._alone():
            missing = [group for group in groups if not self.in_order(group)]
            if not missing:
                return
            start_s = time.monotonic()
            reason = self._reason_to_begin_anew()
            if reason:
                missing = list(dict.fromkeys(["run", *groups]))
            files = " and ".join(LOCK_FILES[group] for group in missing)
            action = f"{reason}, making .venv" if reason else "adding to .venv"
            takes_s = 60 if "spark" in missing else 20
            say(f"{action} from {files} (needs the network, takes some {takes_s} s)")
            self._fill(missing, anew=bool(reason))
            say(f"done in {time.monotonic() - start_s:.0f} s")

    def in_order(self, group: str) -> bool:
        """Whether the packages of the group's present lock file are installed."""
        try:
            return os.access(self.python, os.X_OK) and self._stamp(group).read_text() == self._wanted(group)
        except (OSError, ValueError):
            return False

    def _stamp(self, group: str) -> Path:
        return self.folder / f"{group}.stamp"

    def _wanted(self, group: str) -> str:
        return f"{self.root}\n{(self.root / LOCK_FILES[group]).read_text()}"

    def _reason_to_begin_anew(self) -> str | None:
        """Why .venv must be made from nothing; None if packages may be added to it."""
        if self.unfinished.exists():
            return "the last set-up did not finish"
        if self.in_order("run"):
            return None
        return "the lock file or the folder has changed" if self._stamp("run").exists() else "first use"

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the environment's lock, which the kernel takes back even from a process that was killed."""
        self.folder.mkdir(exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("waiting for another ./qsync that is setting up .venv")
                fcntl.flock(lock, fcntl.LOCK_EX)
            os.set_inheritable(lock.fileno(), True)
            yield

    def _fill(self, groups: Sequence[str], *, anew: bool) -> None:
        self.unfinished.touch()  # first, and removed last: a set-up that was interrupted in between is made anew
        if anew:
            self._clear()
            self._make()
        for group in groups:
            self._stamp(group).unlink(missing_ok=True)
        locks = [argument for group in groups for argument in ("-r", str(self.root / LOCK_FILES[group]))]
        run([str(self.python), *PIP_INSTALL, "--no-deps", "--log", str(self.log), *locks], PIP_NEEDS)
        for group in groups:
            self._stamp(group).write_text(self._wanted(group))
        self.unfinished.unlink()

    def _clear(self) -> None:
        """Remove all but `lock` and `unfinished`. The stamps go first: a killed removal leaves no group in order."""
        for path in [self._stamp(group) for group in LOCK_FILES] + list(self.folder.iterdir()):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.name not in {"lock", "unfinished"}:
                path.unlink(missing_ok=True)

    def _make(self) -> None:
        # The resolved path names the minor version: when that Python goes, ./qsync sees a broken link.
        run([os.path.realpath(sys.executable), "-m", "venv", str(self.folder)], VENV_NEEDS)
        (packages,) = self.folder.glob("lib/python3*/site-packages")
        (packages / "qsync_checkout.pth").write_text(os.path.relpath(self.root, packages) + "\n")


VENV_NEEDS = "python3 needs its venv module; on Debian or Ubuntu: apt-get install python3-venv"
PIP_NEEDS = "pip could not do it, see .venv/pip.log"


def run(arguments: Sequence[str], failure: str) -> str:
    """Run a command to its end and return what it printed; if it fails, raise `failure` and its cause."""
    options = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PIP_USER": "0"}
    done = subprocess.run(
        arguments,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        env=os.environ | options,
        close_fds=False,
        check=False,
    )
    if done.returncode != 0:
        raise SetupError(f"{failure} ({first_error(done.stderr + done.stdout)})")
    return done.stdout


def first_error(output: str) -> str:
    """The line of a failed command's output that names the cause."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    unreachable = "; the package index was not reached" if "Retrying (" in output else ""
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines[-1:] or ["it said nothing"])[0] + unreachable


def remake_lock_files(root: Path) -> None:
    """Resolve what pyproject.toml asks for: `run`, and each other group on top of `run` alone."""
    asked = tomllib.loads((root / "pyproject.toml").read_text())
    always: list[str] = []
    groups = {"run": asked["project"]["dependencies"], **asked["dependency-groups"]}
    for group, file in LOCK_FILES.items():
        added = [pin for pin in resolve([*always, *groups[group]]) if pin not in always]
        (root / file).write_text(LOCK_HEADER + "".join(f"{pin}\n" for pin in added))
        say(f"{file}: {len(added)} packages")
        always = always or added


def resolve(requirements: Sequence[str]) -> list[str]:
    """All packages that `requirements` need, as name==version, in the order of the alphabet."""
    arguments = [
        sys.executable,
        *PIP_INSTALL,
        "--dry-run",
        "--ignore-installed",
        "--report",
        "-",
        *requirements,
    ]
    packages = [package["metadata"] for package in json.loads(run(arguments, PIP_NEEDS))["install"]]
    pins = sorted((package["name"].lower().replace("_", "-"), package["version"]) for package in packages)
    return [f"{name}=={version}" for name, version in pins]


def say(line: str) -> None:
    """Progress goes to stderr: what a verb prints stays clean."""
    print(f"qsync: {line}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str]) -> int:
    """Do as `./qsync` asks: `install GROUP…`; or, after a change of the dependencies, `lock`."""
    root = Path(__file__).parents[2]
    try:
        match arguments:
            case ["install", *groups]:
                if find_spec("venv") is None or find_spec("ensurepip") is None:
                    raise SetupError(VENV_NEEDS)
                Environment(root).install(groups)
            case ["lock"]:
                remake_lock_files(root.resolve())
            case _:
                raise SetupError("environment.py takes: install GROUP…, or lock")
    except (SetupError, OSError, ValueError) as error:  # such as a folder whose name is no UTF-8
        say("cannot set up .venv: " + " ".join(str(error).split()))
        return getattr(error, "exit_code", 70)
    except KeyboardInterrupt:
        say("interrupted; the next ./qsync begins the set-up again")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
