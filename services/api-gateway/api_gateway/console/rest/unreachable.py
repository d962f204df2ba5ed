"""Which segments of a stream or table can be neither written nor read, because their containers do not answer."""

from collections.abc import Iterable

from pydantic import Field

from api_gateway.console.rest.base import Model
from api_gateway.edge.containers import Containers
from sluice.domain.segment import kvt_segment_name, segment_name
from sluice.domain.stream.state import Stream, StreamState
from sluice.domain.table.state import Table
from sluice.outages import Outage
from sluice.pravega.routing import container_of


class Unreachable(Model):
    """Segments that can be neither written nor read."""

    segments: int = Field(description="How many.")
    since: int = Field(description="Since when the first of them, epoch ms.")
    stores: list[str] = Field(description="host:port of the segment stores that ran them then.")
    gone: list[str] = Field(description="Those of these stores that have gone.")


class Reach:
    """What can be reached as this is made; for one answer."""

    def __init__(self, containers: Containers) -> None:
        self._outages = containers.outages()
        self._count = containers.count

    def stream(self, stream: Stream) -> Unreachable | None:
        """Of the segments that are written to; None if all can be reached."""
        if not self._outages or stream.state is StreamState.SEALED:
            return None
        return self._of(segment_name(*stream.id, id) for id in stream.active_epoch.segments)

    def table(self, table: Table) -> Unreachable | None:
        """Of its partitions; None if all can be reached."""
        if not self._outages:
            return None
        return self._of(kvt_segment_name(*table.id, segment.id) for segment in table.segments)

    def _of(self, names: Iterable[str]) -> Unreachable | None:
        found = [self._outages.get(container_of(name, self._count)) for name in names]
        return _model([outage for outage in found if outage is not None])


def _model(found: list[Outage]) -> Unreachable | None:
    if not found:
        return None
    return Unreachable(
        segments=len(found),
        since=min(outage.since for outage in found),
        stores=sorted({str(outage.store) for outage in found if outage.store is not None}),
        gone=sorted({str(outage.store) for outage in found if outage.has_gone}),
    )


def how_many(found: Unreachable | None) -> int | None:
    """For a row of a list."""
    return found.segments if found is not None else None
