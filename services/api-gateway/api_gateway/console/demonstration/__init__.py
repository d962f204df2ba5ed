"""The demonstration: a program of an ordinary client that fills an empty system, for who looks at the page first.

It runs as a process of its own, `python -m api_gateway.console.demonstration`, because its client keeps Python's lock
while it waits. It reaches the gateway as any client does, and ends when its input ends, so also with the gateway. What
it has made stays. Belongs to the event loop.
"""

import asyncio
import logging
import sys
from collections import deque
from collections.abc import Callable
from http import HTTPStatus
from importlib.util import find_spec

import msgspec

from api_gateway.edge.rest.failures import RefusedError
from sluice.child_process import ChildProcess
from sluice.domain.cluster.state import Cluster
from sluice.domain.ids import StreamId

log = logging.getLogger(__name__)

SCOPE = "demonstration"
READINGS = StreamId(SCOPE, "readings")
CLIENT = "pravega_client"
PROGRAM = (sys.executable, "-m", "api_gateway.console.demonstration")

LEAVES_S = 5.0
_KEPT_LINES = 20


class DemonstrationState(msgspec.Struct, frozen=True):
    """`since` in epoch ms, 0 unless it runs; `refusal`: why it cannot be started, if it cannot.

    `problem` is the last that a process which ended by itself had to say.
    """

    running: bool
    since: int = 0
    refusal: str = ""
    problem: str = ""


class Demonstration:
    """At most one process. `address` says where a gateway serves gRPC; a `refusal` why there can be none."""

    def __init__(
        self,
        address: Callable[[], str | None],
        now_ms: Callable[[], int],
        refusal: str = "",
        program: tuple[str, ...] = PROGRAM,
        leaves_s: float = LEAVES_S,
    ) -> None:
        self._program = program
        self._address = address
        self._now_ms = now_ms
        self._refusal = refusal
        self._leaves_s = leaves_s
        self._process: ChildProcess | None = None
        self._stopped: ChildProcess | None = None
        self._following: asyncio.Task[None] | None = None
        self._since = 0
        self._problem = ""
        self._turn = asyncio.Lock()

    @property
    def state(self) -> DemonstrationState:
        running = self._is_running
        return DemonstrationState(running, self._since if running else 0, self._refusal, self._problem)

    @property
    def _is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Begin; nothing if it runs. Raises RefusedError."""
        async with self._turn:
            if self._refusal:
                raise RefusedError(HTTPStatus.CONFLICT, self._refusal)
            if self._is_running:
                return
            address = self._address()
            if address is None:
                raise RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, "no gateway has said yet where it serves gRPC")
            self._problem = ""
            self._since = self._now_ms()
            self._process = await ChildProcess.start((*self._program, address), says_errors=True)
            self._following = asyncio.get_running_loop().create_task(self._follow(self._process))
            log.info("demonstration started", extra={"child": self._process.pid})

    async def stop(self) -> None:
        """End it, if it runs; it has `leaves_s` to leave."""
        async with self._turn:
            process = self._process
            if process is None or process.returncode is not None:
                return
            self._stopped = process
            process.end_input()
            await process.ends(self._leaves_s)
            log.info("demonstration stopped")

    async def close(self) -> None:
        """End it, and with it what follows it."""
        await self.stop()
        if self._following is not None:
            # A child of it that is stuck holds the pipe of its errors.
            await asyncio.wait((self._following,), timeout=self._leaves_s)
            self._following.cancel()

    async def _follow(self, process: ChildProcess) -> None:
        """Keep its last lines, to say them if it ends by itself."""
        lines: deque[str] = deque(maxlen=_KEPT_LINES)
        async for line in process.output:
            lines.append(line.decode(errors="replace").strip())
        status = await process.wait()
        if status != 0 and process is not self._stopped:
            self._problem = next((line for line in reversed(lines) if line), f"ended with status {status}")[:500]
            log.warning("demonstration ended", extra={"status": status, "lines": list(lines)})


def grpc_address(cluster: Cluster) -> str | None:
    """host:port of a gateway that serves gRPC; None if none has said where it does."""
    return next(filter(None, (member.endpoints.get("grpc") for member in cluster.members.values())), None)


def why_not(*, secured: bool) -> str:
    """Why no demonstration can be started here; empty if one can."""
    if secured:
        return "the demonstration has no credentials, and this system wants some"
    if find_spec(CLIENT) is None:
        return "the package pravega, the client of the demonstration, is not installed beside the gateway"
    return ""
