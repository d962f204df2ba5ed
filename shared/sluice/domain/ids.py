"""What things are called: their kinds and ids."""

from enum import Enum

from sluice.domain.names import (
    group_aggregate,
    stream_aggregate,
    table_aggregate,
)


class ResourceKind(Enum):
    """What a name in a scope stands for; names of different kinds do not meet."""

    STREAM = "stream"
    READER_GROUP = "reader-group"
    TABLE = "table"

    def aggregate(self, scope: str, name: str) -> str:
        return _AGGREGATES[self](scope, name)


_AGGREGATES = {
    ResourceKind.STREAM: stream_aggregate,
    ResourceKind.READER_GROUP: group_aggregate,
    ResourceKind.TABLE: table_aggregate,
}
