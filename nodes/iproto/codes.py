"""Tarantool's error codes (ER_*) that a reference node, a client or a checker uses, with their messages.

The name is Tarantool's without `ER_`; the message has its printf placeholders, `text` fills them in:

>>> Code.SYNC_QUEUE_FOREIGN.text(3)
'The synchronous transaction queue belongs to other instance with id 3'

Codes and wording are those of `src/box/errcode.h` in Tarantool 2.6.0, as which our nodes greet their clients; later
codes are worded as in Tarantool 3. The meaning of a code for an operation (surely not done, or unknown) is not
decided here.
"""

from __future__ import annotations

from enum import IntEnum


class Code(IntEnum):
    template: str

    def __new__(cls, number: int, template: str = "") -> Code:  # the default lets `Code(7)` pass a type check
        code = int.__new__(cls, number)
        code._value_ = number
        code.template = template
        return code

    def text(self, *arguments: object) -> str:
        """The message with its placeholders filled in; their number must fit."""
        return self.template % arguments

    UNKNOWN = 0, "Unknown error"
    ILLEGAL_PARAMS = 1, "Illegal parameters, %s"
    TUPLE_FOUND = 3, "Duplicate key exists in unique index '%s' in space '%s'"
    UNSUPPORTED = 5, "%s does not support %s"
    READONLY = 7, "Can't modify data because this instance is in read-only mode."
    CREATE_SPACE = 9, "Failed to create space '%s': %s"
    SPACE_EXISTS = 10, "Space '%s' already exists"
    DROP_SPACE = 11, "Can't drop space '%s': %s"
    ALTER_SPACE = 12, "Can't modify space '%s': %s"
    KEY_PART_TYPE = 18, "Supplied key type of part %d does not match index part type: expected %s"
    EXACT_MATCH = 19, "Invalid key part count in an exact match (expected %d, got %d)"
    INVALID_MSGPACK = 20, "Invalid MsgPack - %s"
    FIELD_TYPE = 23, "Tuple field %s type does not match one required by operation: expected %s"
    UPDATE_SPLICE = 25, "SPLICE error on field %s: %s"
    UPDATE_ARG_TYPE = (
        26,
        "Argument type in operation '%s' on field %s does not match field type: expected %s",
    )
    UNKNOWN_UPDATE_OP = 28, "Unknown UPDATE operation #%d: %s"
    UPDATE_FIELD = 29, "Field %s UPDATE error: %s"
    KEY_PART_COUNT = 31, "Invalid key part count (expected [0..%d], got %d)"
    PROC_LUA = 32, "%s"
    NO_SUCH_PROC = 33, "Procedure '%s' is not defined"
    NO_SUCH_INDEX_ID = 35, "No index #%d is defined in space '%s'"
    NO_SUCH_SPACE = 36, "Space '%s' does not exist"
    NO_SUCH_FIELD_NO = 37, "Field %d was not found in the tuple"
    EXACT_FIELD_COUNT = 38, "Tuple field count %d does not match space field count %d"
    FIELD_MISSING = 39, "Tuple field %s required by space format is missing"
    WAL_IO = 40, "Failed to write to disk"
    MORE_THAN_ONE_TUPLE = 41, "Get() doesn't support partial keys and non-unique indexes"
    ACCESS_DENIED = 42, "%s access to %s '%s' is denied for user '%s'"
    NO_SUCH_USER = 45, "User '%s' is not found"
    PASSWORD_MISMATCH = 47, "Incorrect password supplied for user '%s'"
    UNKNOWN_REQUEST_TYPE = 48, "Unknown request type %d"
    NO_SUCH_ENGINE = 57, "Space engine '%s' does not exist"
    RELOAD_CFG = 58, "Can't set option '%s' dynamically"
    CFG = 59, "Incorrect value for option '%s': %s"
    UNKNOWN_REPLICA = 62, "Replica %s is not registered with replica set %s"
    INVALID_UUID = 64, "Invalid UUID: %s"
    MISSING_REQUEST_FIELD = 69, "Missing mandatory field '%s' in request"
    REPLICA_MAX = 73, "Replica count limit reached: %d"
    TIMEOUT = 78, "Timeout exceeded"
    CANT_UPDATE_PRIMARY_KEY = (
        94,
        "Attempt to modify a tuple field which is part of index '%s' in space '%s'",
    )
    UPDATE_INTEGER_OVERFLOW = 95, "Integer overflow when performing '%s' operation on field %s"
    TRANSACTION_CONFLICT = 97, "Transaction has been aborted by conflict"
    WRONG_SCHEMA_VERSION = 109, "Wrong schema version, current: %d, in request: %d"
    WRONG_SPACE_OPTIONS = 111, "Wrong space options (field %d): %s"
    UNSUPPORTED_INDEX_FEATURE = 112, "Index '%s' (%s) of space '%s' (%s) does not support %s"
    VIEW_IS_RO = 113, "View '%s' is read-only"
    SYSTEM = 115, "%s"
    LOADING = 116, "Instance bootstrap hasn't finished yet"
    LOCAL_INSTANCE_ID_IS_READ_ONLY = 128, "The local instance id %u is read-only"
    CASCADE_ROLLBACK = 134, "WAL has a rollback in progress"
    TRANSACTION_YIELD = 154, "Transaction has been aborted by a fiber yield"
    NO_SUCH_GROUP = 155, "Replication group '%s' does not exist"
    NO_SUCH_FIELD_NAME = 201, "Field '%s' was not found in the tuple"
    UNCOMMITTED_FOREIGN_SYNC_TXNS = (
        214,
        "Found uncommitted sync transactions from other instance with id %d",
    )
    SYNC_MASTER_MISMATCH = 215, "CONFIRM message arrived for an unknown master id %d, expected %d"
    SYNC_QUORUM_TIMEOUT = 216, "Quorum collection for a synchronous transaction is timed out"
    SYNC_ROLLBACK = 217, "A rollback for a synchronous transaction is received"
    XLOG_GAP = 219, "%s"
    QUORUM_WAIT = 222, "Couldn't wait for quorum %d: %s"
    INTERFERING_PROMOTE = 223, "Instance with replica id %d was promoted first"
    ELECTION_DISABLED = 224, "Elections were turned off"
    NOT_LEADER = 226, "The instance is not a leader. New leader is %d"
    SYNC_QUEUE_UNCLAIMED = 227, "The synchronous transaction queue doesn't belong to any instance"
    SYNC_QUEUE_FOREIGN = 228, "The synchronous transaction queue belongs to other instance with id %d"
    TRANSACTION_TIMEOUT = 231, "Transaction has been aborted by timeout"
    NO_ELECTION_QUORUM = (
        242,
        "Not enough peers connected to start elections: %d out of minimal required %d",
    )
    SPLIT_BRAIN = 244, "Split-Brain discovered: %s"
    OLD_TERM = 245, "The term is outdated: old - %d, new - %d"
    INTERFERING_ELECTIONS = 246, "Interfering elections started"
    IN_ANOTHER_PROMOTE = 278, "box.ctl.promote() is already running"
    WAL_QUEUE_FULL = 287, "The WAL queue is full"
    SYNC_QUEUE_FULL = 289, "The synchronous transaction queue is full"
    SYNC_TIMEOUT = (
        295,
        (
            "Quorum collection for a synchronous transaction is timed out. "
            "The transaction is detached from this fiber and continues waiting for quorum"
        ),
    )
