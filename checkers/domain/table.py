"""All domain checkers, in the order of the package's list."""

from importlib import import_module

from checkers.domain import NAMES

CHECKERS = tuple(import_module(f"checkers.domain.{name}") for name in NAMES)
