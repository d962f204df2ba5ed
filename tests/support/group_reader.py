"""A process that reads in a reader group, and prints what it gets as `ReaderPeer` of the tests in Java does."""

import asyncio
import sys

from sluice_client import CheckpointReached, Event, open_client, open_reader


async def main(address: str, scope: str, group: str, reader: str) -> None:
    async with open_client(address) as client, await open_reader(client, scope, group, reader) as opened:
        print("joined", flush=True)
        async for item in opened:
            match item:
                case Event():
                    print(f"event {item.data.decode()}", flush=True)
                case CheckpointReached():
                    print(f"checkpoint {item.name}", flush=True)
    print("left", flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
