"""Frames of a link: by hand, there and back, cut anywhere, and any bytes at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.iproto.codes import Code
from nodes.iproto.errors import FrameTooLong, MalformedFrame, MalformedGreeting, ProtocolError
from nodes.iproto.frames import (
    ApplierDecoder,
    ClientDecoder,
    ServerDecoder,
    encode,
    greeting,
    parse_greeting,
)
from nodes.iproto.messages import (
    Ack,
    Answer,
    Auth,
    Ballot,
    Call,
    Checked,
    Delete,
    Eval,
    Execute,
    Heartbeat,
    Insert,
    Join,
    JoinMeta,
    JoinSnapshot,
    Message,
    Ping,
    RaftState,
    Refusal,
    Register,
    Replace,
    Row,
    Rows,
    Select,
    Stage,
    Subscribe,
    Subscribed,
    Type,
    Unknown,
    Update,
    Upsert,
    Vote,
)
from tests.nodes.iproto import strategies as like

CLUSTER = "e69c44d7-4cd9-4b9f-8b6f-0a1d3a7a0b01"
INSTANCE = "7170b4a6-5a1d-4a0c-a8ae-0f7ba5b0a1e7"
GREETING = greeting("3.2.0", INSTANCE, bytes(range(32)))
SUBSCRIBE = Subscribe(0, CLUSTER, INSTANCE, 2, {1: 7, 2: 3})
DEEP = b"\x91" * 1000 + b"\x90"

Decoder = ServerDecoder | ApplierDecoder | ClientDecoder


def server() -> ServerDecoder:
    return ServerDecoder()


def master() -> ServerDecoder:
    decoder = ServerDecoder()
    decoder.feed(encode(SUBSCRIBE))
    return decoder


def applier() -> ApplierDecoder:
    decoder = ApplierDecoder()
    decoder.feed(GREETING + encode(Subscribed(0, CLUSTER, {1: 7})))
    return decoder


def client() -> ClientDecoder:
    decoder = ClientDecoder()
    decoder.feed(GREETING)
    return decoder


ANY_DECODER = st.sampled_from([ServerDecoder, ApplierDecoder, ClientDecoder, server, master, applier, client])


def outcome(decoder: Decoder, pieces: Iterable[bytes]) -> tuple[list[Message | Row], str | None]:
    """All that came out, Rows taken apart, and the error that ended it."""
    messages: list[Message] = []
    error = None
    for piece in pieces:
        try:
            messages += decoder.feed(piece)
        except ProtocolError as broken:
            messages += broken.messages
            error = f"{type(broken).__name__}: {broken}"
            break
    return [part for message in messages for part in parts(message)], error


def parts(message: Message) -> Sequence[Message | Row]:
    return message.rows if isinstance(message, Rows) else (message,)


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    bounds = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(bounds)]


# --- by hand, from the description of the protocol -------------------------------------------------------------


def frame(hexadecimal: str) -> bytes:
    payload = bytes.fromhex(hexadecimal)
    return b"\xce" + pack(">I", len(payload)) + payload


TIMESTAMP = "cb 3ff8000000000000"  # 1.5
BY_HAND: list[tuple[Callable[[], Decoder], Message, bytes]] = [
    (server, Ping(3), frame("82 00 40 01 03  80")),
    (server, Call(4, "f", (1, "a")), frame("82 00 0a 01 04  82 22 a1 66 21 92 01 a1 61")),
    (
        server,
        Select(5, 512, (1,)),
        frame("82 00 01 01 05  86 10 cd0200 11 00 12 ceffffffff 13 00 14 00 20 91 01"),
    ),
    (server, Replace(6, 512, (1, None)), frame("82 00 03 01 06  82 10 cd0200 21 92 01 c0")),
    (server, Insert(6, 512, (1,)), frame("82 00 02 01 06  82 10 cd0200 21 91 01")),
    (
        server,
        Update(6, 512, (1,), (["+", 1, 2],)),
        frame("82 00 04 01 06  85 10 cd0200 11 00 15 00 20 91 01 21 91 93 a1 2b 01 02"),
    ),
    (
        server,
        Upsert(6, 512, (1, 0), (["+", 2, 2],), 1),
        frame("82 00 09 01 06  84 10 cd0200 15 01 21 92 01 00 28 91 93 a1 2b 02 02"),
    ),
    (server, Call(4, "f", (1,), wraps=True), frame("82 00 06 01 04  82 22 a1 66 21 91 01")),
    (server, Eval(4, "return 1", ()), frame("82 00 08 01 04  82 27 a8 72657475726e2031 21 90")),
    (server, Execute(4, False, {0x40: "SELECT 1"}), frame("82 00 0b 01 04  81 40 a8 53454c4543542031")),
    (server, Execute(4, True, {0x40: "SELECT 1"}), frame("82 00 0d 01 04  81 40 a8 53454c4543542031")),
    (
        server,
        Auth(4, "guest", ("chap-sha1", b"x")),
        frame("82 00 07 01 04  82 23 a5 6775657374 21 92 a9 636861702d73686131 c4 01 78"),
    ),
    (server, Checked(80, Ping(3)), frame("83 00 40 01 03 05 50  80")),
    (server, Delete(6, 512, (1,)), frame("82 00 05 01 06  83 10 cd0200 11 00 20 91 01")),
    (
        client,
        Answer(3, (7,), 80),
        frame("83 00 ce00000000 01 cf0000000000000003 05 cf0000000000000050  81 30 dd00000001 07"),
    ),
    (
        client,
        Refusal(3, 7, "no", 1),
        frame(
            "83 00 ce00008007 01 cf0000000000000003 05 cf0000000000000001"
            "  82 31 a2 6e6f 52 81 00 91 86 00 ab 436c69656e744572726f72 01 a0 02 00 03 a2 6e6f 04 00 05 07"
        ),
    ),
    (
        server,
        SUBSCRIBE,
        frame(
            "82 00 42 02 02  84 25 d924"
            + CLUSTER.encode().hex()
            + "24 d924"
            + INSTANCE.encode().hex()
            + "26 82 01 07 02 03  06 ce00030200"
        ),
    ),
    (server, Vote(2), frame("82 00 44 01 02  80")),
    (
        server,
        Join(2, INSTANCE, 0x020600),
        frame("82 00 41 01 02  82 24 d924" + INSTANCE.encode().hex() + "06 ce00020600"),
    ),
    (server, Join(2, "", 0x020600, is_anonymous=True), frame("82 00 45 01 02  81 06 ce00020600")),
    (
        server,
        Register(2, INSTANCE, {1: 7}),
        frame("82 00 46 01 02  82 24 d924" + INSTANCE.encode().hex() + "26 81 01 07"),
    ),
    (
        applier,
        Ballot(2, False, {1: 7}, {1: 3}, False),
        frame("82 00 00 01 02  81 29 84 01 c2 02 81 01 07 03 81 01 03 04 c2"),
    ),
    (applier, Stage(2, {1: 7}), frame("82 00 00 01 02  81 26 81 01 07")),
    (applier, JoinMeta(2), frame("82 00 47 01 02  80")),
    (applier, JoinSnapshot(2), frame("82 00 48 01 02  80")),
    (master, Ack({1: 7}, 0), frame("81 00 00  81 26 81 01 07")),
    (master, Ack({1: 7, 2: 3}, 2), frame("81 00 00  82 26 82 01 07 02 03 53 02")),
    (applier, Heartbeat(1, 1.5), frame(f"83 00 00 02 01 04 {TIMESTAMP}")),
    (applier, Heartbeat(1, 1.5, 9), frame(f"83 00 00 02 01 04 {TIMESTAMP}  81 5a 09")),
    (
        applier,
        RaftState(1, 5, 1, 2, 0, False, {1: 7}),
        frame("82 00 1e 02 01  86 00 05 01 01 02 02 03 81 01 07 04 00 05 c2"),
    ),
    (
        applier,
        Rows((Row(3, 1, 8, 1.5, 8, True, True, True, 0, {0x10: 512, 0x21: (1,)}),)),
        frame(f"85 00 03 02 01 03 08 04 {TIMESTAMP} 09 06  82 10 cd0200 21 91 01"),
    ),
    (
        applier,
        Rows(
            (
                Row(12, 1, 8, 1.5, 8, False),
                Row(40, 1, 10, 1.5, 8, True, body={2: 1, 3: 7}),
            )
        ),
        frame(f"85 00 0c 02 01 03 08 04 {TIMESTAMP} 08 00")
        + frame(f"86 00 28 02 01 03 0a 04 {TIMESTAMP} 08 02 09 01  82 02 01 03 07"),
    ),
]


@pytest.mark.parametrize(("decoder", "message", "data"), BY_HAND)
def test_frames_are_those_of_the_protocol(
    decoder: Callable[[], Decoder], message: Message, data: bytes
) -> None:
    """Encoder and decoder would agree with each other, and with no Tarantool."""
    assert encode(message).hex(" ") == data.hex(" ")
    assert decoder().feed(data) == [message]


def test_subscribed_by_hand() -> None:
    """A real replica would not take our answer to its SUBSCRIBE, nor ours that of a real master."""
    data = frame("82 00 00 01 00  82 25 d924" + CLUSTER.encode().hex() + "26 81 01 07")
    assert encode(Subscribed(0, CLUSTER, {1: 7})) == data
    decoder = ApplierDecoder()
    assert decoder.feed(GREETING + data) == [Subscribed(0, CLUSTER, {1: 7})]


def test_an_answer_to_a_ping_has_no_data() -> None:
    """A real server's answer to a PING would end the link."""
    data = frame("83 00 ce00000000 01 cf0000000000000003 05 cf0000000000000050  80")
    assert client().feed(data) == [Answer(3, (), 80, has_data=False)]
    assert encode(Answer(3, (), 80, has_data=False)) == data


def test_short_lengths_are_lengths_too() -> None:
    """Connectors that pack the length of a frame tightly would be refused."""
    payload = bytes.fromhex("82 00 40 01 03 80")
    for head in ("06", "cc06", "cd0006", "ce00000006", "cf0000000000000006"):
        assert server().feed(bytes.fromhex(head) + payload) == [Ping(3)]


def test_an_acknowledgement_without_a_term_has_term_0() -> None:
    """Replicas before 2.11 acknowledge without a term: nothing that they acknowledge would count."""
    assert master().feed(frame("81 00 00  81 26 81 01 07")) == [Ack({1: 7}, 0)]


def test_local_rows_stay_out_of_vclocks_on_the_wire() -> None:
    """A peer would be told of rows that it can never get."""
    assert master().feed(encode(Ack({2: 3, 0: 9, 1: 7}, 1))) == [Ack({1: 7, 2: 3}, 1)]


# --- the greeting ----------------------------------------------------------------------------------------------


def test_greeting_by_hand() -> None:
    """Connectors read the version, the UUID and the salt at fixed places."""
    first = f"Tarantool 3.2.0 (Binary) {INSTANCE}".ljust(63) + "\n"
    second = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=".ljust(63) + "\n"
    assert (first + second).encode() == GREETING
    parsed = parse_greeting(GREETING)
    assert (parsed.version, parsed.instance_uuid, parsed.salt) == ("3.2.0", INSTANCE, bytes(range(32)))


@given(st.uuids(), st.binary(min_size=20, max_size=44))
def test_greeting_there_and_back(instance_uuid: object, salt: bytes) -> None:
    """Some salt or UUID would be read wrong."""
    parsed = parse_greeting(greeting("2.6.0", str(instance_uuid), salt))
    assert (parsed.instance_uuid, parsed.salt) == (str(instance_uuid), salt)


@pytest.mark.parametrize(
    "wrong",
    [
        b"HTTP/1.1 400 Bad Request\r\n".ljust(128),
        GREETING.replace(b"Binary", b"Lua   "),
        GREETING[:64] + b"?" * 63 + b"\n",
        GREETING[:64] + b"AAEC".ljust(63) + b"\n",
        GREETING[:127] + b" ",
        b"Tarantool 1.6.6".ljust(63) + b"\n" + GREETING[64:],
        re.sub(rb"(\d) +\(Binary", b"\\1\xff (Binary", GREETING[:64]).ljust(64)[:63] + b"\n" + GREETING[64:],
    ],
)
def test_what_is_no_greeting_is_named(wrong: bytes) -> None:
    """Somebody else's port would be taken for a node."""
    with pytest.raises(MalformedGreeting, match="expected"):
        ClientDecoder().feed(wrong)


def test_greeted_says_when_the_greeting_has_come() -> None:
    """A host would say "connected" too early, or never."""
    assert ServerDecoder().greeted
    decoder = ApplierDecoder()
    greeted = []
    for piece in (GREETING[:127], GREETING[127:]):
        decoder.feed(piece)
        greeted.append(decoder.greeted)
    assert greeted == [False, True]
    assert decoder.greeting is not None
    assert decoder.greeting.instance_uuid == INSTANCE


# --- there and back --------------------------------------------------------------------------------------------


@given(st.lists(like.requests, max_size=5))
def test_requests_there_and_back(messages: list[Message]) -> None:
    """A server would execute something else than what was asked."""
    assert server().feed(b"".join(map(encode, messages))) == messages


@given(like.subscribes, st.lists(like.acks | like.heartbeats, max_size=5))
def test_replica_side_there_and_back(subscribe: Message, messages: list[Message]) -> None:
    """An acknowledgement would count for rows that it does not cover."""
    assert server().feed(b"".join(map(encode, [subscribe, *messages]))) == [subscribe, *messages]


@given(st.lists(like.responses, max_size=5))
def test_responses_there_and_back(messages: list[Message]) -> None:
    """A client would see another answer than the server gave."""
    assert client().feed(b"".join(map(encode, messages))) == messages


@given(like.subscribeds, st.lists(like.streamed, max_size=5))
def test_stream_there_and_back(subscribed: Message, messages: list[Message]) -> None:
    """A replica would apply other rows than its master wrote."""
    decoder = ApplierDecoder()
    data = b"".join(map(encode, [subscribed, *messages]))
    expected = [subscribed, *(part for message in messages for part in parts(message))]
    assert outcome(decoder, [GREETING, data]) == (expected, None)


def test_neighbouring_rows_are_joined() -> None:
    """The applier would see a transaction of two rows as two messages although both were there."""
    one, two = Row(12, 1, 1, 0.0, 1, False), Row(12, 1, 2, 0.0, 1)
    beat = Heartbeat(1, 1.5)
    data = encode(Rows((one,))) + encode(Rows((two,))) + encode(beat) + encode(Rows((one, two)))
    assert applier().feed(data) == [Rows((one, two)), beat, Rows((one, two))]


def test_arrays_inside_stay_lists() -> None:
    """The documented shape of what comes out (tuples outside, lists inside) would change under its users."""
    assert client().feed(encode(Answer(1, (("k", (1,)), 2)))) == [Answer(1, (["k", [1]], 2))]
    assert server().feed(encode(Call(1, "f", ((1,), {"a": (2,)})))) == [Call(1, "f", ([1], {"a": [2]}))]


# --- requests that cannot be served ----------------------------------------------------------------------------


def refusal(hexadecimal: str) -> tuple[int, int, str]:
    unknown, ping = server().feed(frame(hexadecimal) + encode(Ping(1)))
    assert isinstance(unknown, Unknown)
    assert ping == Ping(1)
    return unknown.sync, unknown.code, unknown.message


@pytest.mark.parametrize(
    ("hexadecimal", "expected"),
    [
        ("82 00 49 01 05  80", (5, 48, "Unknown request type 73")),
        ("82 00 03 01 05  81 21 91 01", (5, 69, "Missing mandatory field 'space id' in request")),
        ("82 00 03 01 05  81 10 01", (5, 69, "Missing mandatory field 'tuple' in request")),
        ("82 00 03 01 05", (5, 69, "Missing mandatory field 'space id' in request")),
        ("82 00 01 01 05  82 10 01 20 90", (5, 69, "Missing mandatory field 'limit' in request")),
        ("82 00 0a 01 05  80", (5, 69, "Missing mandatory field 'function name' in request")),
        ("82 00 04 01 05  81 10 01", (5, 69, "Missing mandatory field 'key' in request")),
        ("82 00 09 01 05  82 10 01 21 90", (5, 69, "Missing mandatory field 'operations' in request")),
        ("82 00 08 01 05  80", (5, 69, "Missing mandatory field 'expression' in request")),
        ("82 00 07 01 05  80", (5, 69, "Missing mandatory field 'user name' in request")),
        ("82 00 05 01 05  83 10 01 11 a1 61 20 90", (5, 20, "Invalid MsgPack - packet body")),
        ("82 00 03 01 05  82 10 a1 61 21 90", (5, 20, "Invalid MsgPack - packet body")),
        ("82 00 03 01 05  82 10 ff 21 90", (5, 20, "Invalid MsgPack - packet body")),
        ("82 00 03 01 05  82 10 01 21 01", (5, 20, "Invalid MsgPack - packet body")),
        ("82 00 0a 01 05  82 22 a1 66 21 80", (5, 20, "Invalid MsgPack - packet body")),
        ("82 00 03 01 05  01", (5, 20, "Invalid MsgPack - packet body")),
        ("82 00 03 01 05  c1", (5, 20, "Invalid MsgPack - packet body")),
        ("82 00 03 01 05  81 90 01", (5, 20, "Invalid MsgPack - packet body")),
        ("82 00 40 01 05  80 80", (5, 20, "Invalid MsgPack - packet body")),
        ("82 00 40 01 ff  80", (0, 20, "Invalid MsgPack - packet header")),
        ("82 00 c0 01 05  80", (5, 20, "Invalid MsgPack - packet header")),
        ("c1", (0, 20, "Invalid MsgPack - packet header")),
        ("", (0, 20, "Invalid MsgPack - packet header")),
    ],
)
def test_a_bad_request_is_answered_and_the_link_lives_on(
    hexadecimal: str, expected: tuple[int, int, str]
) -> None:
    """One connector's odd request would cut off all that it has under way."""
    assert refusal(hexadecimal) == expected


def test_a_subscribe_with_a_bad_uuid_or_vclock_is_answered() -> None:
    """A broken replica would kill its link without being told why."""
    good = encode(SUBSCRIBE)
    bad_uuid = good.replace(b"e69c", b"????")
    bad_vclock = good.replace(bytes.fromhex("26 82 01 07 02 03"), bytes.fromhex("26 82 01 ff 02 03"))
    assert server().feed(bad_uuid) == [Unknown(0, 20, "Invalid MsgPack - replicaset UUID")]
    assert server().feed(bad_vclock) == [Unknown(0, 20, "Invalid MsgPack - invalid VCLOCK")]


def test_no_one_encodes_an_unknown() -> None:
    """A node that sent what it could not read would be silent instead of failing."""
    with pytest.raises(AssertionError, match="Refusal"):
        encode(Unknown(1, 48, "x"))


# --- what ends a link ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decoder", "data", "error"),
    [
        (server, b"\xc0", MalformedFrame),
        (server, b"\xff", MalformedFrame),
        (server, b"\xce\x7f\xff\xff\xff", FrameTooLong),
        (client, frame("82 00 4c 01 05  80"), MalformedFrame),
        (client, frame("82 00 00 01 05  81 30 01"), MalformedFrame),
        (client, frame("90 80"), MalformedFrame),
        (ApplierDecoder, GREETING + frame("81 00 00  81 29 81 01 01"), MalformedFrame),
        (applier, frame("81 00 00  82 25 01 26 80"), MalformedFrame),
        (ApplierDecoder, GREETING + frame("81 00 03 80"), MalformedFrame),
        (applier, frame("82 00 03 03 08  81 10 cd0200"), MalformedFrame),
        (applier, frame("82 00 28 03 08  81 02 a1 31"), MalformedFrame),
        (applier, frame("82 00 28 03 c0  82 02 01 03 01"), MalformedFrame),
        (applier, frame("83 00 0c 03 08 04 01"), MalformedFrame),
        (applier, frame("82 00 0c 03 08  81 10 cd0200"), MalformedFrame),  # no node could write it to its log
        (master, frame("81 00 00  81 26 90"), MalformedFrame),
    ],
)
def test_what_cannot_be_gone_on_from_is_an_error(
    decoder: Callable[[], Decoder], data: bytes, error: type[ProtocolError]
) -> None:
    """Garbage would be taken for messages, or fill the memory."""
    broken = decoder()
    with pytest.raises(error, match="expected"):
        broken.feed(data)
    with pytest.raises(ProtocolError, match="before"):
        broken.feed(encode(Ping(1)))


@pytest.mark.parametrize("decoder", [client, applier])
@pytest.mark.parametrize("payload", [DEEP, b"\x82\x00\x02\x01\x05\x81\x31" + DEEP])
def test_what_is_nested_too_deep_to_be_shown_is_an_error_too(
    decoder: Callable[[], Decoder], payload: bytes
) -> None:
    """Broken, a harness ends with a RecursionError because of the answer of one node."""
    with pytest.raises(MalformedFrame, match=r"expected .*(nested too deep|got)"):
        decoder().feed(b"\xce" + pack(">I", len(payload)) + payload)


def test_a_request_that_is_nested_too_deep_to_be_shown_is_refused() -> None:
    """Broken, such bytes end the process that decodes them."""
    payload = DEEP + DEEP
    (refused,) = server().feed(b"\xce" + pack(">I", len(payload)) + payload)
    assert refused == Unknown(0, Code.INVALID_MSGPACK, Code.INVALID_MSGPACK.text("packet header"))


def test_messages_before_a_fault_are_not_lost() -> None:
    """A request that was whole would vanish because of the garbage behind it."""
    with pytest.raises(MalformedFrame) as caught:
        server().feed(encode(Ping(1)) + b"\xc0")
    assert caught.value.messages == (Ping(1),)


def test_the_limit_is_an_argument() -> None:
    """A node could not be given a smaller limit, or it would refuse a frame of just that size."""
    data = encode(Ping(3))
    assert ServerDecoder(frame_bytes_max=len(data) - 5).feed(data) == [Ping(3)]
    with pytest.raises(FrameTooLong):
        ServerDecoder(frame_bytes_max=len(data) - 6).feed(data)


# --- any bytes, cut anywhere -----------------------------------------------------------------------------------

conversations = st.one_of(
    st.tuples(st.just(server), st.lists(like.requests | like.subscribes, max_size=4)),
    st.tuples(st.just(master), st.lists(like.acks | like.heartbeats | like.requests, max_size=4)),
    st.tuples(st.just(applier), st.lists(like.streamed, max_size=4)),
    st.tuples(st.just(client), st.lists(like.responses, max_size=4)),
)


@given(conversations, st.lists(st.integers(0, 2**16), max_size=6))
def test_where_a_stream_is_cut_does_not_matter(
    conversation: tuple[Callable[[], Decoder], list[Message]], places: list[int]
) -> None:
    """What a node does would depend on how TCP happened to cut the stream."""
    decoder, messages = conversation
    data = b"".join(map(encode, messages))
    at_once = outcome(decoder(), [data])
    assert at_once == ([part for message in messages for part in parts(message)], None)
    assert outcome(decoder(), cut(data, places)) == at_once
    assert outcome(decoder(), [data[i : i + 1] for i in range(len(data))]) == at_once


@given(conversations, st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_damaged_stream_gives_values_or_a_named_error(
    conversation: tuple[Callable[[], Decoder], list[Message]], damage: list[tuple[int, int]]
) -> None:
    """One flipped bit would end the process, or be judged differently when it comes in pieces."""
    decoder, messages = conversation
    data = bytearray(b"".join(map(encode, messages)) or encode(Ping(1)))
    for place, byte in damage:
        data[place % len(data)] = byte
    at_once = without_nan(outcome(decoder(), [bytes(data)]))
    assert without_nan(outcome(decoder(), [bytes(data[i : i + 1]) for i in range(len(data))])) == at_once


@given(ANY_DECODER, st.lists(st.binary(max_size=200), max_size=4))
def test_any_bytes_give_values_or_a_named_error(decoder: Callable[[], Decoder], pieces: list[bytes]) -> None:
    """A port scanner would end a node."""
    at_once = without_nan(outcome(decoder(), [b"".join(pieces)]))
    assert without_nan(outcome(decoder(), pieces)) == at_once


@given(ANY_DECODER, st.lists(st.binary(max_size=40), max_size=4))
def test_any_payloads_give_values_or_a_named_error(
    decoder: Callable[[], Decoder], payloads: list[bytes]
) -> None:
    """As above, for garbage that comes in sound frames and so gets further."""
    fresh = decoder()
    if not fresh.greeted:
        fresh.feed(GREETING)
    outcome(fresh, [b"\xce" + pack(">I", len(payload)) + payload for payload in payloads])


def without_nan(result: tuple[list[Message | Row], str | None]) -> str:
    """As text, because a NaN is not equal to itself."""
    return repr(result)


# --- the rest --------------------------------------------------------------------------------------------------


def test_the_types_of_messages_are_all_encoded() -> None:
    """A message added to the union without bytes would fail only when it is first sent."""
    everything: list[Message] = [message for _, message, _ in BY_HAND] + [Subscribed(0, CLUSTER, {})]
    assert {type(message) for message in everything} == set(Message.__args__) - {Unknown}
    assert all(encode(message) for message in everything)


def test_error_codes_speak_as_tarantool_does() -> None:
    """Clients that know Tarantool's codes and texts would not know ours."""
    assert Code.READONLY.text() == "Can't modify data because this instance is in read-only mode."
    assert Code.SYNC_QUEUE_FOREIGN.text(3).endswith("other instance with id 3")
    assert Code(217) is Code.SYNC_ROLLBACK
    for code in Code:
        arguments = [{"d": 1, "u": 1, "s": "x"}[mark[0]] for mark in code.template.split("%")[1:]]
        assert "%" not in code.text(*arguments)


def test_a_row_that_is_no_operation_has_no_body() -> None:
    """Tarantool would read the body of a NOP as the next row of an xlog."""
    with pytest.raises(AssertionError, match="no body"):
        encode(Rows((Row(Type.NOP, 1, 1, 0.0, 1, body={0x10: 512}),)))
