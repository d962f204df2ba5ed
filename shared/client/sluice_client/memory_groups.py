"""Reader groups in the controller in memory: configurations, subscribers and their cuts. See `memory`."""

from abc import ABC, abstractmethod
from uuid import UUID, uuid4

from sluice.controller_api import controller_pb2 as pb
from sluice.domain.cut_order import Cut
from sluice.domain.errors import InvalidArgumentError, NotFoundError
from sluice.domain.names import group_stream
from sluice.domain.stream import cuts
from sluice.domain.stream.state import Stream


class InMemoryGroups(ABC):
    """The RPCs about reader groups, each under its name. Nothing is truncated for what subscribers say."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str], pb.ReaderGroupConfiguration] = {}
        self.released: dict[tuple[str, str], dict[int, int]] = {}

    @abstractmethod
    def _stream(self, info: pb.StreamInfo) -> Stream:
        """The stream of a cut."""

    @abstractmethod
    async def createStream(self, request: pb.StreamConfig) -> pb.CreateStreamStatus:
        """Here for a group's state."""

    @abstractmethod
    async def sealStream(self, request: pb.StreamInfo) -> pb.UpdateStreamStatus:
        """Here for a group's state."""

    @abstractmethod
    async def deleteStream(self, request: pb.StreamInfo) -> pb.DeleteStreamStatus:
        """Here for a group's state."""

    async def createReaderGroup(self, request: pb.ReaderGroupConfiguration) -> pb.CreateReaderGroupResponse:
        id, state = (request.scope, request.readerGroupName), _state_of(request.scope, request.readerGroupName)
        if id not in self._groups:
            created = await self.createStream(
                pb.StreamConfig(streamInfo=state, scalingPolicy=pb.ScalingPolicy(minNumSegments=1))
            )
            if created.status == pb.CreateStreamStatus.SCOPE_NOT_FOUND:
                return pb.CreateReaderGroupResponse(status=pb.CreateReaderGroupResponse.SCOPE_NOT_FOUND)
            self._groups[id] = _copy(request)
            if UUID(request.readerGroupId).int == 0:
                self._groups[id].readerGroupId, self._groups[id].generation = str(uuid4()), 0
        return pb.CreateReaderGroupResponse(config=_copy(self._groups[id]))

    async def getReaderGroupConfig(self, request: pb.ReaderGroupInfo) -> pb.ReaderGroupConfigResponse:
        found = self._groups.get((request.scope, request.readerGroup))
        if found is None:
            return pb.ReaderGroupConfigResponse(status=pb.ReaderGroupConfigResponse.RG_NOT_FOUND)
        return pb.ReaderGroupConfigResponse(config=_copy(found))

    async def updateReaderGroup(self, request: pb.ReaderGroupConfiguration) -> pb.UpdateReaderGroupResponse:
        found = self._groups.get((request.scope, request.readerGroupName))
        if found is None:
            return pb.UpdateReaderGroupResponse(status=pb.UpdateReaderGroupResponse.RG_NOT_FOUND)
        if (request.generation, request.readerGroupId) != (found.generation, found.readerGroupId):
            return pb.UpdateReaderGroupResponse(status=pb.UpdateReaderGroupResponse.INVALID_CONFIG)
        new = self._groups[request.scope, request.readerGroupName] = _copy(request)
        new.generation += 1
        return pb.UpdateReaderGroupResponse(generation=new.generation)

    async def deleteReaderGroup(self, request: pb.ReaderGroupInfo) -> pb.DeleteReaderGroupStatus:
        found = self._groups.get((request.scope, request.readerGroup))
        if found is None or found.readerGroupId != request.readerGroupId:
            return pb.DeleteReaderGroupStatus(status=pb.DeleteReaderGroupStatus.RG_NOT_FOUND)
        del self._groups[request.scope, request.readerGroup]
        state = _state_of(request.scope, request.readerGroup)
        await self.sealStream(state)
        await self.deleteStream(state)
        return pb.DeleteReaderGroupStatus()

    async def listSubscribers(self, request: pb.StreamInfo) -> pb.SubscribersResponse:
        return pb.SubscribersResponse(subscribers=self._subscribers(request))

    async def updateSubscriberStreamCut(self, request: pb.SubscriberStreamCut) -> pb.UpdateSubscriberStatus:
        stream = request.streamCut.streamInfo
        if request.subscriber not in self._subscribers(stream):
            return pb.UpdateSubscriberStatus(status=pb.UpdateSubscriberStatus.SUBSCRIBER_NOT_FOUND)
        scope, _, name = request.subscriber.partition("/")
        if request.generation != self._groups[scope, name].generation:
            return pb.UpdateSubscriberStatus(status=pb.UpdateSubscriberStatus.GENERATION_MISMATCH)
        known, cut = (request.subscriber, f"{stream.scope}/{stream.stream}"), dict(request.streamCut.cut)
        if not may_follow(self._stream(stream), cut, self.released.get(known, {})):
            return pb.UpdateSubscriberStatus(status=pb.UpdateSubscriberStatus.STREAM_CUT_NOT_VALID)
        self.released[known] = cut
        return pb.UpdateSubscriberStatus()

    def _subscribers(self, stream: pb.StreamInfo) -> list[str]:
        return [
            f"{scope}/{name}"
            for (scope, name), config in self._groups.items()
            if config.retentionType and any(cut.streamInfo == _bare(stream) for cut in config.startingStreamCuts)
        ]


def may_follow(stream: Stream, cut: Cut, before: Cut) -> bool:
    """Whether reading could have come to a cut, and not to one before another."""
    try:
        return not cuts.flaw(stream, cut) and (not before or cuts.is_equal_or_after(stream, cut, before))
    except (InvalidArgumentError, NotFoundError):
        return False


def _copy(config: pb.ReaderGroupConfiguration) -> pb.ReaderGroupConfiguration:
    found = pb.ReaderGroupConfiguration()
    found.CopyFrom(config)
    return found


def _state_of(scope: str, group: str) -> pb.StreamInfo:
    return pb.StreamInfo(scope=scope, stream=group_stream(group))


def _bare(stream: pb.StreamInfo) -> pb.StreamInfo:
    return pb.StreamInfo(scope=stream.scope, stream=stream.stream)
