"""Plans with the options of their system: made of fields by name, and read.

On disk a plan has the fields that every run has, and under `options` those of the system. A person writes, and a hunt
draws, fields by name: there the options of the system stand beside the common ones. Older plans are read as well:

| version | in it |
|---|---|
| 1 | every system had the options of qsync and of Tarantool, beside the common fields |
| 2 | `commit_wait`, `read` and `start` were common fields |
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from harness.errors import WrongUse
from harness.faults.table import ACTIONS
from harness.plan.plan import Options, Plan
from harness.systems import SYSTEMS, system_of
from harness.systems.long_options import long_options
from harness.wrong_values import in_words

DEFAULT_SYSTEM = Plan().system
OPTIONS = "options"


def planned(**fields: Any) -> Plan:
    """A plan of fields by name; ValueError says what is wrong with one, WrongUse that there is no such system."""
    kind = options_of_system(fields)
    own = {name: fields[name] for name in fields if name in kind.__struct_fields__}
    rest = {name: value for name, value in fields.items() if name not in own and name != OPTIONS}
    made = {name: value for name, value in rest.items() if isinstance(value, msgspec.Struct)}
    plan = msgspec.convert({name: value for name, value in rest.items() if name not in made}, Plan)
    said = fields.get(OPTIONS, {})
    if not isinstance(said, dict):
        raise ValueError(f"{OPTIONS}: expected a table of fields, got {said!r}")
    options = msgspec.convert(_as_spelled({**said, **own}, kind), kind)
    return msgspec.structs.replace(plan, options=options, **made)


def _as_spelled(own: Mapping[str, Any], kind: type[Options]) -> dict[str, Any]:
    """A word out of a list of words may be written in capital letters."""
    spelled = {
        (option.field, choice.lower()): choice for option in long_options(kind) for choice in option.choices
    }
    return {
        name: spelled.get((name, value.lower()), value) if isinstance(value, str) else value
        for name, value in own.items()
    }


def options_of_system(fields: Mapping[str, Any]) -> type[Options]:
    name = fields.get("system", DEFAULT_SYSTEM)
    if not isinstance(name, str):
        raise ValueError(f"system: expected a text, got {name!r}")
    return system_of(name).options


def known_fields() -> tuple[str, ...]:
    """Those of every plan, and the options of the systems of this checkout."""
    own = (name for system in SYSTEMS.values() for name in system.options.__struct_fields__)
    return tuple(dict.fromkeys((*(name for name in Plan.__struct_fields__ if name != OPTIONS), *own)))


def fields_of(plan: Plan) -> dict[str, Any]:
    """The fields of which `planned` makes the same plan."""
    fields: dict[str, Any] = msgspec.to_builtins(plan)
    options = fields.pop(OPTIONS)
    return {**fields, **options}


def fitting(fields: Mapping[str, Any], kind: type[Options]) -> dict[str, Any]:
    """The fields without the options that only systems of another kind have."""
    others = {name for system in SYSTEMS.values() for name in system.options.__struct_fields__}
    others -= {*kind.__struct_fields__}
    return {name: value for name, value in fields.items() if name not in others}


def fields_for(plan: Plan, kind: type[Options]) -> dict[str, Any]:
    """The fields of the plan for a system with such options. Unusual options that it has too stay as they are."""
    if type(plan.options) is kind:
        return fields_of(plan)
    usual = msgspec.to_builtins(planned(system=plan.system).options)
    said = {
        name: value for name, value in fields_of(plan).items() if name not in usual or value != usual[name]
    }
    return fitting(said, kind)


def problem(error: Exception, fields: Mapping[str, Any], names: Mapping[str, str] | None = None) -> str:
    """The mistake in the fields, in one sentence. `names`: each field → its name where the user wrote it."""
    options = fields.get(OPTIONS)
    flat = {**fields, **(options if isinstance(options, dict) else {})}
    option = str(error).partition("Invalid enum value ")[2].partition("$.")[2].removesuffix("`")
    kind = options_of_system(fields) if option else Plan
    return in_words(error, flat, kind if option in kind.__struct_fields__ else Plan, names)


def from_json(data: bytes, source: str) -> Plan:
    """Read a plan; WrongUse says what is wrong with it, in one line that names `source`."""
    fields: Any = {}
    try:
        fields = msgspec.json.decode(data)
        fields = msgspec.convert(fields, dict[str, Any])
        plan = planned(**_of_any_version(fields))
        why = _unknown_action(plan)
    except WrongUse as error:
        raise WrongUse(f"{source}: {error.message}") from error
    except (ValueError, RecursionError) as error:  # every error of msgspec is a ValueError
        why = problem(error, fields if isinstance(fields, dict) else {})
    if why:
        raise WrongUse(f"{source}: not a plan: {why}; try: qsync run --write-plan FILE writes one")
    return plan


def _unknown_action(plan: Plan) -> str:
    """The first drawn fault that does something unknown, and what is expected; "" if there is none."""
    for place, fault in enumerate(() if plan.drawn is None else plan.drawn.faults):
        if fault.does not in ACTIONS:
            return f"drawn.faults[{place}].does: expected one of {', '.join(sorted(ACTIONS))}, got {fault.does!r}"
    return ""


def read(path: Path) -> Plan:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise WrongUse(
            f"cannot read the plan {path}: {error.strerror}; try: qsync run --write-plan {path}"
        ) from error
    return from_json(data, str(path))


MOVED: Mapping[str, object] = {"commit_wait": "complete", "read": None, "start": None}
"""Common fields of version 2 that became options, with their defaults."""


def _without_old_nulls(fields: Mapping[str, Any], kind: type[Options]) -> dict[str, Any]:
    """The fields without nulls that today's fields replace by a word."""
    nulls = {field.name for field in msgspec.structs.fields(kind) if field.default is None}
    return {
        name: value
        for name, value in fields.items()
        if value is not None or name in nulls or name not in kind.if_absent
    }


def _of_any_version(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of a plan of any version, in today's form. An old field for which the system has no option is skipped
    if it has its default. With another value it stays, and the plan is refused.
    """
    version, kind = fields.get("version"), options_of_system(fields)
    fields = _without_old_nulls(fields, kind)
    options = fields.get(OPTIONS)
    if isinstance(options, dict):
        fields = {**fields, OPTIONS: (options := _without_old_nulls(options, kind))}
    there = {*fields, *(options if isinstance(options, dict) else ())}
    fields = {**{name: value for name, value in kind.if_absent.items() if name not in there}, **fields}
    if version not in (1, 2):
        return fields
    rest = {name: value for name, value in fields.items() if name not in ("version", *MOVED)}
    moved = {name: fields.get(name, usual) for name, usual in MOVED.items()}
    said = {name: value for name, value in moved.items() if value != MOVED[name]}
    return {**(fitting(rest, kind) if version == 1 else rest), **said}
