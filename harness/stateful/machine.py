"""`ClusterMachine`: a state machine of Hypothesis over the nodes of any system that the simulator runs.

Rules are the operations of clients, faults, the ends of faults, and time that passes. The checkers are the invariants:
those of single keys and crashes after every `check_every` steps, all of them, with the logs of the nodes, at the end.
Hypothesis draws the steps, and shrinks those that end in an anomaly to the few that are needed. Each step draws one or
two small values, and every fault ends in a step of its own, so that each can be left out.

Nothing but the steps decides a run: the simulator has its own time, and no step sleeps.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, islice
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import event, note
from hypothesis import strategies as st
from hypothesis.errors import StopTest
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    precondition,
    rule,
)

from harness.campaigns.hunt import try_seed
from harness.clients.operations import Completion
from harness.errors import WrongUse
from harness.faults.cut import between
from harness.faults.fault import Does
from harness.faults.table import can_do, why_not_to
from harness.plan.plan import to_json
from harness.stateful.stepped import Stepped
from harness.workloads.generators import Context, Draft, Later
from harness.workloads.generators.generator import Value

SECONDS_NS = 1_000_000_000
FAULTS_AT_ONCE = 2
CLOCKS = {
    "ahead": (3_600 * SECONDS_NS, 0),
    "behind": (-3_600 * SECONDS_NS, 0),
    "fast": (0, 50_000),
    "slow": (0, -50_000),
}
"""Jump in nanoseconds, drift in millionths."""
DRAWN = 64
"""From so many random numbers the operations of a workload are drawn: small, so that they shrink."""
TRIED_WITHOUT_SUCCESS = 10
"""Examples; then the machine fails."""

_machine: st.SearchStrategy[Any] = st.runner()


class Anomaly(AssertionError):
    """The run breaks what the system promises."""


class NothingSucceeds(Exception):
    """No operation of the first examples succeeded: the machine tests nothing."""


class ClusterMachine(RuleBasedStateMachine):
    """A subclass names what is under test, and may add rules and invariants of its own.

    It sets `plan`; `Name.TestCase` is the test. Own rules use `ask`, `begin`, `wait`, `say` and `run`.
    """

    plan: ClassVar[Mapping[str, Any]] = {}
    """Fields of a plan by name (`system`, `workload`, `nodes`, `bugs`, `seed`, options of the system)."""
    faults: ClassVar[tuple[str, ...]] = ("partition", "crash", "power", "pause", "clock", "slow")
    """The rules of faults that are used, where the system can do them."""
    pace_ms: ClassVar[float] = 20.0
    """How long a step waits for an answer, or for healing, before the next step: later ones overlap with it."""
    check_every: ClassVar[int] = 25
    """Steps between two looks of the checkers that can judge a run which goes on; 0: only at the end."""
    keep: ClassVar[Path | None] = None
    """The folder for the plans of failures, for `qsync run --plan`; the last plan that is written is the smallest."""

    _without_success: ClassVar[dict[type, int]] = {}
    """Machine → examples until now, as long as no operation of one succeeded; −1: one has succeeded."""

    started = Bundle("faults")

    def __init__(self) -> None:
        super().__init__()
        self.run = Stepped(**self.plan)
        """The run: its time, its history, its cluster, and its verdict."""
        self.nodes = self.run.plan.node_names
        workload = self.run.parts.workload
        self._generator = workload.generator(self.run.plan, 0)
        self._steps = -1  # Hypothesis looks at the invariants once before the first step
        self._is_over = False
        self._began_ns = self.run.now_ns()

    # ---- for rules of one's own

    def ask(
        self,
        f: str,
        key: str | None = None,
        value: Value = None,
        *,
        node: str = "",
        mode: str | None = None,
        patience_ms: float | None = None,
    ) -> Completion | None:
        """An operation of the workload at a node ("": the leader, or the first node), and its answer; None if there is
        none within `patience_ms` (`pace_ms` if nothing is said): then it may come in a later step.
        """
        patience_ms = self.pace_ms if patience_ms is None else patience_ms
        node = node or self.run.first
        answer = self.run.ask(f, key, value, node=node, mode=mode, patience_ms=patience_ms)
        operation = " ".join(str(word) for word in (f, key, value, mode) if word is not None)
        self.say(f"{operation} at {node}: {'no answer yet' if answer is None else _shown(answer)}")
        return answer

    def begin(self, name: str, does: Does, **fields: Any) -> Any:
        """Begin a fault with these fields of `harness.faults.fault.Fault`. A rule returns the result to the bundle of
        faults, from which `recover` takes it. `multiple()` if an active fault excludes it, or if `FAULTS_AT_ONCE` are
        active."""
        number = self.run.begin(name, does, **fields) if len(self.run.active) < FAULTS_AT_ONCE else None
        if number is None:
            self.say(f"no {name}: not beside the faults at work")
            return multiple()
        self.run.run_for(self.pace_ms)
        return number

    def wait(self, milliseconds: float) -> None:
        """Let virtual time pass."""
        self.run.run_for(milliseconds)

    def say(self, text: str) -> None:
        """A line beside the steps of a failure."""
        note(f"  {(self.run.now_ns() - self._began_ns) / SECONDS_NS:8.3f} s  {text}")

    def can(self, fault: str, does: Does) -> bool:
        """Whether the subclass wants the rule, and the nodes can do it."""
        plan, system = self.run.plan, self.run.parts.system
        return (
            fault in self.faults
            and does in can_do("sim")
            and not why_not_to(does, "sim", system.abilities, plan.system)
        )

    def _drafted(self, number: int) -> Draft:
        """The operation that this number draws. It depends on those drawn before: a workload goes on to new keys."""
        chance = random.Random(number)
        time_ns = self.run.now_ns()
        while True:
            answer, self._generator = self._generator.next(Context(0, time_ns, chance))
            match answer:
                case Draft():
                    replicas = self.nodes[1:] or self.nodes
                    named = {"@owner": "", "@replica": chance.choice(replicas)}
                    return Draft(
                        answer.f, answer.key, answer.value, named.get(answer.node, answer.node), answer.mode
                    )
                case Later(later_ns):
                    time_ns = max(time_ns, later_ns)
                case None:
                    raise WrongUse("the workload has no more operations")

    # ---- clients

    @rule(number=st.integers(0, DRAWN - 1))
    def operation(self, number: int) -> None:
        """One operation of the workload; the number decides which of those that it offers now."""
        asked = self._drafted(number)
        self.ask(asked.f, asked.key, asked.value, node=asked.node, mode=asked.mode)

    @rule(count=st.integers(2, 8), first=st.integers(0, DRAWN - 1))
    def burst(self, count: int, first: int) -> None:
        """Operations at the same time."""
        for number in range(first, first + count):
            asked = self._drafted(number)
            self.ask(asked.f, asked.key, asked.value, node=asked.node, mode=asked.mode, patience_ms=0.0)
        self.wait(self.pace_ms)

    @rule(milliseconds=st.sampled_from((100, 500, 2_000)))
    def time_passes(self, milliseconds: int) -> None:
        """Long enough for time-outs and elections."""
        self.wait(milliseconds)

    # ---- faults

    @precondition(lambda self: len(self.nodes) > 1 and self.can("partition", "cut"))
    @rule(
        target=started,
        group=_machine.flatmap(lambda machine: st.sampled_from(groups(machine.nodes))),
        direction=st.sampled_from(("both", "to", "from")),
    )
    def partition(self, group: tuple[str, ...], direction: str) -> Any:
        """No message passes between the group and the other nodes; "to": none to the group, "from": none from it."""
        others = [node for node in self.nodes if node not in group]
        kept = {"both": (0, 1), "from": (0,), "to": (1,)}[direction]
        links = tuple(link for number, link in enumerate(between(group, others)) if number % 2 in kept)
        return self.begin("partition", "cut", links=links)

    @precondition(lambda self: self.can("crash", "kill"))
    @rule(target=started, node=_machine.flatmap(lambda machine: st.sampled_from(machine.nodes)))
    def crash(self, node: str) -> Any:
        """Killed; it restarts when the fault ends."""
        return self.begin("kill", "kill", nodes=(node,))

    @precondition(lambda self: self.can("power", "power"))
    @rule(target=started, node=_machine.flatmap(lambda machine: st.sampled_from(machine.nodes)))
    def lose_power(self, node: str) -> Any:
        """The node loses all unsynced bytes, and restarts when the fault ends."""
        return self.begin("power", "power", nodes=(node,))

    @precondition(lambda self: self.can("pause", "pause"))
    @rule(target=started, node=_machine.flatmap(lambda machine: st.sampled_from(machine.nodes)))
    def pause(self, node: str) -> Any:
        """Stopped until the fault ends."""
        return self.begin("pause", "pause", nodes=(node,))

    @precondition(lambda self: self.can("clock", "clock"))
    @rule(
        target=started,
        node=_machine.flatmap(lambda machine: st.sampled_from(machine.nodes)),
        to=st.sampled_from(("ahead", "behind", "fast", "slow")),
    )
    def skew_clock(self, node: str, to: str) -> Any:
        """Its wall clock jumps by an hour, or its monotonic clock drifts by 5 %."""
        jump_ns, drift_ppm = CLOCKS[to]
        return self.begin("clock", "clock", nodes=(node,), jump_ns=jump_ns, drift_ppm=drift_ppm)

    @precondition(lambda self: len(self.nodes) > 1 and self.can("slow", "slow"))
    @rule(target=started, node=_machine.flatmap(lambda machine: st.sampled_from(machine.nodes)))
    def slow_links(self, node: str) -> Any:
        """All its links are slow."""
        others = [other for other in self.nodes if other != node]
        return self.begin("slow", "slow", links=between([node], others), delay_ns=50_000_000)

    # Named so that it comes behind `operation`, by which Hypothesis sorts: its first choice should always be possible.
    @rule(fault=consumes(started))
    def recover(self, fault: int) -> None:
        """Heal the partition, restart the node, let it go on, set its clock right."""
        self.run.end(fault, patience_ms=self.pace_ms)

    # ---- the checkers

    @precondition(lambda self: self._is_due())
    @invariant()
    def nothing_is_violated(self) -> None:
        """Checks that can judge an unfinished run."""
        if breach := self.run.violated():
            self._is_over = True
            raise Anomaly(breach)

    def _is_due(self) -> bool:
        self._steps += 1
        return self._steps > 0 and self.check_every > 0 and self._steps % self.check_every == 0

    def teardown(self) -> None:
        """The end of the run, and its verdict by all that the system promises. Raises Anomaly."""
        if self._is_over or isinstance(sys.exception(), StopTest):
            self.run.close()
            return
        self._is_over = True
        verdict = self.run.finish()
        event(f"outcome: {verdict['outcome']}")
        self._count_successes(verdict["evidence"]["ok"])
        if verdict["outcome"] == "anomaly":
            raise Anomaly(self._failure_text(verdict))

    def _count_successes(self, ok: int) -> None:
        tried = self._without_success.get(type(self), 0)
        if ok:
            self._without_success[type(self)] = -1
        elif tried >= 0:
            tried += 1
            self._without_success[type(self)] = tried
            if tried >= TRIED_WITHOUT_SUCCESS:
                raise NothingSucceeds(f"no operation of {tried} examples succeeded: nothing is tested")

    def _failure_text(self, verdict: Mapping[str, Any]) -> str:
        wrong = [check for check in verdict["checks"] if check["checker"] in verdict["violations"]]
        lines = [verdict["sentence"], f"violated: {', '.join(verdict['violations'])}"]
        lines += [f"  {line}" for check in wrong[:1] for line in check["witnesses"][0]["explanation"]]
        return "\n".join((*lines, *self._kept_plan()))

    def _kept_plan(self) -> Iterator[str]:
        """Write the steps as a plan to a file. Its workers wait by themselves, so the run may take another course."""
        if self.keep is None:
            return
        plan = self.run.drawn
        self.keep.mkdir(parents=True, exist_ok=True)
        path = self.keep / f"{type(self).__name__}.json"
        path.write_bytes(to_json(plan))
        shows = try_seed(plan).outcome == "anomaly"
        yield f"{'again   ' if shows else 'the same steps, without the anomaly: '}./qsync run --plan {path}"


def groups(nodes: Sequence[str]) -> list[tuple[str, ...]]:
    """One side of each partition in two, the smaller ones first; the first 64."""
    sizes = range(1, len(nodes) // 2 + 1)
    return list(islice((group for size in sizes for group in combinations(nodes, size)), 64))


def _shown(done: Completion) -> str:
    """`ok 3`, `ok`, `fail mismatch`."""
    return f"{done.type} {done.error or ('' if done.value is None else done.value)}".rstrip()
