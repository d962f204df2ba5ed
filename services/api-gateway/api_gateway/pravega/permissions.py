"""The permissions that RPCs need: one table, as Pravega's controller has it, with the exceptions that are named here.

docs/permissions.md is made of it, and shows it to operators. Pure functions.
"""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from api_gateway.edge.errors import BadRequestError
from api_gateway.edge.security.rules import READ, READ_UPDATE, Level, Resource, Rule
from api_gateway.pravega.convert import scope_of, stream_of
from api_gateway.pravega.convert_tables import table_of
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.names import MARK_PREFIX, READER_GROUP_PREFIX
from sluice.security.resources import (
    ROOT,
    Permission,
    mapped_resource,
    scope_resource,
    stream_resource,
    table_resource,
)

Part = Callable[[Any], Any]
"""Where a message has what names the resource."""


def _itself(request: Any) -> Any:
    return request


_info: Part = attrgetter("streamInfo")

_ROOT = Resource("root", lambda _request: ROOT)


def _scope(part: Part = _itself) -> Resource:
    return Resource("scope", lambda request: scope_resource(scope_of(part(request).scope)))


def _stream(part: Part = _info) -> Resource:
    return Resource("stream", lambda request: stream_resource(*stream_of(part(request))))


def _mapped(part: Part = _info) -> Resource:
    return Resource("stream, mapped", lambda request: mapped_resource(*stream_of(part(request))))


_TABLE = Resource("table", lambda request: table_resource(*table_of(request)))


def _created_stream(request: pb.StreamConfig, readers_write: bool) -> Permission:
    """A reader creates the stream of its group's state."""
    group = request.streamInfo.stream.startswith(READER_GROUP_PREFIX)
    return Permission.READ if group and readers_write else Permission.READ_UPDATE


def _segments(part: Part) -> Level:
    """Who does not say for what the segments are, may write with what it gets."""

    def of(request: Any, _readers_write: bool) -> Permission:
        for_nothing = part(request).accessOperation == pb.StreamInfo.NONE
        return Permission.READ if for_nothing else Permission.READ_UPDATE

    return Level("READ if accessOperation is NONE, else READ_UPDATE", of)


def _group(_request: Any, readers_write: bool) -> Permission:
    return Permission.READ if readers_write else Permission.READ_UPDATE


_GRANTED: Mapping[int, Permission] = {
    pb.StreamInfo.UNSPECIFIED: Permission.READ_UPDATE,
    pb.StreamInfo.NONE: Permission.NONE,
    pb.StreamInfo.READ: Permission.READ,
    pb.StreamInfo.WRITE: Permission.READ_UPDATE,
    pb.StreamInfo.READ_WRITE: Permission.READ_UPDATE,
}


def granted(operation: int) -> Permission:
    """What a token for an access operation permits. Raises BadRequestError: there is none for ANY."""
    found = _GRANTED.get(operation)
    if found is None:
        raise BadRequestError(f"{operation} is no accessOperation that a token is for")
    return found


def _token(info: pb.StreamInfo, readers_write: bool) -> Permission:
    """Readers write the marks and, with the flag, the state of their groups. Raises BadRequestError."""
    permission = granted(info.accessOperation)
    if info.accessOperation in (pb.StreamInfo.WRITE, pb.StreamInfo.READ_WRITE):
        is_marks = info.stream.startswith(MARK_PREFIX)
        if is_marks or (readers_write and info.stream.startswith(READER_GROUP_PREFIX)):
            return Permission.READ
    return max(permission, Permission.READ)


def _token_table(info: pb.StreamInfo) -> str:
    """Java clients ask for the token of a key-value table by its name, as if it were a stream."""
    is_internal = info.stream.startswith("_")
    return (mapped_resource if is_internal else table_resource)(*stream_of(info))


_TOKEN_TABLE = Resource("table of that name", _token_table)

_CREATED_STREAM = Level("READ_UPDATE; READ for `_RG…` with the flag", _created_stream)
_GROUP = Level("READ with the flag, else READ_UPDATE", _group)
_TOKEN = Level(
    "READ for READ and NONE; else READ_UPDATE, but READ to write `_MARK…` and, with the flag, `_RG…`", _token
)

_BY_INFO = Rule(READ, (_stream(),))
_UPDATE_BY_INFO = Rule(READ_UPDATE, (_stream(),))

RPCS: Mapping[str, Rule] = {
    "getControllerServerList": Rule(),
    # Scopes, and what is in them.
    "createScope": Rule(READ_UPDATE, (_ROOT,)),
    "deleteScope": Rule(READ_UPDATE, (_ROOT,)),
    "deleteScopeRecursive": Rule(READ_UPDATE, (_ROOT,)),
    "getControllerToBucketMapping": Rule(READ_UPDATE, (_ROOT,)),
    "listScopes": Rule(READ, (_ROOT,), entries="scope"),
    "checkScopeExists": Rule(READ, (_scope(),)),
    "listStreamsInScope": Rule(READ, (_scope(attrgetter("scope")),), entries="stream"),
    "listStreamsInScopeForTag": Rule(READ, (_scope(attrgetter("scope")),), entries="stream"),
    "listKeyValueTablesInScope": Rule(READ, (_scope(attrgetter("scope")),), entries="table"),
    # Streams.
    "createStream": Rule(_CREATED_STREAM, (_scope(_info),)),
    "updateStream": Rule(READ_UPDATE, (_mapped(),)),
    "truncateStream": _UPDATE_BY_INFO,
    "sealStream": Rule(READ_UPDATE, (_stream(_itself),)),
    "deleteStream": Rule(READ_UPDATE, (_stream(_itself),)),
    "scale": _UPDATE_BY_INFO,
    "checkScale": _BY_INFO,
    "isSegmentValid": _BY_INFO,
    "isStreamCutValid": _BY_INFO,
    "checkStreamExists": Rule(READ, (_stream(_itself),)),
    "getStreamConfiguration": Rule(READ, (_stream(_itself),)),
    "getCurrentSegments": Rule(_segments(_itself), (_mapped(_itself),)),
    "getSegments": Rule(_segments(_info), (_stream(),)),
    "getEpochSegments": _UPDATE_BY_INFO,
    "getSegmentsBetween": _BY_INFO,
    "getSegmentsImmediatelyFollowing": _BY_INFO,
    "getSegmentsImmediatlyFollowing": _BY_INFO,
    "getURI": Rule(READ, (_mapped(),)),
    "getDelegationToken": Rule(_TOKEN, (_mapped(_itself), _TOKEN_TABLE), any_will_do=True),
    # Transactions, writers and subscribers of a stream.
    "createTransaction": _UPDATE_BY_INFO,
    "commitTransaction": _UPDATE_BY_INFO,
    "abortTransaction": _UPDATE_BY_INFO,
    "pingTransaction": _UPDATE_BY_INFO,
    "checkTransactionState": _BY_INFO,
    "listCompletedTransactions": _BY_INFO,
    "noteTimestampFromWriter": Rule(READ_UPDATE, (_stream(attrgetter("position.streamInfo")),)),
    "removeWriter": Rule(READ_UPDATE, (_stream(attrgetter("stream")),)),
    "listSubscribers": Rule(READ_UPDATE, (_stream(_itself),)),
    "updateSubscriberStreamCut": Rule(READ_UPDATE, (_stream(attrgetter("streamCut.streamInfo")),)),
    # Reader groups: the permission is on their scope.
    "createReaderGroup": Rule(_GROUP, (_scope(),)),
    "updateReaderGroup": Rule(_GROUP, (_scope(),)),
    "deleteReaderGroup": Rule(_GROUP, (_scope(),)),
    "getReaderGroupConfig": Rule(READ, (_scope(),)),
    # Key-value tables.
    "createKeyValueTable": Rule(READ_UPDATE, (_scope(),)),
    "getKeyValueTableConfiguration": Rule(READ, (_TABLE,)),
    "getCurrentSegmentsKeyValueTable": Rule(READ_UPDATE, (_TABLE,)),
    "deleteKeyValueTable": Rule(READ_UPDATE, (_TABLE,)),
}
