"""Opening everything that a user of the client needs, and closing it again."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NoReturn

from sluice.pravega import (
    ConnectionFailure,
    Failure,
    Host,
    InMemorySegmentStore,
    LocatedSegmentStores,
    SegmentStore,
)
from sluice_client.access import OPEN_ACCESS, Access, is_secured
from sluice_client.attempts import Patience
from sluice_client.controller import Controller, ControllerApi
from sluice_client.errors import ClientClosed, NotASingleSegment, StreamSealed, Unavailable
from sluice_client.memory import InMemoryController
from sluice_client.revisioned_stream import RevisionedStream
from sluice_client.stream_manager import StreamManager

IN_MEMORY = "memory:"
_DEFAULT_PATIENCE = Patience()


class Client:
    """The controller and the segment stores of one cluster; `open_client` makes one.

    Belongs to one event loop; any number of calls side by side.
    """

    def __init__(self, controller: ControllerApi, store: SegmentStore, patience: Patience = _DEFAULT_PATIENCE) -> None:
        self.controller = controller
        self.store = store
        """The data plane, for any segment; one attempt for each call, see `sluice.pravega`."""
        self.streams = StreamManager(controller, store, patience)
        self._patience = patience

    async def revisioned_stream(self, scope: str, stream: str) -> RevisionedStream:
        """A stream that is there as a revisioned one, with a writer of its own.

        Raises StreamMissing, StreamSealed, NotASingleSegment, Unavailable.
        """
        segments = await self.controller.segments(scope, stream)
        if not segments:
            raise StreamSealed(f"{scope}/{stream}")
        if len(segments) > 1:
            raise NotASingleSegment(f"{scope}/{stream}: {len(segments)} segments")
        return RevisionedStream(self.store, segments[0], self._patience)


@asynccontextmanager
async def open_client(
    address: str, patience: Patience = _DEFAULT_PATIENCE, access: Access = OPEN_ACCESS
) -> AsyncIterator[Client]:
    """A client for the cluster of a controller, closed at the end of the block.

    The address is `host:port` or `tcp://host:port`; `tls://host:port` has all connections secured, those to the
    segment stores, too. Raises ValueError for any other.

    `memory:` is a cluster in this process, a new and empty one each time: for tests. Connections are made when they
    are needed first, so a wrong address shows as Unavailable, after `patience.deadline_s`.
    """
    if address == IN_MEMORY:
        twin = InMemorySegmentStore()
        memory = InMemoryController(twin)
        try:
            yield Client(memory, twin, patience)
        finally:
            memory.close()
            twin.fault = _refuse
        return
    async with AsyncExitStack() as opened:
        controller = await opened.enter_async_context(Controller(address, patience, access=access))

        async def locate(segment: str) -> Host:
            try:
                return await controller.node_of(segment)
            except Unavailable as error:
                raise ConnectionFailure(Failure.NO_ROUTE, error.detail) from error

        stores = LocatedSegmentStores(
            locate, controller.token_for, tls=access.to_stores() if is_secured(address) else None
        )
        opened.push_async_callback(stores.close)
        yield Client(controller, stores, patience)


def _refuse(*_request: str) -> NoReturn:
    raise ClientClosed(IN_MEMORY)
