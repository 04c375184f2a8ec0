"""etcd's requests and watches against their definitions: `checkers.domain.etcd_kv`, `etcd_watch`, and their files."""

from __future__ import annotations

import copy
import dataclasses
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from checkers import by_model
from checkers.domain import etcd_kv, etcd_watch
from checkers.guessing import guess
from checkers.history import Event, Header, History, HistoryError, foreign
from checkers.history.etcd_records import ALL_CLIENTS, WATCH, Text, fnv_1a
from tests import examples
from tests.checkers.domain.etcd_twin import (
    Asked,
    Store,
    delete,
    drawn,
    get,
    has_order,
    history_of,
    put,
    step,
    txn,
)

REPORT = Path(__file__).parents[1] / "histories" / "etcd-report"
Json = dict[str, Any]


# ---- requests


@given(st.integers(0, 1 << 40), st.integers(2, 5))
@examples.up_to(1_500)
def test_requests_agree_with_the_search_of_all_orders(seed: int, count: int) -> None:
    """A false alarm, or a missed one: the replay by revisions would differ from the definition."""
    chance = random.Random(seed)
    requests = drawn(chance, count)
    wanted = has_order(requests)
    verdict = etcd_kv.check(history_of(requests))
    assert verdict.result in (("valid", "unknown") if wanted else ("invalid", "unknown"))
    assert verdict.result != "unknown" or "revision" in verdict.summary
    if wanted:
        part = [one for one in requests if chance.random() < 0.7]
        for some in (requests, part):
            alone = etcd_kv.check(history_of(some, all_clients=False))
            assert alone.result != "invalid", "other clients may have done the rest"


def served(*requests: Json) -> list[Asked]:
    """The requests one after the other, with a right store's answers."""
    store = Store()
    return [Asked(one, store.answer(one), place, place + 0.5) for place, one in enumerate(requests)]


def changed(requests: list[Asked], at: int, change: Callable[[Json], Any]) -> list[Asked]:
    answer = copy.deepcopy(requests[at].answer)
    assert answer is not None
    change(answer)
    return [
        *requests[:at],
        Asked(requests[at].request, answer, requests[at].begun, requests[at].over),
        *requests[at + 1 :],
    ]


RIGHT = served(
    get("a"),
    put("a", "x"),
    put("b", "y"),
    get("a", "c", limit=1),
    txn(step("put", "a", "z"), conditions=(("a", 2),), failure=(step("range", "a"),)),
    get("a", revision=2),
    delete("b"),
    get("a", "c"),
)


@pytest.mark.parametrize(
    ("at", "change", "rule"),
    [
        (2, lambda answer: answer.update(Revision=2), "same-revision"),
        (3, lambda answer: answer.update(Revision=2), "revision-back-in-time"),
        (3, lambda answer: answer["Range"]["KVs"][0].update(Version=2), "two-values"),
        (3, lambda answer: answer["Range"].update(Count=1), "wrong-answer"),
        (4, lambda answer: answer["Txn"].update(Failure=True), "revision-of-nobody"),
        (5, lambda answer: answer["Range"]["KVs"][0]["Value"].update(Value="q"), "two-values"),
        (6, lambda answer: answer["Txn"]["Results"][0].update(Deleted=0), "revision-of-nobody"),
        (7, lambda answer: answer.update(Revision=7), "revision-of-nobody"),
        (7, lambda answer: answer["Range"]["KVs"].clear(), "wrong-answer"),
    ],
)
def test_each_wrong_answer_is_found(at: int, change: Callable[[Json], Any], rule: str) -> None:
    """A broken store would pass."""
    assert etcd_kv.check(history_of(RIGHT)).result == "valid"
    verdict = etcd_kv.check(history_of(changed(RIGHT, at, change)))
    assert (verdict.result, verdict.witnesses[0].rule) == ("invalid", rule), verdict.summary
    assert verdict.witnesses[0].events


def test_an_answer_of_any_later_revision_counts() -> None:
    """An answer from the past would pass if the next revision was answered late."""
    first, second, third, past = served(put("a", "x"), put("b", "y"), put("c", "z"), get("a"))
    assert past.answer is not None
    requests = [
        Asked(first.request, first.answer, 0, 1),
        Asked(second.request, second.answer, 2, 20),
        Asked(third.request, third.answer, 3, 4),
        Asked(past.request, {**past.answer, "Revision": 2}, 5, 6),
    ]
    verdict = etcd_kv.check(history_of(requests))
    assert [witness.rule for witness in verdict.witnesses] == ["revision-back-in-time"], verdict.summary


def test_what_was_written_before_the_record_began_is_unknown() -> None:
    """A green light would stand on values that nobody recorded, or an alarm on them."""
    verdict = etcd_kv.check(history_of(RIGHT[3:]))
    assert verdict.result == "unknown" and "revision 3 when the first answer came" in verdict.summary


def test_many_requests_without_an_answer_are_tried_only_where_a_revision_is_missing() -> None:
    """A report with many timeouts would take for ever."""
    store, requests = Store(), [Asked(get("a"), {"Range": {"KVs": [], "Count": 0}, "Revision": 1}, -1, -0.5)]
    for place in range(400):
        asked = put("a", str(place)) if place % 2 else get("a")
        is_lost = place % 4 == 1
        if not is_lost or place % 8 == 1:
            answer = store.answer(asked)
        requests.append(Asked(asked, None if is_lost else answer, place, place + 0.5))
    verdict = etcd_kv.check(history_of(requests))
    assert verdict.result == "valid" and verdict.details["gaps"] == 50 and verdict.details["tries"] < 3_000


def test_long_texts_are_known_by_their_hash() -> None:
    """A value of 20 bytes would differ from its own hash (Go's FNV-1a)."""
    assert Text(value="a" * 19).identity == "a" * 19
    assert fnv_1a(b"foobar") == 0xBF9CF968
    assert Text(value="a" * 20).identity == fnv_1a(b"a" * 20) == Text(hash=fnv_1a(b"a" * 20)).identity


# ---- watches


def watched(request: Json, *lists: list[Json], progress: int = 0) -> Json:
    responses: list[Json] = [{"Events": events, "Revision": events[-1]["Revision"]} for events in lists]
    if progress:
        responses.append({"IsProgressNotify": True, "Revision": progress})
    return {"Request": {"Key": "", "Revision": 2, "WithPrefix": True, **request}, "Responses": responses}


def event(key: str, revision: int, value: str | None, **more: Any) -> Json:
    kind = "delete" if value is None else "put"
    shown = {} if value is None else {"Value": value}
    return {"Type": f"{kind}-operation", "Key": key, "Value": shown, "Revision": revision, **more}


def with_watches(requests: list[Asked], *watches: Json, all_clients: bool = True) -> History:
    history = history_of(requests, all_clients=all_clients)
    events = list(history.events)
    for number, watch in enumerate(watches):
        for kind in ("invoke", "ok"):
            events.append(
                Event(
                    index=len(events),
                    time_ns=len(events),
                    type=kind,  # type: ignore[arg-type]
                    process=1000 + number,
                    f=WATCH,
                    value=watch,
                )
            )
    return History.of(Header(system="etcd", extra={ALL_CLIENTS: True} if all_clients else {}), events)


WRITES = served(get("a"), put("a", "x"), put("b", "y"), put("a", "z"), delete("b"))
EVENTS = [
    event("a", 2, "x", IsCreate=True),
    event("b", 3, "y", IsCreate=True),
    event("a", 4, "z", PrevValue={"Value": {"Value": "x"}, "ModRevision": 2, "Version": 1}),
    event("b", 5, None),
]


@pytest.mark.parametrize(
    ("watch", "rule"),
    [
        (watched({}, EVENTS[:2], EVENTS[2:], progress=5), ""),
        (watched({"Key": "a"}, [EVENTS[0]], [EVENTS[2]], progress=5), ""),
        (watched({"Revision": 0}, EVENTS[1:]), ""),
        (watched({"Key": "a"}, EVENTS), "filter"),
        (watched({}, [EVENTS[0], EVENTS[2], EVENTS[1], EVENTS[3]]), "ordered"),
        (watched({}, EVENTS[:2], EVENTS[1:]), "atomic"),
        (watched({}, [EVENTS[0], *EVENTS]), "unique"),
        (watched({}, EVENTS, progress=4), "bookmarkable"),
        (watched({}, [EVENTS[0], EVENTS[1], event("a", 4, "q"), EVENTS[3]]), "invented"),
        (watched({}, [*EVENTS, event("c", 6, "q", IsCreate=True)]), "invented"),
        (watched({}, EVENTS[1:]), "resumable"),
        (watched({}, EVENTS[:1], EVENTS[2:]), "reliable"),
        (watched({}, EVENTS[:1], progress=5), "reliable"),
        (watched({}, [event("a", 2, "x"), *EVENTS[1:]]), "created"),
        (watched({}, [*EVENTS[:2], {**EVENTS[2], "IsCreate": True}, EVENTS[3]]), "created"),
        (
            watched(
                {}, [*EVENTS[:2], event("a", 4, "z", PrevValue={"Value": {"Value": "q"}, "ModRevision": 2})]
            ),
            "previous",
        ),
        (
            watched(
                {}, [*EVENTS[:2], event("a", 4, "z", PrevValue={"Value": {"Value": "x"}, "ModRevision": 3})]
            ),
            "previous",
        ),
    ],
)
def test_each_guarantee_of_watches(watch: Json, rule: str) -> None:
    """A watch that loses or invents events would pass, or a right one be blamed."""
    verdict = etcd_watch.check(with_watches(WRITES, watch))
    assert [one.rule for one in verdict.witnesses][:1] == ([rule] if rule else []), verdict.summary


def rules_of(requests: list[Asked], *watches: Json, all_clients: bool = True) -> set[str]:
    verdict = etcd_watch.check(with_watches(requests, *watches, all_clients=all_clients))
    return {one.rule for one in verdict.witnesses}


def test_nothing_comes_from_before_the_revision_that_was_asked_for() -> None:
    """A watch that resumes at the wrong place would pass: etcd's own `validateResumable` refuses it."""
    assert rules_of(WRITES, watched({"Revision": 3}, EVENTS)) == {"resumable"}
    assert rules_of(WRITES, watched({"Revision": 10_000}, EVENTS)) == {"resumable"}
    assert rules_of(WRITES, watched({"Revision": 3}, EVENTS[1:])) == set()


def test_a_deletion_that_no_request_made_is_invented() -> None:
    """An invented deletion would pass, or the end of a lease or another client's request be blamed."""
    gone = watched({"Key": "a"}, [EVENTS[0], event("a", 3, None)])
    alone = served(get("a"), put("a", "x"))
    assert rules_of(alone, gone) == {"invented"}
    assert rules_of(alone, gone, all_clients=False) == set()
    lost = Asked(delete("a"), None, 8, 9)
    assert rules_of([*alone, lost], gone) == set()
    branch = Asked(txn(step("range", "a"), failure=(step("delete", "a"),)), None, 8, 9)
    assert rules_of([*alone, branch], gone) == set()
    under = Asked(leased("a", "x", 7), {**PUT_ANSWER, "Revision": 2}, 1, 1.5)
    assert rules_of([alone[0], under], gone) == set()
    revoked = Asked(lease("Revoke", 7), {"Revision": 3}, 8, 9)
    assert rules_of([alone[0], under, revoked], gone) == set()
    assert rules_of([*alone, Asked(delete("b"), None, 8, 9)], gone) == {"invented"}


def test_an_answered_request_made_its_change_at_one_revision() -> None:
    """One put shown as two events would pass."""
    twice = watched({"Key": "a"}, [EVENTS[0], event("a", 3, "x")])
    alone = served(get("a"), put("a", "x"))
    assert rules_of(alone, twice) == {"invented"}
    assert rules_of(alone, twice, all_clients=False) == set()
    assert rules_of([*alone, Asked(put("a", "x"), None, 8, 9)], twice) == set()


def test_of_a_torn_report_no_event_is_invented() -> None:
    """The request of the event may stand in the part that is lost: a right watch would be blamed."""
    history = with_watches(WRITES[:2], watched({}, EVENTS))
    assert etcd_watch.check(history).result == "invalid"
    assert etcd_watch.check(dataclasses.replace(history, torn="the last value is lost")).result == "valid"


def test_two_watches_show_the_same_events() -> None:
    """Members of a cluster with different contents would pass where no answer tells which one is right."""
    one, other = (watched({"Key": "a"}, [event("a", 3, value)]) for value in ("x", "y"))
    assert rules_of(WRITES[:1], one, other, all_clients=False) == {"differs"}
    assert rules_of(WRITES[:1], one, one, all_clients=False) == set()


def test_a_key_that_an_answered_request_left_alone_has_no_event() -> None:
    """An event of a revision that wrote other keys would pass if another client's put of that value is possible."""
    event_of_c = event("c", 3, "q", IsCreate=True)
    assert rules_of(WRITES, watched({"Key": "c"}, [event_of_c]), all_clients=False) == {"invented"}


def test_what_lies_between_two_known_events_may_be_unknown() -> None:
    """A change by another client would make a right mark of creation, or previous value, an alarm."""
    begun, _, over = served(get("a"), put("a", "x"), put("a", "z"))
    other = {**EVENTS[2], "IsCreate": True, "Revision": 9}
    assert rules_of([begun, over], watched({"Key": "a", "Revision": 9}, [other]), all_clients=False) == set()
    before = {"Value": {"Value": "q"}, "ModRevision": 7}
    seen = event("a", 9, "z", PrevValue=before)
    assert rules_of([begun, over], watched({"Key": "a", "Revision": 9}, [seen]), all_clients=False) == set()


def test_a_watch_begins_with_its_first_notification() -> None:
    """A watch of no revision that loses an event behind its first progress notification would pass."""
    told = watched({"Revision": 0}, EVENTS[2:3], EVENTS[3:])
    notified = {"IsProgressNotify": True, "Revision": 2}
    told["Responses"].insert(0, notified)
    assert rules_of(WRITES, told) == {"reliable"}
    whole = watched({"Revision": 0}, EVENTS[1:])
    whole["Responses"].insert(0, notified)
    assert rules_of(WRITES, whole) == set()


def test_notifications_do_not_go_back() -> None:
    """A promise that all up to a revision came would be taken back without a word."""
    watch = watched({}, EVENTS[:2], progress=5)
    lower = {"IsProgressNotify": True, "Revision": 4}
    alone = watched({"Key": "c"}, progress=5)
    alone["Responses"].append(lower)
    assert rules_of(WRITES, alone, watched({}, EVENTS)) == {"bookmarkable"}
    watch["Responses"].append({"Events": EVENTS[2:], "Revision": 5})
    assert rules_of(WRITES, watch) == {"bookmarkable"}


def test_one_watch_is_one() -> None:
    """The sentence under a green light would count wrongly."""
    summary = etcd_watch.check(with_watches(WRITES, watched({}, EVENTS))).summary
    assert "4 events of 1 watch" in summary and "watches" not in summary


@given(st.integers(0, 1 << 40))
@examples.up_to(1_000)
def test_a_watch_shows_all_events_in_order(seed: int) -> None:
    """The definition: between its first and last revision, a watch shows just the store's events of its keys."""
    chance = random.Random(seed)
    chosen = [
        chance.choice((put("a", f"{n}"), put("ab", f"{n}"), delete("a"), delete("ab"))) for n in range(8)
    ]
    requests = served(get("a"), *chosen)
    key = chance.choice(("a", "ab"))
    real = [one for one in _events(requests) if one["Key"].startswith(key)]
    assume(len(real) > 2)
    began = chance.randint(2, real[-1]["Revision"])
    wanted = [one for one in real if one["Revision"] >= began]
    got = list(wanted)
    if chance.random() < 0.6:
        got.pop(chance.randrange(len(got)))
    if chance.random() < 0.2 and got:
        got.insert(chance.randrange(len(got)), chance.choice(got))
    assume(got)
    expected = [one for one in wanted if one["Revision"] <= got[-1]["Revision"]]
    watch = watched({"Key": key, "Revision": began}, *([one] for one in got))
    for all_clients in (True, False):
        verdict = etcd_watch.check(with_watches(requests, watch, all_clients=all_clients))
        assert (verdict.result == "valid") is (got == expected), verdict.summary


def _events(requests: list[Asked]) -> list[Json]:
    found: list[Json] = []
    there: set[str] = set()
    for one in requests[1:]:
        assert one.answer is not None
        (what,), (result,) = one.request["Txn"]["OperationsOnSuccess"], one.answer["Txn"]["Results"]
        if what["Type"] == "put-operation":
            key = what["Put"]["Key"]
            found.append(
                event(key, one.answer["Revision"], what["Put"]["Value"]["Value"], IsCreate=key not in there)
            )
            there.add(key)
        elif result["Deleted"]:
            found.append(event(what["Delete"]["Key"], one.answer["Revision"], None))
            there.discard(what["Delete"]["Key"])
    return found


# ---- files


def test_a_real_report() -> None:
    """Reports of etcd's tests could not be read, or would be judged wrongly."""
    history = foreign.read(REPORT)
    assert guess(history) == "etcd" and history.header.system == "etcd"
    judged = by_model.judge(history, "etcd")
    assert judged.result == "valid" and judged.promise == "linearizable"
    kept = {verdict.checker: verdict.details["judged"] for verdict in judged.verdicts}
    assert kept == {"etcd-kv": KV_JUDGED, "etcd-watch": EVENTS_JUDGED}


KV_JUDGED, EVENTS_JUDGED = 33, 23


@pytest.mark.parametrize("client", [1, 2, 3])
def test_the_file_of_one_client_is_no_proof(client: int) -> None:
    """A green light or an alarm would stand on revisions that other clients made."""
    judged = by_model.judge(foreign.read(REPORT / f"client-{client}" / "operations.json"), "etcd")
    assert judged.result == "unknown" and "clients that are not in this file" in judged.verdicts[0].summary


def test_watches_alone_are_judged_as_watches() -> None:
    """The check of requests, with nothing to judge, would make them unknown."""
    judged = by_model.judge(foreign.read(REPORT / "client-4" / "watch.json"), "etcd")
    assert judged.result == "valid" and [one.checker for one in judged.verdicts] == ["etcd-watch"]


@pytest.mark.parametrize("place", ["client-1/operations.json", "client-3"])
def test_a_client_whose_file_cannot_be_followed_is_refused(tmp_path: Path, place: str) -> None:
    """If it failed, changes by a client without its copied file would be an anomaly: no request made them."""
    shutil.copytree(REPORT, tmp_path / "report")
    lost = tmp_path / "report" / place
    shutil.rmtree(lost) if lost.is_dir() else lost.unlink()
    lost.symlink_to("elsewhere")
    with pytest.raises(HistoryError, match=f"got {place}, which is no file"):
        foreign.read(tmp_path / "report")


def test_a_damaged_report_is_one_line(tmp_path: Path) -> None:
    """A report that was copied in part would be judged as if it were whole, or end in a traceback."""
    text = (REPORT / "client-1" / "operations.json").read_text()
    (tmp_path / "client-1").mkdir()
    file = tmp_path / "client-1" / "operations.json"
    file.write_text(text[: len(text) // 2])
    torn = str(foreign.read(tmp_path).torn)
    assert "torn off" in torn and "client-1/operations.json" in torn, "a report has a file of each client"
    file.write_text(text.replace('"Revision": 2', '"Revision": "two"'))
    shutil.copytree(REPORT, tmp_path / "whole")
    for left in ("", text[:-60]):
        (tmp_path / "whole" / "client-1" / "operations.json").write_text(left)
        history = foreign.read(tmp_path / "whole")
        assert by_model.judge(history, "etcd").result == "unknown", "a request that made a revision is lost"
        assert "client-1/operations.json" in str(history.torn)
    with pytest.raises(
        HistoryError,
        match=r"line \d+: expected an operation of Porcupine.*got a request of etcd with.*client-1/op",
    ):
        foreign.read(tmp_path)
    file.write_text(text.replace("}", "]", 3))
    with pytest.raises(
        HistoryError, match=r"line \d+: expected operations of etcd's clients in JSON.*client-1"
    ):
        foreign.read(tmp_path)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"Type": "range"}, "a range without its content"),
        ({"Type": "txn", "Txn": {"OperationsOnSuccess": [{"Type": "move"}]}}, "Invalid enum value 'move'"),
        ({"Type": "txn", "Txn": {"Conds": [], "Ops": []}}, "unknown field `Conds`"),
        ({"Type": "leaseGrant", "LeaseGrant": {"LeaseID": 1, "Keys": ["a"]}}, "unknown field `Keys`"),
        ({"Type": "compact", "Compact": {"Physical": True}}, "unknown field `Physical`"),
        ({"Type": "range", "Range": {"Start": "a"}, "User": "u"}, "unknown field `User`"),
    ],
)
def test_a_request_that_is_none_is_refused(asked: Json, says: str) -> None:
    """A request that no rule knows would be left out without a word, or replayed as a different one."""
    entry = {"ClientId": 1, "Input": asked, "Call": 1, "Output": {"Revision": 1}, "Return": 2}
    with pytest.raises(HistoryError, match=says):
        foreign.parse(json.dumps(entry).encode())


# ---- leases


def leased(key: str, value: str, lease: int) -> Json:
    put_under = step("put", key, value)
    return txn({**put_under, "Put": {**put_under["Put"], "LeaseID": lease}})


def lease(kind: str, number: int) -> Json:
    return {"Type": f"lease{kind}", f"Lease{kind}": {"LeaseID": number}}


PUT_ANSWER: Json = {"Txn": {"Failure": False, "Results": [{}]}}
FOUND: Json = {"KVs": [{"Key": "a", "Value": {"Value": "x"}, "ModRevision": 2, "Version": 1}], "Count": 1}
NOTHING: Json = {"KVs": [], "Count": 0}


def with_lease(*steps: tuple[Json, Json | None]) -> str:
    """The result, and the rule, for a read of nothing, a lease 7, and these steps one after the other."""
    begun: tuple[tuple[Json, Json | None], ...] = (
        (get("a"), {"Range": NOTHING, "Revision": 1}),
        (lease("Grant", 7), {"Revision": 1}),
    )
    requests = [
        Asked(one, answer, place, place + 0.5) for place, (one, answer) in enumerate((*begun, *steps))
    ]
    verdict = etcd_kv.check(history_of(requests))
    return verdict.witnesses[0].rule if verdict.witnesses else verdict.result


def test_a_lease_takes_its_keys_along() -> None:
    """A key that outlives its lease would pass, or the end of a lease be an alarm."""
    under = leased("a", "x", 7), {**PUT_ANSWER, "Revision": 2}
    revoked = lease("Revoke", 7), {"Revision": 3}
    assert with_lease(under, revoked, (get("a"), {"Range": NOTHING, "Revision": 3})) == "valid"
    assert with_lease(under, revoked, (get("a"), {"Range": FOUND, "Revision": 3})) == "wrong-answer"
    assert with_lease(under, (lease("Revoke", 7), {"Revision": 2})) == "wrong-answer"
    unanswered = lease("Revoke", 7), None
    assert with_lease(under, unanswered, (get("a"), {"Range": NOTHING, "Revision": 3})) == "valid"
    assert with_lease(under, unanswered, (get("a"), {"Range": FOUND, "Revision": 2})) == "valid"
    assert with_lease((leased("a", "x", 8), {**PUT_ANSWER, "Revision": 2})) == "wrong-answer"


def test_a_lease_of_which_no_answer_came_may_be_there() -> None:
    """A grant whose answer was lost would make the first put under the lease an anomaly."""
    asked, under = (lease("Grant", 8), None), (leased("a", "x", 8), {**PUT_ANSWER, "Revision": 2})
    gone = get("a"), {"Range": NOTHING, "Revision": 3}
    assert with_lease(asked, under) == "valid"
    assert with_lease(asked, under, gone) == "valid"
    revoked = lease("Revoke", 8), {"Revision": 3}
    again = leased("a", "x", 8), {**PUT_ANSWER, "Revision": 4}
    assert with_lease(asked, under, revoked, again) == "wrong-answer"


def test_a_lease_may_expire() -> None:
    """Reports do not say how long a lease lives: its end would be a revision that no request made."""
    under = leased("a", "x", 7), {**PUT_ANSWER, "Revision": 2}
    assert with_lease(under, (get("a"), {"Range": NOTHING, "Revision": 3})) == "valid"
    assert with_lease(under, (get("a"), {"Range": FOUND, "Revision": 3})) == "wrong-answer"
