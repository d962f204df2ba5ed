"""Commanding Pravega segment stores: wire protocol, connections, routing, and what their answers mean.

What other packages use is named here, but for Pravega's byte formats, each of which is a module: `envelope`,
`event_frames`, `watermarks`, `auto_scale_reports`, `reader_group_state`, `container_map`. Everything else is this
package's own.
"""

from sluice.domain.host import Host
from sluice.pravega.client import SegmentStoreClient
from sluice.pravega.connection import ConnectionLimits
from sluice.pravega.errors import (
    AccessDenied,
    IllegalRequest,
    KeyMissing,
    KeyVersionDiffers,
    LengthDiffers,
    Permanent,
    RouteStale,
    SegmentMissing,
    SegmentSealed,
    SegmentStoreError,
    SegmentTruncated,
    TableNotEmpty,
    TryLater,
    UnexpectedReply,
    Unsupported,
)
from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.located import LocatedSegmentStores
from sluice.pravega.memory import InMemorySegmentStore
from sluice.pravega.routing import container_of
from sluice.pravega.store import SegmentData, SegmentInfo, SegmentStore, TableInfo
from sluice.pravega.wire.fields import NO_VERSION, NOT_EXISTS, TableEntry, TableKey
from sluice.pravega.wire.segments import NULL_ATTRIBUTE_VALUE

__all__ = [
    "NOT_EXISTS",
    "NO_VERSION",
    "NULL_ATTRIBUTE_VALUE",
    "AccessDenied",
    "ConnectionFailure",
    "ConnectionLimits",
    "Failure",
    "Host",
    "IllegalRequest",
    "InMemorySegmentStore",
    "KeyMissing",
    "KeyVersionDiffers",
    "LengthDiffers",
    "LocatedSegmentStores",
    "Permanent",
    "RouteStale",
    "SegmentData",
    "SegmentInfo",
    "SegmentMissing",
    "SegmentSealed",
    "SegmentStore",
    "SegmentStoreClient",
    "SegmentStoreError",
    "SegmentTruncated",
    "TableEntry",
    "TableInfo",
    "TableKey",
    "TableNotEmpty",
    "TryLater",
    "UnexpectedReply",
    "Unsupported",
    "container_of",
]
