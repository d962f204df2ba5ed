"""The segment containers as far as this process knows: which store runs each, and which do not answer. No barrier."""

from collections.abc import Mapping

from api_gateway.edge.reads import Reads
from sluice.domain.host import Host
from sluice.insight.placement import Placement
from sluice.outages import Outage, outages


class Containers:
    """`count` is how many there are."""

    def __init__(self, reads: Reads, count: int) -> None:
        self._reads = reads
        self.count = count

    def hosts(self) -> Mapping[int, Host]:
        """The segment store that runs each container, if any does."""
        return self._reads.cluster().containers

    def placement(self) -> Placement:
        """Where segments are; for one answer."""
        return Placement(self.count, self.hosts(), self.outages())

    def outages(self) -> dict[int, Outage]:
        """The containers that do not answer."""
        return outages(self._reads.cluster(), self.count)
