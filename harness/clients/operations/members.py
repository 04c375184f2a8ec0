"""The operations that change members: an operator asks a store to count a new member, or to count one no more.

Both are asked again until the members' own reports agree, so a change that happened already may fail.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec


class AddMember(msgspec.Struct, frozen=True, gc=False):
    """A new node is about to start at this address, with an empty disk."""

    is_read: ClassVar[bool] = False
    node: str
    address: str
    """"HOST:PORT", as in `harness.cluster.place.Place.peers`; "" if every peer dials another one."""


class RemoveMember(msgspec.Struct, frozen=True, gc=False):
    """The member of this id (`id` in its status) has left, or never came up, and does not come back."""

    is_read: ClassVar[bool] = False
    number: int


MemberChange = AddMember | RemoveMember
MEMBER_CHANGES: frozenset[type] = frozenset({AddMember, RemoveMember})
