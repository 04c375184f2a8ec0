"""What clients may ask of a node, and what they are answered.

Plain requests (SELECT, INSERT, REPLACE, DELETE, PING) and named functions by CALL:

| function | arguments | answer |
|---|---|---|
| `qsync.transaction` | statements, options `{"read": mode}` | map: committed, results, mismatch, role, mode |
| `qsync.dump` | – | map: spaces → name → all confirmed tuples |
| `qsync.status`, `box.info` | – | map: the node's status |
| `box.ctl.promote` | – | – |

What statements are is told in `nodes.qsync.statements`. Read modes: `read-confirmed` (the default; confirmed data
only), `dirty` (whatever is prepared, confirmed or not) and `linearizable` (confirmed data, after enough nodes were
asked what they have: `nodes.qsync.linearizable_reads`). The answer says which mode and which role served it,
because that decides what may be expected of it.
A compare that failed, a duplicate key and a deletion of nothing reveal prepared data: such an answer waits until
what it looked at is committed, and is an error if that is rolled back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from nodes.iproto.codes import Code
from nodes.iproto.messages import (
    Answer,
    Call,
    Delete,
    Insert,
    Ping,
    Refusal,
    Replace,
    Response,
    Select,
    Unknown,
)
from nodes.kernel.effects import Effect
from nodes.kernel.events import Instant
from nodes.qsync.commits import Commits, answer_later
from nodes.qsync.linearizable_reads import LinearizableReads
from nodes.qsync.spaces import Space, Tuple
from nodes.qsync.statements import Evaluation, Outcome, Rejected, writes

READ_MODES = ("read-confirmed", "dirty", "linearizable")

ClientRequest = Select | Insert | Replace | Delete | Call | Ping | Unknown
Make = Callable[[Outcome], Response]


class Service:
    """Serves the requests of clients; answers are appended to `out` as effects."""

    def __init__(
        self,
        commits: Commits,
        spaces: Mapping[int, Space],
        status: Callable[[], Mapping[str, object]],
        reads: LinearizableReads,
        out: list[Effect],
    ) -> None:
        self._reads = reads
        self._commits = commits
        self._spaces: dict[object, Space] = {}
        for number, space in spaces.items():
            self._spaces[number] = self._spaces[space.definition.name] = space
        self._status = status
        self._out = out

    def serve(self, link: int, request: ClientRequest, now: Instant) -> None:
        """Answer a request, now or when it has committed."""
        try:
            self._dispatch(link, request, now)
        except Rejected as rejected:
            self._answer(link, Refusal(request.sync, rejected.code, str(rejected)))

    def _dispatch(self, link: int, request: ClientRequest, now: Instant) -> None:
        match request:
            case Call(sync, name, arguments):
                self._call(link, sync, name, arguments, now)
            case Select():
                self._answer(link, Answer(request.sync, self._select(request)))
            case Insert(sync, space_id, value):
                self._single(link, sync, ["insert", space_id, value], now)
            case Replace(sync, space_id, value):
                self._single(link, sync, ["replace", space_id, value], now)
            case Delete(sync, space_id, key):
                self._single(link, sync, ["delete", space_id, *key[:1]], now)
            case Ping(sync):
                self._answer(link, Answer(sync))
            case Unknown(sync, code, message):
                self._answer(link, Refusal(sync, code, message))

    def _answer(self, link: int, response: Response) -> None:
        answer_later(None, link, response, self._out)

    # ---- CALL

    def _call(self, link: int, sync: int, name: str, arguments: tuple[object, ...], now: Instant) -> None:
        match name:
            case "qsync.transaction":
                self._transaction(link, sync, arguments, now)
            case "qsync.dump":
                self._answer(link, Answer(sync, (self._dump(),)))
            case "qsync.status" | "box.info":
                self._answer(link, Answer(sync, (self._status(),)))
            case "box.ctl.promote":
                self._promote(link, sync, now)
            case _:
                raise Rejected(Code.NO_SUCH_PROC, name)

    def _transaction(self, link: int, sync: int, arguments: tuple[object, ...], now: Instant) -> None:
        statements, mode = _transaction_arguments(arguments)
        role = "owner" if self._commits.may_decide else "replica"

        def make(outcome: Outcome) -> Response:
            reply: dict[str, object] = {"committed": outcome.mismatch is None, "role": role, "mode": mode}
            if outcome.mismatch is None:
                reply["results"] = outcome.results
            else:
                reply["mismatch"] = list(outcome.mismatch)
            return Answer(sync, (reply,))

        self._run(link, sync, statements, mode, make, now)

    def _promote(self, link: int, sync: int, now: Instant) -> None:
        owner = self._commits.limbo.owner_id
        if self._commits.may_decide:
            self._answer(link, Answer(sync))
        elif self._commits.election.mode in ("manual", "candidate"):
            self._commits.election.campaign(now.monotonic_ns)
            self._answer(link, Answer(sync))
        elif self._commits.election.mode == "voter":
            raise Rejected(Code.UNSUPPORTED, "election_mode='voter'", "manual elections")
        elif self._commits.is_behind_barrier:
            raise Rejected(Code.IN_ANOTHER_PROMOTE)
        elif owner == 0:
            self._commits.promote((link, Answer(sync)), now)
        else:
            raise Rejected(Code.UNSUPPORTED, "qsync", f"taking the queue over from instance {owner}")

    def _dump(self) -> dict[str, object]:
        spaces = {
            space.definition.name: list(space.scan(dirty=False))
            for key, space in self._spaces.items()
            if isinstance(key, int)
        }
        return {"spaces": spaces}

    # ---- reading and writing

    def _select(self, request: Select) -> tuple[Tuple, ...]:
        space = self._spaces.get(request.space_id)
        if space is None:
            raise Rejected(Code.NO_SUCH_SPACE, request.space_id)
        if request.index_id != 0:
            raise Rejected(Code.NO_SUCH_INDEX_ID, request.index_id, space.definition.name)
        if not request.key:
            found = list(space.scan(dirty=False))
        else:
            one = Evaluation(self._spaces, confirmed_only=True).run(
                [["get", request.space_id, request.key[0]]]
            )
            found = [value for value in one.results if isinstance(value, tuple)]
        return tuple(found[request.offset : request.offset + request.limit])

    def _single(self, link: int, sync: int, statement: list[object], now: Instant) -> None:
        def make(outcome: Outcome) -> Response:
            return Answer(sync, tuple(result for result in outcome.results if result is not None))

        self._run(link, sync, [statement], READ_MODES[0], make, now)

    def _run(
        self, link: int, sync: int, statements: Sequence[object], mode: str, make: Make, now: Instant
    ) -> None:
        is_writing = writes(statements)
        if is_writing:
            self._must_be_writable()
        elif mode == "linearizable":
            self._read_linearizable(link, sync, statements, make, now)
            return
        evaluation = Evaluation(self._spaces, confirmed_only=not is_writing and mode != "dirty")
        outcome = evaluation.run(statements)
        if is_writing:
            self._must_own_the_queue(outcome)
        if outcome.mismatch is not None or not outcome.changes or outcome.duplicate is not None:
            waits_for = outcome.looked_at if is_writing else None
            rejected = outcome.duplicate
            response = make(outcome) if rejected is None else Refusal(sync, rejected.code, str(rejected))
            answer_later(waits_for, link, response, self._out)
        else:
            self._commits.submit(tuple(outcome.changes), tuple(outcome.drafts), (link, make(outcome)), now)

    def _read_linearizable(
        self, link: int, sync: int, statements: Sequence[object], make: Make, now: Instant
    ) -> None:
        def answer() -> None:
            outcome = Evaluation(self._spaces, confirmed_only=True).run(statements)
            self._answer(link, make(outcome))

        def give_up() -> None:
            self._answer(link, Refusal(sync, Code.SYSTEM, Code.SYSTEM.text("timed out")))

        Evaluation(self._spaces, confirmed_only=True).run(statements)  # what is malformed is refused at once
        deadline_ns = now.monotonic_ns + self._commits.configuration.synchro_timeout_ns
        self._reads.begin(deadline_ns, answer, give_up)

    def _must_be_writable(self) -> None:
        if not self._commits.is_writable:
            raise Rejected(Code.READONLY)

    def _must_own_the_queue(self, outcome: Outcome) -> None:
        is_sync = any(change.space.definition.is_sync for change in outcome.changes)
        if is_sync and self._commits.limbo.owner_id == 0:
            raise Rejected(Code.SYNC_QUEUE_UNCLAIMED)


def _transaction_arguments(arguments: tuple[object, ...]) -> tuple[Sequence[object], str]:
    """The statements and the read mode of a call of `qsync.transaction`."""
    options = arguments[1] if len(arguments) > 1 else {}
    mode = options.get("read", READ_MODES[0]) if isinstance(options, dict) else None
    if not arguments or not isinstance(arguments[0], list | tuple) or mode not in READ_MODES:
        expected = f"expected a list of statements and {{'read': one of {', '.join(READ_MODES)}}}"
        raise Rejected(Code.ILLEGAL_PARAMS, f"{expected}, got {arguments!r}"[:200])
    return arguments[0], str(mode)
