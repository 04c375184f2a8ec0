"""Packages whose parts are imported on use: a command pays only for the checkers that it runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from types import ModuleType
from typing import Any


def on_use(package: str, parts: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package. `parts`: attributes, each with its module, "" for a module of that name."""

    def get(name: str) -> Any:
        if name not in parts:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if not parts[name]:
            return import_module(f"{package}.{name}")
        part = getattr(import_module(parts[name]), name)
        setattr(sys.modules[package], name, part)
        return part

    return get


class CalledChecker(ModuleType):
    """A checker's module, which can be called as its `check` can: with a history, a file or a data frame.

    A caller may not know what a torn record has lost, so a call never says valid of one.
    """

    def __call__(self, source: Any, **options: Any) -> Any:
        history = import_module("checkers.history.foreign.frames").history_in(source)
        verdict = vars(self)["check"](history, **options)
        if verdict.result != "valid" or getattr(history, "torn", None) is None:
            return verdict
        return replace(verdict, result="unknown", summary=f"the file is torn: {history.torn}")


class Checkers(ModuleType):
    """A package of checkers: those that are imported, by whatever statement, can be called."""

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, ModuleType) and "check" in vars(value):
            value.__class__ = CalledChecker
        super().__setattr__(name, value)
