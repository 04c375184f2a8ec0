"""The requests that clients may send to a node, and their answers.

All data requests of IPROTO, AUTH and PING; EVAL and SQL are refused. Named functions by CALL:

| function | arguments | answer |
|---|---|---|
| `qsync.transaction` | statements, options | map: committed, results, mismatch, role, mode |
| `qsync.dump` | – | map: spaces → name → all confirmed tuples, of those that are replicated |
| `qsync.status` | – | map: the node's status |
| `box.info`, `box.info.synchro` … | – | as Tarantool (`nodes.qsync.info`) |
| `box.ctl.…`, `box.cfg`, … | | `nodes.qsync.control` |
| `qsync.cut`, `qsync.cut_places` | – | `nodes.qsync.cutting` |
| `box.schema.space.create`, `box.space.NAME:alter`, `:drop` … | as Tarantool | `nodes.qsync.ddl` |
| `box.space.NAME:insert`, `:select` … | as Tarantool | tuples |

`nodes.qsync.statements` defines statements. Options of a transaction: `read` is the read mode, `is_sync`
makes it synchronous whatever its spaces are, `wait` is its wait mode (`nodes.qsync.admission`; else that of the
configuration), `is_lazy` means `submit`, in the words of the talk. As in Tarantool `is_sync` can only be true, and a
transaction of local rows alone cannot be synchronous. `committed` is nil if it is not known at the time of the answer.
Read modes: `read-confirmed` (the default; confirmed data only), `dirty` (prepared data too) and `linearizable`
(confirmed data, after enough nodes have reported their logs: `nodes.qsync.linearizable_reads`; refused without MVCC,
and of asynchronous spaces). The answer names the mode and the role that served it, because its guarantees depend on
them. A compare that failed, a duplicate key, a deletion of nothing and an update that does not fit reveal prepared
data: such an answer waits until the transaction that it reveals is committed, and is an error if that is rolled back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from nodes.iproto.codes import Code
from nodes.iproto.messages import (
    Answer,
    Auth,
    Call,
    Checked,
    ClientRequest,
    Delete,
    Eval,
    Execute,
    Insert,
    Ping,
    Refusal,
    Replace,
    Response,
    Select,
    Unknown,
    Update,
    Upsert,
)
from nodes.kernel.effects import Effect
from nodes.kernel.events import Instant
from nodes.qsync import ddl
from nodes.qsync.access import Access
from nodes.qsync.admission import Admission
from nodes.qsync.commits import Commits
from nodes.qsync.configuration import COMMIT_WAITS, CommitWait
from nodes.qsync.evaluation import Evaluation, Outcome
from nodes.qsync.fates import answer_later
from nodes.qsync.joining import check_member
from nodes.qsync.keys import Rejected, Tuple, exact_key
from nodes.qsync.linearizable_reads import LinearizableReads
from nodes.qsync.schema import Schema
from nodes.qsync.selection import ITERATORS_END, Iterator, selected
from nodes.qsync.sometimes import ANSWER_WAITED
from nodes.qsync.spaces import Space
from nodes.qsync.statements import run, writes
from nodes.qsync.system_spaces import CLUSTER, INDEX, SPACE, TRUNCATE

DIRTY = "dirty"
LINEARIZABLE = "linearizable"
READ_MODES = ("read-confirmed", DIRTY, LINEARIZABLE)
OPTIONS = ("read", "is_sync", "is_lazy", "wait")
PRODUCT = "qsync"
LOCAL_IS_ASYNCHRONOUS = "An attempt to commit a fully local transaction synchronously"

Make = Callable[[Outcome], Response]
Evaluate = Callable[[Evaluation], object]


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller's link and request number; `wraps`: the answer is in the old form (CALL_16)."""

    link: int
    sync: int
    wraps: bool = False

    def answer(self, *values: object) -> Answer:
        if self.wraps:
            match values:
                case [[list() | tuple(), *_] as tuples]:
                    values = tuple(tuples)
            values = tuple(value if isinstance(value, list | tuple) else (value,) for value in values)
        return Answer(self.sync, values)


Function = Callable[[Caller, Tuple, Instant], None]


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a transaction."""

    read: str = READ_MODES[0]
    is_sync: bool = False
    wait: CommitWait | None = None
    """None: the wait mode of the configuration."""

    @property
    def is_linearizable(self) -> bool:
        return self.read == LINEARIZABLE


AS_USUAL = Options()


class Service:
    """Serves the requests of clients; answers are appended to `out` as effects."""

    def __init__(
        self,
        commits: Commits,
        schema: Schema,
        status: Callable[[], Mapping[str, object]],
        info: Callable[[Instant], Mapping[str, Any]],
        reads: LinearizableReads,
        serves_alone: Callable[[Instant], bool],
        out: list[Effect],
    ) -> None:
        self._commits = commits
        self._schema = schema
        self._status = status
        self._info = info
        self._reads = reads
        self._serves_alone = serves_alone
        self.admission = Admission(commits)
        self._access = Access(commits.configuration.users)
        self._out = out
        self.functions: dict[str, Function] = {
            "qsync.transaction": self._transaction,
            "qsync.dump": self._dump,
            "qsync.status": self._answer_status,
            "box.info": self._answer_info,
            "box.schema.space.create": self._create_space,
        }
        """The functions that are found by their whole name."""

    def serve(self, link: int, request: ClientRequest | Checked, now: Instant) -> None:
        """Answer a request, at once or when its transaction has committed."""
        if type(request) is Checked:
            wanted, request = request.schema_version, request.request
            if wanted != self._schema.version:
                text = Code.WRONG_SCHEMA_VERSION.text(wanted, self._schema.version)  # in this order
                self._answer(link, Refusal(request.sync, Code.WRONG_SCHEMA_VERSION, text))
                return
        assert not isinstance(request, Checked)
        try:
            self._dispatch(link, request, now)
        except Rejected as rejected:
            self._answer(link, Refusal(request.sync, rejected.code, str(rejected)))

    def hung_up(self, link: int) -> None:
        """The link is gone, and with it its session."""
        self._access.forget(link)

    def _dispatch(self, link: int, request: ClientRequest, now: Instant) -> None:
        match request:
            case Call(sync, name, arguments, wraps):
                self._call(Caller(link, sync, wraps), name, arguments, now)
            case Select():
                self._answer(link, Answer(request.sync, self._select(link, request)))
            case Insert() | Replace() | Update() | Upsert() | Delete():
                self._write(link, request, now)
            case Ping(sync):
                self._answer(link, Answer(sync, has_data=False))
            case Auth(sync):
                self._access.log_in(link, request)
                self._answer(link, Answer(sync, has_data=False))
            case Eval():
                self._access.check(link, "execute", "universe", "")
                raise Rejected(Code.UNSUPPORTED, PRODUCT, "EVAL")
            case Execute():
                raise Rejected(Code.UNSUPPORTED, PRODUCT, "SQL")
            case Unknown(sync, code, message):
                self._answer(link, Refusal(sync, code, message))

    def _answer(self, link: int, response: Response) -> None:
        answer_later(None, link, response, self._out)

    # ---- data requests

    def _select(self, link: int, request: Select) -> tuple[Tuple, ...]:
        if request.iterator >= ITERATORS_END:
            raise Rejected(Code.ILLEGAL_PARAMS, "Invalid iterator type")
        space = self._space(request.space_id)
        if space.source is None:
            self._access.check(link, "read", "space", space.definition.name)
        tuples = selected(
            *(space, request.index_id, request.iterator, request.key),
            *((request.offset, request.limit) if space.source is None else (0, len(space.source.confirmed))),
            dirty=self._served("") == DIRTY and space.source is None,
        )
        if space.source is None:
            return tuple(tuples)
        known = [row for row in tuples if self._access.may_know(link, row[0])]
        return tuple(known[request.offset : request.offset + request.limit])

    def _write(self, link: int, request: Insert | Replace | Update | Upsert | Delete, now: Instant) -> None:
        sync = request.sync

        def evaluate(evaluation: Evaluation) -> None:
            # Here: while the request waits for room, its space may go, and the node may become read-only.
            space = evaluation.to_write(request.space_id)
            self._access.check(link, "write", "space", space.definition.name)
            _evaluate(evaluation, space, request)

        def make(outcome: Outcome) -> Response:
            return Answer(sync, tuple(result for result in outcome.results if result is not None))

        self._run_writing(link, sync, evaluate, make, now)

    def _space(self, name: object) -> Space:
        space = self._schema.lookup.get(name)
        if space is None:
            raise Rejected(Code.NO_SUCH_SPACE, name)
        return space

    # ---- CALL

    def _call(self, caller: Caller, name: str, arguments: Tuple, now: Instant) -> None:
        self._access.check(caller.link, "execute", "function", name)
        function = self.functions.get(name)
        if function is not None:
            function(caller, arguments, now)
        elif name.startswith("box.info."):
            self._answer(caller.link, caller.answer(_within(self._info(now), name)))
        elif name.startswith("box.space."):
            self._call_of_space(caller, name, arguments, now)
        else:
            raise Rejected(Code.NO_SUCH_PROC, name)

    def _call_of_space(self, caller: Caller, name: str, arguments: Tuple, now: Instant) -> None:
        """`box.space.register:insert`, and so on."""
        space_name, colon, method = name.removeprefix("box.space.").partition(":")
        space = self._schema.lookup.get(space_name)
        if not colon or space is None:
            raise Rejected(Code.NO_SUCH_PROC, name)
        link, sync, number = caller.link, caller.sync, space.definition.id
        first = arguments[0] if arguments else ()
        key = tuple(first) if isinstance(first, list | tuple) else (first,)
        match method, len(arguments):
            case "alter" | "drop" | "truncate", _:
                self._access.check(link, "write", "space", space_name)
                self._run(
                    caller,
                    lambda: ddl.statements(self._schema, self._space(space_name), method, arguments),
                    now,
                )
            case "insert", 1:
                self._write(link, Insert(sync, number, key), now)
            case "replace" | "put", 1:
                self._write(link, Replace(sync, number, key), now)
            case "delete", 1:
                self._write(link, Delete(sync, number, key), now)
            case "update", 2:
                self._write(link, Update(sync, number, key, _list(arguments[1]), index_base=1), now)
            case "upsert", 2:
                self._write(link, Upsert(sync, number, key, _list(arguments[1]), index_base=1), now)
            case "select", 0 | 1:
                tuples = self._select(link, Select(sync, number, key))
                self._answer(link, caller.answer(tuples))
            case "get", 1:
                exact_key(key, space.primary_parts)
                self._answer(link, caller.answer(*self._select(link, Select(sync, number, key))))
            case "count" | "len", 0:
                tuples = self._select(link, Select(sync, number, (), iterator=Iterator.ALL))
                self._answer(link, caller.answer(len(tuples)))
            case _:
                raise Rejected(Code.NO_SUCH_PROC, name)

    def _answer_status(self, caller: Caller, arguments: Tuple, now: Instant) -> None:
        self._answer(caller.link, caller.answer(self._status()))

    def _answer_info(self, caller: Caller, arguments: Tuple, now: Instant) -> None:
        self._answer(caller.link, caller.answer(self._info(now)))

    def _create_space(self, caller: Caller, arguments: Tuple, now: Instant) -> None:
        self._access.check(caller.link, "write", "space", "_space")
        self._run(caller, lambda: ddl.creation(self._schema, arguments), now)

    def _run(self, caller: Caller, compose: Callable[[], Sequence[object]], now: Instant) -> None:
        """Run statements that this node composes itself, by the spaces that there are then; the answer is empty."""

        def evaluate(evaluation: Evaluation) -> None:
            run(evaluation, compose())

        self._run_writing(caller.link, caller.sync, evaluate, lambda outcome: caller.answer(), now)

    def _transaction(self, caller: Caller, arguments: Tuple, now: Instant) -> None:
        statements, options = _transaction_arguments(arguments)
        if options.is_linearizable and not self._commits.configuration.memtx_use_mvcc_engine:
            raise Rejected(Code.UNSUPPORTED, "Linearizable transaction", "disabled memtx mvcc engine")
        role = "owner" if self._commits.ownership.may_decide else "replica"
        mode = options.read if writes(statements) else self._served(options.read)

        def make(outcome: Outcome) -> Response:
            is_done = outcome.mismatch is None
            committed = None if not self._completes(options) and is_done and outcome.changes else is_done
            reply: dict[str, object] = {"committed": committed, "role": role, "mode": mode}
            if outcome.mismatch is None:
                reply["results"] = outcome.results
            else:
                reply["mismatch"] = list(outcome.mismatch)
            return caller.answer(reply)

        def evaluate(evaluation: Evaluation) -> None:
            run(evaluation, statements)

        if writes(statements):
            self._access.check(caller.link, "write", "universe", "")
            self._run_writing(caller.link, caller.sync, evaluate, make, now, options)
            return
        self._access.check(caller.link, "read", "universe", "")
        evaluation = Evaluation(
            self._schema.lookup, confirmed_only=mode != DIRTY, is_linearizable=options.is_linearizable
        )
        # Before any node is asked: a malformed statement is refused at once.
        outcome = run(evaluation, statements)
        if options.is_linearizable:
            self._read_linearizable(caller, statements, make, now)
        else:
            self._answer(caller.link, make(outcome))

    def _served(self, mode: str) -> str:
        """The mode in which a read is served: without MVCC every read observes prepared data."""
        return mode if self._commits.configuration.memtx_use_mvcc_engine else DIRTY

    def _completes(self, options: Options) -> bool:
        return self._wait(options) == "complete"

    def _wait(self, options: Options) -> CommitWait:
        return options.wait or self._commits.configuration.commit_wait

    def _dump(self, caller: Caller, arguments: Tuple, now: Instant) -> None:
        self._access.check(caller.link, "read", "universe", "")
        spaces = {
            space.definition.name: list(space.scan(dirty=False))
            for space in self._schema.user_spaces()
            if space.definition.is_replicated
        }
        self._answer(caller.link, caller.answer({"spaces": spaces}))

    # ---- reading and writing

    def _run_writing(
        self,
        link: int,
        sync: int,
        evaluate: Evaluate,
        make: Make,
        now: Instant,
        options: Options = AS_USUAL,
        *,
        has_waited: bool = False,
    ) -> None:
        """Evaluate on the prepared state and submit the changes; an answer without effect may have to wait.

        If the queue has no room, all of this is done again when it has (`has_waited`).
        """
        commits = self._commits
        evaluation = Evaluation(
            self._schema.lookup,
            confirmed_only=not commits.decisions.decides_on_prepared,
            read_only=None if commits.is_writable else commits.read_only_error(),
            is_linearizable=options.is_linearizable,
        )
        outcome = evaluation.outcome
        try:
            evaluate(evaluation)
            if outcome.changes and outcome.mismatch is None and outcome.duplicate is None:
                self._must_be_allowed(outcome, options)
        except Rejected as rejected:
            refusal = Refusal(sync, rejected.code, str(rejected))
            answer_later(outcome.looked_at, link, refusal, self._out)
            return
        if outcome.duplicate is not None:
            refusal = Refusal(sync, outcome.duplicate.code, str(outcome.duplicate))
            answer_later(outcome.looked_at, link, refusal, self._out)
        elif outcome.mismatch is not None or not outcome.changes:
            if outcome.looked_at is not None:
                commits.sometimes.note(ANSWER_WAITED)
            answer_later(commits.decisions.answer_waits_for(outcome), link, make(outcome), self._out)
        elif not has_waited and outcome.drafts and self.admission.is_shut:
            if self._wait(options) == "none":
                full = Code.WAL_QUEUE_FULL if commits.is_log_full else Code.SYNC_QUEUE_FULL
                self._answer(link, Refusal(sync, full, full.text()))
                return
            self.admission.put(
                lambda now: self._run_writing(link, sync, evaluate, make, now, options, has_waited=True)
            )
        else:
            is_detached = not self._completes(options)
            changes, drafts = tuple(outcome.changes), tuple(outcome.drafts)
            submit = partial(
                commits.submit, changes, drafts, is_sync=options.is_sync, answers_at_once=is_detached
            )
            commits.decisions.into_queue(
                commits, submit, (link, make(outcome)), now, is_detached=is_detached and bool(drafts)
            )

    def _must_be_allowed(self, outcome: Outcome, options: Options) -> None:
        is_sync = options.is_sync
        if is_sync and all(draft.is_local for draft in outcome.drafts):
            raise Rejected(Code.ILLEGAL_PARAMS, message=LOCAL_IS_ASYNCHRONOUS)
        if is_sync and self._commits.configuration.protocol == "2.6":
            # no row of 2.6 says it of itself: replicas, and the log at the next start, would know nothing of it
            raise Rejected(Code.ILLEGAL_PARAMS, "unexpected option 'is_sync'")
        for change in outcome.changes:
            is_sync = is_sync or change.space.is_sync
            if change.space.definition.id in (SPACE, INDEX):
                ddl.check(self._schema, outcome.changes)
            elif change.space.definition.id == CLUSTER:
                check_member(change, self._commits.configuration.me.id)
            elif change.space.definition.id == TRUNCATE:
                raise Rejected(
                    Code.UNSUPPORTED, PRODUCT, "writes to _truncate; try: box.space.NAME:truncate()"
                )
        has_owner = self._commits.limbo.owner_id != 0 or self._commits.configuration.protocol == "2.6"
        if is_sync and not has_owner:
            raise Rejected(Code.SYNC_QUEUE_UNCLAIMED)

    def _read_linearizable(
        self, caller: Caller, statements: Sequence[object], make: Make, now: Instant
    ) -> None:
        def answer() -> None:
            evaluation = Evaluation(self._schema.lookup, confirmed_only=True, is_linearizable=True)
            try:
                self._answer(caller.link, make(run(evaluation, statements)))
            except Rejected as rejected:  # a space is gone meanwhile, or is asynchronous now
                self._answer(caller.link, Refusal(caller.sync, rejected.code, str(rejected)))

        def give_up() -> None:
            self._answer(caller.link, Refusal(caller.sync, Code.SYSTEM, Code.SYSTEM.text("timed out")))

        deadline_ns = now.monotonic_ns + self._commits.options.synchro_timeout_ns
        if self._serves_alone(now):
            answer()
        else:
            self._reads.begin(deadline_ns, answer, give_up)


def _evaluate(
    evaluation: Evaluation, space: Space, request: Insert | Replace | Update | Upsert | Delete
) -> None:
    """Evaluate one data request."""
    match request:
        case Insert():
            evaluation.insert(space, request.tuple)
        case Replace():
            evaluation.replace(space, request.tuple)
        case Upsert():
            evaluation.upsert(space, request.fields, request.operations, request.index_base)
        case Update():
            key = evaluation.key_by(space, request.index_id, request.key)
            evaluation.update(space, key, request.operations, request.index_base)
        case Delete():
            evaluation.delete(space, evaluation.key_by(space, request.index_id, request.key))


def _transaction_arguments(arguments: Tuple) -> tuple[Sequence[object], Options]:
    """The statements and options of a call of `qsync.transaction`."""
    options = arguments[1] if len(arguments) > 1 else {}
    mode = options.get("read", READ_MODES[0]) if isinstance(options, dict) else None
    if not arguments or not isinstance(arguments[0], list | tuple) or mode not in READ_MODES:
        expected = f"expected a list of statements and {{'read': one of {', '.join(READ_MODES)}}}"
        raise Rejected(Code.ILLEGAL_PARAMS, f"{expected}, got {arguments!r}"[:200])
    assert isinstance(options, dict)
    for name in options:
        if name not in OPTIONS:
            raise Rejected(Code.ILLEGAL_PARAMS, f"unexpected option {name!r}"[:200])
    is_sync = _flag(options, "is_sync")
    if is_sync is False:
        raise Rejected(Code.ILLEGAL_PARAMS, "is_sync can only be true")
    return arguments[0], Options(str(mode), is_sync is True, _wait_mode(options))


def _flag(options: Mapping[object, object], name: str) -> bool | None:
    value = options.get(name)
    if value is None or isinstance(value, bool):
        return value
    raise Rejected(Code.ILLEGAL_PARAMS, f"{name} must be a boolean")


def _wait_mode(options: Mapping[object, object]) -> CommitWait | None:
    is_lazy, wait = _flag(options, "is_lazy"), options.get("wait")
    if wait is None:
        return "submit" if is_lazy else None
    for mode in COMMIT_WAITS:
        if wait == mode and not (is_lazy and mode == "complete"):
            return mode
    if is_lazy:
        raise Rejected(Code.ILLEGAL_PARAMS, f"is_lazy does not go with the 'wait' mode {wait!r}"[:200])
    known = ", ".join(COMMIT_WAITS)
    raise Rejected(Code.ILLEGAL_PARAMS, f"unknown 'wait' mode {wait!r}, expected one of {known}"[:200])


def _within(info: Mapping[str, Any], name: str) -> object:
    """`box.info.synchro.queue` and the like."""
    value: object = info
    for step in name.split(".")[2:]:
        if not isinstance(value, Mapping) or step not in value:
            raise Rejected(Code.NO_SUCH_PROC, name)
        value = value[step]
    return value


def _list(value: object) -> Tuple:
    if not isinstance(value, list | tuple):
        raise Rejected(Code.ILLEGAL_PARAMS, "update operations must be an array {{op,..}, {op,..}}")
    return tuple(value)
