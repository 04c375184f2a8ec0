"""Control groups of both versions, as files in a folder: what is written where, and what is read from it."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from harness.cluster.containers.nodes import Limits
from harness.cluster.limits.enclosure import launcher, leftovers
from harness.cluster.limits.group import Group, Share, group_of, why_not_of_others
from harness.cluster.limits.machine import LimitsHere
from harness.errors import WrongUse
from harness.run.assemble import refuse_shares
from harness.systems.plans import planned

V1_CPU = {
    "cpu.cfs_quota_us": "200000",
    "cpu.cfs_period_us": "50000",
    "cpu.stat": "nr_throttled 3\nthrottled_time 70\n",
}
V1_MEMORY = {
    "memory.limit_in_bytes": "900",
    "memory.memsw.limit_in_bytes": "900",
    "memory.usage_in_bytes": "500",
    "memory.failcnt": "0",
    "memory.memsw.failcnt": "2",
    "memory.stat": "active_file 1\ntotal_active_file 100\ntotal_inactive_file 50\nworkingset_refault_file 9\n",
    "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
}
V2 = {
    "cpu.max": "max 100000",
    "cpu.stat": "nr_throttled 3\nthrottled_usec 70\n",
    "memory.max": "max",
    "memory.swap.max": "max",
    "memory.current": "500",
    "memory.stat": "active_file 100\ninactive_file 50\nworkingset_refault_anon 4\nworkingset_refault_file 5\n",
    "memory.events": "low 0\nhigh 0\nmax 2\noom 1\noom_kill 1\noom_group_kill 0\n",
}


def folder(path: Path, files: dict[str, str]) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (path / name).write_text(text)
    return path


def group(version: int, at: Path) -> Group:
    if version == 1:
        return Group(1, folder(at / "cpu" / "g", V1_CPU), folder(at / "memory" / "g", V1_MEMORY))
    both = folder(at / "unified" / "g", V2)
    return Group(2, both, both)


@pytest.mark.parametrize("version", [1, 2])
def test_what_the_kernel_counted_is_read(version: int, tmp_path: Path) -> None:
    """Broken, a limit would count as felt that nobody felt, or the other way round."""
    made = group(version, tmp_path)
    counts = made.counts()
    assert (counts["throttled"], counts["throttled_ns"]) == (3, 70 if version == 1 else 70_000)
    assert (counts["limit_hits"], counts["refaults"], counts["oom_kills"]) == (2, 9, 1)
    assert made.needed_bytes() == 350


@pytest.mark.parametrize("version", [1, 2])
def test_limits_are_set_and_put_back_as_they_were(version: int, tmp_path: Path) -> None:
    """Broken, a node would stay limited after its fault, or come back with more than the run gives it."""
    made = group(version, tmp_path)
    before = made.limits()
    made.limit_cpu(5)
    assert made.limit_memory(4096) == 4096
    limited = made.limits()
    assert {name for name in before if limited[name] != before[name]} == set(before)
    assert "5000" in limited["cpu.cfs_quota_us" if version == 1 else "cpu.max"]
    assert made.restore(before)
    assert made.limits() == before


def test_a_limit_that_the_kernel_does_not_take_back_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken, a heal that did nothing would count as one."""
    made = group(2, tmp_path)
    before = made.limits()
    made.limit_cpu(5)
    monkeypatch.setattr(Path, "write_text", lambda *_: 0)
    assert not made.restore(before)


def test_limits_that_could_not_be_lifted_are_lifted_when_asked_again(tmp_path: Path) -> None:
    """Broken, a node would, if its group could not be found for a moment, stay limited and count as healed."""
    found = [group(2, tmp_path)]
    before = found[0].limits()

    async def of(node: str) -> Group:
        return found[0]

    async def lifted() -> None:
        machine = LimitsHere(of, lambda node: tmp_path)
        await machine.limit_cpu("n1", 5)
        gone = found.pop()
        with pytest.raises(IndexError):
            await machine.lift("n1")
        found.append(gone)
        assert await machine.lift("n1")
        assert gone.limits() == before

    asyncio.run(lifted())


@pytest.mark.parametrize("version", [1, 2])
def test_a_group_that_is_gone_has_no_limits(version: int, tmp_path: Path) -> None:
    """Broken, a container that ends while its limits are lifted would end the run with a KeyError."""
    made = group(version, tmp_path)
    before = made.limits()
    for folder in made.folders:
        shutil.rmtree(folder)
    with pytest.raises(FileNotFoundError):
        made.limits()
    with pytest.raises(FileNotFoundError):
        made.restore(before)


@pytest.mark.parametrize("version", [1, 2])
def test_a_share_for_the_whole_run_is_what_the_plan_says(version: int, tmp_path: Path) -> None:
    """Broken, `--node-cpus` and `--node-memory` would do nothing, or limit what the plan does not speak of."""
    made = group(version, tmp_path)
    before = made.limits()
    Share().limit(made)
    assert made.limits() == before
    Share(cpus=0.5, memory_mib=64).limit(made)
    assert {"50000", "50000 100000"} & {*made.limits().values()}
    assert str(64 << 20) in made.limits().values()


def test_containers_have_their_usual_limits_but_for_what_the_plan_says() -> None:
    """Broken, a node of a plan that limits cores alone would have no limit of memory."""
    assert Limits.of(Share()) == Limits()
    assert Limits.of(Share(cpus=0.5)) == Limits(cpus=0.5)
    assert Limits.of(Share(memory_mib=64)) == Limits(memory_mib=64)


@pytest.mark.parametrize("cluster", ["sim", "ssh"])
def test_where_nobody_limits_nodes_that_is_said(cluster: str) -> None:
    """Broken, a run would be believed to have been limited that was not."""
    with pytest.raises(WrongUse, match="--node-memory are for --cluster docker and local"):
        refuse_shares(planned(cluster=cluster, node_memory_mib=64))


def proc(at: Path, mounts: str, place: str) -> Path:
    folder(at / "proc" / "self", {"mountinfo": mounts, "cgroup": place})
    return at / "proc"


def test_the_group_of_a_process_is_found(tmp_path: Path) -> None:
    """Broken, somebody else's group would be limited, or none."""
    v1 = "30 1 0:30 / /c/cpu rw - cgroup cgroup rw,cpu,cpuacct\n31 1 0:31 / /c/memory rw - cgroup cgroup rw,memory\n"
    found = group_of("self", proc(tmp_path / "1", v1, "4:cpu,cpuacct:/a\n5:memory:/b\n0::/\n"))
    assert found == Group(1, Path("/c/cpu/a"), Path("/c/memory/b"))
    unified = "32 1 0:32 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    found = group_of("self", proc(tmp_path / "2", unified, "0::/user.slice/s\n"))
    assert found == Group(2, Path("/sys/fs/cgroup/user.slice/s"), Path("/sys/fs/cgroup/user.slice/s"))
    within = "32 1 0:32 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    found = group_of("self", proc(tmp_path / "3", within, "0::/docker/x/s\n"))
    assert found.cpu == Path("/sys/fs/cgroup/s")
    with pytest.raises(ValueError, match="no control groups"):
        group_of("self", proc(tmp_path / "4", "", ""))
    odd = proc(tmp_path / "5", "", "0::/s\n")
    disk = b"33 1 0:33 / /media/Stra\xdfe rw - vfat /dev/sdb1 rw\n"
    (odd / "self" / "mountinfo").write_bytes(disk + unified.encode())
    assert group_of("self", odd).cpu == Path("/sys/fs/cgroup/s"), "a disk with a name in another encoding"


@pytest.mark.parametrize(
    ("mount", "init", "says"),
    [
        ("/ /sys/fs/cgroup", "0::/init.scope\n", ""),
        ("/docker/x /sys/fs/cgroup", "0::/\n", "cannot be seen in this container"),
        ("/ /sys/fs/cgroup", "0::/../../init.scope\n", "cannot be seen in this container"),
        ("/ /nowhere", "0::/init.scope\n", "cannot be changed by this user"),
    ],
    ids=["a host", "a part is mounted", "names of its own", "no rights"],
)
def test_a_container_that_sees_only_its_own_groups_says_so(
    mount: str, init: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each limit on a container would fail with "No such file", and the run would be inconclusive."""
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != "/nowhere")
    here = proc(tmp_path, f"32 1 0:32 {mount} rw - cgroup2 cgroup2 rw\n", "0::/docker/x/s\n")
    folder(here / "1", {"cgroup": init})
    why = why_not_of_others(here)
    assert says in why and bool(says) == bool(why)


def test_only_groups_of_ours_whose_harness_is_no_more_are_left_over(tmp_path: Path) -> None:
    """Broken, a run that goes on would lose its nodes, or somebody else's processes would be killed."""
    hierarchy = tmp_path / "unified"
    names = ("qsync-ab12-77@5.00-n1", "qsync-ab12-88@6.00-n2", "qsync-mine", "docker-77@5.00-n1", "x")
    for name in names:
        folder(hierarchy / "user" / name, {"cgroup.procs": ""})
    mounts = f"32 1 0:32 / {hierarchy} rw - cgroup2 cgroup2 rw\n"
    there = proc(tmp_path, mounts, "0::/\n")
    found = leftovers(lambda owner: owner == "88@6.00", there)
    assert [path.name for path in found] == ["qsync-ab12-77@5.00-n1"]


def test_a_group_with_a_process_of_a_container_is_not_left_over(tmp_path: Path) -> None:
    """Broken, a clean-up on a host would end the nodes of a harness in a privileged container."""
    hierarchy = tmp_path / "unified"
    for node, pids in (("n1", "41\n"), ("n2", "41\n42\n"), ("n3", "0\n"), ("n4", "43\n")):
        folder(hierarchy / f"qsync-ab12-77@5.00-{node}", {"cgroup.procs": pids})
    there = proc(tmp_path, f"32 1 0:32 / {hierarchy} rw - cgroup2 cgroup2 rw\n", "0::/\n")
    for pid, namespace in (("self", "pid:[1]"), ("41", "pid:[1]"), ("42", "pid:[2]")):
        (there / pid / "ns").mkdir(parents=True)
        (there / pid / "ns" / "pid").symlink_to(namespace)
    found = leftovers(lambda owner: False, there)
    assert [path.name[-2:] for path in found] == ["n1"], (
        "n3 has a process that /proc does not show, and in n4 one ended"
    )


def test_a_command_enters_its_group_before_anything_else() -> None:
    """Broken, what a node used while it started would be counted for somebody else."""
    command = ("python3", "-c", "print('it''s')")
    assert launcher(None, command) == command
    shell, option, script, name, *rest = launcher(Group(1, Path("/c/cpu/a"), Path("/c/memory/b")), command)
    assert (shell, option, name, tuple(rest)) == ("/bin/sh", "-c", "sh", command)
    assert (
        script == "echo $$ > '/c/cpu/a/cgroup.procs' && echo $$ > '/c/memory/b/cgroup.procs' && exec \"$@\""
    )
