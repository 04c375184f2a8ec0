"""Stores that are asked by a library: what becomes of each way in which a client can misbehave, and whole runs.

The doubt is what matters: `fail` of an operation that happened after all is a false alarm, and a connection on which
one was given up must never carry another.
"""

from __future__ import annotations

import asyncio
import gc
import io
import json
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import main
from harness.clients.client import Library, LibraryClient, NotDone
from harness.clients.operations import (
    Asked,
    Completion,
    Done,
    Dump,
    Mismatch,
    Outcome,
    Read,
    Scan,
    Transaction,
    Write,
    fitting,
)
from harness.cluster.http import Http
from harness.cluster.library_clients import DOWN, LibraryClients
from harness.systems import system_of
from tests.harness.processes import PATIENCE_S

READ = Transaction((Read("register", "a"),))
WRITE = Transaction((Write("register", "a", 1),))
LONG_NS = PATIENCE_S * 1_000_000_000
SHORT_NS = 50_000_000


class Scripted:
    """A connection that does as it is told; it notes what it was asked, and that it was closed."""

    def __init__(self, does: Callable[[Scripted], Outcome]) -> None:
        self._does = does
        self.asked: list[Asked] = []
        self.is_closed = threading.Event()

    def invoke(self, asked: Asked) -> Outcome:
        self.asked.append(asked)
        return self._does(self)

    def status(self) -> Mapping[str, object]:
        raise NotImplementedError

    def close(self) -> None:
        self.is_closed.set()


class Scripts:
    """Clients over connections that do these things, one script for each connection."""

    def __init__(self, *scripts: Callable[[Scripted], Outcome]) -> None:
        self._scripts = iter(scripts)
        self.made: list[Scripted] = []

    def connect(self, host: str, port: int, timeout_s: float) -> Scripted:
        self.made.append(Scripted(next(self._scripts)))
        return self.made[-1]

    def play(self, story: Callable[[LibraryClients], Awaitable[None]]) -> None:
        played(Library(self.connect, frozenset({Read, Write})), story)


def played(client: LibraryClient, story: Callable[[LibraryClients], Awaitable[None]], port: int = 1) -> None:
    async def play() -> None:
        clients = LibraryClients(client, lambda node: port)
        try:
            await story(clients)
        finally:
            clients.close()

    asyncio.run(play())


def done(connection: Scripted) -> Outcome:
    return Done((1,))


def raises(error: Exception) -> Callable[[Scripted], Outcome]:
    def script(connection: Scripted) -> Outcome:
        raise error

    return script


def hangs(connection: Scripted) -> Outcome:
    """Until it is closed; then it takes the write for done."""
    assert connection.is_closed.wait(PATIENCE_S)
    return Done((1,))


@pytest.mark.parametrize("process", [1, 2])
def test_a_connection_whose_deadline_passed_carries_nothing_more(process: int) -> None:
    """If it failed, a client that swallows time-outs would hold up a run, or a late answer be taken for another's."""
    scripts = Scripts(hangs, done)

    async def story(clients: LibraryClients) -> None:
        late = await clients.perform(1, "n1", WRITE, SHORT_NS)
        assert late == Completion("info", None, "timeout")
        assert await clients.perform(process, "n1", WRITE, LONG_NS) == Done((1,))

    scripts.play(story)
    assert [len(each.asked) for each in scripts.made] == [1, 1]
    assert scripts.made[0].is_closed.wait(PATIENCE_S)


def test_a_library_that_does_not_give_up_holds_up_nothing() -> None:
    """If it failed, a library whose `close` waits for the call under way would stop the harness, without a word."""
    in_use, goes_on = threading.Lock(), threading.Event()

    class Locked(Scripted):
        def close(self) -> None:
            with in_use:
                super().close()

    def hangs_on(connection: Scripted) -> Outcome:
        with in_use:
            goes_on.wait(2)
        return Done((1,))

    made = Locked(hangs_on)

    async def story(clients: LibraryClients) -> None:
        assert await clients.perform(1, "n1", WRITE, SHORT_NS) == Completion("info", None, "timeout")
        assert not made.is_closed.is_set()
        goes_on.set()

    played(Library(lambda host, port, timeout_s: made, frozenset({Read, Write})), story)
    assert made.is_closed.wait(PATIENCE_S)


def test_a_library_that_dials_again_while_it_is_given_up_is_closed_again() -> None:
    """If it failed, every such operation would leave a connection behind, until the store takes no more of them."""

    has_dialled = threading.Event()

    def dials_again(connection: Scripted) -> Outcome:
        assert connection.is_closed.wait(PATIENCE_S)
        connection.is_closed.clear()
        has_dialled.set()
        return Done((1,))

    async def story(clients: LibraryClients) -> None:
        assert await clients.perform(1, "n1", WRITE, SHORT_NS) == Completion("info", None, "timeout")

    scripts = Scripts(dials_again)
    scripts.play(story)
    assert has_dialled.wait(PATIENCE_S)
    assert scripts.made[0].is_closed.wait(PATIENCE_S)


def test_an_error_that_comes_after_its_caller_gave_up_is_not_printed() -> None:
    """If it failed, the screen of a run would show tracebacks of its own."""
    told: list[object] = []
    goes_on = threading.Event()

    def late(connection: Scripted) -> Outcome:
        assert goes_on.wait(PATIENCE_S)
        raise TimeoutError("timed out")

    async def story(clients: LibraryClients) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: told.append(context))
        asking = loop.create_task(clients.perform(1, "n1", WRITE, LONG_NS))
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait((asking,))
        goes_on.set()
        assert await clients.perform(1, "n1", WRITE, LONG_NS) == Done((1,))
        gc.collect()

    def first_late(connection: Scripted) -> Outcome:
        return done(connection) if goes_on.is_set() else late(connection)

    Scripts(first_late).play(story)
    assert not told


def test_what_ends_when_it_is_given_up_is_unknown_all_the_same() -> None:
    """If it failed, a write that happened in the moment of its deadline would be said to have surely failed."""
    for _ in range(20):
        scripts = Scripts(hangs)

        async def story(clients: LibraryClients) -> None:
            assert (await clients.perform(1, "n1", WRITE, 1_000_000)) in (
                Completion("info", None, "timeout"),
                Completion("fail", None, "no connection in time"),
            )

        scripts.play(story)
        for made in scripts.made:
            assert made.is_closed.wait(PATIENCE_S)


def test_a_deadline_in_the_middle_of_connecting_is_a_fail_and_nothing_is_asked_later() -> None:
    """If it failed, a write could happen after its client was told that it surely had not."""
    goes_on, made = threading.Event(), Scripted(done)

    def connect(host: str, port: int, timeout_s: float) -> Scripted:
        assert goes_on.wait(PATIENCE_S)
        return made

    async def story(clients: LibraryClients) -> None:
        outcome = await clients.perform(1, "n1", WRITE, SHORT_NS)
        assert outcome == Completion("fail", None, "no connection in time")
        goes_on.set()
        assert await asyncio.to_thread(made.is_closed.wait, PATIENCE_S)
        assert not made.asked

    played(Library(connect, frozenset({Read, Write})), story)


@pytest.mark.parametrize(
    ("error", "write", "read"),
    [
        (ZeroDivisionError("odd"), ("info", "ZeroDivisionError: odd"), ("fail", "ZeroDivisionError: odd")),
        (
            ConnectionResetError(104, "reset"),
            ("info", "ConnectionResetError: reset"),
            ("fail", "ConnectionResetError: reset"),
        ),
        (NotDone("refused"), ("fail", "refused"), ("fail", "refused")),
    ],
)
def test_what_a_client_raises_is_unknown_unless_it_says_otherwise(
    error: Exception, write: tuple[str, str], read: tuple[str, str]
) -> None:
    """If it failed, an error of which nobody has heard would be taken for proof that nothing happened."""

    async def story(clients: LibraryClients) -> None:
        for asked, (type_, said) in ((WRITE, write), (READ, read)):
            outcome = await clients.perform(1, "n1", asked, LONG_NS)
            assert isinstance(outcome, Completion)
            assert (outcome.type, outcome.error) == (type_, said)

    Scripts(raises(error), raises(error)).play(story)


@pytest.mark.parametrize(
    "given",
    [
        None,
        Done([]),
        Done([1, 2]),
        Done([object()]),
        Done(["\ud800"]),
        Done("1"),
        Done([1], role=5),  # type: ignore[arg-type]
        Mismatch(0, object()),
        Completion("what"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_outcome_of_what_was_asked_is_unknown(given: Any) -> None:
    """If it failed, one odd answer of the author's client would end the run, or leave a record that cannot be read."""

    async def story(clients: LibraryClients) -> None:
        for asked, type_ in ((WRITE, "info"), (READ, "fail")):
            outcome = await clients.perform(1, "n1", asked, LONG_NS)
            assert isinstance(outcome, Completion)
            assert outcome.type == type_
            assert str(outcome.error).startswith("unexpected answer")

    Scripts(lambda _: given, lambda _: given).play(story)


@pytest.mark.parametrize(
    ("asked", "fits", "odd"),
    [
        (Transaction((Scan("set", None, None),)), [[(1, "a")]], [[(1, "a", 2)]]),
        (Dump(), [{"spaces": {"set": [(1, "a")]}}], [{"spaces": {"set": [1]}}]),
        (Dump(), [{"spaces": {}}], [{}]),
    ],
)
def test_rows_are_pairs_of_key_and_value(asked: Asked, fits: list[Any], odd: list[Any]) -> None:
    """If it failed, a scan or a dump of another form would break the workload, or the judge."""
    assert fitting(Done(fits), asked) == Done(fits)
    found = fitting(Done(odd), asked)
    assert isinstance(found, Completion) and found.type == "fail"
    assert str(found.error).startswith("unexpected answer")


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), StopIteration()])
def test_a_library_that_ends_its_program_ends_one_operation(error: BaseException) -> None:
    """If it failed, `sys.exit` in a library would end the harness, with the exit code of a verdict; and a `next` that
    finds nothing would print a traceback and hold its client until the deadline."""

    def ends(connection: Scripted) -> Outcome:
        raise error

    async def story(clients: LibraryClients) -> None:
        outcome = await clients.perform(1, "n1", WRITE, LONG_NS)
        assert outcome == Completion("info", None, f"RuntimeError: {error!r}")

    Scripts(ends).play(story)


@pytest.mark.parametrize("answer", [[1], {"lsn": object()}])
def test_a_status_that_no_record_can_hold_is_none(answer: Any) -> None:
    """If it failed, the first odd status would end the run."""

    class Says(Scripted):
        def status(self) -> Mapping[str, object]:
            return answer  # type: ignore[no-any-return]

    async def story(clients: LibraryClients) -> None:
        assert await clients.status("n1", LONG_NS) is None
        assert clients.why_silent("n1")

    played(Library(lambda host, port, timeout_s: Says(done), frozenset({Read, Write})), story)


@pytest.mark.parametrize("word", ["mismatch", "empty", "nothing-there"])
def test_words_of_a_client_observe_nothing(word: str) -> None:
    """If it failed, `raise NotDone("mismatch")` would count as a fresh read, and a stale one be a false alarm."""

    def refuses(connection: Scripted) -> Outcome:
        raise NotDone(word)

    async def story(clients: LibraryClients) -> None:
        assert await clients.perform(1, "n1", WRITE, LONG_NS) == Completion("fail", None, f"not done: {word}")

    Scripts(refuses).play(story)


def test_a_status_in_time_that_failed_is_told_beside_a_late_one() -> None:
    """If it failed, a client that cannot connect would look like a store that is too slow, on a busy machine."""
    goes_on = threading.Event()

    def connect(host: str, port: int, timeout_s: float) -> Scripted:
        if timeout_s > SHORT_NS / 1e9:
            raise ValueError("no such option")
        assert goes_on.wait(PATIENCE_S)
        return Scripted(done)

    async def story(clients: LibraryClients) -> None:
        for timeout_ns in (LONG_NS, SHORT_NS):
            assert await clients.status("n1", timeout_ns) is None
        goes_on.set()
        late = f"no connection in time ({SHORT_NS / 1e9:g} s)"
        assert clients.why_silent("n1") == f"{late}; before that ValueError: no such option"

    played(Library(connect, frozenset({Read, Write})), story)


def test_a_process_that_goes_on_as_another_leaves_no_connection() -> None:
    """If it failed, a run with many open operations would end with a thread and a socket for each of them."""
    scripts = Scripts(done, done, raises(ZeroDivisionError()))

    async def story(clients: LibraryClients) -> None:
        await clients.perform(1, "n1", WRITE, LONG_NS)
        await clients.perform(2, "n1", WRITE, LONG_NS)
        await clients.perform(1, "n2", WRITE, LONG_NS)
        closed = [
            each.is_closed.wait(patience_s)
            for each, patience_s in zip(scripts.made, (PATIENCE_S, 0, PATIENCE_S), strict=True)
        ]
        assert closed == [True, False, True]

    scripts.play(story)


def test_a_refused_connection_is_a_fail() -> None:
    """If it failed, every write to a dead node would be open to the end of the run."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]

        async def story(clients: LibraryClients) -> None:
            outcome = await clients.perform(1, "n1", WRITE, LONG_NS)
            assert outcome == Completion("fail", None, "ConnectionRefusedError: Connection refused")
            assert await clients.status("n1", LONG_NS) is None

        played(Library(Asking, frozenset({Read, Write})), story, port)


class Asking:
    """Asks for a page at each operation."""

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        self._http = Http(host, port, timeout_s)

    def invoke(self, asked: Asked) -> Outcome:
        return Done([self._http.ask("POST", "/", {"asked": str(asked)})])

    def status(self) -> Mapping[str, object]:
        return {"up": self._http.ask("GET", "/")[0]}

    def close(self) -> None:
        self._http.close()


class Listener:
    """Answers each connection with what stands here for it, after one request each; then it closes. "": never."""

    def __init__(self, *answers: str) -> None:
        self._answers = answers
        self.heard: list[bytes] = []
        self._closed = threading.Semaphore(0)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._serving = threading.Thread(target=self._serve, daemon=True)
        self._serving.start()

    def closes(self) -> None:
        """Wait until the next connection is closed: what is sent before that is reset, and has no known outcome."""
        assert self._closed.acquire(timeout=PATIENCE_S)

    def ends(self) -> None:
        """Wait until no connection is taken any more."""
        self._serving.join(PATIENCE_S)
        assert not self._serving.is_alive()

    def _serve(self) -> None:
        for answer in self._answers:
            connection, _ = self._server.accept()
            with connection:
                self.heard.append(_request(connection))
                connection.sendall(answer.encode())
                if not answer:
                    connection.recv(1)  # until the client has had enough
            self._closed.release()
        self._server.close()


def _request(connection: socket.socket) -> bytes:
    """All of it: closing a connection with something unread in it resets it."""
    with connection.makefile("rb") as file:
        head = b"".join(iter(file.readline, b"\r\n"))
        length = next(
            int(line.split()[1]) for line in head.splitlines() if line.startswith(b"Content-Length")
        )
        return head + file.read(length)


ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"is": 1}'


def test_http_dials_anew_and_asks_nothing_twice() -> None:
    """If it failed, a server that closes connections would be asked twice, or not at all and nobody would know."""
    server = Listener(ANSWER, ANSWER, ANSWER[:-1])

    async def story(clients: LibraryClients) -> None:
        for _ in range(2):
            assert await clients.perform(1, "n1", WRITE, LONG_NS) == Done([(200, {"is": 1})])
            server.closes()
        broken = await clients.perform(1, "n1", WRITE, LONG_NS)
        assert isinstance(broken, Completion)
        assert broken.type == "info"
        server.ends()
        gone = await clients.perform(2, "n1", WRITE, LONG_NS)
        assert isinstance(gone, Completion)
        assert gone.type == "fail"

    played(Library(Asking, frozenset({Read, Write})), story, server.port)
    assert len(server.heard) == 3


def test_a_node_that_is_down_is_sent_nothing_and_has_done_nothing() -> None:
    """If it failed, each write during a kill would be unknown, because the relay accepts and then resets."""
    scripts = Scripts(done, done)
    down: set[str] = set()

    async def story() -> None:
        client = Library(scripts.connect, frozenset({Read, Write}))
        clients = LibraryClients(client, lambda node: 1, is_down=down.__contains__)
        assert await clients.perform(1, "n1", WRITE, LONG_NS) == Done((1,))
        down.add("n1")
        assert await clients.perform(1, "n1", WRITE, LONG_NS) == Completion("fail", None, DOWN)
        down.clear()
        assert await clients.perform(1, "n1", WRITE, LONG_NS) == Done((1,))
        clients.close()

    asyncio.run(story())
    assert [len(each.asked) for each in scripts.made] == [1, 1]
    assert scripts.made[0].is_closed.wait(PATIENCE_S)


def test_http_that_never_answers_ends_with_its_deadline() -> None:
    """If it failed, a thread and a connection of every operation at a node that is paused would stay for ever."""
    server = Listener("")

    async def story(clients: LibraryClients) -> None:
        before = threading.active_count()
        outcome = await clients.perform(1, "n1", WRITE, SHORT_NS)
        assert outcome == Completion("info", None, "timeout")
        for _ in range(1000 * PATIENCE_S):
            if threading.active_count() <= before:
                return
            await asyncio.sleep(0.001)
        raise AssertionError("the thread of a call that was given up still waits")

    played(Library(Asking, frozenset({Read, Write})), story, server.port)


def test_the_store_of_the_page_knows_what_surely_did_not_happen() -> None:
    """If it failed, authors who copy the file would not learn how to say so."""
    server = Listener("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 2\r\n\r\n{}")
    store = system_of(str(STORES / "http_store.py"))
    assert isinstance(store.client, LibraryClient)

    async def story(clients: LibraryClients) -> None:
        outcome = await clients.perform(1, "n1", WRITE, LONG_NS)
        assert outcome == Completion("fail", None, "the keeper was not reached")

    played(store.client, story, server.port)


STORES = Path(__file__).parents[3] / "stores"
TRIES = 4
BUSY = (
    "too little load",
    "too few answers",
    "the harness itself stood still",
    "the nodes were not quiet",
    "the fault ",
)
"""What makes a run no evidence on a machine that has much else to do, whatever the store."""
LOADED = "VALUES.update(json.loads(line) for line in whole[0].splitlines())"


def run(folder: Path, store: Path, nodes: int, *words: str) -> dict[str, Any]:
    printed = io.StringIO()
    options = ("--system", str(store), "--nodes", str(nodes), "--rate", "40", "--workers", "8")
    with redirect_stdout(printed):
        main(["run", *options, *words, "--json", "--results", str(folder)])
    verdict: dict[str, Any] = json.loads(printed.getvalue())
    return verdict


@pytest.mark.long
def test_the_store_of_the_page_is_valid_under_partitions_kills_and_pauses(tmp_path: Path) -> None:
    """If it failed, whoever follows docs/put-your-store-under-test.md would not come to a first verdict."""
    kinds = {"isolate-one", "kill", "pause"}
    for seed in range(TRIES):
        options = ("--faults", ",".join(sorted(kinds)), "--time-limit", "14", "--seed", str(seed))
        verdict = run(tmp_path, STORES / "http_store.py", 3, *options)
        assert verdict["violations"] == [], verdict["sentence"]
        others = [each for each in verdict["evidence"]["missing"] if not each.startswith(BUSY)]
        assert not others, others
        if verdict["outcome"] == "valid":
            assert kinds <= set(verdict["evidence"]["kinds_in_effect"]), verdict["evidence"]
            return
    raise AssertionError("not one run of a correct store was valid")


@pytest.mark.long
@pytest.mark.parametrize(
    ("status", "why"),
    [
        ("return {}['primary']", "KeyError: 'primary'"),
        pytest.param(
            "Http('127.0.0.1', 1, 1.5)",
            "ConnectionRefusedError: Connection refused",
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_store_that_is_not_ready_in_time_names_the_last_error_of_its_status(
    status: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a defect of the author's `status` would look like a node that does not start."""
    store = tmp_path / "http_store.py"
    text = (STORES / "http_store.py").read_text()
    asks = 'self.http.ask("GET", "/")  # any answer shows that the node is up'
    dials = "self.http = Http(host, port, timeout_s)"
    assert asks in text
    assert dials in text
    text = text.replace(asks, status).replace(dials, "pass")
    assert 'leader="none",' in text
    store.write_text(text.replace('leader="none",', 'leader="none", ready_within_s=2.5,'))
    (tmp_path / "http_service.py").write_text((STORES / "http_service.py").read_text())
    main(["run", "--system", str(store), "--nodes", "1", "--results", str(tmp_path)])
    assert f"n1 was not ready within 2.5 s; its status: {why}" in capsys.readouterr().err


@pytest.mark.long
def test_a_service_that_forgets_is_found_through_its_own_client(tmp_path: Path) -> None:
    """If it failed, a green run of an HTTP service would say nothing."""
    service = (STORES / "http_service.py").read_text()
    assert LOADED in service
    (tmp_path / "http_service.py").write_text(service.replace(LOADED, ""))
    (tmp_path / "http_store.py").write_text((STORES / "http_store.py").read_text())
    seen: set[str] = set()
    for seed in range(TRIES):
        options = ("--faults", "kill", "--time-limit", "7", "--seed", str(seed))
        seen |= set(run(tmp_path, tmp_path / "http_store.py", 1, *options)["violations"])
        if "linearizable" in seen:
            return
    raise AssertionError(seen)
