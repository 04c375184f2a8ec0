"""Judges cuts: `check(Given(…))` gives a judgement for each level and cut."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from checkers.cuts import (
    acknowledged,
    closure,
    consequences,
    finish,
    form,
    messages,
    picture,
    proofs,
    transactions,
    witnesses,
)
from checkers.cuts.logs import FINISH, START, Cut, Logs, Operation
from checkers.cuts.membership import whole_cuts
from checkers.cuts.report import LEVELS, Judgement, Level, Report, skipped
from checkers.cuts.state import Invariant, Restored
from checkers.cuts.state import judge as judge_state
from checkers.cuts.state import not_judged as state_not_judged
from checkers.cuts.trace import RECEIVE, Trace, described, name_of
from checkers.cuts.transactions import Members
from checkers.verdict import Witness

Proof = Mapping[str, Any]
UNFINISHED = "the cut did not finish"
PICTURES_MAX = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The material to judge by; None or nothing: levels that need it are not judged.

    cuts          in the order of their series
    baseline      the servers that a cut must finish on
    restored      by cut
    invariant     of every restored state
    strict_sets   FINISH names only transactions with a side other than that of their position (see `form`)
    """

    cuts: Sequence[Cut]
    baseline: Sequence[str] = ()
    trace: Trace | None = None
    logs: Logs | None = None
    operations: Sequence[Operation] | None = None
    restored: Mapping[str, Restored] = field(default_factory=dict)
    invariant: Invariant | None = None
    strict_sets: bool = False


def check(given: Given) -> Report:
    """Every level for every cut. Raises ValueError if two cuts have one id."""
    return _Checker(given).report()


def sideless(given: Given, cut: Cut, trace: Trace) -> frozenset[str]:
    """The nodes that claim no side of this cut: the clients, if it has failed.

    Every log of a failed cut may still have its FINISH, because a server learned of the failure late. Nodes no longer
    mark messages for such a cut. So a client that learns of the cut late changes its colour after messages from
    outside. It has no log for which that would matter.
    """
    has_failed = "failed" in cut.outcomes.values() and bool(given.baseline)
    return frozenset(trace.nodes) - frozenset(given.baseline) if has_failed else frozenset()


class _Checker:
    def __init__(self, given: Given) -> None:
        ids = [cut.id for cut in given.cuts]
        if len(set(ids)) < len(ids):
            raise ValueError("expected cuts with different ids")
        self.given = given
        self.ids = ids
        logs = given.logs
        self.whole = [False] * len(ids) if logs is None else whole_cuts(logs, ids, given.baseline)
        self.ended = [
            finish.ended(cut, logs, given.baseline, is_whole=is_whole)
            for cut, is_whole in zip(given.cuts, self.whole, strict=True)
        ]
        self.judged_cuts = [cut for cut, is_whole in zip(ids, self.whole, strict=True) if is_whole]
        self.members: Members | None = None
        if logs is not None and self.judged_cuts:
            self.members = transactions.members(logs, self.judged_cuts, given.baseline)
        self.messages: messages.Messages | None = None
        self.events = {name_of(operation.xid): operation.events for operation in given.operations or ()}
        self.breaches = [] if logs is None else [*self._breaches(logs)]
        self.notes: list[str] = []

    def report(self) -> Report:
        judgements: dict[Level, tuple[Judgement, ...]] = {
            "messages": tuple(self._messages()),  # first: other levels read `self.messages`, which it sets
            "transactions": tuple(self._transactions()),
            "form": tuple(self._form()),
            "closure": tuple(self._closure()),
            "external-causality": tuple(self._external()),
            "acknowledged": tuple(self._acknowledged()),
            "state": tuple(self._state()),
            "finish": tuple(self._finish()),
        }
        assert judgements.keys() == set(LEVELS)
        reasons = consequences.placeless(self.ids, self.breaches, self.given.trace, self.messages)
        apart = {
            level: tuple(
                _consequence(level, judgement.cut, reasons[judgement.cut])
                if level != "form" and judgement.result == "invalid" and judgement.cut in reasons
                else judgement
                for judgement in of_level
            )
            for level, of_level in judgements.items()
        }
        return Report(
            cuts=tuple(self.ids), judgements=apart, notes=tuple(self.notes), pictures=self._pictures(apart)
        )

    def _pictures(self, judgements: Mapping[Level, Sequence[Judgement]]) -> dict[str, picture.Picture]:
        """By cut, of the first ones. Cuts that a level calls invalid come first."""
        wrong = dict[str, None]()
        for level in judgements.values():
            wrong.update({each.cut: None for each in level if each.result == "invalid"})
        chosen = (*wrong, *(cut for cut in self.judged_cuts if cut not in wrong))[:PICTURES_MAX]
        judged = self.messages
        drawn = {cut: None if judged is None else picture.of_cut(judged.links, cut) for cut in chosen}
        return {cut: each for cut, each in drawn.items() if each is not None}

    def _breaches(self, logs: Logs) -> Iterable[form.Breach]:
        yield from form.breaches(logs, self.given.cuts, self.whole, strict_sets=self.given.strict_sets)
        if self.members is not None:
            yield from form.shrinking(logs, self.judged_cuts, self.members.of_logs)

    def _messages(self) -> Iterable[Judgement]:
        trace = self.given.trace
        if trace is None:
            yield from (skipped("messages", cut, "there is no trace", lacks=True) for cut in self.ids)
            return
        judged = self.messages = messages.judge(
            trace,
            self.ids,
            [cut.asked_ns for cut in self.given.cuts],
            [cut.ended_ns for cut in self.given.cuts],
            [sideless(self.given, cut, trace) for cut in self.given.cuts],
        )
        if judged.broken:
            self.notes.append(f"the recording is broken: {judged.broken}")
        elif not judged.is_cross_checked and self.ids:
            self.notes.append("the trace is too long to be checked a second time by vector clocks")
        is_any_received = bool((trace.kind == RECEIVE).any())
        for place, cut in enumerate(self.ids):
            yield self._message(trace, judged, place, cut, is_any_received=is_any_received)

    def _message(
        self, trace: Trace, judged: messages.Messages, place: int, cut: str, *, is_any_received: bool
    ) -> Judgement:
        if self.ended[place].is_finished is False:
            return skipped("messages", cut, UNFINISHED, lacks=False)
        if judged.broken:
            return _unknown("messages", cut, f"the recording is broken: {judged.broken}")
        if not judged.marked[place].any():
            return skipped("messages", cut, "the trace has no colour change of this cut", lacks=True)
        crossing = judged.crossings[place]
        if crossing is not None:
            return _proved(
                "messages",
                cut,
                witnesses.of_crossing(trace, cut, crossing),
                proofs.message(trace, judged, place),
                count=int(judged.counts[place]),
                shown=picture.of_crossing(judged.links, cut, crossing),
            )
        if judged.unknown[place]:
            return _unknown("messages", cut, judged.unknown[place])
        if not is_any_received:
            return skipped("messages", cut, "no message was received", lacks=False)
        summary = "every message that was received inside was sent inside"
        return _held("messages", cut, summary, proofs.frontier(trace, judged, place))

    def _over_members(
        self, level: Level, *, needs: str = ""
    ) -> tuple[Members | None, list[tuple[str, int, Judgement | None]]]:
        """The members, and by cut its place among the judged ones or why it is not judged."""
        rows: list[tuple[str, int, Judgement | None]] = []
        for place, cut in enumerate(self.ids):
            why: Judgement | None = None
            if self.given.logs is None:
                why = skipped(level, cut, "there are no logs", lacks=True)
            elif not self.given.baseline:
                why = skipped(level, cut, "it is not known which servers are the baseline", lacks=True)
            elif not self.whole[place]:
                ended = self.ended[place]
                why = skipped(level, cut, ended.missing or UNFINISHED, lacks=bool(ended.missing))
            elif needs:
                why = skipped(level, cut, needs, lacks=True)
            rows.append((cut, self.judged_cuts.index(cut) if cut in self.judged_cuts else -1, why))
        return self.members, rows

    def _transactions(self) -> Iterable[Judgement]:
        members, rows = self._over_members("transactions")
        if members is not None:
            counts = transactions.counted(members.torn, len(members.cuts))
        for cut, place, why in rows:
            if why is not None or members is None:
                assert why is not None
                yield why
            elif not len(members.sums):
                yield skipped("transactions", cut, "no transaction was committed", lacks=False)
            elif not counts[place]:
                summary = "all participants agree on every transaction"
                yield _held("transactions", cut, summary, proofs.sides_held(members.logs, cut))
            else:
                yield self._torn(members, cut, place)

    def _torn(self, members: Members, cut: str, place: int) -> Judgement:
        """The judgement of a cut with torn transactions; it counts those that follow from no other finding."""
        logs = members.logs
        crossed: frozenset[str] = frozenset()
        if self.given.trace is not None and self.messages is not None and not self.messages.broken:
            crossed = self.messages.crossed(self.given.trace, self.ids.index(cut))
        named = consequences.named_by(cut, self.breaches, logs)
        torn = transactions.torn_by(members, place)
        reasons = [consequences.of_torn(logs.xids[xid], crossed, named) for xid in torn]
        own = [xid for xid, reason in zip(torn, reasons, strict=True) if not reason]
        if not own:
            return _consequence("transactions", cut, reasons[0])
        sides = transactions.sides(members, own[0], place)
        witness = self._of_client(witnesses.of_torn(logs, cut, own[0], sides), logs.xids[own[0]])
        proof, shown = proofs.torn(logs, own[0], sides), self._picture(cut, logs.xids[own[0]])
        return _proved("transactions", cut, witness, proof, count=len(own), shown=shown)

    def _of_client(self, witness: Witness, *xids: str) -> Witness:
        """The witness with the lines of the history in which clients asked for these transactions."""
        events = {event for xid in xids for event in self.events.get(xid, ())}
        return replace(witness, events=tuple(sorted(events))) if events else witness

    def _picture(self, cut: str, xid: str) -> picture.Picture | None:
        judged = self.messages
        return None if judged is None else picture.of_transaction(judged.links, cut, xid)

    def _form(self) -> Iterable[Judgement]:
        logs = self.given.logs
        by_cut: dict[str, list[Witness]] = {cut: [] for cut in self.ids}
        if logs is not None:
            for breach in self.breaches:
                records = tuple(logs.described(record) for record in breach.records)
                by_cut[breach.cut].append(
                    Witness(rule=breach.rule, summary=breach.summary, events=(), explanation=records)
                )
        if self.given.trace is not None and self.messages is not None:
            for cut, doubled in zip(self.ids, self.messages.doubled, strict=True):
                for node, row in doubled:
                    summary = f"{node} changed its colour for {cut} a second time"
                    where = (described(self.given.trace, row),)
                    by_cut[cut].append(
                        Witness(rule="second-colour-change", summary=summary, events=(), explanation=where)
                    )
        for cut, breaches in by_cut.items():
            if breaches:
                yield _invalid("form", cut, breaches)
            elif logs is None:
                yield skipped("form", cut, "there are no logs", lacks=True)
            elif not logs.of_cut(START, cut) and not logs.of_cut(FINISH, cut):
                yield skipped("form", cut, "no log has a record of this cut", lacks=False)
            else:
                yield _held("form", cut, "the records of the cut have their form")

    def _closure(self) -> Iterable[Judgement]:
        members, rows = self._over_members("closure")
        gaps = None
        if members is not None:
            gaps = closure.by_key(members)
        for cut, place, why in rows:
            if why is not None or members is None or gaps is None:
                assert why is not None
                yield why
                continue
            gap = gaps.first[place]
            if gap is not None:
                named = (members.logs.xids[gap.earlier], members.logs.xids[gap.later])
                witness = self._of_client(witnesses.of_gap(members.logs, cut, gap), *named)
                proof = proofs.gap(members.logs, gap)
                yield _proved("closure", cut, witness, proof, count=int(gaps.counts[place]))
            elif gaps.doubled:
                yield _unknown("closure", cut, gaps.doubled)
            elif not len(members.logs.writes):
                yield skipped("closure", cut, "the logs tell no versions", lacks=True)
            else:
                summary = "what is before the cut has all earlier versions of each key"
                yield _held("closure", cut, summary, proofs.sides_held(members.logs, cut))

    def _external(self) -> Iterable[Judgement]:
        operations = self.given.operations
        needs = "" if operations else "there are no operations"
        members, rows = self._over_members("external-causality", needs=needs)
        inversions = [] if members is None or operations is None else closure.external(members, operations)
        for cut, place, why in rows:
            if why is not None or not inversions:
                nothing = "no client knew of a transaction in the logs, or none asked for one"
                yield why or skipped("external-causality", cut, nothing, lacks=False)
                continue
            inversion = inversions[place]
            if inversion is None:
                summary = "what is before the cut has all that its clients knew"
                assert members is not None
                yield _held("external-causality", cut, summary, proofs.sides_held(members.logs, cut))
                continue
            named = (inversion.earlier.xid, inversion.later.xid)
            witness = self._of_client(witnesses.of_inversion(cut, inversion), *map(name_of, named))
            yield _proved("external-causality", cut, witness, proofs.inversion(inversion))

    def _acknowledged(self) -> Iterable[Judgement]:
        operations = self.given.operations
        needs = "" if operations else "there are no operations"
        members, rows = self._over_members("acknowledged", needs=needs)
        cuts = [cut for cut in self.given.cuts if cut.id in self.judged_cuts]
        wrong, missing = (
            ([], [])
            if members is None or operations is None
            else acknowledged.out_of_bounds(members, cuts, operations)
        )
        for cut, place, why in rows:
            if why is not None or not wrong:
                nothing = "no operation is of a transaction in the logs"
                yield why or skipped("acknowledged", cut, nothing, lacks=False)
                continue
            if (misplaced := wrong[place]) is not None:
                witness = self._of_client(
                    witnesses.of_bounds(cut, misplaced), name_of(misplaced.operation.xid)
                )
                yield _invalid("acknowledged", cut, [witness])
            elif missing[place]:
                yield skipped("acknowledged", cut, missing[place], lacks=True)
            else:
                summary = "what was acknowledged before is in it, and nothing that was invoked after its end"
                yield _held("acknowledged", cut, summary)

    def _state(self) -> Iterable[Judgement]:
        given = self.given
        for cut, ended in zip(self.ids, self.ended, strict=True):
            restored = given.restored.get(cut)
            if restored is None:
                # Where others were restored, a finished cut that was not may be one that cannot be.
                lacks = bool(given.restored) and ended.is_finished is True
                yield skipped("state", cut, "the cut was not restored", lacks=lacks)
                continue
            since = given.restored.get(restored.since)
            earlier = None if since is None else since.state
            apart = self._keys_of_torn(cut)
            wrong = [
                Witness(
                    rule=difference.rule, summary=difference.summary, events=(), explanation=difference.keys
                )
                for difference in judge_state(restored, given.invariant, earlier, apart)
            ]
            left_out = state_not_judged(restored, given.invariant, earlier)
            note = f" (not judged: {', '.join(left_out)})" if left_out else ""
            if wrong:
                yield _invalid("state", cut, wrong)
            elif apart and [*judge_state(restored, given.invariant, earlier)]:
                why = "only values that torn transactions wrote are wrong (level transactions)"
                yield _consequence("state", cut, why)
            elif {"differs-from-oracle", "replica-differs", "invariant", "differs-from-delta"} <= set(
                left_out
            ):
                yield skipped("state", cut, "there is nothing to compare the restored state with", lacks=True)
            else:
                yield _held("state", cut, f"the restored state is what it should be{note}")

    def _keys_of_torn(self, cut: str) -> frozenset[str]:
        if self.members is None or cut not in self.judged_cuts:
            return frozenset()
        torn = transactions.torn_by(self.members, self.judged_cuts.index(cut))
        return consequences.keys_of(self.members.logs, torn)

    def _finish(self) -> Iterable[Judgement]:
        for cut, ended in zip(self.given.cuts, self.ended, strict=True):
            if ended.breaches:
                how = "after a fault" if cut.causes else ""
                yield _invalid(
                    "finish",
                    cut.id,
                    [Witness(rule=rule, summary=why, events=(), how=how) for rule, why in ended.breaches],
                )
            elif ended.missing or ended.is_finished is None:
                why = ended.missing or "nothing says how the cut ended"
                yield skipped("finish", cut.id, why, lacks=True)
            else:
                cause = cut.causes[0] if cut.causes else ""
                summary = "it finished everywhere" if ended.is_finished else f"it did not finish: {cause}"
                yield _held("finish", cut.id, summary)


def _held(level: Level, cut: str, summary: str, proof: Proof | None = None) -> Judgement:
    return Judgement(level=level, cut=cut, result="valid", summary=summary, proof=proof)


def _proved(
    level: Level,
    cut: str,
    witness: Witness,
    proof: Proof,
    *,
    count: int = 1,
    shown: picture.Picture | None = None,
) -> Judgement:
    """Invalid, with a proof of this one of `count` violations, and its picture."""
    return replace(_invalid(level, cut, [witness]), count=count, proof=proof, picture=shown)


def _unknown(level: Level, cut: str, why: str) -> Judgement:
    return Judgement(level=level, cut=cut, result="unknown", summary=why)


def _consequence(level: Level, cut: str, why: str) -> Judgement:
    summary = f"not judged apart: {why}"
    return Judgement(level=level, cut=cut, result="unknown", summary=summary, standing="consequence")


def _invalid(level: Level, cut: str, violations: Sequence[Witness]) -> Judgement:
    return Judgement(
        level=level,
        cut=cut,
        result="invalid",
        summary=violations[0].summary,
        count=len(violations),
        witnesses=tuple(violations),
    )
