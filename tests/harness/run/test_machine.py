"""Faults that this machine cannot do: nobody asked for those of "all", and a user asked for those with a name."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from harness.cli.main import qsync
from harness.cli.options import plan_of
from harness.cluster.containers import packet_filter
from harness.cluster.containers.shaping import presence
from harness.cluster.limits import enclosure, group
from harness.errors import WrongUse
from harness.faults.fault import Does, Fault
from harness.faults.table import FAULTS
from harness.judge.words import repeat_line
from harness.pages import html
from harness.pages.terminal.last_screen import last_screen
from harness.plan.plan import Drawn, Plan
from harness.plan.schedule import draw_faults, names_for
from harness.run import machine
from harness.run.assemble import parts_of, refuse_what_this_machine_cannot
from harness.run.execute import execute
from harness.run.finish import finish
from harness.run.machine import PACKETS, SHAPED, needs_packet_rules, without_what_it_lacks
from harness.systems import plans, system_of
from harness.systems.plans import planned
from harness.systems.tarantool import system as tarantool
from tests import examples
from tests.harness.runs import small

CLOCKS = ("clock", "clock-strobe")


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A machine without some of: libfaketime, nftables, nfqueue, groups."""

    def lacks(*what: str) -> None:
        has = {word: word not in what for word in ("libfaketime", "nftables", "nfqueue", "groups")}
        library = Path("/usr/lib/x/libfaketimeMT.so.1") if has["libfaketime"] else None
        monkeypatch.setattr(tarantool, "_faketime_here", lambda: library)
        monkeypatch.setattr(tarantool, "program", lambda: "/usr/bin/tarantool")
        for module, word in ((packet_filter, "nftables"), (presence, "nfqueue"), (enclosure, "groups")):
            why = "" if has[word] else f"there is no {word}"
            monkeypatch.setattr(module, "why_not", lambda why=why: why)
        monkeypatch.setattr(group, "why_not_of_others", lambda: "" if has["groups"] else "there is no groups")

    return lacks


def repeated(plan: Plan) -> Plan:
    """The plan of the line that repeats a run."""
    words = shlex.split(repeat_line(plan))[2:]
    run = qsync.get_command(click.Context(qsync), "run")
    assert run is not None
    given = run.make_context("run", words, resilient_parsing=False).params
    names = ("results", "repeat", "as_json", "record_only", "fail_fast", "write_plan", "drawn")
    made: Plan = plan_of(**{name: value for name, value in given.items() if name not in names})
    return made


@examples.up_to(10)
@given(seed=st.integers(0, 1 << 40))
def test_what_all_draws_leaves_out_what_this_machine_cannot_do(seed: int) -> None:
    """If it failed, a run would be refused for a fault that nobody asked for, or repeat as a different one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tarantool, "program", lambda: "/usr/bin/tarantool")
        patch.setattr(tarantool, "_faketime_here", lambda: None)
        parts = parts_of(planned(system="tarantool", seed=seed, time_limit_s=60))
        plan, lacks = without_what_it_lacks(parts.plan, parts.system)
        assert [lack.names for lack in lacks] == [CLOCKS]
        refuse_what_this_machine_cannot(parts_of(plan))
        here = draw_faults(plan, "n1", parts.system)
        patch.setattr(tarantool, "_faketime_here", lambda: Path("/usr/lib/there"))
        there = parts_of(repeated(plan))
        assert without_what_it_lacks(there.plan, there.system) == (there.plan, ())
        assert draw_faults(there.plan, "n1", there.system) == here
        assert {fault.name for fault in here}.isdisjoint(CLOCKS)


@pytest.mark.parametrize("what", ["nftables", "nfqueue"])
def test_containers_without_rules_for_packets_have_the_other_faults(what: str, without: Any) -> None:
    """If it failed, a machine without nftables could do no run in containers at all."""
    without(what)
    parts = parts_of(planned(cluster="docker", faults=("all",)))
    plan, lacks = without_what_it_lacks(parts.plan, parts.system)
    does = {FAULTS[name].does for name in names_for(plan, parts.system.abilities)}
    assert [lack.why for lack in lacks] == [f"there is no {what}"]
    assert does.isdisjoint(PACKETS if what == "nftables" else SHAPED) and "kill" in does
    assert needs_packet_rules(plan, parts.system) is (what == "nfqueue")
    refuse_what_this_machine_cannot(replace_plan(parts, plan))


def replace_plan(parts: Any, plan: Plan) -> Any:
    return type(parts)(plan, parts.system, parts.workload)


@pytest.mark.parametrize(
    ("lacking", "given"),
    [
        ("libfaketime", {"system": "tarantool", "faults": ("clock",)}),
        ("libfaketime", {"system": "tarantool", "faults": ("all", "clock-strobe")}),
        ("nftables", {"cluster": "docker", "faults": ("kill", "halves")}),
        ("nftables", {"cluster": "docker", "faults": ("all", "lose-unsynced")}),
        ("nfqueue", {"cluster": "docker", "faults": ("slow",)}),
        ("groups", {"cluster": "local", "faults": ("all", "oom")}),
    ],
)
def test_what_a_user_names_is_refused(lacking: str, given: dict[str, Any], without: Any) -> None:
    """If it failed, a user would wait for a run that could not have the fault."""
    without(lacking)
    parts = parts_of(planned(**given))
    plan, _ = without_what_it_lacks(parts.plan, parts.system)
    with pytest.raises(WrongUse, match=f"cannot take effect on this machine: there is no {lacking}"):
        refuse_what_this_machine_cannot(replace_plan(parts, plan))
    without()
    assert without_what_it_lacks(parts.plan, parts.system) == (parts.plan, ())


def test_a_name_that_a_drawn_plan_gives_to_two_actions_hides_none(without: Any) -> None:
    """If it failed, an edited plan would run without the fault that this machine cannot do, and say nothing."""
    without("nftables")
    deaths: tuple[Does, ...] = ("power", "kill")
    faults = tuple(
        Fault(id=at, name="death", does=does, at_ns=at, until_ns=at + 1, nodes=("n1",))
        for at, does in zip((0, 10**10), deaths, strict=True)
    )
    drawn = Drawn(faults=faults, operations=())
    parts = parts_of(planned(cluster="docker", drawn=drawn))
    assert needs_packet_rules(parts.plan, parts.system)
    with pytest.raises(WrongUse, match="the fault death, which cannot take effect"):
        refuse_what_this_machine_cannot(parts)


@pytest.mark.parametrize(
    ("faults", "why"),
    [
        (("-clock",), "got no all"),
        (("all", "-clok"), "unknown fault 'clok'"),
        (("all", "clock", "-clock"), "both asked for and left out"),
    ],
)
def test_a_fault_is_left_out_of_all_and_of_nothing_else(faults: tuple[str, ...], why: str) -> None:
    with pytest.raises(WrongUse, match=why):
        names_for(planned(faults=faults))
    abilities = system_of("qsync").abilities
    every = names_for(planned(), abilities)
    assert names_for(planned(faults=("all", "-lose-unsynced")), abilities) == tuple(
        name for name in every if FAULTS[name].does != "power"
    )


def test_screen_and_page_say_what_was_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a reader would think that a fault had no time, and not that this machine lacks it."""
    monkeypatch.setattr(machine, "_looks", lambda does, *_: [lambda: "no kills"] if does == "kill" else [])
    folder = execute(parts_of(small(time_limit_s=2.0)), tmp_path).folder
    plan = plans.read(folder.plan_file)
    verdict = finish(folder, plan)
    assert plan == replace(small(time_limit_s=2.0), faults=("default", "-kill"))
    assert "left out here: kill (no kills)" in last_screen(verdict, folder.path)
    assert "--faults default,-kill" in verdict["repeat"]["command"]
    assert not any("kill" in text for text in verdict["evidence"]["missing"])
    page = html(folder.path, verdict)
    assert "left out on this machine" in page and "no kills" in page


def test_a_run_that_has_no_room_for_a_fault_says_so_before_it_starts(tmp_path: Path) -> None:
    """If it failed, the terminal would not hold what the schedule already shows."""
    told: list[str] = []
    names = ("kill", "pause", "isolate-one", "halves")
    execute(parts_of(replace(small(time_limit_s=2.0), faults=names)), tmp_path, tell=told.append)
    (line,) = told
    assert line.startswith("the 2 s have no room for ") and "cannot be VALID" in line
