"""What a Kubernetes Service is to the gateways: new connections go to one that listens.

Bytes are passed on as they are; connections that exist stay where they are. Runs in a thread of its own.
"""

import asyncio
import threading
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from types import TracebackType
from typing import Self

from sluice.addresses import host_and_port

_CHUNK = 65_536
_CONNECTS_S = 0.5


class Balancer:
    """Listens on a free port of 127.0.0.1. As a context it is up inside."""

    def __init__(self, backends: Sequence[str]) -> None:
        self._backends = list(map(host_and_port, backends))
        self._turn = count()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="balancer", daemon=True)
        self.address = ""

    def lead_to(self, backends: Sequence[str]) -> None:
        """From now on new connections go to one of these."""
        self._backends = list(map(host_and_port, backends))

    def __enter__(self) -> Self:
        self._thread.start()
        server = asyncio.run_coroutine_threadsafe(asyncio.start_server(self._accept, "127.0.0.1", 0), self._loop)
        host, port = server.result().sockets[0].getsockname()
        self.address = f"{host}:{port}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(_end_connections(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        backend = await self._connect()
        if backend is None:
            writer.close()
            return
        there, back = backend
        # The streams of Python 3.11 report a task that was cancelled as one that has failed.
        with suppress(asyncio.CancelledError):
            await asyncio.gather(_pass_on(reader, back), _pass_on(there, writer))

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        first, backends = next(self._turn), self._backends
        for number in range(len(backends)):
            host, port = backends[(first + number) % len(backends)]
            try:
                async with asyncio.timeout(_CONNECTS_S):
                    return await asyncio.open_connection(host, port)
            except OSError:
                continue
        return None


async def _end_connections() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Until one side ends the connection, or breaks it off."""
    try:
        while chunk := await source.read(_CHUNK):
            target.write(chunk)
            await target.drain()
    except ConnectionError:
        target.transport.abort()
    else:
        target.close()
