"""The replies to commands as Pravega's response messages.

A reply carries the name of a status in the enum of its response, so converting means looking the name up; a test
holds that every name the domain can reply to a command is in that enum. Pure functions.
"""

from google.protobuf.message import Message

from api_gateway.generated import controller_pb2 as pb
from sluice.domain import commands as c
from sluice.domain.decision import Reply

RESPONSES: dict[type[c.Command], type[Message]] = {
    c.CreateScope: pb.CreateScopeStatus,
    c.DeleteScope: pb.DeleteScopeStatus,
    c.CreateStream: pb.CreateStreamStatus,
    c.UpdateStream: pb.UpdateStreamStatus,
    c.TruncateStream: pb.UpdateStreamStatus,
    c.ScaleStream: pb.ScaleResponse,
    c.SealStream: pb.UpdateStreamStatus,
    c.DeleteStream: pb.DeleteStreamStatus,
}


def response(command: c.Command, reply: Reply) -> Message:
    """Raises ValueError for a status that the response does not know: the domain and this table disagree."""
    return RESPONSES[type(command)](status=reply.status)
