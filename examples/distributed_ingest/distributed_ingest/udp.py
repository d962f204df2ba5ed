"""Datagrams that come over UDP, into the stream: each is a record. One node at a time listens.

Whatever a sender sends is **lost** when it is not received, when it comes faster than the stream takes it, and when the
node ends before it has written it: UDP has no way back. What comes too fast for this process is counted.

Concurrency: belongs to one event loop; datagrams are written in the order in which they came.
"""

import asyncio
from collections import deque

from distributed_ingest.feed import Scene
from distributed_ingest.outlet import BATCH_BYTES
from distributed_ingest.receiver import deliver_patiently
from distributed_ingest.records import Event
from sluice import addresses
from sluice_coordination import TaskContext

MAX_HELD_BYTES = 16 * 1024 * 1024


class _Held(asyncio.DatagramProtocol):
    """What has come and is not written yet."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._events = deque[tuple[str, Event]]()
        self._bytes = 0
        self._come = asyncio.Event()

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        record, host = data.rstrip(b"\r\n\0"), addr[0]
        if not record:
            return
        if self._bytes + len(record) > MAX_HELD_BYTES:
            self._scene.outlet.skipped(host, 1, "datagrams come faster than the stream takes them")
            return
        self._events.append((host, self._scene.outlet.event(record, host)))
        self._bytes += len(record)
        self._come.set()

    async def batch(self) -> tuple[str, list[Event]]:
        """Wait for datagrams; return those that one sender has sent in a row."""
        while not self._events:
            self._come.clear()
            await self._come.wait()
        host, batch, size = self._events[0][0], list[Event](), 0
        while self._events and self._events[0][0] == host and size < BATCH_BYTES:
            _, event = self._events.popleft()
            batch.append(event)
            size += len(event.data)
        self._bytes -= size
        return host, batch


async def receive(scene: Scene, context: TaskContext, host: str, port: int) -> None:
    """Listen until stopped. Raises StreamEndedError, LockLostError, OSError."""
    loop, held = asyncio.get_running_loop(), _Held(scene)
    transport, _ = await loop.create_datagram_endpoint(lambda: held, local_addr=(host, port))
    try:
        port = transport.get_extra_info("sockname")[1]
        scene.tell(f"listening on {addresses.address_of(host, port)} for datagrams")
        while True:
            origin, batch = await held.batch()
            await deliver_patiently(scene, context, origin, batch)
    finally:
        transport.close()
