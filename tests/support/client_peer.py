"""Our client doing all at once, in a process of its own: the twin of `ClientPeer` of the tests in Java."""

import asyncio
import sys
from itertools import count
from typing import TextIO

from sluice_client import Access, Client, Event, GroupConfig, create_reader_group, open_client, open_reader
from support.writing_process import on_stop, own_output

KEYS = 8


class _Peer:
    """Belongs to one event loop."""

    def __init__(self, client: Client, scope: str, stream: str, output: TextIO) -> None:
        self._client, self._scope, self._stream = client, scope, stream
        self._output = output
        self._stopped = asyncio.Event()

    async def run(self) -> None:
        config = GroupConfig(starts={f"{self._scope}/{self._stream}": None}, automatic_checkpoint_ms=500)
        await create_reader_group(self._client, self._scope, "rg", config)
        loop = asyncio.get_running_loop()
        on_stop(lambda: loop.call_soon_threadsafe(self._stopped.set))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._read())
            await asyncio.gather(self._write(), self._commit())
            self._say("ended")

    def _say(self, line: str) -> None:
        print(line, file=self._output, flush=True)

    async def _write(self) -> None:
        async with self._client.event_writer(self._scope, self._stream) as writer:
            for number in count():
                if self._stopped.is_set():
                    return
                writer.add(f"key-{number % KEYS}", b"wrote/%d" % number)
                await writer.flush()
                self._say(f"wrote {number}")

    async def _commit(self) -> None:
        for first in count(step=2):
            if self._stopped.is_set():
                return
            numbers = (first, first + 1)
            async with await self._client.begin_transaction(self._scope, self._stream) as transaction:
                for number in numbers:
                    transaction.add(f"key-{number % KEYS}", b"committed/%d" % number)
            for number in numbers:
                self._say(f"committed {number}")

    async def _read(self) -> None:
        async with await open_reader(self._client, self._scope, "rg", "reader") as reader:
            async for item in reader:
                if isinstance(item, Event):
                    self._say(f"read {item.data.decode()}")


async def main(address: str, scope: str, stream: str) -> None:
    async with open_client(address, access=Access.of_environment()) as client:
        await _Peer(client, scope, stream, own_output()).run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
