"""Spaces that cannot be had are refused before anything is written, as Tarantool 2.6.0 refuses them."""

from __future__ import annotations

import pytest

from nodes.iproto.codes import Code
from nodes.iproto.messages import Insert, Refusal
from nodes.kernel.events import Instant, Received
from tests.nodes.qsync.conversation import Conversation

CREATE = "c1 call box.schema.space.create "
ALTER = "c1 call box.space.notes:alter "


def answer(line: str) -> list[str]:
    conversation = Conversation()
    conversation.happen("owner n1")
    return conversation.happen(line)


def illegal(why: str) -> list[str]:
    return [f"send c1: error 1 Illegal parameters, {why}"]


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (CREATE + '"b", {"is_sync": 1}', "options parameter 'is_sync' should be of type boolean"),
        (CREATE + '"b", {"temporary": "yes"}', "options parameter 'temporary' should be of type boolean"),
        (CREATE + '"b", {"is_local": 0}', "options parameter 'is_local' should be of type boolean"),
        (CREATE + '"b", {"field_count": true}', "options parameter 'field_count' should be of type number"),
        (CREATE + '"b", {"format": 5}', "options parameter 'format' should be of type table"),
        (CREATE + '"b", {"engine": 5}', "options parameter 'engine' should be of type string"),
        (CREATE + '"b", {"id": "x"}', "options parameter 'id' should be of type number"),
        (CREATE + '"b", {"name": "c"}', "unexpected option 'name'"),
        (CREATE + '"b", {"is_synchronous": true}', "unexpected option 'is_synchronous'"),
        (ALTER + '{"is_sync": "true"}', "options parameter 'is_sync' should be of type boolean"),
        (ALTER + '{"name": 5}', "options parameter 'name' should be of type string"),
        (ALTER + '{"id": 700}', "unexpected option 'id'"),
        (ALTER + '{"engine": "memtx"}', "unexpected option 'engine'"),
    ],
)
def test_an_option_that_would_have_no_effect_is_refused(asked: str, why: str) -> None:
    """Broken, `is_sync = 1` makes an asynchronous space of what its owner takes for a synchronous one."""
    assert answer(asked) == illegal(why)


@pytest.mark.parametrize(
    ("asked", "refusal"),
    [
        (CREATE + '"notes"', "error 10 Space 'notes' already exists"),
        (CREATE + '"b", {"engine": "vinyl"}', "error 57 Space engine 'vinyl' does not exist"),
        (
            CREATE + '"b", {"id": 512}',
            "error 9 Failed to create space 'b': space id 512 is taken or reserved",
        ),
        (
            CREATE + '"b", {"is_sync": true, "is_local": true}',
            "error 12 Can't modify space 'b': local space can't be synchronous",
        ),
        (
            CREATE + '"b", {"parts": [[0, "map"]]}',
            "error 12 Can't modify space 'b': no index can be over map",
        ),
        (
            CREATE + '"b", {"format": [{"name": "a", "type": "array"}], "parts": [[0, "scalar"]]}',
            "error 12 Can't modify space 'b': no index can be over scalar in field 1 of array",
        ),
        (
            CREATE + '"b", {"format": [{"name": "a", "type": "string"}], "parts": [[0, "unsigned"]]}',
            "error 12 Can't modify space 'b': no index can be over unsigned in field 1 of string",
        ),
    ],
)
def test_a_space_that_cannot_be_is_refused(asked: str, refusal: str) -> None:
    """Broken, a space is there that no node can serve, and every node stops at its row."""
    (told,) = answer(asked)
    assert told.startswith(f"send c1: {refusal}")


def test_a_space_that_may_be_there_already_is_left_as_it_is() -> None:
    """Broken, a program that makes its spaces whenever it starts fails the second time."""
    assert answer(CREATE + '"notes", {"if_not_exists": true, "is_sync": null}') == ["send c1: ok []"]


@pytest.mark.parametrize(
    ("flags", "code", "arguments"),
    [
        ({"is_sync": 1}, Code.WRONG_SPACE_OPTIONS, (5, "'is_sync' must be boolean")),
        ({"temporary": 5}, Code.WRONG_SPACE_OPTIONS, (5, "'temporary' must be boolean")),
        ({"nosuch": 1}, Code.WRONG_SPACE_OPTIONS, (5, "unexpected option 'nosuch'")),
        ({"group_id": "x"}, Code.WRONG_SPACE_OPTIONS, (5, "'group_id' must be unsigned")),
        ({"group_id": 5}, Code.NO_SUCH_GROUP, (5,)),
    ],
)
def test_a_row_of_space_is_checked_too(
    flags: dict[str, object], code: Code, arguments: tuple[object, ...]
) -> None:
    """Broken, the way of 2.6 to make a space synchronous takes what 2.6 itself refuses. Words measured on 2.6.0."""
    conversation = Conversation()
    conversation.happen("owner n1")
    row = (600, 1, "raw", "memtx", 0, flags, ())
    link = conversation.links["set-up"]
    effects = conversation.node.step(Received(link, Insert(7, 280, row)), Instant(0, 0))
    (refused,) = [effect.message for effect in effects]  # type: ignore[union-attr]
    assert refused == Refusal(7, code, code.text(*arguments))


FIRST, SECOND = '["insert", "notes", ["a", 5]]', '["insert", "notes", ["b", 5]]'
OVER_VALUES = '["insert", "_index", [513, 1, "second", "tree", {"unique": true}, [[1, "unsigned"]]]]'
NULLABLE = OVER_VALUES.replace('[1, "unsigned"]', '{"field": 1, "type": "unsigned", "is_nullable": true}')
DUPLICATE = ["send c1: error 3 Duplicate key exists in unique index 'second' in space 'notes'"]


def transaction(*statements: str) -> str:
    return f"c1 call qsync.transaction [{', '.join(statements)}]"


@pytest.mark.parametrize(
    "asked",
    [
        [transaction(FIRST), transaction(SECOND), "written all", transaction(OVER_VALUES)],
        [transaction(FIRST), transaction(SECOND), transaction(OVER_VALUES)],
        [transaction(FIRST), "written all", transaction(SECOND, OVER_VALUES)],
        [transaction(FIRST, SECOND, OVER_VALUES)],
        [transaction(OVER_VALUES), "written all", transaction(FIRST), "written all", transaction(SECOND)],
    ],
    ids=["confirmed", "prepared", "one of its own", "all its own", "the index first"],
)
def test_a_unique_index_over_duplicates_is_refused(asked: list[str]) -> None:
    """Broken, a unique index holds one key twice, and which of the two tuples a reader gets is chance."""
    conversation = Conversation()
    conversation.happen("owner n1")
    told = [conversation.happen(line) for line in asked]
    assert told[-1] == DUPLICATE
    assert DUPLICATE not in told[:-1]


@pytest.mark.parametrize(
    "asked",
    [
        [transaction(FIRST), "written all", transaction('["delete", "notes", "a"]', SECOND, OVER_VALUES)],
        [
            transaction(FIRST),
            "written all",
            transaction('["delete", "notes", "a"]'),
            transaction(SECOND, OVER_VALUES),
        ],
        [transaction(FIRST, SECOND.replace("5", "6")), transaction(OVER_VALUES)],
        [transaction(FIRST.replace("5", "null"), SECOND.replace("5", "null")), transaction(NULLABLE)],
        [
            *(transaction(NULLABLE), "written all", transaction(FIRST.replace(", 5", ""))),
            transaction(SECOND.replace("5", "null")),
        ],
        [transaction(FIRST, SECOND), transaction(OVER_VALUES.replace("true", "false"))],
    ],
    ids=[
        "deleted by itself",
        "deleted before",
        "different",
        "nil and nil",
        "nil behind the index",
        "not unique",
    ],
)
def test_what_is_no_duplicate_fits_a_unique_index(asked: list[str]) -> None:
    """Broken, an index is refused that every tuple fits. In Tarantool nil is a duplicate of nothing."""
    conversation = Conversation()
    conversation.happen("owner n1")
    told = [conversation.happen(line) for line in asked]
    assert told[-1][0].startswith("persist"), told


SPACE_ROW = '["{}", "_space", [600, 1, "raw", "memtx", 0, {{}}, [{}]]]'
INDEX_ROW = '["{}", "_index", [513, 1, "second", "tree", {{}}, [{}]]]'


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (SPACE_ROW.format("insert", "5"), "'raw': expected a map with a name as a field of a format, got 5"),
        (INDEX_ROW.format("insert", "5"), "'notes': expected [field, type] as a part of an index, got 5"),
        (
            INDEX_ROW.format("insert", "5").replace('"unique"', '"x"').replace("513", "512"),
            "'register': expected [field, type] as a part of an index, got 5",
        ),
        (
            SPACE_ROW.format("insert", "") + ', ["insert", "_index", [600, 0, "a", "tree", {}, [5]]]',
            "'600': expected [field, type] as a part of an index, got 5",
        ),
    ],
)
def test_a_row_that_defines_nothing_is_refused_whatever_comes_behind_it(asked: str, why: str) -> None:
    """Broken, the node ends when it takes such a row in, though the next statement replaces it."""
    mended = ', ["delete", "_index", [513, 1]], ["delete", "_space", 600]'
    for rest in ("", mended):
        assert answer(f"c1 call qsync.transaction [{asked}{rest}]") == [
            f"send c1: error 12 Can't modify space {why}"
        ]


def test_a_space_of_an_id_that_no_space_can_have_is_refused() -> None:
    """Broken, no further space can be made without an id of its own: the next free one is too big as well."""
    far = SPACE_ROW.format("insert", "").replace("600", "2147483648")
    assert answer(transaction(far)) == [
        "send c1: error 9 Failed to create space '2147483648': space id is too big"
    ]


def test_an_index_far_behind_the_last_field_is_refused_or_replaced() -> None:
    """Broken, one statement takes all memory of the node, though the next one replaces what it wrote."""
    far = INDEX_ROW.format("insert", '[1000000000000, "unsigned"]')
    (refused,) = answer(transaction(far))
    assert "no index can be over unsigned in field 1000000000001" in refused
    (written, *_) = answer(transaction(far, '["delete", "_index", [513, 1]]'))
    assert written.startswith("persist")


def test_changes_of_the_schema_that_waited_for_room_build_on_each_other() -> None:
    """Broken, the second of two new spaces gets the id of the first and is refused, and the second of two changes of a
    space takes back the first."""
    conversation = Conversation()
    for line in ("owner n1 queue=10", "c1 replace register r1 1"):
        conversation.happen(line)
    waiting = [
        *(f'c{client} call box.schema.space.create "{name}"' for client, name in ((2, "a"), (3, "b"))),
        *(ALTER + options for options in ('{"is_sync": true}', '{"field_count": 2}')),
    ]
    assert [conversation.happen(line) for line in waiting] == [[], [], [], []]
    for line in ("written all", "n2 acks 2", "written all"):
        conversation.happen(line)
    spaces = conversation.node.schema.lookup
    assert spaces["a"].definition.id != spaces["b"].definition.id
    notes = spaces["notes"].definition
    assert (notes.is_sync, notes.field_count) == (True, 2)
