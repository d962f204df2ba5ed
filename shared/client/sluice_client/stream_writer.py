"""Writing events to a stream, and saying of what time they are.

Of the times and positions of all writers the controller makes watermarks, by which readers learn how far they are in
the writers' time. Concurrency: one task uses a writer.
"""

from functools import partial
from types import TracebackType

from sluice.controller_api import controller_pb2 as pb
from sluice.pravega import SegmentStore
from sluice_client.attempts import Patience
from sluice_client.controller import ControllerApi, stream_message
from sluice_client.errors import Refused
from sluice_client.event_writer import EventWriter
from sluice_client.stream_manager import StreamManager


class StreamWriter(EventWriter):
    """An EventWriter that knows its stream; `Client.event_writer` makes one. `id` is whose times it notes."""

    def __init__(
        self,
        controller: ControllerApi,
        store: SegmentStore,
        patience: Patience,
        stream: tuple[str, str],
        *,
        id: str,
        large_events: bool,
    ) -> None:
        ranges = partial(controller.key_ranges, *stream)
        super().__init__(store, ranges, patience.deadline_s, large_events=large_events)
        self.id = id
        self._controller = controller
        self._streams = StreamManager(controller, store, patience)
        self._stream = stream
        self._has_reported = False

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await super().__aexit__(kind, error, trace)
        if error is None and self._has_reported:
            request = pb.RemoveWriterRequest(writer=self.id, stream=stream_message(*self._stream))
            await self._controller.call(lambda stub: stub.removeWriter, request)

    async def note_time(self, time: int) -> None:
        """Stores all that was added, and says that it is of before this time, in whatever unit the writers agree on.

        What follows is of this time or later. Raises as `flush`; Refused for a time before one that was noted.
        """
        await self.flush()
        cut = await self._streams.tail(*self._stream)
        position = pb.StreamCut(streamInfo=stream_message(*self._stream), cut=cut.by_id())
        request = pb.TimestampFromWriter(writer=self.id, position=position, timestamp=time)
        self._has_reported = True
        result = (await self._controller.call(lambda stub: stub.noteTimestampFromWriter, request)).result
        if result != pb.TimestampResponse.SUCCESS:
            raise Refused(f"noteTimestampFromWriter {self.id}: {pb.TimestampResponse.Status.Name(result)}")
