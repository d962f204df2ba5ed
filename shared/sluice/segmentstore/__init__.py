"""Commanding Pravega segment stores: wire protocol, connections, routing, and what their answers mean.

What other packages use is named here; everything else is this package's own.
"""

from sluice.segmentstore.client import SegmentStoreClient
from sluice.segmentstore.connection import ConnectionLimits
from sluice.segmentstore.errors import (
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
from sluice.segmentstore.failure import ConnectionFailure, Failure
from sluice.segmentstore.host import Host
from sluice.segmentstore.located import LocatedSegmentStores
from sluice.segmentstore.memory import InMemorySegmentStore
from sluice.segmentstore.routing import container_of
from sluice.segmentstore.store import ScaleType, SegmentData, SegmentInfo, SegmentStore, TableInfo
from sluice.segmentstore.wire.fields import NO_VERSION, NOT_EXISTS, TableEntry, TableKey
from sluice.segmentstore.wire.segments import NULL_ATTRIBUTE_VALUE

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
    "ScaleType",
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
