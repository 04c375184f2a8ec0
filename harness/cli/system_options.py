"""Options of one system alone: made from its struct, and shown if the command line names that system.

`-o name=value` sets any of them; most have a long name as well. The long names of the systems of this checkout are read
everywhere, so that `harness.cli.options.plan_of` can say which system has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from harness.cli.param_types import Kind, Number, Text, Whole, YesNo

if TYPE_CHECKING:
    from harness.plan.plan import Options
    from harness.systems.long_options import LongOption

SETTINGS = "settings"
_META = "qsync.system"


class NumberOrText(Kind):
    """A whole number, or text that the system reads as a formula."""

    name = "number or formula"

    def taken(self, value: Any) -> Any:
        try:
            return int(value)
        except ValueError:
            return value


class PlanCommand(click.Command):
    """A command that takes the options of a plan, and those of its system."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_META] = _system_in(args)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options of every plan, then, as a second list, those of the system that the line names."""
        own = super().get_params(ctx)
        of_system = self.get_params(ctx)[len(own) :]
        for title, listed in (("Options", own), (f"Options of {ctx.meta.get(_META)}", of_system)):
            if records := [record for param in listed if (record := param.get_help_record(ctx))]:
                with formatter.section(title):
                    formatter.write_dl(records)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """An option of a system that has the name of one of ours is set with `-o` alone."""
        own = super().get_params(ctx)
        taken = {name for param in own for name in (param.name, *param.opts)}
        of_system = _params(ctx.meta.get(_META))
        return [*own, *(param for param in of_system if taken.isdisjoint((param.name, *param.opts)))]


def _system_in(args: list[str]) -> str | None:
    """The system that the line names."""
    system = None
    for number, word in enumerate(args):
        if word == "--system" and number + 1 < len(args):
            system = args[number + 1]
        elif word.startswith("--system="):
            system = word.partition("=")[2]
    return system


def _params(named: str | None) -> list[click.Parameter]:
    from harness.errors import WrongUse
    from harness.systems import SYSTEMS, system_of
    from harness.systems.long_options import long_options

    shown: tuple[LongOption, ...] = ()
    if named:
        try:
            shown = long_options(system_of(named).options)
        except WrongUse:
            shown = ()  # the plan says so
    known: dict[str, LongOption] = {}
    for option in (other for system in SYSTEMS.values() for other in long_options(system.options)):
        first = known.setdefault(option.field, option)
        if first.choices != option.choices:  # which of them hold is known when the plan is
            known[option.field] = replace(first, choices=())
    known |= {option.field: option for option in shown}
    fields = {option.field for option in shown}
    return [_param(option, is_hidden=field not in fields) for field, option in known.items()]


def _param(option: LongOption, *, is_hidden: bool) -> click.Option:
    return click.Option(
        [option.name, option.field],
        type=_type(option),
        multiple=option.is_list,
        metavar=option.metavar,
        help=option.help,
        hidden=is_hidden,
    )


def _type(option: LongOption) -> click.ParamType[Any]:
    if option.choices:
        return click.Choice(option.choices, case_sensitive=False)
    if option.kinds == {bool}:
        return YesNo()
    if float in option.kinds:
        return Number()
    if int in option.kinds:
        return NumberOrText() if str in option.kinds else Whole()
    return Text()


def fields_of_settings(settings: Iterable[str], kind: type[Options], system: str) -> Mapping[str, Any]:
    """`-o name=value` → field → value; a UsageError says which names there are."""
    from harness.systems.long_options import long_options

    known = {name: own for own in long_options(kind) for name in (own.field, own.field.removesuffix("_s"))}
    fields: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        option = known.get(name.replace("-", "_"))
        if not equals or option is None:
            names = ", ".join(own.field.removesuffix("_s") for own in long_options(kind)) or "(it has none)"
            raise click.UsageError(
                f"-o {setting}: expected NAME=VALUE with an option of --system {system}: {names}"
            )
        value = _type(option).convert(text, _param(option, is_hidden=False), None)
        fields[option.field] = (*fields.get(option.field, ()), value) if option.is_list else value
    return fields
