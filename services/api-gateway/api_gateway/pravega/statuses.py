"""The replies to commands as Pravega's response messages.

A reply carries the name of a status in the enum of its response, so converting means looking the name up; the few
that are called otherwise, or are an error of gRPC, stand here. A test holds that every name the domain can reply to a
command has its status. Pure functions.
"""

from collections.abc import Mapping
from typing import Any

from google.protobuf.message import Message

from sluice.controller_api import controller_pb2 as pb
from sluice.domain.commands import Command
from sluice.domain.decision import Reply
from sluice.domain.errors import IllegalStateError, NotFoundError
from sluice.domain.reader_group.commands import CreateReaderGroup, DeleteReaderGroup, UpdateReaderGroup
from sluice.domain.scope.commands import CreateScope, DeleteScope, DeleteScopeRecursive
from sluice.domain.status import Status
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
from sluice.domain.transaction.commands import AbortTransaction, CommitTransaction, PingTransaction

RESPONSES: dict[type[Command], type[Message]] = {
    CreateScope: pb.CreateScopeStatus,
    DeleteScope: pb.DeleteScopeStatus,
    DeleteScopeRecursive: pb.DeleteScopeStatus,
    CreateStream: pb.CreateStreamStatus,
    UpdateStream: pb.UpdateStreamStatus,
    TruncateStream: pb.UpdateStreamStatus,
    ScaleStream: pb.ScaleResponse,
    SealStream: pb.UpdateStreamStatus,
    DeleteStream: pb.DeleteStreamStatus,
    UpdateSubscriberCut: pb.UpdateSubscriberStatus,
    NoteWriterTime: pb.TimestampResponse,
    RemoveWriter: pb.RemoveWriterResponse,
    CreateReaderGroup: pb.CreateReaderGroupResponse,
    UpdateReaderGroup: pb.UpdateReaderGroupResponse,
    DeleteReaderGroup: pb.DeleteReaderGroupStatus,
    PingTransaction: pb.PingTxnStatus,
    CommitTransaction: pb.TxnStatus,
    AbortTransaction: pb.TxnStatus,
    CreateTable: pb.CreateKeyValueTableStatus,
    DeleteTable: pb.DeleteKVTableStatus,
}

STATUS_FIELDS: dict[type[Command], str] = {
    command: next(field.name for field in message.DESCRIPTOR.fields if field.enum_type is not None)
    for command, message in RESPONSES.items()
}

OTHERWISE_CALLED: Mapping[type[Command], Mapping[str, str]] = {
    UpdateStream: {Status.CONFIG_CHANGED: "FAILURE"},
    NoteWriterTime: {Status.FAILURE: "INTERNAL_ERROR"},
    RemoveWriter: {Status.FAILURE: "INTERNAL_ERROR"},
}

FAILED: frozenset[type[Command]] = frozenset({PingTransaction})
"""What the response has no FAILURE for: gRPC says it, and clients try again; DISCONNECTED is final (9.3, 10.3)."""

NOT_FOUND: frozenset[tuple[type[Command], str]] = frozenset({(NoteWriterTime, Status.STREAM_NOT_FOUND)})
"""What the response has no status for: gRPC says it (controller-grpc-api 5.7)."""


def response(command: Command, reply: Reply) -> Any:
    """The message of RESPONSES with its status set.

    Raises NotFoundError for a status in NOT_FOUND, IllegalStateError for a FAILURE in FAILED, ValueError for one that
    the response does not know: the domain and these tables disagree.
    """
    kind, status = type(command), reply.status
    if status == Status.FAILURE and kind in FAILED:
        raise IllegalStateError(reply.reason)
    if (kind, status) in NOT_FOUND:
        raise NotFoundError(f"{command.aggregate} does not exist")
    names = OTHERWISE_CALLED.get(kind)
    return RESPONSES[kind](**{STATUS_FIELDS[kind]: names.get(status, status) if names else status})
