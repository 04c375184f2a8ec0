"""Kernels: plain functions over numpy arrays, which numba compiles where it can.

    # kernels.py of a family                      # a module that needs them
    from checkers.compiled import kernel          from checkers.compiled import load
    @kernel                                       from checkers.transactional import kernels
    def total(values: Int64s) -> int: ...         load(kernels).total(values)    # or kernels.total: the plain twin

- numba is imported by the first `load`, never before: `--help` and small histories don't pay for it.
- Plain functions pass over few rows sooner than machine code is loaded, let alone made: say how many rows there are.
  Code is loaded once those that were passed over plainly in this process have taken as long as loading takes.
- `QSYNC_PLAIN_KERNELS=1` does without numba, as every value but `0` and the empty one does. With `as-compiled` kernels
  stay plain as well, and their callers take the ways that they take with machine code: quick tests of these ways wait
  for no compiler.
- `load(module)` gives the module's kernels compiled, or as they stand where numba is missing or broken; `why_plain()`
  says why. A kernel may call kernels of its own module only: numba's cache does not notice when another file changes.
- Machine code is kept in `NUMBA_CACHE_DIR` if that is set, else beside the source (`__pycache__`), else in the user's
  cache folder, else (an install that is read-only, an account without a home) in a private folder for temporary files,
  else nowhere. A cache that breaks under way is done without.
- Give every kernel arrays of one fixed dtype and plain ints and floats: each new combination is compiled afresh, and
  the plain twin would behave differently where integers overflow. A kernel never reads a clock: give it a budget of
  steps, or call it in slices.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any, Literal, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")
Names = dict[str, Any]

PLAIN_VARIABLE = "QSYNC_PLAIN_KERNELS"
AS_COMPILED = "as-compiled"
PLAIN_ROWS = 50_000
"""Rows up to which a linear pass takes less time plain: `bench/cold.py`."""
_MARK = "__is_kernel__"
_BARE = "__makes_no_arrays__"
_INLINED = "__stands_in_its_callers__"
_LOADED: set[str] = set()
_PASSED: dict[str, int] = {}
"""By module, over how many rows its functions passed plainly."""
_NOT_THE_KERNELS_FAULT = (OSError, EOFError, pickle.PickleError, ImportError, AttributeError)


def kernel(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Mark `function` as one that `load` compiles. It stays the plain function that it is."""
    setattr(function, _MARK, True)
    return function


def bare_kernel(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Mark a kernel that makes no arrays (slices of its arguments are fine): its references are not counted.

    Reference counting is expensive: without it, kernels that pass a dozen arrays to each other are four times as fast.
    """
    setattr(function, _BARE, True)
    return kernel(function)


def inlined_kernel(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """A bare kernel; its machine code is copied into each caller: passing an array in a call costs seven numbers.

    For small kernels, or those with one caller; a search that is made of them is twice as fast.
    """
    setattr(function, _INLINED, True)
    return bare_kernel(function)


def load(module: ModuleType, rows: int | None = None) -> Any:
    """The kernels of `module` by their names: compiled if possible, else the module itself.

    `rows`: how many a kernel passes over; without it, so many that loading is worth it.
    """
    if rows is not None and stays_plain(module, rows, PLAIN_ROWS):
        return module
    _LOADED.add(module.__name__)
    return module if _as_compiled() or why_plain() else _compiled(module)


def stays_plain(module: ModuleType, rows: int, most: int) -> bool:
    """Whether a pass over so many rows is worth no loading, because with those before it were no more than `most`."""
    passed = _PASSED.get(module.__name__, 0) + rows
    if passed > most or is_loaded(module):
        return False
    _PASSED[module.__name__] = passed
    return True


def is_loaded(module: ModuleType) -> bool:
    """Whether its kernels were loaded before."""
    return module.__name__ in _LOADED


def waiting_for(module: ModuleType, kernel: str) -> Literal["nothing", "loading", "compiling"]:
    """The work to do before `kernel` of the module can run, as far as it is known without importing numba.

    Nothing, if it was loaded before; loading takes half a second; compiling a long kernel takes ten, which no deadline
    can interrupt.
    """
    if is_loaded(module) or _is_plain():
        return "nothing"
    source = Path(module.__file__ or "").absolute()
    name = f"{source.stem}.{kernel}-*.{sys.implementation.cache_tag.replace('cpython-', 'py')}*.nbi"
    try:
        written_s = source.stat().st_mtime
        kept = next(filter(_can_be_written, _places(source)), None)
        ready = kept is not None and any(file.stat().st_mtime >= written_s for file in kept.glob(name))
    except OSError:
        return "compiling"
    return "loading" if ready else "compiling"


def _places(source: Path) -> Iterator[Path]:
    """The folders for machine code in the order of `_dispatcher`. It is kept in the first that can be written.

    The first ones are those of `numba.core.caching.CacheImpl` (numba 0.68), without the second that its import takes.
    """
    below = f"{source.parent.name}_{hashlib.sha1(bytes(source.parent), usedforsecurity=False).hexdigest()}"
    if given := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(given, below)
    yield source.parent / "__pycache__"
    is_mac = sys.platform == "darwin"
    # An account without a home: Path.expanduser raises, and numba makes a folder `~`.
    usual = os.path.expanduser("~/Library/Caches" if is_mac else "~/.cache")  # noqa: PTH111
    yield Path(usual if is_mac else os.environ.get("XDG_CACHE_HOME", usual), "numba", below)
    if private := _private_folder():
        yield Path(private, below)


def _can_be_written(folder: Path) -> bool:
    """Whether it is there, or can be made, and takes files."""
    nearest = next(each for each in (folder, *folder.absolute().parents) if os.access(each, os.F_OK))
    return nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)


def _is_plain() -> bool:
    """Whether the variable rules the compiler out."""
    return os.environ.get(PLAIN_VARIABLE, "") not in ("", "0")


def _as_compiled() -> bool:
    return os.environ.get(PLAIN_VARIABLE) == AS_COMPILED


@functools.cache
def why_plain() -> str:
    """Why kernels run as plain Python here; "" if they are compiled. Imports numba."""
    if _as_compiled():
        return ""
    if _is_plain():
        return f"{PLAIN_VARIABLE} is set"
    try:
        import numba

        numba.njit(lambda: None)
    except Exception as error:  # a broken install raises anything; the plain twin needs none of it
        return f"numba cannot be used: {type(error).__name__}: {error}"
    return ""


@functools.cache
def _compiled(module: ModuleType) -> SimpleNamespace:
    """Every kernel behind a guard; other names of the module as they are."""
    names = dict(vars(module))
    dispatchers = _dispatchers(module, cached=True)
    guarded = {name: _guarded(module, name, dispatcher) for name, dispatcher in dispatchers.items()}
    return SimpleNamespace(**{**names, **guarded})


def _dispatchers(module: ModuleType, *, cached: bool) -> Names:
    """numba's own objects. They see each other in place of the plain functions, through a copied namespace."""
    names = dict(vars(module))
    plain = {name: value for name, value in names.items() if getattr(value, _MARK, False)}
    for name, function in plain.items():
        names[name] = _dispatcher(_within(names, function), cached=cached)
    return {name: names[name] for name in plain}


def _within(names: Names, function: FunctionType) -> FunctionType:
    twin = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
    twin.__kwdefaults__ = function.__kwdefaults__
    twin.__module__, twin.__qualname__ = function.__module__, function.__qualname__
    twin.__dict__.update(function.__dict__)
    return twin


def _dispatcher(function: FunctionType, *, cached: bool) -> Any:
    import numba

    options = _options(function)
    for folder in (None, _private_folder()) if cached else ():
        try:
            with _cache_folder(folder):
                return numba.njit(function, **options, cache=True)
        except (RuntimeError, OSError):  # numba found no place that it may write to
            continue
    return numba.njit(function, **options)


def _options(function: FunctionType) -> Names:
    options: Names = {"nogil": True, "error_model": "numpy"}
    if getattr(function, _BARE, False) and _numba_takes("_nrt"):
        options["_nrt"] = False
    if getattr(function, _INLINED, False) and _numba_takes("forceinline"):
        options["forceinline"] = True
    return options


@functools.cache
def _numba_takes(option: str) -> bool:
    """Whether numba has an option that is its own, and none that it promises to keep.

    The decorator takes any word: only when the kernel is compiled would it raise, and be no kernel at all.
    """
    try:
        known: Any = import_module("numba.core.cpu").CPUTargetOptions
    # It has moved in another release: the options are faster, not needed.
    except (ImportError, AttributeError):
        return False
    return hasattr(known, option)


@contextmanager
def _cache_folder(folder: str | None) -> Iterator[None]:
    """Have numba keep machine code in `folder` (None: where it likes), for what is decorated inside."""
    # Sets its attributes as it loads: no type checker sees them.
    config: Any = import_module("numba.core.config")
    before = config.CACHE_DIR
    try:
        if folder is not None:
            config.CACHE_DIR = folder
        yield
    finally:
        config.CACHE_DIR = before


@functools.cache
def _private_folder() -> str | None:
    """A folder that no other user can write to: a cache holds code, and that code is executed."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"qsync-kernels-{user}-{sys.implementation.cache_tag}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return None
    ours = stat.S_ISDIR(status.st_mode) and status.st_uid == user and not status.st_mode & 0o077
    return str(folder) if ours else None


def _guarded(module: ModuleType, name: str, dispatcher: Any) -> Callable[..., Any]:
    """The kernel as its callers see it: first with the cache, then without, then as plain Python.

    All of these errors come before the kernel's first step (it raises none of them itself), so nothing is done twice.
    """
    from numba.core.errors import NumbaError

    ways = [dispatcher]

    def call(*arguments: Any) -> Any:
        way = ways[-1]  # another thread may add one meanwhile
        try:
            return way(*arguments)
        except _NOT_THE_KERNELS_FAULT:
            if way is not dispatcher:
                raise
            ways.append(_dispatchers(module, cached=False)[name])
        except NumbaError:
            ways.append(getattr(module, name))
        return call(*arguments)

    return functools.wraps(getattr(module, name))(call)
