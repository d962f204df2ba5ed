"""RPCs on reader groups (controller-grpc-api 5.8).

Where the original distinguishes a missing scope from a missing group, the view is read before the request is sent.
"""

from uuid import uuid4

import msgspec
from google.protobuf.message import Message

from api_gateway.edge.reads import Reads
from api_gateway.edge.requests import Requests
from api_gateway.pravega.convert import name_of, scope_of
from api_gateway.pravega.convert_groups import group_config_message, group_config_of, id_of
from api_gateway.pravega.handlers import Context, Handler
from api_gateway.pravega.handlers.submitting import response_to, submit
from api_gateway.pravega.rpc import trace_of
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.ids import GroupId
from sluice.domain.reader_group.commands import CreateReaderGroup, DeleteReaderGroup, UpdateReaderGroup
from sluice.domain.reader_group.state import ZERO_ID


class GroupHandlers:
    """What concerns a reader group as a whole."""

    def __init__(self, reads: Reads, requests: Requests) -> None:
        self._reads = reads
        self._requests = requests

    def table(self) -> dict[str, Handler]:
        return {
            "createReaderGroup": self.create,
            "getReaderGroupConfig": self.configuration,
            "updateReaderGroup": self.update,
            "deleteReaderGroup": self.delete,
        }

    async def create(self, request: pb.ReaderGroupConfiguration, context: Context) -> pb.CreateReaderGroupResponse:
        """The configuration in the answer is the stored one: the group may have existed with another.

        A group begins with generation 0 whatever was sent (background-and-other-workflows 6.2). A subscriber of a
        stream that does not exist is refused with FAILURE; the original lets the call time out.
        """
        scope, config = scope_of(request.scope), group_config_of(request)
        id = str(uuid4()) if config.id == ZERO_ID else config.id
        config = msgspec.structs.replace(config, id=id, generation=0)
        command = CreateReaderGroup(scope=scope, group=name_of(request.readerGroupName), config=config)
        response: pb.CreateReaderGroupResponse = await submit(self._requests, command, context)
        if response.status == pb.CreateReaderGroupResponse.SUCCESS:
            # The view has what the reply is about, unless another client deletes the group this very moment.
            stored = self._reads.known_group(command.group_id)
            response.config.CopyFrom(group_config_message(command.group_id, stored.config if stored else config))
        return response

    async def configuration(self, request: pb.ReaderGroupInfo, _context: Context) -> pb.ReaderGroupConfigResponse:
        id = GroupId(scope_of(request.scope), name_of(request.readerGroup))
        group = await self._reads.group_or_none(id)
        if group is None:
            missing = pb.ReaderGroupConfigResponse.RG_NOT_FOUND
            return pb.ReaderGroupConfigResponse(status=missing, config=pb.ReaderGroupConfiguration())
        return pb.ReaderGroupConfigResponse(config=group_config_message(id, group.config))

    async def update(self, request: pb.ReaderGroupConfiguration, context: Context) -> pb.UpdateReaderGroupResponse:
        id, config = GroupId(scope_of(request.scope), name_of(request.readerGroupName)), group_config_of(request)
        await self._reads.group_or_none(id)
        command = UpdateReaderGroup(*id, config=config)
        reply = await self._requests.submit(command, trace_of(context))
        response: pb.UpdateReaderGroupResponse = response_to(command, reply, context)
        succeeded = response.status == pb.UpdateReaderGroupResponse.SUCCESS
        response.generation = reply.generation if succeeded else config.generation
        return response

    async def delete(self, request: pb.ReaderGroupInfo, context: Context) -> Message:
        """An id that is no UUID matters only if there is a group that it could be compared with."""
        id = GroupId(scope_of(request.scope), name_of(request.readerGroup))
        group = await self._reads.group_or_none(id)
        if group is None or group.config.id != id_of(request.readerGroupId):
            return pb.DeleteReaderGroupStatus(status=pb.DeleteReaderGroupStatus.RG_NOT_FOUND)
        command = DeleteReaderGroup(*id, group.config.id, group.creation_id)
        deleted: Message = await submit(self._requests, command, context)
        return deleted
