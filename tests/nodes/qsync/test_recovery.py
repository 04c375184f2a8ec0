"""What a node makes of the files that it finds, and of writes that fail: cases that need bytes or a world."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.systems.qsync.logs import log_of as log_of_files
from nodes.iproto import xlog
from nodes.iproto.messages import (
    Answer,
    Call,
    JoinMeta,
    JoinSnapshot,
    Key,
    RaftState,
    Row,
    Rows,
    Stage,
    Type,
)
from nodes.kernel.effects import Persist, Remove, Send, Truncate
from nodes.kernel.errors import StartRefused
from nodes.kernel.events import Instant, Received, Started
from nodes.qsync.joining import Joining
from nodes.qsync.journal import Draft, Journal
from nodes.qsync.replica import Replica
from nodes.qsync.snapshot import QueueState
from tests.nodes.qsync.conversation import UUID, configuration
from tests.nodes.qsync.virtual_cluster import VirtualCluster, memory

LOG = xlog.file_name({})
SNAPSHOT = xlog.file_name({}, "SNAP")


def opened(files: dict[str, bytes]) -> tuple[Journal, list[Persist | Truncate | Remove]]:
    journal = Journal(1, UUID.format(1))
    _, effects = journal.open(files)
    return journal, [effect for effect in effects if isinstance(effect, Persist | Truncate | Remove)]


def do(files: dict[str, bytearray], effects: Sequence[Persist | Truncate | Remove]) -> None:
    for effect in effects:
        match effect:
            case Persist(_, name, more):
                files.setdefault(name, bytearray()).extend(more)
            case Truncate(name, size):
                del files[name][size:]
            case Remove(name):
                del files[name]


def written(journal: Journal, value: int) -> Persist:
    body = {Key.SPACE_ID.value: 512, Key.TUPLE.value: ("r1", value)}
    return journal.write_own((Draft(Type.REPLACE.value, body),), 0.0).persist


def log_of(values: int) -> tuple[bytes, list[int]]:
    """A log of so many rows, and where its records end."""
    journal, effects = opened({})
    header = effects[-1]
    assert isinstance(header, Persist)
    data, ends = header.data, [len(header.data)]
    for value in range(values):
        data += written(journal, value).data
        ends.append(len(data))
    return data, ends


@pytest.mark.parametrize("election", [None, {}, {1: 0}])
@pytest.mark.parametrize("body", [{}, {2: 0, 3: 0, 0x26: {}}, {2: 0, 3: 0, 0x53: 0, 0x26: {}}])
def test_a_node_starts_from_a_snapshot_whose_queue_has_no_term(
    body: dict[int, object], election: dict[int, object] | None
) -> None:
    """Broken, the files of Tarantool 2.11.5 to 3.4, which write such a PROMOTE before the first real one, are refused,
    and a node cannot join one of these."""
    files = {
        effect.file: effect.data
        for effect in Replica(configuration("n1")).step(Started({}), Instant(3, 4))
        if isinstance(effect, Persist) and effect.file == SNAPSHOT
    }
    found = xlog.decode(files[SNAPSHOT])
    told = [Row(Type.PROMOTE.value, 0, 0, 0.0, 0, body=body)]
    if election is not None:
        told.insert(0, Row(Type.RAFT.value, 0, 0, 0.0, 0, group_id=1, body=election))
    data = xlog.encode_header("SNAP", UUID.format(1), {1: 2}) + xlog.encode_block([*found.rows, *told])
    files = {xlog.file_name({1: 2}, "SNAP"): data + xlog.encode_eof()}
    node = Replica(configuration("n1"))
    node.step(Started(files), Instant(9_000_000_000, 17_000_000_000))
    limbo = node.commits.limbo
    assert (limbo.owner_id, limbo.term, node.election.term) == (0, 1, 1)
    (snapshot,) = log_of_files("n1", files).snapshots
    assert (snapshot.owner, snapshot.queue_term) == (0, 0)
    joining = Joining(is_anonymous=False)
    joining.begin("n2")
    assert all(map(joining.take, (Stage(0, {1: 2}), JoinMeta(0), RaftState(0, 0, 0, 1, 0, False))))
    assert all(
        map(joining.take, (Rows((told[-1],)), JoinSnapshot(0), Rows(tuple(found.rows)), Stage(0, {1: 2})))
    )
    assert joining.queue == QueueState()


@pytest.mark.parametrize(("told", "vote"), [((), 0), ((2, 3), 0), ((5, 3), 3), ((6, 0), 0)])
def test_a_node_starts_in_the_term_of_the_last_promote(told: tuple[int, ...], vote: int) -> None:
    """Broken, a node whose log has that PROMOTE alone votes, or leads, in a term that has had its owner; or it counts
    its vote of an older term in that one."""
    files = {
        effect.file: effect.data
        for effect in Replica(configuration("n1")).step(Started({}), Instant(3, 4))
        if isinstance(effect, Persist) and effect.file == SNAPSHOT
    }
    body = {Key.REPLICA_ID: 0, Key.LSN: 0, Key.TERM: 5}
    rows = [
        Row(Type.PROMOTE, 2, 1, 0.0, 1, wait_sync=True, body={int(key): value for key, value in body.items()})
    ]
    if told:
        rows.insert(0, Row(Type.RAFT, 0, 1, 0.0, 1, group_id=1, body=dict(enumerate(told))))
    blocks = b"".join(xlog.encode_block([row]) for row in rows)
    files[LOG] = xlog.encode_header("XLOG", UUID.format(1), {}) + blocks
    node = Replica(configuration("n1"))
    node.step(Started(files), Instant(9_000_000_000, 17_000_000_000))
    assert (node.election.term, node.election.vote) == (max(5, *told, 0), vote)


def test_a_log_with_a_part_of_a_transaction_is_refused() -> None:
    """Broken, a node cuts off what no crash has left there, or goes on with half of a transaction."""
    begin = xlog.encode_header("XLOG", UUID.format(1), {})
    rows = [
        Row(Type.REPLACE.value, 1, lsn, 0.0, 1, lsn == 3, body={16: 512, 33: ("x", lsn)}) for lsn in (1, 2, 3)
    ]
    for part, why in ((rows[:2], "has no end"), (rows[1:], "lacks its first row"), (rows[::2], "lacks rows")):
        with pytest.raises(StartRefused, match=why):
            opened({LOG: begin + xlog.encode_block(part)})
    wrong = xlog.encode_block(rows[:1]).replace(b"\x92\xa1x", b"\x92\xc1x")
    assert opened({LOG: begin + wrong})[0].rows == [], "a wrong checksum may be a torn tail"


def test_a_node_knows_the_time_when_it_has_read_a_snapshot() -> None:
    """If it failed, it would say just after its start that it is the year 1970, and count its uptime from there."""
    files: dict[str, bytes] = {}
    born, start = Instant(3, 4), Instant(9_000_000_000, 17_000_000_000)
    for effect in Replica(configuration("n1")).step(Started({}), born):
        if isinstance(effect, Persist):
            files[effect.file] = files.get(effect.file, b"") + effect.data
    node = Replica(configuration("n1"))
    node.step(Started(files), start)
    assert node.status()["wall_ns"] == start.wall_ns
    effects = node.step(Received(1, Call(1, "box.info", ())), Instant(11_000_000_000, 19_000_000_000))
    (answer,) = [effect.message for effect in effects if isinstance(effect, Send)]
    assert isinstance(answer, Answer)
    (info,) = answer.data
    assert isinstance(info, dict)
    assert info["uptime"] == 2


@given(values=st.integers(0, 6), cut=st.integers(0, 400), zeros=st.integers(0, 30))
def test_any_torn_tail_leaves_whole_records(values: int, cut: int, zeros: int) -> None:
    """Broken, a power loss in the middle of a record loses older ones, or makes the node refuse or crash."""
    data, ends = log_of(values)
    cut = min(cut, len(data))
    journal, effects = opened({LOG: data[:cut] + bytes(zeros)})
    whole = sum(end <= cut for end in ends)
    assert len(journal.rows) == max(whole - 1, 0)
    keep = ends[whole - 1] if whole else 0
    assert [e.size for e in effects if isinstance(e, Truncate)] == [keep] * (keep < cut + zeros)
    assert isinstance(effects[-1], Persist)


@given(place=st.integers(0, 10_000), values=st.integers(2, 6))
def test_a_spoilt_byte_costs_the_last_record_at_most(place: int, values: int) -> None:
    """Broken, acknowledged rows behind a spoilt record are thrown away without a word."""
    data, ends = log_of(values)
    place = ends[0] + place % (len(data) - ends[0])
    spoilt = bytearray(data)
    spoilt[place] ^= 0x10
    try:
        rows = len(opened({LOG: bytes(spoilt)})[0].rows)
    except StartRefused:
        is_padding = place < ends[-2] + 19
        assert place < ends[-2] or is_padding, "the last record cannot be told from a torn one"
    else:
        assert rows == values - 1 and place >= ends[-2]


@pytest.mark.parametrize("lost", range(1, 40))
@pytest.mark.parametrize("begun", [b"", bytes(176), b"XLOG\n0.13\nVersion: 3"])
def test_a_new_file_of_which_nothing_is_there_leaves_the_one_before_as_the_newest(
    lost: int, begun: bytes
) -> None:
    """Broken, power that is lost between the end marker of a log and the next one's header leaves a node that refuses
    to start, though all that it had acknowledged is there."""
    data, ends = log_of(3)
    data += xlog.encode_eof()
    left, behind = data[: len(data) - lost], xlog.file_name({1: 3})
    whole = sum(end <= len(left) for end in ends) - 1
    journal, effects = opened({LOG: left, behind: begun})
    assert len(journal.rows) == whole
    files = {LOG: bytearray(left), behind: bytearray(begun)}
    do(files, effects)
    written_too = [journal.write_own((Draft(Type.NOP.value, {}),), 0.0) for _ in range(2)]
    do(files, [record for write in written_too for record in (*write.before, write.persist)])
    again, _ = opened({name: bytes(content) for name, content in files.items()})
    assert [row.lsn for row in again.rows] == list(range(1, whole + 3))
    assert log_of_files("n1", {name: bytes(content) for name, content in files.items()}).damage is None
    assert log_of_files("n1", {LOG: left, behind: begun}).damage is None


def test_a_log_that_could_not_be_removed_is_no_gap() -> None:
    """Broken, a node does not start because of files that nobody needs; or it starts though rows are lost."""
    behind = xlog.encode_header("XLOG", UUID.format(1), {1: 9})
    files = {LOG: log_of(3)[0], xlog.file_name({1: 9}): behind}
    with pytest.raises(StartRefused, match="records in between are lost"):
        opened(files)
    snapshot = xlog.encode_header("SNAP", UUID.format(1), {1: 9}) + xlog.encode_eof()
    journal, effects = opened({**files, xlog.file_name({1: 9}, "SNAP"): snapshot})
    assert (journal.vclock, effects[-1]) == ({1: 9}, Remove(LOG))
    held = log_of_files("n1", {**files, xlog.file_name({1: 9}, "SNAP"): snapshot})
    assert (held.begins, held.records) == ({1: 9}, ())
    assert len(log_of_files("n1", files).records) == 3


def test_what_a_snapshot_does_not_hold_is_not_thrown_away_for_it() -> None:
    """Broken, a join that failed takes with it, at the next start, a vote that others were told of."""
    snapshot = xlog.encode_header("SNAP", UUID.format(1), {2: 9}) + xlog.encode_eof()
    with pytest.raises(StartRefused, match="does not hold"):
        opened({LOG: log_of(3)[0], xlog.file_name({2: 9}, "SNAP"): snapshot})


def test_a_finished_log_is_continued() -> None:
    """Broken, what is written behind an end marker is lost, or refused at the next start."""
    data, ends = log_of(2)
    journal, effects = opened({LOG: data + xlog.encode_eof()})
    assert effects[0] == Truncate(LOG, ends[-1])
    assert len(opened({LOG: data + written(journal, 3).data})[0].rows) == 3


@pytest.mark.parametrize("end", [b"", xlog.encode_eof()])
def test_a_log_of_another_version_is_ended(end: bytes) -> None:
    """Broken, rows stand under a header by which they are read wrong: before 2.10 it is not the row that says whether
    it waits."""
    data, ends = log_of(2)
    old = data.replace(b"Version: 3.2.0", b"Version: 2.6.0")
    files = {LOG: bytearray(old + end)}
    journal, effects = opened({LOG: bytes(files[LOG])})
    do(files, effects)
    write = journal.write_own((Draft(Type.NOP.value, {}),), 0.0)
    do(files, [*write.before, write.persist])
    behind = xlog.file_name({1: 2})
    rows = {name: len(xlog.decode(bytes(held)).rows) for name, held in files.items()}
    assert rows == {SNAPSHOT: 0, LOG: 2, behind: 1}
    assert bytes(files[LOG]) == old[: ends[-1]] + xlog.encode_eof()
    assert b"Version: 3.2.0" in files[behind]
    assert len(opened({name: bytes(held) for name, held in files.items()})[0].rows) == 3


def test_a_log_of_another_instance_is_refused() -> None:
    """Broken, a node that is given another's folder speaks in its name."""
    data, _ = log_of(1)
    with pytest.raises(StartRefused, match="written by"):
        Journal(2, UUID.format(2)).open({LOG: data})


def test_a_torn_snapshot_is_written_anew() -> None:
    """Broken, a power loss in a node's first moment leaves it with a snapshot that nothing can read."""
    _, effects = opened({SNAPSHOT: b"SNAP\n0.1"})
    cut, snapshot, header = effects
    assert cut == Truncate(SNAPSHOT, 0)
    assert isinstance(snapshot, Persist) and xlog.decode(snapshot.data).damage is None
    assert isinstance(header, Persist) and header.file == LOG


def test_a_lost_header_comes_with_the_next_record() -> None:
    """Broken, a disk that was full at the first start leaves a log without a header, which no start can read."""
    journal, _ = opened({})
    for value in (1, 2):
        record = written(journal, value)
        journal.failed()
    record = written(journal, 3)
    second = written(journal, 4)
    journal.persisted(record.token)
    found = xlog.decode(record.data + second.data)
    assert found.damage is None and len(found.rows) == 2


def test_what_a_killed_owner_wrote_is_synced_before_replicas_get_it() -> None:
    """Broken, an owner that is killed, started and then loses power has given away a row that it forgets: it uses
    the number again, and nodes differ for ever."""
    for seed in range(8):
        cluster = VirtualCluster(seed)
        cluster.promote()
        owner = cluster.machine("n1")
        owner.records.hold("row")
        cluster.client.ask("n1", "qsync.transaction", [("replace", "notes", ("k", 1))])
        cluster.run(5)
        owner.kill()
        owner.records.release("row")
        cluster.run(60)
        owner.start()
        cluster.run(120)
        owner.lose_power()
        cluster.run(60)
        owner.start()
        cluster.run(300)
        cluster.client.ask("n1", "qsync.transaction", [("replace", "notes", ("k", 2))])
        cluster.run(500)
        assert memory(cluster.node("n1")) == memory(cluster.node("n2")) == memory(cluster.node("n3")), seed


def test_a_transaction_longer_than_the_window_arrives() -> None:
    """Broken, one big transaction stops replication for ever."""
    cluster = VirtualCluster(1)
    cluster.promote()
    many = [("replace", "register", (f"k{number}", number)) for number in range(5_000)]
    asked = cluster.client.ask("n1", "qsync.transaction", many)
    cluster.run(500)
    assert isinstance(asked.reply, Answer)
    assert memory(cluster.node("n1")) == memory(cluster.node("n3"))


@given(
    st.lists(st.sampled_from(("write", "write", "write", "sync", "sync", "fail", "new file"))),
    st.integers(1, 600),
)
def test_a_log_that_failed_writes_is_as_long_as_its_file(actions: list[str], file_bytes_max: int) -> None:
    """Broken, each full disk makes the node's idea of its log longer: it begins files and snapshots too early."""
    journal = Journal(1, UUID.format(1), file_bytes_max=file_bytes_max)
    _, effects = journal.open({})
    waiting = [effect for effect in effects if isinstance(effect, Persist)]
    disk: dict[str, bytearray] = {}

    def sync() -> None:
        effect = waiting.pop(0)
        do(disk, [effect])
        journal.persisted(effect.token)

    for value, action in enumerate([*actions, "write"]):
        match action:
            case "write":
                body = {Key.SPACE_ID.value: 512, Key.TUPLE.value: ("r1", value)}
                write = journal.write_own((Draft(Type.REPLACE.value, body),), 0.0)
                waiting += [*write.before, write.persist]
            case "sync" if waiting:
                sync()
            case "fail" if waiting:
                waiting.clear()
                journal.failed()
            case "new file":
                journal.begin_new_file()
    while waiting:
        sync()
    logs = {name: data for name, data in disk.items() if name.endswith(".xlog")}
    ends = {
        name: len(xlog.encode_eof()) if data.endswith(xlog.encode_eof()) else 0 for name, data in logs.items()
    }
    assert {file.name: file.size for file in journal.files} == {
        name: len(data) - ends[name] for name, data in logs.items()
    }


def row_of(origin: int, lsn: int, kind: Type, body: dict[int, object]) -> Row:
    return Row(kind.value, origin, lsn, 0.0, lsn, body=body)


@pytest.mark.parametrize("space", [512, 513], ids=["synchronous", "asynchronous"])
@pytest.mark.parametrize("ended", [None, Type.CONFIRM, Type.ROLLBACK])
def test_2_6_reads_no_log_with_entries_of_two_owners(space: int, ended: Type | None) -> None:
    """Broken, the queue holds entries of two nodes: the CONFIRM of one owner decides about the other's."""
    rows = [row_of(1, 1, Type.REPLACE, {Key.SPACE_ID.value: 512, Key.TUPLE.value: ("r1", 1)})]
    if ended is not None:
        rows.append(row_of(1, 2, ended, {Key.REPLICA_ID.value: 1, Key.LSN.value: 1}))
    rows.append(row_of(2, 1, Type.REPLACE, {Key.SPACE_ID.value: space, Key.TUPLE.value: ("r2", 2)}))
    data = xlog.encode_header("XLOG", UUID.format(1), {}, server_version="2.6.0")
    data += b"".join(xlog.encode_block((row,)) for row in rows)
    node = Replica(configuration("n1", nodes=3, quorum=2, bugs=(), more={"protocol": "2.6"}))
    if ended is None:
        with pytest.raises(
            StartRefused, match="2/1 of the log stands behind the synchronous transaction 1/1"
        ):
            node.step(Started({LOG: data}), Instant(0, 0))
    else:
        node.step(Started({LOG: data}), Instant(0, 0))
        assert [entry.lsn for entry in node.commits.limbo.entries] == ([1] if space == 512 else [])
