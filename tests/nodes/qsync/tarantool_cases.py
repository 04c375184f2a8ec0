"""Plays a case of Tarantool's own suite over a simulated cluster: what the case does, and what it asserts.

    case a conflicting PROMOTE is a split-brain
      n1 follows nobody
      n2 promote
      r: n1 replace sync 1
      r fails 217
      soon n2 replication.1.upstream.status = stopped

A file holds the cases of one original file: a block `before`, which is played first for each of them, and blocks
`case NAME`. Calls go over the wire; data and `box.info` are looked at in the process, because a node whose log hangs
answers nobody (decision 4). Time is virtual: a call is waited for, an assertion after `soon` is tried until it holds,
for a minute at most.

| line | |
|---|---|
| `nodes n1 n2 OPTIONS; n2 OPTIONS; newcomer n3 OPTIONS` | a cluster, all of whom follow each other; n3 starts later |
| `n1 CALL`, `n1 CALL fails [CODE] ["text"]` | a call and its answer |
| `r: n1 CALL` | begun, its answer is asked for later: `r waits`, `r succeeds`, `r fails CODE`, `r ends` |
| `r, s: n1 CALL & CALL` | begun one right behind the other |
| `n1 PATH = VALUE` | a field of `box.info` (also `!= < <= > >= contains`); `queue.` is short for `synchro.queue.` |
| `n1 has SPACE KEYS`, `n1 sees SPACE KEYS` | confirmed data; whatever is prepared (`nothing`, `1..9`, JSON) |
| `n1 option NAME = VALUE` | of `box.cfg` |
| `let t = n1 PATH`, `leader is a of n1 n2 n3 then b c` | names for later lines: a value; who leads, and who does not |
| `n1 catches up with n2`, `all catch up`, `all follow` | waits for data, or for links |
| `n1 follows n2`, `n1 follows nobody`, `n1 follows all` | whom the node calls: `box.cfg.replication` |
| `cut n1 n2`, `heal n1 n2` | the network between two nodes, both ways |
| `hold Subscribe to n1`, `release Subscribe to n1` | the next message of a type, and all behind it |
| `any of n1 n2 noticed a split vote` | |
| `kill`, `stop`, `start`, `restart`, `pause`, `resume` with a node, and OPTIONS if it starts | |
| `n1 log blocks [at KIND] [after COUNT]`, `n1 log goes on` | its writes hang; `soon n1 log hangs` |
| `n1 disk fails [after KIND]`, `n1 disk works`, `wait 100ms` | |

CALL: `promote`, `demote`, `snapshot`, `wait_rw [SECONDS]`, `cfg OPTIONS`, `create SPACE [sync|local]`, `alter SPACE
OPTION`, `drop SPACE`, `truncate SPACE`, `call FUNCTION JSON`, or a transaction: `[submit|none|linearizable|dirty]
insert SPACE KEY [VALUE] + replace SPACE KEY …` (`get SPACE KEY`, `delete SPACE KEY`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nodes.iproto import xlog
from nodes.iproto.messages import Answer, Call, Key, Refusal, Type
from nodes.kernel.events import Instant
from nodes.qsync.configuration import Configuration, Identity
from nodes.qsync.definitions import SpaceDefinition
from nodes.qsync.info import box_info
from nodes.qsync.replica import Replica
from nodes.qsync.sometimes import SPLIT_VOTE
from nodes.world.world import World
from tests.nodes.qsync.conversation import UUID

SECOND_NS = 1_000_000_000
STEP_NS = 10_000_000
PATIENCE_NS = 60 * SECOND_NS
BEGUN_NS = 5_000_000
"""After which a call that was begun has reached its node, and what it writes the disk."""
SPACES = (
    SpaceDefinition(id=512, name="sync", is_sync=True),
    SpaceDefinition(id=513, name="async"),
    SpaceDefinition(id=514, name="loc", is_local=True),
    SpaceDefinition(id=515, name="temp", is_temporary=True),
)
FIRST = Configuration(
    name="n1",
    cluster_uuid=UUID.format(9),
    members=(Identity(id=1, name="n1", uuid=UUID.format(1)),),
    spaces=SPACES,
    quorum="N / 2 + 1",
    synchro_timeout_ns=5 * SECOND_NS,
    replication_timeout_ns=SECOND_NS,
    election_timeout_ns=5 * SECOND_NS,
    synchro_queue_max_size=16 * 1024 * 1024,
    owner_after_restart=False,
)
"""What Tarantool does if nothing is said."""

Verb = Callable[..., None]


class Wrong(AssertionError):
    """The node does something else than the case asserts."""


@dataclass(eq=False)
class Asked:
    call: Call
    reply: Answer | Refusal | None = None
    is_lost: bool = False


@dataclass(eq=False)
class Client:
    """One connection to each node, so that requests come in the order in which they are made."""

    world: World
    name: str = "client"
    links: dict[str, int] = field(default_factory=dict)
    waiting: dict[int, list[Asked]] = field(default_factory=dict)
    """By link: what has no answer yet."""
    standing: set[int] = field(default_factory=set)
    count: int = 0

    def ask(self, node: str, name: str, *arguments: object) -> Asked:
        self.count += 1
        asked = Asked(Call(self.count, name, arguments))
        if node not in self.links:
            link = self.links[node] = self.world.network.connect(self, node)
            self.waiting[link] = []
        link = self.links[node]
        self.waiting[link].append(asked)
        if link in self.standing:
            self.world.network.send(link, self, asked.call)
        return asked

    def accepted(self, link: int) -> None:
        raise AssertionError("nobody connects to a client")

    def connected(self, link: int) -> None:
        self.standing.add(link)
        for asked in self.waiting[link]:
            self.world.network.send(link, self, asked.call)

    def connect_failed(self, link: int, reason: str) -> None:
        self.ended(link, reason)

    def ended(self, link: int, reason: str) -> None:
        self.links = {node: number for node, number in self.links.items() if number != link}
        self.standing.discard(link)
        for asked in self.waiting.pop(link, []):
            asked.is_lost = True

    def lose(self, node: str) -> None:
        """The node's process has ended."""
        if node in self.links:
            self.ended(self.links[node], "end of stream")

    def received(self, link: int, message: object) -> None:
        assert isinstance(message, Answer | Refusal), message
        (asked,) = [each for each in self.waiting[link] if each.call.sync == message.sync]
        self.waiting[link].remove(asked)
        asked.reply = message


@dataclass
class Play:
    """A cluster, and what a script does to it."""

    begun: dict[str, Asked] = field(default_factory=dict)
    values: dict[str, object] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    held: dict[str, str] = field(default_factory=dict)
    """By node: the kind of record that hangs, "" for any."""
    fails_after: dict[str, str] = field(default_factory=dict)
    """By node: the kind of record behind which its disk fails."""
    countdown: dict[str, tuple[str, int]] = field(default_factory=dict)
    """By node: the kind of record, and after how many that one hangs."""
    writing: dict[str, list[str]] = field(default_factory=dict)
    """By node: the kinds of what is on its way to the disk."""

    def play(self, lines: Sequence[str]) -> None:
        """All lines, in order; `Wrong` names the first that does not hold."""
        for line in lines:
            try:
                self.happen(line)
            except Wrong as wrong:
                raise Wrong(f"{line}: {wrong}") from None
            assert not self.crashes, f"{line}: {self.crashes}"

    def happen(self, line: str) -> None:
        for pattern, verb in _LINES:
            found = re.fullmatch(pattern, line)
            if found is not None:
                verb(self, **found.groupdict())
                return
        raise ValueError(f"not a line of a case: {line!r}")

    # ---- the cluster

    def nodes(self, text: str) -> None:
        first, *others = [part.split() for part in text.split(";")]
        names = [word for word in first if "=" not in word]
        newcomers = [words.pop(1) for words in others if words[0] == "newcomer"]
        common = _settings(word for word in first if "=" in word)
        named = [*newcomers, *(words[0] for words in others if words[0] != "newcomer")]
        others.sort(key=lambda words: words[0] != "newcomer")
        own = {name: _settings(words[1:]) for name, words in zip(named, others, strict=True)}
        members = tuple(Identity(id=int(name[1:]), name=name, uuid=UUID.format(name[1:])) for name in names)
        strangers = tuple(Identity(id=0, name=name, uuid=UUID.format(name[1:])) for name in newcomers)
        self.configurations = {
            name: replace(
                FIRST,
                name=name,
                members=members + strangers,
                joins=name in newcomers,
                **{**common, **own.get(name, {})},  # type: ignore[arg-type]
            )
            for name in (*names, *newcomers)
        }
        self.world = World(
            7,
            {name: lambda name=name: Replica(self.configurations[name]) for name in self.configurations},  # type: ignore[misc]
        )
        self.client = Client(self.world)
        self.world.network.add(self.client)
        self.crashes: list[tuple[str, str]] = []
        self.up: list[str] = []
        self.refused: set[tuple[str, str]] = set()
        for machine in self.world.machines.values():
            machine.on_crash = lambda name, how: self.crashes.append((name, how))
            machine.records.on_record = self._record
        for name in names:
            self.start(name, "")
        self.all_follow()

    def run(self, time_ns: int) -> None:
        agenda, woken = self.world.agenda, list[bool]()
        agenda.at(agenda.now_ns + time_ns, woken.append, True)
        while not woken:
            agenda.advance()

    def node(self, word: str) -> str:
        name = self.roles.get(word, word)
        if name not in self.configurations:
            raise ValueError(f"no node is called {word!r}")
        return name

    # ---- calls

    def ask(self, node: str, call: str) -> Asked:
        return self.client.ask(self.node(node), *self._call(call))

    def answered(self, asked: Asked) -> Answer | Refusal:
        until_ns = self.world.agenda.now_ns + PATIENCE_NS
        while asked.reply is None:
            if asked.is_lost or self.world.agenda.now_ns >= until_ns:
                raise Wrong(f"no answer to {asked.call.name}")
            self.world.agenda.advance()
        return asked.reply

    def call(self, node: str, call: str, fails: str | None = None) -> None:
        asked = self.ask(node, call)
        self.answered(asked)
        self._check(asked, fails)

    def begin(self, labels: str, node: str, calls: str) -> None:
        for label, call in zip(labels.split(", "), calls.split(" & "), strict=True):
            self.begun[label] = self.ask(node, call)
        self.run(BEGUN_NS)

    def state(self, label: str, how: str) -> None:
        asked = self.begun[label]
        if how == "waits":
            if asked.reply is not None:
                raise Wrong(f"answered {asked.reply}")
            return
        if not asked.is_lost:
            self.answered(asked)
        if how != "ends":
            self._check(asked, how.removeprefix("fails").strip() if how.startswith("fails") else None)

    def _check(self, asked: Asked, fails: str | None) -> None:
        reply = asked.reply
        if fails is None:
            if not isinstance(reply, Answer):
                raise Wrong(str(reply))
            return
        found = re.fullmatch(r"(?P<codes>\d+(?: or \d+)*)? ?(?:\"(?P<text>.*)\")?", fails)
        assert found is not None, f"not an error: {fails}"
        if not isinstance(reply, Refusal):
            raise Wrong(f"no error but {reply}")
        codes = [int(code) for code in re.findall(r"\d+", found["codes"] or "")]
        if codes and reply.code not in codes:
            raise Wrong(str(reply))
        if found["text"] and found["text"] not in reply.message:
            raise Wrong(str(reply))

    def _call(self, text: str) -> tuple[object, ...] | Any:
        words = text.split()
        match words:
            case ["promote" | "demote" | "wait_rw" | "wait_ro" as verb, *seconds]:
                return f"box.ctl.{verb}", *map(float, seconds)
            case ["snapshot"]:
                return ("box.snapshot",)
            case ["cfg", *options]:
                return "box.cfg", dict(_option(word) for word in options)
            case ["create", name, *flags]:
                options = {f"is_{flag}": True for flag in flags if flag != "temporary"}
                return (
                    "box.schema.space.create",
                    name,
                    {**options, **{f: True for f in flags if f == "temporary"}},
                )
            case ["alter", name, option]:
                return f"box.space.{name}:alter", {option.removeprefix("not-"): not option.startswith("not-")}
            case ["drop" | "truncate" as verb, name]:
                return (f"box.space.{name}:{verb}",)
            case ["call", function, *arguments]:
                return function, *json.loads(f"[{' '.join(arguments)}]")
        mode, _, rest = text.partition(" ")
        options = _MODES.get(mode)
        statements = [_statement(part.split()) for part in (rest if options else text).split(" + ")]
        return "qsync.transaction", statements, options or {}

    # ---- assertions

    def soon(self, line: str) -> None:
        self._retried(lambda: self.happen(line))

    def _retried(self, attempt: Callable[[], None]) -> None:
        until_ns = self.world.agenda.now_ns + PATIENCE_NS
        while True:
            try:
                attempt()
                return
            except Wrong:
                if self.world.agenda.now_ns >= until_ns:
                    raise
            self.run(STEP_NS)

    def replica(self, node: str) -> Replica:
        found = self.world.machines[self.node(node)].node
        if not isinstance(found, Replica) or not found.has_data:
            raise Wrong(f"{node} is down, or has no data yet")
        return found

    def info(self, node: str, path: str) -> object:
        """A field of `box.info`; `snapshot.confirmed_lsn` is what the newest snapshot on disk says of the queue."""
        if path == "snapshot.confirmed_lsn":
            files = self.world.machines[self.node(node)].disk.files()
            newest = max(name for name in files if name.endswith(".snap"))
            (row,) = [row for row in xlog.decode(files[newest]).rows if row.type == Type.PROMOTE]
            return row.body[Key.LSN.value]
        replica, now_ns = self.replica(node), self.world.agenda.now_ns
        found: Any = box_info(
            configuration=replica.configuration,
            journal=replica.journal,
            commits=replica.commits,
            appliers=replica.appliers,
            relays=replica.relays.values(),
            started_ns=0,
            now=Instant(now_ns, now_ns),
        )
        path = re.sub(r"^queue\.", "synchro.queue.", path)
        path = re.sub(r"(?<=^replication\.)[a-z]\w*", lambda role: self.node(role[0])[1:], path)
        for step in path.split("."):
            if not isinstance(found, Mapping):
                return None
            found = found.get(int(step) if step.isdigit() else step)
        return found

    def option(self, node: str, option: str, relation: str, value: str) -> None:
        found, expected = self.replica(node).options.told()[option], self.value(value)
        if not _RELATIONS[relation](found, expected):
            raise Wrong(f"got {found!r}, expected {relation} {expected!r}")

    def compare(self, node: str, path: str, relation: str, value: str) -> None:
        found, expected = self.info(node, path), self.value(value)
        if not _RELATIONS[relation](found, expected):
            raise Wrong(f"got {found!r}, expected {relation} {expected!r}")

    def value(self, text: str) -> Any:
        if text.startswith('"'):
            return json.loads(text)
        found = re.fullmatch(r"(.+) ([+-]) (\d+)", text)
        if found is not None:
            number: Any = self.value(found[1])
            return number + int(found[3]) if found[2] == "+" else number - int(found[3])
        node, _, path = text.partition(" ")
        if path:
            return self.info(node, path)
        if text in self.values:
            return self.values[text]
        if text in self.roles:
            return int(self.roles[text][1:])
        if re.fullmatch(r"n\d+", text):
            return int(text[1:])
        if re.fullmatch(r"-?[\d.]+|true|false|null", text):
            return json.loads(text)
        return text

    def let(self, name: str, node: str, path: str) -> None:
        self.values[name] = self.info(node, path)

    def leader_is(self, name: str, nodes: str, others: str | None) -> None:
        asked = [self.node(word) for word in nodes.split()]
        leaders = [node for node in asked if self.info(node, "election.state") == "leader"]
        if len(leaders) != 1:
            raise Wrong(f"leaders: {leaders}")
        self.roles[name] = leaders[0]
        rest = [node for node in asked if node != leaders[0]]
        self.roles.update(zip((others or "").split(), rest, strict=False))

    def holds(self, node: str, view: str, space: str, keys: str) -> None:
        found_space = self.replica(node).schema.lookup.get(space)
        if found_space is None:
            raise Wrong(f"no space {space}")
        tuples = list(found_space.scan(dirty=view == "sees"))
        if keys.startswith("["):
            found: object = json.loads(json.dumps(tuples))
            expected: object = json.loads(keys)
        elif ".." in keys:
            first, last = keys.split("..")
            found, expected = [each[0] for each in tuples], list(range(int(first), int(last) + 1))
        else:
            found = [each[0] for each in tuples]
            expected = [] if keys == "nothing" else [json.loads(word) for word in keys.split()]
        if found != expected:
            raise Wrong(f"has {found}")

    def catches_up(self, node: str, with_: str) -> None:
        self._retried(lambda: self._has_all(node, with_))

    def _has_all(self, node: str, with_: str) -> None:
        theirs: Any = self.info(with_, "vclock")
        ours: Any = self.info(node, "vclock")
        behind = {origin: lsn for origin, lsn in theirs.items() if origin and ours.get(origin, 0) < lsn}
        if behind:
            raise Wrong(f"{node} has {ours}, {with_} has {theirs}")

    def all_catch_up(self) -> None:
        for node in self.up:
            for other in self.up:
                self.catches_up(node, other)
                self.soon(f"{node} election.term = {other} election.term")

    def all_follow(self) -> None:
        self._retried(self._links_stand)

    def _links_stand(self) -> None:
        for node in self.up:
            own: Any = self.info(node, "replication")
            for other in self.up:
                (found,) = [one for one in own.values() if one["name"] == other] or [{}]
                streams = (found.get(stream, {}).get("status") for stream in ("upstream", "downstream"))
                if node != other and any(status != "follow" for status in streams):
                    raise Wrong(f"{node} and {other}: {found}")

    # ---- faults

    def follows(self, node: str, whom: str) -> None:
        caller = self.node(node)
        followed = {"nobody": [], "all": list(self.configurations)}.get(whom)
        if followed is None:
            followed = [self.node(word) for word in whom.split()]
        for other in self.configurations:
            if other in followed:
                self.world.network.accept(caller, other)
            elif other != caller:
                self.world.network.refuse(caller, other)

    def hold(self, message: str, node: str) -> None:
        self.world.network.hold(self.node(node), message)

    def release(self, message: str, node: str) -> None:
        self.world.network.release(self.node(node), message)

    def cut(self, one: str, other: str) -> None:
        self.world.network.cut(self._both_ways(one, other))

    def heal(self, one: str, other: str) -> None:
        self.world.network.heal(self._both_ways(one, other), self.world.streams["heal"])

    def _both_ways(self, one: str, other: str) -> list[tuple[str, str]]:
        return [(self.node(one), self.node(other)), (self.node(other), self.node(one))]

    def start(self, node: str, options: str) -> None:
        name = self.node(node)
        self.configurations[name] = replace(self.configurations[name], **_settings(options.split()))
        self.world.machines[name].start()
        self.up.append(name)

    def end(self, how: str, node: str) -> None:
        machine = self.world.machines[self.node(node)]
        machine.kill() if how == "kill" else machine.terminate()
        self.client.lose(self.node(node))
        self.up.remove(self.node(node))
        self.writing.pop(self.node(node), None)

    def restart(self, node: str, options: str) -> None:
        self.end("stop", node)
        self.start(node, options)

    def pause(self, node: str) -> None:
        self.world.machines[self.node(node)].pause()

    def resume(self, node: str) -> None:
        self.world.machines[self.node(node)].resume()

    def block(self, node: str, record: str | None, count: str | None) -> None:
        name, kind = self.node(node), record or ""
        if count is None:
            self.held[name] = kind
            self.world.machines[name].records.hold(kind)
        else:
            self.countdown[name] = kind, int(count)

    def _record(self, does: str, name: str, kind: str) -> None:
        if does == "writes":
            self.writing.setdefault(name, []).append(kind)
            return
        self.writing[name].remove(kind)
        if self.fails_after.get(name) == kind:
            del self.fails_after[name]
            self.world.machines[name].fill_disk(True)
        held, left = self.countdown.pop(name, ("", 0))
        if left and held in ("", kind):
            left -= 1
            if not left:
                self.block(name, held, None)
        if left:
            self.countdown[name] = held, left

    def unblock(self, node: str) -> None:
        name = self.node(node)
        self.countdown.pop(name, None)
        if name in self.held:
            self.world.machines[name].records.release(self.held.pop(name))

    def split_vote(self, nodes: str) -> None:
        if not any(self.replica(node).sometimes.get(SPLIT_VOTE) for node in nodes.split()):
            raise Wrong("nobody did")

    def log_hangs(self, node: str) -> None:
        name = self.node(node)
        kind = self.held.get(name)
        if kind is None or not any(kind in ("", one) for one in self.writing.get(name, [])):
            raise Wrong("nothing hangs")

    def disk(self, node: str, how: str, kind: str | None) -> None:
        if kind is not None:
            self.fails_after[self.node(node)] = kind
            return
        self.world.machines[self.node(node)].fill_disk(how == "fails")

    def wait(self, number: str, unit: str) -> None:
        self.run(int(float(number) * (SECOND_NS if unit == "s" else SECOND_NS // 1000)))


_NODE = r"(?P<node>[a-z]\w*)"
_RELATION = r"(?P<relation>=|!=|<|<=|>|>=|contains)"
_LINES: Sequence[tuple[str, Verb]] = (
    (r"nodes (?P<text>.+)", Play.nodes),
    (r"soon (?P<line>.+)", Play.soon),
    (r"wait (?P<number>[\d.]+)(?P<unit>ms|s)", Play.wait),
    (rf"let (?P<name>\w+) = {_NODE} (?P<path>\S+)", Play.let),
    (r"leader is (?P<name>\w+) of (?P<nodes>.+?)( then (?P<others>.+))?", Play.leader_is),
    (rf"hold (?P<message>[A-Z]\w+) to {_NODE}", Play.hold),
    (rf"release (?P<message>[A-Z]\w+) to {_NODE}", Play.release),
    (r"any of (?P<nodes>.+?) noticed a split vote", Play.split_vote),
    (r"cut (?P<one>\w+) (?P<other>\w+)", Play.cut),
    (r"heal (?P<one>\w+) (?P<other>\w+)", Play.heal),
    (rf"(?P<how>kill|stop) {_NODE}", Play.end),
    (rf"start {_NODE}(?P<options>( \S+=\S+)*)", Play.start),
    (rf"restart {_NODE}(?P<options>( \S+=\S+)*)", Play.restart),
    (rf"pause {_NODE}", Play.pause),
    (rf"resume {_NODE}", Play.resume),
    (rf"(?P<labels>\w+(, \w+)*): {_NODE} (?P<calls>.+)", Play.begin),
    (r"(?P<label>\w+) (?P<how>waits|succeeds|ends|fails( .+)?)", Play.state),
    (r"all catch up", Play.all_catch_up),
    (r"all follow", Play.all_follow),
    (rf"{_NODE} catches up with (?P<with_>\w+)", Play.catches_up),
    (rf"{_NODE} follows (?P<whom>.+)", Play.follows),
    (rf"{_NODE} log blocks( at (?P<record>\w+))?( after (?P<count>\d+))?", Play.block),
    (rf"{_NODE} log goes on", Play.unblock),
    (rf"{_NODE} log hangs", Play.log_hangs),
    (rf"{_NODE} disk (?P<how>fails|works)( after (?P<kind>\w+))?", Play.disk),
    (rf"{_NODE} (?P<view>has|sees) (?P<space>\w+) (?P<keys>.+)", Play.holds),
    (rf"{_NODE} option (?P<option>\w+) {_RELATION} (?P<value>.+)", Play.option),
    (rf"{_NODE} (?P<path>[\w.]+) {_RELATION} (?P<value>.+)", Play.compare),
    (rf"{_NODE} (?P<call>.+?)( fails ?(?P<fails>.*))?", Play.call),
)
_RELATIONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": lambda found, value: bool(found == value),
    "!=": lambda found, value: bool(found != value),
    "<": lambda found, value: found is not None and bool(found < value),
    "<=": lambda found, value: found is not None and bool(found <= value),
    ">": lambda found, value: found is not None and bool(found > value),
    ">=": lambda found, value: found is not None and bool(found >= value),
    "contains": lambda found, value: value in (found or ""),
}
_MODES: Mapping[str, dict[str, object]] = {
    "submit": {"wait": "submit"},
    "none": {"wait": "none"},
    "complete": {"wait": "complete"},
    "linearizable": {"read": "linearizable"},
    "dirty": {"read": "dirty"},
    "synchronous": {"is_sync": True},
}
_NAMES = {
    "quorum": "replication_synchro_quorum",
    "synchro_timeout": "replication_synchro_timeout",
    "timeout": "replication_timeout",
    "elections": "election_mode",
    "fencing": "election_fencing_mode",
    "queue": "replication_synchro_queue_max_size",
    "on_timeout": "box_cfg_replication_synchro_timeout",
}
"""Short names of options of `box.cfg`."""
_FIELDS: Mapping[str, Callable[[Any], tuple[str, object]]] = {
    "quorum": lambda value: ("quorum", value),
    "synchro_timeout": lambda value: ("synchro_timeout_ns", int(value * SECOND_NS)),
    "timeout": lambda value: ("replication_timeout_ns", int(value * SECOND_NS)),
    "elections": lambda value: ("election_mode", value),
    "election_timeout": lambda value: ("election_timeout_ns", int(value * SECOND_NS)),
    "fencing": lambda value: ("election_fencing", value),
    "queue": lambda value: ("synchro_queue_max_size", value),
    "wal_queue": lambda value: ("wal_queue_max_size", value),
    "on_timeout": lambda value: ("rollback_on_timeout", value == "old"),
    "read_only": lambda value: ("read_only", value),
    "mvcc": lambda value: ("memtx_use_mvcc_engine", value),
    "connect": lambda value: ("replication_connect_quorum", value),
    "promote": lambda value: ("synchronous_promote", value == "synchronous"),
    "exact": lambda value: ("exact_elections", value),
    "promote_waits": lambda value: ("promote_waits_for_queue", value),
    "anonymous": lambda value: ("is_anonymous", value),
}
"""Options of a node that starts, as fields of its configuration."""


def _settings(words: Any) -> dict[str, Any]:
    return dict(_FIELDS[name](value) for name, value in map(_pair, words))


def _pair(word: str) -> tuple[str, Any]:
    name, _, text = word.partition("=")
    if text == "nil":
        return name, None
    is_json = re.fullmatch(r"-?[\d.]+(e-?\d+)?|true|false", text) or text.startswith('"')
    return name, json.loads(text) if is_json else text.replace("_", " ") if "N" in text else text


def _option(word: str) -> tuple[str, Any]:
    name, value = _pair(word)
    return _NAMES.get(name, name), value


def _statement(words: Sequence[str]) -> list[object]:
    match words:
        case [("insert" | "replace") as verb, space, *values]:
            return [verb, space, [_value(word) for word in values]]
        case [("delete" | "get") as verb, space, key]:
            return [verb, space, _value(key)]
        case ["select", space]:
            return ["scan", space, None, None]
    raise ValueError(f"not a statement: {' '.join(words)}")


def _value(word: str) -> object:
    repeated = re.fullmatch(r"(\w)\*(\d+)", word)
    if repeated is not None:
        return repeated[1] * int(repeated[2])
    return json.loads(word) if re.fullmatch(r"-?\d+|null|\".*\"", word) else word
