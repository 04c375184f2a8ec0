"""A store that the harness knows nothing of: no leader, messages and files of its own."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harness.campaigns.hunt.seeds import try_seed
from harness.errors import WrongUse
from harness.run.assemble import parts_of
from harness.systems import SYSTEMS, system_of
from harness.systems.plans import planned
from harness.workloads import WORKLOADS
from nodes.host.systems import of_file
from tests.systems.echo import echo

ECHO = str(Path(echo.__file__))
PLAN = planned(system=ECHO, workload="read-write", cluster="sim", time_limit_s=12, faults=("all",))


def tried(seed: int, **fields: object) -> tuple[str, tuple[str, ...], str]:
    one = try_seed(PLAN.changed(seed=seed, **fields), True)
    return one.outcome, one.violated, one.sentence


# In 9 all messages travel as bytes.
@pytest.mark.parametrize("seed", [1, pytest.param(9, marks=pytest.mark.long)])
def test_a_store_without_a_leader_passes_under_all_faults(seed: int) -> None:
    """Breaks if the harness needs a leader, IPROTO, or files of qsync's."""
    outcome, _, sentence = tried(seed)
    assert outcome == "valid", sentence


@pytest.mark.parametrize("method", [pytest.param("stored", marks=pytest.mark.long), "persist"])
def test_its_bugs_are_found(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks if the green light over this store has nothing behind it."""

    def answers_at_once(self: echo.Echo, number: int, node: str) -> None:
        self.majority = 1
        stored(self, number, node)

    def forgets(self: echo.Echo, key: str, tagged: echo.Tagged, then: object) -> None:
        self.take(key, tagged)
        then()  # type: ignore[operator]  # it is what `persist` is given

    hosted = of_file(ECHO).Echo
    stored = hosted.stored
    monkeypatch.setattr(hosted, method, {"stored": answers_at_once, "persist": forgets}[method])
    faults = {"stored": ("isolate-one", "one-way"), "persist": ("power-all",)}[method]
    assert any("linearizable" in tried(seed, faults=faults)[1] for seed in range(4))


SPOKEN = [(name, workload) for name in (*SYSTEMS, ECHO) for workload in WORKLOADS]


@pytest.mark.parametrize(("name", "workload"), SPOKEN, ids=[f"{Path(a).stem}-{b}" for a, b in SPOKEN])
def test_every_system_takes_the_workloads_that_it_speaks_and_refuses_the_others(
    name: str, workload: str
) -> None:
    """Breaks if a pair that cannot work begins, and ends in errors of every operation."""
    plan = planned(system=name, workload=workload, cluster="sim" if name != "tarantool" else "docker")
    system, asked = system_of(name), WORKLOADS[workload]
    lacks = "does not speak" if not asked.uses <= system.client.speaks else ""
    if not {*asked.asynchronous} <= {*system.asynchronous_spaces}:
        lacks = lacks or "does not have"
    if lacks:
        with pytest.raises(WrongUse, match=rf"{lacks}; try: --workload \w+"):
            parts_of(plan)
    else:
        parts_of(plan)


@pytest.mark.parametrize(
    ("fault", "lacks"),
    [("isolate-owner", "leader"), ("failover", "owner"), ("holds", "moments"), ("moments", "moments")],
)
def test_a_fault_that_needs_more_is_refused(fault: str, lacks: str) -> None:
    """Breaks if a run asks for what can never take effect: no leader is there, and no scene knows its messages."""
    with pytest.raises(WrongUse, match=lacks):
        parts_of(msgspec.structs.replace(PLAN, faults=(fault,)))


def test_it_is_small() -> None:
    """Breaks if a store of one's own needs more than a page."""
    code = [line for line in Path(ECHO).read_text().splitlines() if line.strip()]
    assert len(code) <= 150
