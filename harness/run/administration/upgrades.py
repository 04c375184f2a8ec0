"""A step of a rolling upgrade (or of the way back): one node is stopped and started on its data in the other version.

First all nodes that had a step before must be back: follow all nodes, and have all earlier data. Took effect if the
node itself reports a different version than before; healed if it follows all nodes, has all earlier data, and reports
the same version as the nodes that had this step before it.

A version that does not start on the files of the other one is a finding: its last words are kept, the node goes on in
the version that it had, and no further step is made. Versions may differ in what they write, never in what they lose.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from harness.cluster.place import FROM, TO, Which
from harness.cluster.protocol import ExchangesVersions
from harness.errors import ClusterError
from harness.faults.fault import Evidence, Fault
from harness.run.administration.deployed import Deployed
from harness.systems.status import covers, furthest, has_synced

OTHER: Mapping[Which, Which] = {FROM: TO, TO: FROM}


class VersionStep:
    def __init__(self, fault: Fault, deployed: Deployed) -> None:
        (self._node,) = fault.nodes
        self._deployed = deployed
        self._wanted: Which = TO if fault.does == "upgrade" else FROM
        self._asked_ns = deployed.cluster.now_ns()
        self._ended_ns: int | None = None
        self._before = self._after = ""
        self._is_back = False
        self._refusal = ""
        self._details: list[str] = []

    async def begin(self) -> None:
        deployed, node = self._deployed, self._node
        if not await deployed.until(self._others_are_well, deployed.deadline_ns()):
            self._details.append("the nodes were not all back from what came before: nothing was done")
            return
        if not await deployed.administered.terminate(node):
            self._details.append(f"{node} did not end by SIGTERM alone")
        if await deployed.cluster.status(node) is None:
            self._ended_ns = deployed.cluster.now_ns()
        wanted = furthest(await deployed.statuses())
        if await self._start():
            deployed.run_in[node] = self._wanted
            self._is_back = await deployed.until(
                lambda statuses: has_synced(node, statuses) and covers(statuses[node], wanted),
                deployed.deadline_ns(),
            )
        self._after = _version_of(await deployed.cluster.status(node))
        self._details.append(self._sentence())

    def _others_are_well(self, statuses: Mapping[str, Mapping[str, object] | None]) -> bool:
        self._before = _version_of(statuses.get(self._node))  # of a look in which all answer
        stepped = [node for node in statuses if node in self._deployed.run_in]
        return all(status is not None for status in statuses.values()) and all(
            has_synced(node, statuses) for node in stepped
        )

    async def _start(self) -> bool:
        cluster = self._deployed.cluster
        if not isinstance(cluster, ExchangesVersions):
            raise ClusterError(
                f"--cluster {self._deployed.plan.cluster} cannot start a node in another version"
            )
        try:
            self._refusal = await cluster.start_in(self._node, self._wanted, OTHER[self._wanted])
        except ClusterError as error:
            self._details.append(error.message)
            self._deployed.refused_versions.append(self._node)
            return False
        if self._refusal:
            self._deployed.refused_versions.append(self._node)
        return not self._refusal

    def _sentence(self) -> str:
        before = self._before or "a version that it does not tell"
        if self._refusal:
            given = self._deployed.plan.node_to if self._wanted == TO else self._deployed.plan.node_from
            name = Path(given).name if given else "the version of this checkout"
            return (
                f"{self._node} does not start in {name} on the files of {before}: {self._refusal}; "
                f"it goes on in {before}"
            )
        if not self._is_back:
            return f"{self._node} has not caught up"
        return f"{self._node} ran {before}, and runs {self._after or 'one that it does not tell'}"

    async def end(self) -> Evidence:
        deployed = self._deployed
        heal_asked_ns = deployed.cluster.now_ns()
        took_effect = self._is_back and bool(self._after) and self._after != self._before
        if took_effect and deployed.reported_versions.setdefault(self._wanted, self._after) != self._after:
            self._details.append(
                f"other nodes run {deployed.reported_versions[self._wanted]} after the same step"
            )
            self._is_back = False
        is_well = await deployed.until(
            lambda statuses: all(has_synced(node, statuses) for node in statuses), deployed.deadline_ns()
        )
        return Evidence(
            took_effect=took_effect,
            asked_ns=self._asked_ns,
            first_effect_ns=self._ended_ns,
            all_in_effect_ns=self._ended_ns,
            heal_asked_ns=heal_asked_ns,
            last_effect_ns=deployed.cluster.now_ns(),
            healed=is_well and (self._is_back or bool(self._refusal)),
            counters={"ended": int(self._ended_ns is not None), "refused_to_start": int(bool(self._refusal))},
            detail="; ".join(self._details),
        )


def _version_of(status: Mapping[str, object] | None) -> str:
    version = None if status is None else status.get("version")
    return version if isinstance(version, str) else ""
