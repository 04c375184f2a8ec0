"""The strongest model that a history satisfied, from the verdicts on it and a few more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy

from checkers import linearizable, sessions
from checkers.domain import written
from checkers.history.columns import Columns
from checkers.history.history import History
from checkers.history.line_kernels import OK
from checkers.history.value_order import odd_keys
from checkers.limits import NO_LIMITS, Limits, given, within
from checkers.models import MODELS, PROMISES, STRICT_SERIALIZABLE, Model
from checkers.verdict import Result, Verdict, run_safely

MEMORY_MIB = 1024.0  # for a search, by default


def observes(history: History, asked: bool | None) -> bool:
    """Whether refusals of a history saw something: as `asked`, else as its origin has it."""
    return history.failed_cas_observes if asked is None else asked


def within_memory(limits: Limits) -> AbstractContextManager[None]:
    """These limits, and MEMORY_MIB where nobody has said how much memory there is."""
    is_open = limits.memory_mib is None and given().memory_mib is None
    return within(replace(limits, memory_mib=MEMORY_MIB) if is_open else limits)


def linearizable_by(
    model: Model, history: History, failed_cas_observes: bool, reads: sessions.Reads
) -> Verdict:
    return run_safely(
        linearizable.check,
        history,
        name="linearizable",
        model=model.linearizable,
        failed_cas_observes=failed_cas_observes,
        reads=reads,
        longest_prefixes=True,
    )


def weaker_by(history: History, reads: sessions.Reads) -> list[Verdict]:
    """One verdict for each session guarantee, and how stale reads were; coherence implies the rest."""

    def kept(guarantee: str) -> Verdict:
        return run_safely(
            sessions.check,
            history,
            name=guarantee,
            guarantee=guarantee,
            reads=reads,
        )

    first, *others = sessions.GUARANTEES
    verdicts = [kept(first)]
    if verdicts[0].result != "valid":
        verdicts += [kept(other) for other in others]
    return [*verdicts, run_safely(sessions.check_staleness, history, name=sessions.STALENESS, reads=reads)]


def written_by(model: Model, history: History) -> Verdict:
    """Whether what was read was written, which every model promises."""
    assert model.linearizable is not None
    return run_safely(written.check, history, name=written.NAME, model=model.linearizable)


def strongest(
    history: History,
    model: str = "register",
    verdicts: Iterable[Verdict] = (),
    limits: Limits = NO_LIMITS,
    failed_cas_observes: bool | None = None,
) -> str | None:
    """The strongest model that the history satisfied; "none" if it satisfied none. None if nothing can be said of it.

    Of registers: that all reads but dirty ones satisfied, wherever they were served. `verdicts` are taken where they
    already say it.
    """
    with within_memory(limits):
        return satisfied(history, model, verdicts, observes(history, failed_cas_observes))


def satisfied(
    history: History, model: str, verdicts: Iterable[Verdict], failed_cas_observes: bool
) -> str | None:
    """The same within the limits of the caller."""
    asked = MODELS[model]
    known = {verdict.checker: verdict for verdict in verdicts}
    if asked.transactional is not None:
        if written.NAME in known and known[written.NAME].result == "invalid":
            return "none"
        if (verdict := known.get("transactional")) is not None:
            held = strongest_isolation(verdict)
            others = verdict.details.get("reads_not_judged", ())
            if held is None or _are_dirty(others):
                return held
        return isolation_of(history, asked.transactional)
    if asked.linearizable is None:
        return None
    left_out = known["linearizable"].details.get("reads_not_judged", {}) if "linearizable" in known else None
    is_open = left_out is None or not _are_dirty(left_out)
    if not asked.weaker:
        if is_open or known["linearizable"].result != "valid":
            return None
        # Linearizability of a set does not look at how often an element is shown.
        return (
            "none"
            if any(known[name].result == "invalid" for name in (*asked.domain, written.NAME) if name in known)
            else "linearizable"
        )
    if is_open:
        satisfied = strongest_of(_results_everywhere(asked, history, failed_cas_observes))
    else:
        satisfied = strongest_of({name: verdict.result for name, verdict in known.items()})
    if satisfied in ("linearizable", "none"):
        return satisfied
    least = known.get(written.NAME) or written_by(asked, history)
    return "none" if least.result == "invalid" else satisfied


def _are_dirty(classes: Iterable[str]) -> bool:
    """Of the classes of reads that a check left out: "MODE at ROLE". A store names the modes of its reads itself."""
    return all(words.partition(" at ")[0] == "dirty" for words in classes)


def isolation_of(history: History, workload: Any) -> str | None:
    """The strongest isolation models, by each client's order and by real time, of all transactions but those that only
    read, dirtily."""
    # Here: most histories need neither.
    from checkers import transactional
    from checkers.transactional.chosen import selected

    chosen = selected(history, sessions.all_but_dirty)
    return strongest_isolation(transactional.check(chosen, workload=workload, model=STRICT_SERIALIZABLE))


def strongest_isolation(verdict: Verdict) -> str | None:
    """The strongest isolation models that are proved, and those that are not, but nothing refutes; None: not judged."""
    if "held" not in verdict.details or verdict.details["vacuous"]:
        return None
    held, left = (" and ".join(verdict.details[name]) for name in ("held", "not_refuted"))
    if not left:
        return held or "none"
    return f"{held or 'none proved'} ({left} not refuted)"


def _results_everywhere(model: Model, history: History, failed_cas_observes: bool) -> dict[str, Result]:
    """Results by model, over all reads but dirty ones. A read that surely is stale spares the search."""
    reads, in_doubt = sessions.all_but_dirty, history
    first = None
    if history.start.is_plain:
        # An order of all spares the rest, which needs objects; that of a key spares the key.
        first = linearizable_by(model, history, failed_cas_observes, reads)
        if first.result == "valid":
            return {first.checker: first.result}
        in_doubt = _only_in_doubt(history, history.columns, first)
    weaker = {verdict.checker: verdict for verdict in weaker_by(in_doubt, reads)}
    results = {name: verdict.result for name, verdict in weaker.items()}
    if results["coherence"] == "invalid" or weaker[sessions.STALENESS].details.get("stale_reads"):
        return {"linearizable": "invalid", **results}
    first = first or linearizable_by(model, history, failed_cas_observes, reads)
    return {first.checker: first.result, **({} if first.result == "valid" else results)}


def _only_in_doubt(history: History, columns: Columns, verdict: Verdict) -> History:
    """The operations on keys that are not known to be linearizable: the other keys satisfy all weaker models, too.

    Also those on one key with a value that was written twice, if there is one: no weaker model judges such a key.
    """
    reads = numpy.flatnonzero((columns.f == columns.code("read")) & (columns.type == OK))
    if "keys_invalid" not in verdict.details or odd_keys(columns, reads).any():
        return history
    names = {*verdict.details["keys_invalid"], *verdict.details["keys_undecided"]}
    names |= {str(columns.words[code]) for code in sessions.repeated_keys(columns)[:1].tolist()}
    return history.only({key for key in columns.words if str(key) in names})


def strongest_of(results: Mapping[str, Result]) -> str:
    """The strongest name in a table of results by model; several, joined by "and", if none implies another."""
    undecided = [name for name in PROMISES if results.get(name) == "unknown"]
    if results.get("monotonic-reads") == "invalid":  # the rest is judged through readers that go forward
        undecided = [name for name in undecided if name not in sessions.THROUGH_READERS]
    satisfied = [name for name in PROMISES if results.get(name) == "valid"]
    implied = {weaker for name in satisfied for weaker in PROMISES[name][1:]}
    names = " and ".join(name for name in satisfied if name not in implied)
    if not names:
        return "not decided" if undecided else "none"
    return f"{names} ({', '.join(undecided)} not decided)" if undecided else names
