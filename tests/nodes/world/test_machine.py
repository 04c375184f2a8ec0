"""One virtual machine with a node that does what it is told: disk, pause, death, clock."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from nodes.kernel.effects import CancelTimer, Connect, Disconnect, Effect, Log, Send, SetTimer
from nodes.kernel.errors import StartAgain, StartRefused
from nodes.kernel.events import (
    Connected,
    Disconnected,
    Event,
    Instant,
    Persisted,
    PersistFailed,
    Received,
    Started,
    TimerFired,
)
from nodes.world.machine import Machine
from nodes.world.network import MILLISECOND
from nodes.world.shaping import Shaping
from nodes.world.world import World
from tests.nodes.world.ears import Ear, Puppet, record, run


class Stage:
    """Machines with puppets, and an ear called client."""

    def __init__(self, seed: int = 1, names: Sequence[str] = ("a",)) -> None:
        self.world = World(seed, dict.fromkeys(names, Puppet))
        self.client = Ear("client", self.world.network)
        self.world.network.add(self.client)
        self.crashes: list[tuple[str, str]] = []
        for machine in self.world.machines.values():
            machine.on_crash = lambda name, how: self.crashes.append((name, how))
            machine.start()

    def machine(self, name: str = "a") -> Machine:
        return self.world.machines[name]

    def puppet(self, name: str = "a") -> Puppet:
        node = self.machine(name).node
        assert isinstance(node, Puppet)
        return node

    def run(self, milliseconds: float) -> None:
        run(self.world.agenda, milliseconds)

    def link(self) -> int:
        link = self.world.network.connect(self.client, "a")
        self.run(30)
        return link

    def tell(self, link: int, message: object, *orders: Effect, within_ms: float = 30) -> None:
        """Let the client say something and the puppet answer with these effects."""
        self.puppet().order(Received, *orders)
        self.world.network.send(link, self.client, message)
        self.run(within_ms)


# ---- the disk


@given(seed=st.integers(0, 30), sizes=st.lists(st.integers(1, 30), min_size=1, max_size=6))
def test_a_send_leaves_when_the_record_in_front_of_it_is_synced(seed: int, sizes: list[int]) -> None:
    """Broken, what a client was told can be lost with the power."""
    stage = Stage(seed)
    link = stage.link()
    for token, size in enumerate(sizes):
        stage.tell(link, token, record(token, size), Send(link, token), within_ms=0)
    for _ in range(200):
        stage.run(0.1)
        answered = len(stage.client.messages(link))
        disk = stage.machine().disk
        synced = len(disk.files().get("log", b"")) - disk.unsynced_bytes()
        assert synced >= sum(sizes[:answered])
    assert stage.client.messages(link) == list(range(len(sizes)))
    told = [event.token for event in stage.puppet().events if isinstance(event, Persisted)]
    assert told == list(range(len(sizes)))


def test_a_node_may_hear_of_its_record_after_the_answer_to_what_stood_behind_it() -> None:
    """Broken, an acknowledgement never comes before the lsn, and nodes are not tried with it."""
    early = 0
    for seed in range(40):
        stage = Stage(seed)
        link = stage.link()
        stage.tell(link, 0, record(1), Send(link, 1), within_ms=0)
        while not stage.client.messages(link):
            stage.run(0.05)
        early += not any(isinstance(event, Persisted) for event in stage.puppet().events)
    assert 0 < early < 40


def test_a_killed_process_leaves_what_it_wrote() -> None:
    """Broken, a kill takes synced records, or tears one, or always spares the one that is under way."""
    outcomes: set[int] = set()
    for seed in range(12):
        stage = Stage(seed)
        link = stage.link()
        stage.tell(link, 0, record(1))
        stage.machine().records.hold("row")
        stage.tell(link, 0, record(2))
        stage.machine().kill()
        stage.machine().records.release("row")
        stage.machine().start()
        left = stage.puppet().files["log"]
        assert left in (record(1).data, record(1).data + record(2).data)
        outcomes.add(len(left))
    assert outcomes == {10, 20}


def test_a_killed_process_has_begun_no_file_behind_one_that_is_not_synced() -> None:
    """Broken, a node is tried with what no host leaves, two files that are not synced; it knows of one, and is refused
    its start after a power loss."""
    lengths: set[int] = set()
    for seed in range(12):
        stage = Stage(seed)
        link = stage.link()
        stage.machine().records.hold("row")
        stage.tell(link, 0, record(1), record(2, file="next"), record(3))
        stage.machine().kill()
        stage.machine().records.release("row")
        stage.machine().start()
        left = stage.puppet().files
        assert "next" not in left, "a node would trust that the log before it is synced"
        assert left["log"] in (b"", record(1).data)
        lengths.add(len(left["log"]))
    assert lengths == {0, 10}


def test_a_killed_process_leaves_the_files_that_were_there_before() -> None:
    """Broken, a kill removes a file, because its process had begun to lengthen it behind one that is not synced."""
    for seed in range(12):
        stage = Stage(seed)
        link = stage.link()
        stage.tell(link, 0, record(1, size=0, file="empty"), record(2, file="full"))
        stage.machine().records.hold("row")
        stage.tell(link, 0, record(3), record(4, file="empty"), record(5, file="full"))
        stage.machine().kill()
        stage.machine().records.release("row")
        stage.machine().start()
        left = stage.puppet().files
        assert (left["empty"], left["full"]) == (b"", record(2).data)


def test_a_process_that_ends_in_order_has_synced_all() -> None:
    """Broken, a power loss takes what a node had written before it was stopped, as no host would let it."""
    stage = Stage()
    link = stage.link()
    stage.machine().records.hold("row")
    stage.tell(link, 0, record(1), record(2, file="next"))
    stage.machine().terminate()
    stage.machine().records.release("row")
    assert stage.machine().disk.unsynced_bytes() == 0
    assert stage.machine().disk.files() == {"log": record(1).data, "next": record(2).data}


def test_a_power_loss_takes_what_is_not_synced() -> None:
    """Broken, held or late records survive a power loss, or synced ones do not."""
    stage = Stage()
    link = stage.link()
    stage.tell(link, 0, record(1))
    stage.machine().records.hold("confirm")
    stage.tell(link, 0, record(2, kind="confirm"), Send(link, "told"))
    assert stage.machine().lose_power() >= 0
    stage.machine().records.release("confirm")
    stage.run(50)
    stage.machine().start()
    assert stage.puppet().files["log"][:10] == record(1).data
    assert "told" not in stage.client.words(link)
    assert [type(event) for event in stage.puppet().events] == [Started], (
        "nothing of the former life comes late"
    )


def test_hold_keeps_a_kind_of_record_and_all_behind_it() -> None:
    """Broken, a schedule that holds a CONFIRM on its way to the disk holds nothing, or for ever."""
    stage = Stage()
    link = stage.link()
    stage.machine().records.hold("confirm")
    stage.tell(link, 0, record(1), Send(link, 1))
    stage.tell(link, 0, record(2, kind="confirm"), Send(link, 2))
    stage.tell(link, 0, record(3), Send(link, 3), within_ms=500)
    assert stage.client.messages(link) == [1]
    stage.machine().records.release("confirm")
    stage.run(50)
    assert stage.client.messages(link) == [1, 2, 3]


def test_on_a_full_disk_only_what_came_too_late_fails() -> None:
    """Broken, a node is told that a record is lost which is on its disk and which its peers have."""
    for seed in range(30):
        stage = Stage(seed)
        link = stage.link()
        stage.machine().records.hold("row")
        stage.tell(link, 0, record(1), record(2), Send(link, 1, after=2))
        stage.machine().fill_disk(True)
        stage.puppet().order(Persisted, record(3), Send(link, 3, after=3))  # when it hears of record 1
        stage.tell(link, 0, record(4), Send(link, 4, after=4))
        assert not any(isinstance(event, PersistFailed) for event in stage.puppet().events)
        stage.machine().records.release("row")
        stage.run(50)
        outcome = [event for event in stage.puppet().events if isinstance(event, Persisted | PersistFailed)]
        assert outcome[:2] == [Persisted(1), Persisted(2)]
        assert outcome[2:] == [PersistFailed((4, 3), "no space left on device")]
        assert stage.machine().disk.files()["log"] == record(1).data + record(2).data
        stage.machine().fill_disk(False)
        stage.tell(link, 0, record(5), Send(link, 5, after=5))
        assert stage.client.messages(link) == [1, 5]


# ---- pause


def test_a_paused_process_gets_everything_afterwards_in_one_of_two_orders() -> None:
    """Broken, what comes to a stopped process is lost, or a stale answer that leaves before its timers is never
    seen."""
    orders: set[tuple[str, ...]] = set()
    for seed in range(12):
        stage = Stage(seed)
        link = stage.link()
        stage.tell(link, 0, SetTimer("t", 40 * MILLISECOND), record(1))
        before = len(stage.puppet().events)
        stage.machine().pause()
        assert stage.machine().status() is None
        stage.world.network.send(link, stage.client, 1)
        stage.world.network.send(link, stage.client, 2)
        stage.run(100)
        assert len(stage.puppet().events) == before
        stage.machine().resume()
        later = stage.puppet().events[before:]
        assert {Received(link, 1), Received(link, 2), TimerFired("t")} <= set(later)
        assert later.index(Received(link, 1)) < later.index(Received(link, 2))
        orders.add(tuple(type(event).__name__ for event in later))
        assert stage.puppet().instants[-1].monotonic_ns >= 130 * MILLISECOND, "time went on"
    assert orders == {("TimerFired", "Received", "Received"), ("Received", "Received", "TimerFired")}


def test_a_paused_process_can_be_killed_and_its_resumption_is_nothing() -> None:
    """Broken, healing a pause wakes the dead, or gives a new process what its predecessor missed."""
    stage = Stage()
    link = stage.link()
    stage.machine().pause()
    stage.world.network.send(link, stage.client, 1)
    stage.run(30)
    stage.machine().kill()
    stage.machine().resume()
    assert stage.machine().state == "down"
    stage.run(30)
    stage.machine().start()
    stage.machine().resume()
    stage.run(30)
    assert [type(event) for event in stage.puppet().events] == [Started]
    assert stage.client.words(link) == ["connected", "ended: end of stream"]


def test_the_disk_works_while_the_process_is_paused() -> None:
    """Broken, a pause undoes a sync, or lets out what the stopped process had to send."""
    stage = Stage()
    link = stage.link()
    stage.tell(link, 0, record(1), Send(link, 1), within_ms=0.3)
    stage.machine().pause()
    stage.run(100)
    assert stage.machine().disk.unsynced_bytes() == 0
    assert stage.client.messages(link) == [] or not stage.machine()._waiting
    stage.machine().resume()
    stage.run(30)
    assert stage.client.messages(link) == [1]


def test_a_process_that_an_action_pauses_again_does_the_rest_later() -> None:
    """Broken, input that came in the pause is lost without a trace."""
    stage = Stage()
    link = stage.link()
    machine = stage.machine()
    machine.pause()
    for number in (1, 2):
        stage.world.network.send(link, stage.client, number)
    stage.run(30)
    machine.on_log = lambda name, line: machine.pause()
    stage.puppet().order(Received, Log("info", "the first", {}))
    machine.resume()
    stage.run(30)
    assert stage.puppet().events[-1] == Received(link, 1)
    machine.resume()
    assert stage.puppet().events[-1] == Received(link, 2)


# ---- links and lives


def test_a_link_that_the_node_gives_up_is_silent_at_once() -> None:
    """Broken, a node hears from links that it has dropped, as it never would in the real host."""
    stage = Stage()
    link = stage.link()
    stage.machine().records.hold("row")
    stage.tell(link, 1, record(1), Disconnect(link))
    stage.tell(link, 2)
    stage.world.network.reset(link, "connection reset by peer")
    stage.run(30)
    heard = [event for event in stage.puppet().events if isinstance(event, Received | Disconnected)]
    assert heard == [Received(link, 1)]


def test_a_connection_begun_in_a_former_life_is_nobodys() -> None:
    """Broken, a process that was killed while it connected to a dead peer breaks in its next life."""
    for end in (Machine.kill, Machine.lose_power):
        stage = Stage(names=("a", "b"))
        stage.machine("b").kill()
        stage.world.network.shape([("a", "b")], Shaping(delay_ns=100 * MILLISECOND))
        stage.machine("a")._carry_out([Connect("b")])
        stage.run(10)
        end(stage.machine("a"))
        stage.machine("a").start()
        stage.run(5_000)
        assert [type(event) for event in stage.puppet("a").events] == [Started]
        assert stage.crashes == []


def test_a_connection_made_after_a_restart_stands() -> None:
    """Broken, links of one life are mistaken for those of another: numbers are never used twice."""
    stage = Stage(names=("a", "b"))
    links = []
    for _ in range(3):
        stage.machine("a")._carry_out([Connect("b")])
        stage.run(30)
        links += [event.link for event in stage.puppet("a").events if isinstance(event, Connected)]
        stage.machine("a").kill()
        stage.machine("a").start()
    assert len(set(links)) == 3


class _Broken(Puppet):
    """Breaks at the first message, or refuses to start on a disk that holds something."""

    def step(self, event: Event, now: Instant) -> Sequence[Effect]:
        if isinstance(event, Received):
            raise KeyError("no such thing")
        if isinstance(event, Started) and event.files:
            raise StartRefused("log: spoilt")
        return super().step(event, now)


def test_a_node_that_breaks_ends_and_says_how() -> None:
    """Broken, a broken node takes the harness down with it, or goes on."""
    stage = Stage()
    machine = stage.machine()
    machine._make = _Broken
    machine.kill()
    machine.start()
    link = stage.link()
    stage.world.network.send(link, stage.client, 1)
    stage.run(30)
    assert stage.crashes == [("a", "KeyError in step: 'no such thing'")] and machine.state == "down"
    machine.disk.append("log", b"x")
    machine.start()
    assert stage.crashes[1:] == [("a", "refused to start: log: spoilt")] and machine.status() is None


class _OverOnce(Puppet):
    def step(self, event: Event, now: Instant) -> Sequence[Effect]:
        if isinstance(event, Received) and event.message == "over":
            raise StartAgain("its peers go on without it")
        return super().step(event, now)


class _OverOncePersisted(Puppet):
    """Starts again when it hears that its first record is durable."""

    def step(self, event: Event, now: Instant) -> Sequence[Effect]:
        if isinstance(event, Persisted) and "log" not in self.files:
            raise StartAgain("its record is durable")
        return super().step(event, now)


def test_records_that_a_full_disk_refused_do_not_fail_in_the_next_life() -> None:
    """Broken, a node that starts again hears that records have failed which it has never written."""
    refused = 0
    for seed in range(40):
        stage = Stage(seed)
        machine = stage.machine()
        machine._make = _OverOncePersisted
        machine.kill()
        machine.start()
        link = stage.link()
        machine.records.hold("row")
        stage.tell(link, 0, record(1))
        machine.fill_disk(True)
        stage.tell(link, 0, record(2))
        refused += machine.records.take_affected()
        machine.records.release("row")
        stage.run(50)
        assert "log" in stage.puppet().files, "it has started again"
        assert not any(isinstance(event, PersistFailed) for event in stage.puppet().events)
    assert refused == 40


def test_a_timer_that_is_set_anew_fires_once_at_its_new_time() -> None:
    """Broken, a node's earlier setting of a timer fires the later one too soon."""
    stage = Stage()
    link = stage.link()
    stage.tell(link, 0, SetTimer("t", 100 * MILLISECOND), within_ms=10)
    stage.tell(link, 0, CancelTimer("t"), within_ms=10)
    stage.tell(link, 0, SetTimer("t", 300 * MILLISECOND), within_ms=200)
    assert TimerFired("t") not in stage.puppet().events
    stage.tell(link, 0, SetTimer("t", 300 * MILLISECOND), within_ms=200)
    assert TimerFired("t") not in stage.puppet().events
    stage.run(200)
    assert stage.puppet().events.count(TimerFired("t")) == 1


def test_a_connection_to_a_peer_that_does_not_exist_fails() -> None:
    """Broken, a node that dials a name which its cluster lacks ends the simulator, and not the attempt."""
    stage = Stage()
    link = stage.link()
    heard: list[str] = []
    stage.machine().trace = heard.append
    stage.tell(link, "go", Connect("n9"))
    assert [line for line in heard if "ConnectFailed" in line] == [
        "a ConnectFailed(peer='n9', error='no address is known for this peer')"
    ]


def test_a_timer_that_is_over_when_it_is_set_fires_at_once() -> None:
    """Broken, the time of the whole world goes back: a deadline of the past is less than no time away."""
    stage = Stage()
    link = stage.link()
    stage.puppet().order(TimerFired, Log("info", "over"))
    logged: list[int] = []
    stage.machine().on_log = lambda name, line: logged.append(stage.world.agenda.now_ns)
    before_ns = stage.world.agenda.now_ns
    stage.tell(link, "go", SetTimer("past", -1_000 * MILLISECOND))
    assert logged and min(logged) >= before_ns


def test_a_node_that_starts_again_begins_from_its_files() -> None:
    """Broken, what a life had in memory outlives it, or the node counts as one that ended by itself."""
    stage = Stage()
    machine = stage.machine()
    machine._make = _OverOnce
    machine.kill()
    machine.start()
    link = stage.link()
    stage.tell(link, "write", record(1))
    first = stage.puppet()
    stage.world.network.send(link, stage.client, "over")
    stage.run(30)
    assert stage.crashes == []
    assert machine.state == "up"
    assert stage.puppet() is not first
    assert stage.puppet().files["log"] == record(1).data
    assert "ended" in stage.client.words(link)[-1]


def test_what_waited_for_a_paused_process_does_not_come_to_its_next_life() -> None:
    """Broken, a process that starts again as it goes on is told of connections that ended with its former life."""
    for seed in range(4):
        stage = Stage(seed)
        machine = stage.machine()
        machine._make = _OverOnce
        machine.kill()
        machine.start()
        link = stage.link()
        machine.pause()
        stage.world.network.send(link, stage.client, "over")
        stage.run(30)
        stage.world.network.connect(stage.client, "a")
        stage.run(30)
        machine.resume()
        stage.run(30)
        assert stage.puppet().events == [Started({})]
        assert stage.crashes == []
