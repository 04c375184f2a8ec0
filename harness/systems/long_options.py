"""The options of a system as the command line has them, made of the fields of its struct."""

from __future__ import annotations

import types
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from harness.plan.plan import Options


@dataclass(frozen=True, slots=True)
class LongOption:
    """A field of the struct: `kinds` are the types of its values, `is_list` if there may be several."""

    field: str
    name: str
    help: str
    kinds: frozenset[type]
    is_list: bool
    choices: tuple[str, ...]
    """The words that it can be; empty if it can be any."""
    metavar: str | None = None


@cache
def long_options(kind: type[Options]) -> tuple[LongOption, ...]:
    """One for each field, in their order."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(_long_option(field, hints[field]) for field in kind.__struct_fields__)


def option_name(field: str) -> str:
    """`synchro_timeout_s` → `--synchro-timeout`."""
    return "--" + field.removesuffix("_s").replace("_", "-")


def _long_option(field: str, hint: Any) -> LongOption:
    metas = [each for each in getattr(hint, "__metadata__", ()) if isinstance(each, msgspec.Meta)]
    extra = {name: value for meta in metas for name, value in (meta.extra or {}).items()}
    return LongOption(
        field=field,
        name=str(extra.get("option", option_name(field))),
        help=next((meta.description for meta in metas if meta.description), ""),
        kinds=frozenset(_kinds(hint)) - {type(None)},
        is_list=any(get_origin(each) is tuple for each in _parts(hint)),
        choices=tuple(
            str(word) for part in _parts(hint) if get_origin(part) is Literal for word in get_args(part)
        ),
        metavar=extra.get("metavar"),
    )


def _parts(hint: Any) -> list[Any]:
    """The types of a union, without what is said about them."""
    if get_origin(hint) is Annotated:
        return _parts(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        return [part for member in get_args(hint) for part in _parts(member)]
    return [hint]


def _kinds(hint: Any) -> list[type]:
    return [part if isinstance(part, type) and not get_args(part) else str for part in _parts(hint)]
