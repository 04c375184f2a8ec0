"""`qsync VERB …`: finds the verb, runs it, and turns its end into an exit code and at most one line.

A verb is a click command that returns its exit code (None is 0). It raises a HarnessError, or
click's own errors for wrong use; Ctrl-C, SIGTERM and SIGHUP reach it as KeyboardInterrupt. Its module is imported when
the verb is asked for and not before, so that `--help` pays for none of them.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import TextIO, cast

import click

from harness.campaigns.interruption import by_signal
from harness.cli.exit_codes import ExitCode, forget, in_a_line
from harness.cli.verbs import VERBS
from harness.errors import HarnessError, StoreError


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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Written from the table: click's own way would import every verb."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, verb.summary) for name, verb in VERBS.items()])


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
def qsync() -> None:
    """Inject faults into a quorum-replicated store, and decide whether its clients observed only what it promises."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (the process's own by default) and return its exit code."""
    _take_any_text()
    with by_signal():  # cleaning up runs, and temporary folders are removed
        return _main(arguments)


def _take_any_text() -> None:
    """Standard output and error take every text: what the terminal's encoding lacks stands as an escape, and a stream
    that was closed (`>&-`) is one to nowhere."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            # At its own number, which the next file would take: the words of a program would then stand in a record.
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, "w"))
        if isinstance(stream := getattr(sys, name), TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _main(arguments: Sequence[str] | None) -> int:
    try:
        code = _called(sys.argv[1:] if arguments is None else [*arguments])
        sys.stdout.flush()
        return int(code or ExitCode.VALID)
    except click.exceptions.NoArgsIsHelpError as error:
        _say(error.format_message())
        return ExitCode.WRONG_USE
    except HarnessError as error:
        _say(f"qsync: {error.message}")
        return error.exit_code
    except click.ClickException as error:
        _say(f"qsync: {_one_line(error)}")
        return ExitCode.WRONG_USE
    except (click.Abort, KeyboardInterrupt):
        _say("\nqsync: interrupted")  # below the ^C of the terminal
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        forget(sys.stdout, sys.stderr)
        return ExitCode.OUTPUT_CLOSED
    except OSError as error:
        return _of_the_system(error)
    except Exception as error:
        return _broken(error)


def _called(arguments: list[str]) -> int | None:
    """What the verb returned. click's own way would exit with 1, the code of an anomaly, for an output without a
    reader, and would call an EOFError an interruption."""
    try:
        with qsync.make_context("qsync", arguments) as context:
            return cast("int | None", qsync.invoke(context))
    except click.exceptions.Exit as end:
        return end.exit_code


def _of_the_system(error: OSError) -> int:
    """The exit code of an error of the system that no verb has expected. Under standard output may be a full disk, or a
    terminal that was closed."""
    if error.errno == errno.EIO and any(map(_is_hung_up, (sys.stdout, sys.stderr))):
        forget(sys.stdout, sys.stderr)
        return ExitCode.OUTPUT_CLOSED
    _forget_if_lost(sys.stdout)
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    if not is_full and (error.errno not in _OF_PATHS or error.filename is None):
        return _broken(error)
    where = "cannot write the output" if error.filename is None else str(error.filename)
    attempt = "free some space" if is_full else "a path that this user may read and write"
    _say(f"qsync: {where}: {error.strerror}; try: {attempt}")
    return StoreError.exit_code


_OF_PATHS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ELOOP, errno.ENAMETOOLONG)
"""Errors that a path has, and no code."""


def _is_hung_up(stream: TextIO) -> bool:
    """Whether the stream's terminal was closed: it then refuses even to write nothing."""
    try:
        os.write(stream.fileno(), b"")
    except OSError:
        return True
    return False


def _broken(error: Exception) -> int:
    _say(f"qsync: {in_a_line(error)}")
    return ExitCode.BROKEN


def _say(line: str) -> None:
    """Where standard error cannot be written either, the exit code alone says it."""
    try:
        click.echo(line, err=True)
    except OSError:
        forget(sys.stderr)


def _one_line(error: click.ClickException) -> str:
    message = " ".join(error.format_message().split())
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"{message} (see: {context.command_path} --help)" if context else message


def _forget_if_lost(stream: TextIO) -> None:
    try:
        stream.flush()
    except OSError:
        forget(stream)
