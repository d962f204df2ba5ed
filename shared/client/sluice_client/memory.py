"""A controller in memory: the twin of the real one for users' tests, together with the twin of the segment stores.

It knows scopes and streams with a fixed number of segments, nothing else. Concurrency: a call takes effect at once.
"""

from sluice.domain.config import ScaleType
from sluice.domain.segment import parse_segment_name, segment_name
from sluice.pravega import Host, SegmentStore
from sluice_client.errors import ClientClosed, ScopeMissing, StreamMissing
from sluice_client.names import check_new_stream, check_scope, check_stream

_HOST = Host("memory", 0)


class InMemoryController:
    """Has all methods of `ControllerApi`; creates the segments in `store`."""

    def __init__(self, store: SegmentStore) -> None:
        self._store = store
        self._scopes: dict[str, dict[str, list[str]]] = {}
        self._closed = False

    def close(self) -> None:
        """Calls that come later end with ClientClosed."""
        self._closed = True

    async def create_scope(self, scope: str) -> bool:
        """See ControllerApi."""
        self._check_open()
        check_scope(scope)
        if scope in self._scopes:
            return False
        self._scopes[scope] = {}
        return True

    async def create_stream(self, scope: str, stream: str, segments: int = 1) -> bool:
        """See ControllerApi."""
        self._check_open()
        check_new_stream(scope, stream, segments)
        if scope not in self._scopes:
            raise ScopeMissing(scope)
        if stream in self._scopes[scope]:
            return False
        names = self._scopes[scope][stream] = [segment_name(scope, stream, number) for number in range(segments)]
        for name in names:
            await self._store.create_segment(name, ScaleType.FIXED.code, 0)
        return True

    async def segments(self, scope: str, stream: str) -> list[str]:
        """See ControllerApi."""
        self._check_open()
        check_stream(scope, stream)
        names = self._scopes.get(scope, {}).get(stream)
        if names is None:
            raise StreamMissing(f"{scope}/{stream}")
        return list(names)

    async def key_ranges(self, scope: str, stream: str) -> list[tuple[float, str]]:
        """See ControllerApi."""
        names = await self.segments(scope, stream)
        return [((number + 1) / len(names), name) for number, name in enumerate(names)]

    async def head(self, scope: str, stream: str) -> dict[str, int]:
        """See ControllerApi."""
        return dict.fromkeys(await self.segments(scope, stream), 0)

    async def successors(self, segment: str) -> dict[str, list[str]]:
        """See ControllerApi."""
        scope, stream, _, _ = parse_segment_name(segment)
        await self.segments(scope, stream)
        return {}

    async def node_of(self, segment: str) -> Host:
        """See ControllerApi."""
        self._check_open()
        parse_segment_name(segment)
        return _HOST

    def _check_open(self) -> None:
        if self._closed:
            raise ClientClosed(f"{_HOST}")
