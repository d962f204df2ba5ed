"""The RPC by which a client asks for what a command says, and the RPC's message: what becomes what in the gateway."""

from collections.abc import Callable
from typing import Any, cast

from api_gateway.pravega.convert_groups import group_config_message
from api_gateway.pravega.convert_tables import table_config_message
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
from sluice.domain.transaction_ids import halves
from sluice.stream_messages import stream_config_message


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


def _subscriber_cut(command: UpdateSubscriberCut) -> pb.SubscriberStreamCut:
    return pb.SubscriberStreamCut(
        subscriber=command.subscriber,
        streamCut=_cut(command, command.cut),
        readerGroupId=command.group_id,
        generation=command.generation,
    )


def _writer_time(command: NoteWriterTime) -> pb.TimestampFromWriter:
    position = _cut(command, command.position)
    return pb.TimestampFromWriter(writer=command.writer, position=position, timestamp=command.timestamp)


def _stream_config(command: Any) -> pb.StreamConfig:
    return stream_config_message(command.stream_id, command.config)


def _group_config(command: Any) -> pb.ReaderGroupConfiguration:
    return group_config_message(command.group_id, command.config)


def _group(command: DeleteReaderGroup) -> pb.ReaderGroupInfo:
    return pb.ReaderGroupInfo(scope=command.scope, readerGroup=command.group, readerGroupId=command.id or "")


_RPCS: dict[type[Any], tuple[str, Callable[[Any], Any]]] = {
    CreateScope: ("createScope", _scope),
    DeleteScope: ("deleteScope", _scope),
    DeleteScopeRecursive: ("deleteScopeRecursive", _scope),
    CreateStream: ("createStream", _stream_config),
    UpdateStream: ("updateStream", _stream_config),
    TruncateStream: ("truncateStream", lambda cmd: _cut(cmd, cmd.cut)),
    ScaleStream: ("scale", _scale),
    SealStream: ("sealStream", _stream),
    DeleteStream: ("deleteStream", _stream),
    CreateReaderGroup: ("createReaderGroup", _group_config),
    UpdateReaderGroup: ("updateReaderGroup", _group_config),
    DeleteReaderGroup: ("deleteReaderGroup", _group),
    CreateTable: ("createKeyValueTable", lambda cmd: table_config_message(cmd.table_id, cmd.config)),
    DeleteTable: ("deleteKeyValueTable", lambda cmd: pb.KeyValueTableInfo(scope=cmd.scope, kvtName=cmd.table)),
    UpdateSubscriberCut: ("updateSubscriberStreamCut", _subscriber_cut),
    NoteWriterTime: ("noteTimestampFromWriter", _writer_time),
    RemoveWriter: ("removeWriter", lambda cmd: pb.RemoveWriterRequest(writer=cmd.writer, stream=_stream(cmd))),
    OpenTransaction: (
        "createTransaction",
        lambda cmd: pb.CreateTxnRequest(streamInfo=_stream(cmd), lease=cmd.lease_ms),
    ),
    PingTransaction: (
        "pingTransaction",
        lambda cmd: pb.PingTxnRequest(streamInfo=_stream(cmd), txnId=_id(cmd.transaction), lease=cmd.lease_ms),
    ),
    CommitTransaction: (
        "commitTransaction",
        lambda cmd: _transaction(cmd, writerId=cmd.writer, timestamp=cmd.timestamp),
    ),
    AbortTransaction: ("abortTransaction", _transaction),
}

REQUESTED_BY_RPC = cast(frozenset[type[Any]], frozenset(_RPCS))
"""The commands that clients can ask for."""
