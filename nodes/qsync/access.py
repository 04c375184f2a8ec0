"""Users, passwords (chap-sha1) and privileges: the user of each link, and its rights.

A password is never sent: the server greets with a salt, the client answers with `scramble(password, salt)`, and the
server, which keeps SHA-1 of SHA-1 of the password, checks that they fit. Privileges hold for everything
("universe" in Tarantool's words); a user without any may read only what the role *public* may.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Sequence

from nodes.iproto.codes import Code
from nodes.iproto.messages import Auth
from nodes.qsync.configuration import User
from nodes.qsync.definitions import ADMIN, ROLES
from nodes.qsync.keys import Rejected, Tuple
from nodes.qsync.system_spaces import COLLATION, TRUNCATE, VIEWS

GUEST = User(name="guest")
HASH_BYTES = 20
_PRIVILEGES = {"read": 1, "write": 2, "execute": 4}
_SESSION_AND_USAGE = 24
_FIRST_OWN_ID = 32


def password_hash(password: str) -> str:
    """The hash that a server keeps of a password."""
    return b64encode(_sha1(_sha1(password.encode()))).decode()


def scramble(password: str, salt: bytes) -> bytes:
    """The bytes that a client sends instead of a password."""
    once = _sha1(password.encode())
    return _xor(once, _sha1(salt[:HASH_BYTES] + _sha1(once)))


def _sha1(data: bytes) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).digest()  # the protocol says which


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


class Access:
    """The known users, and the user of each link."""

    def __init__(self, users: Sequence[User]) -> None:
        self._users = {user.name: user for user in (GUEST, User(name="admin"), *users)}
        self._guest = self._users["guest"]
        self._sessions: dict[int, User] = {}

    def user_of(self, link: int) -> User:
        return self._sessions.get(link, self._guest)

    def forget(self, link: int) -> None:
        self._sessions.pop(link, None)

    def log_in(self, link: int, request: Auth) -> None:
        """Raises Rejected."""
        user = self._users.get(request.user)
        if user is None:
            raise Rejected(Code.NO_SUCH_USER, request.user)
        if not request.proof and user.name == "guest":
            self.forget(link)
            return
        if len(request.proof) < 2:
            raise Rejected(Code.INVALID_MSGPACK, "authentication request body")
        answer = request.proof[1]
        if isinstance(answer, str):
            answer = answer.encode("utf-8", "surrogateescape")
        if not isinstance(answer, bytes):
            raise Rejected(Code.INVALID_MSGPACK, "authentication scramble")
        if len(answer) != HASH_BYTES:
            raise Rejected(Code.INVALID_MSGPACK, "invalid scramble size")
        if not _fits(answer, request.salt, user):
            raise Rejected(Code.PASSWORD_MISMATCH, user.name)
        self._sessions[link] = user

    def check(self, link: int, privilege: str, kind: str, name: object) -> None:
        """Raises Rejected if the link's user lacks the privilege: read, write or execute."""
        user = self._sessions.get(link, self._guest)
        if privilege not in user.may:
            raise Rejected(Code.ACCESS_DENIED, privilege.capitalize(), kind, name, user.name)

    def may_know(self, link: int, space_id: object) -> bool:
        """Whether views show the space: the link's user has any privilege on it."""
        user = self.user_of(link)
        return "read" in user.may or "write" in user.may or space_id in (COLLATION, *VIEWS, TRUNCATE)


def _fits(answer: bytes, salt: bytes, user: User) -> bool:
    stored = b64decode(_kept_hash(user))
    if not stored:
        return False
    once = _xor(answer, _sha1(salt[:HASH_BYTES] + stored))
    return _sha1(once) == stored


def _kept_hash(user: User) -> str:
    """The hash of the user's password. Without one, guest's password is empty, and any other user cannot log in."""
    return password_hash("") if user.name == "guest" and not user.hash else user.hash


def users_and_privileges(users: Sequence[User]) -> tuple[list[Tuple], list[Tuple]]:
    """The rows of `_user` and `_priv`."""
    named = {user.name: user for user in users}
    guest = named.pop("guest", GUEST)
    rows: list[Tuple] = [
        (0, ADMIN, "guest", "user", {"chap-sha1": _kept_hash(guest)}),
        (1, ADMIN, "admin", "user", {}),
        *((number, ADMIN, name, "role", {}) for number, name in ROLES),
    ]
    everything = 0xFFFFFFFF
    granted: list[Tuple] = [
        (ADMIN, 0, "role", 2, 4),
        (ADMIN, 0, "universe", 0, _mask(guest)),
        (ADMIN, 1, "universe", 0, everything),
        *((ADMIN, 2, "space", view, 1) for view in VIEWS),
        (ADMIN, 3, "universe", 0, 1),
        (ADMIN, 31, "universe", 0, everything),
    ]
    for number, user in enumerate(named.values(), start=_FIRST_OWN_ID):
        rows.append((number, ADMIN, user.name, "user", {"chap-sha1": user.hash} if user.hash else {}))
        granted += [(ADMIN, number, "role", 2, 4), (ADMIN, number, "universe", 0, _mask(user))]
    return rows, granted


def _mask(user: User) -> int:
    return _SESSION_AND_USAGE + sum(_PRIVILEGES[name] for name in user.may)
