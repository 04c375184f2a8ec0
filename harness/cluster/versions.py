"""A version of a node that lies on this machine: found by what people call it, kept, and shipped to where nodes run.

`--node-from` and `--node-to` take, for nodes of ours, a wheel, a folder with the package `nodes` (a checkout is one),
or a commit of this checkout; for real Tarantool a binary. Code is copied into a cache, under a digest of what it is:
a checkout that is edited meanwhile changes no run, and the same version is found again.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from harness.cluster.place import ROOT, Version, code_files
from harness.cluster.wheels import CACHE
from harness.errors import WrongUse, given_path

PACKAGE: Final = "nodes"
FOLDER: Final = CACHE.parent / "versions"
_MAIN: Final = f"{PACKAGE}/host/__main__.py"
_TRY: Final = "try: a wheel, a checkout, a folder that holds the package nodes, or a commit of this checkout"


def package(given: str) -> Version:
    """Code of our nodes. Raises WrongUse in one line."""
    path = given_path(given)
    if path.is_dir():
        files = _of_folder(path)
    elif path.is_file():
        files = _of_wheel(path)
    else:
        files = _of_commit(given)
    if _MAIN not in files:
        raise WrongUse(f"{given} holds no nodes: there is no {_MAIN} in it; {_TRY}")
    return Version(given=given, root=_kept(files))


def package_of_commit(given: str, repository: Path) -> Version:
    """Code of our nodes at a commit of any repository. Raises WrongUse in one line."""
    files = _of_commit(given, repository)
    if _MAIN not in files:
        raise WrongUse(f"the commit {given} of {repository} holds no nodes: there is no {_MAIN} in it")
    return Version(given=given, root=_kept(files))


def this_package() -> Version:
    """The nodes of this checkout, as they are now."""
    return Version(given="this checkout", root=_kept(_of_folder(ROOT)))


def binary(given: str) -> Version:
    """A program of a store that is not ours, by its path or its name on PATH. Raises WrongUse."""
    path = given_path(given)
    program = shutil.which(path.absolute() if os.sep in given else path)  # Path takes the dot from ./program
    if program is None:
        raise WrongUse(f"there is no program {given}; expected the path of a binary, or its name on PATH")
    return Version(given=given, program=Path(program).resolve())


def _of_folder(folder: Path) -> dict[str, bytes]:
    try:
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in code_files(folder, f"{PACKAGE}/**/*")
        }
    except OSError as error:
        raise WrongUse(f"{error.filename or folder} cannot be read: {error.strerror}; {_TRY}") from error


def _of_wheel(path: Path) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(path) as packed:
            return {name: packed.read(name) for name in packed.namelist() if _is_wanted(name)}
    except Exception as error:  # each way of packing has its own, and so have names and passwords
        raise WrongUse(f"{path} cannot be read as a wheel: {error}; {_TRY}") from error


def _of_commit(given: str, repository: Path = ROOT) -> dict[str, bytes]:
    commit = git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{given}^{{commit}}")
    if commit is None:
        raise WrongUse(f"there is no file, folder or commit {given}; {_TRY}")
    archive = git(repository, "archive", commit.decode().strip(), PACKAGE)
    if archive is None:
        raise WrongUse(f"the commit {given} holds no nodes; {_TRY}")
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        opened = ((member.name, packed.extractfile(member)) for member in packed if member.isfile())
        return {name: file.read() for name, file in opened if file is not None and _is_wanted(name)}


_OF_A_REPOSITORY = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR")
"""Variables that are set within a hook, for the repository of the hook."""


def git(repository: Path, *words: str) -> bytes | None:
    """The output of git in this repository; None if git refuses. WrongUse if git cannot be run."""
    environment = {name: value for name, value in os.environ.items() if name not in _OF_A_REPOSITORY}
    command = ["git", "-C", str(repository), *words]
    try:
        done = subprocess.run(command, capture_output=True, timeout=60, check=False, env=environment)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise WrongUse(f"git cannot be run: {error}") from error
    return done.stdout if done.returncode == 0 else None


def _is_wanted(name: str) -> bool:
    """Only what lies in the package, wherever a name may lead."""
    parts = Path(name).parts
    return name.startswith(f"{PACKAGE}/") and not name.endswith("/") and not {"..", "__pycache__"} & {*parts}


def _kept(files: Mapping[str, bytes]) -> Path:
    """A folder of the cache with these files; whole or not at all, for two runs may want it at once."""
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(os.fsencode(name) + b"\0" + hashlib.sha256(files[name]).digest())
    folder = FOLDER / digest.hexdigest()[:16]
    with suppress(OSError):
        os.utime(folder)  # it was wanted just now: `harness.cluster.old` asks
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as fresh:
            whole = Path(fresh) / "whole"
            for name, data in files.items():
                target = whole / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
            try:
                whole.rename(folder)
            except OSError:
                if not folder.is_dir():  # else another run was faster
                    raise
    except OSError as error:
        raise WrongUse(f"the version cannot be kept in {folder.parent}: {error.strerror}") from error
    return folder
