"""`qsync serve`: results/ in a browser."""

from __future__ import annotations

import socket
from pathlib import Path

import click

from harness.cli.exit_codes import ExitCode
from harness.cli.options import results_option
from harness.cli.param_types import Text, Whole


@click.command()
@results_option()
@click.option("--host", type=Text(), default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=Whole(0, 65535),
    default=8000,
    show_default=True,
    help="Port to listen on; 0: any free one.",
)
def command(results: Path, host: str, port: int) -> int:
    """Show stored runs, campaigns and tables in a browser, and runs that are under way.

    Two runs or two nights stand side by side. Nothing is written. There is no password: on an address other than
    127.0.0.1 every person who can reach it can read all results. Ctrl-C ends it.
    """
    from checkers.history.values import many
    from harness.errors import WrongUse, keep_traceback
    from harness.serve.app import application, is_loopback

    if not results.is_dir():
        raise WrongUse(f"there is no folder {results}; try: ./qsync run first, or --results FOLDER")

    def tell(error: Exception) -> None:
        line = f"a page failed: {type(error).__name__}; traceback in {keep_traceback(error)}"
        click.echo(f"qsync: {line}", err=True)

    with _listening(host, port) as listening:
        app, served = application(results, host, tell)
        if not is_loopback(host):
            click.echo(
                f"qsync: warning: every person who reaches {host} can read all results; there is no password",
                err=True,
            )
        count = served.warm_up()
        named = f"[{host}]" if ":" in host else host
        click.echo(f"{many(count, 'run')} at http://{named}:{listening.getsockname()[1]}/ (Ctrl-C ends it)")
        _serve(app, listening)
    return ExitCode.VALID


def _listening(host: str, port: int) -> socket.socket:
    from harness.errors import WrongUse

    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise WrongUse(
            f"cannot listen on {host}, port {port}: {why}; try: --port 0, or another --host"
        ) from error


def _serve(app: object, listening: socket.socket) -> None:
    import uvicorn

    config = uvicorn.Config(
        app,  # type: ignore[arg-type]  # its types of scopes are its own
        log_level="critical",
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    try:
        uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:
        return  # how it is meant to end
