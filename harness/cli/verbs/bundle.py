"""`qsync bundle RUN`: one file with all of a stored run, which `qsync check` judges on another machine."""

from __future__ import annotations

import os
from pathlib import Path

import click

from harness.cli.param_types import InputPath, OutputFile


@click.command()
@click.argument("run", type=InputPath())
@click.option("--out", type=OutputFile(), help="The file to write. [default: RUN.zip in this folder]")
def command(run: Path, out: Path | None) -> int:
    """Write a stored run as one file: plan, record, logs and data of the nodes, verdict, page.

    RUN is a run's folder, such as results/latest. The file is a ZIP archive with the SHA-256 of every member.
    `qsync check FILE` judges it anywhere, with the outcome that the run has here.
    """
    from harness.pages.terminal.working import working
    from harness.results import bundle, output_file, resolve
    from harness.results.run_folder import is_read

    folder = resolve(run)
    out = out or Path(f"{folder.path.parent.name}-{folder.path.name}.zip")
    if is_read(os.path.relpath(os.path.realpath(out), folder.path)):
        raise click.UsageError(f"--out: {out} is a file of the run; try: another file")
    with working("packing"):
        manifest = bundle.write(out, bundle.of_run(folder.path))
    said = f"{out}: {len(manifest.files)} files, {sum(member.bytes for member in manifest.files.values()):,} bytes"
    is_kept = not output_file.is_special(out)
    if is_kept:
        said += f", in {out.stat().st_size:,}; try: qsync check {out}"
    # The bundle itself may be on stdout.
    click.echo(said, err=not is_kept)
    return 0
