"""Opening everything that a user of the client needs, and closing it again."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NoReturn
from uuid import UUID, uuid4

from sluice.pravega import (
    ConnectionFailure,
    Failure,
    Host,
    InMemorySegmentStore,
    LocatedSegmentStores,
    SegmentStore,
)
from sluice.pravega.event_frames import MalformedEvents
from sluice_client.access import OPEN_ACCESS, Access, is_secured
from sluice_client.attempts import Patience
from sluice_client.controller import Controller, ControllerApi
from sluice_client.errors import ClientClosed, EventMissing, NotASingleSegment, StreamSealed, Unavailable
from sluice_client.event_reading import read_piece
from sluice_client.event_writer import Ranges
from sluice_client.groups.encoding import EventPointer
from sluice_client.memory import InMemoryController
from sluice_client.revisioned_stream import RevisionedStream
from sluice_client.stream_manager import StreamManager
from sluice_client.stream_writer import StreamWriter
from sluice_client.transaction import DEFAULT_LEASE_S, Transaction, begin, resume

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
        self.patience = patience
        """How long requests go on trying."""

    async def revisioned_stream(self, scope: str, stream: str) -> RevisionedStream:
        """A stream that is there as a revisioned one, with a writer of its own.

        Raises StreamMissing, StreamSealed, NotASingleSegment, Unavailable.
        """
        segments = await self.controller.segments(scope, stream)
        if not segments:
            raise StreamSealed(f"{scope}/{stream}")
        if len(segments) > 1:
            raise NotASingleSegment(f"{scope}/{stream}: {len(segments)} segments")
        return RevisionedStream(self.store, segments[0], self.patience)

    def event_writer(
        self, scope: str, stream: str, *, large_events: bool = False, writer_id: str | None = None
    ) -> StreamWriter:
        """A writer of events to a stream, which need not be there before the first of them is stored.

        With `large_events` they may have more than 8 MiB, up to 2 GiB. `writer_id` is whose times it notes: that of no
        other writer at the time, by default a new one.
        """
        id = writer_id or str(uuid4())
        return StreamWriter(
            self.controller, self.store, self.patience, (scope, stream), id=id, large_events=large_events
        )

    async def fetch_event(self, pointer: EventPointer) -> bytes:
        """An event that a reader returned before. Raises EventMissing if it was truncated or deleted."""
        segment, offset = pointer.segment, pointer.offset
        try:
            found = await read_piece(self.store, segment, offset, pointer.length, self.patience.deadline_s)
        except MalformedEvents as error:
            raise EventMissing(f"{pointer}") from error
        if not found.events or found.events[0].start != offset:
            raise EventMissing(f"{pointer}")
        return found.events[0].data

    async def begin_transaction(
        self, scope: str, stream: str, *, lease_s: float = DEFAULT_LEASE_S, writer_id: str = ""
    ) -> Transaction:
        """A new transaction, which ends by itself if this process does not prolong its lease any more.

        Raises StreamMissing; Refused, Unavailable also for a lease that the controller does not allow.
        """
        id, ranges = await begin(self.controller, scope, stream, lease_s)
        return self._transaction(scope, stream, id, ranges, lease_s, writer_id)

    async def resume_transaction(
        self, scope: str, stream: str, id: UUID, *, lease_s: float = DEFAULT_LEASE_S, writer_id: str = ""
    ) -> Transaction:
        """A transaction that was begun elsewhere. What was added there, and not flushed, is not part of it.

        Raises StreamMissing.
        """
        ranges = await resume(self.controller, scope, stream, id)
        return self._transaction(scope, stream, id, ranges, lease_s, writer_id)

    def _transaction(
        self, scope: str, stream: str, id: UUID, ranges: Ranges, lease_s: float, writer_id: str
    ) -> Transaction:
        return Transaction(
            self.controller,
            self.store,
            (scope, stream),
            id,
            ranges,
            lease_s=lease_s,
            patience=self.patience,
            writer_id=writer_id,
        )


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
