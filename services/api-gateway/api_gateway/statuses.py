"""The replies to commands as Pravega's response messages.

A reply carries the name of a status in the enum of its response, so converting means looking the name up; the few
that are called otherwise, or are an error of gRPC, stand here. A test holds that every name the domain can reply to a
command has its place. Pure functions.
"""

from collections.abc import Mapping
from typing import Any

from google.protobuf.message import Message

from sluice.controller_api import controller_pb2 as pb
from sluice.domain import commands as c
from sluice.domain.decision import Reply
from sluice.domain.errors import IllegalStateError, NotFoundError

RESPONSES: dict[type[c.Command], type[Message]] = {
    c.CreateScope: pb.CreateScopeStatus,
    c.DeleteScope: pb.DeleteScopeStatus,
    c.DeleteScopeRecursive: pb.DeleteScopeStatus,
    c.CreateStream: pb.CreateStreamStatus,
    c.UpdateStream: pb.UpdateStreamStatus,
    c.TruncateStream: pb.UpdateStreamStatus,
    c.ScaleStream: pb.ScaleResponse,
    c.SealStream: pb.UpdateStreamStatus,
    c.DeleteStream: pb.DeleteStreamStatus,
    c.UpdateSubscriberCut: pb.UpdateSubscriberStatus,
    c.NoteWriterTime: pb.TimestampResponse,
    c.RemoveWriter: pb.RemoveWriterResponse,
    c.CreateReaderGroup: pb.CreateReaderGroupResponse,
    c.UpdateReaderGroup: pb.UpdateReaderGroupResponse,
    c.DeleteReaderGroup: pb.DeleteReaderGroupStatus,
    c.PingTransaction: pb.PingTxnStatus,
    c.CommitTransaction: pb.TxnStatus,
    c.AbortTransaction: pb.TxnStatus,
    c.CreateTable: pb.CreateKeyValueTableStatus,
    c.DeleteTable: pb.DeleteKVTableStatus,
}

STATUS_FIELDS: dict[type[c.Command], str] = {
    command: next(field.name for field in message.DESCRIPTOR.fields if field.enum_type is not None)
    for command, message in RESPONSES.items()
}

OTHERWISE_CALLED: Mapping[type[c.Command], Mapping[str, str]] = {
    c.NoteWriterTime: {"FAILURE": "INTERNAL_ERROR"},
    c.RemoveWriter: {"FAILURE": "INTERNAL_ERROR"},
}

FAILED: frozenset[type[c.Command]] = frozenset({c.PingTransaction})
"""What the response has no FAILURE for: gRPC says it, and clients try again; DISCONNECTED is final (9.3, 10.3)."""

NOT_FOUND: frozenset[tuple[type[c.Command], str]] = frozenset({(c.NoteWriterTime, "STREAM_NOT_FOUND")})
"""What the response has no status for: gRPC says it (controller-grpc-api 5.7)."""


def response(command: c.Command, reply: Reply) -> Any:
    """The message of RESPONSES with its status set.

    Raises NotFoundError for a status in NOT_FOUND, IllegalStateError for a FAILURE in FAILED, ValueError for one that
    the response does not know: the domain and these tables disagree.
    """
    kind, status = type(command), reply.status
    if status == "FAILURE" and kind in FAILED:
        raise IllegalStateError(reply.reason)
    if (kind, status) in NOT_FOUND:
        raise NotFoundError(f"{command.aggregate} does not exist")
    names = OTHERWISE_CALLED.get(kind)
    return RESPONSES[kind](**{STATUS_FIELDS[kind]: names.get(status, status) if names else status})
