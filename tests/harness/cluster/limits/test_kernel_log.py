"""What the kernel wrote of a process that it ended: the right line, and nothing of others."""

from __future__ import annotations

from pathlib import Path

from harness.cluster.limits.kernel_log import ended_in_group, ended_process

LINES = (
    "6,1,1000000,-;something else\n"
    "4,2,2000000,-;oom-kill:constraint=CONSTRAINT_MEMCG,task_memcg=/docker/c0ffee,task=python3,pid=71,uid=0\n"
    " SUBSYSTEM=memory\n"
    "3,3,2000001,-;Memory cgroup out of memory: Killed process 71 (python3) total-vm:37052kB\n"
    "3,4,9000000,-;Memory cgroup out of memory: Killed process 712 (python3) total-vm:37052kB\n"
)


def test_the_line_about_a_process_is_found(tmp_path: Path) -> None:
    """Broken, a kill -9 by anybody would be called an end for want of memory, or such an end a crash."""
    log = tmp_path / "kmsg"
    log.write_text(LINES)
    assert ended_process(71, 0, log).startswith("Memory cgroup out of memory: Killed process 71 (python3)")
    assert ended_process(7, 0, log) == ""
    assert ended_process(71, 3_000_000_000, log) == "", "that was another with the same number"
    assert ended_process(71, 2_000_150_000, log), "by a clock that is 0.1 ms behind after 2 s"
    assert "Killed process 71 (python3)" in ended_in_group("c0ffee", 0, log)
    assert ended_in_group("decaf", 0, log) == ""
    assert ended_process(71, 0, tmp_path / "no log") == ""
