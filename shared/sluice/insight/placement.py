"""Where segments are, and which of them can be neither written nor read, because their containers do not answer."""

from collections.abc import Iterable, Mapping

from sluice.domain.host import Host
from sluice.insight.shown import Shown, text
from sluice.outages import Outage
from sluice.pravega.routing import container_of


class Unreachable(Shown):
    """Segments that can be neither written nor read."""

    segments: int = text("How many.")
    since: int = text("Since when the first of them, epoch ms.")
    stores: list[str] = text("host:port of the segment stores that ran them then.")
    gone: list[str] = text("Those of these stores that have gone.")


class Placement:
    """For one answer, as the cluster is when this is made. `count` is how many containers there are, 0: not known.

    The journal's partition of a stream does not say which store had a segment: of the past only `count` is known.
    """

    def __init__(
        self, count: int, hosts: Mapping[int, Host] | None = None, outages: Mapping[int, Outage] | None = None
    ) -> None:
        self._count = count
        self._hosts = hosts or {}
        self._outages = outages or {}

    def container(self, segment: str) -> int | None:
        """The container of a segment with this name."""
        return container_of(segment, self._count) if self._count else None

    def store(self, container: int | None) -> str | None:
        host = self._hosts.get(container) if container is not None else None
        return str(host) if host is not None else None

    def problem(self, container: int | None) -> str | None:
        outage = self._outages.get(container) if container is not None else None
        return outage.problem if outage is not None else None

    def unreachable(self, segments: Iterable[str]) -> Unreachable | None:
        """Which of the segments with these names; None if all can be reached."""
        if not self._outages:
            return None
        found = [outage for name in segments if (outage := self._outages.get(container_of(name, self._count)))]
        if not found:
            return None
        return Unreachable(
            segments=len(found),
            since=min(outage.since for outage in found),
            stores=sorted({str(outage.store) for outage in found if outage.store is not None}),
            gone=sorted({str(outage.store) for outage in found if outage.has_gone}),
        )
