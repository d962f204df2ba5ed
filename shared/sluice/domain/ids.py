"""How resources are identified: scope and name, and for a transaction its UUID beside those of its stream.

An id names its aggregate, and the key that serialises the work on it. It unpacks into the first fields of the commands
and events about its resource: `StreamSealed(*stream.id)`. As text it reads `scope/stream`.
"""

from enum import Enum
from typing import NamedTuple

from sluice.domain.names import (
    COMMITS,
    group_stream,
    key_of,
    mark_stream,
    stream_aggregate,
    stream_key,
    transaction_aggregate,
)


class StreamId(NamedTuple):
    scope: str
    name: str

    @staticmethod
    def of(text: str) -> "StreamId":
        """The id that reads `scope/name`."""
        scope, _, name = text.partition("/")
        return StreamId(scope, name)

    @property
    def aggregate(self) -> str:
        return stream_aggregate(self.scope, self.name)

    @property
    def key(self) -> str:
        return stream_key(self.scope, self.name)

    @property
    def commits(self) -> str:
        """The aggregate that commits the stream's transactions, batch after batch."""
        return f"{COMMITS}{self}"

    @property
    def transactions(self) -> str:
        """The index of the stream's transactions; it is no aggregate, see `domain.transaction.index`."""
        return str(self)

    def transaction(self, uuid: str) -> "TransactionId":
        return TransactionId(*self, uuid)

    @property
    def mark(self) -> "StreamId":
        """The stream that carries the watermarks of this one."""
        return StreamId(self.scope, mark_stream(self.name))

    def __str__(self) -> str:
        return f"{self.scope}/{self.name}"


class GroupId(NamedTuple):
    """A reader group."""

    scope: str
    name: str

    @staticmethod
    def of(text: str) -> "GroupId":
        """The id that reads `scope/name`."""
        scope, _, name = text.partition("/")
        return GroupId(scope, name)

    @property
    def aggregate(self) -> str:
        return f"group:{self}"

    @property
    def key(self) -> str:
        return key_of(self.aggregate)

    @property
    def state_stream(self) -> StreamId:
        """The stream that carries the group's state."""
        return StreamId(self.scope, group_stream(self.name))

    def __str__(self) -> str:
        return f"{self.scope}/{self.name}"


class TableId(NamedTuple):
    """A key-value table."""

    scope: str
    name: str

    @property
    def aggregate(self) -> str:
        return f"table:{self}"

    @property
    def key(self) -> str:
        return key_of(self.aggregate)

    def __str__(self) -> str:
        return f"{self.scope}/{self.name}"


class TransactionId(NamedTuple):
    """`transaction` is the UUID by which clients name it."""

    scope: str
    stream: str
    transaction: str

    @property
    def aggregate(self) -> str:
        return transaction_aggregate(self.scope, self.stream, self.transaction)

    @property
    def range(self) -> str:
        """The aggregate of the range of prepared transactions whose first one this is."""
        return f"prepared:{self}"

    @property
    def key(self) -> str:
        return stream_key(self.scope, self.stream)

    @property
    def stream_id(self) -> StreamId:
        return StreamId(self.scope, self.stream)

    def __str__(self) -> str:
        return f"{self.scope}/{self.stream}/{self.transaction}"


class ResourceKind(Enum):
    """What a name in a scope stands for; names of different kinds do not meet."""

    STREAM = "stream"
    READER_GROUP = "reader-group"
    TABLE = "table"

    def id(self, scope: str, name: str) -> "ResourceId":
        return _IDS[self](scope, name)


ResourceId = StreamId | GroupId | TableId
_IDS: dict[ResourceKind, type[ResourceId]] = {
    ResourceKind.STREAM: StreamId,
    ResourceKind.READER_GROUP: GroupId,
    ResourceKind.TABLE: TableId,
}
