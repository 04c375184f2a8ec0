"""The words of a verdict: its sentence, and the line that repeats the run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from checkers.history.values import many
from checkers.verdict import Verdict
from harness.judge.causes import TermOf, headline, no_term
from harness.judge.outcomes import Outcome
from harness.plan.plan import Options, Plan
from harness.systems.long_options import long_options
from harness.workloads import workload_of
from harness.workloads.workload import SHARES

CHECKS_MAX = 4
"""The most checks that a sentence names."""


def sentence(
    outcome: Outcome,
    verdicts: Sequence[Verdict],
    evidence: dict[str, Any],
    left_out: Sequence[str] = (),
    term_of: TermOf = no_term,
) -> str:
    """`left_out`: the parts that the user excluded; they are named first."""
    text = _sentence(outcome, verdicts, evidence, term_of)
    if not left_out:
        return text
    is_all_valid = all(verdict.result == "valid" for verdict in verdicts)
    rest = "" if outcome == "unknown" and is_all_valid else f" {text}"
    return f"Not all was judged: {'; '.join(left_out)}.{rest or ' Nothing wrong was found in the rest.'}"


def _sentence(
    outcome: Outcome, verdicts: Sequence[Verdict], evidence: dict[str, Any], term_of: TermOf
) -> str:
    match outcome:
        case "anomaly":
            return headline(
                {"checks": [breached.to_json() for breached in verdicts if breached.result == "invalid"]},
                term_of,
            )
        case "inconclusive":
            return incomplete("run", evidence["missing"][:3], verdicts)
        case "unknown":
            return not_decided(verdicts)
        case "valid":
            in_effect = sum(1 for fault in evidence["faults"] if fault["took_effect"])
            under = (
                f"{evidence['ok_under_fault']:,} of them during {many(in_effect, 'fault')} that took effect"
            )
            return (
                f"All that clients saw was allowed: {evidence['ok']:,} operations succeeded, "
                f"{under if evidence['faults'] else 'with no fault injected'}."
            )


def not_decided(verdicts: Sequence[Verdict]) -> str:
    """The sentence of a verdict that is unknown: each reason once, with the names of its checks behind it."""
    checks: dict[str, list[str]] = {}
    for verdict in verdicts:
        if verdict.result == "unknown":
            checks.setdefault(verdict.summary, []).append(verdict.checker)
    reasons = (
        f"{first}: {why}" + (f" (also {_named(rest)})" if rest else "")
        for why, (first, *rest) in checks.items()
    )
    return f"Not decided: {'; '.join(reasons)}."


def _named(checks: Sequence[str]) -> str:
    return ", ".join(checks[:CHECKS_MAX]) + (", …" if len(checks) > CHECKS_MAX else "")


def incomplete(subject: str, missing: Sequence[str], verdicts: Sequence[Verdict]) -> str:
    """The sentence of an inconclusive run or file, with the names of checks that are valid all the same."""
    decided = [
        verdict.checker
        for verdict in verdicts
        if verdict.result == "valid" and not verdict.details.get("vacuous")
    ]
    lacks = "; ".join(missing)
    if not decided:
        return f"Nothing can be said of this {subject}: {lacks}."
    return f"The evidence of this {subject} is incomplete: {lacks}. What was judged is allowed: {_named(decided)}."


_NAMED = {
    "name": "--name",
    "system": "--system",
    "cluster": "--cluster",
    "workload": "--workload",
    "nodes": "--nodes",
    "time_limit_s": "--time-limit",
    "rate": "--rate",
    "workers": "--workers",
    "request_timeout_s": "--request-timeout",
    "settle_timeout_s": "--settle-timeout",
    "replica_reads": "--replica-reads",
    "overlap": "--overlap",
    "calm_s": "--calm",
    "lasting_s": "--lasting",
    "node_cpus": "--node-cpus",
    "node_memory_mib": "--node-memory",
    "least_ok": "--least-ok",
    "stray_writes": "--stray-writes",
    "roaming": "--roaming",
    "failing": "--failing",
    "write_once": "--write-once",
    "deletes": "--deletes",
    "promise": "--promise",
    "base_port": "--base-port",
    "inventory": "--inventory",
    "node_from": "--node-from",
    "node_to": "--node-to",
    "disk": "--disk",
}
_OF_CLUSTER = {"base_port": "local", "accept_new_host_keys": "ssh"}


def idle_fields(plan: Plan) -> dict[str, str]:
    """Fields that do nothing beside the plan's workload or cluster: each with the reason."""
    idle = {
        name: f"the workload {plan.workload} draws nothing by it"
        for name in SHARES
        if name not in workload_of(plan.workload).shares
    }
    return idle | {
        name: f"it is for --cluster {cluster}, got --cluster {plan.cluster}"
        for name, cluster in _OF_CLUSTER.items()
        if cluster != plan.cluster
    }


def repeat_line(plan: Plan, plan_file: Path | None = None) -> str:
    """The command that runs the same plan again; a drawn-out plan needs its file."""
    if plan.drawn is not None:
        return f"./qsync run --plan {shlex.quote(str(plan_file or 'plan.json'))}"
    default = Plan()
    words = [f"./qsync run --seed {plan.seed}"]
    idle = idle_fields(plan)
    for field, option in _NAMED.items():
        value = getattr(plan, field)
        if value != getattr(default, field) and field not in idle:
            words.append(f"{option} {shlex.quote(shortest(value))}")
    if plan.faults != default.faults:
        words.append(f"--faults {','.join(plan.faults) or 'none'}")
    words.extend(f"--bug {bug}" for bug in plan.bugs)
    words.extend(_of_system(plan.options))
    if plan.accept_new_host_keys and "accept_new_host_keys" not in idle:
        words.append("--accept-new-host-keys")
    return " ".join(words)


def _of_system(options: Options) -> Iterator[str]:
    usual = type(options)()
    for option in long_options(type(options)):
        value = getattr(options, option.field)
        if value != getattr(usual, option.field):
            for item in value if option.is_list else (value,):
                yield f"{option.name} {shlex.quote(shortest(item))}"


def shortest(value: object) -> str:
    """20 rather than 20.0, but never another number."""
    if isinstance(value, float) and float(f"{value:g}") == value:
        return f"{value:g}"
    return str(value)
