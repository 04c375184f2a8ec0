"""Options that nodes refuse or never tell: what the history and the evidence say of them."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.cluster.protocol import Cluster
from harness.faults.fault import Evidence, Fault
from harness.faults.membership import Membership
from harness.plan.plan import SECOND_NS
from harness.run.administration.deployed import Deployed
from harness.run.administration.options import ChangedOptions
from harness.run.administration.restarts import Restarts
from harness.systems.parts import Settings
from harness.systems.plans import planned
from harness.systems.qsync.node_options import QUORUM, SYNCHRO_TIMEOUT
from harness.systems.system import System
from tests.harness.run.administration.test_newcomers import _Cluster as Still
from tests.harness.run.administration.test_newcomers import over

CONFIGURATION = b"{}"


class Configured(Still):
    def configure(self, node: str, configuration: bytes) -> None:
        assert configuration == CONFIGURATION


Note = tuple[str, Mapping[str, object]]


class Nodes(Settings):
    """Nodes with one option; those of `stubborn` refuse every new value, None stands for a node that is silent."""

    def __init__(self, values: dict[str, int | None], stubborn: tuple[str, ...] = ()) -> None:
        self.values = values
        self.stubborn = stubborn

    def configured(self, configuration: bytes, options: Mapping[str, object]) -> bytes:
        return CONFIGURATION

    async def of(self, node: str, cluster: Cluster) -> Mapping[str, object] | None:
        value = self.values[node]
        return None if value is None else {QUORUM: value}

    async def change(self, node: str, options: Mapping[str, object], cluster: Cluster) -> str:
        if node in self.stubborn and options[QUORUM] != self.values[node]:
            return "refused"
        self.values[node] = cast(int, options[QUORUM])
        return ""


def changed(nodes: Nodes, **fields: Any) -> tuple[Evidence, list[Note], list[Mapping[str, object]]]:
    """The evidence, what was noted of options, and what was noted of members."""
    options: list[Note] = []
    members: list[Mapping[str, object]] = []
    plan = planned(faults=("quorum",))
    times: Any = {"at_ns": 0, "until_ns": SECOND_NS}
    asked = Fault(
        id=1, name="quorum", does="options", nodes=(*nodes.values,), options={QUORUM: 3}, **times, **fields
    )
    system = cast(
        System,
        SimpleNamespace(settings=nodes, configurations=lambda *_: dict.fromkeys(nodes.values, CONFIGURATION)),
    )
    deployed = Deployed(
        *(
            plan,
            cast(Cluster, Configured()),
            system,
            (),
            members.append,
            Membership(plan.node_names, ("n1", "n2")),
        ),
        note_option=lambda node, value: options.append((node, value)),
    )
    work = ChangedOptions(asked, deployed)
    over(work.begin())
    return over(work.end()), options, members


def test_a_node_that_refused_has_not_changed_back() -> None:
    """If it failed, the record would show a change of an option that never came about."""
    evidence, options, _ = changed(Nodes({"n1": 2, "n2": 2}, stubborn=("n2",)))
    assert [(node, value["from"], value["to"]) for node, value in options] == [("n1", 2, 3), ("n1", 3, 2)]
    assert (evidence.took_effect, evidence.healed) == (False, True)


def test_what_no_node_told_is_not_known_to_be_healed() -> None:
    """If it failed, nodes that never answered would count as nodes that have their old options again."""
    evidence, options, _ = changed(Nodes({"n1": None}))
    assert (evidence.took_effect, evidence.healed, options) == (False, None, [])


@pytest.mark.parametrize(("stays", "last"), [(False, 2), (True, 3)])
def test_the_quorum_in_the_end_is_the_one_in_force(stays: bool, last: int) -> None:
    """If it failed, a run would be judged by a quorum that its nodes no longer have."""
    _, _, members = changed(Nodes({"n1": 2, "n2": 2}), stays=stays)
    assert [(note["quorum"], note["settled"]) for note in members] == [(3, False), (last, True)]


def test_a_restart_notes_what_a_lasting_change_has_left() -> None:
    """If it failed, the record would say that an option went back to a value that no node has any more."""
    noted: list[Note] = []
    plan = planned(faults=("restart-otherwise",), cluster="sim")
    fields: Any = {"at_ns": 0, "until_ns": SECOND_NS, "nodes": ("n1",), "options": {SYNCHRO_TIMEOUT: 9.0}}
    deployed = Deployed(
        *(plan, cast(Cluster, Still()), cast(System, None), (), lambda value: None),
        Membership(plan.node_names, plan.node_names),
        note_option=lambda node, value: noted.append((node, value)),
        lasting={SYNCHRO_TIMEOUT: 7.0},
    )
    restarts = Restarts(Fault(id=1, name="restart-otherwise", does="restart", **fields), deployed)
    for is_back in (False, True):
        restarts._note("n1", is_back)
    assert [(value["from"], value["to"]) for _, value in noted] == [(7.0, 9.0), (9.0, 7.0)]
