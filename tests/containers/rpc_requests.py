"""The RPC by which a client asks for what a command says, and the RPC's message: what becomes what in the gateway."""

from collections.abc import Callable
from typing import Any, cast

from api_gateway.convert import config_message
from api_gateway.convert_groups import group_config_message
from api_gateway.convert_tables import table_config_message
from sluice.controller_api import controller_pb2 as pb
from sluice.domain import commands as c
from sluice.domain.transaction.ids import halves


def rpc_of(command: c.Command) -> tuple[str, Any]:
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


def _scale(command: c.ScaleStream) -> pb.ScaleRequest:
    ranges = [pb.ScaleRequest.KeyRangeEntry(start=low, end=high) for low, high in command.ranges]
    return pb.ScaleRequest(
        streamInfo=_stream(command), sealedSegments=command.seals, newKeyRanges=ranges, scaleTimestamp=command.at
    )


def _moved(command: c.UpdateSubscriberCut) -> pb.SubscriberStreamCut:
    return pb.SubscriberStreamCut(
        subscriber=command.subscriber,
        streamCut=_cut(command, command.cut),
        readerGroupId=command.group_id,
        generation=command.generation,
    )


def _noted(command: c.NoteWriterTime) -> pb.TimestampFromWriter:
    position = _cut(command, command.position)
    return pb.TimestampFromWriter(writer=command.writer, position=position, timestamp=command.timestamp)


def _group(command: c.DeleteReaderGroup) -> pb.ReaderGroupInfo:
    return pb.ReaderGroupInfo(scope=command.scope, readerGroup=command.group, readerGroupId=command.id or "")


_RPCS: dict[type[Any], tuple[str, Callable[[Any], Any]]] = {
    c.CreateScope: ("createScope", _scope),
    c.DeleteScope: ("deleteScope", _scope),
    c.DeleteScopeRecursive: ("deleteScopeRecursive", _scope),
    c.CreateStream: ("createStream", lambda command: config_message(command.scope, command.stream, command.config)),
    c.UpdateStream: ("updateStream", lambda command: config_message(command.scope, command.stream, command.config)),
    c.TruncateStream: ("truncateStream", lambda command: _cut(command, command.cut)),
    c.ScaleStream: ("scale", _scale),
    c.SealStream: ("sealStream", _stream),
    c.DeleteStream: ("deleteStream", _stream),
    c.CreateReaderGroup: (
        "createReaderGroup",
        lambda command: group_config_message(command.scope, command.group, command.config),
    ),
    c.UpdateReaderGroup: (
        "updateReaderGroup",
        lambda command: group_config_message(command.scope, command.group, command.config),
    ),
    c.DeleteReaderGroup: ("deleteReaderGroup", _group),
    c.CreateTable: (
        "createKeyValueTable",
        lambda command: table_config_message(command.scope, command.table, command.config),
    ),
    c.DeleteTable: (
        "deleteKeyValueTable",
        lambda command: pb.KeyValueTableInfo(scope=command.scope, kvtName=command.table),
    ),
    c.UpdateSubscriberCut: ("updateSubscriberStreamCut", _moved),
    c.NoteWriterTime: ("noteTimestampFromWriter", _noted),
    c.RemoveWriter: (
        "removeWriter",
        lambda command: pb.RemoveWriterRequest(writer=command.writer, stream=_stream(command)),
    ),
    c.OpenTransaction: (
        "createTransaction",
        lambda command: pb.CreateTxnRequest(streamInfo=_stream(command), lease=command.lease_ms),
    ),
    c.PingTransaction: (
        "pingTransaction",
        lambda command: pb.PingTxnRequest(
            streamInfo=_stream(command), txnId=_id(command.transaction), lease=command.lease_ms
        ),
    ),
    c.CommitTransaction: (
        "commitTransaction",
        lambda command: _transaction(command, writerId=command.writer, timestamp=command.timestamp),
    ),
    c.AbortTransaction: ("abortTransaction", _transaction),
}

ASKED_BY_RPC = cast(frozenset[type[Any]], frozenset(_RPCS))
"""The commands that clients can ask for."""
