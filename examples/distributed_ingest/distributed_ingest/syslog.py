"""Messages of syslog over UDP and TCP, into the stream: each as it came, of RFC 5424 or RFC 3164. One node at a time.

Over TCP a message ends with its line, or says its length before it (RFC 6587); senders may use either. Nothing is
parsed: what is a valid message differs from sender to sender, and the stream has all that they sent. What may be lost
is as with `udp.py` and `tcp.py`.

Concurrency: belongs to one event loop.
"""

from distributed_ingest.feed import Reach, Scene
from distributed_ingest.records import SyslogSplitter
from distributed_ingest.settle import together
from distributed_ingest.tcp import address_of, serve
from distributed_ingest.udp import receive
from sluice_coordination import Functions, SingleSource, SourceState, Task, TaskContext

NAME = "syslog"
_FUNCTION = "receive-messages"


class Syslog:
    """See Feed."""

    def __init__(self, scene: Scene, address: str) -> None:
        self._scene = scene
        self._host, self._port = address_of(address)

    async def open(self) -> None:
        """See Feed. Nothing is checked: another node may listen."""

    def register(self, functions: Functions) -> None:
        """See Feed."""
        functions.register(_FUNCTION)(self._receive)

    def source(self) -> SingleSource:
        """See Feed."""
        return SingleSource(NAME, Task(_FUNCTION))

    async def reach(self, state: SourceState) -> Reach:  # noqa: ARG002 - there is nothing to reach
        """See Feed."""
        return Reach(0, None, "bytes", finished=False)

    async def close(self) -> None:
        """See Feed."""

    async def _receive(self, context: TaskContext) -> None:
        async with together() as group:
            group.create_task(receive(self._scene, context, self._host, self._port))
            group.create_task(serve(self._scene, context, self._host, self._port, SyslogSplitter))
