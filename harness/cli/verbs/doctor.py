"""`qsync doctor`: the abilities of this machine, the missing parts, and the command that gets them."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import click

from harness.cli.options import refuse_options, results_folder
from harness.cli.param_types import Text
from harness.cli.printing import print_json
from harness.errors import ClusterError

SLOW_SYNC_MS = 50.0
"""On a disk where the median sync takes longer, every write looks like a timeout."""


class Finding(NamedTuple):
    """`is_needed`: without it `qsync run` does not work; everything else is for some suites only."""

    what: str
    state: str
    is_there: bool
    is_needed: bool
    remedy: str = ""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="The findings as JSON, and nothing else.")
@click.option("--fix", is_flag=True, help="Make the base image of containers where none can be pulled.")
@click.option("--clean", is_flag=True, help="Remove the leftovers of killed runs.")
@click.option("--inventory", type=Text(), help="With --clean: on the hosts of this file, instead of here.")
def command(as_json: bool, fix: bool, clean: bool, inventory: str | None) -> int:
    """Show the abilities of this machine, the missing parts, and the one command that gets them."""
    if clean:
        refuse_options("does not go with --clean", but=("clean", "inventory"))
        return _clean(inventory)
    refuse_options("is for --clean", "inventory")
    if fix:
        refuse_options("does not go with --fix", but=("fix",))
        return _fix()
    findings = [look() for look in LOOKS]
    if as_json:
        print_json([finding._asdict() for finding in findings])
    else:
        width = max(len(finding.what) for finding in findings)
        for finding in findings:
            mark = "ok  " if finding.is_there else "MISS" if finding.is_needed else "none"
            remedy = f"   try: {finding.remedy}" if finding.remedy and not finding.is_there else ""
            click.echo(f"{mark}  {finding.what:<{width}}  {finding.state}{remedy}")
    missing = [finding for finding in findings if finding.is_needed and not finding.is_there]
    return 3 if missing else 0


def _clean(inventory: str | None) -> int:
    """Remove the leftovers of killed harnesses: here processes, disks, containers, networks, packet rules, groups of
    processes, shared memory and temporary folders, or on the hosts of `inventory` folders and processes. Here also
    versions and images of nodes that were not used for long."""
    removed, kept = 0, 0
    for removal in (
        (_left_by_processes, _left_mounted, _old_versions, _left_here, _old_images)
        if inventory is None
        else (lambda: _left_there(inventory),)
    ):
        for leftover in removal():
            is_still_there = ": no, " in leftover
            removed, kept = removed + (not is_still_there), kept + is_still_there
            click.echo(f"{'KEPT   ' if is_still_there else 'removed'}  {leftover}")
    if not removed and not kept:
        click.echo("nothing was left behind")
    return 3 if kept else 0


def _left_here() -> list[str]:
    """Remove the leftovers of killed runs; without a container daemon, all but containers and networks."""
    from harness.cluster.containers.image import connect
    from harness.cluster.limits import enclosure
    from harness.cluster.ownership import lives, remove_leftovers, remove_tables

    removed = enclosure.remove_leftovers(lives)
    try:
        client = connect()
    except ClusterError as error:
        click.echo(f"containers and networks were not looked for: {error.message}", err=True)
        return removed + remove_tables()
    return removed + remove_leftovers(client)


def _left_mounted() -> list[str]:
    from harness.cluster.mounted_disk.mounts import remove_leftovers

    return remove_leftovers()


def _left_by_processes() -> list[str]:
    from harness.cluster import faketime_files, ownership, scratch

    return ownership.remove_processes() + faketime_files.remove_leftovers() + scratch.remove_leftovers()


def _old_versions() -> list[str]:
    from harness.cluster.old import remove_old_versions
    from harness.cluster.versions import FOLDER

    return remove_old_versions(FOLDER, time.time())


def _old_images() -> list[str]:
    from harness.cluster.containers.image import REPOSITORY, connect
    from harness.cluster.old import remove_old_images

    try:
        client = connect()
    except ClusterError:
        return []  # the check before this one reports it
    return remove_old_images(client, REPOSITORY, time.time())


def _left_there(inventory: str) -> list[str]:
    from harness.cluster.ssh.inventory import read
    from harness.cluster.ssh.leftovers import remove_leftovers

    return remove_leftovers(read(inventory))


def _fix() -> int:
    from harness.cluster.containers.base import LOCAL_BASE, make_base
    from harness.cluster.containers.control import images_of_compose
    from harness.cluster.containers.image import connect, is_there, node_image

    client = connect()
    if is_there(client, LOCAL_BASE):
        click.echo(f"ok    {LOCAL_BASE} is there already")
    else:
        click.echo(f"made  {make_base(client)} from Debian packages")
    click.echo(f"ok    {node_image(client)}")
    for name in images_of_compose(client):
        click.echo(f"ok    {name}, for docker-compose.yml")
    return 0


def _python() -> Finding:
    return Finding("python", platform.python_version(), sys.version_info >= (3, 11), is_needed=True)


def _processes() -> Finding:
    """Local clusters, and how their nodes end when the harness dies."""
    linux = sys.platform == "linux"
    state = (
        "nodes die with the harness (the kernel sees to it)" if linux else "nodes die with the harness (EOF)"
    )
    return Finding("local processes", f"{state}, {os.cpu_count()} cores", is_there=True, is_needed=True)


def _addresses() -> Finding:
    """The requirements for a store's nodes to run as local processes."""
    state = (
        "each node dials its peers through relays of its own; a store whose nodes need one list of addresses: "
        "--cluster docker"
    )
    return Finding("local addresses", state, is_there=True, is_needed=False)


def _where_results_go() -> Path:
    """The folder of the runs, or the nearest one above it that is there: a run makes those between."""
    folder = results_folder().absolute()
    return next(path for path in (folder, *folder.parents) if path.exists())


def _results() -> Finding:
    folder = _where_results_go()
    writable = folder.is_dir() and os.access(folder, os.W_OK)
    free_gib = shutil.disk_usage(folder).free / 2**30
    state = f"{folder}: {free_gib:.1f} GiB free" if writable else f"{folder} cannot be written"
    return Finding("results", state, writable and free_gib > 0.1, is_needed=True, remedy="--results FOLDER")


def _disk() -> Finding:
    """How long a sync takes on the disk of the results, which every write of a local run waits for."""
    try:
        with tempfile.TemporaryFile(dir=_where_results_go()) as file:
            times_s = sorted(_synced_in_s(file.fileno()) for _ in range(20))
    except OSError as error:
        state = f"bytes cannot be synced: {error.strerror}"
        return Finding(
            "disk", state, is_there=False, is_needed=False, remedy="--results FOLDER on another disk"
        )
    middle, last = (1000 * times_s[place] for place in (len(times_s) // 2, -1))
    state = f"128 bytes are synced in {middle:.1f} ms, at worst {last:.1f} ms of {len(times_s)} times"
    is_quick = middle < SLOW_SYNC_MS
    return Finding("disk", state, is_quick, is_needed=False, remedy="--results FOLDER on another disk")


def _synced_in_s(number: int) -> float:
    began_s = time.perf_counter()
    os.write(number, bytes(128))
    os.fsync(number)
    return time.perf_counter() - began_s


def _program(title: str, names: tuple[str, ...], use: str, remedy: str) -> Callable[[], Finding]:
    def look() -> Finding:
        program = next((path for name in names if (path := shutil.which(name))), None)
        return Finding(
            title, program or f"not found ({use})", program is not None, is_needed=False, remedy=remedy
        )

    return look


def _docker() -> Finding:
    """A daemon that answers, and a base image for nodes."""
    from harness.cluster.containers.base import LOCAL_BASE
    from harness.cluster.containers.image import base_name, connect, is_there

    try:
        client = connect()
    except ClusterError:
        state = "no daemon answers (--cluster docker)"
        remedy = "apt-get install --no-install-recommends docker.io iptables nftables, and start dockerd"
        return Finding("docker", state, is_there=False, is_needed=False, remedy=remedy)
    base = base_name(client)
    known = f"base image {base}" if is_there(client, base) else f"{base} is not here yet"
    state = f"{client.version()['Version']}, {known}"
    remedy = f"./qsync doctor --fix, which makes {LOCAL_BASE} without a registry"
    return Finding("docker", state, is_there(client, base), is_needed=False, remedy=remedy)


def _compose() -> Finding:
    """Docker Compose, as the plugin of the docker command or as a program."""
    plugin = shutil.which("docker") and _first_line_of(("docker", "compose", "version"))
    version = plugin or (
        shutil.which("docker-compose") and _first_line_of(("docker-compose", "version", "--short"))
    )
    state = version or "not found (docker-compose.yml)"
    return Finding("compose", state, bool(version), is_needed=False, remedy="apt-get install docker-compose")


def _first_line_of(words: tuple[str, ...]) -> str:
    """The first line of a command's output; "" if it fails."""
    try:
        process = subprocess.run(words, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stdout.strip().partition("\n")[0] if process.returncode == 0 else ""


def _root() -> Finding:
    is_root = sys.platform != "win32" and os.geteuid() == 0
    state = "yes" if is_root else "no (packet rules between containers, disks that fail)"
    return Finding("root", state, is_root, is_needed=False, remedy="sudo ./qsync …")


def _limits() -> Finding:
    """Whether the cores and memory of local nodes can be limited; those of containers always can."""
    from harness.cluster.limits.enclosure import parent

    try:
        version = parent().version
    except ValueError as error:
        state = f"{error} (cpu-limit, memory-limit and oom on --cluster local)"
        return Finding("limits", state, is_there=False, is_needed=False, remedy="sudo ./qsync …")
    state = f"cores and memory of each node, by control groups of version {version}"
    return Finding("limits", state, is_there=True, is_needed=False)


def _held_packets() -> Finding:
    """Whether packets between containers can be late, uneven, out of order, or limited in number."""
    from harness.cluster.containers.shaping.presence import why_not

    why = why_not()
    state = "yes" if not why else f"{why} (slow, jitter, reorder and bandwidth on --cluster docker)"
    missing = "execute iptables" in why
    remedy = "apt-get install iptables" if missing else "modprobe nfnetlink_queue xt_NFQUEUE, as root"
    return Finding("nfqueue", state, not why, is_needed=False, remedy=remedy)


def _discipline(name: str, *parameters: str) -> Callable[[], Finding]:
    """Whether this kernel itself can delay packets, or limit them."""

    def look() -> Finding:
        from harness.cluster.containers.shaping.presence import has_discipline

        has = has_discipline(name, *parameters)
        state = "yes; not needed" if has else "not in this kernel; not needed, see nfqueue"
        return Finding(name, state, has, is_needed=False)

    return look


def _fuse() -> Finding:
    """Whether a disk can be mounted under a store that is not ours."""
    from harness.cluster.mounted_disk.mounts import DEVICE, why_not

    lack, _, remedy = why_not().partition("; try: ")
    state = f"{lack} (disks that forget or fail under stores that are not ours)" if lack else DEVICE
    return Finding("fuse", state, not lack, is_needed=False, remedy=remedy)


def _faketime() -> Finding:
    library = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), None)
    state = str(library) if library else "not found (clocks of a real Tarantool)"
    return Finding(
        "faketime", state, library is not None, is_needed=False, remedy="apt-get install libfaketime"
    )


def _clock_source() -> Finding:
    path = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    name = path.read_text().strip() if path.exists() else platform.system()
    return Finding("clock source", name, is_there=True, is_needed=False)


def _java() -> Finding:
    """Which Java would run Spark."""
    from harness.pipeline import java

    try:
        jvm = java.find(os.environ)
    except java.NoJava as error:
        reason = error.message.partition("; try: ")[0]
        return Finding(
            "java", reason, is_there=False, is_needed=False, remedy="./qsync analyze, which installs one"
        )
    return Finding("java", f"{jvm.version} ({jvm.origin}: {jvm.home})", is_there=True, is_needed=False)


def _pyspark() -> Finding:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return Finding("pyspark", version("pyspark"), is_there=True, is_needed=False)
    except PackageNotFoundError:
        state = "not installed yet (half a gigabyte; the first verb that needs it brings it)"
        return Finding("pyspark", state, is_there=False, is_needed=False, remedy="./qsync analyze")


LOOKS: tuple[Callable[[], Finding], ...] = (
    _python,
    _processes,
    _addresses,
    _results,
    _disk,
    _program("git", ("git",), "plans then do not say which code ran", "apt-get install git"),
    _program(
        "chromium",
        ("chromium", "chromium-browser", "google-chrome"),
        "tests of the report in a browser",
        "apt-get install chromium fonts-dejavu-core",
    ),
    _program("tarantool", ("tarantool",), "--system tarantool", "apt-get install tarantool"),
    _docker,
    _compose,
    _program("nft", ("nft",), "partitions between containers", "apt-get install nftables"),
    _program("sshd", ("sshd", "/usr/sbin/sshd"), "tests of --cluster ssh", "apt-get install openssh-server"),
    _root,
    _limits,
    _held_packets,
    _discipline("netem", "delay", "1ms"),
    _discipline("tbf", "rate", "1mbit", "burst", "10kb", "latency", "50ms"),
    _fuse,
    _faketime,
    _clock_source,
    _pyspark,
    _java,
)
