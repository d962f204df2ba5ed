"""The RPC by which a client asks for what a command says, and the RPC's message: what becomes what in the gateway."""

from collections.abc import Callable
from typing import Any, cast

from api_gateway.convert import config_message
from api_gateway.convert_groups import group_config_message
from api_gateway.convert_tables import table_config_message
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.commands import Command
from sluice.domain.reader_group.commands import CreateReaderGroup, DeleteReaderGroup, UpdateReaderGroup
from sluice.domain.scope.commands import CreateScope, DeleteScope, DeleteScopeRecursive
from sluice.domain.stream.commands import (
    CreateStream,
    DeleteStream,
    NoteWriterTime,
    RemoveWriter,
    ScaleStream,
    SealStream,
    TruncateStream,
    UpdateStream,
    UpdateSubscriberCut,
)
from sluice.domain.table.commands import CreateTable, DeleteTable
from sluice.domain.transaction.commands import AbortTransaction, CommitTransaction, OpenTransaction, PingTransaction
from sluice.domain.transaction.ids import halves


def rpc_of(command: Command) -> tuple[str, Any]:
    """The name of the RPC and its message. Raises KeyError for a command that no client can ask for by an RPC."""
    name, message = _RPCS[type(command)]
    return name, message(command)


def _stream(command: Any) -> pb.StreamInfo:
    return pb.StreamInfo(scope=command.scope, stream=command.stream)


def _cut(command: Any, cut: dict[int, int]) -> pb.StreamCut:
    return pb.StreamCut(streamInfo=_stream(command), cut=cut)


def _transaction(command: Any, **more: Any) -> pb.TxnRequest:
    return pb.TxnRequest(streamInfo=_stream(command), txnId=_id(command.transaction), **more)


def _id(transaction: str) -> pb.TxnId:
    high, low = halves(transaction)
    return pb.TxnId(highBits=high, lowBits=low)


def _scope(command: Any) -> pb.ScopeInfo:
    return pb.ScopeInfo(scope=command.scope)


def _scale(command: ScaleStream) -> pb.ScaleRequest:
    ranges = [pb.ScaleRequest.KeyRangeEntry(start=low, end=high) for low, high in command.ranges]
    return pb.ScaleRequest(
        streamInfo=_stream(command), sealedSegments=command.seals, newKeyRanges=ranges, scaleTimestamp=command.at
    )


def _moved(command: UpdateSubscriberCut) -> pb.SubscriberStreamCut:
    return pb.SubscriberStreamCut(
        subscriber=command.subscriber,
        streamCut=_cut(command, command.cut),
        readerGroupId=command.group_id,
        generation=command.generation,
    )


def _noted(command: NoteWriterTime) -> pb.TimestampFromWriter:
    position = _cut(command, command.position)
    return pb.TimestampFromWriter(writer=command.writer, position=position, timestamp=command.timestamp)


def _group(command: DeleteReaderGroup) -> pb.ReaderGroupInfo:
    return pb.ReaderGroupInfo(scope=command.scope, readerGroup=command.group, readerGroupId=command.id or "")


_RPCS: dict[type[Any], tuple[str, Callable[[Any], Any]]] = {
    CreateScope: ("createScope", _scope),
    DeleteScope: ("deleteScope", _scope),
    DeleteScopeRecursive: ("deleteScopeRecursive", _scope),
    CreateStream: ("createStream", lambda command: config_message(command.stream_id, command.config)),
    UpdateStream: ("updateStream", lambda command: config_message(command.stream_id, command.config)),
    TruncateStream: ("truncateStream", lambda command: _cut(command, command.cut)),
    ScaleStream: ("scale", _scale),
    SealStream: ("sealStream", _stream),
    DeleteStream: ("deleteStream", _stream),
    CreateReaderGroup: (
        "createReaderGroup",
        lambda command: group_config_message(command.group_id, command.config),
    ),
    UpdateReaderGroup: (
        "updateReaderGroup",
        lambda command: group_config_message(command.group_id, command.config),
    ),
    DeleteReaderGroup: ("deleteReaderGroup", _group),
    CreateTable: (
        "createKeyValueTable",
        lambda command: table_config_message(command.table_id, command.config),
    ),
    DeleteTable: (
        "deleteKeyValueTable",
        lambda command: pb.KeyValueTableInfo(scope=command.scope, kvtName=command.table),
    ),
    UpdateSubscriberCut: ("updateSubscriberStreamCut", _moved),
    NoteWriterTime: ("noteTimestampFromWriter", _noted),
    RemoveWriter: (
        "removeWriter",
        lambda command: pb.RemoveWriterRequest(writer=command.writer, stream=_stream(command)),
    ),
    OpenTransaction: (
        "createTransaction",
        lambda command: pb.CreateTxnRequest(streamInfo=_stream(command), lease=command.lease_ms),
    ),
    PingTransaction: (
        "pingTransaction",
        lambda command: pb.PingTxnRequest(
            streamInfo=_stream(command), txnId=_id(command.transaction), lease=command.lease_ms
        ),
    ),
    CommitTransaction: (
        "commitTransaction",
        lambda command: _transaction(command, writerId=command.writer, timestamp=command.timestamp),
    ),
    AbortTransaction: ("abortTransaction", _transaction),
}

ASKED_BY_RPC = cast(frozenset[type[Any]], frozenset(_RPCS))
"""The commands that clients can ask for."""
