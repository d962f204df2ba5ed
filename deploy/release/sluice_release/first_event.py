"""Run by the Python of a new environment: writes an event to the controller that is named, and reads it."""

import asyncio
import sys

from sluice_client import Event, GroupConfig, create_reader_group, open_client, open_reader


async def first_event(address: str) -> bytes:
    """What was read; TimeoutError if it took a minute."""
    async with asyncio.timeout(60), open_client(address) as client:
        await client.streams.create_scope("demo")
        await client.streams.create_stream("demo", "greetings")
        async with client.event_writer("demo", "greetings") as writer:
            await writer.write("a key", b"hello")
        await create_reader_group(client, "demo", "listeners", GroupConfig(starts={"demo/greetings": None}))
        async with await open_reader(client, "demo", "listeners", "reader-1") as reader:
            while True:
                item = await reader.next(timeout_s=60)
                if isinstance(item, Event):
                    return item.data


if __name__ == "__main__":
    print(asyncio.run(first_event(sys.argv[1])).decode())
