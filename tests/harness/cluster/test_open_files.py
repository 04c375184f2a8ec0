"""Many clients: the limit of open files is raised as far as the machine allows, and no further."""

from __future__ import annotations

import resource

import pytest

from harness.cluster import open_files


class Machine:
    def __init__(self, soft: int, hard: int) -> None:
        self.limits = (soft, hard)

    def getrlimit(self, which: int) -> tuple[int, int]:
        assert which == resource.RLIMIT_NOFILE
        return self.limits

    def setrlimit(self, which: int, limits: tuple[int, int]) -> None:
        assert which == resource.RLIMIT_NOFILE
        self.limits = limits


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(1024, 20_000)
    monkeypatch.setattr(open_files.resource, "getrlimit", made.getrlimit)
    monkeypatch.setattr(open_files.resource, "setrlimit", made.setrlimit)
    return made


def test_few_clients_need_no_other_limit(machine: Machine) -> None:
    assert open_files.allow(10, 3, has_relay=True) == ""
    assert machine.limits == (1024, 20_000)


def test_a_thousand_clients_raise_the_soft_limit(machine: Machine) -> None:
    """With the usual soft limit of 1,024 the nodes would run out of files in the middle of the run."""
    assert open_files.allow(1_000, 3, has_relay=True) == ""
    assert machine.limits == (6_300, 20_000)


def test_more_clients_than_the_machine_allows_are_refused_in_one_line(machine: Machine) -> None:
    why = open_files.allow(10_000, 3, has_relay=True)
    assert why.startswith("--workers 10000: ") and "\n" not in why
    most = int(why.partition("try: --workers ")[2].partition(",")[0])
    assert open_files.allow(most, 3, has_relay=True) == ""
    assert open_files.allow(most + 1, 3, has_relay=True) != ""


def test_nobody_is_told_to_try_without_any_client(machine: Machine) -> None:
    machine.limits = (256, 256)
    assert open_files.allow(1, 3, has_relay=True).endswith("; try: a higher hard limit (ulimit -Hn)")


def test_without_a_relay_a_connection_is_one_socket(machine: Machine) -> None:
    assert open_files.allow(6_000, 3, has_relay=False) == ""
    assert open_files.allow(6_000, 3, has_relay=True) != ""


def test_a_machine_without_a_limit_allows_all(machine: Machine) -> None:
    machine.limits = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    assert open_files.allow(10_000, 31, has_relay=True) == ""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((1024, 20_000), (20_000, 20_000)),
        ((1024, 1 << 20), (open_files.MANY, 1 << 20)),
        ((1024, resource.RLIM_INFINITY), (open_files.MANY, resource.RLIM_INFINITY)),
        ((1 << 20, 1 << 20), (1 << 20, 1 << 20)),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), (resource.RLIM_INFINITY, resource.RLIM_INFINITY)),
    ],
)
def test_a_process_that_opens_files_for_others_may_open_many(
    machine: Machine, before: tuple[int, int], after: tuple[int, int]
) -> None:
    """If it failed, a store with a thousand files would find no room for one more, and only on our disk."""
    machine.limits = before
    open_files.allow_many()
    assert machine.limits == after
