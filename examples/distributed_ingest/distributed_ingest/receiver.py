"""The feed of all that is sent to a node: one node at a time receives, at one address.

Concurrency: belongs to one event loop.
"""

from collections.abc import Awaitable, Callable

from distributed_ingest.feed import Reach, Scene
from distributed_ingest.records import Event
from distributed_ingest.sink import SinkError
from sluice import addresses
from sluice_coordination import Functions, SingleSource, SourceState, Task, TaskContext

_FUNCTION = "receive"
Receive = Callable[[Scene, TaskContext, str, int], Awaitable[None]]
"""Receives at a host and a port, until it is stopped."""


class Receiver:
    """See Feed."""

    def __init__(self, scene: Scene, host: str, port: int, receive: Receive) -> None:
        self._scene = scene
        self._host, self._port = host, port
        self._receive = receive

    async def open(self) -> None:
        """See Feed. Nothing is checked: another node may listen, or the other end come later."""

    def register(self, functions: Functions) -> None:
        """See Feed."""
        functions.register(_FUNCTION)(self._run)

    def source(self) -> SingleSource:
        """See Feed."""
        return SingleSource(self._scene.job.definition.kind, Task(_FUNCTION))

    async def reach(self, state: SourceState) -> Reach:  # noqa: ARG002 - there is nothing to reach
        """See Feed."""
        return Reach(0, None, "bytes", finished=False)

    async def close(self) -> None:
        """See Feed."""

    async def _run(self, context: TaskContext) -> None:
        try:
            await self._receive(self._scene, context, self._host, self._port)
        except OSError as error:
            self._scene.outlet.tally.problem(f"{addresses.address_of(self._host, self._port)}: {error}")
            raise


async def deliver_patiently(scene: Scene, context: TaskContext, origin: str, events: list[Event]) -> None:
    """Write events, however long that takes: there is no other copy. Raises StreamEndedError, LockLostError."""
    while events:
        try:
            await scene.outlet.deliver(context, origin, events)
            return
        except SinkError:
            # The outlet has reported it.
            continue
