"""`qsync VERB …`: finds the verb, runs it, and turns its end into an exit code and at most one line.

A verb is a click command that returns its exit code (None is 0). It raises a HarnessError, or
click's own errors for wrong use; Ctrl-C and SIGTERM reach it as KeyboardInterrupt. Its module is imported when the verb
is asked for and not before, so that `--help` pays for none of them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from harness.campaigns.interruption import by_sigterm
from harness.cli.exit_codes import ExitCode
from harness.cli.verbs import VERBS
from harness.errors import TRACEBACK_NOTE, HarnessError, broke, keep_traceback


class Verbs(click.Group):
    """The group of all verbs of the table, each imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The table's order, which is the order in which a newcomer meets them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The click command of one verb; None if there is no such verb."""
        if cmd_name not in VERBS:
            return None
        command = import_module(VERBS[cmd_name].module).command
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise OutputClosed from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Written from the table: click's own way would import every verb."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, verb.summary) for name, verb in VERBS.items()])


class OutputClosed(Exception):
    """Stands for BrokenPipeError on the way through click, which would exit with 1: the code of an anomaly."""


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
def qsync() -> None:
    """Inject faults into a quorum-replicated store, and decide whether its clients observed only what it promises."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (the process's own by default) and return its exit code."""
    with by_sigterm():  # cleaning up runs, and temporary folders are removed
        return _main(arguments)


def _main(arguments: Sequence[str] | None) -> int:
    try:
        code = qsync.main(arguments, prog_name="qsync", standalone_mode=False)
        sys.stdout.flush()
        return int(code or ExitCode.VALID)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return ExitCode.WRONG_USE
    except HarnessError as error:
        click.echo(f"qsync: {error.message}", err=True)
        return error.exit_code
    except click.ClickException as error:
        click.echo(f"qsync: {_one_line(error)}", err=True)
        return ExitCode.WRONG_USE
    except (click.Abort, KeyboardInterrupt):
        click.echo("qsync: interrupted", err=True)
        return ExitCode.INTERRUPTED
    except (OutputClosed, BrokenPipeError):
        _forget_output()
        return ExitCode.OUTPUT_CLOSED
    except Exception as error:
        click.echo(f"qsync: {broke(error)}; {TRACEBACK_NOTE}{keep_traceback(error)}", err=True)
        return ExitCode.BROKEN


def _one_line(error: click.ClickException) -> str:
    message = " ".join(error.format_message().split())
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"{message} (see: {context.command_path} --help)" if context else message


def _forget_output() -> None:
    """Redirect output to nowhere after its reader went away (`… | head -1`), or the flush at exit fails as well."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
