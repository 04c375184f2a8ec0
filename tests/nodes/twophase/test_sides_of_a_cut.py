"""The examples of the design of consistent cuts, one transaction each: which node commits first, and on which side.

P is the near node, Q the primary. Messages are stopped where the cut crosses them, and go on behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nodes.kernel.effects import Again
from nodes.kernel.events import Received
from nodes.kernel.trace import Envelope
from nodes.twophase import stock, transaction
from nodes.twophase.data import partition_of
from nodes.twophase.dispatch import WORDS
from nodes.twophase.sometimes import MARKER_FIRST
from nodes.twophase.states import State, changed
from tests.nodes.twophase.cut_oracle import before, logs_of
from tests.nodes.twophase.virtual_cluster import Asked, VirtualCluster, key_in, key_of, settled


def near_and_primary(cluster: VirtualCluster) -> tuple[str, str, int]:
    """P leads the discovery log, so that Q alone can be kept from the news; and a key of Q."""
    p = cluster.coordinator()
    q = next(server for server in cluster.servers if server != p)
    return p, q, key_of(cluster, q)


def advance_until(cluster: VirtualCluster, holds: Callable[[], bool]) -> None:
    while not holds():
        assert cluster.world.agenda.advance()


def is_prepared(cluster: VirtualCluster, server: str) -> bool:
    return any(local.state is State.PREPARED for local in cluster.node(server).stock.locals.values())


def committed(cluster: VirtualCluster) -> dict[str, list[Any]]:
    """Server → its records of commits, as far as they are on disk."""
    logs = {server: cluster.node(server).stock.wal.read(files) for server, files in cluster.files().items()}
    found = {server: [record for record in log if record[0] == "committed"] for server, log in logs.items()}
    return {server: records for server, records in found.items() if records}


def finish_of(cluster: VirtualCluster, server: str, cut: str) -> Any:
    return next(record for record in logs_of(cluster.files())[server] if record[:2] == ["finish", cut])


def sides(cluster: VirtualCluster, cut: str, owners: list[str]) -> list[set[str]]:
    logs = logs_of(cluster.files())
    return [before(logs[server], cut) for server in owners]


def ended(cluster: VirtualCluster, cut: str, asked: Asked) -> list[str]:
    """The owners of the one key, when the cut is over and the transaction answered."""
    cluster.run(500)
    assert asked.type == "ok"
    assert cluster.node("n1").agreed.cuts[cut].state == "ok"
    return sorted(committed(cluster))


def test_the_near_node_commits_first_and_the_backup_last() -> None:
    """If it failed, the node that signs would not be the one that commits first."""
    cluster = settled(one_phase=False)
    _, q, key = near_and_primary(cluster)
    network = cluster.world.network
    late = network.stop([("c1", server) for server in cluster.servers], ["finish"])
    later = network.stop([(q, server) for server in cluster.servers if server != q], ["backup-finish"])
    asked = cluster.client.txn("c1", ["write", "r", key, 1])
    cluster.run(50)
    assert [each.state for each in cluster.node("c1").deciding.open.values()] == [State.COMMITTING]
    assert committed(cluster) == {}
    network.go_on(late)
    cluster.run(50)
    assert [*committed(cluster)] == [q]
    network.go_on(later)
    cluster.run(50)
    assert asked.type == "ok" and len(committed(cluster)) == 2


def test_a_transaction_is_one_sequence_of_states_and_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a cut could cross a transaction in a place that the design does not know. P is c1."""
    cluster = settled(one_phase=False, backups=0)
    _, _, key = near_and_primary(cluster)
    seen: list[str] = []
    send = cluster.world.network.send

    def noted(node: str) -> Callable[[State, State], State]:
        def of_node(before: State, after: State) -> State:
            seen.append(f"{node} {after.name}")
            return changed(before, after)

        return of_node

    def sent(link: int, sender: Any, message: Any) -> None:
        word = (message.message if isinstance(message, Envelope) else message)[0]
        seen.extend([word] if word in ("prepare", "prepared", "finish", "finished") else [])
        send(link, sender, message)

    monkeypatch.setattr(transaction, "changed", noted("P"))
    monkeypatch.setattr(stock, "changed", noted("Q"))
    cluster.world.network.send = sent  # type: ignore[method-assign]
    asked = cluster.client.txn("c1", ["write", "r", key, 1])
    cluster.run(50)
    assert asked.type == "ok"
    assert seen == [
        *("P PREPARING", "prepare", "Q PREPARING", "Q PREPARED", "prepared", "P PREPARED"),
        *("P COMMITTING", "finish", "Q COMMITTING", "Q COMMITTED", "finished", "P COMMITTED"),
    ]


def test_in_one_phase_the_backup_commits_first_and_the_near_node_last() -> None:
    """If it failed, the order of commits would not be turned round, and the wrong node would sign."""
    cluster = settled()
    _, q, key = near_and_primary(cluster)
    network = cluster.world.network
    others = [server for server in cluster.servers if server != q]
    late = network.stop([(server, q) for server in others], ["backup-prepared"])
    later = network.stop([(q, "c1")], ["prepared"])
    asked = cluster.client.txn("c1", ["write", "r", key, 1])
    cluster.run(50)
    assert len(committed(cluster)) == 1 and q not in committed(cluster)
    network.go_on(late)
    cluster.run(50)
    assert len(committed(cluster)) == 2 and asked.answer is None
    assert [each.state for each in cluster.node("c1").deciding.open.values()] == [State.PREPARING]
    network.go_on(later)
    cluster.run(50)
    assert asked.type == "ok"


def test_committed_by_the_near_node_before_the_cut_is_before_it_everywhere() -> None:
    """The first picture. If it failed, the finish that the cut crosses would be lost for one of two nodes."""
    cluster = settled(one_phase=False)
    p, q, key = near_and_primary(cluster)
    network = cluster.world.network
    late = network.stop([(p, q)], ["finish"])
    asked = cluster.client.txn(p, ["write", "r", key, 1])
    cluster.run(50)
    assert is_prepared(cluster, q)
    assert [each.state for each in cluster.node(p).deciding.open.values()] == [State.COMMITTING]
    cluster.client.ask(p, "cut", "a")
    cluster.run(50)
    assert cluster.node(p).agreed.cuts["a"].state == "runs", "Q waits for the finish"
    network.go_on(late)
    owners = ended(cluster, "a", asked)
    (xid,) = {record[1] for record in committed(cluster)[q]}
    assert sides(cluster, "a", owners) == [{xid}, {xid}]
    assert finish_of(cluster, q, "a")[2:4] == [[xid], []]


def test_who_asks_before_the_decision_gets_the_sign_of_the_commit() -> None:
    """If it failed, a restarted participant would count a transaction behind the cut as one before it."""
    cluster = settled(one_phase=False)
    p, q, key = near_and_primary(cluster)
    network = cluster.world.network
    late = network.stop([(q, p)], ["prepared"])
    cluster.client.txn(p, ["write", "r", key, 1])
    cluster.run(50)
    (xid,) = cluster.node(p).deciding.open
    cluster.node(p).deciding.take_outcome_question(q, xid)
    cluster.client.ask(p, "cut", "a")
    cluster.run(50)
    signs: dict[str, list[object]] = {"outcome": [], "finish": []}
    send = network.send

    def sent(link: int, sender: Any, message: Any) -> None:
        word, *rest = message.message if isinstance(message, Envelope) else message
        if word in signs:
            signs[word].append(rest[-1][-1])
        send(link, sender, message)

    network.send = sent  # type: ignore[method-assign]
    network.go_on(late)
    cluster.run(50)
    assert [*map(len, signs.values())] == [1, 1]
    assert signs["outcome"] == signs["finish"] != [None]


def test_prepared_at_the_cut_and_committed_behind_it_is_after_it_everywhere() -> None:
    """The second picture. If it failed, Q would count what P signs with the cut."""
    cluster = settled(one_phase=False)
    p, q, key = near_and_primary(cluster)
    network = cluster.world.network
    late = network.stop([(q, p)], ["prepared"])
    asked = cluster.client.txn(p, ["write", "r", key, 1])
    cluster.run(50)
    assert is_prepared(cluster, q)
    cluster.client.ask(p, "cut", "a")
    cluster.run(50)
    assert cluster.node(p).agreed.cuts["a"].state == "runs", "Q waits for the finish"
    network.go_on(late)
    owners = ended(cluster, "a", asked)
    assert sides(cluster, "a", owners) == [set(), set()]
    assert finish_of(cluster, q, "a")[2:4] == [[], []]


def test_a_cut_waits_for_what_prepares() -> None:
    """If it failed, a transaction that is prepared at its backup alone would be forgotten at its primary."""
    cluster = settled(one_phase=False)
    p, q, key = near_and_primary(cluster)
    network = cluster.world.network
    late = network.stop([(server, q) for server in cluster.servers if server != q], ["backup-prepared"])
    asked = cluster.client.txn("c1", ["write", "r", key, 1])
    cluster.run(50)
    assert [local.state for local in cluster.node(q).stock.locals.values()] == [State.PREPARING]
    cluster.client.ask(p, "cut", "a")
    cluster.run(50)
    assert cluster.node(p).agreed.cuts["a"].state == "runs"
    network.go_on(late)
    owners = ended(cluster, "a", asked)
    assert sides(cluster, "a", owners) == [set(), set()]


def test_a_finish_from_behind_the_cut_begins_the_cut_before_it_is_taken() -> None:
    """The third picture. If it failed, Q would commit before its part of the cut what P commits behind its own."""
    cluster = settled(one_phase=False)
    p, q, key = near_and_primary(cluster)
    network = cluster.world.network
    late = network.stop([(q, p)], ["prepared"])
    asked = cluster.client.txn(p, ["write", "r", key, 1])
    cluster.run(50)
    news = network.stop([(p, q)], ["append"])
    cluster.client.ask(p, "cut", "a")
    cluster.run(20)
    assert cluster.node(p).cuts.running is not None and cluster.node(q).cuts.running is None
    met = cluster.count_living().get(MARKER_FIRST, 0)
    network.go_on(late)
    advance_until(cluster, lambda: q in committed(cluster))
    kinds = [record[0] for record in cluster.node(q).stock.wal.read(cluster.files()[q])]
    assert kinds.index("start") < kinds.index("committed")
    assert cluster.count_living()[MARKER_FIRST] > met
    network.go_on(news)
    owners = ended(cluster, "a", asked)
    assert sides(cluster, "a", owners) == [set(), set()]


def test_a_transaction_waits_for_no_running_cut() -> None:
    """If it failed, a cut would hold up transactions, or a message of one would come without the news of the cut."""
    cluster = settled(one_phase=False)
    _, q, key = near_and_primary(cluster)
    network = cluster.world.network
    partition = partition_of(("r", key), 8)
    asked = cluster.client.txn("c1", ["write", "r", key, 1], ["write", "s", key_in(partition, 8, "s"), 2])
    late = network.stop([(q, "c1")], ["locked"])
    reports = network.stop([("c1", server) for server in cluster.servers], ["propose"])
    cluster.run(50)
    cut = cluster.client.ask("n1", "cut", "a")
    cluster.run(50)
    send, marked = network.send, dict[str, set[bool]]()

    def noted(link: int, sender: Any, message: Any) -> None:
        word, _, *fields = message.message if isinstance(message, Envelope) else message
        if word in WORDS:
            marked.setdefault(word, set()).add(fields[0] is not None)
        send(link, sender, message)

    network.send = noted  # type: ignore[method-assign]
    network.go_on(late)
    cluster.run(50)
    assert asked.type == "ok" and set().union(*marked.values()) == {True}
    assert list(marked) == [
        *("lock", "locked", "prepare", "backup-prepare", "backup-prepared", "prepared"),
        *("finish", "backup-finish", "backup-finished", "finished"),
    ]
    assert (cut.type, cluster.node("n1").agreed.cuts["a"].state) == ("ok", "runs")
    network.go_on(reports)
    owners = ended(cluster, "a", asked)
    assert sides(cluster, "a", owners) == [set(), set()]


def test_a_lane_keeps_the_order_of_its_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, roles would have to take the messages of one transaction in any order, as those of the paper do."""
    node = settled().node("n1")
    taken: list[str] = []
    monkeypatch.setattr(node.links, "_take", lambda peer, life, word, payload: taken.append(word))
    node.links.received(Received(99, ["hello", 0, "c1", 7, 1]))
    first, second = (Received(99, [word, seq, None]) for seq, word in ((1, "first"), (2, "second")))
    for message in (second, first, second, first):
        node.links.received(message)
    assert taken == ["first", "second"]
    assert [effect.event for effect in node.site.out if isinstance(effect, Again)] == [second]


@pytest.mark.parametrize("suspend_ms", [0, 2_000])
def test_a_cut_waits_for_no_active_transaction(suspend_ms: int) -> None:
    """If it failed, a long or suspended transaction would hold up a cut, or be in it at some of its nodes."""
    cluster = settled(one_phase=False, lock_ns=5_000_000_000)
    _, q, key = near_and_primary(cluster)
    network = cluster.world.network
    late = network.stop([(q, "c1")], ["locked"])
    asked = cluster.client.txn("c1", ["write", "r", key, 1], suspend_ms=suspend_ms)
    if suspend_ms:
        network.go_on(late)
    cluster.run(50)
    cluster.client.ask("n1", "cut", "a")
    cluster.run(100)
    assert cluster.node("n1").agreed.cuts["a"].state == "ok"
    assert asked.answer is None
    if not suspend_ms:
        network.go_on(late)
    cluster.run(suspend_ms)
    owners = ended(cluster, "a", asked)
    assert sides(cluster, "a", owners) == [set(), set()]
