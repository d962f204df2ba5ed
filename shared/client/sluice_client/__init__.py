"""A client of Pravega: streams, events, transactions, reader groups, and state that many processes share.

A revisioned stream is an ordinary stream with one segment; one appends to it on condition that no other client did
since one last looked. From that follows a state that many processes share. See `docs/client-library.md`.
"""

from sluice.domain.config import RetentionPolicy, RetentionType, ScaleType, ScalingPolicy, StreamConfig
from sluice.pravega import (
    Permanent,
    RouteStale,
    SegmentMissing,
    SegmentSealed,
    SegmentStore,
    SegmentStoreError,
    SegmentTruncated,
    TryLater,
)
from sluice.pravega.event_frames import MalformedEvents, StoredEvent, split_events
from sluice.pravega.reader_group_config import GroupConfig, Retention
from sluice.pravega.stream_cut import StreamCut
from sluice_client.access import Access, is_secured
from sluice_client.attempts import PASSING, Patience, patiently
from sluice_client.codec import Codec, JsonCodec
from sluice_client.controller import Controller, ControllerApi
from sluice_client.errors import (
    AccessRefused,
    ClientClosed,
    ClientError,
    Contended,
    EntryMalformed,
    EntryTooLarge,
    EventMissing,
    NotASingleSegment,
    NotSent,
    Refused,
    RevisionAhead,
    RevisionTruncated,
    ScopeMissing,
    ScopeNotEmpty,
    StateLost,
    StreamMissing,
    StreamNotSealed,
    StreamSealed,
    TransactionEnded,
    Unavailable,
)
from sluice_client.event_reading import Piece, read_piece
from sluice_client.event_writer import EventWriter
from sluice_client.groups.decisions import ReaderExists, ReaderOffline
from sluice_client.groups.encoding import Checkpoint, EventPointer, Position
from sluice_client.groups.group import (
    CheckpointGivenUp,
    ConfigDiffers,
    ReaderGroup,
    TooManyCheckpoints,
    create_reader_group,
    delete_reader_group,
    open_reader_group,
)
from sluice_client.groups.reader import Batch, CheckpointReached, EventReader, open_reader
from sluice_client.groups.synchronizer import GroupMissing
from sluice_client.groups.time_window import TimeWindow
from sluice_client.head import Start, find_start, start_at
from sluice_client.opening import Client, open_client
from sluice_client.revision import Revision
from sluice_client.revisioned_stream import RevisionedStream
from sluice_client.segment_input import Event, SegmentInput, Skipped
from sluice_client.stream_manager import KeyRange, StreamDescription, StreamManager
from sluice_client.stream_writer import StreamWriter
from sluice_client.synchronizer import StateSynchronizer
from sluice_client.transaction import Transaction, TransactionStatus

__all__ = [
    "PASSING",
    "Access",
    "AccessRefused",
    "Batch",
    "Checkpoint",
    "CheckpointGivenUp",
    "CheckpointReached",
    "Client",
    "ClientClosed",
    "ClientError",
    "Codec",
    "ConfigDiffers",
    "Contended",
    "Controller",
    "ControllerApi",
    "EntryMalformed",
    "EntryTooLarge",
    "Event",
    "EventMissing",
    "EventPointer",
    "EventReader",
    "EventWriter",
    "GroupConfig",
    "GroupMissing",
    "JsonCodec",
    "KeyRange",
    "MalformedEvents",
    "NotASingleSegment",
    "NotSent",
    "Patience",
    "Permanent",
    "Piece",
    "Position",
    "ReaderExists",
    "ReaderGroup",
    "ReaderOffline",
    "Refused",
    "Retention",
    "RetentionPolicy",
    "RetentionType",
    "Revision",
    "RevisionAhead",
    "RevisionTruncated",
    "RevisionedStream",
    "RouteStale",
    "ScaleType",
    "ScalingPolicy",
    "ScopeMissing",
    "ScopeNotEmpty",
    "SegmentInput",
    "SegmentMissing",
    "SegmentSealed",
    "SegmentStore",
    "SegmentStoreError",
    "SegmentTruncated",
    "Skipped",
    "Start",
    "StateLost",
    "StateSynchronizer",
    "StoredEvent",
    "StreamConfig",
    "StreamCut",
    "StreamDescription",
    "StreamManager",
    "StreamMissing",
    "StreamNotSealed",
    "StreamSealed",
    "StreamWriter",
    "TimeWindow",
    "TooManyCheckpoints",
    "Transaction",
    "TransactionEnded",
    "TransactionStatus",
    "TryLater",
    "Unavailable",
    "create_reader_group",
    "delete_reader_group",
    "find_start",
    "is_secured",
    "open_client",
    "open_reader",
    "open_reader_group",
    "patiently",
    "read_piece",
    "split_events",
    "start_at",
]
