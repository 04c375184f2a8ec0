"""The standard output of verbs: documents as JSON, and the last screen of a run."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click


def print_json(document: object, enc_hook: Callable[[Any], Any] | None = None) -> None:
    """Print one document on one line. `enc_hook` converts values that JSON lacks."""
    import msgspec

    try:
        line = msgspec.json.encode(document, enc_hook=enc_hook).decode()
    except UnicodeEncodeError:  # the name of a file that is no UTF-8, which only an escape can name
        line = json.dumps(msgspec.to_builtins(document, enc_hook=enc_hook, str_keys=True))
    click.echo(line)


def has_colour() -> bool:
    from harness.pages.terminal.colour import wants_colour

    return wants_colour(sys.stdout, os.environ)


def print_run(verdict: Mapping[str, Any], folder: Path, as_json: bool) -> None:
    """Print the verdict of a run. `folder` may be a bundle."""
    if as_json:
        print_json({**verdict, "folder": str(folder)})
        return
    from harness.pages.terminal.last_screen import last_screen

    click.echo(last_screen(verdict, folder, colour=has_colour()))
