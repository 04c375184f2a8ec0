"""Plays a conversation with one node: a script that reads like a log, and what the node does at each line.

    # An acknowledgement may come before the node itself has the lsn.
    > owner n1
    > c1 replace register r1 1
      persist #4 row: 1/2 REPLACE register ["r1", 1] wait-sync wait-ack
      send n2 (behind #4): rows 1/2 REPLACE register ["r1", 1] wait-sync wait-ack

A line that begins with `>` happens; the indented lines under it are the effects which come out, in order, as
`nodes.kernel.effects` would have them. `QSYNC_REWRITE=1` writes the effects anew; then read the difference.

| what happens | |
|---|---|
| `owner n1 [quorum=2] [nodes=3] [bug=confirm-early] […]` | n1 owns the queue, all others follow it; said in silence |
| `replica n2 […]` | n2 follows all others, and n1 owns the queue |
| `node n1 […]` | n1 on an empty disk, nobody owns anything |
| `leader n1 elections=candidate […]` | n1 won the election of term 2 and owns the queue; all follow each other |
| `newcomer n4` | n4 on an empty disk, of a cluster of three that it must join |
| `written [all]` | the oldest record is on disk; all of them, those that come of it included |
| `disk fails` | nothing that is under way reached the disk |
| `c1 [dirty\\|linearizable\\|sync\\|lazy\\|submit\\|none] replace SPACE KEY VALUE; cas …` | a transaction of a client |
| `… update SPACE KEY OP FIELD VALUE`, `… upsert SPACE KEY VALUE OP FIELD VALUE` | among its statements |
| `c1 alter SPACE OPTION VALUE`, `c1 delete-request SPACE KEY`, `c1 update-request SPACE KEY OP FIELD VALUE` | |
| `c1 snapshot`, `c1 clear` | an administrator |
| `c1 promote`, `c1 select SPACE [KEY]`, `c1 insert SPACE KEY VALUE` | other requests |
| `n4 joins [anonymously]`, `n4 asks for a ballot` | a node without data |
| `n2 subscribes [anonymously] [LSN]`, `n2 subscribes at {1: 4, 2: 3}` | a follower |
| `n2 hangs up` | it, or a client |
| `n2 acks LSN [of n1] [in term 3] [answering 1]` | it has n1's rows up to there; to the node's question number 1 |
| `n1 answers, an older version`, `n2 subscribes, an older version` | which knows no marks of a PROMOTE |
| `n1 answers`, `n1 rows R + R \\| R`, `n1 heartbeat`, `n1 is lost` | a peer that we follow; + joins a transaction |
| `1/5 REPLACE register r1 1 [wait-sync] [wait-ack]`, `1/6 CONFIRM 5 [n1]`, `2/1 PROMOTE 3 [n1 LSN]` | rows |
| `2/1 PROMOTE 3 waits`, `… at-once`, `… unmarked` | by default as the node's own PROMOTEs do |
| `n1 is not there`, `n1 takes the call`, `n1 refuses with 219`, `n1 is writable at {1: 4}` | answers by words |
| `n1 is writable at {1: 4}, with logs from {1: 2} on` | older ones are collected |
| `n2 is candidate in term 3 [with {1: 4}]`, `n2 is leader in term 3` | what a peer says of its election |
| `n2 is nothing in term 3`, `n2 is candidate in term 3 without its vclock`, `… for n1` | what no peer may say |
| `n2 is follower in term 3 [for n1] [seeing the leader]` | that it voted for n1 |
| `wait 300ms`, `beat` | timers that are due fire; the beat is once a minute |
| `restart`, `restart, all written` | the process is killed, with what was under way lost or on disk, and starts |
| `restart with elections=candidate …` | with other options |
| `the log loses 5 bytes`, `the log is damaged in block 2` | done to the file of a node that is down |
| `show` | the limbo and the spaces |
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nodes.iproto import xlog
from nodes.iproto.greeting import version_number
from nodes.iproto.messages import (
    PROMOTE_MARK,
    Ack,
    Answer,
    Ballot,
    Call,
    Delete,
    Heartbeat,
    Insert,
    Join,
    JoinMeta,
    JoinSnapshot,
    Key,
    RaftState,
    Refusal,
    Row,
    Rows,
    Select,
    Stage,
    Subscribe,
    Subscribed,
    Type,
    Update,
    Vote,
)
from nodes.kernel.effects import (
    CancelTimer,
    Connect,
    Disconnect,
    Effect,
    Log,
    Persist,
    Remove,
    Send,
    SetTimer,
    Truncate,
)
from nodes.kernel.errors import StartRefused
from nodes.kernel.events import (
    Connected,
    ConnectFailed,
    Disconnected,
    Event,
    Instant,
    Persisted,
    PersistFailed,
    Received,
    Started,
    TimerFired,
)
from nodes.qsync.configuration import Configuration, Identity, SpaceDefinition
from nodes.qsync.replica import Replica

MILLISECOND_NS = 1_000_000
UUID = "00000000-0000-4000-8000-00000000000{}"
SPACES = (
    SpaceDefinition(id=512, name="register", is_sync=True),
    SpaceDefinition(id=513, name="notes", is_sync=False),
    SpaceDefinition(id=514, name="near", is_local=True),
    SpaceDefinition(id=515, name="brief", is_temporary=True),
)
_TRANSACTION_OPTIONS: dict[str, dict[str, object]] = {
    "dirty": {"read": "dirty"},
    "linearizable": {"read": "linearizable"},
    "sync": {"is_sync": True},
    "lazy": {"is_lazy": True},
    "submit": {"wait": "submit"},
    "none": {"wait": "none"},
}
_SPACE_NAMES = {space.id: space.name for space in SPACES} | {320: "_cluster"}
_HEADER = xlog.encode_header("XLOG", UUID.format(1), {})


def configuration(
    name: str,
    *,
    nodes: int = 3,
    quorum: int = 2,
    bugs: tuple[str, ...] = (),
    synchro_timeout_ns: int = 1_000 * MILLISECOND_NS,
    replication_timeout_ns: int = 60_000 * MILLISECOND_NS,
    more: Mapping[str, object] | None = None,
) -> Configuration:
    """A member of a cluster n1, n2, …, with a synchronous and an asynchronous space."""
    return Configuration(
        name=name,
        cluster_uuid=UUID.format(9),
        members=tuple(Identity(id=i, name=f"n{i}", uuid=UUID.format(i)) for i in range(1, nodes + 1)),
        spaces=SPACES,
        quorum=quorum,
        synchro_timeout_ns=synchro_timeout_ns,
        replication_timeout_ns=replication_timeout_ns,
        bugs=bugs,
        **(more or {}),  # type: ignore[arg-type]
    )


@dataclass
class Conversation:
    """One node, its disk and its clock, in the hands of a script."""

    conf: Configuration = field(default_factory=lambda: configuration("n1"))
    now_ns: int = 0
    lines: list[str] = field(default_factory=list)

    def begin(self, conf: Configuration) -> None:
        self.conf = conf
        self.files: dict[str, bytearray] = {}
        self.start()

    def start(self) -> None:
        """A new process over what the disk holds."""
        self.node = Replica(self.conf)
        self.unwritten: deque[Persist] = deque()
        self.timers: dict[str, int] = {}
        self.links: dict[str, int] = {}
        self.followed: dict[str, int] = {}
        self.names: dict[int, str] = {}
        self.step(Started({name: bytes(self.files[name]) for name in sorted(self.files)}))

    # ---- events in, effects out

    def step(self, event: Event) -> None:
        try:
            effects = self.node.step(event, Instant(self.now_ns, self.now_ns))
        except StartRefused as refused:
            self.lines.append(f"refused to start: {refused}")
            return
        for effect in effects:
            self._carry_out(effect)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Persist():
                self.unwritten.append(effect)
            case SetTimer(name, after_ns):
                self.timers[name] = self.now_ns + after_ns
                if name == "beat":
                    return
            case CancelTimer(name):
                self.timers.pop(name, None)
            case Truncate(file, size):
                del self.files[file][size:]
            case Remove(file):
                self.files.pop(file, None)
        self.lines.append(self._told(effect))

    def _told(self, effect: Effect) -> str:
        match effect:
            case Persist(token, file, data, "snapshot"):
                return f"persist #{token} snapshot: {file}: {_snapshot(data)}"
            case Persist(token, file, data, record) if data[:1] == b"X" and xlog.decode(data).rows:
                return f"persist #{token} {record}: {file} begins: {_rows(xlog.decode(data).rows)}"
            case Remove(file):
                return f"remove {file}"
            case Persist(token, file, _, "eof"):
                return f"persist #{token} eof: {file}"
            case Persist(token, file, data, record):
                what = (
                    _rows(xlog.decode(_HEADER + data).rows)
                    if file.endswith("xlog") and data[:1] > b"X"
                    else file
                )
                return f"persist #{token} {record}: {what}"
            case Send(link, message, after):
                behind = "" if after is None else f" (behind #{after})"
                return f"send {self._name(link)}{behind}: {_message(message)}"
            case Connect(peer):
                return f"connect {peer}"
            case Disconnect(link):
                return f"hang up on {self._name(link)}"
            case SetTimer(name, after_ns):
                return f"timer {name} in {after_ns // MILLISECOND_NS} ms"
            case Truncate(file, size):
                return f"truncate {file} to {size} bytes"
            case Log(level, message, fields):
                return f"log {level}: {message} {_json(dict(fields))}"
            case _:
                return repr(effect)

    def _name(self, link: int) -> str:
        return self.names[link]

    def _link(self, name: str) -> int:
        """The link of a client or follower; a new one at its first word."""
        return self.links[name] if name in self.links else self._new_link(self.links, name)

    def _new_link(self, links: dict[str, int], name: str) -> int:
        link = links[name] = len(self.names) + 1
        self.names[link] = name
        return link

    # ---- what happens

    def happen(self, line: str) -> list[str]:
        """Do what a line of the script says; returns the effects as text."""
        self.lines = []
        for pattern, action in _ACTIONS:
            found = re.fullmatch(pattern, line)
            if found is not None:
                getattr(self, action.__name__)(**found.groupdict(default=""))
                return self.lines
        raise ValueError(f"not a line of a conversation: {line!r}")

    def node_alone(self, name: str, options: str) -> None:
        self.begin(_with_options(name, options))
        self.write("all")
        self.lines.clear()

    def newcomer(self, name: str) -> None:
        cluster = configuration("n1")
        members = (*cluster.members, Identity(id=0, name=name, uuid=UUID.format(name[1:])))
        self.begin(replace(cluster, name=name, members=members, joins=True))
        self.lines.clear()

    def owner(self, name: str, options: str) -> None:
        self.node_alone(name, options)
        for peer in self.conf.peers:
            self.subscribe(peer.name, "")
        self.step(Received(self._link("set-up"), Call(0, "box.ctl.promote", ())))
        self.write("all")
        for peer in self.conf.peers:
            self.acknowledge(peer.name, "1")
        self.lines.clear()

    def replica(self, name: str, options: str) -> None:
        self.node_alone(name, options)
        for peer in self.conf.peers:
            self.answer(peer.name)
        self.rows("n1", "1/1 PROMOTE 2")
        self.write("all")
        self.lines.clear()

    def leader(self, name: str, options: str) -> None:
        self.node_alone(name, options)
        for peer in self.conf.peers:
            self.subscribe(peer.name, "")
            self.answer(peer.name)
        self.step(Received(self._link("set-up"), Call(0, "box.ctl.promote", ())))
        self.write("all")
        for peer in self.conf.peers:
            self.raft(peer.name, "follower", "2", "", name)
        self.write("all")
        for peer in self.conf.peers:
            self.acknowledge(peer.name, "1")
        self.write("all")
        for peer in self.conf.peers:
            self.acknowledge(peer.name, "2")
        self.lines.clear()

    def raft(self, name: str, state: str, term: str, vclock: str, vote: str = "", seeing: str = "") -> None:
        number = int(name[1:])
        numbers = {"follower": 1, "candidate": 2, "leader": 3, "nothing": 0, "something": 10_000}
        own = number if state in ("candidate", "leader") else 0
        choice = int(vote[1:]) if vote else own
        known = None if vclock == " without its vclock" else _numbers(vclock)
        leader = number if state == "leader" else 0
        is_seen = bool(seeing) or state == "leader"
        said = RaftState(number, int(term), choice, numbers[state], leader, is_seen, known)
        self.step(Received(self.followed[name], said))

    def write(self, all_: str) -> None:
        while self.unwritten:
            record = self.unwritten.popleft()
            self._reaches_disk(record)
            self.step(Persisted(record.token))
            if not all_:
                return

    def _reaches_disk(self, record: Persist) -> None:
        if record.is_whole:
            self.files[record.file] = bytearray(record.data)
        else:
            self.files.setdefault(record.file, bytearray()).extend(record.data)

    def fail(self) -> None:
        tokens = tuple(record.token for record in self.unwritten)
        self.unwritten.clear()
        self.step(PersistFailed(tokens, "no space left on device"))

    def client(self, name: str, mode: str, request: str) -> None:
        link = self._link(name)
        words = request.split()
        match words:
            case ["call", name, *given]:
                self.step(Received(link, Call(1, name, tuple(json.loads(f"[{' '.join(given)}]")))))
            case ["promote"]:
                self.step(Received(link, Call(1, "box.ctl.promote", ())))
            case ["snapshot"]:
                self.step(Received(link, Call(1, "box.snapshot", ())))
            case ["clear"]:
                self.step(Received(link, Call(1, "box.ctl.clear_synchro_queue", ())))
            case ["select", space, *key]:
                self.step(Received(link, Select(1, _space_id(space), tuple(_values(key)))))
            case ["INSERT", space, *values]:
                self.step(Received(link, Insert(1, _space_id(space), tuple(_values(values)))))
            case ["alter", space, option, value]:
                options = {option: value == "true"}
                self.step(Received(link, Call(1, f"box.space.{space}:alter", (options,))))
            case ["delete-request", space, *key]:
                self.step(Received(link, Delete(1, _space_id(space), tuple(_values(key)))))
            case ["update-request", space, key, *operation]:
                operations = (_values(operation),)
                self.step(Received(link, Update(1, _space_id(space), (key,), operations)))
            case _:
                statements = tuple(_statement(part.split()) for part in request.split(";"))
                options = (_TRANSACTION_OPTIONS[mode.strip()],) if mode else ()
                self.step(Received(link, Call(1, "qsync.transaction", (statements, *options))))

    def subscribe(self, name: str, lsn: str = "", anonymous: str = "", older: str = "", at: str = "") -> None:
        number, vclock = int(name[1:]), _numbers(at) if at else {1: int(lsn)} if lsn else {}
        uuids = self.conf.cluster_uuid, UUID.format(number)
        features = () if older else (PROMOTE_MARK,)
        version = version_number(self.conf.version)
        request = Subscribe(0, *uuids, number, vclock, version, bool(anonymous), features)
        self.step(Received(self._new_link(self.links, name), request))

    def join(self, name: str, anonymous: str) -> None:
        uuid = "" if anonymous else UUID.format(name[1:])
        request = Join(0, uuid, is_anonymous=bool(anonymous))
        self.step(Received(self._new_link(self.links, name), request))

    def ask_for_ballot(self, name: str) -> None:
        self.step(Received(self._new_link(self.links, name), Vote(0)))

    def acknowledge(self, name: str, lsn: str, origin: str = "1", term: str = "", question: str = "") -> None:
        vclock = {int(origin or 1): int(lsn)}
        self.step(Received(self.links[name], Ack(vclock, int(term or 2), int(question or 0))))

    def hang_up(self, name: str) -> None:
        self.step(Disconnected(self.links.pop(name), "end of stream"))

    def answer(self, name: str, older: str = "") -> None:
        self.step(Connected(self._new_link(self.followed, name), name))
        features = () if older else (PROMOTE_MARK,)
        answer = Subscribed(0, self.conf.cluster_uuid, {}, features=features)
        self.step(Received(self.followed[name], answer))

    def take_call(self, name: str) -> None:
        self.step(Connected(self._new_link(self.followed, name), name))

    def not_there(self, name: str) -> None:
        self.step(ConnectFailed(name, "connection refused"))

    def refuse(self, name: str, code: str) -> None:
        self.step(Received(self.followed[name], Refusal(0, int(code), "refused")))

    def tell_ballot(self, name: str, state: str, vclock: str, kept: str | None = None) -> None:
        logs = {} if kept is None else _numbers(kept)
        ballot = Ballot(0, state != "writable", _numbers(vclock), logs, state == "loading")
        self.step(Received(self.followed[name], ballot))

    def rows(self, name: str, text: str) -> None:
        waits = self.conf.election_mode != "off" and self.conf.synchronous_promote
        rows = [row for transaction in text.split("|") for row in _transaction(transaction, waits)]
        self.step(Received(self.followed[name], Rows(tuple(rows))))

    def heartbeat(self, name: str, milliseconds: str = "") -> None:
        """One that does not say when it was sent, or one that was sent so long ago."""
        sent_ns = self.now_ns - int(milliseconds) * MILLISECOND_NS if milliseconds else 0
        self.step(Received(self.followed[name], Heartbeat(1, sent_ns / 1e9)))

    def lose(self, name: str) -> None:
        self.step(Disconnected(self.followed.pop(name), "connection reset by peer"))

    def wait(self, milliseconds: str) -> None:
        until_ns = self.now_ns + int(milliseconds) * MILLISECOND_NS
        while self.timers and min(self.timers.values()) <= until_ns:
            name = min(self.timers, key=lambda timer: self.timers[timer])
            self.now_ns = max(self.now_ns, self.timers.pop(name))
            self.lines.append(f"timer {name} fires")
            self.step(TimerFired(name))
        self.now_ns = until_ns

    def beat(self) -> None:
        self.step(TimerFired("beat"))

    def restart(self, all_written: str, options: str = "") -> None:
        if options:
            self.conf = _with_options(self.conf.name, options)
        for record in self.unwritten if all_written else ():
            self._reaches_disk(record)
        self.start()

    def tear(self, size: str) -> None:
        del self._log()[-int(size) :]

    def damage(self, block: str) -> None:
        log = self._log()
        places = [found.start() for found in re.finditer(b"\xd5\xba\x0b", log)]
        log[places[int(block) - 1] + 20] ^= 0xFF

    def _log(self) -> bytearray:
        return self.files[max(name for name in self.files if name.endswith(".xlog"))]

    def show(self) -> None:
        limbo = self.node.commits.limbo
        entries = [f"lsn {entry.lsn} {'sync' if entry.wait_ack else 'async'}" for entry in limbo.entries]
        acknowledged = " ".join(f"{node}:{lsn}" for node, lsn in sorted(limbo.acknowledged.items()))
        self.lines.append(f"limbo: {', '.join(entries) or 'empty'}")
        self.lines.append(
            f"acknowledged {acknowledged or '–'}; confirmed {limbo.confirmed_lsn}, confirming {limbo.confirming_lsn}"
        )
        for space in self.node.schema.user_spaces():
            views = (list(space.scan(dirty=False)), list(space.scan(dirty=True)))
            if any(views):
                self.lines.append(f"{space.definition.name}: {_json(views[0])}, prepared {_json(views[1])}")


_NODE = r"(?P<name>n\d)"
_BALLOT = (
    rf"{_NODE} is (?P<state>writable|read-only|loading) at (?P<vclock>\{{.*?\}})"
    r"(?:, with logs from (?P<kept>\{.*\}) on)?"
)
_OPTIONS = r"(?P<options>( \w+=\S+)*)"
_STATE = (
    r"(?P<state>follower|candidate|leader|nothing|something) in term (?P<term>\d+)"
    r"(?P<vclock> with \{.*\}| without its vclock)?"
)
_AT = r"( (?P<lsn>\d+)| at (?P<at>\{.*\}))?"
_ACK = r"( of n(?P<origin>\d))?( in term (?P<term>\d+))?( answering (?P<question>\d+))?"
_ACTIONS: Sequence[tuple[str, Callable[..., None]]] = (
    (rf"node {_NODE}{_OPTIONS}", Conversation.node_alone),
    (rf"newcomer {_NODE}", Conversation.newcomer),
    (rf"owner {_NODE}{_OPTIONS}", Conversation.owner),
    (rf"leader {_NODE}{_OPTIONS}", Conversation.leader),
    (rf"replica {_NODE}{_OPTIONS}", Conversation.replica),
    (r"written(?P<all_> all)?", Conversation.write),
    (r"disk fails", Conversation.fail),
    (r"(?P<name>[nc]\d) hangs up", Conversation.hang_up),
    (
        r"(?P<name>c\d) (?P<mode>dirty |linearizable |sync |lazy |submit |none )?(?P<request>.+)",
        Conversation.client,
    ),
    (rf"{_NODE} joins(?P<anonymous> anonymously)?", Conversation.join),
    (rf"{_NODE} asks for a ballot", Conversation.ask_for_ballot),
    (
        rf"{_NODE} subscribes(?P<anonymous> anonymously)?{_AT}(?P<older>, an older version)?",
        Conversation.subscribe,
    ),
    (rf"{_NODE} acks (?P<lsn>\d+){_ACK}", Conversation.acknowledge),
    (rf"{_NODE} is {_STATE}( for (?P<vote>n\d))?(?P<seeing> seeing the leader)?", Conversation.raft),
    (rf"{_NODE} answers(?P<older>, an older version)?", Conversation.answer),
    (rf"{_NODE} takes the call", Conversation.take_call),
    (rf"{_NODE} is not there", Conversation.not_there),
    (rf"{_NODE} refuses with (?P<code>\d+)", Conversation.refuse),
    (
        _BALLOT,
        Conversation.tell_ballot,
    ),
    (rf"{_NODE} rows (?P<text>.+)", Conversation.rows),
    (rf"{_NODE} heartbeat( of (?P<milliseconds>\d+)ms ago)?", Conversation.heartbeat),
    (rf"{_NODE} is lost", Conversation.lose),
    (r"wait (?P<milliseconds>\d+)ms", Conversation.wait),
    (r"beat", Conversation.beat),
    (r"restart(?P<all_written>, all written)?( with (?P<options>.*))?", Conversation.restart),
    (r"the log loses (?P<size>\d+) bytes", Conversation.tear),
    (r"the log is damaged in block (?P<block>\d+)", Conversation.damage),
    (r"show", Conversation.show),
)


_FIELDS: Mapping[str, Callable[[str], tuple[str, object]]] = {
    "elections": lambda value: ("election_mode", value),
    "fencing": lambda value: ("election_fencing", value),
    "exact": lambda value: ("exact_elections", value == "yes"),
    "promote": lambda value: ("synchronous_promote", value == "synchronous"),
    "timeout": lambda value: ("rollback_on_timeout", value == "rolls-back"),
    "unmarked": lambda value: ("unmarked_promote", value.replace("-", " ")),
    "mvcc": lambda value: ("memtx_use_mvcc_engine", value == "on"),
    "queue": lambda value: ("synchro_queue_max_size", int(value)),
    "quorum": lambda value: ("quorum", int(value)),
    "answered": lambda value: ("promote_waits_for_queue", value == "owned"),
    "after_restart": lambda value: ("owner_after_restart", value == "owner"),
    "after_promote": lambda value: ("confirmed_lsn_after_promote", value),
    "connect": lambda value: ("replication_connect_quorum", int(value)),
    "read_only": lambda value: ("read_only", value == "yes"),
    "protocol": lambda value: ("protocol", value),
    "file": lambda value: ("wal_max_size", int(value)),
    "keep": lambda value: ("checkpoint_count", int(value)),
    "interval": lambda value: ("checkpoint_interval_ns", int(value)),
}
"""Options of a node in a script, and the fields of the configuration that they are."""


def _with_options(name: str, options: str) -> Configuration:
    given = dict(option.split("=", 1) for option in options.split())
    bugs = (given.pop("bug"),) if "bug" in given else ()
    nodes, quorum = int(given.pop("nodes", 3)), int(given.pop("quorum", 2))
    more = dict(_FIELDS[key](value) for key, value in given.items())
    return configuration(name, nodes=nodes, quorum=quorum, bugs=bugs, more=more)


# ---- text → values


def _numbers(vclock: str) -> dict[int, int]:
    return {int(a): int(b) for a, b in re.findall(r"(\d+): (\d+)", vclock)}


def _space_id(name: str) -> int:
    return int(name) if name.isdigit() else next(space.id for space in SPACES if space.name == name)


def _values(words: Iterable[str]) -> list[object]:
    """Numbers and null are themselves, all else is a string."""
    return [json.loads(word) if re.fullmatch(r"-?\d+|null", word) else word for word in words]


def _statement(words: Sequence[str]) -> list[object]:
    match words:
        case [("insert" | "replace") as verb, space, *values]:
            return [verb, space, tuple(_values(values))]
        case ["update", space, key, *operation]:
            return ["update", space, key, [_values(operation)]]
        case ["upsert", space, key, value, *operation]:
            return ["upsert", space, tuple(_values([key, value])), [_values(operation)]]
        case [verb, *arguments]:
            return [verb, *_values(arguments)]
        case _:
            raise ValueError(f"not a statement: {words}")


def _transaction(text: str, waits: bool) -> list[Row]:
    """`waits`: whether a PROMOTE does that does not say it."""
    rows = [part.split() for part in text.split("+")]
    first = int(rows[0][0].partition("/")[2])
    return [_row(words, first, waits, is_commit=words is rows[-1]) for words in rows]


def _row(words: Sequence[str], first_lsn: int, waits: bool, *, is_commit: bool) -> Row:
    origin, _, lsn = words[0].partition("/")
    flags = [word for word in words if word in ("wait-sync", "wait-ack", *_MARKS)]
    if words[1] in ("PROMOTE", "DEMOTE"):
        mark = next((word for word in flags if word in _MARKS), "waits" if waits else "at-once")
        flags = _MARKS[mark]
    match [word for word in words[1:] if word not in ("wait-sync", "wait-ack", *_MARKS)]:
        case [("CONFIRM" | "ROLLBACK") as kind, upto, *owner]:
            number = int(owner[0][1:]) if owner else int(origin)
            body: Mapping[int, object] = {Key.REPLICA_ID: number, Key.LSN: int(upto)}
        case [("PROMOTE" | "DEMOTE") as kind, term]:
            body = {Key.REPLICA_ID: 0, Key.LSN: 0, Key.TERM: int(term)}
        case [("PROMOTE" | "DEMOTE") as kind, term, old, upto]:
            body = {Key.REPLICA_ID: int(old[1:]), Key.LSN: int(upto), Key.TERM: int(term)}
        case ["NOP" as kind]:
            body = {}
        case ["DELETE" as kind, space, key]:
            body = {Key.SPACE_ID: _space_id(space), Key.INDEX_ID: 0, Key.KEY: tuple(_values([key]))}
        case [("INSERT" | "REPLACE") as kind, space, *values]:
            body = {Key.SPACE_ID: _space_id(space), Key.TUPLE: tuple(_values(values))}
        case _:
            raise ValueError(f"not a row: {words}")
    return Row(
        type=Type[kind].value,
        replica_id=int(origin),
        lsn=int(lsn),
        timestamp=0.0,
        tsn=first_lsn,
        is_commit=is_commit,
        wait_sync="wait-sync" in flags,
        wait_ack="wait-ack" in flags,
        body={int(key): value for key, value in body.items()},
    )


_MARKS = {"waits": ["wait-sync", "wait-ack"], "at-once": ["wait-sync"], "unmarked": []}
"""Flags of a PROMOTE or DEMOTE, by what they mean."""


# ---- values → text


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=list)


def _rows(rows: Iterable[Row]) -> str:
    """Transactions, parted by |; the rows of one, joined by +."""
    text = ""
    for row in rows:
        text += f"{row.replica_id}/{row.lsn} {Type(row.type).name}{_body(row)}"
        if row.type in (Type.PROMOTE, Type.DEMOTE):
            text += " waits" if row.wait_ack else "" if row.wait_sync else " unmarked"
        else:
            text += " wait-sync" * row.wait_sync + " wait-ack" * row.wait_ack
        text += " | " if row.is_commit else " + "
    return text.removesuffix(" | ")


def _body(row: Row) -> str:
    body = dict(row.body)
    if Key.SPACE_ID.value in body:
        value = body.get(Key.TUPLE.value, body.get(Key.KEY.value))
        number = int(str(body[Key.SPACE_ID.value]))
        return f" {_SPACE_NAMES.get(number, number)} {_json(value)}"
    if row.type in (Type.CONFIRM, Type.ROLLBACK):
        return f" {body[Key.LSN.value]}"
    if row.type == Type.RAFT:
        return f" term {body[0]}" + (f" vote n{body[1]}" if 1 in body else "")
    if Key.TERM.value not in body:
        return ""
    old, lsn = body[Key.REPLICA_ID.value], body[Key.LSN.value]
    return f" term {body[Key.TERM.value]}" + (f" from n{old} at {lsn}" if old else "")


def _snapshot(data: bytes) -> str:
    """What is not the same in all: users' tuples, the queue, the election."""
    return _stored(xlog.decode(data).rows)


def _stored(rows: Iterable[Row]) -> str:
    own = [row for row in rows if int(str(row.body.get(Key.SPACE_ID.value, 512))) >= 512]
    told = [f"{Type(row.type).name}{_body(row)}" for row in own]
    return ", ".join(told) or "no data"


def _message(message: object) -> str:
    match message:
        case Rows(rows) if rows[0].lsn == 0:
            return f"data: {_stored(rows)}"
        case Stage(_, vclock):
            return f"up to {_vclock(vclock)}"
        case JoinMeta():
            return "states:"
        case JoinSnapshot():
            return "all data:"
        case Vote():
            return "ballot?"
        case Join():
            return "join" + " anonymously" * message.is_anonymous
        case Ballot():
            flags = "loading" if message.is_loading else "read-only" if message.is_read_only else "writable"
            return f"ballot: {flags}, at {_vclock(message.vclock)}, logs from {_vclock(message.gc_vclock)} on"
        case Rows(rows):
            return f"rows {_rows(rows)}"
        case Answer(_, data):
            return f"ok {_answer(data)}".rstrip()
        case Refusal(_, code, text):
            return f"error {code} {text}"
        case Ack(vclock, term):
            return f"ack {_vclock(vclock)} term {term}"
        case Subscribe(vclock=vclock):
            return f"subscribe from {_vclock(vclock)}"
        case Subscribed(vclock=vclock):
            return f"subscribed, we have {_vclock(vclock)}"
        case Heartbeat():
            return "heartbeat"
        case RaftState():
            names = {1: "follower", 2: "candidate", 3: "leader"}
            said = f"raft: {names[message.state]} in term {message.term}"
            said += f", vote n{message.vote}" if message.vote else ""
            said += f", leader n{message.leader_id}" if message.leader_id else ""
            return said + (f", {_vclock(message.vclock)}" if message.vclock else "")
        case _:
            return repr(message)


def _answer(data: Sequence[object]) -> str:
    match data:
        case [{"committed": True, "results": results}]:
            return _json(results)
        case [{"committed": False, "mismatch": [number, found]}]:
            return f"mismatch in statement {number}: found {_json(found)}"
        case _:
            return _json(data)


def _vclock(vclock: Mapping[int, int]) -> str:
    return "{" + ", ".join(f"{origin}: {vclock[origin]}" for origin in sorted(vclock)) + "}"
