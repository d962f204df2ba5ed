"""Segments as they are shown: with their container, the segment store that runs it, and whether that answers."""

from collections.abc import Iterable, Iterator

from api_gateway.console.rest.stream_models import SegmentModel
from api_gateway.edge.containers import Containers
from sluice.domain.ids import StreamId
from sluice.domain.segment import Segment, epoch_of, number_of, segment_name
from sluice.pravega.routing import container_of


class Shown:
    """Shows segments of one stream, with the container map as it is when this is made."""

    def __init__(self, containers: Containers, id: StreamId) -> None:
        self._stream = id
        self._count = containers.count
        self._hosts = containers.hosts()
        self._outages = containers.outages()

    def container(self, segment: int) -> int:
        return container_of(segment_name(*self._stream, segment), self._count)

    def store(self, container: int) -> str | None:
        host = self._hosts.get(container)
        return str(host) if host is not None else None

    def models(self, segments: Iterable[Segment]) -> Iterator[SegmentModel]:
        for segment in segments:
            container = self.container(segment.id)
            yield SegmentModel(
                id=segment.id,
                number=number_of(segment.id),
                epoch=epoch_of(segment.id),
                low=segment.low,
                high=segment.high,
                container=container,
                store=self.store(container),
                problem=outage.problem if (outage := self._outages.get(container)) is not None else None,
            )
