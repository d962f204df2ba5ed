"""Messages of syslog over UDP and TCP, into the stream: each as it came, of RFC 5424 or RFC 3164. One node at a time.

Over TCP a message ends with its line, or says its length before it (RFC 6587); senders may use either. Nothing is
parsed: what is a valid message differs from sender to sender, and the stream has all that they sent. What may be lost
is as with `udp.py` and `tcp.py`.

Concurrency: belongs to one event loop.
"""

from distributed_ingest import udp
from distributed_ingest.feed import Scene
from distributed_ingest.records import SyslogSplitter
from distributed_ingest.settle import together
from distributed_ingest.tcp import serve
from sluice_coordination import TaskContext


async def receive(scene: Scene, context: TaskContext, host: str, port: int) -> None:
    """Listen until stopped. Raises StreamEndedError, LockLostError, OSError."""
    async with together() as group:
        group.create_task(udp.receive(scene, context, host, port))
        group.create_task(serve(scene, context, host, port, SyslogSplitter))
