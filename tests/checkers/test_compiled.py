"""Kernels: what is compiled, what stays plain, and where machine code is kept."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy
import pytest

from checkers import compiled

ROOT = Path(__file__).parents[2]
SOURCE = Path(__file__).parent / "kernels_for_tests.py"


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
def test_compiled_and_plain_say_the_same() -> None:
    """If this fails, kernels that call kernels are not compiled together, or not as they stand."""
    module = _module(SOURCE)
    values = numpy.arange(10, dtype=numpy.int64)
    assert compiled.load(module).total(values) == module.total(values) == 93


@pytest.mark.long
def test_what_numba_cannot_compile_runs_as_it_stands() -> None:
    """If this fails, a kernel that this numba does not know breaks the check instead of slowing it."""
    module = _module(SOURCE)
    assert compiled.load(module).beyond_numba(numpy.arange(3, dtype=numpy.int64)) == 3


@pytest.mark.parametrize(("option", "takes"), [("forceinline", True), ("_nrt", True), ("no_such", False)])
def test_an_option_that_numba_does_not_have_is_not_given_to_it(option: str, takes: bool) -> None:
    """If this fails, a numba without one of them compiles no kernel: every check of registers ends as unknown."""
    assert compiled._numba_takes(option) is takes


def test_a_folder_that_others_may_write_to_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If this fails, another account can leave machine code that we run."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    compiled._private_folder.cache_clear()
    folder = compiled._private_folder()
    assert folder is not None
    Path(folder).chmod(0o777)
    compiled._private_folder.cache_clear()
    assert compiled._private_folder() is None
    compiled._private_folder.cache_clear()


def _in_a_fresh_process(tmp_path: Path, program: str, **environment: str) -> str:
    """What the program prints, with the source in a folder whose __pycache__ cannot be made.

    Kernels are compiled there, also where the tests do without.
    """
    folder = tmp_path / "installed"
    folder.mkdir()
    (folder / SOURCE.name).write_bytes(SOURCE.read_bytes())
    (folder / "__pycache__").write_text("a file where a folder would be: stands for a read-only install")
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={
            **os.environ,
            compiled.PLAIN_VARIABLE: "",
            "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}",
            "HOME": "/dev/null",
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


SUMMED = """
import numpy, sys
from checkers import compiled
assert "numba" not in sys.modules
import kernels_for_tests
print(compiled.load(kernels_for_tests).total(numpy.arange(10, dtype=numpy.int64)), compiled.why_plain())
"""


@pytest.mark.long
def test_no_place_for_a_cache_is_no_obstacle(tmp_path: Path) -> None:
    """If this fails, a read-only install with a user without a home cannot check at all."""
    unusable = tmp_path / "taken"
    unusable.write_text("")
    environment = {"XDG_CACHE_HOME": "/dev/null/cache", "NUMBA_CACHE_DIR": "", "TMPDIR": str(unusable)}
    assert _in_a_fresh_process(tmp_path, SUMMED, **environment) == "93 \n"


@pytest.mark.long
def test_a_cache_that_vanishes_under_way_is_no_obstacle(tmp_path: Path) -> None:
    """If this fails, a cleaned temporary folder ends a check with an OSError."""
    program = SUMMED.replace(
        "print(",
        "compiled.load(kernels_for_tests); import shutil, pathlib, os;"
        "shutil.rmtree(os.environ['NUMBA_CACHE_DIR']);"
        "pathlib.Path(os.environ['NUMBA_CACHE_DIR']).write_text('');print(",
    )
    cache = tmp_path / "cache"
    assert _in_a_fresh_process(tmp_path, program, NUMBA_CACHE_DIR=str(cache)) == "93 \n"


def test_a_cache_that_breaks_for_two_threads_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    """If this fails, one of two pages that are read at once ends with an OSError."""
    both = threading.Barrier(2, timeout=10)

    def broken(value: int) -> int:
        both.wait()
        raise OSError("the cache is gone")

    monkeypatch.setattr(compiled, "_dispatchers", lambda module, cached: {"total": lambda value: value})
    call = compiled._guarded(_module(SOURCE), "total", broken)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(call, (1, 2))) == [1, 2]


def test_without_numba_kernels_run_as_they_stand(tmp_path: Path) -> None:
    """If this fails, a machine that numba does not run on cannot check at all."""
    program = "import sys; sys.modules['numba'] = None\n" + SUMMED.replace('assert "numba" not', "#")
    answer = _in_a_fresh_process(tmp_path, program)
    assert answer.startswith("93 numba cannot be used: ModuleNotFoundError")


def test_plain_kernels_can_be_asked_for(tmp_path: Path) -> None:
    """If this fails, nobody can rule the compiler out when a verdict is doubted."""
    assert _in_a_fresh_process(tmp_path, SUMMED, QSYNC_PLAIN_KERNELS="1").startswith("93 QSYNC_PLAIN")


@pytest.mark.parametrize(("value", "is_plain"), [("1", True), ("yes", True), ("0", False), ("", False)])
def test_zero_switches_nothing_off(monkeypatch: pytest.MonkeyPatch, value: str, is_plain: bool) -> None:
    """If this fails, `=0` takes the compiler away, and a big check is undecided for want of time; or a process without
    a compiler ends as unknown to spare the time for compiling."""
    monkeypatch.setenv(compiled.PLAIN_VARIABLE, value)
    monkeypatch.setattr(compiled, "_LOADED", set())
    monkeypatch.setattr(compiled, "_places", lambda source: iter(()))
    assert (compiled.why_plain.__wrapped__() != "") is is_plain
    assert compiled.waiting_for(_module(SOURCE), "total") == ("nothing" if is_plain else "compiling")


def test_kernels_that_stay_plain_for_a_test_are_loaded_as_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    """If this fails, the quick suite waits for the compiler, or goes the ways of a machine without one."""
    monkeypatch.setenv(compiled.PLAIN_VARIABLE, compiled.AS_COMPILED)
    module = _module(SOURCE)
    assert compiled.waiting_for(module, "total") == "nothing"
    assert compiled.load(module) is module
    assert compiled.why_plain.__wrapped__() == ""


def test_few_rows_stay_plain_until_loading_would_have_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    """If this fails, a small check waits half a minute for the compiler, or a process of many checks never gets it."""
    monkeypatch.setattr(compiled, "_LOADED", set())
    monkeypatch.setattr(compiled, "_PASSED", {})
    module = _module(SOURCE)
    assert compiled.load(module, compiled.PLAIN_ROWS - 1) is module
    assert not compiled.is_loaded(module)
    assert compiled.stays_plain(module, 1, compiled.PLAIN_ROWS)
    assert not compiled.stays_plain(module, 1, compiled.PLAIN_ROWS)
    compiled._LOADED.add(module.__name__)
    assert not compiled.stays_plain(module, 1, 10 * compiled.PLAIN_ROWS)


@pytest.mark.parametrize("kind", ["register", "cas", "append"])
def test_ten_thousand_operations_need_no_compiler(tmp_path: Path, kind: str) -> None:
    """If this fails, the first check in a fresh checkout takes half a minute."""
    events = [{"process": 0, "type": "invoke", "f": "read"}]
    for number in range(5_000):
        old = None if not number else number % 7 if kind == "cas" else number
        new = (number + 1) % 7 if kind == "cas" else number + 1
        asked: dict[str, Any] = {"f": "write", "value": new}
        if kind == "cas" and number:
            asked = {"f": "cas", "value": [old, new]}
        if kind == "append":
            held = [*range(number // 50 * 50, number + 1)]
            asked = {"f": "txn", "value": [["append", number // 50, number], ["r", number // 50, held]]}
        events += [{"process": 1, "type": outcome, **asked} for outcome in ("invoke", "ok")]
    events.append({"process": 0, "type": "ok", "f": "read", "value": new})
    if kind == "append":
        events = events[1:-1]
    path = tmp_path / "history.jsonl"
    lines = [{"format": "qsync-history", "version": 1}]
    lines += [{"index": index, "time_ns": index, **event} for index, event in enumerate(events)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    program = f"import sys; from harness.cli.main import main; sys.argv = ['qsync', 'check', {str(path)!r}]\n"
    program += "try: main()\nfinally: print('numba' in sys.modules)"
    said = _in_a_fresh_process(tmp_path, program)
    assert said.startswith("VALID"), said
    assert said.endswith("False\n"), said


def test_kept_machine_code_is_loaded_unless_its_source_is_newer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If this fails, as below; here a file stands for the machine code."""
    monkeypatch.delenv(compiled.PLAIN_VARIABLE, raising=False)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(compiled, "_LOADED", set())
    source = tmp_path / "kernels_kept.py"
    source.write_bytes(SOURCE.read_bytes())
    module = _module(source)
    assert compiled.waiting_for(module, "total") == "compiling"
    kept = tmp_path / "cache" / f"{tmp_path.name}_{hashlib.sha1(bytes(tmp_path)).hexdigest()}"
    kept.mkdir(parents=True)
    (kept / f"kernels_kept.total-18.py{sys.version_info.major}{sys.version_info.minor}.nbi").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    assert compiled.waiting_for(module, "total") == "loading"
    assert compiled.waiting_for(module, "doubled") == "compiling"
    later_s = source.stat().st_mtime + 60
    os.utime(source, (later_s, later_s))
    assert compiled.waiting_for(module, "total") == "compiling"
    compiled._LOADED.add(module.__name__)
    assert compiled.waiting_for(module, "total") == "nothing"


@pytest.mark.parametrize("variables", [(), ("XDG_CACHE_HOME",), ("NUMBA_CACHE_DIR", "HOME")])
def test_machine_code_is_looked_for_where_numba_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: tuple[str, ...]
) -> None:
    """If this fails, code that is there counts as code to compile: a check with a limit of seconds ends as unknown."""
    from numba.core import caching, config

    monkeypatch.setattr(compiled, "_private_folder", lambda: str(tmp_path / "private"))
    for name in ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name in variables:
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setattr(config, "CACHE_DIR", os.environ.get("NUMBA_CACHE_DIR", ""))
    module = _module(SOURCE)
    own = [caching.UserProvidedCacheLocator] * ("NUMBA_CACHE_DIR" in variables)
    own += [caching.InTreeCacheLocator, caching.UserWideCacheLocator]
    expected = [locator(module.total, str(SOURCE)).get_cache_path() for locator in own]
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "private"))
    expected.append(caching.UserProvidedCacheLocator(module.total, str(SOURCE)).get_cache_path())
    assert [str(place) for place in compiled._places(SOURCE)] == expected


@pytest.mark.parametrize(
    "taken", [(), ("given",), ("given", "__pycache__"), ("given", "__pycache__", "home")]
)
def test_machine_code_counts_where_the_next_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: tuple[str, ...]
) -> None:
    """If this fails, code in a place that numba passes over counts as there, and a limit is passed by compiling.

    `taken`: the places that numba cannot write to.
    """
    monkeypatch.setattr(compiled, "_LOADED", set())
    monkeypatch.delenv(compiled.PLAIN_VARIABLE, raising=False)
    monkeypatch.setattr(compiled, "_private_folder", lambda: str(tmp_path / "private"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "given"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    source = tmp_path / SOURCE.name
    source.write_bytes(SOURCE.read_bytes())
    for name in taken:
        (tmp_path / name).write_text("a file where a folder would be")
    module = _module(source)
    places = list(compiled._places(source))
    for number, place in enumerate(places):
        if number >= len(taken):
            place.mkdir(parents=True, exist_ok=True)
            file = place / f"{source.stem}.total-1.py{sys.version_info.major}{sys.version_info.minor}.nbi"
            file.touch()
            assert compiled.waiting_for(module, "total") == (
                "loading" if number == len(taken) else "compiling"
            )
            file.unlink()
    assert len(places) == 4


USERS_OWN = """
import numpy
from checkers import compiled
import kernels_for_tests
said = [compiled.waiting_for(kernels_for_tests, "total")]
compiled.load(kernels_for_tests).total(numpy.arange(10, dtype=numpy.int64))
compiled._LOADED.clear()
print(*said, compiled.waiting_for(kernels_for_tests, "total"))
"""


@pytest.mark.long
@pytest.mark.parametrize("variable", ["NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "TMPDIR"])
def test_what_numba_has_kept_elsewhere_is_found(tmp_path: Path, variable: str) -> None:
    """If this fails, the second check of a read-only install compiles again, or with a short limit is unknown."""
    cache = tmp_path / "cache"
    cache.mkdir()
    environment = {"NUMBA_CACHE_DIR": "", "XDG_CACHE_HOME": "/dev/null/cache", variable: str(cache)}
    if variable == "HOME":
        del environment["XDG_CACHE_HOME"]
    assert _in_a_fresh_process(tmp_path, USERS_OWN, **environment) == "compiling loading\n"
    assert list(cache.rglob("*.nbi"))


@pytest.mark.long
def test_what_a_kernel_waits_for_is_known_beforehand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If this fails, small checks wait for a compiler, or a limit of seconds is passed by compiling."""
    monkeypatch.setattr(compiled, "_LOADED", set())
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    source = tmp_path / "kernels_that_wait.py"
    source.write_bytes(SOURCE.read_bytes())
    module = _module(source)
    assert compiled.waiting_for(module, "total") == "compiling"
    monkeypatch.setitem(sys.modules, module.__name__, module)
    compiled.load(module).total(numpy.arange(10, dtype=numpy.int64))
    assert compiled.waiting_for(module, "total") == "nothing"
    compiled._LOADED.clear()
    assert compiled.waiting_for(module, "total") == "loading"
    later_s = source.stat().st_mtime + 60
    os.utime(source, (later_s, later_s))
    assert compiled.waiting_for(module, "total") == "compiling"
