"""A client for revisioned streams, and shared state on top of them.

A revisioned stream is an ordinary stream with one segment; one appends to it on condition that nobody else did since
one last looked. From that follows a state that many processes share. See `docs/client-library.md`.
"""

from sluice.client.attempts import Patience
from sluice.client.codec import Codec, JsonCodec
from sluice.client.controller import Controller, ControllerApi
from sluice.client.errors import (
    ClientClosed,
    ClientError,
    Contended,
    EntryMalformed,
    EntryTooLarge,
    NotASingleSegment,
    NotSent,
    Refused,
    RevisionAhead,
    RevisionTruncated,
    ScopeMissing,
    StateLost,
    StreamMissing,
    StreamSealed,
    Unavailable,
)
from sluice.client.opening import Client, open_client
from sluice.client.revision import Revision
from sluice.client.revisioned_stream import RevisionedStream
from sluice.client.synchronizer import StateSynchronizer
from sluice.segmentstore import (
    Permanent,
    RouteStale,
    SegmentMissing,
    SegmentSealed,
    SegmentStore,
    SegmentStoreError,
    SegmentTruncated,
    TryLater,
)

__all__ = [
    "Client",
    "ClientClosed",
    "ClientError",
    "Codec",
    "Contended",
    "Controller",
    "ControllerApi",
    "EntryMalformed",
    "EntryTooLarge",
    "JsonCodec",
    "NotASingleSegment",
    "NotSent",
    "Patience",
    "Permanent",
    "Refused",
    "Revision",
    "RevisionAhead",
    "RevisionTruncated",
    "RevisionedStream",
    "RouteStale",
    "ScopeMissing",
    "SegmentMissing",
    "SegmentSealed",
    "SegmentStore",
    "SegmentStoreError",
    "SegmentTruncated",
    "StateLost",
    "StateSynchronizer",
    "StreamMissing",
    "StreamSealed",
    "TryLater",
    "Unavailable",
    "open_client",
]
